//! What the reaper does: it starts the command, reports its changes, and ends what it leaves behind.

use crate::enforce::EnforceError;
use crate::enforce::child::{self, Progress, Steps};
use crate::enforce::doors;
use crate::enforce::error::Named;
use crate::enforce::mounts::{self, Entered, HookDirectories, ViewError};
use crate::enforce::reaper::ending::{self, KILLING, STORM, TICK, end_all, reap_some, signal_all};
use crate::enforce::reaper::messages::{
    GONE, RESUMED, encode, encode_left, encode_protected, write_progress,
};
use crate::enforce::reaper::orders::{
    acquainted, kill, looked_at, make_pair, orphaned, protect_config, resume, suspend, terminate,
};
use crate::enforce::reaper::protection::Protection;
use crate::enforce::reaper::{Afterwards, FORWARDED};
use crate::enforce::replaced::Overlays;
use crate::enforce::scratch;
use crate::plan::namespaces::Layout;
use crate::sys::process::{self, Change, Pid, SignalScope};
use crate::sys::status::{Status, stat_number};
use crate::sys::{descriptor, namespace, signal, socket};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// How long processes that the command left behind may continue: the far end of a process substitution
/// still has something to write when the command has ended.
const GRACE: Duration = Duration::from_millis(250);
/// More of them are not named.
const MOST_NAMED: usize = 4;

/// The life of the reaper.
pub fn reap(
    steps: &mut Steps,
    (supervisor, held): (Pid, Option<RawFd>),
    (sender, pairs): (RawFd, Option<OwnedFd>),
    afterwards: &Afterwards,
) -> i32 {
    let watched = watched();
    let layout = steps.layout.clone();
    let scope = match &layout {
        Some(_) => SignalScope::of_first(),
        None => ending::scope(supervisor),
    };
    let supervisor = held.map_or(Supervisor::Number(supervisor), Supervisor::Held);
    let mut kept = vec![sender];
    kept.extend(held);
    kept.extend(pairs.as_ref().map(AsRawFd::as_raw_fd));
    kept.extend(afterwards.descriptors());
    let mut progress = Progress::default();
    let Begun { command, hooks, overlays } = begin(steps, &mut progress, &mut kept);
    let failed = !progress.ready || progress.failure.is_some();
    // The supervisor waits for this message, whatever it says.
    if write_progress(sender, command, &progress).is_err() || failed {
        // Without a command there is nothing to end, and the run's own /proc may be missing.
        if command != 0 {
            end_all(KILLING, scope.as_ref());
        }
        if supervisor.is_gone() {
            // This also closes our copies of the supervisor's placeholder locks.
            descriptor::close_all_but(&mut kept);
            tidy(&supervisor, layout.as_deref(), afterwards);
        }
        return 1;
    }
    // The next run needs the directories of overlays, and what mounts are on takes long to remove.
    let parts = layout.is_some() && overlays.is_empty() && afterwards.placeholders.is_empty();
    // Nobody waits for this process now, and the next run need not do it.
    overlays.unmark();
    descriptor::close_all_but(&mut kept);
    let protection = layout.clone().filter(|layout| layout.shields_something());
    let protection = protection.map(|layout| Protection::of(layout, hooks, &watched).ok_or(()));
    let Ok(protection) = protection.transpose() else {
        end_all(KILLING, scope.as_ref());
        return 1;
    };
    let (orphaned, order) = (false, Order::None);
    let mut reaping = Reaping { watched, supervisor, orphaned, scope, protection, sender, pairs, order };
    if !reaping.lasts(command, afterwards) {
        return 0;
    }
    let all_gone = reaping.end(layout.as_deref(), afterwards);
    if all_gone && parts {
        // Where that fails, the supervisor waits a little longer.
        let _ = namespace::part_with_mounts();
    }
    i32::from(!all_gone)
}

/// The signals that the reaper waits for.
fn watched() -> signal::Set {
    let orders =
        [looked_at(), terminate(), kill(), suspend(), resume(), acquainted(), protect_config(), make_pair()];
    signal::Set::of(&[&[libc::SIGCHLD, orphaned()], &orders[..]].concat())
}

/// A run that has begun.
struct Begun {
    /// 0 where there is none.
    command: Pid,
    hooks: HookDirectories,
    overlays: Overlays,
}

