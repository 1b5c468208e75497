//! Starting, waiting for and ending processes.

use crate::sys::stack::Stack;
use crate::sys::status::Status;
use crate::sys::{OfCall, SyscallError, checked, file};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, WaitId, WaitIdOptions};
use std::ffi::c_void;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// A process number.
pub type Pid = libc::pid_t;

/// How a process changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// This signal stopped it.
    Stopped(i32),
    /// It continues after a stop.
    Continued,
}

/// Runs `body` in a new process that shares this one's memory *and descriptors* until it execs. This one is
/// suspended meanwhile, as after vfork(2); the new process has a stack of its own. Because of the sharing,
/// the results of `body` need no pipe to get here, and the notification descriptor of its filter needs no
/// socket.
pub fn spawn_sharing(body: &mut dyn FnMut()) -> Result<Pid, SyscallError> {
    extern "C" fn enter(argument: *mut c_void) -> libc::c_int {
        // SAFETY: `argument` is the address of `body` below, which outlives the new process's use of it.
        let body = unsafe { &mut *argument.cast::<&mut dyn FnMut()>() };
        body();
        stop_here()
    }
    let stack = Stack::new()?;
    let mut body = body;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: the stack is used by the new process alone, and this one is suspended until that one has
    // exec'd or ended, so nothing here is used by two threads of control at a time.
    let pid = unsafe { libc::clone(enter, stack.top(), flags, (&raw mut body).cast()) };
    checked("clone", pid).map(|pid| pid as Pid)
}

/// Ends the process without a system call: the filter in force may refuse exit_group(2), and its
/// notification would wait for a supervisor that waits for us.
fn stop_here() -> ! {
    loop {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an undefined instruction, on purpose.
        unsafe {
            std::arch::asm!("ud2")
        };
        #[cfg(target_arch = "aarch64")]
        // SAFETY: an undefined instruction, on purpose.
        unsafe {
            std::arch::asm!("udf #0")
        };
    }
}

/// A copy of this process: returns 0 in the copy.
pub fn fork() -> Result<Pid, SyscallError> {
    // SAFETY: callers have a single thread, so nothing in the copy is held by a thread that is not there.
    checked("fork", unsafe { libc::fork() }).map(|pid| pid as Pid)
}

/// A copy of this process that shares its descriptors, in these new namespaces (flags of clone(2)). Returns
/// 0 in the copy.
pub fn fork_sharing_descriptors(namespaces: libc::c_int) -> Result<Pid, SyscallError> {
    copy(namespaces | libc::CLONE_FILES)
}

/// The same as a child of this process's parent.
pub fn fork_beside(namespaces: libc::c_int) -> Result<Pid, SyscallError> {
    copy(namespaces | libc::CLONE_FILES | libc::CLONE_PARENT)
}

fn copy(flags: libc::c_int) -> Result<Pid, SyscallError> {
    let none: *const c_void = std::ptr::null();
    let flags = flags | libc::SIGCHLD;
    // SAFETY: a fork without a new stack: the copy returns here too. This program has a single thread.
    #[cfg(target_arch = "x86_64")]
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, 0) };
    // SAFETY: as above; the order of the last two differs.
    #[cfg(target_arch = "aarch64")]
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, 0, none) };
    checked("clone", pid).map(|pid| pid as Pid)
}

/// Stops sharing descriptors with the parent, by close_range(2) of no descriptor (Linux 5.9): containers
/// commonly refuse every unshare(2).
pub fn unshare_descriptors() -> Result<(), SyscallError> {
    const CLOSE_RANGE_UNSHARE: libc::c_uint = 2;
    // SAFETY: no number is that high, so nothing is closed.
    let done = unsafe { libc::syscall(libc::SYS_close_range, u32::MAX, u32::MAX, CLOSE_RANGE_UNSHARE) };
    if done == 0 {
        return Ok(());
    }
    // SAFETY: affects the descriptor table of this process only.
    checked("unshare(CLONE_FILES)", unsafe { libc::unshare(libc::CLONE_FILES) }).map(drop)
}

/// execve(2) with the pointers as they are: the filter compares them. Returns only if it fails; pointers that
/// lead nowhere are answered with EFAULT.
pub fn exec_raw(path: usize, argv: usize, envp: usize) -> SyscallError {
    // SAFETY: the kernel only reads what the pointers lead to, and checks each access itself.
    unsafe { libc::syscall(libc::SYS_execve, path, argv, envp) };
    SyscallError::last("execve")
}

