//! Ending a tree of processes that may not want to end.

use crate::enforce::landlock;
use crate::sys::process::{self, Pid, SignalScope};
use crate::sys::{awake, privilege, tree};
use std::time::{Duration, Instant};

/// Maximum time for killing: a fork bomb is killed faster than it forks, or not at all.
pub const KILLING: Duration = Duration::from_secs(10);
/// Number of dead children at a time that is no ordinary end of a command.
pub const STORM: usize = 256;
/// Pause between two attempts.
pub const TICK: Duration = Duration::from_millis(2);
/// The kernel takes namespaces apart within this time, if nothing on a disk was mounted in them.
const AWAKE: Duration = Duration::from_micros(200);

/// A reaper that has nothing left to do. Until it is gone the kernel takes its namespaces apart, with their mounts. It
/// is waited for when this is dropped.
#[derive(Debug)]
pub struct Departing(Pid);

impl Departing {
    pub(super) fn of(reaper: Pid) -> Departing {
        Departing(reaper)
    }
}

impl Drop for Departing {
    fn drop(&mut self) {
        let Departing(reaper) = *self;
        if !awake::until(AWAKE, || process::wait(Some(reaper), false, false).is_some()) {
            process::wait(Some(reaper), true, false);
        }
    }
}

/// Sends every descendant a signal.
pub fn signal_all(scope: Option<&SignalScope>, number: i32) {
    match scope {
        Some(scope) => scope.signal_all(number),
        None => tree::descendants(process::id()).into_iter().for_each(|pid| process::signal(pid, number)),
    }
}

/// Waits for dead children, up to a limit: a storm of processes may die faster than they can be counted.
pub fn reap_some() -> usize {
    (0..STORM).take_while(|_| process::wait(None, false, false).is_some()).count()
}

/// Enters a Landlock domain around that of the command, so that the reaper's signals reach nothing else.
pub fn scope(supervisor: Pid) -> Option<SignalScope> {
    privilege::no_new_privs().ok()?;
    landlock::scope_signals().ok()?;
    SignalScope::prove(supervisor)
}

/// Kills every descendant: all at once where signals are scoped, else one after the other. A dead process
/// leaves its children to us, so the latter succeeds as well, unless they fork faster than they are found.
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
