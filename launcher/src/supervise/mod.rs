//! Waiting for the command, and saying what was refused.
//!
//! The supervisor is a loop over three descriptors: signals, notifications of refused calls, and events of
//! the [`reaper`] where there is one. It does nothing on behalf of the command: each notified call is named,
//! counted and refused (or, in log mode, left to the kernel).

pub mod attributes;
pub mod broker;
pub mod decode;
pub mod facts;
pub mod judge;
pub mod reaper;
pub mod suggest;
pub mod violation;

use crate::sys::process::{self, Change, Pid};
use crate::sys::signal::{self, Set};
use crate::sys::{Failed, descriptor};
use judge::Judge;
use reaper::{Event, Reaper};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// Signals that are passed on to the command. SIGKILL and SIGSTOP cannot be; the kernel sends SIGTTIN,
/// SIGTTOU and the like to whom they concern.
const FORWARDED: [i32; 11] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTSTP,
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
            Watch::Reaper(reaper) => reaper.command,
        }
    }
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// We ended it for a violation.
    Violation,
    /// Something killed our reaper, and with it the command.
    Lost,
}

impl Ending {
    /// The exit status that says so.
    pub fn status(self) -> i32 {
        match self {
            Ending::Exited(status) => status,
            Ending::Killed(signal) => 128 + signal,
            Ending::Violation => 128 + libc::SIGSYS,
            Ending::Lost => crate::refusal::REFUSED.into(),
        }
    }
}

/// The signals that the supervisor reads from a descriptor. They have to be blocked before the command is
/// started, or one could be lost.
pub fn watched_signals() -> Set {
    let mut all = FORWARDED.to_vec();
    all.push(libc::SIGCHLD);
    Set::of(&all)
}

/// Supervises until the command, and what it left behind, has ended.
pub fn run(
    watch: &Watch,
    mut listener: Option<OwnedFd>,
    signals: &OwnedFd,
    judge: &mut Judge<'_>,
) -> Result<Ending, Failed> {
    let mut ending = None;
    // Where the rest of the tree is still being waited for after the command ended, so are its calls.
    let mut finished = false;
    while !finished {
        let events = match watch {
            Watch::Reaper(reaper) => Some(reaper.events()),
            Watch::Direct(_) => None,
        };
        let ready =
            descriptor::poll([Some(signals.as_raw_fd()), listener.as_ref().map(|l| l.as_raw_fd()), events])?;
        let [(signalled, _), (notified, unheard), (event, closed)] = ready;
        if notified {
            if let Some(listener) = &listener
                && judge.notified(listener.as_fd())? == judge::Verdict::EndRun
            {
                end_run(watch);
                ending = Some(Ending::Violation);
            }
        } else if unheard {
            // Nobody is left that the filter binds.
            listener = None;
        }
        if signalled {
            while let Some(arrived) = signal::next(signals.as_fd()) {
                forward(watch, arrived);
            }
        }
        match watch {
            Watch::Direct(command) => {
                while let Some((_, change)) = process::wait(Some(*command), false, true) {
                    finished = changed(*command, change, &mut ending);
                    if finished {
                        break;
                    }
                }
            }
            Watch::Reaper(reaper) if event || closed => match reaper.next() {
                Event::Command(change) => drop(changed(reaper.command, change, &mut ending)),
                Event::End => finished = true,
            },
            Watch::Reaper(_) => {}
        }
    }
    if let Watch::Reaper(reaper) = watch {
        process::wait(Some(reaper.pid), true, false);
        // A reaper that was killed leaves its descendants to us.
        reaper::end_all(Duration::from_secs(10), None);
    }
    Ok(ending.unwrap_or(Ending::Lost))
}

/// Takes note of a change; tells whether the command has ended.
fn changed(command: Pid, change: Change, ending: &mut Option<Ending>) -> bool {
    match change {
        Change::Exited(status) => drop(ending.get_or_insert(Ending::Exited(status))),
        Change::Killed(signal) => drop(ending.get_or_insert(Ending::Killed(signal))),
        Change::Stopped(_) => {
            // The shell that started us sees us stop, as it would have seen the command.
            process::stop_self();
            process::signal(command, libc::SIGCONT);
            return false;
        }
        Change::Continued => return false,
    }
    true
}

/// What the terminal sends, or anybody to the whole process group, reaches the command directly.
fn forward(watch: &Watch, arrived: signal::Arrived) {
    let reaches_all = || match watch {
        Watch::Reaper(reaper) => reaper.has_waiting(arrived.number),
        Watch::Direct(_) => false,
    };
    if arrived.number != libc::SIGCHLD && !arrived.from_kernel && !reaches_all() {
        process::signal(watch.command(), arrived.number);
    }
}

/// Ends the command and all that it started.
fn end_run(watch: &Watch) {
    process::signal(watch.command(), libc::SIGKILL);
}
