//! Waiting for the command, saying what was refused, and ending what has to end.
//!
//! The supervisor is a loop over descriptors: signals, notifications of refused calls, events of the [`reaper`] where
//! there is one, and the command's output where it is limited. It does nothing on behalf of the command: each notified
//! call is named, counted and refused (or, in log mode, left to the kernel).

pub mod attributes;
pub mod broker;
pub mod census;
mod deadline;
pub mod decode;
pub mod devices;
pub mod facts;
pub mod infer;
pub mod judge;
pub mod memory;
mod outlet;
pub mod output;
mod patience;
pub mod reaper;
pub mod repository;
pub mod shield;
pub mod suggest;
mod summary;
pub mod terminal;
pub mod tree;
pub mod violation;
pub mod walk;
mod watch;
mod word;

pub use outlet::Outlet;
pub use summary::{Ending, Summary};
pub use watch::{Watch, watched_signals};

use crate::launch::cgroup::Group;
use crate::launch::limits::Applied;
use crate::sys::descriptor::{self, Interest, Ready};
use crate::sys::process::{self, Change};
use crate::sys::signal::{self, Disposition};
use crate::sys::{self, Failed, timer};
use deadline::{Act, Deadline};
use judge::Judge;
use output::Pumps;
use reaper::Event;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Those that end waiting for a slow reader, when there is no command any more to be ended by them.
pub const ENDING: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Whether a signal is one of them. Those that the caller has ignored (nohup(1)) arrive all the same, since they are blocked.
pub fn tells_to_end(number: i32) -> bool {
    ENDING.contains(&number) && signal::disposition(number) == Disposition::Default
}

/// A run in which nothing happens for so long is no short one: what it holds counts then, not how fast it starts.
const SETTLING: Duration = Duration::from_millis(100);

/// What there is to supervise.
pub struct Task {
    /// The command.
    pub watch: Watch,
    /// Where refused calls are notified.
    pub listener: Option<OwnedFd>,
    /// Where signals arrive.
    pub signals: OwnedFd,
    /// When it began.
    pub started: Instant,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// How long it may take to end, once it is told to.
    pub kill_after: Duration,
    /// Its output, where that is limited.
    pub pumps: Option<Pumps>,
    /// Its memory, where that is limited by us.
    pub memory: Option<memory::Watch>,
    /// Its control group, where it has one.
    pub group: Option<Group>,
    /// Whether what the command leaves behind stays.
    pub keep_background: bool,
    /// Its limits.
    pub limits: Vec<Applied>,
}

/// Supervises until the command, and what it left behind, has ended.
pub fn run(task: Task, judge: &mut Judge<'_>) -> Result<Summary, Failed> {
    let now = Instant::now();
    let left = task.timeout.map(|time| time.saturating_sub(now.duration_since(task.started)));
    if let Some(left) = left {
        timer::continue_after(left)?;
    }
    let deadline = Deadline::new(now, left, task.kill_after);
    let mut supervisor =
        Supervisor { task, judge, deadline, ending: None, failure: None, settled: false, finished: false };
    while !supervisor.finished {
        supervisor.turn()?;
    }
    supervisor.end()
}

struct Supervisor<'t, 'j> {
    task: Task,
    judge: &'t mut Judge<'j>,
    deadline: Deadline,
    ending: Option<Ending>,
    failure: Option<String>,
    /// Whether the memory that starting took has been given back.
    settled: bool,
    /// Where the rest of the tree is still being waited for after the command ended, so are its calls.
    finished: bool,
}

