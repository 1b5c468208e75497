//! Watches the command until it and what it left behind have ended, and says what there is to say of that.

use crate::enforce::child::Progress;
use crate::enforce::reaper::{Afterwards, Departing};
use crate::enforce::scratch::Scratch;
use crate::error::{Refusal, cannot};
use crate::plan::OnViolation;
use crate::report::Reporter;
use crate::run::case::Ways;
use crate::run::conclusion::{conclude, ended, tell_placeholders};
use crate::run::hindsight::Hindsight;
use crate::run::messages::{self, Closing};
use crate::run::supervised::{Going, Kept, Prospect, Signals, Started};
use crate::run::withheld::Withheld;
use crate::run::{Stop, hosts};
use crate::supervise::dispatch::Dispatcher;
use crate::supervise::hosts::Hosts;
use crate::supervise::judge::Judge;
use crate::supervise::output::{Diverted, Pumps};
use crate::supervise::published::Published;
use crate::supervise::terminal::Terminal;
use crate::supervise::violation::Violations;
use crate::supervise::{self, Caller, Ending, Summary, Task, Watch, memory};
use crate::sys::process::Pid;
use crate::sys::signal::{self, Disposition};
use crate::sys::{SyscallError, descriptor, privilege, seccomp};
use std::rc::Rc;

/// What says what there is to say about a run.
pub struct Voice<'r> {
    pub violations: Violations,
    pub closing: Option<Closing>,
    pub withheld: Withheld,
    pub reporter: Option<&'r mut Reporter>,
}

impl Voice<'_> {
    /// Whether somebody wants to know all that was written to the home.
    pub fn asks_for_all(&self) -> bool {
        self.closing.is_some() || self.reporter.is_some()
    }
}

/// What of a run is still to be removed, which takes longer than to tell how it ended. Dropped, it is gone.
#[derive(Default)]
pub struct Left {
    _departing: Option<Departing>,
    _scratch: [Option<Scratch>; 2],
    _afterwards: Afterwards,
}

/// A run whose command is about to be there: what was prepared for it, and who wants to know of it.
pub struct Run<'r> {
    pub prospect: Prospect,
    pub going: Going,
    pub signals: Signals,
    pub afterwards: Afterwards,
    pub kept: Kept,
    /// Who waits for the command from elsewhere.
    pub caller: Option<Caller>,
    /// Where that one does not wait for what is to be removed.
    pub left: Option<&'r mut Left>,
    pub voice: Voice<'r>,
}

/// Watches the command until it and what it left behind have ended, and says what there is to say.
pub fn follow(result: Result<Started, Stop>, run: Run<'_>) -> Result<i32, Stop> {
    let Run { prospect: Prospect { limits, case, publishing, hindsight }, going, kept, voice, .. } = run;
    let Voice { violations, closing, withheld, mut reporter } = voice;
    let Going { pumps, diverted, terminal, started } = going;
    // Whatever there is to say is said to the caller, not to ourselves.
    diverted.map_or(Ok(()), Diverted::restore).map_err(cannot("put standard output back"))?;
    let runs = |started: &Started| started.outcome.ready && started.outcome.failure.is_none();
    if !result.as_ref().is_ok_and(runs) {
        terminal.iter().for_each(|terminal| terminal.take_back(0));
    }
    let Started { watch, outcome, granted, presence } = available(result, &run.signals)?;
    let listener = outcome.listener.map(seccomp::own_listener);
    let (unheard, network) = (outcome.no_listener.clone(), outcome.network);
    let doors = outcome.doors.clone();
    if let Some(failure) = outcome.into_failure() {
        return Err(Refusal::from(failure).into());
    }
    hindsight.has_begun();
    if let Some(reporter) = &mut reporter {
        reporter.started(watch.command(), unheard.as_deref());
    }
    // It takes the rights that this process is going to give up.
    let published = publishing.map(|publishing| publishing.start(&doors)).transpose()?;
    if let Watch::Reaper(reaper) = &watch
        && run.afterwards.introduces
    {
        reaper.acquaint();
    }
    say_what_does_not_hold(&violations, unheard.as_deref(), pumps.as_ref());
    settle_in(&violations)?;
    let logs = case.on_violation == OnViolation::Log;
    let hosts = case.hosts.clone().map(|hosts| hosts::start(hosts, logs, &doors, kept.proxy)).transpose()?;
    let ways = Ways { network, hosts: hosts.clone() };
    let mut calls = case.dispatcher(granted, &watch, presence, ways, violations);
    let end = End {
        command: watch.command(),
        helpers: Helpers { hosts: hosts.clone(), published: published.clone() },
        hindsight,
        terminal: terminal.clone(),
        reporter,
        closing,
        withheld,
        left: run.left,
        scratch: [kept.scratch, kept.in_memory],
        afterwards: run.afterwards,
    };
    let task = Task {
        memory: limits.watched.map(|bytes| memory::Watch::new(watch.root(), bytes)),
        watch,
        listener,
        signals: run.signals.arriving,
        started,
        timeout: limits.timeout,
        kill_after: limits.kill_after,
        pumps,
        group: kept.group,
        keep_background: limits.keep_background,
        limits: limits.applied,
        hosts,
        published,
        caller: run.caller,
        terminal,
    };
    let summary = supervise::run(task, &mut calls);
    end.tell(summary, &mut calls).map_err(Stop::from)
}

