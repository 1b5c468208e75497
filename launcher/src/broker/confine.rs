//! What the broker gives up before it serves: everything but the sockets that it has, and making such ones.

use crate::broker::Doors;
use crate::sys::privilege::{self, Limit};
use crate::sys::route::Routes;
use crate::sys::signal::{self, Disposition, Set};
use crate::sys::{OfCall, SyscallError, descriptor, process, seccomp};
use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope};
use rustix::fs::{Mode, OFlags};
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::program::{self, TooLong};
use sbx_policy::rules::{Actions, Grant, Layout, Rules};
use sbx_policy::{errno, restrictions};
use std::os::fd::{AsRawFd, OwnedFd};

/// Why the broker does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// A system call failed.
    #[error("cannot confine the broker: {0}")]
    Call(#[from] SyscallError),
    /// Landlock is there, and refused.
    #[error("cannot confine the broker: {0}")]
    Landlock(#[from] RulesetError),
    /// The filter could not be made.
    #[error("cannot confine the broker: its filter cannot be built: {0}")]
    Filter(&'static str),
}

/// The system calls that serving takes, each with the restriction under which it is allowed.
const CALLS: &[(&str, Option<&str>)] = &[
    ("accept4", None),
    ("bind", None),
    ("brk", None),
    ("clock_gettime", None),
    ("close", None),
    ("connect", None),
    ("epoll_create1", None),
    ("epoll_ctl", None),
    ("epoll_pwait", None),
    ("epoll_pwait2", None),
    ("epoll_wait", None),
    ("exit", None),
    ("exit_group", None),
    ("fcntl", Some("basic")),
    ("futex", None),
    ("getpeername", None),
    ("getrandom", None),
    ("getsockname", None),
    ("getsockopt", None),
    ("madvise", None),
    ("mmap", Some("no-exec")),
    ("mprotect", Some("no-exec")),
    ("mremap", None),
    ("munmap", None),
    ("pipe2", None),
    ("read", None),
    ("recvfrom", None),
    ("recvmsg", None),
    ("restart_syscall", None),
    ("rt_sigaction", None),
    ("rt_sigprocmask", None),
    ("rt_sigreturn", None),
    ("sendmsg", None),
    ("sendto", None),
    ("setsockopt", Some("no-detour")),
    ("shutdown", None),
    ("sigaltstack", None),
    ("socket", Some("inet")),
    ("splice", None),
    ("write", None),
];

/// Confines the calling process for good. Returns how many descriptors it may have.
pub fn confine(doors: &Doors, routes: Option<&Routes>, channel: &OwnedFd) -> Result<u64, ConfineError> {
    separate(doors, routes, channel)?;
    let descriptors = privilege::raise(Limit::OpenFiles).or_else(|_| Limit::OpenFiles.soft())?;
    privilege::limit(Limit::Core, 0, 0)?;
    privilege::no_new_privs()?;
    privilege::drop_capabilities()?;
    privilege::undumpable()?;
    // After all that changes what this process may do: such a change would undo it.
    process::die_with_parent(libc::SIGKILL)?;
    restrict_files()?;
    seccomp::install(&filter()?)?;
    Ok(descriptors)
}

/// Leaves what the supervisor and the command have: their session, signals, directory and descriptors.
fn separate(doors: &Doors, routes: Option<&Routes>, channel: &OwnedFd) -> Result<(), SyscallError> {
    // Keys on the terminal are for the command, which may go on after them. This fails for a process that leads a
    // group already.
    let _ = rustix::process::setsid();
    for number in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGTSTP] {
        signal::dispose(number, Disposition::Default)?;
    }
    // Splicing to a socket whose other end is gone has no flag against it.
    signal::dispose(libc::SIGPIPE, Disposition::Ignore)?;
    signal::set_mask(&Set::of(&[]))?;
    rustix::process::chdir(c"/").of("chdir")?;
    // Nobody who waits for the end of the command's output shall wait for us. And no socket shall be 2, where a panic
    // writes to.
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let null = rustix::fs::open(c"/dev/null", flags, Mode::empty()).of("open(/dev/null)")?;
    rustix::stdio::dup2_stderr(&null).of("dup2")?;
    descriptor::release_standard()?;
    drop(null);
    let sockets = doors.datagrams.iter().chain(&doors.questions);
    let sockets = sockets.chain(doors.listeners.iter().map(|listener| &listener.socket)).chain([channel]);
    let mut kept: Vec<_> =
        sockets.map(AsRawFd::as_raw_fd).chain(routes.map(Routes::number)).chain([0, 1]).collect();
    for socket in doors.questions.iter().chain(doors.listeners.iter().map(|listener| &listener.socket)) {
        rustix::io::ioctl_fionbio(socket, true).of("ioctl(FIONBIO)")?;
    }
    descriptor::close_all_but(&mut kept);
    Ok(())
}

/// Takes away every right on files, signals to other processes, and abstract sockets, as far as the kernel has
/// Landlock. TCP is left: the ports are in the rules.
fn restrict_files() -> Result<(), ConfineError> {
    let version = seccomp::landlock_version();
    if version < 1 {
        return Ok(());
    }
    let abi = ABI::from(version);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    ruleset.create()?.restrict_self()?;
    Ok(())
}

/// The filter. What it refuses fails with EPERM.
fn filter() -> Result<Vec<Insn>, ConfineError> {
    let violation = bpf::RET_ERRNO | u32::from(errno::EPERM);
    let unknown = Some(bpf::RET_ERRNO | u32::from(errno::ENOSYS));
    let mut rules = Rules::new(Arch::HOST, false, Actions { violation, log: violation, unknown });
    for (name, restriction) in CALLS {
        let call = Call::named(name.as_bytes()).ok_or(ConfineError::Filter(name))?;
        let grant = match restriction {
            None => Grant::All,
            Some(wanted) => {
                let mut places = restrictions::of_call(call);
                let bit = places.position(|place| restrictions::name(place) == *wanted);
                Grant::Some(1 << bit.ok_or(ConfineError::Filter(wanted))?)
            }
        };
        // Not every architecture has all of them.
        if let Some(row) = rules.row_mut(call) {
            row.allow = grant;
        }
    }
    program::assemble(&Layout { rules: &rules, extra: None })
        .map_err(|TooLong| ConfineError::Filter("too long"))
}

#[cfg(test)]
mod tests;
