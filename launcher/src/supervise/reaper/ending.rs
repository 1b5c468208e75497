//! Ending a tree of processes that may not want to end.

use crate::launch::landlock;
use crate::supervise::tree;
use crate::sys::privilege;
use crate::sys::process::{self, Pid, SignalScope};
use std::time::{Duration, Instant};

/// How long killing may take: a fork bomb is killed faster than it forks, or given up on.
pub const KILLING: Duration = Duration::from_secs(10);
/// More dead children than this at a time are no ordinary end of a command.
pub const STORM: usize = 256;
pub const TICK: Duration = Duration::from_millis(2);

/// Sends every descendant a signal.
pub fn signal_all(scope: Option<&SignalScope>, number: i32) {
    match scope {
        Some(scope) => scope.signal_all(number),
        None => tree::descendants(process::id()).into_iter().for_each(|pid| process::signal(pid, number)),
    }
}

/// Takes note of dead children, but not of endlessly many: some die faster than they can be counted.
pub fn reap_some() -> usize {
    (0..STORM).take_while(|_| process::wait(None, false, false).is_some()).count()
}

/// A Landlock domain of the reaper's own, around the command's: what it kills can be nothing else then.
pub fn scope(supervisor: Pid) -> Option<SignalScope> {
    privilege::no_new_privs().ok()?;
    landlock::scope_signals().ok()?;
    SignalScope::prove(supervisor)
}

/// Kills every descendant: at once where signals are scoped, else one after the other. Each that dies leaves its
/// children to us, so that comes to an end as well, unless they fork faster than they are found.
pub fn end_all(limit: Duration, scope: Option<&SignalScope>) {
    let start = Instant::now();
    while process::has_children() && start.elapsed() <= limit {
        if let Some(scope) = scope {
            scope.signal_all(libc::SIGKILL);
        }
        for child in process::children() {
            process::signal(child, libc::SIGKILL);
        }
        if reap_some() == 0 {
            std::thread::sleep(TICK);
        }
    }
}
