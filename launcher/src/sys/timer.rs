//! Timers that reach a process which does not look at a clock, and the clock that files have their times of.

use crate::sys::signal::{self, Disposition, Set};
use crate::sys::{SyscallError, beneath, checked};
use std::time::{Duration, SystemTime};

/// Interval after the first signal, in case that the process was just about to stop when that came.
const AGAIN: Duration = Duration::from_secs(1);

/// The kernel's clock for files: what is made or changed from now on is not older. What was made or changed up to a
/// tick before (clock_getres(2)) may be as old, and even younger: newer kernels take a finer clock now and then.
pub fn file_time() -> SystemTime {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid structure to write to; the clock exists since Linux 2.6.32.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut now) };
    beneath::at(now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Has the kernel send SIGCONT to this process when the time is over, and repeatedly from then on: if
/// something has stopped it, it continues and looks at the clock. The timer ends with the process.
pub fn continue_after(time: Duration) -> Result<(), SyscallError> {
    start(libc::SIGCONT, time, AGAIN)
}

/// Has the kernel end this process when the time is over, even while it waits for a file system that does not answer.
pub fn end_after(time: Duration) -> Result<(), SyscallError> {
    signal::dispose(libc::SIGALRM, Disposition::Default)?;
    signal::set_mask(&Set::of(&[]))?;
    start(libc::SIGALRM, time, AGAIN)
}

fn start(signal: libc::c_int, first: Duration, then: Duration) -> Result<(), SyscallError> {
    // SAFETY: all zeroes is a valid value.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_SIGNAL;
    event.sigev_signo = signal;
    let mut timer: libc::timer_t = std::ptr::null_mut();
    // SAFETY: a valid request, and room for the answer.
    let made = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
    checked("timer_create", made)?;
    // SAFETY: all zeroes is a valid value.
    let mut when: libc::itimerspec = unsafe { std::mem::zeroed() };
    for (field, time) in [(&mut when.it_value, first), (&mut when.it_interval, then)] {
        field.tv_sec = time.as_secs().try_into().unwrap_or(i64::MAX);
        field.tv_nsec = time.subsec_nanos().max(1).into();
    }
    // SAFETY: the timer that was just made, and valid times.
    let set = unsafe { libc::timer_settime(timer, 0, &raw const when, std::ptr::null_mut()) };
    checked("timer_settime", set).map(drop)
}
