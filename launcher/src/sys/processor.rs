//! Which processors a process runs on.
//!
//! The kernel may leave a new process on the processor of its parent, behind it, although all others are idle: in a
//! virtual machine it takes an idle one for taken by the host (vcpu_is_preempted). A start is made of processes that
//! work at the same time, so each of them is sent to another processor when it is made. After that it may run on all of
//! them again. Where something else runs, or a filter around us refuses this, the kernel decides; so it does inside
//! another run of `sbx`, which would tell of what it refuses.

use crate::sys::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::fs::File;
use std::io::Read;

/// Whether nothing on this machine runs but this process, and as many of its helpers (proc_loadavg(5)).
fn is_alone(helpers: u8) -> bool {
    let mut text = [0; 64];
    let length = File::open("/proc/loadavg").and_then(|mut file| file.read(&mut text)).unwrap_or_default();
    let field = text[..length].split(|byte| *byte == b' ').nth(3);
    let running = field.and_then(|field| field.split(|byte| *byte == b'/').next());
    running.is_some_and(|running| *running == [b'1'] || *running == [b'1' + helpers])
}

/// The processors that a process may run on.
#[derive(Clone, Copy)]
pub struct Processors(CpuSet);

impl Processors {
    /// Those of this process; `None` if there is only one, others may be busy, or an `sbx` confines this process. So
    /// many helpers may be awake.
    pub fn of_this_process(nested: bool, helpers: u8) -> Option<Processors> {
        let all = sched_getaffinity(None).ok().filter(|all| !nested && all.count() > 1)?;
        is_alone(helpers).then_some(Processors(all))
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
