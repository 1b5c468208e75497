//! A run under a supervisor: the command is started, watched until it and what it left behind have ended, and
//! what there is to say of that is said.

use crate::enforce::EnforceError;
use crate::enforce::cgroup::Group;
use crate::enforce::child::{self, Progress, Steps};
use crate::enforce::landlock::{Report, View};
use crate::enforce::placeholders::Placeholders;
use crate::enforce::presence::Presence;
use crate::enforce::reaper::{Afterwards, Departing, Meanwhile, Reaper, Unstarted};
use crate::enforce::scratch::Scratch;
use crate::enforce::steps::{self, Parts};
use crate::error::{Refusal, cannot};
use crate::plan::limits::Limits;
use crate::plan::namespaces::{Layout, Missing};
use crate::plan::rules::PathRule;
use crate::plan::{OnViolation, Plan};
use crate::report::Reporter;
use crate::run::aftermath::home::HomeBefore;
use crate::run::aftermath::{self, Aftermath};
use crate::run::arguments::Arguments;
use crate::run::case::{Case, Ways};
use crate::run::compiling::Compiling;
use crate::run::conclusion::{conclude, tell_placeholders};
use crate::run::messages::Closing;
use crate::run::provide::Resources;
use crate::run::publish::Publishing;
use crate::run::signing::Signing;
use crate::run::withheld::Withheld;
use crate::run::{Stop, fill, hosts, proxy};
use crate::supervise::output::{self, Diverted, Pumps};
use crate::supervise::terminal::Terminal;
use crate::supervise::violation::Violations;
use crate::supervise::{self, Caller, Ending, Task, Watch, memory};
use crate::sys::namespace::{self, Own};
use crate::sys::signal::{self, Disposition, Set};
use crate::sys::{descriptor, privilege, process, seccomp, timer};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

/// Starts the command and waits for it.
pub fn run(plan: Plan, parts: Parts, resources: Resources, voice: Voice<'_>) -> Result<i32, Stop> {
    let prospect = Prospect::of(&plan, voice.asks_for_all())?;
    let signals = Signals::take()?;
    let closed_streams = parts.closed.clone();
    let mut laid = Laid::out(plan, parts, &signals, Presence::of)?;
    let (afterwards, kept) = laid.afterwards(resources, &prospect.limits, voice.reporter.is_some());
    let going = Going::begin(&prospect.limits, &closed_streams)?;
    let result = laid.start(&afterwards, |_, _| Ok(()));
    follow(result, (prospect, going, signals), (afterwards, kept), (None, None), voice)
}

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

/// What is noted of a plan, and of things as they are before the command starts.
pub struct Prospect {
    pub limits: Limits,
    home_before: Option<HomeBefore>,
    aftermath: Option<Aftermath>,
    case: Case,
    signing: Option<Signing>,
    compiling: Compiling,
    arguments: Option<Arguments>,
    publishing: Option<Publishing>,
}

impl Prospect {
    /// Of a plan.
    pub fn of(plan: &Plan, asks_for_all: bool) -> Result<Prospect, Refusal> {
        let aftermath = Aftermath::before(plan).transpose();
        Ok(Prospect {
            limits: plan.limits.clone(),
            home_before: HomeBefore::of(plan, asks_for_all),
            aftermath: aftermath.map_err(cannot("open the workspace, to look at it afterwards"))?,
            case: Case::of(plan, plan.namespaces.as_ref().ok().cloned()),
            signing: Signing::of(plan),
            compiling: Compiling::of(plan),
            arguments: Arguments::of(plan),
            publishing: (!plan.publish.is_empty()).then(|| Publishing::of(&plan.publish)).transpose()?,
        })
    }
}

/// What the child works on, laid out.
pub struct Laid {
    pub steps: Steps,
    pub presence: Option<Rc<Presence>>,
    layout: Option<Rc<Layout>>,
    absent: BTreeSet<OsString>,
    report: Report,
    /// Whether a reaper starts the command.
    pub tree: bool,
}

