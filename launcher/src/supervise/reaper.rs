//! The process between the supervisor and the command, where the command may start further ones.
//!
//! Whichever of the two is killed, the other ends the tree: both are subreapers (prctl(2)), so orphans move
//! up to the reaper, or past it to the supervisor, and never out of reach.

use crate::launch::child::{self, Failure, Outcome, Steps};
use crate::launch::landlock::{self, Prepared};
use crate::launch::scratch;
use crate::supervise::tree;
use crate::sys::process::{self, Change, Pid, SignalScope};
use crate::sys::{Failed, descriptor, privilege, signal};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long what the command left behind may go on by itself, once the command has ended: the far end of a
/// process substitution still has something to write then.
const GRACE: Duration = Duration::from_millis(250);
/// How long killing may take: a fork bomb is killed faster than it forks, or given up on.
const KILLING: Duration = Duration::from_secs(10);
/// More dead children than this at a time are no ordinary end of a command.
const STORM: usize = 256;
const TICK: Duration = Duration::from_millis(2);

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

/// What becomes of the tree when the command has ended.
#[derive(Clone, Debug, Default)]
pub struct Afterwards {
    /// What is still running stays.
    pub keep_background: bool,
    /// Removed when the supervisor cannot do it any more: the scratch directory.
    pub scratch: Option<PathBuf>,
    /// And the control group.
    pub group: Option<PathBuf>,
}

/// What the reaper tells the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The command changed.
    Command(Change),
    /// The reaper is done, or gone.
    End,
}

/// A reaper that has started the command.
pub struct Reaper {
    /// The reaper.
    pub pid: Pid,
    /// The command.
    pub command: Pid,
    events: OwnedFd,
}

impl Reaper {
    /// Starts a reaper, which takes `steps` in a child of its own.
    pub fn start(mut steps: Steps, afterwards: &Afterwards) -> Result<(Reaper, Outcome), Failed> {
        let (events, sender) = descriptor::pipe()?;
        let supervisor = process::id();
        process::become_subreaper()?;
        let pid = process::fork_sharing_descriptors()?;
        if pid == 0 {
            let status = reap(&mut steps, supervisor, sender.as_raw_fd(), afterwards);
            process::exit_now(status);
        }
        let (command, outcome) = read_outcome(events.as_raw_fd())?;
        // Only now: until the reaper has stopped sharing descriptors, closing ours closes its own.
        drop(sender);
        // The child closed this one, in the table that was shared then.
        steps.landlock.iter_mut().for_each(Prepared::forget);
        // And this number is the listener's by now.
        std::mem::forget(steps.spare.take());
        Ok((Reaper { pid, command, events }, outcome))
    }

    /// The descriptor that can be read when there is an event.
    pub fn events(&self) -> RawFd {
        self.events.as_raw_fd()
    }

    /// Whether a signal was sent to the whole process group, command included: the reaper, a member like it,
    /// blocks all signals, so its copy still waits.
    pub fn has_waiting(&self, number: i32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:\t"));
        let pending = pending.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
        let waits = pending & (1 << (number - 1)) != 0;
        if waits {
            process::signal(self.pid, looked_at());
        }
        waits
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
            Ok(5) => decode(message).map_or(Event::End, Event::Command),
            _ => Event::End,
        }
    }
}

fn encode(change: Change) -> [u8; 5] {
    let (kind, number) = match change {
        Change::Exited(status) => (b'e', status),
        Change::Killed(signal) => (b'k', signal),
        Change::Stopped(signal) => (b's', signal),
        Change::Continued => (b'c', 0),
    };
    let number = number.to_le_bytes();
    [kind, number[0], number[1], number[2], number[3]]
}

fn decode(message: [u8; 5]) -> Option<Change> {
    let [kind, number @ ..] = message;
    let number = i32::from_le_bytes(number);
    match kind {
        b'e' => Some(Change::Exited(number)),
        b'k' => Some(Change::Killed(number)),
        b's' => Some(Change::Stopped(number)),
        b'c' => Some(Change::Continued),
        _ => None,
    }
}

/// The life of the reaper.
fn reap(steps: &mut Steps, supervisor: Pid, sender: RawFd, afterwards: &Afterwards) -> i32 {
    let watched =
        signal::Set::of(&[libc::SIGCHLD, orphaned(), looked_at(), terminate(), kill(), suspend(), resume()]);
    // All of them: what is meant for the command or the supervisor must not end us, nor the one that tells of
    // the supervisor's end.
    let prepared = signal::set_mask(&signal::Set::full())
        .and_then(|_| process::die_with_parent(orphaned()))
        .and_then(|()| process::become_subreaper());
    let scope = scope(supervisor);
    let mut outcome = Outcome::default();
    steps.parent = Some(process::id());
    let started = prepared.and_then(|()| process::spawn_sharing(&mut || child::run(steps, &mut outcome)));
    let command = started.unwrap_or_else(|failed| {
        outcome.failure = Some(Failure::new("start the command", failed.to_string()));
        0
    });
    // From here on our descriptors are our own; the supervisor's stay open in it.
    if let Err(failed) = process::unshare_descriptors() {
        outcome.failure = Some(Failure::new("separate the supervisor from its helper", failed.to_string()));
    }
    let failed = !outcome.ready || outcome.failure.is_some();
    // The supervisor waits for this word, whatever it is.
    if write_outcome(sender, command, &outcome).is_err() || failed {
        end_all(KILLING, scope.as_ref());
        return 1;
    }
    descriptor::close_all_but(sender);
    let mut reaping = Reaping { watched, supervisor, scope, order: Order::None };
    reaping.watch(command, sender);
    if afterwards.keep_background && reaping.order == Order::None && !reaping.is_orphaned() {
        // The supervisor is a subreaper as well, and ends without touching them.
        return 0;
    }
    reaping.wait_for_the_rest();
    end_all(KILLING, reaping.scope.as_ref());
    if reaping.is_orphaned() {
        // In this order: the group is empty now, and can be removed.
        afterwards.group.iter().for_each(|path| drop(std::fs::remove_dir(path)));
        afterwards.scratch.iter().for_each(|path| scratch::remove(path));
    }
    0
}