/// The calling process.
pub fn id() -> Pid {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// The parent of the calling process; 0 if it is in another pid namespace.
pub fn parent() -> Pid {
    rustix::process::Pid::as_raw(rustix::process::getppid())
}

/// The user that file access is judged by.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether that is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether the real and the effective user are the same, and the groups too. The kernel treats what a
/// process with different ones starts as privileged.
pub fn has_one_identity() -> bool {
    let group = rustix::process::getgid() == rustix::process::getegid();
    group && rustix::process::getuid() == rustix::process::geteuid()
}
/// Puts the file mode creation mask back when it is dropped.
pub struct Umask(Mode);

impl Drop for Umask {
    fn drop(&mut self) {
        rustix::process::umask(self.0);
    }
}

/// Clears the file mode creation mask (umask(2)) for a while.
pub fn without_umask() -> Umask {
    Umask(rustix::process::umask(Mode::empty()))
}

/// The user whose processes are counted together.
pub fn real_user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The contents of a file of /proc about a process. They may contain its name, which it chooses itself: any
/// bytes.
pub fn about(process: Pid, what: &str) -> io::Result<String> {
    let text = file::read(Path::new(&format!("/proc/{process}/{what}")))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// How many descriptors below a number a process has open.
pub fn open_files(process: Pid, below: u64) -> u64 {
    let entries = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    numbers.filter(|number| *number < below).count() as u64
}

/// How many processes and threads a user has, as far as /proc shows them.
pub fn tasks_of_user(user: u32) -> u64 {
    let own = |status: Status| {
        let field = |name| status.field(name).unwrap_or_default();
        let real = field("Uid").split_whitespace().next().and_then(|number| number.parse().ok());
        if real == Some(user) { field("Threads").parse().unwrap_or(1) } else { 0 }
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter_map(|process| Status::of(process).ok()).map(own).sum()
}

/// Asks for a signal when the parent ends. Not through rustix, whose signals are none of the real-time ones.
pub fn die_with_parent(signal: i32) -> Result<(), SyscallError> {
    // SAFETY: plain numbers.
    let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) };
    checked("prctl(PR_SET_PDEATHSIG)", result).map(drop)
}

/// Becomes the parent of every descendant whose own parent ends.
pub fn become_subreaper() -> Result<(), SyscallError> {
    // Any process number switches it on.
    let on = Some(rustix::process::getpid());
    rustix::process::set_child_subreaper(on).of("prctl(PR_SET_CHILD_SUBREAPER)")
}

/// Changes the working directory.
pub fn change_directory(directory: BorrowedFd<'_>) -> Result<(), SyscallError> {
    rustix::process::fchdir(directory).of("fchdir")
}

fn numbered(pid: Pid) -> rustix::io::Result<rustix::process::Pid> {
    rustix::process::Pid::from_raw(pid.max(0)).ok_or(Errno::SRCH)
}

/// A descriptor that stands for a process, not for its number.
pub fn open_pid(pid: Pid) -> Result<OwnedFd, SyscallError> {
    numbered(pid).and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty())).of("pidfd_open")
}

/// A thread, as somebody whose descriptors can be taken. Threads need not share theirs (unshare(2)), and the first one
/// may have ended. Before Linux 6.9 only processes can be held: an error where a thread has other descriptors.
pub fn open_thread(thread: Pid, process: Pid) -> Result<OwnedFd, SyscallError> {
    const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(OFlags::EXCL.bits());
    const KCMP_FILES: libc::c_int = 2;
    let number = numbered(thread).of("pidfd_open")?;
    match rustix::process::pidfd_open(number, PIDFD_THREAD) {
        Err(Errno::INVAL) if are_same(KCMP_FILES, (thread, 0), (process, 0)) != Some(false) => {
            open_pid(process)
        }
        held => held.of("pidfd_open"),
    }
}

/// Copies memory of another process from `address` on, and returns how many bytes (process_vm_readv(2)).
pub fn read_memory(process: Pid, address: u64, buffer: &mut [u8]) -> Result<usize, SyscallError> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let start = std::ptr::without_provenance_mut(address as usize);
    let remote = libc::iovec { iov_base: start, iov_len: buffer.len() };
    // SAFETY: one vector each: `local` covers exactly `buffer`, which is borrowed mutably; the kernel checks `remote`.
    let count = unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    checked("process_vm_readv", count as libc::c_long).map(|count| count as usize)
}

/// Sends a signal to one process. It is no error if that is gone.
pub fn signal(pid: Pid, number: i32) {
    let _ = send_signal(pid, number);
}