impl Laid {
    /// Of a plan. `come` makes the run's lock.
    pub fn out(
        mut plan: Plan,
        parts: Parts,
        signals: &Signals,
        come: impl FnOnce(&Layout) -> Result<Option<Presence>, EnforceError>,
    ) -> Result<Laid, EnforceError> {
        let layout = plan.namespaces.as_ref().ok().cloned();
        // The command must not be process 1 of its namespace, so a reaper is. In log mode the command may do whatever
        // its profile says.
        let tree = plan.calls.needs_reaper() || plan.own.is_some() || plan.on_violation == OnViolation::Log;
        let absent = std::mem::take(&mut plan.absent);
        let view = View { layout: layout.as_deref(), absent: Some(&absent), ..View::default() };
        let (mut steps, view) = steps::lay_out(plan, parts, view)?;
        let report = view.report;
        let presence = layout.as_deref().map(come).transpose()?.flatten().map(Rc::new);
        (steps.mask, steps.broken_pipe) = (signals.mask, signals.broken_pipe);
        Ok(Laid { steps, presence, layout, absent, report, tree })
    }

    /// What happens afterwards, and what the supervisor keeps until then.
    pub fn afterwards(
        &mut self,
        resources: Resources,
        limits: &Limits,
        is_reported: bool,
    ) -> (Afterwards, Kept) {
        let Resources { scratch, in_memory, group, home, proxy } = resources;
        let layout = self.layout.as_deref();
        let afterwards = Afterwards {
            keep_background: limits.keep_background,
            scratch: scratch.iter().chain(&in_memory).map(|scratch| scratch.path().to_path_buf()).collect(),
            group: group.as_ref().map(|group| group.path().to_path_buf()),
            introduces: is_reported && layout.is_some(),
            placeholders: layout.map(Placeholders::of).unwrap_or_default(),
            presence: self.presence.clone(),
            home,
        };
        (afterwards, Kept { scratch, _in_memory: in_memory, group, proxy })
    }

    /// Starts the child, directly or below a reaper. The path rules are added while a reaper makes its namespaces.
    /// `between` is called when all of them are; the reaper's child waits for it.
    pub fn start(
        self,
        afterwards: &Afterwards,
        mut between: impl FnMut(&mut Steps, Meanwhile) -> Result<(), Refusal>,
    ) -> Result<Started, Stop> {
        let Laid { mut steps, presence, layout, absent, report, tree } = self;
        let view = View { layout: layout.as_deref(), report, absent: Some(&absent) };
        if tree {
            let own = steps.own;
            let started = Reaper::start(steps, afterwards, |steps, meanwhile| {
                let granted = fill(steps, view)?;
                between(steps, meanwhile).map(|()| granted)
            });
            return match started {
                Ok((reaper, outcome, granted)) => {
                    Ok(Started { watch: Watch::Reaper(reaper), outcome, granted, presence })
                }
                Err(Unstarted::Unsupported(failed)) => {
                    Err(Stop::Unavailable(missing(own), failed.to_string()))
                }
                Err(Unstarted::Failed(failed)) => Err(cannot("start the command")(failed).into()),
                Err(Unstarted::Refused(refusal)) => Err(refusal.into()),
            };
        }
        let granted = fill(&mut steps, view)?;
        steps.parent = Some(process::id());
        let mut outcome = Progress::default();
        let pid = process::spawn_sharing(&mut || child::run(&mut steps, &mut outcome))
            .map_err(cannot("start the command"))?;
        if !outcome.ready || outcome.failure.is_some() {
            process::wait(Some(pid), true, false);
        }
        Ok(Started { watch: Watch::Direct(pid), outcome, granted, presence })
    }
}

/// What the supervisor keeps until the run has ended.
pub struct Kept {
    scratch: Option<Scratch>,
    _in_memory: Option<Scratch>,
    group: Option<Group>,
    proxy: Option<proxy::Sockets>,
}

/// What of a run is still to be removed, which takes longer than to tell how it ended. Dropped, it is gone.
#[derive(Default)]
pub struct Left {
    _departing: Option<Departing>,
    _scratch: [Option<Scratch>; 2],
    _afterwards: Afterwards,
}

/// What begins with the command.
pub struct Going {
    pumps: Option<Pumps>,
    diverted: Option<Diverted>,
    terminal: Option<Terminal>,
    started: Instant,
}