/// What the supervisor has ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    None,
    Terminate,
    Kill,
}

/// The reaper's own work.
struct Reaping {
    watched: signal::Set,
    supervisor: Pid,
    scope: Option<SignalScope>,
    order: Order,
}

impl Reaping {
    fn is_orphaned(&self) -> bool {
        process::parent() != self.supervisor
    }

    /// Whether there is nothing left to wait for.
    fn is_over(&self) -> bool {
        self.order == Order::Kill || self.is_orphaned()
    }

    /// Reports how the command changes, until it has ended, the supervisor is gone, or the tree has to end.
    fn watch(&mut self, command: Pid, sender: RawFd) {
        while !self.is_over() {
            while let Some((pid, change)) = process::wait(None, false, true) {
                if pid == command {
                    let _ = descriptor::write_all(sender, &encode(change));
                    if matches!(change, Change::Exited(_) | Change::Killed(_)) {
                        return;
                    }
                }
            }
            let arrived = signal::wait(&self.watched);
            self.obey(arrived);
        }
    }

    /// Waits for what the command left behind: a moment, or where the tree has been told to end, as long as the
    /// supervisor does.
    fn wait_for_the_rest(&mut self) {
        let left = Instant::now();
        while !self.is_over() && !process::children().is_empty() {
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
            signal if signal == suspend() => signal_all(self.scope.as_ref(), libc::SIGSTOP),
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
    loop {
        if let Some(scope) = scope {
            scope.signal_all(libc::SIGKILL);
        }
        let children = process::children();
        for child in &children {
            process::signal(*child, libc::SIGKILL);
        }
        reap_some();
        if children.is_empty() || start.elapsed() > limit {
            return;
        }
        std::thread::sleep(TICK);
    }
}

/// The numbers and the texts, in one write.
fn write_outcome(sender: RawFd, command: Pid, outcome: &Outcome) -> Result<(), Failed> {
    let failure = outcome.failure.as_ref();
    let texts = [outcome.unheard.as_deref(), failure.map(|f| &*f.step), failure.map(|f| f.cause.as_str())];
    let mut body = Vec::new();
    let errno = failure.and_then(|f| f.exec_errno);
    for number in [command, outcome.listener.unwrap_or(-1), errno.unwrap_or(0), i32::from(outcome.ready)] {
        body.extend(number.to_le_bytes());
    }
    for text in texts {
        // A length of its own for "none".
        let bytes = text.map_or(&[][..], str::as_bytes);
        let length = text.map_or(u32::MAX, |_| bytes.len() as u32);
        body.extend(length.to_le_bytes());
        body.extend(bytes);
    }
    let mut message = (body.len() as u32).to_le_bytes().to_vec();
    message.extend(body);
    descriptor::write_all(sender, &message)
}

fn read_outcome(events: RawFd) -> Result<(Pid, Outcome), Failed> {
    let mut length = [0; 4];
    read_exactly(events, &mut length)?;
    let mut body = vec![0; (u32::from_le_bytes(length) as usize).min(1 << 16)];
    read_exactly(events, &mut body)?;
    let mut rest = body.as_slice();
    let mut number = || {
        let (word, tail) = rest.split_first_chunk::<4>()?;
        rest = tail;
        Some(i32::from_le_bytes(*word))
    };
    let (pid, listener) = (number().unwrap_or(0), number().unwrap_or(-1));
    let (errno, ready) = (number().unwrap_or(0), number() == Some(1));
    let mut text = || {
        let (word, tail) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*word);
        rest = tail;
        if length == u32::MAX {
            return None;
        }
        let (bytes, tail) = rest.split_at_checked(length as usize)?;
        rest = tail;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    let (unheard, step, cause) = (text(), text(), text());
    let failure = step.zip(cause).map(|(step, cause)| Failure {
        step: step.into(),
        cause,
        exec_errno: (errno != 0).then_some(errno),
    });
    Ok((pid, Outcome { listener: (listener >= 0).then_some(listener), unheard, failure, ready }))
}

fn read_exactly(events: RawFd, mut buffer: &mut [u8]) -> Result<(), Failed> {
    while !buffer.is_empty() {
        match descriptor::read(events, buffer)? {
            0 => return Err(Failed { call: "read", cause: std::io::ErrorKind::UnexpectedEof.into() }),
            count => buffer = &mut buffer[count..],
        }
    }
    Ok(())
}
