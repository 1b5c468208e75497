//! A run under a supervisor: the command is started, watched until it and what it left behind have ended, and
//! what there is to say of that is said.

use crate::enforce::child::{self, Progress, Steps};
use crate::enforce::landlock::View;
use crate::enforce::placeholders::Placeholders;
use crate::enforce::presence::Presence;
use crate::enforce::reaper::{Afterwards, Reaper, Unstarted};
use crate::enforce::steps::{self, Parts};
use crate::error::{Refusal, cannot};
use crate::explain::hint::Explainer;
use crate::explain::infer::Domain;
use crate::host::landlock::Version;
use crate::plan::calls::Calls;
use crate::plan::namespaces::{Layout, Missing};
use crate::plan::notified::{Kinds, Notified};
use crate::plan::rules::PathRule;
use crate::plan::variables::Loudness;
use crate::plan::{OnViolation, Plan, network};
use crate::profile::NetworkMode;
use crate::report::Reporter;
use crate::run::aftermath::home::HomeBefore;
use crate::run::aftermath::{self, Aftermath};
use crate::run::arguments::Arguments;
use crate::run::compiling::Compiling;
use crate::run::conclusion::{conclude, tell_placeholders};
use crate::run::messages::Closing;
use crate::run::provide::Resources;
use crate::run::publish::Publishing;
use crate::run::signing::Signing;
use crate::run::withheld::Withheld;
use crate::run::{Stop, fill, hosts};
use crate::supervise::dispatch::{Dispatcher, Table};
use crate::supervise::handlers::attributes::Attributes;
use crate::supervise::handlers::connect::{Connected, Connections};
use crate::supervise::handlers::datagram_pairs::DatagramPairs;
use crate::supervise::handlers::git_config::Configs;
use crate::supervise::handlers::links::Links;
use crate::supervise::handlers::null_device::NullDevice;
use crate::supervise::handlers::ports::Ports;
use crate::supervise::handlers::refused_paths::{Refusals, RefusedPaths};
use crate::supervise::handlers::task_limit::TaskLimiter;
use crate::supervise::handlers::told::Told;
use crate::supervise::hosts::Hosts;
use crate::supervise::judge::{Judge, PolicyProgram};
use crate::supervise::output::{self, Diverted, Pumps};
use crate::supervise::terminal::Terminal;
use crate::supervise::violation::Violations;
use crate::supervise::{self, Ending, Task, Watch, memory};
use crate::sys::namespace::{self, Own};
use crate::sys::privilege::{CapabilitySet, Limit};
use crate::sys::signal::{self, Disposition, Set};
use crate::sys::{descriptor, privilege, process, seccomp, timer};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