impl Going {
    /// Now.
    pub fn begin(limits: &Limits, closed_streams: &[i32]) -> Result<Going, Refusal> {
        let diverted = limits.output.map(|cap| output::divert(cap, closed_streams)).transpose();
        let (pumps, diverted) = diverted.map_err(cannot("lead the output through a pipe"))?.unzip();
        let terminal = Terminal::of_caller().map_err(cannot("remember the terminal"))?;
        let started = Instant::now();
        // Before there is a command that could stop us.
        limits.timeout.map_or(Ok(()), timer::continue_after).map_err(cannot("start the clock"))?;
        Ok(Going { pumps, diverted, terminal, started })
    }
}

/// A child that was started.
pub struct Started {
    watch: Watch,
    pub outcome: Progress,
    granted: Vec<PathRule>,
    presence: Option<Rc<Presence>>,
}

/// Watches the command until it and what it left behind have ended, and says what there is to say.
pub fn follow(
    result: Result<Started, Stop>,
    (prospect, going, signals): (Prospect, Going, Signals),
    (afterwards, kept): (Afterwards, Kept),
    (caller, left): (Option<Caller>, Option<&mut Left>),
    Voice { violations, closing, withheld, mut reporter }: Voice<'_>,
) -> Result<i32, Stop> {
    let Prospect { limits, home_before, aftermath, case, signing, compiling, arguments, publishing } =
        prospect;
    let Going { pumps, diverted, terminal, started } = going;
    let Kept { scratch, _in_memory: in_memory, group, proxy } = kept;
    // Whatever there is to say is said to the caller, not to ourselves.
    diverted.map_or(Ok(()), Diverted::restore).map_err(cannot("put standard output back"))?;
    let Started { watch, outcome, granted, presence } = match result {
        Ok(Started { outcome: Progress { missing: Some((missing, why)), .. }, .. })
        | Err(Stop::Unavailable(missing, why)) => {
            signals.give_back()?;
            return Err(Stop::Unavailable(missing, why));
        }
        Ok(Started { outcome: Progress { no_overlays: Some(why), .. }, .. }) => {
            signals.give_back()?;
            return Err(Stop::NoOverlays(why));
        }
        result => result?,
    };
    let listener = outcome.listener.map(seccomp::own_listener);
    let (unheard, network) = (outcome.no_listener.clone(), outcome.network);
    let doors = outcome.doors.clone();
    if let Some(failure) = outcome.into_failure() {
        return Err(Refusal::from(failure).into());
    }
    // It takes the rights that this process is going to give up.
    let published = publishing.map(|publishing| publishing.start(&doors)).transpose()?;
    if let Some(reporter) = &mut reporter {
        reporter.started(watch.command(), unheard.as_deref());
    }
    if let Watch::Reaper(reaper) = &watch
        && afterwards.introduces
    {
        reaper.acquaint();
    }
    say_what_does_not_hold(&violations, unheard.as_deref(), pumps.as_ref());
    settle_in(&violations)?;
    let logs = case.on_violation == OnViolation::Log;
    let hosts = case.hosts.clone().map(|hosts| hosts::start(hosts, logs, &doors, proxy)).transpose()?;
    let ways = Ways { network, hosts: hosts.clone() };
    let mut calls = case.dispatcher(granted, &watch, presence, ways, violations);
    let task = Task {
        memory: limits.watched.map(|bytes| memory::Watch::new(watch.root(), bytes)),
        watch,
        listener,
        signals: signals.arriving,
        started,
        timeout: limits.timeout,
        kill_after: limits.kill_after,
        pumps,
        group,
        keep_background: limits.keep_background,
        limits: limits.applied,
        hosts: hosts.clone(),
        published: published.clone(),
        caller,
    };
    let command = arguments.as_ref().map_or(0, |_| task.watch.command());
    let mut summary = supervise::run(task, &mut calls);
    // What is looked at meanwhile is outside, where none of the run's mounts are. A report counts what the reaper used.
    let departing = summary.as_mut().ok().and_then(|summary| summary.departing.take());
    let departing = departing.filter(|_| reporter.is_none());
    calls.end();
    hosts.iter().for_each(|hosts| hosts.end(&mut calls.judge));
    published.iter().for_each(|published| published.end(&mut calls.judge));
    if let Some((arguments, summary)) = arguments.zip(summary.as_ref().ok()) {
        arguments.tell(summary, command, &mut calls.judge);
    }
    let found = aftermath.map(Aftermath::after).unwrap_or_default();
    // A command that ended by itself has left it as it wants it.
    let ended = summary.as_ref().is_ok_and(|summary| matches!(summary.ending, Ending::Exited(_)));
    if let Some(terminal) = terminal.filter(|_| !ended) {
        terminal.restore();
    }
    let has_table = reporter.as_ref().is_some_and(|reporter| reporter.shows());
    let written = home_before.map(HomeBefore::written).unwrap_or_default();
    if let Some(reporter) = reporter {
        reporter.wrote_home(written.paths.iter().map(|path| path.as_path().into()).collect(), written.more);
        hosts.iter().for_each(|hosts| reporter.reached(hosts));
        published.iter().for_each(|published| reporter.showed(published));
        reporter.ended(summary.as_ref().ok(), &calls.judge.violations);
        reporter.looked(found.findings.clone(), found.failures.clone());
    }
    calls.judge.violations.sum_up();
    let found = found.findings.iter().map(aftermath::line).chain(found.failures.iter().cloned());
    found.for_each(|line| calls.judge.violations.line(&line));
    let (scratch, afterwards) = match left {
        // Who asks from elsewhere need not wait for that.
        Some(left) => {
            let scratch = [scratch, in_memory];
            *left = Left { _departing: departing, _scratch: scratch, _afterwards: afterwards };
            (None, Afterwards::default())
        }
        None => {
            // What something is mounted on takes long to remove.
            drop(departing);
            (scratch, afterwards)
        }
    };
    let result = summary.map_err(cannot("supervise the command")).and_then(|summary| {
        let result = conclude(&summary, &calls.judge.violations, scratch);
        let hint = signing.and_then(|signing| signing.hint(summary.ending));
        hint.iter().for_each(|hint| calls.judge.violations.line(hint));
        compiling.hint(summary.ending).iter().for_each(|hint| calls.judge.violations.line(hint));
        withheld.lines(summary.ending).iter().for_each(|line| calls.judge.violations.line(line));
        written.line().iter().for_each(|line| calls.judge.violations.line(line));
        if let Some(closing) = closing {
            calls.judge.violations.line(&closing.line(summary.ending));
        }
        result
    });
    tell_placeholders(&calls.judge.violations, &afterwards.placeholders.end());
    if !has_table {
        calls.judge.violations.total_up();
    }
    calls.judge.violations.finish();
    result.map_err(Stop::from)
}

