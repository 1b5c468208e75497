//! The command as its supervisor has it: who waits for it, which signals it gets, how it stops and goes on.

use super::deadline::Act;
use super::reaper::Reaper;
use super::tree::{self, Root};
use crate::sys::process::{self, Pid};
use crate::sys::signal::{self, Set};

/// Signals that are passed on to the command. SIGKILL and SIGSTOP cannot be. Those by which the kernel stops a whole
/// job are among them: we stop when the command has, and not by ourselves, or what is heard of it later would
/// stop us again.
pub const FORWARDED: [i32; 13] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
    libc::SIGWINCH,
    libc::SIGPIPE,
];

/// The command, and who waits for it.
pub enum Watch {
    /// The supervisor itself: the command starts no processes.
    Direct(Pid),
    /// A reaper in between.
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

    /// Stops with the whole tree until somebody has us go on: nobody would see to its limits meanwhile. Not where somebody
    /// had the command go on already since it was heard to have stopped: who did that would not do so again.
    pub fn stop(&self) {
        if tree::goes_on(self.command()) {
            return;
        }
        match self {
            // It has stopped already.
            Watch::Direct(_) => {}
            Watch::Reaper(reaper) => reaper.suspend(),
        }
        // The kernel forgets that one where a stop comes after it.
        if !signal::is_waiting(libc::SIGCONT) {
            process::stop_self();
        }
        match self {
            Watch::Direct(command) => process::signal(*command, libc::SIGCONT),
            Watch::Reaper(reaper) => reaper.resume(),
        }
    }

    /// Does what there is to be done about the tree.
    pub fn act(&self, act: Act) {
        match (self, act) {
            (Watch::Direct(command), Act::Terminate) => {
                process::signal(*command, libc::SIGTERM);
                // A stopped one has to go on for that.
                process::signal(*command, libc::SIGCONT);
            }
            (Watch::Direct(command), _) => process::signal(*command, libc::SIGKILL),
            (Watch::Reaper(reaper), Act::Terminate) => reaper.terminate(),
            (Watch::Reaper(reaper), Act::Kill) => reaper.kill(),
            (Watch::Reaper(reaper), Act::Dismiss) => reaper.dismiss(),
        }
    }

    /// What the terminal sends, or anybody to the whole process group, reaches the command directly.
    pub fn forward(&self, arrived: signal::Arrived) {
        let detached = matches!(self, Watch::Reaper(reaper) if reaper.detached);
        // But of a terminal that is gone the kernel tells the leader of the session alone.
        let tells_leader = arrived.from_kernel && arrived.number == libc::SIGHUP && process::leads_session();
        let reaches_all = || match self {
            Watch::Reaper(reaper) => arrived.from_kernel || reaper.has_waiting(arrived.number),
            Watch::Direct(_) => arrived.from_kernel,
        };
        // Our own clock has us go on, not the command.
        let own_clock = arrived.from_kernel && arrived.number == libc::SIGCONT;
        let is_ours = arrived.number == libc::SIGCHLD || own_clock;
        if !is_ours && (detached || tells_leader || !reaches_all()) && !is_revoked(arrived.number) {
            process::signal(self.command(), arrived.number);
        }
        if tells_leader {
            // As the kernel does: what is stopped could not take notice.
            process::signal(self.command(), libc::SIGCONT);
        }
    }
}

/// Whether a signal has come to nothing since: what stops and what has a job go on cancel each other (signal(7)), also where
/// they still wait, so that it can't be told from the reaper's copy any more whom they were sent to.
fn is_revoked(number: i32) -> bool {
    const STOPS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    match number {
        libc::SIGCONT => STOPS.into_iter().any(signal::is_waiting),
        stop if STOPS.contains(&stop) => signal::is_waiting(libc::SIGCONT),
        _ => false,
    }
}

/// The signals that the supervisor reads from a descriptor. They have to be blocked before the command is
/// started, or one could be lost.
pub fn watched_signals() -> Set {
    let mut all = FORWARDED.to_vec();
    all.push(libc::SIGCHLD);
    Set::of(&all)
}
