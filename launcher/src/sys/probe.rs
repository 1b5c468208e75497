//! Trying things out in a child process, where they bind or end nobody else.

use crate::sys::descriptor::{self, poll_on};
use crate::sys::process::{self, Change, Pid};
use crate::sys::{OfCall, SyscallError, checked};
use rustix::mount::MountPropagationFlags;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

/// Most bytes that are read of a child's answer.
const LONGEST: usize = 1 << 20;

/// What became of an attempt.
#[derive(Debug)]
pub enum Answer {
    /// What the child wrote.
    Said(Vec<u8>),
    /// It ended this way, without writing anything.
    Ended(Change),
    /// It had not ended in time, and was killed.
    TooLong,
}

/// Runs `body` in a copy of this process, and returns its answer.
///
/// For programs with a single thread, as this one is: the copy has no other.
pub fn in_child(body: impl FnOnce() -> Vec<u8>, limit: Duration) -> Result<Answer, SyscallError> {
    let (reader, writer) = descriptor::pipe()?;
    let child = fork()?;
    if child == 0 {
        drop(reader);
        let sent = descriptor::write_all(writer.as_raw_fd(), &body());
        process::exit_now(i32::from(sent.is_err()));
    }
    drop(writer);
    let said = read_until(reader.as_raw_fd(), Instant::now() + limit);
    if said.is_none() {
        process::signal(child, libc::SIGKILL);
    }
    let change = process::wait(Some(child), true, false).map_or(Change::Exited(0), |(_, change)| change);
    Ok(match said {
        None => Answer::TooLong,
        Some(said) if said.is_empty() => Answer::Ended(change),
        Some(said) => Answer::Said(said),
    })
}

/// A copy of this process: returns 0 in the copy.
pub fn fork() -> Result<Pid, SyscallError> {
    // SAFETY: callers have a single thread, so nothing in the copy is held by a thread that is not there.
    checked("fork", unsafe { libc::fork() }).map(|pid| pid as Pid)
}

/// Everything up to the end of a pipe; `None` when that does not come in time.
pub fn read_until(reader: RawFd, deadline: Instant) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut chunk = [0; 4096];
    while readable(reader, deadline.saturating_duration_since(Instant::now())) {
        match descriptor::read(reader, &mut chunk) {
            Ok(count @ 1..) if all.len() < LONGEST => all.extend(chunk.get(..count).unwrap_or(&[])),
            _ => return Some(all),
        }
    }
    None
}

/// Whether there is something to read, or the other end is closed, before the time is up.
pub fn readable(number: RawFd, limit: Duration) -> bool {
    let mut entry = [libc::pollfd { fd: number, events: libc::POLLIN, revents: 0 }];
    poll_on(&mut entry, Some(limit)).is_ok_and(|count| count > 0)
}

/// Moves the calling process into new namespaces (unshare(2)).
pub fn unshare(flags: libc::c_int) -> Result<(), SyscallError> {
    // SAFETY: affects the calling process only.
    checked("unshare", unsafe { libc::unshare(flags) }).map(drop)
}

/// Moves the calling process into a namespace (setns(2)).
pub fn enter(namespace: BorrowedFd<'_>, kind: libc::c_int) -> Result<(), SyscallError> {
    // SAFETY: affects the calling process only.
    checked("setns", unsafe { libc::setns(namespace.as_raw_fd(), kind) }).map(drop)
}
/// Stops the mounts of this process's namespace from spreading to others. It takes CAP_SYS_ADMIN there.
pub fn make_mounts_private() -> Result<(), SyscallError> {
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change(c"/", flags).of("mount")
}

/// getsid(0): a call that needs nothing and that nothing here depends on, for filters to refuse.
pub fn harmless_call() -> Result<(), SyscallError> {
    process::session().map(drop)
}

/// Whether the kernel knows the flag with which a signal does not interrupt a notified call that is being
/// looked at (Linux 5.19). The kernel checks flags before the program, so none is installed.
pub fn knows_wait_killable() -> bool {
    const NEW_LISTENER_WAIT_KILLABLE: libc::c_ulong = 1 << 3 | 1 << 5;
    let none: *const libc::c_void = std::ptr::null();
    // SAFETY: without a program the call fails.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, 1, NEW_LISTENER_WAIT_KILLABLE, none) };
    result < 0 && SyscallError::last("seccomp").errno() == libc::EFAULT
}

/// The seccomp mode of this process, and whether it has no_new_privs: without /proc.
pub fn confinement() -> (Option<i32>, bool) {
    let mode = rustix::thread::secure_computing_mode().ok().map(|mode| mode as i32);
    (mode, rustix::thread::no_new_privs().unwrap_or(false))
}

/// The kernel's release and the machine (uname(2)).
pub fn kernel() -> (String, String) {
    let name = rustix::system::uname();
    (name.release().to_string_lossy().into_owned(), name.machine().to_string_lossy().into_owned())
}
