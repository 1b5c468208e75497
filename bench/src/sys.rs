//! The system calls of the benchmark, and every `unsafe` block: spawning exactly as measured, calls to be timed, and an
//! alarm that ends a wait. rustix has no function for what is called by way of libc here.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::os::unix::thread::JoinHandleExt;
use std::process::ExitStatus;
use std::ptr;
use std::thread::JoinHandle;

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags};
use rustix::process::{DumpableBehavior, Gid, Pid, Resource, Rlimit, Signal, Uid, WaitOptions};

use crate::Result;

/// A command with its arrays already in the form the kernel takes, so that starting it does nothing else.
pub(crate) struct Prepared {
    program: CString,
    argv: Pointers,
    envp: Pointers,
    actions: FileActions,
    attributes: Attributes,
}

impl Prepared {
    /// `argv[0]` is the path of the program; `streams` become its descriptors 0 to 2.
    pub(crate) fn new<S: AsRef<OsStr>>(argv: &[S], env: &[S], streams: [BorrowedFd<'_>; 3]) -> Result<Self> {
        let argv = Pointers::new(argv)?;
        let program = argv.strings.first().cloned().ok_or("an empty command")?;
        let envp = Pointers::new(env)?;
        let actions = FileActions::new(streams).map_err(|e| format!("cannot prepare descriptors: {e}"))?;
        let attributes = Attributes::new().map_err(|e| format!("cannot prepare signals: {e}"))?;
        Ok(Self { program, argv, envp, actions, attributes })
    }

    /// Starts the command by vfork and exec (that is what posix_spawn does); the child's process number.
    pub(crate) fn start(&self) -> io::Result<libc::pid_t> {
        let mut pid = 0;
        // SAFETY: every pointer comes from a live field of `self`; both arrays end with a null pointer.
        let error = unsafe {
            libc::posix_spawn(
                &mut pid,
                self.program.as_ptr(),
                &*self.actions.0,
                &*self.attributes.0,
                self.argv.array.as_ptr(),
                self.envp.array.as_ptr(),
            )
        };
        if error == 0 { Ok(pid) } else { Err(io::Error::from_raw_os_error(error)) }
    }
}

/// A null-terminated array of pointers to strings that it owns.
struct Pointers {
    strings: Vec<CString>,
    array: Vec<*mut libc::c_char>,
}

impl Pointers {
    fn new<S: AsRef<OsStr>>(items: &[S]) -> Result<Self> {
        let strings = items.iter().map(|s| c_string(s.as_ref())).collect::<Result<Vec<_>>>()?;
        let array = strings.iter().map(|s| s.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect();
        Ok(Self { strings, array })
    }
}

/// Bytes for the kernel.
pub(crate) fn c_string(text: &OsStr) -> Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| format!("{text:?} has a null byte in it"))
}

struct FileActions(Box<libc::posix_spawn_file_actions_t>);

impl FileActions {
    fn new(streams: [BorrowedFd<'_>; 3]) -> io::Result<Self> {
        let mut raw = Box::new(MaybeUninit::uninit());
        // SAFETY: init writes the whole object.
        check(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialised just now.
        let mut actions = Self(unsafe { raw.assume_init() });
        for (number, stream) in (0..).zip(streams) {
            // SAFETY: an initialised object and an open descriptor.
            check(unsafe {
                libc::posix_spawn_file_actions_adddup2(&mut *actions.0, stream.as_raw_fd(), number)
            })?;
        }
        Ok(actions)
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut *self.0) };
    }
}

struct Attributes(Box<libc::posix_spawnattr_t>);

impl Attributes {
    /// The child gets SIGPIPE as a shell would hand it over: this program, like every Rust one, ignores it.
    fn new() -> io::Result<Self> {
        let mut raw = Box::new(MaybeUninit::uninit());
        // SAFETY: init writes the whole object.
        check(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialised just now.
        let mut attributes = Self(unsafe { raw.assume_init() });
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset writes the whole set.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: the set is initialised, the number is a signal's.
        unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE) };
        // SAFETY: both objects are initialised.
        check(unsafe { libc::posix_spawnattr_setsigdefault(&mut *attributes.0, set.as_ptr()) })?;
        let flags = libc::POSIX_SPAWN_SETSIGDEF as libc::c_short;
        // SAFETY: an initialised object.
        check(unsafe { libc::posix_spawnattr_setflags(&mut *attributes.0, flags) })?;
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut *self.0) };
    }
}