/// The same, with the error: security modules can refuse signals to one's own processes.
pub fn send_signal(pid: Pid, number: i32) -> Result<(), SyscallError> {
    if pid <= 0 {
        return Ok(());
    }
    // SAFETY: plain numbers; `pid` names one process.
    match checked("kill", unsafe { libc::kill(pid, number) }) {
        Err(failed) if failed.errno() != libc::ESRCH => Err(failed),
        _ => Ok(()),
    }
}

/// Sends a signal to the process that a descriptor stands for. It is no error if that is gone.
pub fn signal_held(process: BorrowedFd<'_>, signal: rustix::process::Signal) {
    let _ = rustix::process::pidfd_send_signal(process, signal);
}

/// Sends a signal to the process group that a process leads. It is no error if that is gone.
pub fn signal_group(leader: Pid, number: i32) {
    if leader > 1 {
        // SAFETY: plain numbers; the negative one names one group, not all processes.
        unsafe { libc::kill(-leader, number) };
    }
}

/// The session of this process; 0 where its leader is in another pid namespace (rustix takes that for impossible),
/// as for what `docker exec` starts.
pub fn session() -> Result<Pid, SyscallError> {
    // SAFETY: plain numbers.
    checked("getsid", unsafe { libc::getsid(0) }).map(|session| session as Pid)
}

/// The process group of this process; 0 where its leader is in another pid namespace, as for `session`.
pub fn group() -> Pid {
    // SAFETY: there is nothing to go wrong.
    unsafe { libc::getpgrp() }
}

/// Whether its group is a job of its parent's: one of the same session, in another group (setpgid(2)).
pub fn is_job() -> bool {
    // SAFETY: plain numbers.
    let (session, other) = unsafe { (libc::getsid(parent()), libc::getpgid(parent())) };
    other > 0 && other != group() && self::session().is_ok_and(|own| own == session)
}

/// Whether this process is the first of its session.
pub fn leads_session() -> bool {
    session().is_ok_and(|session| session == id())
}

/// Whether there is a process of this number.
pub fn exists(pid: Pid) -> bool {
    !matches!(test_signal(pid), Err(Errno::SRCH | Errno::INVAL))
}

/// Whether a process could be sent a signal.
pub fn can_signal(pid: Pid) -> bool {
    test_signal(pid).is_ok()
}

/// The answer to a signal to a process, of which nothing arrives (kill(2) with signal 0).
pub fn test_signal(pid: Pid) -> rustix::io::Result<()> {
    numbered(pid).and_then(rustix::process::test_kill_process)
}

/// Proof that no signal of this process reaches a process that is not its descendant.
pub struct SignalScope(());

impl SignalScope {
    /// To be called in a new Landlock domain that scopes signals, with a live process outside of it that the
    /// user could signal otherwise. The proof is that this process is out of reach.
    pub fn prove(outside: Pid) -> Option<SignalScope> {
        (test_signal(outside) == Err(Errno::PERM)).then_some(SignalScope(()))
    }

    /// For the first process of a pid namespace: processes outside have no number in it (pid_namespaces(7)).
    pub fn of_first() -> Option<SignalScope> {
        (id() == 1).then_some(SignalScope(()))
    }

    /// Signals every process in reach but the calling one, in one step (kill(2) of -1): with SIGKILL, a
    /// process that forks meanwhile is killed with its child or before it has one.
    pub fn signal_all(&self, number: i32) {
        // SAFETY: reaches descendants only, which is what `self` proves.
        unsafe { libc::kill(-1, number) };
    }
}

/// Whether this process has a controlling terminal. One that may not be opened counts.
pub fn has_terminal() -> bool {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(c"/dev/tty", flags, Mode::empty());
    !matches!(opened, Err(Errno::NXIO | Errno::NOENT))
}

/// Stops the calling process, as its job control asked the command to.
pub fn stop_self() {
    signal(id(), libc::SIGSTOP);
}

