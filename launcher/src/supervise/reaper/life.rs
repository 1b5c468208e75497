//! What the reaper does: it starts the command, passes on what becomes of it, and ends what it leaves behind.

use super::Afterwards;
use super::ending::{self, KILLING, STORM, TICK, end_all, reap_some, signal_all};
use super::orders::{acquainted, kill, looked_at, orphaned, resume, shield_new, suspend, terminate};
use crate::launch::child::{self, Failure, Outcome, Steps};
use crate::launch::namespaces::{self, Doors, Entered, Layout, Stop};
use crate::launch::scratch;
use crate::supervise::shield::Shield;
use crate::supervise::watch::FORWARDED;
use crate::supervise::word::{RESUMED, encode, encode_shielded, write_outcome};
use crate::sys::process::{self, Change, Pid, SignalScope};
use crate::sys::{Failed, descriptor, probe, signal};
use std::os::fd::{IntoRawFd, RawFd};
use std::time::{Duration, Instant};

/// How long what the command left behind may go on by itself, once the command has ended: the far end of a
/// process substitution still has something to write then.
const GRACE: Duration = Duration::from_millis(250);

/// The life of the reaper.
pub fn reap(
    steps: &mut Steps,
    (supervisor, held): (Pid, Option<RawFd>),
    sender: RawFd,
    afterwards: &Afterwards,
) -> i32 {
    let orders = [looked_at(), terminate(), kill(), suspend(), resume(), acquainted(), shield_new()];
    let watched = signal::Set::of(&[&[libc::SIGCHLD, orphaned()], &orders[..]].concat());
    let prepared = process::die_with_parent(orphaned()).and_then(|()| process::become_subreaper());
    let mut outcome = Outcome::default();
    let layout = steps.layout.clone();
    let scope = match &layout {
        Some(_) => SignalScope::of_first(),
        None => ending::scope(supervisor),
    };
    let overseer = held.map_or(Supervisor::Number(supervisor), Supervisor::Held);
    let mut kept = vec![sender];
    kept.extend(held);
    kept.extend(afterwards.presence.iter().map(|presence| presence.descriptor()));
    let mut doors = Doors::default();
    let entered = prepared.map_err(started).and_then(|()| enter(steps));
    let command = entered.and_then(|entered| {
        kept.extend(entered.doors.descriptors());
        kept.extend(entered.terminals.into_iter().map(IntoRawFd::into_raw_fd));
        doors = entered.doors;
        prepare(steps)?;
        start(steps, &mut outcome)
    });
    let command = command.unwrap_or_else(|stop| {
        match stop {
            Stop::Failed(failure) => outcome.failure = Some(failure),
            Stop::Unavailable(why) => outcome.unavailable = Some(why),
        }
        0
    });
    // From here on our descriptors are our own; the supervisor's stay open in it.
    if let Err(failed) = process::unshare_descriptors() {
        outcome.failure = Some(Failure::new("separate the supervisor from its helper", failed.to_string()));
    }
    let failed = !outcome.ready || outcome.failure.is_some();
    // The supervisor waits for this word, whatever it is.
    if write_outcome(sender, command, &outcome).is_err() || failed {
        // Before there is anything to be ended, the /proc of the run's own may not be there either.
        if command != 0 {
            end_all(KILLING, scope.as_ref());
        }
        if overseer.is_gone() {
            // With the locks that its own copy holds.
            descriptor::close_all_but(&mut kept);
            tidy(layout.as_deref(), afterwards);
        }
        return 1;
    }
    descriptor::close_all_but(&mut kept);
    let shield = layout.clone().filter(|layout| layout.shields_something());
    let Ok(shield) = shield.map(|layout| Shield::of(layout, doors, &watched).ok_or(())).transpose() else {
        end_all(KILLING, scope.as_ref());
        return 1;
    };
    let mut reaping =
        Reaping { watched, supervisor: overseer, orphaned: false, scope, shield, sender, order: Order::None };
    if afterwards.introduces {
        reaping.wait_to_be_seen();
    }
    reaping.watch(command);
    if afterwards.keep_background && reaping.order == Order::None && !reaping.is_orphaned() {
        // The supervisor is a subreaper as well, and ends without touching them.
        return 0;
    }
    reaping.wait_for_the_rest();
    end_all(KILLING, reaping.scope.as_ref());
    if reaping.is_orphaned() {
        tidy(layout.as_deref(), afterwards);
    }
    // What could not be ended is left to the supervisor.
    i32::from(process::has_children())
}

/// Removes what the supervisor, which is gone, would have removed.
fn tidy(layout: Option<&Layout>, afterwards: &Afterwards) {
    layout.iter().for_each(|layout| namespaces::leave(layout));
    afterwards.stubs.remove();
    // In this order: the group is empty now, and can be removed.
    afterwards.group.iter().for_each(|path| drop(std::fs::remove_dir(path)));
    afterwards.scratch.iter().for_each(|path| scratch::remove(path));
}

fn started(failed: Failed) -> Stop {
    Stop::Failed(Failure::new("start the command", failed.to_string()))
}

