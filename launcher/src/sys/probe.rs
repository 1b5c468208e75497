//! Trying things out in a child process, where they bind or end nobody else.

use super::process::{self, Change, Pid};
use super::{Failed, checked, descriptor};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// Most that a child's answer is read of.
const LONGEST: usize = 1 << 20;

/// What became of a try.
#[derive(Debug)]
pub enum Answer {
    /// The child's own words.
    Said(Vec<u8>),
    /// It ended without a word: this is how.
    Ended(Change),
    /// It was still at it when the time was up, and was killed.
    TooLong,
}

/// Runs `body` in a copy of this process, and brings its answer back.
///
/// For programs with a single thread, as this one is: the copy has no other.
pub fn in_child(body: impl FnOnce() -> Vec<u8>, limit: Duration) -> Result<Answer, Failed> {
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
pub fn fork() -> Result<Pid, Failed> {
    // SAFETY: callers have a single thread, so nothing in the copy is held by a thread that is not there.
    checked("fork", unsafe { libc::fork() }.into()).map(|pid| pid as Pid)
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
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let milliseconds = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
        let mut entry = libc::pollfd { fd: number, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        let result = unsafe { libc::poll(&raw mut entry, 1, milliseconds) };
        match checked("poll", result.into()) {
            Err(failed) if failed.errno() == libc::EINTR => {}
            result => return result.is_ok_and(|count| count > 0),
        }
    }
}

/// Moves the calling process into new namespaces (unshare(2)).
pub fn unshare(flags: libc::c_int) -> Result<(), Failed> {
    // SAFETY: affects the calling process only.
    checked("unshare", unsafe { libc::unshare(flags) }.into()).map(drop)
}

/// Has mounts of this process's namespace stay in it, which takes CAP_SYS_ADMIN there.
pub fn make_mounts_private() -> Result<(), Failed> {
    let (none, flags) = (std::ptr::null(), libc::MS_REC | libc::MS_PRIVATE);
    // SAFETY: a constant path; the other pointers may be null where only the propagation changes.
    let result = unsafe { libc::mount(none, c"/".as_ptr(), none, flags, std::ptr::null()) };
    checked("mount", result.into()).map(drop)
}

/// getsid(0): a call that needs nothing and that nothing here depends on, for filters to refuse.
pub fn harmless_call() -> Result<(), Failed> {
    // SAFETY: a plain number.
    checked("getsid", unsafe { libc::getsid(0) }.into()).map(drop)
}

/// Whether the kernel knows the flag with which a signal does not interrupt a notified call that is being looked
/// at (Linux 5.19). Flags are looked at before the program is, so none is installed.
pub fn knows_wait_killable() -> bool {
    const NEW_LISTENER_WAIT_KILLABLE: libc::c_ulong = 1 << 3 | 1 << 5;
    let none: *const libc::c_void = std::ptr::null();
    // SAFETY: without a program the call fails.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, 1, NEW_LISTENER_WAIT_KILLABLE, none) };
    result < 0 && Failed::last("seccomp").errno() == libc::EFAULT
}

/// Which seccomp mode binds this process, and whether no_new_privs does: without /proc.
pub fn confinement() -> (Option<i32>, bool) {
    // SAFETY: asks for a number.
    let mode = unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) };
    // SAFETY: asks for a number.
    let no_new_privs = unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) };
    ((mode >= 0).then_some(mode), no_new_privs == 1)
}

/// The kernel's release and the machine (uname(2)).
pub fn kernel() -> Option<(String, String)> {
    // SAFETY: all zeroes is a valid value.
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: room for the answer.
    if unsafe { libc::uname(&raw mut name) } != 0 {
        return None;
    }
    let text = |field: &[libc::c_char]| {
        let bytes: Vec<u8> = field.iter().take_while(|c| **c != 0).map(|c| c.to_ne_bytes()[0]).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Some((text(&name.release), text(&name.machine)))
}