/// Takes the next change of a child (of any, for `None`), waiting for it if told to. `None`: nothing to
/// report, or no such child. A child that has made this process its tracer (PTRACE_TRACEME) is let go.
pub fn wait(child: Option<Pid>, block: bool, stops: bool) -> Option<(Pid, Change)> {
    let stops = if stops { libc::WSTOPPED | libc::WCONTINUED } else { 0 };
    let flags = libc::WEXITED | stops | if block { 0 } else { libc::WNOHANG };
    let (kind, id) = child.map_or((libc::P_ALL, 0), |pid| (libc::P_PID, pid as libc::id_t));
    loop {
        // Not through rustix, which does not return the number of the process.
        // SAFETY: all zeroes is a valid value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: room for the answer.
        match checked("waitid", unsafe { libc::waitid(kind, id, &raw mut info, flags) }) {
            Err(failed) if failed.errno() == libc::EINTR => continue,
            result => result.ok()?,
        };
        // SAFETY: waitid filled the fields of a SIGCHLD, or left zeroes.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        let change = match info.si_code {
            _ if pid == 0 => return None,
            libc::CLD_TRAPPED => {
                let_go(pid, status);
                continue;
            }
            libc::CLD_EXITED => Change::Exited(status),
            libc::CLD_STOPPED => Change::Stopped(status),
            libc::CLD_CONTINUED => Change::Continued,
            _ => Change::Killed(status),
        };
        return Some((pid, change));
    }
}

/// Ends the tracing of a child that stopped for its tracer, which this process never wanted to be: nobody else could
/// continue it. The child gets the signal that it stopped for, but for the one of an exec.
fn let_go(child: Pid, status: i32) {
    let signal = if status == libc::SIGTRAP { 0 } else { status & 0x7f };
    let none: *mut c_void = std::ptr::null_mut();
    // SAFETY: plain numbers. If the child is gone, nothing happens.
    let _ = unsafe { libc::ptrace(libc::PTRACE_DETACH, child, none, libc::c_long::from(signal)) };
}

/// Looks for a child that has ended, without taking its end. ECHILD: there is no child.
fn look_for_end(flags: WaitIdOptions) -> rustix::io::Result<()> {
    let flags = flags | WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::All, flags).map(drop)
}

/// Whether the calling process has a child, or one that has ended without being waited for (waitid(2)). A
/// process that adopts all orphans of a tree has none only when the tree is gone.
pub fn has_children() -> bool {
    look_for_end(WaitIdOptions::from_bits_retain(libc::__WALL.cast_unsigned())) != Err(Errno::CHILD)
}

/// Makes sure that [`wait`] reports the end of a child: a filter around us may refuse the call.
pub fn can_wait() -> Result<(), SyscallError> {
    match rustix::io::retry_on_intr(|| look_for_end(WaitIdOptions::empty())) {
        Err(Errno::CHILD) => Ok(()),
        result => result.of("waitid"),
    }
}

/// Makes sure that [`signal`] sends any: a filter around us may refuse the call.
pub fn sends_signals() -> Result<(), SyscallError> {
    test_signal(id()).of("kill")
}

/// The children of the calling process, which has one thread.
pub fn children() -> Vec<Pid> {
    children_of(id(), id())
}

/// The processes that a thread of a process has started, from /proc (CONFIG_PROC_CHILDREN).
pub fn children_of(process: Pid, thread: Pid) -> Vec<Pid> {
    let list = about(process, &format!("task/{thread}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether two processes share one memory; false where the kernel does not tell.
pub fn share_memory(a: Pid, b: Pid) -> bool {
    const KCMP_VM: libc::c_int = 1;
    are_same(KCMP_VM, (a, 0), (b, 0)) == Some(true)
}

/// Whether two processes have the same of something, or two descriptors are the same file (kcmp(2)); `None`
/// where the kernel does not tell.
pub fn are_same(what: libc::c_int, a: (Pid, i32), b: (Pid, i32)) -> Option<bool> {
    let (x, y) = (a.1 as libc::c_ulong, b.1 as libc::c_ulong);
    // SAFETY: plain numbers.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, a.0, b.0, what, x, y) };
    (order >= 0).then_some(order == 0)
}

/// The number that a process has in its own pid namespace.
pub fn number_inside(pid: Pid) -> Option<Pid> {
    Status::of(pid).ok()?.field("NSpid")?.split_whitespace().last()?.parse().ok()
}

/// Whether `body` succeeds in a child, which ends with it.
pub fn succeeds_in_child(body: &dyn Fn() -> bool) -> bool {
    // SAFETY: this program has a single thread, and the copy does nothing but `body`.
    match unsafe { libc::fork() } {
        0 => exit_now(i32::from(!body())),
        -1 => false,
        child => wait(Some(child), true, false) == Some((child, Change::Exited(0))),
    }
}

/// Ends the calling process at once: nothing is flushed, no exit handler runs.
pub fn exit_now(status: i32) -> ! {
    // Not the function of libc: where a filter refuses the call, that of musl repeats it for ever.
    // SAFETY: ends the process.
    unsafe { libc::syscall(libc::SYS_exit_group, status) };
    stop_here()
}