impl Supervisor<'_, '_> {
    /// Waits for something to happen, and sees to it.
    fn turn(&mut self) -> Result<(), Failed> {
        let task = &self.task;
        let events = match &task.watch {
            Watch::Reaper(reaper) => Some(reaper.events()),
            Watch::Direct(_) => None,
        };
        let [out, err, to_out, to_err] = task.pumps.as_ref().map_or_else(Default::default, Pumps::interests);
        let ready = descriptor::poll(
            [
                Interest::read(Some(task.signals.as_raw_fd())),
                Interest::read(task.listener.as_ref().map(AsRawFd::as_raw_fd)),
                Interest::read(events),
                Interest::write(self.judge.violations.waits_for()),
                out,
                err,
                to_out,
                to_err,
            ],
            self.pause(),
        )?;
        if !self.settled && !ready.iter().any(|ready| ready.now || ready.gone) {
            sys::memory::release_code();
            self.settled = true;
        }
        let [signals, listener, event, lines, streams @ ..] = ready;
        self.notifications(listener)?;
        if signals.now {
            while let Some(arrived) = signal::next(self.task.signals.as_fd()) {
                self.task.watch.forward(arrived);
            }
        }
        self.changes(event)?;
        if lines.now || lines.gone {
            self.judge.violations.pass_on();
        }
        self.output(streams);
        self.clock();
        Ok(())
    }

    /// How long there is nothing to do unless something happens.
    fn pause(&self) -> Option<Duration> {
        let now = Instant::now();
        let census = self.judge.census.as_ref().and_then(census::Census::pause);
        let memory = self.task.memory.as_ref().filter(|_| !self.deadline.is_killing());
        let first = (!self.settled).then_some(SETTLING);
        let all = [first, self.deadline.pause(now), census, memory.map(|memory| memory.pause(now))];
        all.into_iter().flatten().min()
    }

    fn notifications(&mut self, ready: Ready) -> Result<(), Failed> {
        let Some(listener) = &self.task.listener else { return Ok(()) };
        if let Some(census) = &mut self.judge.census {
            census.retry(listener.as_fd())?;
        }
        if ready.now {
            if self.judge.notified(listener.as_fd())? == judge::Verdict::EndRun {
                self.end_run(Ending::Violation);
            }
        } else if ready.gone {
            // Nobody is left that the filter binds.
            self.task.listener = None;
        }
        Ok(())
    }

    /// Takes note of what became of the command.
    fn changes(&mut self, event: Ready) -> Result<(), Failed> {
        match &self.task.watch {
            Watch::Direct(command) => {
                let command = *command;
                while !self.finished
                    && let Some((_, change)) = process::wait(Some(command), false, true)
                {
                    self.finished = self.changed(change);
                }
            }
            Watch::Reaper(reaper) if event.now || event.gone => match reaper.next() {
                Event::Command(change) => drop(self.changed(change)),
                Event::Shielded(number) => {
                    let listener = self.task.listener.as_ref().map(AsFd::as_fd);
                    self.judge.shielded(listener, number)?;
                }
                Event::Resumed => {}
                Event::End => self.finished = true,
            },
            Watch::Reaper(_) => {}
        }
        Ok(())
    }

    /// Takes note of a change; tells whether the command has ended.
    fn changed(&mut self, change: Change) -> bool {
        match change {
            Change::Exited(status) => drop(self.ending.get_or_insert(Ending::Exited(status))),
            Change::Killed(signal) => drop(self.ending.get_or_insert(Ending::Killed(signal))),
            // The shell that started us sees us stop, as it would have seen the command. Without a terminal there is
            // no such shell, and nobody who would have us go on.
            Change::Stopped(_) if !self.deadline.is_ending() && process::has_terminal() => {
                self.task.watch.stop();
                return false;
            }
            Change::Stopped(_) | Change::Continued => return false,
        }
        true
    }

    fn output(&mut self, streams: [Ready; 4]) {
        if let Some(pumps) = &mut self.task.pumps
            && let Err(output::Failure(sentence)) = pumps.turn(streams)
        {
            self.output_failed(sentence);
        }
    }

    fn output_failed(&mut self, sentence: String) {
        self.failure.get_or_insert(sentence);
        self.end_run(Ending::OutputFailed);
    }

