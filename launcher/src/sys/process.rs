//! Starting, waiting for and ending processes.

use super::{Failed, checked, descriptor};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// A process number.
pub type Pid = libc::pid_t;

/// Room for the child's steps: filter programs are laid out on it. Only what is used costs memory.
const STACK: usize = 4 * 1024 * 1024;

/// How a process changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// This signal stopped it.
    Stopped(i32),
    /// It goes on after a stop.
    Continued,
}

/// Runs `body` in a new process that shares this one's memory *and descriptors* until it execs; this one
/// stands still meanwhile (vfork(2) on a stack of its own). Sharing makes what the body found out visible
/// here without a pipe, and the notification descriptor of its filter ours without a socket.
pub fn spawn_sharing(body: &mut dyn FnMut()) -> Result<Pid, Failed> {
    extern "C" fn enter(argument: *mut libc::c_void) -> libc::c_int {
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
    checked("clone", pid.into()).map(|pid| pid as Pid)
}

struct Stack(*mut libc::c_void);

impl Stack {
    fn new() -> Result<Stack, Failed> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), STACK, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED { Err(Failed::last("mmap")) } else { Ok(Stack(start)) }
    }

    fn top(&self) -> *mut libc::c_void {
        // SAFETY: one past the end of the mapping, where a stack that grows down begins.
        unsafe { self.0.byte_add(STACK) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what was mapped; the process that used it has its own memory by now.
        unsafe { libc::munmap(self.0, STACK) };
    }
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

/// A copy of this process that shares its descriptors, in these new namespaces (flags of clone(2)). Returns 0 in the
/// copy.
pub fn fork_sharing_descriptors(namespaces: libc::c_int) -> Result<Pid, Failed> {
    let none: *const libc::c_void = std::ptr::null();
    let flags = namespaces | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: a fork without a new stack: the copy returns here too. This program has a single thread.
    #[cfg(target_arch = "x86_64")]
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, 0) };
    // SAFETY: as above; the order of the last two differs.
    #[cfg(target_arch = "aarch64")]
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, 0, none) };
    checked("clone", pid).map(|pid| pid as Pid)
}

/// Stops sharing descriptors with the parent. Through close_range(2) of nothing (Linux 5.9): containers
/// commonly refuse unshare(2) whatever it is asked for.
pub fn unshare_descriptors() -> Result<(), Failed> {
    const CLOSE_RANGE_UNSHARE: libc::c_uint = 2;
    // SAFETY: no number is that high, so nothing is closed.
    let done = unsafe { libc::syscall(libc::SYS_close_range, u32::MAX, u32::MAX, CLOSE_RANGE_UNSHARE) };
    if done == 0 {
        return Ok(());
    }
    // SAFETY: affects the descriptor table of this process only.
    checked("unshare(CLONE_FILES)", unsafe { libc::unshare(libc::CLONE_FILES) }.into()).map(drop)
}

/// execve(2) with the pointers as they are: the filter compares them. Returns only if it fails; pointers that
/// lead nowhere are answered with EFAULT.
pub fn exec_raw(path: usize, argv: usize, envp: usize) -> Failed {
    // SAFETY: the kernel only reads what the pointers lead to, and checks each access itself.
    unsafe { libc::syscall(libc::SYS_execve, path, argv, envp) };
    Failed::last("execve")
}

/// The calling process.
pub fn id() -> Pid {
    // SAFETY: asks for a number.
    unsafe { libc::getpid() }
}

/// The parent of the calling process.
pub fn parent() -> Pid {
    // SAFETY: asks for a number.
    unsafe { libc::getppid() }
}

/// The user that file access is judged by.
pub fn user() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() }
}

/// Whether that is root.
pub fn is_root() -> bool {
    user() == 0
}

/// Whether the real and the effective user are one, and the groups too. What a process starts with two of them, the
/// kernel calls privileged.
pub fn has_one_identity() -> bool {
    // SAFETY: each asks for a number.
    let (users, groups) = unsafe { ((libc::getuid(), libc::geteuid()), (libc::getgid(), libc::getegid())) };
    users.0 == users.1 && groups.0 == groups.1
}

/// The user whose processes are counted together.
pub fn real_user() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::getuid() }
}

