//! Mounts, by descriptors where a name could come to mean something else (mount(2), open_tree(2), move_mount(2),
//! mount_setattr(2)). All of it in a mount namespace of one's own.

use super::descriptor::own;
use super::{Failed, checked};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const NOSUID: u64 = libc::MOUNT_ATTR_NOSUID;
const NODEV: u64 = libc::MOUNT_ATTR_NODEV;
const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;

/// The same numbers on all architectures.
const STATMOUNT: libc::c_long = 457;
const LISTMOUNT: libc::c_long = 458;

/// A new file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The processes of the calling process's pid namespace (proc(5)).
    Proc,
    /// Files in memory, for everybody.
    Memory,
    /// Files in memory in directories that only the user changes.
    Directories,
    /// Terminals (pts(4)).
    Terminals,
    /// A directory that nobody can look into.
    Nothing,
}

/// Mounts a new file system on a directory.
pub fn new(kind: Kind, on: &Path) -> Result<(), Failed> {
    mount(kind, &text(on)?)
}

/// The same, on a directory that is held open.
pub fn new_on(kind: Kind, on: BorrowedFd<'_>) -> Result<(), Failed> {
    mount(kind, &text(Path::new(&format!("/proc/self/fd/{}", on.as_raw_fd())))?)
}

fn mount(kind: Kind, on: &CStr) -> Result<(), Failed> {
    let (name, flags, options) = match kind {
        Kind::Proc => (c"proc", libc::MS_NOEXEC | libc::MS_NODEV, None),
        Kind::Memory => (c"tmpfs", libc::MS_NODEV, Some(c"mode=1777")),
        Kind::Directories => (c"tmpfs", libc::MS_NODEV, Some(c"mode=755,size=1m")),
        Kind::Nothing => (c"tmpfs", libc::MS_NODEV | libc::MS_RDONLY, Some(c"mode=000,size=4k")),
        Kind::Terminals => (c"devpts", libc::MS_NOEXEC, Some(c"newinstance,ptmxmode=0666,mode=620")),
    };
    let options = options.map_or(std::ptr::null(), CStr::as_ptr).cast();
    // SAFETY: NUL-terminated strings; the file systems read their options as one.
    let result =
        unsafe { libc::mount(name.as_ptr(), on.as_ptr(), name.as_ptr(), flags | libc::MS_NOSUID, options) };
    checked("mount", result.into()).map(drop)
}

/// Has nothing that is mounted anywhere give privileges, and nothing that is mounted here be seen elsewhere.
pub fn separate() -> Result<(), Failed> {
    set(None, c"/", libc::AT_RECURSIVE, NOSUID, libc::MS_SLAVE)
}

/// Has no device be opened through a mount.
pub fn close_devices(on: &Path) -> Result<(), Failed> {
    set(None, &text(on)?, 0, NODEV, 0)
}

/// Has nothing be changed through a mount.
pub fn make_read_only(on: &Path) -> Result<(), Failed> {
    set(None, &text(on)?, 0, READ_ONLY, 0)
}

fn set(
    tree: Option<BorrowedFd<'_>>,
    path: &CStr,
    flags: libc::c_int,
    attributes: u64,
    propagation: libc::c_ulong,
) -> Result<(), Failed> {
    let wanted = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation, userns_fd: 0 };
    let directory = tree.map_or(libc::AT_FDCWD, |tree| tree.as_raw_fd());
    let size = size_of::<libc::mount_attr>();
    // SAFETY: a NUL-terminated path, and a structure of this size.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, directory, path.as_ptr(), flags, &raw const wanted, size)
    };
    checked("mount_setattr", result).map(drop)
}

/// A copy of what is mounted at and below a place, mounted nowhere yet.
pub struct Tree(OwnedFd);

impl Tree {
    /// Of a place that is held open.
    pub fn of(place: BorrowedFd<'_>) -> Result<Tree, Failed> {
        let flags = libc::OPEN_TREE_CLONE
            | libc::OPEN_TREE_CLOEXEC
            | (libc::AT_RECURSIVE | libc::AT_EMPTY_PATH) as libc::c_uint;
        // SAFETY: a NUL-terminated path.
        let tree = unsafe { libc::syscall(libc::SYS_open_tree, place.as_raw_fd(), c"".as_ptr(), flags) };
        checked("open_tree", tree).map(|tree| Tree(own(tree as RawFd)))
    }

    /// The same, but nothing can be changed through it, nor a device be opened.
    pub fn read_only(self) -> Result<Tree, Failed> {
        self.restricted(true, false)
    }

    /// The same, but no device can be opened, and nothing be changed or executed through it.
    pub fn restricted(self, read_only: bool, no_exec: bool) -> Result<Tree, Failed> {
        let wanted = [(read_only, READ_ONLY), (no_exec, libc::MOUNT_ATTR_NOEXEC)];
        let wanted =
            wanted.into_iter().filter(|(wanted, _)| *wanted).fold(NODEV, |sum, (_, flag)| sum | flag);
        set(Some(self.fd()), c"", libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, wanted, 0)?;
        Ok(self)
    }