/// Starts the command in the run's own view. What has to stay open as long as the view is used joins `kept`. What went
/// wrong is in `progress`.
fn begin(steps: &mut Steps, progress: &mut Progress, kept: &mut Vec<RawFd>) -> Begun {
    let (mut hooks, mut overlays) = (HookDirectories::default(), Overlays::default());
    let prepared = process::die_with_parent(orphaned()).and_then(|()| process::become_subreaper());
    let entered = prepared.step(START).map_err(ViewError::from).and_then(|()| enter(steps, progress));
    let command = entered.and_then(|entered| {
        kept.extend(entered.hooks.descriptors());
        kept.extend(entered.terminals.into_iter().map(IntoRawFd::into_raw_fd));
        (hooks, overlays) = (entered.hooks, entered.overlays);
        prepare(steps)?;
        Ok(start(steps, progress)?)
    });
    let command = command.unwrap_or_else(|error| {
        match error {
            ViewError::Failed(failure) => progress.failure = Some(failure),
            ViewError::Unsupported(missing, why) => progress.missing = Some((missing, why.to_string())),
            ViewError::NoOverlays(why) => progress.no_overlays = Some(why.to_string()),
        }
        0
    });
    // From here on this process has its own descriptor table. Closing a descriptor here no longer closes it in the
    // supervisor.
    if let Err(failure) = process::unshare_descriptors().step("separate the supervisor from its helper") {
        progress.failure = Some(failure);
    }
    Begun { command, hooks, overlays }
}

/// Does, in place of the supervisor, which has ended, what it would have done, and removes what it would have removed.
fn tidy(supervisor: &Supervisor, layout: Option<&Layout>, afterwards: &Afterwards) {
    supervisor.wait_for_end();
    layout.iter().for_each(|layout| mounts::leave(layout));
    afterwards.duty.iter().for_each(|duty| duty.stand_in());
    afterwards.placeholders.remove();
    // In this order: the group is empty now, and can be removed.
    afterwards.group.iter().for_each(|path| drop(std::fs::remove_dir(path)));
    afterwards.scratch.iter().for_each(|path| scratch::remove(path));
}

const START: &str = "start the command";

/// Settles in the run's namespaces, and makes its own view, if it has such. The result must not be closed before the
/// end of the run.
fn enter(steps: &mut Steps, progress: &mut Progress) -> Result<Entered, ViewError> {
    if let Some(own) = &steps.own {
        let doors = steps.doors.as_ref().map(|hosts| &hosts.doors);
        (progress.network, progress.doors) = mounts::settle(own, steps.made.as_deref(), doors)?;
        if steps.shows_ports && own.kinds.network {
            progress.doors.extend(doors::show_network()?);
        }
    }
    let Some(layout) = &steps.layout else { return Ok(Entered::default()) };
    if let Some(placed) = &steps.placed {
        placed.wait().step("wait for the placeholders")?;
    }
    let entered = mounts::enter(layout, steps.library.as_deref(), steps.made.as_deref())?;
    namespace::keep_number_limit(steps.number_limit.as_deref());
    namespace::begin_numbers_anywhere();
    // The process is in its working directory already, and this descriptor is about the one outside.
    std::mem::forget(steps.directory.take());
    if let Some(landlock) = &mut steps.landlock {
        landlock.complete()?;
    }
    Ok(entered)
}

/// Takes the command's steps that need not wait for the path rules.
fn prepare(steps: &mut Steps) -> Result<(), EnforceError> {
    if let Some(guard) = &mut steps.guard {
        guard.lay_out().step("install the filter")?;
    }
    child::drop_early(steps)
}

fn start(steps: &mut Steps, progress: &mut Progress) -> Result<Pid, EnforceError> {
    steps.parent = Some(process::id());
    process::spawn_sharing(&mut || child::run(steps, progress)).step(START)
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
    /// By a descriptor that can be read when it has ended (pidfd_open(2)): processes outside have no number
    /// in a pid namespace.
    Held(RawFd),
}

impl Supervisor {
    fn is_gone(&self) -> bool {
        match self {
            Supervisor::Number(pid) => process::parent() != *pid,
            Supervisor::Held(held) => descriptor::readable(*held, Duration::ZERO),
        }
    }

    /// Its main thread, of whose end the kernel tells, ends before the last one that has its locks open.
    fn wait_for_end(&self) {
        if let Supervisor::Held(held) = self {
            descriptor::readable(*held, KILLING);
        }
    }
}

/// The reaper while the command runs.
struct Reaping {
    watched: signal::Set,
    supervisor: Supervisor,
    orphaned: bool,
    scope: Option<SignalScope>,
    protection: Option<Protection>,
    sender: RawFd,
    /// Where the supervisor takes pairs of sockets that are of the run's network.
    pairs: Option<OwnedFd>,
    order: Order,
}

impl Reaping {
    fn is_orphaned(&self) -> bool {
        let told = self.orphaned && matches!(self.supervisor, Supervisor::Held(_));
        told || self.supervisor.is_gone()
    }

    /// Whether the tree is to end at once.
    fn is_over(&self) -> bool {
        self.order == Order::Kill || self.is_orphaned()
    }

