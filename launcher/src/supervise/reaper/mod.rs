//! The process between the supervisor and the command, where the command may start further ones.
//!
//! Whichever of the two is killed, the other ends the tree: both are subreapers (prctl(2)), so orphans move
//! up to the reaper, or past it to the supervisor, and never out of reach.
//!
//! Here is what the supervisor has of it; `life` is the process itself, `orders` what the one tells the other.

mod ending;
mod life;
mod orders;

pub use ending::end_all;

use crate::launch::child::{Outcome, Steps};
use crate::launch::gate::Gate;
use crate::launch::landlock::Prepared;
use crate::launch::namespaces::Stubs;
use crate::refusal::Refusal;
use crate::supervise::repository::Presence;
use crate::supervise::word::{decode, read_outcome};
use crate::sys::descriptor::Interest;
use crate::sys::process::{self, Change, Pid};
use crate::sys::{Failed, descriptor, namespace, signal};
use ending::{KILLING, TICK};
use life::reap;
use orders::{acquainted, kill, looked_at, resume, shield_new, suspend, terminate};
use std::cell::Cell;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// How often in a row it is waited for memory that poll(2) needs.
const PATIENCE: u32 = 100;
/// How long a reaper may say nothing before it is looked whether there still is one.
const SILENCE: Duration = Duration::from_millis(20);

/// Has the first process of a run's namespaces shield the new configuration that is there; it answers with
/// [`Event::Shielded`].
pub fn cover(reaper: Pid) {
    process::signal(reaper, shield_new());
}

/// What becomes of the tree when the command has ended.
#[derive(Debug, Default)]
pub struct Afterwards {
    /// What is still running stays.
    pub keep_background: bool,
    /// Removed when the supervisor cannot do it any more: the scratch directory.
    pub scratch: Option<PathBuf>,
    /// And the control group.
    pub group: Option<PathBuf>,
    /// Somebody wants to know which process the command is: it is not to be gone before that was looked up.
    pub introduces: bool,
    /// And what keeps names from being made.
    pub stubs: Stubs,
    /// What tells others that the run is in its repository.
    pub presence: Option<Rc<Presence>>,
}

/// What the reaper tells the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The command changed.
    Command(Change),
    /// The new configuration with this number is shielded; 0 if none could be.
    Shielded(u32),
    /// The tree goes on, as it was told to.
    Resumed,
    /// The reaper is done, or gone.
    End,
}

/// A reaper that has started the command.
pub struct Reaper {
    /// The reaper.
    pub pid: Pid,
    /// Whether the command has a session of its own, which nothing reaches that is sent to ours.
    pub detached: bool,
    /// The command's number, where the reaper is.
    number: Pid,
    /// Whether that is a pid namespace of its own.
    apart: bool,
    events: OwnedFd,
    /// The tree has been told to go on, and the reaper has not said yet that it does.
    resuming: Cell<bool>,
}

/// Why there is no reaper.
pub enum Unstarted {
    /// It could not be started.
    Failed(Failed),
    /// The machine does not give it namespaces, or what it takes to live in them. Nothing has been started.
    Unavailable(Failed),
    /// What was to be done meanwhile could not be.
    Refused(Refusal),
}

impl From<Refusal> for Unstarted {
    fn from(refusal: Refusal) -> Unstarted {
        Unstarted::Refused(refusal)
    }
}

impl From<Failed> for Unstarted {
    fn from(failed: Failed) -> Unstarted {
        Unstarted::Failed(failed)
    }
}

impl Reaper {
    /// Starts a reaper, which takes `steps` in a child of its own. That waits for the path rules before it puts them in
    /// force: they are added here while the reaper makes its namespaces and the child.
    pub fn start<T>(
        mut steps: Steps,
        afterwards: &Afterwards,
        mut add_rules: impl FnMut(&mut Steps) -> Result<T, Refusal>,
    ) -> Result<(Reaper, Outcome, T), Unstarted> {
        let (events, sender) = descriptor::pipe()?;
        let supervisor = process::id();
        process::become_subreaper()?;
        steps.gate = match Gate::new(supervisor) {
            Ok(gate) => Some(gate),
            Err(failed) if steps.layout.is_some() => return Err(unavailable(failed)),
            Err(_) => None,
        };
        // A sandbox around can refuse what a gate takes: then they come first.
        let added = if steps.gate.is_none() { Some(add_rules(&mut steps)?) } else { None };
        // All of them, before the reaper is there: what is meant for the command or the supervisor must not end it, and
        // what is sent to it must wait for it.
        let mask = signal::set_mask(&signal::Set::full())?;
        let forked = match &steps.layout {
            Some(layout) => namespace::fork_into(layout.kinds).map_err(unavailable),
            None => process::fork_sharing_descriptors(0).map_err(Unstarted::Failed),
        };
        if !matches!(forked, Ok(0)) {
            signal::set_mask(&mask)?;
        }
        let pid = forked?;
        if pid == 0 {
            let held = steps.gate.as_ref().filter(|_| steps.layout.is_some()).map(Gate::supervisor);
            let status = reap(&mut steps, (supervisor, held), sender.as_raw_fd(), afterwards);
            process::exit_now(status);
        }
        let added = added.map_or_else(|| add_rules(&mut steps), Ok);
        // Where it cannot be told, the kernel tells it when we end.
        let told = steps.gate.as_ref().map_or(Ok(()), |gate| gate.open(added.is_ok()));
        told.inspect_err(|_| end_all(KILLING, None))?;
        let added = added.inspect_err(|_| {
            process::wait(Some(pid), true, false);
        })?;
        let heard = hear(events.as_raw_fd(), pid).and_then(|()| read_outcome(events.as_raw_fd()));
        // The child closed this one, in the table that was shared then.
        steps.landlock.iter_mut().for_each(Prepared::forget);
        // And this number is the listener's by now.
        std::mem::forget(steps.spare.take());
        let (number, outcome) = heard.inspect_err(|_| end_all(KILLING, None))?;
        // Only now: until the reaper has stopped sharing descriptors, closing ours closes its own.
        drop((sender, steps.gate.take()));
        // Where the command does not run, the reaper ends, and with it its hold on what is to be cleaned up.
        if !outcome.ready || outcome.failure.is_some() {
            process::wait(Some(pid), true, false);
        }
        let apart = steps.layout.is_some();
        let resuming = Cell::new(false);
        Ok((Reaper { pid, number, apart, detached: steps.session, events, resuming }, outcome, added))
    }

