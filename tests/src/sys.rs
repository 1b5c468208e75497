//! The system calls of the harness, and every `unsafe` block: calls that rustix has no function for.
//!
//! Code that runs between fork and exec may only make system calls: everything else is prepared before.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_int, c_long, sock_filter};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::XattrFlags;
use rustix::io::FdFlags;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Gid, Pid, Resource, Rlimit, Signal, Uid};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Winsize};
use rustix::thread::{CapabilitySet, UnshareFlags};

#[cfg(target_arch = "x86_64")]
pub mod ptrace;

/// The effective user number of this process.
pub fn euid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn id(pid: i32) -> Pid {
    Pid::from_raw(pid).expect("a process number")
}

fn named(signal: c_int) -> Signal {
    Signal::from_named_raw(signal).expect("a signal with a name")
}

/// Sends a signal to one process. The callers have not yet waited for theirs, so the number still belongs to it.
pub fn kill(pid: i32, signal: c_int) {
    let _ = rustix::process::kill_process(id(pid), named(signal));
}

/// Sends a signal to a process group that a child of ours leads.
pub fn kill_group(leader: i32, signal: c_int) {
    assert!(leader > 1, "not a process group of a child: {leader}");
    let _ = rustix::process::kill_process_group(id(leader), named(signal));
}

/// Registers a function for the end of this process.
pub fn at_exit(function: extern "C" fn()) {
    // SAFETY: the function is a static one, valid for the rest of the process.
    unsafe { libc::atexit(function) };
}

/// Writes to descriptor 2, past the test runner's capturing.
pub fn write_stderr(bytes: &[u8]) {
    let _ = rustix::io::write(rustix::stdio::stderr(), bytes);
}

/// A netlink socket, which any user can make.
pub fn netlink() -> OwnedFd {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a netlink socket")
}

fn checked(result: c_long) -> io::Result<c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn before_exec(command: &mut Command, action: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: every action in this file makes system calls only and touches memory that was prepared before the fork.
    unsafe { command.pre_exec(action) };
}

/// Makes the command start with a signal ignored.
pub fn ignore(command: &mut Command, signal: c_int) {
    set_disposition(command, signal, libc::SIG_IGN);
}

/// Makes the command start with a signal's default action, whatever this process does with the signal.
pub fn by_default(command: &mut Command, signal: c_int) {
    set_disposition(command, signal, libc::SIG_DFL);
}

fn set_disposition(command: &mut Command, signal: c_int, how: libc::sighandler_t) {
    before_exec(command, move || {
        // SAFETY: SIG_IGN and SIG_DFL are no functions that could be called.
        match unsafe { libc::signal(signal, how) } {
            libc::SIG_ERR => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    });
}

/// Waits until there is something to read, or a connection to accept.
pub fn wait_for_input(file: BorrowedFd<'_>) -> io::Result<()> {
    rustix::event::poll(&mut [PollFd::from_borrowed_fd(file, PollFlags::IN)], None)?;
    Ok(())
}

/// Limits how many descriptors the command may have.
pub fn limit_open_files(command: &mut Command, limit: u64) {
    let limits = Rlimit { current: Some(limit), maximum: Some(limit) };
    before_exec(command, move || Ok(rustix::process::setrlimit(Resource::Nofile, limits)?));
}

/// Hands a descriptor to the command under the given number.
pub fn inherit_as(command: &mut Command, fd: OwnedFd, number: c_int) {
    before_exec(command, move || {
        if fd.as_raw_fd() == number {
            return Ok(rustix::io::fcntl_setfd(&fd, FdFlags::empty())?);
        }
        // SAFETY: takes plain numbers. Whatever has the number in this process, the child loses it at exec.
        checked(unsafe { libc::dup2(fd.as_raw_fd(), number) }.into()).map(drop)
    });
}

/// Makes writing to an open file return at once, for every process that has it.
pub fn never_wait(file: &OwnedFd) {
    rustix::io::ioctl_fionbio(file, true).expect("FIONBIO");
}

/// Gives the command a new session keyring that holds a key of type `user` with this name.
pub fn new_keyring_with(command: &mut Command, name: &'static CStr) {
    const JOIN_SESSION_KEYRING: c_int = 1;
    const SESSION_KEYRING: c_int = -3;
    before_exec(command, move || {
        let anonymous = std::ptr::null::<u8>();
        // SAFETY: a null name asks for an anonymous keyring.
        checked(unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, anonymous) })?;
        let (kind, payload) = (c"user", b"hunter2");
        let (kind, name, size) = (kind.as_ptr(), name.as_ptr(), payload.len());
        // SAFETY: two C strings and a buffer with its length, all static.
        checked(unsafe {
            libc::syscall(libc::SYS_add_key, kind, name, payload.as_ptr(), size, SESSION_KEYRING)
        })
        .map(drop)
    });
}

/// Takes every capability but these out of the command's bounding set.
pub fn keep_only_capabilities(command: &mut Command, kept: &'static [u32]) {
    before_exec(command, move || {
        for capability in (0..64).filter(|capability| !kept.contains(capability)) {
            // Fails past the kernel's last capability and without privilege: both are fine.
            let set = CapabilitySet::from_bits_retain(1 << capability);
            let _ = rustix::thread::remove_capability_from_bounding_set(set);
        }
        Ok(())
    });
}

