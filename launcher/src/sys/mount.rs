//! Mounts, by descriptors where a name could come to mean something else (mount(2), open_tree(2),
//! move_mount(2), mount_setattr(2)). All of it happens in a mount namespace of our own.

use crate::sys::descriptor::{self, poll_entries};
use crate::sys::new_names::NewNames;
use crate::sys::{OfCall, SyscallError, checked, process};
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};
use std::cell::Cell;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const NOSUID: u64 = libc::MOUNT_ATTR_NOSUID;
const NODEV: u64 = libc::MOUNT_ATTR_NODEV;
const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;

/// What is mounted where; poll(2) tells of its changes.
const TABLE: &str = "/proc/self/mountinfo";

/// A new file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The processes of the calling process's pid namespace (proc(5)).
    Proc,
    /// Files in memory, for everybody.
    Memory,
    /// A few files in memory, in a directory that only the user can change.
    Directories,
    /// Terminals (pts(4)).
    Terminals,
    /// A directory that nobody can look into.
    Nothing,
}

/// Mounts a new file system on a directory.
pub fn new(kind: Kind, on: &Path) -> Result<(), SyscallError> {
    let noexec = MountFlags::NOEXEC;
    let nodev = MountFlags::NODEV;
    let (name, flags, options) = match kind {
        Kind::Proc => (c"proc", noexec | nodev, None),
        Kind::Memory => (c"tmpfs", nodev, Some(c"mode=1777")),
        Kind::Directories => (c"tmpfs", nodev, Some(c"mode=755,size=1m")),
        Kind::Nothing => (c"tmpfs", nodev | MountFlags::RDONLY, Some(c"mode=000,size=4k")),
        Kind::Terminals => (c"devpts", noexec, Some(c"newinstance,ptmxmode=0666,mode=620")),
    };
    let mount = |options| rustix::mount::mount(name, on, name, flags | MountFlags::NOSUID, options);
    // The group that terminals have outside: for root, screen(1) insists on it, and has no capability to give it. In a
    // user namespace it has no number.
    if kind == Kind::Terminals && process::user() == 0 {
        return mount(Some(c"newinstance,ptmxmode=0666,mode=620,gid=5"))
            .or_else(|_| mount(options))
            .of("mount");
    }
    mount(options).of("mount")
}

/// The same, on a directory that is held open.
pub fn new_on(kind: Kind, on: BorrowedFd<'_>) -> Result<(), SyscallError> {
    new(kind, Path::new(&descriptor::own_name(on.as_raw_fd())))
}

/// Has a file stand in the place of another one as well, which links are followed to.
pub fn bind(file: &Path, on: &Path) -> Result<(), SyscallError> {
    rustix::mount::mount_bind(file, on).of("mount")
}

/// Remounts everything with nosuid, and stops new mounts from spreading to other namespaces.
pub fn separate() -> Result<(), SyscallError> {
    set(CWD, Path::new("/"), libc::AT_RECURSIVE, NOSUID, libc::MS_SLAVE)
}

/// Stops the mounts of this process's namespace from spreading to others. It takes CAP_SYS_ADMIN there.
pub fn keep_apart() -> Result<(), SyscallError> {
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change(c"/", flags).of("mount")
}

/// Remounts with nodev.
pub fn close_devices(on: &Path) -> Result<(), SyscallError> {
    set(CWD, on, 0, NODEV, 0)
}

/// Remounts read-only.
pub fn make_read_only(on: &Path) -> Result<(), SyscallError> {
    set(CWD, on, 0, READ_ONLY, 0)
}