/// What is to be done and said when the command has ended.
struct End<'r> {
    command: Pid,
    helpers: Helpers,
    hindsight: Hindsight,
    terminal: Option<Rc<Terminal>>,
    reporter: Option<&'r mut Reporter>,
    closing: Option<Closing>,
    withheld: Withheld,
    left: Option<&'r mut Left>,
    /// The scratch directory, and one in memory.
    scratch: [Option<Scratch>; 2],
    afterwards: Afterwards,
}

impl End<'_> {
    /// Ends what served the command, looks at what it has left, and says it.
    fn tell(
        self,
        mut summary: Result<Summary, SyscallError>,
        calls: &mut Dispatcher,
    ) -> Result<i32, Refusal> {
        // What is looked at meanwhile is outside, where none of the run's mounts are. A report counts what the reaper
        // used.
        let departing = summary.as_mut().ok().and_then(|summary| summary.departing.take());
        let departing = departing.filter(|_| self.reporter.is_none());
        calls.end();
        let judge = &mut calls.judge;
        let known = summary.as_ref().ok();
        // A command that ended by itself has left everything as it wants it.
        let is_by_itself = known.is_some_and(|summary| matches!(summary.ending, Ending::Exited(_)));
        // Who ends a run does not want to wait, and what goes on in the background may send more.
        let finishes = is_by_itself && known.is_some_and(|summary| !summary.kept_background);
        self.helpers.end(finishes, judge);
        let seen = self.hindsight.look(self.command, known, judge);
        if let Some(terminal) = self.terminal {
            terminal.take_back(self.command);
            if !is_by_itself {
                terminal.restore();
            }
        }
        let unanswered = std::mem::take(&mut judge.unanswered);
        let violations = &mut judge.violations;
        let has_table = self.reporter.as_ref().is_some_and(|reporter| reporter.shows());
        if let Some(reporter) = self.reporter {
            self.helpers.report(reporter);
            reporter.ended(summary.as_ref().ok(), violations);
            seen.report(reporter);
        }
        violations.sum_up();
        seen.findings().for_each(|line| violations.line(&line));
        let ([scratch, in_memory], afterwards) = (self.scratch, self.afterwards);
        let (scratch, afterwards) = match self.left {
            // Who asks from elsewhere need not wait for that.
            Some(left) => {
                *left =
                    Left { _departing: departing, _scratch: [scratch, in_memory], _afterwards: afterwards };
                (None, Afterwards::default())
            }
            None => {
                // What something is mounted on takes long to remove.
                drop(departing);
                (scratch, afterwards)
            }
        };
        let result = summary.map_err(cannot("supervise the command")).and_then(|summary| {
            let result = conclude(&summary, violations, scratch);
            let ending = summary.ending;
            if summary.interrupted && ending == Ending::Killed(libc::SIGINT) {
                signal::end_by(libc::SIGINT);
            }
            // That it was killed, and for what, has just been said.
            let crash = || summary.killed.is_none().then(|| messages::crash(ending))?;
            let left = (self.closing.is_some() || summary.has_daemon).then(|| ended(&summary)).flatten();
            let closing = self.closing.map(|closing| closing.line(ending)).or_else(crash);
            let lines = seen
                .hints(ending)
                .chain(self.withheld.lines(ending, violations, &unanswered))
                .chain(seen.written())
                .chain(left)
                .chain(closing);
            lines.for_each(|line| violations.line(&line));
            result
        });
        tell_placeholders(violations, &afterwards.placeholders.end());
        if !has_table {
            violations.total_up();
        }
        violations.finish();
        result
    }
}