    /// Mounts it at a place that is held open: whatever its name leads to by now, a symbolic link among it.
    pub fn cover(self, place: BorrowedFd<'_>) -> Result<(), Failed> {
        const EMPTY_PATHS: libc::c_uint = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
        let (tree, place) = (self.0.as_raw_fd(), place.as_raw_fd());
        // SAFETY: two constant empty paths.
        let result = unsafe {
            libc::syscall(libc::SYS_move_mount, tree, c"".as_ptr(), place, c"".as_ptr(), EMPTY_PATHS)
        };
        checked("move_mount", result).map(drop)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.0.as_fd()
    }
}

/// Whether something is mounted at a place that is held open, as far as can be told.
pub fn is_root(place: BorrowedFd<'_>) -> bool {
    holds_root(place).unwrap_or(false)
}

/// The same, if it can be told (statx(2), Linux 5.8).
pub fn holds_root(place: BorrowedFd<'_>) -> Result<bool, Failed> {
    // SAFETY: all zeroes is a valid value.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    let flags = libc::AT_EMPTY_PATH | libc::AT_NO_AUTOMOUNT;
    // musl before 1.2.4 has no function for it.
    // SAFETY: a constant empty path, and room for one structure.
    let result =
        unsafe { libc::syscall(libc::SYS_statx, place.as_raw_fd(), c"".as_ptr(), flags, 0, &raw mut found) };
    checked("statx", result).map(|_| found.stx_attributes & libc::STATX_ATTR_MOUNT_ROOT as u64 != 0)
}

/// `struct mnt_id_req` of statmount(2) and listmount(2), in its first version.
#[repr(C)]
struct Request {
    size: u32,
    spare: u32,
    mount: u64,
    wanted: u64,
}

/// The beginning of `struct statmount`.
#[repr(C)]
struct Found {
    size: u32,
    options: u32,
    known: u64,
    device: [u32; 2],
}

/// More mounts than this are not looked at one by one.
const MOST: usize = 128;

/// Whether any file system is mounted more than once; `None` where nobody tells (listmount(2) and statmount(2) are of Linux 6.8),
/// or there are very many.
pub fn any_is_mounted_twice() -> Option<bool> {
    /// LSMT_ROOT: from the root of the namespace on.
    const ALL: u64 = u64::MAX;
    /// STATMOUNT_SB_BASIC.
    const DEVICE: u64 = 1;
    let request = |mount, wanted| Request { size: size_of::<Request>() as u32, spare: 0, mount, wanted };
    let mut mounts = [0_u64; MOST];
    let all = request(ALL, 0);
    // SAFETY: a structure of the size it says, and room for so many numbers.
    let count = unsafe { libc::syscall(LISTMOUNT, &raw const all, mounts.as_mut_ptr(), MOST, 0) };
    let listed = usize::try_from(count).ok().filter(|count| (1..MOST).contains(count))?;
    let mut devices = [[0; 2]; MOST];
    for (mount, device) in mounts.iter().take(listed).zip(&mut devices) {
        let one = request(*mount, DEVICE);
        let mut found = Found { size: 0, options: 0, known: 0, device: [0; 2] };
        let size = size_of::<Found>();
        // SAFETY: a structure of the size it says, and room for as much of the answer.
        let result = unsafe { libc::syscall(STATMOUNT, &raw const one, &raw mut found, size, 0) };
        if result != 0 || found.known & DEVICE == 0 {
            return None;
        }
        *device = found.device;
    }
    let devices = devices.get_mut(..listed)?;
    devices.sort_unstable();
    Some(devices.windows(2).any(|pair| pair[0] == pair[1]))
}

/// What is mounted in the calling process's namespace, as a file that poll(2) says changes of (proc_pid_mountinfo(5)).
pub fn changes() -> Option<File> {
    File::open("/proc/self/mountinfo").ok()
}

/// Waits until what is mounted has changed since it was asked last, or a signal can be read; tells both.
pub fn wait_for_change(changes: &File, signals: BorrowedFd<'_>) -> (bool, bool) {
    let entry = |fd: RawFd, events| libc::pollfd { fd, events, revents: 0 };
    let mut entries = [entry(changes.as_raw_fd(), libc::POLLPRI), entry(signals.as_raw_fd(), libc::POLLIN)];
    // SAFETY: two valid structures.
    unsafe { libc::poll(entries.as_mut_ptr(), 2, -1) };
    (entries[0].revents != 0, entries[1].revents != 0)
}

/// Takes away what is mounted at a path; not an error where there is nothing.
pub fn remove(path: &Path) {
    if let Ok(path) = text(path) {
        // SAFETY: a NUL-terminated path.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) };
    }
}

fn text(path: &Path) -> Result<CString, Failed> {
    let text = CString::new(path.as_os_str().as_bytes());
    text.map_err(|_| Failed { call: "mount", cause: std::io::ErrorKind::InvalidInput.into() })
}
