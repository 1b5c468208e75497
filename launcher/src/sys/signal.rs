//! Signals: masks, dispositions, and reading them from a descriptor. Not through rustix, which has no
//! real-time signals.

use crate::sys::{SyscallError, checked, descriptor, process};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// A set of signals.
#[derive(Clone, Copy)]
pub struct Set(libc::sigset_t);

impl Set {
    /// These signals.
    pub fn of(signals: &[i32]) -> Set {
        // SAFETY: all zeroes is a valid set, and sigemptyset makes it the empty one.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: a valid set.
        unsafe { libc::sigemptyset(&raw mut set) };
        for signal in signals {
            // SAFETY: a valid set; an unknown number changes nothing.
            unsafe { libc::sigaddset(&raw mut set, *signal) };
        }
        Set(set)
    }

    /// Every signal.
    pub fn full() -> Set {
        let mut set = Set::of(&[]);
        // SAFETY: a valid set.
        unsafe { libc::sigfillset(&raw mut set.0) };
        set
    }

    /// A bit for each signal, the lowest for the first.
    pub fn bits(&self) -> u64 {
        // SAFETY: a valid set; an unknown number is no member.
        let has = |number: &libc::c_int| unsafe { libc::sigismember(&raw const self.0, *number) } == 1;
        (1..=libc::SIGRTMAX()).filter(has).fold(0, |bits, number| bits | 1 << (number - 1))
    }

    /// Every signal but this one.
    pub fn full_but(signal: i32) -> Set {
        let mut set = Set::full();
        // SAFETY: a valid set; an unknown number changes nothing.
        unsafe { libc::sigdelset(&raw mut set.0, signal) };
        set
    }
}

/// The signal that this process ends by.
static END: AtomicI32 = AtomicI32::new(0);

/// Has this process end by a signal when it has nothing more to do: a shell that waits for it goes on with its script
/// after a status, whatever it is, and not after an interrupt.
pub fn end_by(signal: i32) {
    END.store(signal, Ordering::Relaxed);
}

/// Ends this process by the signal that [`end_by`] has named, if it has named one.
pub fn end() {
    let signal = END.load(Ordering::Relaxed);
    if signal != 0 && dispose(signal, Disposition::Default).is_ok() && set_mask(&Set::of(&[])).is_ok() {
        process::signal(process::id(), signal);
    }
}

/// Replaces the mask of blocked signals, and returns the one before.
pub fn set_mask(new: &Set) -> Result<Set, SyscallError> {
    let mut old = Set::of(&[]);
    // SAFETY: two valid sets.
    let result = unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const new.0, &raw mut old.0) };
    checked("sigprocmask", result)?;
    Ok(old)
}

/// Has a command start with no signal blocked: it would inherit what this process blocks to wait for.
pub fn unblock_in(command: &mut Command) {
    let prepare = || set_mask(&Set::of(&[])).map(drop).map_err(|failed| failed.cause);
    // SAFETY: the closure makes one system call; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(prepare) };
}

/// The mask of blocked signals.
pub fn mask() -> Set {
    let mut now = Set::of(&[]);
    // SAFETY: with no new set the call only fills the old one.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut now.0) };
    now
}