    /// The command; 0 when it has ended.
    pub fn command(&self) -> Pid {
        if !self.apart {
            return self.number;
        }
        let children = process::children_of(self.pid, self.pid);
        children.into_iter().find(|child| process::number_inside(*child) == Some(self.number)).unwrap_or(0)
    }

    /// The descriptor that can be read when there is an event.
    pub fn events(&self) -> RawFd {
        self.events.as_raw_fd()
    }

    /// Whether a signal was sent to the whole process group, command included: the reaper, a member like it,
    /// blocks all signals, so its copy still waits.
    pub fn has_waiting(&self, number: i32) -> bool {
        let pending = process::status(self.pid, "ShdPnd:");
        let pending = pending.and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0);
        let waits = pending & (1 << (number - 1)) != 0;
        if waits {
            process::signal(self.pid, looked_at());
        }
        waits
    }

    /// Says that the command's number is known.
    pub fn acquaint(&self) {
        process::signal(self.pid, acquainted());
    }

    /// Has every process of the tree get SIGTERM.
    pub fn terminate(&self) {
        process::signal(self.pid, terminate());
    }

    /// Has every process of the tree stop.
    pub fn suspend(&self) {
        process::signal(self.pid, suspend());
    }

    /// Has every process of the tree go on.
    pub fn resume(&self) {
        self.resuming.set(true);
        process::signal(self.pid, resume());
    }

    /// Has the reaper end the tree, and itself.
    pub fn kill(&self) {
        process::signal(self.pid, kill());
    }

    /// Ends the reaper, which leaves its descendants to the supervisor.
    pub fn dismiss(&self) {
        process::signal(self.pid, libc::SIGKILL);
    }

    /// The next event. That the command stopped is none where the tree has been told to go on since.
    pub fn next(&self) -> Event {
        let mut message = [0; 5];
        let event = match descriptor::read(self.events.as_raw_fd(), &mut message) {
            Ok(5) => decode(message).unwrap_or(Event::End),
            _ => Event::End,
        };
        match event {
            Event::Resumed => self.resuming.set(false),
            Event::Command(Change::Stopped(_)) if self.resuming.get() => {
                return Event::Command(Change::Continued);
            }
            _ => {}
        }
        event
    }
}

fn unavailable(failed: Failed) -> Unstarted {
    if failed.is_passing() { Unstarted::Failed(failed) } else { Unstarted::Unavailable(failed) }
}

/// Waits for the first word of the reaper. Where signals are not scoped, the command, which may run by then, can kill
/// or stop it before that. The pipe would not tell, since we hold its other end as well.
fn hear(events: RawFd, reaper: Pid) -> Result<(), Failed> {
    let mut fell_silent = false;
    let mut patience = PATIENCE;
    loop {
        let [ready] = match descriptor::poll([Interest::read(Some(events))], Some(SILENCE)) {
            // The command may run by now, and nothing is wrong with it.
            Err(failed) if failed.is_passing() && patience > 0 => {
                patience -= 1;
                std::thread::sleep(TICK);
                continue;
            }
            polled => polled?,
        };
        if ready.now || ready.gone {
            return Ok(());
        }
        if fell_silent {
            let cause = std::io::Error::other("something killed or stopped the supervisor's helper");
            return Err(Failed { call: "poll", cause });
        }
        match process::wait(Some(reaper), false, true) {
            None | Some((_, Change::Continued)) => continue,
            Some((_, Change::Stopped(_))) => {
                process::signal(reaper, libc::SIGKILL);
                process::wait(Some(reaper), true, false);
            }
            Some((_, Change::Exited(_) | Change::Killed(_))) => {}
        }
        // It may have spoken between the two looks.
        fell_silent = true;
    }
}
