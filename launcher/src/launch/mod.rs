//! From a plan to a running, confined command.

pub mod cgroup;
pub mod child;
pub mod commands;
pub(crate) mod demands;
pub mod environment;
pub(crate) mod files;
pub mod gate;
pub mod guard;
pub mod landlock;
pub mod limits;
mod messages;
pub mod mounts;
pub mod namespaces;
pub mod plan;
pub mod policy;
pub mod question;
mod removal;
pub mod resolve;
mod rows;
pub mod scratch;
pub mod siblings;
mod steps;
pub mod token;
pub mod treatment;
pub mod within;

use crate::canary;
use crate::cli::Run;
use crate::cli::variables::{self, Loudness};
use crate::launch::child::{Failure, Outcome, Steps};
use crate::launch::guard::OnViolation;
use crate::launch::landlock::View;
use crate::launch::messages::Closing;
use crate::launch::namespaces::{Layout, Stubs};
use crate::launch::plan::Plan;
use crate::launch::policy::PathRule;
use crate::launch::scratch::Scratch;
use crate::profile::Source;
use crate::refusal::{NOT_EXECUTABLE, NOT_FOUND, REFUSED, Refusal};
use crate::report::Reporter;
use crate::supervise::broker::Broker;
use crate::supervise::census::Census;
use crate::supervise::devices::Null;
use crate::supervise::infer::Domain;
use crate::supervise::judge::{Judge, Strict};
use crate::supervise::output::{self, Diverted};
use crate::supervise::reaper::{Afterwards, Reaper, Unstarted};
use crate::supervise::repository::{Configs, Presence};
use crate::supervise::suggest::Adviser;
use crate::supervise::terminal::Terminal;
use crate::supervise::violation::{Show, Violations};
use crate::supervise::{self, Ending, Summary, Task, Watch, memory};
use crate::sys::signal::Disposition;
use crate::sys::{Failed, descriptor, privilege, process, seccomp, signal, stream};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// `sbx run`.
pub fn run(flags: Run) -> Result<i32, Refusal> {
    // Before anything is opened.
    let closed = descriptor::fill_standard().map_err(cannot("make sure of standard input and output"))?;
    let passable = plan::passable(&flags.pass_fd);
    let (mut reporter, opened) = Reporter::open(&flags);
    let result = passable.and(opened).and_then(|()| planned(&flags, closed, reporter.as_mut()));
    match reporter {
        Some(reporter) => reporter.finish(result),
        None => result,
    }
}

fn planned(flags: &Run, closed: Vec<i32>, mut reporter: Option<&mut Reporter>) -> Result<i32, Refusal> {
    if flags.verify {
        canary::verify(flags)?;
    }
    let mut said = Vec::new();
    match attempt(flags, closed.clone(), reporter.as_deref_mut(), None, &mut said) {
        Err(Stop::Unavailable(why)) => {
            attempt(flags, closed, reporter, Some(&why), &mut said).map_err(Refusal::from)
        }
        result => result.map_err(Refusal::from),
    }
}

/// Why a run did not start.
enum Stop {
    /// The machine does not give it namespaces.
    Unavailable(String),
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Refusal {
        match stop {
            Stop::Unavailable(why) => Refusal::new(format!("cannot make namespaces: {why}")),
            Stop::Refused(refusal) => refusal,
        }
    }
}

/// One run, from its plan on: with namespaces where they are wanted, unless they `failed` before.
fn attempt(
    flags: &Run,
    closed: Vec<i32>,
    mut reporter: Option<&mut Reporter>,
    failed: Option<&str>,
    said: &mut Vec<String>,
) -> Result<i32, Stop> {
    hear_of_children()?;
    // The lowest number that is free now is the notification descriptor's, where their number is limited.
    let spare = flags.max_open_files.is_some().then(|| stream::duplicate(0)).transpose();
    let spare = spare.map_err(cannot("keep a descriptor free"))?;
    let mut plan = plan::make(flags, failed)?;
    plan.spare = spare;
    if let Some(reporter) = &mut reporter {
        reporter.planned(&mut plan);
    }
    let loudness = variables::loudness(flags)?;
    let show = if loudness == Loudness::Quiet { Show::Nothing } else { Show::Lines };
    let violations = Violations::new(show);
    for remark in &plan.remarks {
        if !said.contains(remark) {
            violations.line(remark);
            said.push(remark.clone());
        }
    }
    let closing = (loudness == Loudness::Verbose).then(|| {
        violations.line(&messages::banner(&plan));
        Closing::new(&plan)
    });
    // Its secrets are in our environment and memory, which the command could read otherwise.
    privilege::undumpable().map_err(cannot("protect the supervisor's memory"))?;
    if flags.exec {
        return in_place(plan, closed).map_err(Stop::from);
    }
    can_end()?;
    supervised(plan, closed, violations, closing, reporter)
}