/// What a file of /proc says about a process. Its name may stand there, which it chooses itself: any bytes.
pub fn about(process: Pid, file: &str) -> io::Result<String> {
    let text = std::fs::read(format!("/proc/{process}/{file}"))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What stands behind a name in the status of a process (proc_pid_status(5)).
pub fn status(process: Pid, name: &str) -> Option<String> {
    let text = about(process, "status").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_string())
}

/// How many processes and threads a user has, as far as /proc shows them.
pub fn tasks_of_user(user: u32) -> u64 {
    let own = |text: &str| {
        let field = |name| text.lines().find_map(|line: &str| line.strip_prefix(name)).unwrap_or_default();
        let real = field("Uid:").split_whitespace().next().and_then(|number| number.parse().ok());
        if real == Some(user) { field("Threads:").trim().parse().unwrap_or(1) } else { 0 }
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let texts = processes.filter_map(|process| about(process, "status").ok());
    texts.map(|text| own(&text)).sum()
}

/// Asks for a signal when the parent ends.
pub fn die_with_parent(signal: i32) -> Result<(), Failed> {
    // SAFETY: plain numbers.
    checked("prctl(PR_SET_PDEATHSIG)", unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) }.into())
        .map(drop)
}

/// Becomes the parent of every descendant whose own parent ends.
pub fn become_subreaper() -> Result<(), Failed> {
    // SAFETY: plain numbers.
    let result = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    checked("prctl(PR_SET_CHILD_SUBREAPER)", result.into()).map(drop)
}

/// Changes the working directory.
pub fn change_directory(directory: BorrowedFd<'_>) -> Result<(), Failed> {
    // SAFETY: an open descriptor.
    checked("fchdir", unsafe { libc::fchdir(directory.as_raw_fd()) }.into()).map(drop)
}

/// A descriptor that stands for a process, not for its number.
pub fn open_pid(pid: Pid) -> Result<OwnedFd, Failed> {
    // SAFETY: plain numbers.
    let number = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    checked("pidfd_open", number).map(|number| descriptor::own(number as i32))
}

/// Sends a signal to one process. One that is gone is no error.
pub fn signal(pid: Pid, number: i32) {
    let _ = send_signal(pid, number);
}

/// The same, where somebody waits for it. Security modules can refuse signals to one's own processes.
pub fn send_signal(pid: Pid, number: i32) -> Result<(), Failed> {
    if pid <= 0 {
        return Ok(());
    }
    // SAFETY: plain numbers; `pid` names one process.
    match checked("kill", unsafe { libc::kill(pid, number) }.into()) {
        Err(failed) if failed.errno() != libc::ESRCH => Err(failed),
        _ => Ok(()),
    }
}