/// The posix_spawn family returns its error instead of setting errno.
fn check(error: libc::c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Waits for a child; `Interrupted` when the alarm went off first.
pub(crate) fn wait(pid: libc::pid_t) -> io::Result<ExitStatus> {
    let (_, status) =
        rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty())?.ok_or(io::ErrorKind::NotFound)?;
    Ok(ExitStatus::from_raw(status.as_raw()))
}

/// Ends a child that this program started and has not waited for.
pub(crate) fn kill(pid: libc::pid_t) {
    // It can fail only if the child has ended, which is what is wanted.
    let _ = Pid::from_raw(pid).map(|pid| rustix::process::kill_process(pid, Signal::KILL));
}

extern "C" fn ignore(_signal: libc::c_int) {}

/// Makes SIGALRM interrupt a wait instead of ending this program.
pub(crate) fn catch_alarm() -> Result<()> {
    // SAFETY: all zero is a valid sigaction: default handler, no flags (so no SA_RESTART), empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ignore as *const () as libc::sighandler_t;
    // SAFETY: the handler does nothing, so it is safe at any moment.
    match unsafe { libc::sigaction(libc::SIGALRM, &action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(format!("cannot handle SIGALRM: {}", io::Error::last_os_error())),
    }
}

/// Sends SIGALRM to this process after so many seconds; 0 takes that back.
pub(crate) fn set_alarm(seconds: u32) {
    // SAFETY: takes a number.
    unsafe { libc::alarm(seconds) };
}

/// Sends SIGALRM to one thread.
pub(crate) fn interrupt<T>(thread: &JoinHandle<T>) {
    // SAFETY: the thread's number is valid as long as its handle is there, which joining it would take away.
    unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGALRM) };
}

/// An anonymous file, to catch what a child writes.
pub(crate) fn memory_file() -> Result<File> {
    let descriptor = rustix::fs::memfd_create("sbx-bench", MemfdFlags::CLOEXEC);
    Ok(descriptor.map_err(|e| format!("cannot make a memory file: {e}"))?.into())
}

/// The effective user.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Gives up root for good, in favour of this user and the group of the same number. Only for a program with one thread:
/// others would stay what they are.
pub(crate) fn become_user(user: u32) -> Result<()> {
    let failed = |call: &'static str| move |e| format!("cannot become user {user}: {call}: {e}");
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    rustix::thread::set_thread_groups(&[]).map_err(failed("setgroups"))?;
    rustix::thread::set_thread_res_gid(gid, gid, gid).map_err(failed("setresgid"))?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).map_err(failed("setresuid"))?;
    // The kernel closes this process's own files in /proc to it, since it was somebody else's a moment ago.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)
        .map_err(failed("prctl(PR_SET_DUMPABLE)"))
}

/// Lets this process and those that it starts have as many descriptors as they may.
pub(crate) fn raise_open_files() -> Result<()> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(Resource::Nofile, raised)
        .map_err(|e| format!("cannot raise the limit of descriptors: {e}"))
}

/// How the scheduler treats this process and all that it starts.
pub(crate) fn priority() -> &'static str {
    // SAFETY: takes a number; 0 is this process.
    match unsafe { libc::sched_getscheduler(0) } {
        libc::SCHED_FIFO | libc::SCHED_RR => "real-time: what else the machine has to do waits",
        libc::SCHED_OTHER => "ordinary: shared with what else the machine has to do",
        _ => "unusual",
    }
}

/// getppid(2), without anything around it. It cannot fail as far as rustix is concerned, but a sandbox can refuse it.
pub(crate) fn parent() -> io::Result<()> {
    // SAFETY: a call without arguments.
    outcome(unsafe { libc::syscall(libc::SYS_getppid) })
}

/// openat(2) for reading, and close(2), which must not fail unseen as it does when a descriptor is dropped.
pub(crate) fn open_and_close(path: &CStr) -> io::Result<()> {
    let opened = rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: nothing else owns the descriptor.
    outcome(unsafe { libc::syscall(libc::SYS_close, opened.into_raw_fd()) })
}

/// newfstatat(2).
pub(crate) fn stat(path: &CStr) -> io::Result<()> {
    rustix::fs::stat(path)?;
    Ok(())
}

fn outcome(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