/// Starts the command and waits for it.
pub fn run(
    mut plan: Plan,
    parts: Parts,
    resources: Resources,
    violations: Violations,
    (closing, withheld): (Option<Closing>, Withheld),
    mut reporter: Option<&mut Reporter>,
) -> Result<i32, Stop> {
    let layout = plan.namespaces.as_ref().ok().cloned();
    // The command must not be process 1 of its namespace, so a reaper is. In log mode the command may do whatever its
    // profile says.
    let tree = plan.calls.needs_reaper() || plan.own.is_some() || plan.on_violation == OnViolation::Log;
    let Resources { scratch, in_memory, group, home, proxy } = resources;
    let limits = plan.limits.clone();
    let home_before = HomeBefore::of(&plan, closing.is_some() || reporter.is_some());
    let aftermath = Aftermath::before(&plan).transpose();
    let aftermath = aftermath.map_err(cannot("open the workspace, to look at it afterwards"))?;
    let case = Case::of(&plan, layout.clone());
    let signing = Signing::of(&plan);
    let compiling = Compiling::of(&plan);
    let arguments = Arguments::of(&plan);
    let publishing = (!plan.publish.is_empty()).then(|| Publishing::of(&plan.publish)).transpose()?;
    let signals = Signals::take()?;
    let closed_streams = parts.closed.clone();
    let absent = std::mem::take(&mut plan.absent);
    let view = View { layout: layout.as_deref(), absent: Some(&absent), ..View::default() };
    let (mut steps, view) = steps::lay_out(plan, parts, view)?;
    let presence = layout.as_ref().map(|layout| Presence::of(layout)).transpose()?.flatten().map(Rc::new);
    (steps.mask, steps.broken_pipe) = (signals.mask, signals.broken_pipe);
    let afterwards = Afterwards {
        keep_background: limits.keep_background,
        scratch: scratch.iter().chain(&in_memory).map(|scratch| scratch.path().to_path_buf()).collect(),
        group: group.as_ref().map(|group| group.path().to_path_buf()),
        introduces: reporter.is_some() && layout.is_some(),
        placeholders: layout.as_deref().map(Placeholders::of).unwrap_or_default(),
        presence: presence.clone(),
        home,
    };
    let diverted = limits.output.map(|cap| output::divert(cap, &closed_streams)).transpose();
    let (pumps, diverted) = diverted.map_err(cannot("lead the output through a pipe"))?.unzip();
    let terminal = Terminal::of_caller().map_err(cannot("remember the terminal"))?;
    let started = Instant::now();
    // Before there is a command that could stop us.
    limits.timeout.map_or(Ok(()), timer::continue_after).map_err(cannot("start the clock"))?;
    let result = start(steps, tree, &afterwards, view);
    // Whatever there is to say is said to the caller, not to ourselves.
    diverted.map_or(Ok(()), Diverted::restore).map_err(cannot("put standard output back"))?;
    let Started { watch, outcome, granted } = match result {
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
        if let Watch::Reaper(reaper) = &watch {
            reaper.acquaint();
        }
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
    };
    let command = task.watch.command();
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
    // What something is mounted on takes long to remove.
    drop(departing);
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

/// What a network of the run's own is known by, and what leads out of it.
struct Ways {
    /// Its cookie.
    network: Option<u64>,
    hosts: Option<Rc<Hosts>>,
}

/// What answering notified calls takes of a plan, which the start uses up.
struct Case {
    explainer: Explainer,
    layout: Option<Rc<Layout>>,
    mode: NetworkMode,
    /// Whether the supervisor has UNIX sockets wait for connections.
    listens: bool,
    own_network: bool,
    hosts: Option<Rc<network::Hosts>>,
    on_violation: OnViolation,
    /// Whether refused paths are named although a program does without them.
    names_at_once: bool,
    notified: Kinds,
    /// How many tasks there may be, where the supervisor counts them.
    counted: Option<u64>,
    sockets: Vec<PathBuf>,
    calls: Rc<Calls>,
    program: Option<PolicyProgram>,
    domain: Domain,
    /// The capabilities that the user has outside.
    outside: CapabilitySet,
    null_device: NullDevice,
}

impl Case {
    fn of(plan: &Plan, layout: Option<Rc<Layout>>) -> Case {
        let logs = plan.on_violation == OnViolation::Log;
        let notified = plan.notified();
        let looks = notified.iter().any(Notified::notifies_allowed) || plan.calls.notes();
        // Where such calls are notified for their paths, they are no violations.
        let notes_all = plan.watch_paths || notified.has(Notified::Memory);
        let unsealed = (notes_all && !logs).then(|| plan.on_violation.value());
        let scoped = plan.paths.is_some() && plan.landlock >= Version::SCOPES && layout.is_none();
        Case {
            explainer: Explainer::of(plan),
            mode: plan.network.mode,
            listens: plan.calls.supervisor_listens(),
            own_network: plan.network.namespace,
            hosts: plan.network.hosts.clone(),
            on_violation: plan.on_violation,
            names_at_once: logs || plan.loudness == Loudness::Verbose,
            notified,
            counted: plan.limits.counted,
            sockets: plan.sockets.clone(),
            calls: plan.calls.clone(),
            program: looks.then(|| PolicyProgram::new(plan.calls.clone(), unsealed)),
            // In log mode the ports are not restricted.
            domain: Domain {
                version: plan.landlock,
                network: steps::logged(&plan.network, logs),
                memory: plan.limits.resource(Limit::Data),
                files: plan.limits.resource(Limit::OpenFiles),
                scoped,
            },
            outside: plan.outside,
            null_device: NullDevice::new(plan.paths.as_deref(), plan.denied.clone()),
            layout,
        }
    }

    /// Who answers notified calls, now that the command has started.
    fn dispatcher(
        self,
        granted: Vec<PathRule>,
        watch: &Watch,
        presence: Option<Rc<Presence>>,
        ways: Ways,
        violations: Violations,
    ) -> Dispatcher {
        let table = self.handlers(granted.into(), watch, presence, &ways);
        let judge = Judge {
            on_violation: self.on_violation,
            program: self.program,
            network: self.mode,
            explainer: self.explainer,
            violations,
        };
        Dispatcher::new(judge, table)
    }

    /// The handlers of the kinds of calls that the run has.
    fn handlers(
        &self,
        granted: Rc<[PathRule]>,
        watch: &Watch,
        presence: Option<Rc<Presence>>,
        ways: &Ways,
    ) -> Table {
        let mut table = Table::default();
        for kind in self.notified.iter() {
            let (granted, layout) = (granted.clone(), self.layout.clone());
            match kind {
                Notified::Tasks => {
                    let limiter = self.counted.map(|count| TaskLimiter::new(watch.root(), count));
                    limiter.into_iter().for_each(|limiter| table.register(kind, limiter));
                }
                Notified::GitConfig => {
                    let configs = configs_of(watch, layout.as_ref(), presence.clone());
                    configs.into_iter().for_each(|configs| table.register(kind, configs));
                }
                Notified::Connect => {
                    let named = self.sockets.clone();
                    let own_network = self.own_network.then_some(ways.network);
                    let network = Connected::of(self.mode, own_network);
                    let domain = self.domain.clone();
                    let (network, hosts) = ((network, self.listens), ways.hosts.clone());
                    let connections = Connections::new(granted, named, layout, network, domain, hosts);
                    table.register(kind, connections);
                }
                Notified::DatagramPairs => {
                    let maker = match watch {
                        Watch::Reaper(reaper) => reaper.pairs().cloned(),
                        Watch::Direct(_) => None,
                    };
                    table.register(kind, DatagramPairs::new(self.calls.clone(), maker));
                }
                Notified::NullDevice => table.register(kind, self.null_device.clone()),
                Notified::Attributes => table.register(kind, Attributes { granted, layout }),
                Notified::Ports => {
                    let (domain, outside) = (self.domain.clone(), self.outside);
                    table.register(kind, Ports(RefusedPaths { granted, layout, domain, outside }));
                }
                Notified::Links => table.register(kind, Links::new(granted, layout, self.calls.clone())),
                Notified::Told => {
                    let (domain, outside) = (self.domain.clone(), self.outside);
                    let paths = RefusedPaths { granted, layout, domain, outside };
                    let all = self.notified.has(Notified::RefusedPaths);
                    table.register(kind, Told::new(paths, self.calls.clone(), all));
                }
                // Refused paths are looked at by the same handler.
                Notified::Memory if self.notified.has(Notified::RefusedPaths) => {}
                Notified::Memory | Notified::RefusedPaths => {
                    let (domain, outside) = (self.domain.clone(), self.outside);
                    let paths = RefusedPaths { granted, layout, domain, outside };
                    table.register(kind, Refusals::new(paths, self.names_at_once));
                }
            }
        }
        table
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

/// A child that was started.
struct Started {
    watch: Watch,
    outcome: Progress,
    granted: Vec<PathRule>,
}

/// Starts the child, directly or below a reaper. The path rules are added while a reaper makes its namespaces.
fn start(mut steps: Steps, tree: bool, afterwards: &Afterwards, view: View<'_>) -> Result<Started, Stop> {
    if tree {
        let own = steps.own;
        return match Reaper::start(steps, afterwards, |steps| fill(steps, view)) {
            Ok((reaper, outcome, granted)) => Ok(Started { watch: Watch::Reaper(reaper), outcome, granted }),
            Err(Unstarted::Unsupported(failed)) => Err(Stop::Unavailable(missing(own), failed.to_string())),
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
    Ok(Started { watch: Watch::Direct(pid), outcome, granted })
}