/// mount_setattr(2), which rustix does not have.
fn set(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: libc::c_int,
    attributes: u64,
    propagation: libc::c_ulong,
) -> Result<(), SyscallError> {
    const CALL: &str = "mount_setattr";
    let path = CString::new(path.as_os_str().as_bytes()).of(CALL)?;
    let wanted = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation, userns_fd: 0 };
    let (directory, size) = (directory.as_raw_fd(), size_of::<libc::mount_attr>());
    let (path, wanted) = (path.as_ptr(), &raw const wanted);
    // SAFETY: a NUL-terminated path, and a structure of this size.
    let result = unsafe { libc::syscall(libc::SYS_mount_setattr, directory, path, flags, wanted, size) };
    checked(CALL, result).map(drop)
}

/// A copy of what is mounted at and below a place. It is not mounted anywhere yet.
pub struct Tree(OwnedFd);

impl Tree {
    /// Of a place that is held open.
    pub fn of(place: BorrowedFd<'_>) -> Result<Tree, SyscallError> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        rustix::mount::open_tree(place, c"", flags).map(Tree).of("open_tree")
    }

    /// The same tree, read-only and with nodev.
    pub fn read_only(self) -> Result<Tree, SyscallError> {
        self.restricted(true, false)
    }

    /// The same tree with nodev, and read-only or noexec where that is wanted.
    pub fn restricted(self, read_only: bool, no_exec: bool) -> Result<Tree, SyscallError> {
        let wanted = [(read_only, READ_ONLY), (no_exec, libc::MOUNT_ATTR_NOEXEC)];
        let wanted =
            wanted.into_iter().filter(|(wanted, _)| *wanted).fold(NODEV, |sum, (_, flag)| sum | flag);
        set(self.0.as_fd(), Path::new(""), libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, wanted, 0)?;
        Ok(self)
    }

    /// Mounts it at a place that is held open, whatever the place's name leads to by now. The place may be
    /// a symbolic link.
    pub fn cover(self, place: BorrowedFd<'_>) -> Result<(), SyscallError> {
        move_to(self.0.as_fd(), place)
    }
}

/// Mounts what is mounted nowhere yet at a place that is held open.
pub(super) fn move_to(mount: BorrowedFd<'_>, place: BorrowedFd<'_>) -> Result<(), SyscallError> {
    let empty_paths = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, c"", place, c"", empty_paths).of("move_mount")
}

/// The number of the mount that a path is on, a link itself included; `None` where the kernel does not tell
/// (statx(2), Linux 5.8).
pub fn number(path: &Path) -> Option<u64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let found = rustix::fs::statx(CWD, path, flags, StatxFlags::MNT_ID).ok()?;
    let known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    known.then_some(found.stx_mnt_id)
}

/// Whether something is mounted at a place that is held open, as far as the kernel tells.
pub fn is_root(place: BorrowedFd<'_>) -> bool {
    holds_root(place).unwrap_or(false)
}

/// The same, or why the kernel does not tell (statx(2), Linux 5.8).
pub fn holds_root(place: BorrowedFd<'_>) -> Result<bool, SyscallError> {
    of(place).map(|mounted| mounted.is_point)
}

/// What a place is mounted by.
#[derive(Clone, Copy, Debug)]
pub struct Mounted {
    /// The mount's number.
    pub number: u64,
    /// Whether the place is where it is mounted.
    pub is_point: bool,
}

/// What a place is mounted by, or why the kernel does not tell (statx(2), Linux 5.8).
pub fn of(place: BorrowedFd<'_>) -> Result<Mounted, SyscallError> {
    const CALL: &str = "statx";
    let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    let found = rustix::fs::statx(place, c"", flags, StatxFlags::MNT_ID).of(CALL)?;
    if !StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID) {
        return Err(Errno::NOSYS).of(CALL);
    }
    Ok(Mounted {
        number: found.stx_mnt_id,
        is_point: found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
    })
}

/// The mounts of the calling process's namespace, as a file in which poll(2) reports changes
/// (proc_pid_mountinfo(5)).
pub fn changes() -> Option<File> {
    File::open(TABLE).ok()
}