/// The processes beside the supervisor that lead out of the run's network.
struct Helpers {
    hosts: Option<Rc<Hosts>>,
    published: Option<Rc<Published>>,
}

impl Helpers {
    /// Ends them, and says what they have to say. `finishes`: what the run has sent is passed on first.
    fn end(&self, finishes: bool, judge: &mut Judge) {
        self.hosts.iter().for_each(|hosts| hosts.end(finishes, judge));
        self.published.iter().for_each(|published| published.end(finishes, judge));
    }

    /// Records what went through them.
    fn report(&self, reporter: &mut Reporter) {
        self.hosts.iter().for_each(|hosts| reporter.reached(hosts));
        self.published.iter().for_each(|published| reporter.showed(published));
    }
}

/// What was started, unless the machine did not give it what was tried, and another attempt may do without.
fn available(result: Result<Started, Stop>, signals: &Signals) -> Result<Started, Stop> {
    let stop = match result {
        Ok(Started { outcome: Progress { missing: Some((missing, why)), .. }, .. })
        | Err(Stop::Unavailable(missing, why)) => Stop::Unavailable(missing, why),
        Ok(Started { outcome: Progress { no_overlays: Some(why), .. }, .. }) => Stop::NoOverlays(why),
        result => return result,
    };
    signals.give_back()?;
    Err(stop)
}

/// Says what was wished for and cannot be had in this run.
fn say_what_does_not_hold(violations: &Violations, unheard: Option<&str>, pumps: Option<&Pumps>) {
    if let Some(why) = unheard {
        violations.line(&format!(
            "violations are refused, but cannot be reported: {why} (a sandbox around \
            this one listens already)"
        ));
    }
    for name in pumps.iter().flat_map(|pumps| &pumps.terminals) {
        violations.line(&format!("{name} is a terminal; the output limit does not apply to it"));
    }
    for (name, kind) in pumps.iter().flat_map(|pumps| &pumps.open_behind) {
        violations.line(&format!(
            "{name} shares a {kind} with standard input; the output limit does not apply to what is written \
             through standard input"
        ));
    }
}

/// Gives up what only starting needed, and makes sure that the command can neither hold the supervisor up nor end it.
fn settle_in(violations: &Violations) -> Result<(), Refusal> {
    let _ = descriptor::release_standard();
    // The command may make itself the foreground of a terminal that stops whoever else writes to it (stty tostop).
    signal::dispose(libc::SIGTTOU, Disposition::Ignore).map_err(cannot("ignore SIGTTOU"))?;
    // Nor does output that a caller's limit has no room for end the supervisor, and the report with it.
    signal::dispose(libc::SIGXFSZ, Disposition::Ignore).map_err(cannot("ignore SIGXFSZ"))?;
    violations.never_wait();
    // What it does on the command's behalf the kernel judges as if the command did it.
    privilege::drop_capabilities().map_err(cannot("drop the supervisor's capabilities"))
}
