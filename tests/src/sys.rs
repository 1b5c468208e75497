//! Every `unsafe` block of the harness, as small safe functions.
//!
//! What runs between fork and exec may only make system calls: everything else is prepared before.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_int, c_long, sock_filter};

#[cfg(target_arch = "x86_64")]
pub mod ptrace;

/// The effective user number of this process.
pub fn euid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Sends a signal to one process.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: takes plain numbers. The callers' processes are not yet waited for, so the number is still theirs.
    unsafe { libc::kill(pid, signal) };
}

/// Sends a signal to a process group that a child of ours leads.
pub fn kill_group(leader: i32, signal: i32) {
    assert!(leader > 1, "not a process group of a child: {leader}");
    // SAFETY: takes plain numbers.
    unsafe { libc::kill(-leader, signal) };
}

/// Registers a function for the end of this process.
pub fn at_exit(function: extern "C" fn()) {
    // SAFETY: the function is a static one, valid for the rest of the process.
    unsafe { libc::atexit(function) };
}

/// Writes to descriptor 2, past any capturing.
pub fn write_stderr(bytes: &[u8]) {
    // SAFETY: descriptor 2 is open in a test process; ManuallyDrop keeps it so.
    let mut stderr = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(2) });
    let _ = stderr.write_all(bytes);
}

/// A netlink socket, which any user can make.
pub fn netlink() -> OwnedFd {
    // SAFETY: plain numbers.
    let number = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    checked(number.into()).expect("a netlink socket");
    // SAFETY: just made, and nobody else's.
    unsafe { OwnedFd::from_raw_fd(number) }
}

fn checked(result: c_long) -> io::Result<c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn before_exec(command: &mut Command, action: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: every action in this file makes system calls only and touches memory that was prepared before the fork.
    unsafe { command.pre_exec(action) };
}

/// Has the command start with a signal ignored.
pub fn ignore(command: &mut Command, signal: c_int) {
    dispose(command, signal, libc::SIG_IGN);
}

/// Has the command start with a signal that does what it usually does, whatever has become of it here.
pub fn by_default(command: &mut Command, signal: c_int) {
    dispose(command, signal, libc::SIG_DFL);
}

fn dispose(command: &mut Command, signal: c_int, how: libc::sighandler_t) {
    before_exec(command, move || {
        // SAFETY: SIG_IGN and SIG_DFL are no functions that could be called.
        match unsafe { libc::signal(signal, how) } {
            libc::SIG_ERR => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    });
}

/// Waits until there is something to be read, or a connection to be accepted.
pub fn wait_for_input(file: BorrowedFd<'_>) -> io::Result<()> {
    let mut entry = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, and the number says so.
    checked(unsafe { libc::poll(&raw mut entry, 1, -1) }.into()).map(drop)
}

/// Limits how many descriptors the command may have.
pub fn limit_open_files(command: &mut Command, limit: u64) {
    let limits = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    before_exec(command, move || {
        // SAFETY: the structure outlives the call.
        let result = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) };
        checked(result.into()).map(drop)
    });
}

/// Hands a descriptor to the command under the given number.
pub fn inherit_as(command: &mut Command, fd: OwnedFd, number: c_int) {
    before_exec(command, move || {
        let result = if fd.as_raw_fd() == number {
            // SAFETY: takes plain numbers.
            unsafe { libc::fcntl(number, libc::F_SETFD, 0) }
        } else {
            // SAFETY: takes plain numbers.
            unsafe { libc::dup2(fd.as_raw_fd(), number) }
        };
        checked(result.into()).map(drop)
    });
}

/// Makes writing to an open file return at once, for everybody who has it.
pub fn never_wait(file: &OwnedFd) {
    // SAFETY: changes a flag of an open file.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
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
        // SAFETY: two C strings and a buffer with its length, all static.
        let result = unsafe {
            libc::syscall(
                libc::SYS_add_key,
                kind.as_ptr(),
                name.as_ptr(),
                payload.as_ptr(),
                payload.len(),
                SESSION_KEYRING,
            )
        };
        checked(result).map(drop)
    });
}

