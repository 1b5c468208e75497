//! Waiting without sleep, where it is about to come.

use rustix::thread::sched_yield;
use std::time::{Duration, Instant};

/// Stays awake until something is so, or the time is up: to sleep and be woken would take longer. Others that want this
/// processor have it meanwhile. It writes no errno, and so a process that shares its memory can call it as well.
pub fn until(time: Duration, is_so: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if since.elapsed() >= time {
            return false;
        }
        sched_yield();
    }
}
