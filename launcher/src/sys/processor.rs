//! Which processors a process runs on.
//!
//! The kernel may leave a new process on the processor of its parent, behind it, however idle the others are. A start is
//! made of processes that work at the same time, so each of them is sent to another processor when it is made. After
//! that it may run on all of them again. Where a filter around us refuses this, it stays where it is.

use crate::sys::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The processors that a process may run on.
#[derive(Clone, Copy)]
pub struct Processors(CpuSet);

impl Processors {
    /// Those of this process; `None` if there is only one.
    pub fn of_this_process() -> Option<Processors> {
        sched_getaffinity(None).ok().filter(|all| all.count() > 1).map(Processors)
    }

    /// Has a child that was just made go on on another processor than this process's. For a moment it may run on no
    /// more than the others, and what it makes meanwhile [takes](Processors::take) all of them itself.
    pub fn send_away(self, child: Pid) {
        let child = rustix::process::Pid::from_raw(child);
        let mut others = self.0;
        others.unset(sched_getcpu());
        if child.is_some() && sched_setaffinity(child, &others).is_ok() {
            let _ = sched_setaffinity(child, &self.0);
        }
    }

    /// Has this process run on them.
    pub fn take(self) {
        let _ = sched_setaffinity(None, &self.0);
    }
}