    fn clock(&mut self) {
        let now = Instant::now();
        let killing = self.deadline.is_killing();
        if !killing && self.task.memory.as_mut().is_some_and(|memory| memory.is_exceeded(now)) {
            self.end_run(self.ending.unwrap_or(Ending::Memory));
        }
        if let Some(act) = self.deadline.due(now) {
            if act == Act::Terminate {
                self.ending.get_or_insert(Ending::Timeout);
            }
            self.act(act);
        }
    }

    /// Does something to the tree, unless it has ended and its numbers may be others' by now.
    fn act(&self, act: Act) {
        if !self.finished {
            self.task.watch.act(act);
        }
    }

    /// Ends the command and all that it started, for this reason.
    fn end_run(&mut self, why: Ending) {
        self.ending = Some(why);
        self.deadline.kill(Instant::now());
        self.act(Act::Kill);
    }

    /// The tree has ended, or is about to.
    fn end(mut self) -> Result<Summary, Failed> {
        let mut kept_background = false;
        if let Watch::Reaper(reaper) = &self.task.watch {
            let ended = process::wait(Some(reaper.pid), true, false);
            if self.keeps_background() {
                kept_background = process::has_children();
            } else if !matches!(ended, Some((_, Change::Exited(0)))) {
                // A reaper that was killed leaves its descendants to us. After one that has ended them all we have no children
                // but those that were there before: of the program that became this one.
                reaper::end_all(Duration::from_secs(10), None);
            }
        }
        self.flush()?;
        if self.ending == Some(Ending::Killed(libc::SIGKILL))
            && self.task.group.as_ref().is_some_and(Group::ran_out_of_memory)
        {
            self.ending = Some(Ending::Memory);
        }
        Ok(Summary {
            ending: self.ending.unwrap_or(Ending::Lost),
            output: self.task.pumps.as_ref().map_or_else(Vec::new, Pumps::streams),
            limits: self.task.limits,
            kept_background,
            failure: self.failure,
        })
    }

    fn keeps_background(&self) -> bool {
        self.task.keep_background && matches!(self.ending, Some(Ending::Exited(_) | Ending::Killed(_)))
    }

    /// Passes on what is left of the output. A reader may take its time, as it could with the command itself; but
    /// where the command had only so much, one that takes nothing gets no more, whoever of us is kept waiting.
    fn flush(&mut self) -> Result<(), Failed> {
        let over = |time: Duration| time.saturating_sub(self.task.started.elapsed());
        let patience = self.task.timeout.map(|time| over(time).max(self.task.kill_after));
        let Some(pumps) = &mut self.task.pumps else { return Ok(()) };
        let mut result = pumps.finish();
        let (mut written, mut since) = (pumps.written(), Instant::now());
        while result.is_ok() && !pumps.is_done() {
            let left = patience.map(|time| time.saturating_sub(since.elapsed()));
            if left == Some(Duration::ZERO) {
                // Nor would the command have ended by itself.
                if matches!(self.ending, Some(Ending::Exited(_) | Ending::Killed(_))) {
                    self.ending = Some(Ending::Timeout);
                }
                break;
            }
            let signals = Interest::read(Some(self.task.signals.as_raw_fd()));
            let [_, _, to_out, to_err] = pumps.interests();
            let [signalled, out, err] = descriptor::poll([signals, to_out, to_err], left)?;
            let mut arrived = std::iter::from_fn(|| signal::next(self.task.signals.as_fd()));
            if signalled.now && arrived.any(|arrived| tells_to_end(arrived.number)) {
                break;
            }
            result = pumps.turn([Ready::default(), Ready::default(), out, err]);
            if pumps.written() > written {
                (written, since) = (pumps.written(), Instant::now());
            }
        }
        if let Err(output::Failure(sentence)) = result {
            self.failure.get_or_insert(sentence);
            self.ending = Some(Ending::OutputFailed);
        }
        Ok(())
    }
}
