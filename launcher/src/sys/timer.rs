//! A clock that reaches a stopped process.

use super::{Failed, checked};
use std::time::Duration;

/// Has the kernel send SIGCONT to this process when the time is over: whoever has stopped it by then, it goes on and
/// looks at the clock. The timer is gone with the process.
pub fn continue_after(time: Duration) -> Result<(), Failed> {
    // SAFETY: all zeroes is a valid value.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_SIGNAL;
    event.sigev_signo = libc::SIGCONT;
    let mut timer: libc::timer_t = std::ptr::null_mut();
    // SAFETY: a valid request, and room for the answer.
    let made = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
    checked("timer_create", made.into())?;
    // SAFETY: all zeroes is a valid value: once only.
    let mut when: libc::itimerspec = unsafe { std::mem::zeroed() };
    when.it_value.tv_sec = time.as_secs().try_into().unwrap_or(i64::MAX);
    when.it_value.tv_nsec = time.subsec_nanos().max(1).into();
    // SAFETY: the timer that was just made, and a valid time.
    checked(
        "timer_settime",
        unsafe { libc::timer_settime(timer, 0, &raw const when, std::ptr::null_mut()) }.into(),
    )
    .map(drop)
}