/// Whether this process is the first of its session.
pub fn leads_session() -> bool {
    // SAFETY: a plain number.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Whether a process could be sent a signal.
pub fn can_signal(pid: Pid) -> bool {
    // SAFETY: plain numbers; signal 0 is never delivered.
    pid > 0 && unsafe { libc::kill(pid, 0) } == 0
}

/// Proof that no signal of this process reaches a process that is not its descendant.
pub struct SignalScope(());

impl SignalScope {
    /// To be called in a fresh Landlock domain that scopes signals, with a live process outside of it that the
    /// user may signal otherwise: only if that one is out of reach is there a proof.
    pub fn prove(outside: Pid) -> Option<SignalScope> {
        let refused = !can_signal(outside) && Failed::last("kill").errno() == libc::EPERM;
        refused.then_some(SignalScope(()))
    }

    /// Of the first process of a pid namespace: others are not in reach at all (pid_namespaces(7)).
    pub fn of_first() -> Option<SignalScope> {
        (id() == 1).then_some(SignalScope(()))
    }

    /// Signals every process in reach but the calling one, all at the same moment: with SIGKILL, a process that forks
    /// meanwhile is killed with its child or before it has one (kill(2) of -1).
    pub fn signal_all(&self, number: i32) {
        // SAFETY: reaches descendants only, which is what `self` proves.
        unsafe { libc::kill(-1, number) };
    }
}

/// Whether this process has a controlling terminal. One that may not be opened is one.
pub fn has_terminal() -> bool {
    let flags = libc::O_RDONLY | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: a NUL-terminated path.
    let number = unsafe { libc::open(c"/dev/tty".as_ptr(), flags) };
    if number >= 0 {
        drop(descriptor::own(number));
        return true;
    }
    !matches!(Failed::last("open").errno(), libc::ENXIO | libc::ENOENT)
}

/// Stops the calling process, as its job control asked the command to.
pub fn stop_self() {
    signal(id(), libc::SIGSTOP);
}

/// Takes the next change of a child (of any, for `None`), waiting for it if told to. `None`: nothing to
/// report, or no such child.
pub fn wait(child: Option<Pid>, block: bool, stops: bool) -> Option<(Pid, Change)> {
    let mut flags = libc::WEXITED;
    if stops {
        flags |= libc::WSTOPPED | libc::WCONTINUED;
    }
    if !block {
        flags |= libc::WNOHANG;
    }
    let (kind, id) = child.map_or((libc::P_ALL, 0), |pid| (libc::P_PID, pid as libc::id_t));
    loop {
        // SAFETY: all zeroes is a valid value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: room for the answer.
        let result = unsafe { libc::waitid(kind, id, &raw mut info, flags) };
        if result < 0 {
            if Failed::last("waitid").errno() == libc::EINTR {
                continue;
            }
            return None;
        }
        // SAFETY: waitid filled the fields of a SIGCHLD, or left zeroes.
        let pid = unsafe { info.si_pid() };
        // SAFETY: as above.
        let status = unsafe { info.si_status() };
        let change = match info.si_code {
            _ if pid == 0 => return None,
            libc::CLD_EXITED => Change::Exited(status),
            libc::CLD_STOPPED | libc::CLD_TRAPPED => Change::Stopped(status),
            libc::CLD_CONTINUED => Change::Continued,
            _ => Change::Killed(status),
        };
        return Some((pid, change));
    }
}

/// Whether the calling process has a child, or one that has ended without being waited for (waitid(2)): who adopts all
/// orphans of a tree has none only when the tree is gone.
pub fn has_children() -> bool {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: all zeroes is a valid value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: room for the answer.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, flags) };
    result == 0 || Failed::last("waitid").errno() != libc::ECHILD
}

/// Makes sure that [`wait`] tells of the end of a child: a filter around us may refuse what it takes.
pub fn can_wait() -> Result<(), Failed> {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    loop {
        // SAFETY: all zeroes is a valid value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: room for the answer.
        let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, flags) };
        match checked("waitid", result.into()) {
            Err(failed) if failed.errno() == libc::EINTR => {}
            Err(failed) if failed.errno() != libc::ECHILD => return Err(failed),
            _ => return Ok(()),
        }
    }
}

/// Makes sure that [`signal`] sends any.
pub fn sends_signals() -> Result<(), Failed> {
    // SAFETY: plain numbers; 0 is no signal.
    checked("kill", unsafe { libc::kill(id(), 0) }.into()).map(drop)
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

/// Whether two processes have one memory; not where the kernel does not tell.
pub fn share_memory(a: Pid, b: Pid) -> bool {
    const KCMP_VM: libc::c_int = 1;
    are_same(KCMP_VM, (a, 0), (b, 0)) == Some(true)
}

/// Whether something of two processes, or two of their descriptors, is the same (kcmp(2)); `None` where the kernel does not
/// tell.
pub fn are_same(what: libc::c_int, a: (Pid, i32), b: (Pid, i32)) -> Option<bool> {
    let (x, y) = (a.1 as libc::c_ulong, b.1 as libc::c_ulong);
    // SAFETY: plain numbers.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, a.0, b.0, what, x, y) };
    (order >= 0).then_some(order == 0)
}

/// The number that a process has in its own pid namespace.
pub fn number_inside(pid: Pid) -> Option<Pid> {
    status(pid, "NSpid:")?.split_whitespace().last()?.parse().ok()
}

/// Whether `body` succeeds in a process of its own, which ends with it.
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
    // Not libc's: where a filter refuses the call, musl's tries it for ever.
    // SAFETY: ends the process.
    unsafe { libc::syscall(libc::SYS_exit_group, status) };
    stop_here()
}
