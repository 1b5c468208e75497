//! The process between the supervisor and the command, where the command may start further ones.
//!
//! Whichever of the two is killed, the other ends the tree: both are subreapers (prctl(2)), so orphans move
//! up to the reaper, or past it to the supervisor, and never out of reach.

use crate::launch::child::{self, Failure, Outcome, Steps};
use crate::launch::landlock::{self, Prepared};
use crate::launch::namespaces::{self, Doors, Entered, Stop, Stubs};
use crate::launch::scratch;
use crate::refusal::Refusal;
use crate::supervise::repository::Presence;
use crate::supervise::shield::Shield;
use crate::supervise::tree;
use crate::supervise::word::{decode, encode, encode_shielded, read_outcome, write_outcome};
use crate::sys::descriptor::Interest;
use crate::sys::process::{self, Change, Pid, SignalScope};
use crate::sys::{Failed, descriptor, namespace, privilege, probe, signal};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long what the command left behind may go on by itself, once the command has ended: the far end of a
/// process substitution still has something to write then.
const GRACE: Duration = Duration::from_millis(250);
/// How long killing may take: a fork bomb is killed faster than it forks, or given up on.
const KILLING: Duration = Duration::from_secs(10);
/// More dead children than this at a time are no ordinary end of a command.
const STORM: usize = 256;
const TICK: Duration = Duration::from_millis(2);
/// How often in a row it is waited for memory that poll(2) needs.
const PATIENCE: u32 = 100;
/// How long a reaper may say nothing before it is looked whether there still is one.
const SILENCE: Duration = Duration::from_millis(20);

/// Sent by the kernel when the supervisor ends. No program uses it for anything else on us.
fn orphaned() -> i32 {
    libc::SIGRTMIN()
}

/// Sent by the supervisor when it has looked at the signals that wait for the reaper.
fn looked_at() -> i32 {
    libc::SIGRTMIN() + 1
}

/// Sent by the supervisor: the whole tree is to be told to end.
fn terminate() -> i32 {
    libc::SIGRTMIN() + 2
}

/// Sent by the supervisor: the whole tree is to be ended.
fn kill() -> i32 {
    libc::SIGRTMIN() + 3
}

/// Sent by the supervisor before it stops: the whole tree is to stop.
fn suspend() -> i32 {
    libc::SIGRTMIN() + 4
}

/// Sent by the supervisor when it goes on: so is the tree to.
fn resume() -> i32 {
    libc::SIGRTMIN() + 5
}

/// Sent by the supervisor when it has found out which process the command is.
fn acquainted() -> i32 {
    libc::SIGRTMIN() + 6
}

/// Sent by the supervisor: a new configuration is to be shielded.
fn shield_new() -> i32 {
    libc::SIGRTMIN() + 7
}

/// Sent by the supervisor when the path rules are complete.
fn proceed() -> i32 {
    libc::SIGRTMIN() + 8
}

/// Has the first process of a run's namespaces shield the new configuration that is there; it answers with
/// [`Event::Shielded`].
pub fn cover(reaper: Pid) {
    process::signal(reaper, shield_new());
}

/// What becomes of the tree when the command has ended.
#[derive(Clone, Debug, Default)]
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
    pub stubs: Rc<Stubs>,
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
}

/// Why there is no reaper.
pub enum Unstarted {
    /// It could not be started.
    Failed(Failed),
    /// What was to be done meanwhile could not be.
    Refused(Refusal),
}

impl From<Failed> for Unstarted {
    fn from(failed: Failed) -> Unstarted {
        Unstarted::Failed(failed)
    }
}

