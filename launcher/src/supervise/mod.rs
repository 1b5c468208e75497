//! The supervisor: waits for the command, answers notified calls, enforces limits, and ends the run.
//!
//! It is one loop over descriptors: signals, notifications of system calls ([`dispatch`]), events of the
//! reaper where there is one, and the command's output where that is limited. One thread does all of it, so
//! nothing here may wait for the command.

pub mod brokers;
mod caller;
mod deadline;
pub mod dials;
pub mod dispatch;
mod findings;
mod finish;
pub mod handlers;
pub mod hosts;
pub mod judge;
pub mod memory;
pub mod output;
pub mod published;
mod stderr;
mod summary;
pub mod terminal;
pub mod violation;
mod waiting;
mod watch;

pub use caller::{Caller, encode as told};
pub use stderr::Stderr;
pub use summary::{Ending, Killed, Summary};
pub use watch::{Watch, watched_signals};

use crate::enforce::cgroup::Group;
use crate::enforce::reaper::{Departing, Event};
use crate::plan::limits::Applied;
use crate::sys::descriptor::{self, Interest, Ready};
use crate::sys::process::{self, Change};
use crate::sys::signal::{self, Arrived, Disposition};
use crate::sys::{self, SyscallError, awake};
use deadline::{Act, Deadline};
use dispatch::{Dispatcher, Flow};
use hosts::Hosts;
use output::Pumps;
use published::Published;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};
use terminal::Terminal;

/// Signals that end the wait for a slow reader after the command has ended.
pub const ENDING: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Whether a signal is one of them, and the caller does not ignore it (nohup(1)): ignored signals arrive
/// too, since they are blocked.
pub fn tells_to_end(number: i32) -> bool {
    ENDING.contains(&number) && signal::disposition(number) == Disposition::Default
}

/// timeout(1) signals its child, and then the whole process group: what comes so soon is not a second signal.
const AGAIN: Duration = Duration::from_millis(200);

/// How long it polls for what is about to come.
const AWAKE: Duration = Duration::from_micros(60);

/// A run in which nothing happens for so long is a long one: from then on the supervisor's memory matters,
/// not its speed.
const SETTLING: Duration = Duration::from_millis(100);

/// What is supervised.
pub struct Task {
    /// The command.
    pub watch: Watch,
    /// Where calls are notified, while a process is left that the filter binds.
    pub listener: Option<OwnedFd>,
    /// Where signals arrive.
    pub signals: OwnedFd,
    /// When the command started.
    pub started: Instant,
    /// How long the command may run.
    pub timeout: Option<Duration>,
    /// How long after SIGTERM the command is killed, if at all.
    pub kill_after: Option<Duration>,
    /// Moves its output, where that is limited.
    pub pumps: Option<Pumps>,
    /// Measures its memory, where the supervisor limits that.
    pub memory: Option<memory::Watch>,
    /// Its control group, where it has one.
    pub group: Option<Group>,
    /// Whether processes that the command leaves behind go on.
    pub keep_background: bool,
    /// The limits in force.
    pub limits: Vec<Applied>,
    /// The hosts that it reaches, if rules name some.
    pub hosts: Option<Rc<Hosts>>,
    /// The ports of it that this machine shows, if some are to be.
    pub published: Option<Rc<Published>>,
    /// Who asked for it, where that is not this process's parent.
    pub caller: Option<Caller>,
    /// The caller's terminal.
    pub terminal: Option<Rc<Terminal>>,
}

/// Supervises until the command, and what it left behind, have ended.
pub fn run(task: Task, calls: &mut Dispatcher) -> Result<Summary, SyscallError> {
    sys::allocator::close();
    let now = Instant::now();
    let left = task.timeout.map(|time| time.saturating_sub(now.duration_since(task.started)));
    let deadline = Deadline::new(now, left, task.kill_after);
    let mut supervisor = Supervisor {
        task,
        calls,
        deadline,
        ending: None,
        told: None,
        killed: None,
        interrupted: false,
        failure: None,
        settled: false,
        finished: false,
        departing: None,
        left: Vec::new(),
        abandoned: false,
    };
    while !supervisor.finished {
        supervisor.turn()?;
    }
    supervisor.end()
}

struct Supervisor<'t> {
    task: Task,
    calls: &'t mut Dispatcher,
    deadline: Deadline,
    ending: Option<Ending>,
    /// The first signal that told the run to end, and when it came.
    told: Option<(i32, Instant)>,
    killed: Option<Killed>,
    /// Whether somebody has pressed the interrupt key.
    interrupted: bool,
    failure: Option<output::Failure>,
    /// Whether the memory that the start took has been given back.
    settled: bool,
    /// Whether the whole tree has ended, not the command alone.
    finished: bool,
    /// The reaper that has said so.
    departing: Option<Departing>,
    /// Names of what the command has left behind, as they arrive.
    left: Vec<u8>,
    /// Whether who asked for the run has ended.
    abandoned: bool,
}