    /// Watches the command until its end. Tells whether this process has more to do than to end: what goes on in the
    /// background under --keep-background is left alone.
    fn lasts(&mut self, command: Pid, afterwards: &Afterwards) -> bool {
        if afterwards.introduces {
            self.wait_to_be_seen();
        }
        self.watch(command);
        if afterwards.keep_background && self.order == Order::None && !self.is_orphaned() {
            // The supervisor is a subreaper as well, and ends without touching them.
            return false;
        }
        self.wait_for_the_rest(command);
        true
    }

    /// Ends what is left of the run. Tells whether all of it is gone: processes that could not be ended are left to the
    /// supervisor.
    fn end(&mut self, layout: Option<&Layout>, afterwards: &Afterwards) -> bool {
        end_all(KILLING, self.scope.as_ref());
        if self.is_orphaned() {
            tidy(&self.supervisor, layout, afterwards);
        }
        let all_gone = !process::has_children();
        if all_gone {
            // It need not wait until the namespaces are gone too.
            let _ = descriptor::write_all(self.sender, &GONE);
            // On one processor it would wait for what follows, although nothing of that matters to it.
            std::thread::yield_now();
        }
        all_gone
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

    /// Reports how the command changes, until it has ended, the supervisor is gone, or the tree is to end.
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
            if self.protection.as_ref().is_some_and(|protection| !protection.holds_until_signal()) {
                self.order = Order::Kill;
                return;
            }
            if let Some(arrived) = self.next_signal() {
                self.obey(arrived);
            }
        }
    }

    /// Waits for a signal. If that fails, no order can arrive any more, and the tree ends.
    fn next_signal(&mut self) -> Option<i32> {
        let arrived = signal::wait(&self.watched).ok();
        if arrived.is_none() {
            self.order = Order::Kill;
        }
        arrived
    }

    /// Waits for processes that the command left behind: a moment, or as long as the supervisor does if the
    /// tree has been told to end.
    fn wait_for_the_rest(&mut self, command: Pid) {
        let left = Instant::now();
        while !self.is_over() && process::has_children() {
            // A storm of processes gets no grace: it would use up the machine's process numbers.
            if reap_some() >= STORM {
                return;
            }
            if self.order == Order::None && left.elapsed() >= GRACE {
                return self.name_the_rest(command);
            }
            if self.protection.as_ref().is_some_and(|protection| !protection.catches_up()) {
                return;
            }
            if let Some(arrived) = signal::wait_for(&self.watched, TICK) {
                self.obey(arrived);
            }
        }
    }

    /// Tells which processes will now be ended.
    fn name_the_rest(&self, command: Pid) {
        for child in process::children().into_iter().take(MOST_NAMED) {
            let name = process::about(child, "comm").unwrap_or_default();
            let pieces = encode_left(name.trim_end().as_bytes(), is_daemon(child, command));
            pieces.iter().for_each(|piece| drop(descriptor::write_all(self.sender, piece)));
        }
    }

    fn obey(&mut self, arrived: i32) {
        match arrived {
            signal if signal == looked_at() => signal::drain(&signal::Set::of(&FORWARDED)),
            signal if signal == kill() => self.order = Order::Kill,
            signal if signal == terminate() => {
                self.order = Order::Terminate;
                // A stopped process must continue to receive it.
                signal_all(self.scope.as_ref(), libc::SIGTERM);
                signal_all(self.scope.as_ref(), libc::SIGCONT);
            }
            signal if signal == orphaned() => self.orphaned = true,
            signal if signal == suspend() => signal_all(self.scope.as_ref(), libc::SIGSTOP),
            signal if signal == protect_config() => {
                let number = self.protection.as_ref().map_or(0, Protection::protect_new_config);
                let _ = descriptor::write_all(self.sender, &encode_protected(number));
            }
            signal if signal == make_pair() => {
                let made = self.pairs.as_ref().zip(socket::packet_pair().ok());
                if let Some((pairs, [one, other])) = made {
                    // Without an answer the supervisor refuses the call.
                    let _ = socket::send_descriptors(pairs.as_fd(), &[one.as_fd(), other.as_fd()]);
                }
            }
            signal if signal == resume() => {
                signal_all(self.scope.as_ref(), libc::SIGCONT);
                let _ = descriptor::write_all(self.sender, &RESUMED);
            }
            _ => {}
        }
    }
}

/// Whether a process was to stay: it has left the session of the command, as daemons do (setsid(2)), or ignores the
/// hangup signal, as nohup(1) has it. The command's session is the reaper's, or its own.
fn is_daemon(process: Pid, command: Pid) -> bool {
    const SESSION: usize = 6;
    const HANGUP: u64 = 1 << (libc::SIGHUP - 1);
    let session = |process: Pid| stat_number(process, SESSION);
    let ignores = |process: Pid| Status::of(process).is_ok_and(|status| status.set("SigIgn") & HANGUP != 0);
    let own = process::id();
    session(process).is_some_and(|other| other != command && session(own) != Some(other))
        || ignores(process) && !ignores(own)
}
