//! The command as its supervisor sees it: who waits for it, which signals it gets, how it stops and goes
//! on.

use crate::enforce::reaper::{FORWARDED, Reaper};
use crate::supervise::deadline::Act;
use crate::sys::process::{self, Pid};
use crate::sys::signal::{self, Set};
use crate::sys::tree::{self, Root};

/// The command, and who waits for it.
pub enum Watch {
    /// The supervisor itself. The command starts no processes.
    Direct(Pid),
    /// A reaper between the supervisor and the command.
    Reaper(Reaper),
}

impl Watch {
    /// The command.
    pub fn command(&self) -> Pid {
        match self {
            Watch::Direct(command) => *command,
            Watch::Reaper(reaper) => reaper.command(),
        }
    }

    /// Where the tree begins.
    pub fn root(&self) -> Root {
        match self {
            Watch::Direct(command) => Root::Only(*command),
            Watch::Reaper(reaper) => Root::Above(reaper.pid),
        }
    }

    /// Stops the whole tree and then the supervisor, until somebody continues it: no limit would be
    /// enforced meanwhile. It does not stop where the command has been continued since: whoever did that
    /// would not do so again.
    pub fn stop(&self) {
        if tree::goes_on(self.command()) {
            return;
        }
        match self {
            // It has stopped already.
            Watch::Direct(_) => {}
            Watch::Reaper(reaper) => reaper.suspend(),
        }
        // A stop would discard a SIGCONT that is waiting.
        if !signal::is_waiting(libc::SIGCONT) {
            process::stop_self();
        }
        self.go_on();
    }

    /// Continues the tree.
    pub fn go_on(&self) {
        match self {
            Watch::Direct(command) => process::signal(*command, libc::SIGCONT),
            Watch::Reaper(reaper) => reaper.resume(),
        }
    }

    /// Acts on the tree.
    pub fn act(&self, act: Act) {
        match (self, act) {
            (Watch::Direct(command), Act::Terminate) => {
                process::signal(*command, libc::SIGTERM);
                // A stopped command has to go on to be terminated.
                process::signal(*command, libc::SIGCONT);
            }
            (Watch::Direct(command), _) => process::signal(*command, libc::SIGKILL),
            (Watch::Reaper(reaper), Act::Terminate) => reaper.terminate(),
            (Watch::Reaper(reaper), Act::Kill) => reaper.kill(),
            (Watch::Reaper(reaper), Act::Dismiss) => reaper.dismiss(),
        }
    }

    /// The signal that has the effect of this one.
    fn as_sent(&self, number: i32) -> i32 {
        match self {
            Watch::Reaper(reaper) if reaper.session && STOPS.contains(&number) => libc::SIGSTOP,
            _ => number,
        }
    }

    /// Forwards a signal to the command, unless it has reached the command already: what the terminal
    /// sends, or anybody to the whole process group, does. In a session of its own the command has a process group
    /// of its own too. That gets what was for our group, and every request to end: a shell that waits for a program
    /// would handle it only after that.
    pub fn forward(&self, arrived: signal::Arrived) {
        let detached = matches!(self, Watch::Reaper(reaper) if reaper.detached);
        // The end of the terminal reaches the leader of the session alone.
        let tells_leader = arrived.from_kernel && arrived.number == libc::SIGHUP && process::leads_session();
        // An alarm is one process's: it was set before that became sbx.
        let of_terminal = arrived.from_kernel && arrived.number != libc::SIGALRM;
        let reaches_all = || match self {
            Watch::Reaper(reaper) => of_terminal || reaper.has_waiting(arrived.number),
            Watch::Direct(_) => of_terminal,
        };
        // The supervisor's own timer continues the supervisor, not the command.
        let own_clock = arrived.from_kernel && arrived.number == libc::SIGCONT;
        let is_ours = arrived.number == libc::SIGCHLD || own_clock;
        if is_ours {
            return;
        }
        let is_for_all = reaches_all();
        if (detached || tells_leader || !is_for_all) && !is_revoked(arrived.number) {
            let to_group = detached && (is_for_all || arrived.is_request());
            let send = if to_group { process::signal_group } else { process::signal };
            send(self.command(), self.as_sent(arrived.number));
        }
        if tells_leader {
            // As the kernel does: a stopped process could not handle it.
            process::signal(self.command(), libc::SIGCONT);
        }
    }
}

/// The signals that stop a job.
const STOPS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Whether a later signal has cancelled this one: those that stop a job and the one that continues it
/// cancel each other while they wait (signal(7)), and then the reaper's copy no longer shows whom they were
/// sent to.
fn is_revoked(number: i32) -> bool {
    match number {
        libc::SIGCONT => STOPS.into_iter().any(signal::is_waiting),
        stop if STOPS.contains(&stop) => signal::is_waiting(libc::SIGCONT),
        _ => false,
    }
}

/// The signals that the supervisor reads from a descriptor. They have to be blocked before the command
/// starts, or one could be lost.
pub fn watched_signals() -> Set {
    let mut all = FORWARDED.to_vec();
    all.push(libc::SIGCHLD);
    Set::of(&all)
}