/// A descriptor from which blocked signals are read.
pub fn descriptor(set: &Set) -> Result<OwnedFd, SyscallError> {
    // SAFETY: a valid set; -1 asks for a new descriptor.
    let number = unsafe { libc::signalfd(-1, &raw const set.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    checked("signalfd", number).map(|number| descriptor::own(number as i32))
}

/// A signal that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Its number.
    pub number: i32,
    /// Whether the kernel sent it (for a key on the terminal, say, or our own timer) rather than a process.
    pub from_kernel: bool,
}

impl Arrived {
    /// Whether a process asks for an end with it. The interrupt key only interrupts what a program is doing.
    pub fn is_request(self) -> bool {
        !self.from_kernel && matches!(self.number, libc::SIGTERM | libc::SIGINT)
    }
}

/// The next signal that waits on the descriptor, if any. A SIGPIPE that this process has caused itself, by writing to
/// where nobody reads any more, is none. It waits there even if it is ignored (signal(7)), and nobody has sent it.
pub fn next(fd: BorrowedFd<'_>) -> Option<Arrived> {
    let info = std::iter::from_fn(|| read(fd)).find(|info| {
        let is_own = info.ssi_code == libc::SI_USER && info.ssi_pid == process::id().cast_unsigned();
        !(is_own && info.ssi_signo == libc::SIGPIPE.cast_unsigned())
    })?;
    const SI_KERNEL: i32 = 0x80;
    let from_kernel = matches!(info.ssi_code, SI_KERNEL | libc::SI_TIMER);
    Some(Arrived { number: info.ssi_signo as i32, from_kernel })
}

fn read(fd: BorrowedFd<'_>) -> Option<libc::signalfd_siginfo> {
    // SAFETY: all zeroes is a valid value.
    let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: room for one whole structure.
    let count = unsafe { libc::read(fd.as_raw_fd(), (&raw mut info).cast(), size) };
    (count == size as isize).then_some(info)
}

/// Waits for one of the blocked signals of a set (sigwaitinfo(2)).
pub fn wait(set: &Set) -> Result<i32, SyscallError> {
    loop {
        // SAFETY: a valid set, and no room for details.
        let number = unsafe { libc::sigwaitinfo(&raw const set.0, std::ptr::null_mut()) };
        if number > 0 {
            return Ok(number);
        }
        let failed = SyscallError::last("sigwaitinfo");
        if failed.errno() != libc::EINTR {
            return Err(failed);
        }
    }
}

/// As [`wait`], for less than a second at most.
pub fn wait_for(set: &Set, time: Duration) -> Option<i32> {
    let time = libc::timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: a valid set, no room for details, a valid time.
    let number = unsafe { libc::sigtimedwait(&raw const set.0, std::ptr::null_mut(), &raw const time) };
    (number > 0).then_some(number)
}

/// Whether a blocked signal waits for this process.
pub fn is_waiting(signal: i32) -> bool {
    // SAFETY: all zeroes is a valid value.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: a valid set to write to, and to read.
    unsafe { libc::sigpending(&raw mut set) == 0 && libc::sigismember(&raw const set, signal) == 1 }
}

/// Discards the blocked signals of a set that wait for this process.
pub fn drain(set: &Set) {
    while wait_for(set, Duration::ZERO).is_some() {}
}

/// Acts with some signals blocked, and takes those that this has caused.
pub fn without<R>(numbers: &[i32], act: impl FnOnce() -> R) -> R {
    let (these, mut before) = (Set::of(numbers), Set::of(&[]));
    // SAFETY: two valid sets.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const these.0, &raw mut before.0) };
    let result = act();
    drain(&these);
    let _ = set_mask(&before);
    result
}

/// What happens to a signal that is not blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The default action.
    Default,
    /// No action.
    Ignore,
}

/// Sets a signal's disposition and returns the one before (a handler counts as default: an exec resets it).
pub fn dispose(signal: i32, new: Disposition) -> Result<Disposition, SyscallError> {
    let action = if new == Disposition::Ignore { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: neither value is a function that could be called at a bad moment.
    match unsafe { libc::signal(signal, action) } {
        libc::SIG_ERR => Err(SyscallError::last("sigaction")),
        libc::SIG_IGN => Ok(Disposition::Ignore),
        _ => Ok(Disposition::Default),
    }
}

/// A signal's disposition.
pub fn disposition(signal: i32) -> Disposition {
    // SAFETY: all zeroes is a valid value.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with no new action the call only fills the old one.
    unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    if now.sa_sigaction == libc::SIG_IGN { Disposition::Ignore } else { Disposition::Default }
}