fn cannot(what: &'static str) -> impl FnOnce(Failed) -> Refusal {
    move |failed| Refusal::new(format!("cannot {what}: {failed}"))
}

/// Where a caller that does not wait for its children had SIGCHLD ignored, the kernel would tell of the end of ours neither
/// by a signal nor by a status.
pub fn hear_of_children() -> Result<(), Refusal> {
    signal::dispose(libc::SIGCHLD, Disposition::Default)
        .map(drop)
        .map_err(cannot("learn of the end of processes"))
}

/// Where a filter around us refuses to be asked about children nobody would learn of the end of the run, and where no
/// signals can be sent nobody could bring it about.
fn can_end() -> Result<(), Refusal> {
    process::can_wait().map_err(cannot("learn of the end of processes"))?;
    process::sends_signals().map_err(cannot("send signals, by which runs end"))
}

/// Becomes the command.
fn in_place(mut plan: Plan, closed: Vec<i32>) -> Result<i32, Refusal> {
    let limits = std::mem::take(&mut plan.limits);
    let (mut steps, view) = steps::lay_out(plan, &limits, closed, false, View::default())?;
    fill(&mut steps, view)?;
    let mut outcome = Outcome::default();
    child::run(&mut steps, &mut outcome);
    Err(outcome.failure.map_or_else(|| Refusal::new("cannot execute the command"), refusal))
}

