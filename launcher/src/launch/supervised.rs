//! A run under a supervisor: the command is started, watched until it and what it left behind have ended, and what there is
//! to say of that is said.

use super::conclusion::{conclude, tell_stubs};
use super::messages::Closing;
use super::{Stop, cannot, fill, landlock, refusal, steps};
use crate::launch::child::{self, Outcome, Steps};
use crate::launch::commands::Commands;
use crate::launch::guard::OnViolation;
use crate::launch::landlock::View;
use crate::launch::namespaces::{self, Layout, Stubs};
use crate::launch::plan::Plan;
use crate::launch::policy::{Mode, PathRule};
use crate::launch::scratch::Scratch;
use crate::profile::{Profile, Source};
use crate::refusal::Refusal;
use crate::report::Reporter;
use crate::supervise::broker::Broker;
use crate::supervise::census::Census;
use crate::supervise::devices::Null;
use crate::supervise::infer::Domain;
use crate::supervise::judge::{Judge, Strict};
use crate::supervise::output::{self, Diverted, Pumps};
use crate::supervise::reaper::{Afterwards, Reaper, Unstarted};
use crate::supervise::repository::{Configs, Presence};
use crate::supervise::suggest::Adviser;
use crate::supervise::terminal::Terminal;
use crate::supervise::violation::Violations;
use crate::supervise::{self, Ending, Task, Watch, memory};
use crate::sys::signal::{Disposition, Set};
use crate::sys::{descriptor, privilege, process, seccomp, signal};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