/// Makes a view of its own, where the run has one. What is returned is not to be closed before its end.
fn enter(steps: &mut Steps) -> Result<Entered, Stop> {
    let Some(layout) = &steps.layout else { return Ok(Entered::default()) };
    let entered = namespaces::enter(layout)?;
    // It is in its working directory already, and this descriptor is about the one outside.
    std::mem::forget(steps.directory.take());
    if let Some(landlock) = &mut steps.landlock {
        let complete = landlock.complete();
        complete.map_err(|why| Stop::Failed(Failure::new("complete the path rules", why)))?;
    }
    Ok(entered)
}

/// Does for the command what need not wait for the path rules.
fn prepare(steps: &mut Steps) -> Result<(), Stop> {
    if let Some(guard) = &mut steps.guard {
        let laid_out = guard.lay_out();
        laid_out.map_err(|why| Stop::Failed(Failure::new("install the filter", why.to_string())))?;
    }
    child::withdraw(steps).map_err(Stop::Failed)
}

fn start(steps: &mut Steps, outcome: &mut Outcome) -> Result<Pid, Stop> {
    steps.parent = Some(process::id());
    process::spawn_sharing(&mut || child::run(steps, outcome)).map_err(started)
}

/// What the supervisor has ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    None,
    Terminate,
    Kill,
}

/// The supervisor, as the reaper knows it.
enum Supervisor {
    /// By its number.
    Number(Pid),
    /// In a pid namespace nobody has a number who is outside: by a descriptor that can be read when it has ended
    /// (pidfd_open(2)).
    Held(RawFd),
}

impl Supervisor {
    fn is_gone(&self) -> bool {
        match self {
            Supervisor::Number(pid) => process::parent() != *pid,
            Supervisor::Held(held) => probe::readable(*held, Duration::ZERO),
        }
    }
}

/// The reaper's own work.
struct Reaping {
    watched: signal::Set,
    supervisor: Supervisor,
    orphaned: bool,
    scope: Option<SignalScope>,
    shield: Option<Shield>,
    sender: RawFd,
    order: Order,
}

impl Reaping {
    fn is_orphaned(&self) -> bool {
        let told = self.orphaned && matches!(self.supervisor, Supervisor::Held(_));
        told || self.supervisor.is_gone()
    }

    /// Whether there is nothing left to wait for.
    fn is_over(&self) -> bool {
        self.order == Order::Kill || self.is_orphaned()
    }

    /// Waits until the supervisor knows the command's number.
    fn wait_to_be_seen(&mut self) {
        while !self.is_over() {
            match self.next_signal() {
                Some(arrived) if arrived == acquainted() => return,
                Some(arrived) => self.obey(arrived),
                None => {}
            }
        }
    }

    /// Reports how the command changes, until it has ended, the supervisor is gone, or the tree has to end.
    fn watch(&mut self, command: Pid) {
        while !self.is_over() {
            while let Some((pid, change)) = process::wait(None, false, true) {
                if pid == command {
                    let _ = descriptor::write_all(self.sender, &encode(change));
                    if matches!(change, Change::Exited(_) | Change::Killed(_)) {
                        return;
                    }
                }
            }
            if self.shield.as_ref().is_some_and(|shield| !shield.holds_until_signal()) {
                self.order = Order::Kill;
                return;
            }
            if let Some(arrived) = self.next_signal() {
                self.obey(arrived);
            }
        }
    }

    /// Waits for a signal. Where that fails nothing more can be heard, and the tree ends.
    fn next_signal(&mut self) -> Option<i32> {
        let arrived = signal::wait(&self.watched).ok();
        if arrived.is_none() {
            self.order = Order::Kill;
        }
        arrived
    }

    /// Waits for what the command left behind: a moment, or where the tree has been told to end, as long as the
    /// supervisor does.
    fn wait_for_the_rest(&mut self) {
        let left = Instant::now();
        while !self.is_over() && process::has_children() {
            // A storm of processes gets no grace: it would use up the machine's process numbers meanwhile.
            let storm = reap_some() >= STORM;
            if storm || (self.order == Order::None && left.elapsed() >= GRACE) {
                return;
            }
            if let Some(arrived) = signal::wait_for(&self.watched, TICK) {
                self.obey(arrived);
            }
        }
    }

    fn obey(&mut self, arrived: i32) {
        match arrived {
            signal if signal == looked_at() => signal::drain(&signal::Set::of(&FORWARDED)),
            signal if signal == kill() => self.order = Order::Kill,
            signal if signal == terminate() => {
                self.order = Order::Terminate;
                // A stopped one has to go on for that.
                signal_all(self.scope.as_ref(), libc::SIGTERM);
                signal_all(self.scope.as_ref(), libc::SIGCONT);
            }
            signal if signal == orphaned() => self.orphaned = true,
            signal if signal == suspend() => signal_all(self.scope.as_ref(), libc::SIGSTOP),
            signal if signal == shield_new() => {
                let number = self.shield.as_ref().map_or(0, Shield::shield_new);
                let _ = descriptor::write_all(self.sender, &encode_shielded(number));
            }
            signal if signal == resume() => {
                signal_all(self.scope.as_ref(), libc::SIGCONT);
                let _ = descriptor::write_all(self.sender, &RESUMED);
            }
            _ => {}
        }
    }
}