/// Starts the command and waits for it.
fn supervised(
    mut plan: Plan,
    closed: Vec<i32>,
    violations: Violations,
    closing: Option<Closing>,
    mut reporter: Option<&mut Reporter>,
) -> Result<i32, Stop> {
    let layout = plan.namespaces.as_ref().ok().cloned();
    if let Some(layout) = &layout {
        namespaces::check_descriptors(&plan.pass)?;
        namespaces::check_files(&plan.pass, layout)?;
    }
    // The first process in a namespace is no command's to be. In log mode it may do whatever its profile says.
    let tree = plan.calls.needs_reaper() || layout.is_some() || plan.on_violation == OnViolation::Log;
    let scratch = plan.scratch.take();
    let name = plan.profile.name.clone();
    let own = (plan.profile.source != Source::BuiltIn).then(|| plan.profile.clone());
    let (denied, workspace) = (plan.denied_calls.clone(), plan.workspace.clone());
    let (mode, on_violation) = (plan.network.mode, plan.on_violation);
    let attributes = plan.attributes;
    let commands = plan.commands.take();
    let limits = std::mem::take(&mut plan.limits);
    let configs = layout.as_ref().is_some_and(|layout| !layout.configs.is_empty());
    let looks = attributes || configs || plan.watch_paths || plan.calls.notes() || limits.counted.is_some();
    // Where such calls are notified for their paths, they are no violations.
    let unsealed = (plan.watch_paths && on_violation != OnViolation::Log).then(|| on_violation.value());
    let strict = looks.then(|| Strict::new(plan.calls.clone(), unsealed));
    let listens = !plan.unconfined;
    let signals = supervise::watched_signals();
    let mask = signal::set_mask(&signals).map_err(cannot("block signals"))?;
    let watched = signal::descriptor(&signals).map_err(cannot("wait for signals"))?;
    let watch_paths = plan.watch_paths;
    let scoped = plan.paths.is_some() && plan.landlock >= landlock::Version::SCOPES && layout.is_none();
    // In log mode the ports are not restricted.
    let domain =
        Domain { network: steps::logged(&plan.network, plan.on_violation == OnViolation::Log), scoped };
    let (brokers, sockets) = (plan.calls.brokers(), plan.sockets.clone());
    let granted_write = plan.paths.iter().flatten().any(|rule| rule.rights.changes_files());
    let null = Null::new(plan.paths.as_deref(), plan.denied.clone());
    let closed_streams = closed.clone();
    let scratch_path = scratch.as_ref().map(Scratch::path);
    let view = View { layout: layout.as_deref(), scratch: scratch_path, ..View::default() };
    let (mut steps, view) = steps::lay_out(plan, &limits, closed, listens, view)?;
    let stubs = layout.as_ref().map(|layout| Stubs::make(&layout.stubs)).transpose()?;
    let presence = layout.as_ref().map(|layout| Presence::of(layout)).transpose()?.flatten().map(Rc::new);
    steps.mask = mask;
    let broken_pipe =
        signal::dispose(libc::SIGPIPE, Disposition::Ignore).map_err(cannot("ignore SIGPIPE"))?;
    steps.broken_pipe = broken_pipe;
    let afterwards = Afterwards {
        keep_background: limits.keep_background,
        scratch: scratch.as_ref().map(|scratch| scratch.path().to_path_buf()),
        group: limits.group.as_ref().map(|group| group.path().to_path_buf()),
        introduces: reporter.is_some() && layout.is_some(),
        stubs: stubs.unwrap_or_default(),
        presence: presence.clone(),
    };
    let diverted = limits.output.map(|cap| output::divert(cap, &closed_streams)).transpose();
    let (pumps, diverted) = diverted.map_err(cannot("lead the output through a pipe"))?.unzip();
    let terminal = Terminal::of_caller().map_err(cannot("remember the terminal"))?;
    let started = Instant::now();
    let result = start(steps, tree, &afterwards, view);
    // Whatever there is to say is said to the caller, not to ourselves.
    diverted.map_or(Ok(()), Diverted::restore).map_err(cannot("put standard output back"))?;
    let Started { watch, outcome, granted } = match result {
        Ok(Started { outcome: Outcome { unavailable: Some(why), .. }, .. }) | Err(Stop::Unavailable(why)) => {
            signal::set_mask(&mask).map_err(cannot("restore the signal mask"))?;
            signal::dispose(libc::SIGPIPE, broken_pipe).map_err(cannot("restore what SIGPIPE does"))?;
            return Err(Stop::Unavailable(why));
        }
        result => result?,
    };
    let listener = outcome.listener.map(seccomp::own_listener);
    let unheard = outcome.unheard.clone();
    if let Some(failure) = outcome.into_failure() {
        return Err(refusal(failure).into());
    }
    if let Some(reporter) = &mut reporter {
        reporter.started(watch.command(), unheard.as_deref());
        if let Watch::Reaper(reaper) = &watch {
            reaper.acquaint();
        }
    }
    if let Some(why) = unheard {
        violations.line(&format!("violations are refused, but cannot be reported: {why} (a sandbox around this one listens already)"));
    }
    for name in pumps.iter().flat_map(|pumps| &pumps.terminals) {
        violations.line(&format!("{name} is a terminal, so the limit of output does not hold for it"));
    }
    for (name, kind) in pumps.iter().flat_map(|pumps| &pumps.open_behind) {
        violations.line(&format!(
            "{name} is the {kind} that standard input is, so the limit of output does not hold for what is written to that"
        ));
    }
    let _ = descriptor::release_standard();
    // The command may make itself the foreground of a terminal that stops whoever else writes to it (stty tostop).
    signal::dispose(libc::SIGTTOU, Disposition::Ignore).map_err(cannot("ignore SIGTTOU"))?;
    // Nor does a line that a caller's limit has no room for end the supervisor, and the report with it.
    signal::dispose(libc::SIGXFSZ, Disposition::Ignore).map_err(cannot("ignore SIGXFSZ"))?;
    violations.never_wait();
    // What it does on the command's behalf the kernel judges as if the command did it.
    privilege::drop_capabilities().map_err(cannot("drop the supervisor's capabilities"))?;
    let mut adviser = Adviser::new(&name, mode, granted_write).with_denied(denied).with_workspace(workspace);
    adviser = adviser.with_commands(commands).with_layout(layout.clone());
    if let Some(profile) = own {
        adviser = adviser.with_profile(profile);
    }
    let mut judge = Judge {
        on_violation,
        strict,
        broker: brokers.then(|| Broker {
            granted: granted.clone(),
            named: sockets,
            layout: layout.clone(),
            own_network: mode == policy::Mode::Private,
        }),
        granted,
        domain,
        watch_paths,
        null,
        configs: configs_of(&watch, layout.as_ref(), presence),
        layout: layout.clone(),
        attributes,
        census: limits.counted.map(|count| Census::new(watch.root(), count)),
        adviser,
        violations,
    };
    let task = Task {
        memory: limits.watched.map(|bytes| memory::Watch::new(watch.root(), bytes)),
        watch,
        listener,
        signals: watched,
        started,
        timeout: limits.timeout,
        kill_after: limits.kill_after,
        pumps,
        group: limits.group,
        keep_background: limits.keep_background,
        limits: limits.applied,
    };
    let summary = supervise::run(task, &mut judge);
    // A command that ended by itself has left it as it wants it.
    let ended = summary.as_ref().is_ok_and(|summary| matches!(summary.ending, Ending::Exited(_)));
    if let Some(terminal) = terminal.filter(|_| !ended) {
        terminal.restore();
    }
    if let Some(reporter) = reporter {
        reporter.ended(summary.as_ref().ok(), &judge.violations);
    }
    let result = summary.map_err(cannot("supervise the command")).and_then(|summary| {
        judge.violations.sum_up();
        let result = conclude(&summary, &judge.violations, scratch);
        if let Some(closing) = closing {
            judge.violations.line(&closing.line(summary.ending));
        }
        result
    });
    for path in afterwards.stubs.end() {
        let path = supervise::decode::shown(&path);
        judge.violations.line(&format!(
            "'{path}', which kept that name from being made, could not be removed; a later run here will try again"
        ));
    }
    judge.violations.finish();
    result.map_err(Stop::from)
}