impl Reaper {
    /// Starts a reaper, which takes `steps` in a child of its own, but not before `meanwhile` is done: what takes its
    /// time here does so while the reaper makes its namespaces.
    pub fn start<T>(
        mut steps: Steps,
        afterwards: &Afterwards,
        meanwhile: impl FnOnce(&mut Steps) -> Result<T, Refusal>,
    ) -> Result<(Reaper, Outcome, T), Unstarted> {
        let (events, sender) = descriptor::pipe()?;
        let supervisor = process::id();
        process::become_subreaper()?;
        let held = steps.layout.as_ref().map(|_| process::open_pid(supervisor)).transpose()?;
        // All of them, before the reaper is there: what is meant for the command or the supervisor must not end it, and
        // what is sent to it must wait for it.
        let mask = signal::set_mask(&signal::Set::full())?;
        let forked = match &steps.layout {
            Some(layout) => namespace::fork_into(layout.kinds),
            None => process::fork_sharing_descriptors(0),
        };
        if !matches!(forked, Ok(0)) {
            signal::set_mask(&mask)?;
        }
        let pid = forked?;
        if pid == 0 {
            let held = held.as_ref().map(AsRawFd::as_raw_fd);
            let status = reap(&mut steps, (supervisor, held), sender.as_raw_fd(), afterwards);
            process::exit_now(status);
        }
        let done = meanwhile(&mut steps);
        // Where it cannot be told, the kernel tells it when we end.
        let told = process::send_signal(pid, if done.is_ok() { proceed() } else { kill() });
        told.inspect_err(|_| end_all(KILLING, None))?;
        let done = done.map_err(|refusal| {
            process::wait(Some(pid), true, false);
            Unstarted::Refused(refusal)
        })?;
        let heard = hear(events.as_raw_fd(), pid).and_then(|()| read_outcome(events.as_raw_fd()));
        // The child closed this one, in the table that was shared then.
        steps.landlock.iter_mut().for_each(Prepared::forget);
        // And this number is the listener's by now.
        std::mem::forget(steps.spare.take());
        let (number, outcome) = heard.inspect_err(|_| end_all(KILLING, None))?;
        // Only now: until the reaper has stopped sharing descriptors, closing ours closes its own.
        drop(sender);
        // Where the command does not run, the reaper ends, and with it its hold on what is to be cleaned up.
        if !outcome.ready || outcome.failure.is_some() {
            process::wait(Some(pid), true, false);
        }
        let apart = steps.layout.is_some();
        Ok((Reaper { pid, number, apart, detached: steps.session, events }, outcome, done))
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
        let status = process::about(self.pid, "status").unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:\t"));
        let pending = pending.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
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

    /// The next event.
    pub fn next(&self) -> Event {
        let mut message = [0; 5];
        match descriptor::read(self.events.as_raw_fd(), &mut message) {
            Ok(5) => decode(message).unwrap_or(Event::End),
            _ => Event::End,
        }
    }
}

/// The life of the reaper.
fn reap(
    steps: &mut Steps,
    (supervisor, held): (Pid, Option<RawFd>),
    sender: RawFd,
    afterwards: &Afterwards,
) -> i32 {
    let orders =
        [looked_at(), terminate(), kill(), suspend(), resume(), acquainted(), shield_new(), proceed()];
    let watched = signal::Set::of(&[&[libc::SIGCHLD, orphaned()], &orders[..]].concat());
    let prepared = process::die_with_parent(orphaned()).and_then(|()| process::become_subreaper());
    let mut outcome = Outcome::default();
    let layout = steps.layout.clone();
    let scope = match &layout {
        Some(_) => SignalScope::of_first(),
        None => scope(supervisor),
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
        wait_for_rules(&watched, &overseer)?;
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
        layout.iter().for_each(|layout| namespaces::leave(layout));
        afterwards.stubs.remove();
        // In this order: the group is empty now, and can be removed.
        afterwards.group.iter().for_each(|path| drop(std::fs::remove_dir(path)));
        afterwards.scratch.iter().for_each(|path| scratch::remove(path));
    }
    0
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

/// Waits until the supervisor has added the path rules. Without all of them the command could do less, not more.
fn wait_for_rules(watched: &signal::Set, supervisor: &Supervisor) -> Result<(), Stop> {
    let stop = |cause: String| Stop::Failed(Failure::new("wait for the path rules", cause));
    if supervisor.is_gone() {
        return Err(stop("the supervisor is gone".to_string()));
    }
    loop {
        match signal::wait(watched).map_err(|failed| stop(failed.to_string()))? {
            arrived if arrived == proceed() => return Ok(()),
            arrived if [kill(), orphaned()].contains(&arrived) => {
                return Err(stop("the supervisor gave up".to_string()));
            }
            _ => {}
        }
    }
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
            signal if signal == looked_at() => signal::drain(&signal::Set::of(&super::FORWARDED)),
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
            signal if signal == resume() => signal_all(self.scope.as_ref(), libc::SIGCONT),
            _ => {}
        }
    }
}

/// Sends every descendant a signal.
fn signal_all(scope: Option<&SignalScope>, number: i32) {
    match scope {
        Some(scope) => scope.signal_all(number),
        None => tree::descendants(process::id()).into_iter().for_each(|pid| process::signal(pid, number)),
    }
}

/// Takes note of dead children, but not of endlessly many: some die faster than they can be counted.
fn reap_some() -> usize {
    (0..STORM).take_while(|_| process::wait(None, false, false).is_some()).count()
}

/// A Landlock domain of the reaper's own, around the command's: what it kills can be nothing else then.
fn scope(supervisor: Pid) -> Option<SignalScope> {
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