/// Takes every capability but these out of what the command can ever have.
pub fn keep_only_capabilities(command: &mut Command, kept: &'static [u32]) {
    before_exec(command, move || {
        for capability in (0..64).filter(|capability| !kept.contains(capability)) {
            // SAFETY: takes plain numbers. Fails past the kernel's last capability and without privilege: both are fine.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        }
        Ok(())
    });
}

/// Puts a seccomp filter on the command.
pub fn install_filter(command: &mut Command, code: Vec<sock_filter>) {
    before_exec(command, || {
        // SAFETY: takes plain numbers.
        checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into()).map(drop)
    });
    install_filter_as_root(command, code);
}

/// The same with the rights of root, and without `no_new_privs`.
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
        // SAFETY: no groups are read.
        checked(unsafe { libc::setgroups(0, std::ptr::null()) }.into())?;
        // SAFETY: takes plain numbers.
        checked(unsafe { libc::setgid(id) }.into())?;
        // SAFETY: takes plain numbers.
        checked(unsafe { libc::setuid(id) }.into()).map(drop)
    });
}

/// Gives this process mounts of its own, with a file system in memory at `dir`. Needs privilege; other threads that
/// are there already keep the old ones.
pub fn own_memory_at(dir: &CStr) -> io::Result<()> {
    let nothing = std::ptr::null();
    // SAFETY: takes plain numbers.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNS) }.into())?;
    // SAFETY: a C string, and nothing that this kind of call would read.
    let private = unsafe {
        libc::mount(c"none".as_ptr(), c"/".as_ptr(), nothing, libc::MS_REC | libc::MS_PRIVATE, nothing.cast())
    };
    checked(private.into())?;
    let options = c"mode=755".as_ptr().cast();
    // SAFETY: C strings.
    let mounted = unsafe { libc::mount(c"none".as_ptr(), dir.as_ptr(), c"tmpfs".as_ptr(), 0, options) };
    checked(mounted.into()).map(drop)
}

/// Takes such a file system away, whoever uses it.
pub fn unmount(dir: &CStr) {
    // SAFETY: a C string.
    unsafe { libc::umount2(dir.as_ptr(), libc::MNT_DETACH) };
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
        about.shm_perm.uid = owner;
        about.shm_perm.gid = owner;
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
    let words: [u32; 5] = [0x0200_0001, 1 << 13, 0, 0, 0];
    let (name, size) = (c"security.capability", size_of_val(&words));
    // SAFETY: C strings, and a buffer with its length.
    unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), words.as_ptr().cast(), size, 0) == 0 }
}

/// Makes the command the leader of a session whose terminal is the given one, on stdin, stdout and stderr.
pub fn control_terminal(command: &mut Command, terminal: OwnedFd) {
    before_exec(command, move || {
        // SAFETY: takes nothing.
        checked(unsafe { libc::setsid() }.into())?;
        // SAFETY: takes plain numbers.
        checked(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }.into())?;
        for number in 0..3 {
            // SAFETY: takes plain numbers.
            checked(unsafe { libc::dup2(terminal.as_raw_fd(), number) }.into())?;
        }
        Ok(())
    });
}

/// A new pseudo-terminal: the controlling side and the side for the command.
pub fn open_terminal() -> (OwnedFd, OwnedFd) {
    let (mut controller, mut terminal) = (-1, -1);
    // SAFETY: two places for results; the other arguments may be null.
    let result = unsafe {
        libc::openpty(
            &raw mut controller,
            &raw mut terminal,
            std::ptr::null_mut(),
            std::ptr::null(),
            std::ptr::null(),
        )
    };
    checked(result.into()).expect("openpty");
    for fd in [controller, terminal] {
        // SAFETY: takes plain numbers.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: openpty has just made this descriptor, nobody else owns it.
    let controller = unsafe { OwnedFd::from_raw_fd(controller) };
    // SAFETY: as above.
    (controller, unsafe { OwnedFd::from_raw_fd(terminal) })
}

/// Gives a terminal's window another size.
pub fn resize_terminal(controller: &File, rows: u16, columns: u16) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the structure outlives the call.
    let result = unsafe { libc::ioctl(controller.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    checked(result.into()).expect("TIOCSWINSZ");
}

/// Whether a terminal echoes, and whether it reads lines.
pub fn terminal_modes(controller: &File) -> (bool, bool) {
    // SAFETY: all zeroes is a valid value.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: room for one structure.
    let result = unsafe { libc::tcgetattr(controller.as_raw_fd(), &raw mut modes) };
    checked(result.into()).expect("tcgetattr");
    (modes.c_lflag & libc::ECHO != 0, modes.c_lflag & libc::ICANON != 0)
}