/// The configurations of git that may be replaced.
fn configs_of(watch: &Watch, layout: Option<&Rc<Layout>>, presence: Option<Rc<Presence>>) -> Option<Configs> {
    let Watch::Reaper(reaper) = watch else { return None };
    Some(Configs::new(layout?.clone(), presence?, reaper.pid))
}

/// Says why the command ended, where it is not plain to see.
fn conclude(summary: &Summary, violations: &Violations, scratch: Option<Scratch>) -> Result<i32, Refusal> {
    let limit =
        |name| summary.limits.iter().find(|applied| applied.limit == name).map_or(0, |applied| applied.value);
    match summary.ending {
        Ending::Lost => {
            violations.line(
                "the supervisor's helper was killed or could not go on, and so the command was ended too",
            );
        }
        Ending::Killed(libc::SIGSYS) => {
            violations.line("the filter ended the command: a system call of another architecture, or one that the profile kills for");
        }
        Ending::Killed(libc::SIGXCPU) if limit("cpu") > 0 => {
            let time = Duration::from_millis(limit("cpu"));
            violations.line(&format!(
                "the command used more than {time:?} of processor time; allow more with --max-cpu"
            ));
        }
        Ending::Killed(libc::SIGXFSZ) if limit("file_size") > 0 => {
            let bytes = limit("file_size");
            violations.line(&format!(
                "the command meant to write a file of more than {bytes} bytes; allow more with --max-file-size"
            ));
        }
        Ending::Timeout => {
            let time = Duration::from_millis(limit("timeout"));
            violations.line(&format!("ended the run: its time, {time:?}, was up; allow more with --timeout"));
        }
        Ending::Memory => {
            let bytes = limit("memory");
            violations.line(&format!(
                "ended the run: it used more than {bytes} bytes of memory; allow more with --max-memory"
            ));
        }
        Ending::Exited(_) | Ending::Killed(_) | Ending::Violation | Ending::OutputFailed => {}
    }
    if summary.kept_background
        && let Some(scratch) = scratch
    {
        violations.line(&format!(
            "what runs on in the background keeps its directory '{}'",
            supervise::decode::shown(&scratch.keep())
        ));
    }
    match &summary.failure {
        Some(sentence) => Err(Refusal::new(format!("{sentence}; the command was ended"))),
        None => Ok(summary.ending.status()),
    }
}

/// Adds the path rules to the ruleset; what was granted where is returned.
fn fill(steps: &mut Steps, view: View<'_>) -> Result<Vec<PathRule>, Refusal> {
    steps.landlock.as_mut().map_or(Ok(Vec::new()), |landlock| landlock.fill(view))
}

/// A child that was started.
struct Started {
    watch: Watch,
    outcome: Outcome,
    granted: Vec<PathRule>,
}

/// Starts the child, directly or below a reaper. The path rules are added while a reaper makes its namespaces.
fn start(mut steps: Steps, tree: bool, afterwards: &Afterwards, view: View<'_>) -> Result<Started, Stop> {
    if tree {
        return match Reaper::start(steps, afterwards, |steps| fill(steps, view)) {
            Ok((reaper, outcome, granted)) => Ok(Started { watch: Watch::Reaper(reaper), outcome, granted }),
            Err(Unstarted::Unavailable(failed)) => Err(Stop::Unavailable(failed.to_string())),
            Err(Unstarted::Failed(failed)) => Err(cannot("start the command")(failed).into()),
            Err(Unstarted::Refused(refusal)) => Err(refusal.into()),
        };
    }
    let granted = fill(&mut steps, view)?;
    steps.parent = Some(process::id());
    let mut outcome = Outcome::default();
    let pid = process::spawn_sharing(&mut || child::run(&mut steps, &mut outcome))
        .map_err(cannot("start the command"))?;
    if !outcome.ready || outcome.failure.is_some() {
        process::wait(Some(pid), true, false);
    }
    Ok(Started { watch: Watch::Direct(pid), outcome, granted })
}

/// The exit status for a step that failed: that of the exec is told by what is wrong with the file.
fn refusal(failure: Failure) -> Refusal {
    let code = match failure.exec_errno {
        Some(libc::ENOENT | libc::ENOTDIR) => NOT_FOUND,
        Some(_) => NOT_EXECUTABLE,
        None => REFUSED,
    };
    Refusal::with_code(code, failure.to_string())
}