/// Starts the command and waits for it.
pub fn run(
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
    let limits = std::mem::take(&mut plan.limits);
    let case = Case::of(&mut plan, layout.clone(), limits.counted.is_some());
    let listens = !plan.unconfined;
    let signals = Signals::take()?;
    let closed_streams = closed.clone();
    let scratch_path = scratch.as_ref().map(Scratch::path);
    let view = View { layout: layout.as_deref(), scratch: scratch_path, ..View::default() };
    let (mut steps, view) = steps::lay_out(plan, &limits, closed, listens, view)?;
    let stubs = layout.as_ref().map(|layout| Stubs::make(&layout.stubs)).transpose()?;
    let presence = layout.as_ref().map(|layout| Presence::of(layout)).transpose()?.flatten().map(Rc::new);
    (steps.mask, steps.broken_pipe) = (signals.mask, signals.broken_pipe);
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
            signals.give_back()?;
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
    say_what_does_not_hold(&violations, unheard.as_deref(), pumps.as_ref());
    settle_in(&violations)?;
    let configs = configs_of(&watch, layout.as_ref(), presence);
    let census = limits.counted.map(|count| Census::new(watch.root(), count));
    let mut judge = case.judge(&name, granted, configs, census, violations);
    let task = Task {
        memory: limits.watched.map(|bytes| memory::Watch::new(watch.root(), bytes)),
        watch,
        listener,
        signals: signals.arriving,
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
    tell_stubs(&judge.violations, &afterwards.stubs.end());
    judge.violations.finish();
    result.map_err(Stop::from)
}

/// The signals as the supervisor has them, and as the caller had them, which is how the command gets them.
struct Signals {
    mask: Set,
    broken_pipe: Disposition,
    arriving: OwnedFd,
}

impl Signals {
    fn take() -> Result<Signals, Refusal> {
        let watched = supervise::watched_signals();
        let mask = signal::set_mask(&watched).map_err(cannot("block signals"))?;
        let arriving = signal::descriptor(&watched).map_err(cannot("wait for signals"))?;
        let broken_pipe =
            signal::dispose(libc::SIGPIPE, Disposition::Ignore).map_err(cannot("ignore SIGPIPE"))?;
        Ok(Signals { mask, broken_pipe, arriving })
    }

    fn give_back(&self) -> Result<(), Refusal> {
        signal::set_mask(&self.mask).map_err(cannot("restore the signal mask"))?;
        signal::dispose(libc::SIGPIPE, self.broken_pipe)
            .map(drop)
            .map_err(cannot("restore what SIGPIPE does"))
    }
}

/// What whoever judges the calls of a run has to know of its plan, which the start uses up.
struct Case {
    /// The profile, where it is not a built-in one.
    own: Option<Profile>,
    workspace: Option<PathBuf>,
    denied_calls: Vec<String>,
    commands: Option<Rc<Commands>>,
    layout: Option<Rc<Layout>>,
    mode: Mode,
    on_violation: OnViolation,
    attributes: bool,
    watch_paths: bool,
    granted_write: bool,
    /// Whether connections are the supervisor's to make.
    brokers: bool,
    sockets: Vec<PathBuf>,
    strict: Option<Strict>,
    domain: Domain,
    null: Null,
}

impl Case {
    /// Of this plan; `counts` where the supervisor counts tasks.
    fn of(plan: &mut Plan, layout: Option<Rc<Layout>>, counts: bool) -> Case {
        let logs = plan.on_violation == OnViolation::Log;
        let configs = layout.as_ref().is_some_and(|layout| !layout.configs.is_empty());
        let looks = plan.attributes || configs || plan.watch_paths || plan.calls.notes() || counts;
        // Where such calls are notified for their paths, they are no violations.
        let unsealed = (plan.watch_paths && !logs).then(|| plan.on_violation.value());
        let scoped = plan.paths.is_some() && plan.landlock >= landlock::Version::SCOPES && layout.is_none();
        Case {
            own: (plan.profile.source != Source::BuiltIn).then(|| plan.profile.clone()),
            workspace: plan.workspace.clone(),
            denied_calls: plan.denied_calls.clone(),
            commands: plan.commands.take(),
            mode: plan.network.mode,
            on_violation: plan.on_violation,
            attributes: plan.attributes,
            watch_paths: plan.watch_paths,
            granted_write: plan.paths.iter().flatten().any(|rule| rule.rights.changes_files()),
            brokers: plan.calls.brokers(),
            sockets: plan.sockets.clone(),
            strict: looks.then(|| Strict::new(plan.calls.clone(), unsealed)),
            // In log mode the ports are not restricted.
            domain: Domain { network: steps::logged(&plan.network, logs), scoped },
            null: Null::new(plan.paths.as_deref(), plan.denied.clone()),
            layout,
        }
    }

    /// Who judges, now that the command has started.
    fn judge(
        self,
        profile: &str,
        granted: Vec<PathRule>,
        configs: Option<Configs>,
        census: Option<Census>,
        violations: Violations,
    ) -> Judge<'_> {
        let mut adviser = Adviser::new(profile, self.mode, self.granted_write)
            .with_denied(self.denied_calls)
            .with_workspace(self.workspace)
            .with_commands(self.commands)
            .with_layout(self.layout.clone());
        if let Some(own) = self.own {
            adviser = adviser.with_profile(own);
        }
        Judge {
            on_violation: self.on_violation,
            strict: self.strict,
            broker: self.brokers.then(|| Broker {
                granted: granted.clone(),
                named: self.sockets,
                layout: self.layout.clone(),
                own_network: self.mode == Mode::Private,
            }),
            granted,
            domain: self.domain,
            watch_paths: self.watch_paths,
            null: self.null,
            configs,
            layout: self.layout,
            attributes: self.attributes,
            census,
            adviser,
            violations,
        }
    }
}

/// Says what was wished for and cannot be had in this run.
fn say_what_does_not_hold(violations: &Violations, unheard: Option<&str>, pumps: Option<&Pumps>) {
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
}

/// Gives up what only starting needed, and makes sure that the command can neither hold the supervisor up nor end it.
fn settle_in(violations: &Violations) -> Result<(), Refusal> {
    let _ = descriptor::release_standard();
    // The command may make itself the foreground of a terminal that stops whoever else writes to it (stty tostop).
    signal::dispose(libc::SIGTTOU, Disposition::Ignore).map_err(cannot("ignore SIGTTOU"))?;
    // Nor does a line that a caller's limit has no room for end the supervisor, and the report with it.
    signal::dispose(libc::SIGXFSZ, Disposition::Ignore).map_err(cannot("ignore SIGXFSZ"))?;
    violations.never_wait();
    // What it does on the command's behalf the kernel judges as if the command did it.
    privilege::drop_capabilities().map_err(cannot("drop the supervisor's capabilities"))
}

/// The configurations of git that may be replaced.
fn configs_of(watch: &Watch, layout: Option<&Rc<Layout>>, presence: Option<Rc<Presence>>) -> Option<Configs> {
    let Watch::Reaper(reaper) = watch else { return None };
    Some(Configs::new(layout?.clone(), presence?, reaper.pid))
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