/// Tells whether anything was mounted or unmounted in this mount namespace.
pub struct Changes {
    table: File,
    /// The same for who waits: each open file is told each change once, also by an epoll_ctl(2) that is too late.
    waker: File,
    happened: Cell<bool>,
    /// Whose it is. The kernel tells each change once, be it a copy of that process that asks.
    owner: process::Pid,
}

impl Changes {
    /// From now on.
    pub fn from_now() -> Result<Changes, SyscallError> {
        Changes::told_by(Path::new(TABLE))
    }

    /// The same in the namespace of another process.
    pub fn of(process: process::Pid) -> Result<Changes, SyscallError> {
        Changes::told_by(Path::new(&format!("/proc/{process}/mountinfo")))
    }

    fn told_by(table: &Path) -> Result<Changes, SyscallError> {
        let open = || File::open(table).of(TABLE);
        let (waker, table) = (open()?, open()?);
        Ok(Changes { table, waker, happened: Cell::new(false), owner: process::id() })
    }

    /// Takes note of a change that the kernel has told elsewhere ([`Changes::as_fd`]).
    pub fn tell(&self) {
        self.happened.set(true);
    }

    /// Whether it was. A copy of the process (fork(2)) is told nothing.
    pub fn happened(&self) -> bool {
        process::id() == self.owner && (self.happened.get() || self.is_news())
    }

    /// Whether it was since this was last asked.
    pub fn is_news(&self) -> bool {
        // An error tells nothing, and so counts as a change.
        let mut entry = [libc::pollfd { fd: self.table.as_raw_fd(), events: libc::POLLPRI, revents: 0 }];
        let is_news = !matches!(poll_entries(&mut entry, 0), Ok(0));
        self.happened.set(self.happened.get() || is_news);
        is_news
    }
}

impl AsFd for Changes {
    /// Where the kernel tells who waits of changes (POLLPRI). What has changed before that, [`Changes::is_news`] tells.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// What [`wait_for_change`] has waited for.
pub struct Changed {
    /// The mounts have changed since the last call.
    pub mounts: bool,
    /// A name has appeared.
    pub names: bool,
    /// A signal can be read.
    pub signalled: bool,
}

/// Waits until something has changed.
pub fn wait_for_change(changes: &File, names: &NewNames, signals: BorrowedFd<'_>) -> Changed {
    let entry = |fd: RawFd, events| libc::pollfd { fd, events, revents: 0 };
    // Where the kernel does not tell, as often as nobody would notice.
    let timeout = if names.is_blind() { 5 } else { -1 };
    let names = names.as_fd().as_raw_fd();
    let mut entries = [
        entry(changes.as_raw_fd(), libc::POLLPRI),
        entry(names, libc::POLLIN),
        entry(signals.as_raw_fd(), libc::POLLIN),
    ];
    let none = poll_entries(&mut entries, timeout).is_ok_and(|ready| ready == 0);
    let [mounts, names, signalled] = entries.map(|entry| entry.revents != 0);
    Changed { mounts, names: names || none, signalled }
}

/// Takes a mount away that is held open by its root. It lasts as long as it is in use, and so does what was copied of
/// it.
pub fn detach(root: BorrowedFd<'_>) -> Result<(), SyscallError> {
    let root = descriptor::own_name(root.as_raw_fd());
    rustix::mount::unmount(&*root, UnmountFlags::DETACH).of("umount2")
}

/// Removes what is mounted at a path. It is no error if nothing is.
pub fn remove(path: &Path) {
    let _ = rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_copy_is_not_told_of_what_the_kernel_tells_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let urgent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (there, _) = listener.accept().unwrap();
        rustix::net::send(&urgent, b"!", rustix::net::SendFlags::OOB).unwrap();
        // For poll(2) that is what a changed table is.
        let mut changes = Changes {
            table: OwnedFd::from(there).into(),
            waker: File::open("/dev/null").unwrap(),
            happened: Cell::new(false),
            owner: process::parent(),
        };
        assert!(!changes.happened());
        changes.owner = process::id();
        assert!(changes.happened());
    }
}