/// Puts a seccomp filter on the command.
pub fn install_filter(command: &mut Command, code: Vec<sock_filter>) {
    before_exec(command, || Ok(rustix::thread::set_no_new_privs(true)?));
    install_filter_as_root(command, code);
}

/// Puts a seccomp filter on the command with the rights of root, and without `no_new_privs`.
pub fn install_filter_as_root(command: &mut Command, mut code: Vec<sock_filter>) {
    let len = u16::try_from(code.len()).expect("a short filter");
    before_exec(command, move || {
        let program = libc::sock_fprog { len, filter: code.as_mut_ptr() };
        // SAFETY: the program and its code outlive the call.
        let result =
            unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
        checked(result).map(drop)
    });
}

/// Makes the command run as this user and group, without supplementary groups.
pub fn become_user(command: &mut Command, id: u32) {
    before_exec(command, move || {
        // After the fork there is one thread.
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_gid(Gid::from_raw(id))?;
        Ok(rustix::thread::set_thread_uid(Uid::from_raw(id))?)
    });
}

/// Gives this thread, and the threads that it makes later, mounts of their own with a file system in memory at `dir`.
/// Needs privilege.
pub fn own_memory_at(dir: &CStr) -> io::Result<()> {
    // SAFETY: no table of descriptors is unshared, which is all that could do harm.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    Ok(rustix::mount::mount("none", dir, "tmpfs", MountFlags::empty(), c"mode=755")?)
}

/// Takes such a file system away, even while it is in use.
pub fn unmount(dir: &CStr) {
    let _ = rustix::mount::unmount(dir, UnmountFlags::DETACH);
}

/// A segment of shared memory with a key, until it is dropped.
pub struct Segment(c_int);

impl Segment {
    /// A new one that this user owns, holding a text.
    pub fn new(key: i32, text: &CStr, owner: u32) -> Segment {
        let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
        // SAFETY: takes plain numbers.
        let id = unsafe { libc::shmget(key, 4096, flags) };
        checked(id.into()).expect("shmget");
        // SAFETY: a new segment at an address of the kernel's choice.
        let memory = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        assert!(memory.addr() != usize::MAX, "shmat: {}", io::Error::last_os_error());
        let bytes = text.to_bytes_with_nul();
        // SAFETY: the segment has 4096 bytes, the texts of the suites fewer.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len()) };
        // SAFETY: where it was attached.
        unsafe { libc::shmdt(memory) };
        // SAFETY: all zeroes is a valid value; the call fills it.
        let mut about: libc::shmid_ds = unsafe { std::mem::zeroed() };
        // SAFETY: room for one structure.
        checked(unsafe { libc::shmctl(id, libc::IPC_STAT, &raw mut about) }.into()).expect("IPC_STAT");
        (about.shm_perm.uid, about.shm_perm.gid) = (owner, owner);
        // SAFETY: a valid structure.
        checked(unsafe { libc::shmctl(id, libc::IPC_SET, &raw mut about) }.into()).expect("IPC_SET");
        Segment(id)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the segment is this one's.
        unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// Gives a file the capability to use raw sockets; false where the file system or the user's rights do not allow it.
pub fn give_raw_sockets(path: &CStr) -> bool {
    // VFS_CAP_REVISION_2 with the effective bit, then permitted and inheritable in two halves.
    let value = [0x0200_0001, 1 << 13, 0, 0, 0].map(u32::to_le_bytes).concat();
    rustix::fs::setxattr(path, "security.capability", &value, XattrFlags::empty()).is_ok()
}

/// Makes the command the leader of a session whose terminal is the given one, on stdin, stdout and stderr.
pub fn control_terminal(command: &mut Command, terminal: OwnedFd) {
    before_exec(command, move || {
        rustix::process::setsid()?;
        rustix::process::ioctl_tiocsctty(&terminal)?;
        rustix::stdio::dup2_stdin(&terminal)?;
        rustix::stdio::dup2_stdout(&terminal)?;
        Ok(rustix::stdio::dup2_stderr(&terminal)?)
    });
}

/// A new pseudo-terminal: the controlling side and the side for the command.
pub fn open_terminal() -> (OwnedFd, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let controller = rustix::pty::openpt(flags).expect("a pseudo-terminal");
    rustix::pty::unlockpt(&controller).expect("unlockpt");
    let terminal = rustix::pty::ioctl_tiocgptpeer(&controller, flags).expect("TIOCGPTPEER");
    (controller, terminal)
}

/// The status flags of an open file (F_GETFL).
pub fn status_flags(file: BorrowedFd<'_>) -> i32 {
    rustix::fs::fcntl_getfl(file).expect("F_GETFL").bits().cast_signed()
}

/// Gives a terminal's window another size.
pub fn resize_terminal(controller: &File, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(controller, size).expect("TIOCSWINSZ");
}

/// Whether a terminal echoes, and whether it reads lines.
pub fn terminal_modes(controller: &File) -> (bool, bool) {
    let modes = rustix::termios::tcgetattr(controller).expect("tcgetattr").local_modes;
    (modes.contains(LocalModes::ECHO), modes.contains(LocalModes::ICANON))
}