impl Supervisor<'_> {
    /// Waits until something happens, and handles it.
    fn turn(&mut self) -> Result<(), SyscallError> {
        let [signals, listener, event, lines, hosts, published, caller, streams @ ..] = self.wait()?;
        if hosts.now || hosts.gone {
            self.task.hosts.iter().for_each(|hosts| hosts.read(&mut self.calls.judge));
        }
        if published.now || published.gone {
            self.task.published.iter().for_each(|published| published.read(&mut self.calls.judge));
        }
        self.notifications(listener)?;
        if signals.now {
            while let Some(arrived) = signal::next(self.task.signals.as_fd()) {
                self.pass_on(arrived);
            }
        }
        if caller.now || caller.gone {
            self.hear_caller();
        }
        self.changes(event)?;
        if lines.now || lines.gone {
            self.calls.judge.violations.pass_on();
        }
        self.output(streams);
        self.clock();
        Ok(())
    }

    /// Waits: for signals, notifications, events of the reaper, room for lines on stderr, what the brokers tell, what
    /// the caller says, and the four ends of the output.
    fn wait(&mut self) -> Result<[Ready; 11], SyscallError> {
        let task = &self.task;
        let events = match &task.watch {
            Watch::Reaper(reaper) => Some(reaper.events()),
            Watch::Direct(_) => None,
        };
        let [out, err, to_out, to_err] = task.pumps.as_ref().map_or_else(Default::default, Pumps::interests);
        let interests = [
            Interest::read(Some(task.signals.as_raw_fd())),
            Interest::read(task.listener.as_ref().map(AsRawFd::as_raw_fd)),
            Interest::read(events),
            Interest::write(self.calls.judge.violations.waits_for()),
            Interest::read(task.hosts.as_ref().and_then(|hosts| hosts.told())),
            Interest::read(task.published.as_ref().and_then(|published| published.told())),
            Interest::read(task.caller.as_ref().map(Caller::number)),
            out,
            err,
            to_out,
            to_err,
        ];
        let ready = descriptor::poll(interests, self.pause())?;
        if !self.settled && !ready.iter().any(|ready| ready.now || ready.gone) {
            sys::memory::release_code();
            sys::stack::release();
            self.settled = true;
        }
        Ok(ready)
    }

    /// How long the supervisor may sleep unless something happens.
    fn pause(&self) -> Option<Duration> {
        let now = Instant::now();
        let memory = self.task.memory.as_ref().filter(|_| !self.deadline.is_killing());
        let first = (!self.settled).then_some(SETTLING);
        let all =
            [first, self.deadline.pause(now), self.calls.pause(), memory.map(|memory| memory.pause(now))];
        all.into_iter().flatten().min()
    }

    fn pass_on(&mut self, arrived: Arrived) {
        self.task.watch.forward(arrived);
        if arrived.number == libc::SIGCONT {
            self.lend_terminal();
        }
        self.interrupted |= arrived.from_kernel && arrived.number == libc::SIGINT;
        if arrived.is_request() && tells_to_end(arrived.number) {
            self.told_to_end(arrived.number);
        }
    }

    /// What the signals are to a supervisor that its caller has started, the caller's messages are to this one. The
    /// caller's end is that of the run.
    fn hear_caller(&mut self) {
        let Some(caller) = &self.task.caller else { return };
        match caller.next() {
            Some(Some(arrived)) => self.pass_on(arrived),
            Some(None) => {}
            None => {
                self.task.caller = None;
                self.abandoned = true;
                if !self.finished {
                    self.end_run(self.ending.unwrap_or(Ending::Killed(libc::SIGKILL)));
                }
            }
        }
    }

    fn notifications(&mut self, ready: Ready) -> Result<(), SyscallError> {
        let Some(listener) = &self.task.listener else { return Ok(()) };
        if self.calls.retry(listener.as_fd())? == Flow::EndRun {
            self.end_run(Ending::Violation);
        } else if ready.now {
            if self.calls.next(listener.as_fd())? == Flow::EndRun {
                self.end_run(Ending::Violation);
            }
        } else if ready.gone {
            // No process is left that the filter binds.
            self.task.listener = None;
            self.expect_event();
        }
        Ok(())
    }

    /// Stays awake for the moment in which the reaper tells how the command has ended.
    fn expect_event(&self) {
        let Watch::Reaper(reaper) = &self.task.watch else { return };
        awake::until(AWAKE, || descriptor::readable(reaper.events(), Duration::ZERO));
    }

    /// Handles changes of the command, and events of the reaper.
    fn changes(&mut self, event: Ready) -> Result<(), SyscallError> {
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
                Event::ConfigProtected(number) => {
                    let listener = self.task.listener.as_ref().map(AsFd::as_fd);
                    self.calls.covered(listener, number)?;
                }
                Event::Resumed => {}
                Event::Left(piece) => self.left.extend(piece),
                Event::Gone => {
                    self.departing = Some(reaper.departing());
                    self.finished = true;
                }
                Event::End => self.finished = true,
            },
            Watch::Reaper(_) => {}
        }
        Ok(())
    }

    /// Handles a change of the command. Tells whether it has ended.
    fn changed(&mut self, change: Change) -> bool {
        match change {
            Change::Exited(status) => drop(self.ending.get_or_insert(Ending::Exited(status))),
            Change::Killed(signal) => {
                self.ending.get_or_insert(Ending::Killed(signal));
                // The key has reached the command alone.
                self.interrupted |= self.has_lent() && signal == libc::SIGINT;
            }
            // Where no shell is the parent, nobody would continue what a key has stopped: for a group without such a
            // parent the kernel does nothing then.
            Change::Stopped(signal) if signal != libc::SIGSTOP && self.has_lent() && !process::is_job() => {
                self.task.watch.go_on();
                return false;
            }
            // The shell sees the supervisor stop, as it would have seen the command stop. Without a
            // terminal there is no shell that would continue it.
            Change::Stopped(_) if !self.deadline.is_ending() && process::has_terminal() => {
                self.stop();
                return false;
            }
            Change::Stopped(_) | Change::Continued => return false,
        }
        true
    }

    /// Whether the command has the terminal for a group of its own.
    fn has_lent(&self) -> bool {
        self.task.terminal.as_ref().is_some_and(|terminal| terminal.is_lent())
    }

    /// Stops with the command. Whoever continues this process says who has the terminal then.
    fn stop(&self) {
        let command = self.task.watch.command();
        self.task.terminal.iter().for_each(|terminal| terminal.take_back(command));
        self.task.watch.stop();
        self.lend_terminal();
    }

    fn lend_terminal(&self) {
        if let Some(terminal) = &self.task.terminal {
            terminal.lend(self.task.watch.command());
        }
    }

    fn output(&mut self, streams: [Ready; 4]) {
        if let Some(pumps) = &mut self.task.pumps
            && let Err(failure) = pumps.turn(streams)
        {
            self.failure.get_or_insert(failure);
            self.end_run(Ending::OutputFailed);
        }
    }

    fn clock(&mut self) {
        let now = Instant::now();
        let killing = self.deadline.is_killing();
        if !killing && self.task.memory.as_mut().is_some_and(|memory| memory.is_exceeded(now)) {
            self.end_run(self.ending.unwrap_or(Ending::Memory));
        }
        if let Some(act) = self.deadline.due(now) {
            match (act, self.told) {
                (Act::Terminate, _) => drop(self.ending.get_or_insert(Ending::Timeout)),
                (Act::Kill, Some((signal, _))) => {
                    self.killed_for(Killed::Late { signal, after: self.task.kill_after.unwrap_or_default() });
                }
                _ => {}
            }
            self.act(act);
        }
    }

    /// Somebody wants the run to end: with this signal the command was told, and it has the same time as after a
    /// timeout. Whoever says it again does not want to wait.
    fn told_to_end(&mut self, signal: i32) {
        let now = Instant::now();
        match self.told {
            None => {
                self.told = Some((signal, now));
                self.deadline.terminating(now);
            }
            Some((_, first)) if now.duration_since(first) >= AGAIN && !self.deadline.is_killing() => {
                self.killed_for(Killed::Again(signal));
                self.deadline.kill(now);
                self.act(Act::Kill);
            }
            Some(_) => {}
        }
    }

    fn killed_for(&mut self, why: Killed) {
        if self.ending.is_none() {
            (self.ending, self.killed) = (Some(Ending::Killed(libc::SIGKILL)), Some(why));
        }
    }

    /// Acts on the tree, unless it has ended: its numbers may be those of other processes by then.
    fn act(&self, act: Act) {
        if !self.finished {
            self.task.watch.act(act);
        }
    }

    /// Kills the command and all that it started, for this reason.
    fn end_run(&mut self, why: Ending) {
        self.ending = Some(why);
        self.deadline.kill(Instant::now());
        self.act(Act::Kill);
    }
}
