//! Trying things out in a child process, where they bind or end nobody else.

use crate::sys::SyscallError;
use crate::sys::descriptor;
use crate::sys::process::{self, Change};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

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
    let child = process::fork()?;
    if child == 0 {
        drop(reader);
        let sent = descriptor::write_all(writer.as_raw_fd(), &body());
        process::exit_now(i32::from(sent.is_err()));
    }
    drop(writer);
    let said = descriptor::read_until(reader.as_raw_fd(), Instant::now() + limit);
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