/// The signals as the supervisor has them, and as the caller had them, which is how the command gets them.
pub struct Signals {
    pub mask: Set,
    broken_pipe: Disposition,
    arriving: OwnedFd,
}

impl Signals {
    /// From now on.
    pub fn take() -> Result<Signals, Refusal> {
        let watched = supervise::watched_signals();
        let mask = signal::set_mask(&watched).map_err(cannot("block signals"))?;
        let arriving = signal::descriptor(&watched).map_err(cannot("wait for signals"))?;
        let broken_pipe =
            signal::dispose(libc::SIGPIPE, Disposition::Ignore).map_err(cannot("ignore SIGPIPE"))?;
        Ok(Signals { mask, broken_pipe, arriving })
    }

    /// As the caller had them.
    pub fn give_back(&self) -> Result<(), Refusal> {
        signal::set_mask(&self.mask).map_err(cannot("restore the signal mask"))?;
        signal::dispose(libc::SIGPIPE, self.broken_pipe)
            .map(drop)
            .map_err(cannot("restore what SIGPIPE does"))
    }
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

/// Which of the namespaces that could not be made together cannot be made by themselves either.
fn missing(own: Option<Own>) -> Missing {
    let Some(Own { kinds, .. }) = own.filter(|own| own.kinds.view && own.kinds.network) else {
        return Missing::Both;
    };
    // An administrator may need a user namespace for the network alone.
    let user = kinds.user && !privilege::is_administrator();
    if namespace::can_make(namespace::Kinds { view: false, ..kinds }) {
        Missing::View
    } else if namespace::can_make(namespace::Kinds { user, network: false, ..kinds }) {
        Missing::Network
    } else {
        Missing::Both
    }
}
