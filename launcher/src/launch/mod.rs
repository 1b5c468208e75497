//! From a plan to a running, confined command.

pub mod cgroup;
pub mod child;
pub mod commands;
pub(crate) mod demands;
pub mod environment;
pub(crate) mod files;
pub mod guard;
pub mod landlock;
pub mod limits;
mod messages;
pub mod plan;
pub mod policy;
pub mod question;
mod removal;
pub mod resolve;
mod rows;
pub mod scratch;
mod siblings;
pub mod token;
pub mod treatment;

use crate::canary;
use crate::cli::Run;
use crate::cli::variables::{self, Loudness};
use crate::launch::cgroup::Group;
use crate::launch::child::{Failure, Outcome, Steps};
use crate::launch::guard::{Guard, OnViolation};
use crate::launch::landlock::Report;
use crate::launch::limits::Limits;
use crate::launch::messages::Closing;
use crate::launch::plan::Plan;
use crate::launch::resolve::Extras;
use crate::launch::scratch::Scratch;
use crate::launch::token::{Image, ImageError};
use crate::profile::Source;
use crate::refusal::{NOT_EXECUTABLE, NOT_FOUND, REFUSED, Refusal};
use crate::report::Reporter;
use crate::supervise::broker::Broker;
use crate::supervise::census::Census;
use crate::supervise::infer::Domain;
use crate::supervise::judge::{Judge, Strict};
use crate::supervise::output::{self, Diverted};
use crate::supervise::reaper::{Afterwards, Reaper};
use crate::supervise::suggest::Adviser;
use crate::supervise::terminal::Terminal;
use crate::supervise::violation::{Show, Violations};
use crate::supervise::{self, Ending, Summary, Task, Watch, memory};
use crate::sys::signal::Disposition;
use crate::sys::{Failed, descriptor, privilege, process, seccomp, signal, stream};
use sbx_policy::env;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
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
    // The lowest number that is free now is the notification descriptor's, where their number is limited.
    let spare = flags.max_open_files.is_some().then(|| stream::duplicate(0)).transpose();
    let spare = spare.map_err(cannot("keep a descriptor free"))?;
    let mut plan = plan::make(flags)?;
    plan.spare = spare;
    if let Some(reporter) = &mut reporter {
        reporter.planned(&mut plan);
    }
    let loudness = variables::loudness(flags)?;
    let show = if loudness == Loudness::Quiet { Show::Nothing } else { Show::Lines };
    let violations = Violations::new(show);
    for remark in &plan.remarks {
        violations.line(remark);
    }
    let closing = (loudness == Loudness::Verbose).then(|| {
        violations.line(&messages::banner(&plan));
        Closing::new(&plan)
    });
    // Its secrets are in our environment and memory, which the command could read otherwise.
    privilege::undumpable().map_err(cannot("protect the supervisor's memory"))?;
    if flags.exec { in_place(plan, closed) } else { supervised(plan, closed, violations, closing, reporter) }
}

fn cannot(what: &'static str) -> impl FnOnce(Failed) -> Refusal {
    move |failed| Refusal::new(format!("cannot {what}: {failed}"))
}

/// Becomes the command.
fn in_place(mut plan: Plan, closed: Vec<i32>) -> Result<i32, Refusal> {
    let limits = std::mem::take(&mut plan.limits);
    let mut steps = steps(plan, &limits, closed, false)?.0;
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
) -> Result<i32, Refusal> {
    let tree = plan.calls.starts_processes();
    let scratch = plan.scratch.take();
    let name = plan.profile.name.clone();
    let own = (plan.profile.source != Source::BuiltIn).then(|| plan.profile.clone());
    let (denied, workspace) = (plan.denied_calls.clone(), plan.workspace.clone());
    let (mode, on_violation) = (plan.network.mode, plan.on_violation);
    let attributes = plan.attributes;
    let commands = plan.commands.take();
    let limits = std::mem::take(&mut plan.limits);
    let looks = attributes || plan.watch_paths || plan.calls.notes() || limits.counted.is_some();
    let strict = looks.then(|| Strict::new(plan.calls.clone()));
    let listens = !plan.unconfined;
    let signals = supervise::watched_signals();
    let mask = signal::set_mask(&signals).map_err(cannot("block signals"))?;
    let watched = signal::descriptor(&signals).map_err(cannot("wait for signals"))?;
    let watch_paths = plan.watch_paths;
    let scoped = plan.paths.is_some() && plan.landlock >= landlock::Version::SCOPES;
    // In log mode the ports are not restricted.
    let domain = Domain { network: logged(&plan.network, plan.on_violation == OnViolation::Log), scoped };
    let (brokers, sockets) = (plan.calls.brokers(), plan.sockets.clone());
    let writes = |rule: &policy::PathRule| rule.rights.write && !rule.rights.devices;
    let granted_write = plan.paths.iter().flatten().any(writes);
    let closed_streams = closed.clone();
    let (mut steps, granted) = steps(plan, &limits, closed, listens)?;
    steps.mask = mask;
    steps.broken_pipe = signal::dispose(libc::SIGPIPE, Disposition::Ignore);
    let afterwards = Afterwards {
        keep_background: limits.keep_background,
        scratch: scratch.as_ref().map(|scratch| scratch.path().to_path_buf()),
        group: limits.group.as_ref().map(|group| group.path().to_path_buf()),
    };
    let diverted = limits.output.map(|cap| output::divert(cap, &closed_streams)).transpose();
    let (pumps, diverted) = diverted.map_err(cannot("lead the output through a pipe"))?.unzip();
    let terminal = Terminal::of_caller().map_err(cannot("remember the terminal"))?;
    let started = Instant::now();
    let result = start(steps, tree, &afterwards);
    // Whatever there is to say is said to the caller, not to ourselves.
    diverted.map_or(Ok(()), Diverted::restore).map_err(cannot("put standard output back"))?;
    let (watch, outcome) = result?;
    let listener = outcome.listener.map(seccomp::own_listener);
    let unheard = outcome.unheard.clone();
    if let Some(failure) = outcome.into_failure() {
        return Err(refusal(failure));
    }
    if let Some(reporter) = &mut reporter {
        reporter.started(watch.command(), unheard.as_deref());
    }
    if let Some(why) = unheard {
        violations.line(&format!("violations are refused, but cannot be reported: {why} (a sandbox around this one listens already)"));
    }
    for name in pumps.iter().flat_map(|pumps| &pumps.terminals) {
        violations.line(&format!("{name} is a terminal, so the limit of output does not hold for it"));
    }
    for name in pumps.iter().flat_map(|pumps| &pumps.open_behind) {
        violations.line(&format!(
            "{name} is the socket that standard input is, so the limit of output does not hold for what is written to that"
        ));
    }
    let _ = descriptor::release_standard();
    // The command may make itself the foreground of a terminal that stops whoever else writes to it (stty tostop).
    signal::dispose(libc::SIGTTOU, Disposition::Ignore);
    violations.never_wait();
    // What it does on the command's behalf the kernel judges as if the command did it.
    privilege::drop_capabilities().map_err(cannot("drop the supervisor's capabilities"))?;
    let mut adviser = Adviser::new(&name, mode, granted_write).with_denied(denied).with_workspace(workspace);
    adviser = adviser.with_commands(commands);
    if let Some(profile) = own {
        adviser = adviser.with_profile(profile);
    }
    let mut judge = Judge {
        on_violation,
        strict,
        broker: brokers.then(|| Broker { granted: granted.clone(), named: sockets }),
        granted,
        domain,
        watch_paths,
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
    judge.violations.finish();
    result
}

/// Says why the command ended, where it is not plain to see.
fn conclude(summary: &Summary, violations: &Violations, scratch: Option<Scratch>) -> Result<i32, Refusal> {
    let limit =
        |name| summary.limits.iter().find(|applied| applied.limit == name).map_or(0, |applied| applied.value);
    match summary.ending {
        Ending::Lost => {
            violations.line("something killed the supervisor's helper, and so the command was ended too");
        }
        Ending::Killed(libc::SIGSYS) => {
            violations.line("the filter ended the command: a system call of another architecture, or one that the profile kills for");
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
            scratch.keep().display()
        ));
    }
    match &summary.failure {
        Some(sentence) => Err(Refusal::new(format!("{sentence}; the command was ended"))),
        None => Ok(summary.ending.status()),
    }
}

/// Starts the child, directly or below a reaper.
fn start(mut steps: Steps, tree: bool, afterwards: &Afterwards) -> Result<(Watch, Outcome), Refusal> {
    if tree {
        let (reaper, outcome) = Reaper::start(steps, afterwards).map_err(cannot("start the command"))?;
        return Ok((Watch::Reaper(reaper), outcome));
    }
    steps.parent = Some(process::id());
    let mut outcome = Outcome::default();
    let pid = process::spawn_sharing(&mut || child::run(&mut steps, &mut outcome))
        .map_err(cannot("start the command"))?;
    if !outcome.ready || outcome.failure.is_some() {
        process::wait(Some(pid), true, false);
    }
    Ok((Watch::Direct(pid), outcome))
}

/// Everything that the child needs, laid out.
fn steps(
    plan: Plan,
    limits: &Limits,
    closed: Vec<i32>,
    listens: bool,
) -> Result<(Steps, Vec<policy::PathRule>), Refusal> {
    let logs = plan.on_violation == OnViolation::Log;
    let seal = if plan.unconfined || logs { None } else { plan.calls.seal(plan.on_violation.value())? };
    // The shim goes in only where it has something to take away.
    let sealed = seal.is_some() && treatment::takes_library(&plan.program);
    let extras = Extras { counts_tasks: limits.counted.is_some(), ..plan.extras(seal.as_ref()) };
    let mut environment = plan.environment.clone();
    let shim = match seal.filter(|_| sealed) {
        Some(seal) => Some(preload(&seal.text, &mut environment)?),
        None => None,
    };
    let mut guard = Guard::new(&plan.profile.name, plan.calls, extras, plan.on_violation, listens);
    let path = plan.program.path.as_os_str().as_bytes();
    let image = Image::new(path, plan.arguments, environment).map_err(|error| match error {
        ImageError::NulByte => {
            Refusal::new("cannot lay out the command: a name, an argument or a variable holds a NUL byte")
        }
        ImageError::System(failed) => Refusal::new(format!("cannot lay out the command: {failed}")),
    })?;
    // A notified exec would wait for a supervisor that waits for it.
    let plain_exec = guard.calls.allows_fully("execve") && !plan.watch_paths && !guard.calls.notes();
    if !plan.unconfined && !plain_exec {
        guard.allow_exec_of(&image).map_err(|e| Refusal::new(format!("cannot build the filter: {e}")))?;
    }
    let report = match (plan.watch_paths, guard.calls.brokers() || plan.attributes) {
        (true, _) => Report::All,
        (_, true) => Report::Writable,
        _ => Report::Nothing,
    };
    let landlock = match &plan.paths {
        Some(paths) => Some(landlock::prepare(plan.landlock, paths, &logged(&plan.network, logs), report)?),
        None => None,
    };
    let granted = landlock.as_ref().map(|prepared| prepared.granted.clone()).unwrap_or_default();
    let door = limits.group.as_ref().map(Group::door).transpose();
    let door =
        door.map_err(|e| Refusal::new(format!("cannot open the control group: {}", landlock::plain(&e))))?;
    let directory = File::open(&plan.directory).map(OwnedFd::from).ok();
    let mut pass = plan.pass;
    pass.extend(shim.as_ref().map(AsRawFd::as_raw_fd));
    // The exec takes it along; nothing here closes it before.
    if let Some(shim) = shim {
        std::mem::forget(shim);
    }
    Ok((
        Steps {
            parent: None,
            limits: limits.resources.clone(),
            door,
            spare: plan.spare,
            directory,
            landlock,
            pass,
            closed,
            mask: signal::mask(),
            broken_pipe: signal::disposition(libc::SIGPIPE),
            nested: plan.nested,
            guard: (!plan.unconfined).then_some(guard),
            image,
        },
        granted,
    ))
}

/// In log mode system calls are let through, so the ports must not be refused a layer below.
fn logged(network: &policy::Network, logs: bool) -> policy::Network {
    if logs {
        policy::Network { mode: policy::Mode::Host, ..policy::Network::default() }
    } else {
        network.clone()
    }
}

/// Puts the shim and the seal's variables into the environment.
fn preload(seal: &env::Text, environment: &mut Vec<OsString>) -> Result<OwnedFd, Refusal> {
    let shim = descriptor::sealed_memory_file(c"libsandbox.so", crate::SHIM)
        .map_err(cannot("make libsandbox.so available"))?;
    let number = shim.as_raw_fd();
    let own = format!("/proc/self/fd/{number}");
    let others = environment.iter().position(|entry| entry.as_bytes().starts_with(b"LD_PRELOAD="));
    match others {
        Some(at) => {
            // The user's own come after: what they do is bound by the seal already.
            let mut entry = OsString::from(format!("LD_PRELOAD={own}:"));
            entry.push(std::ffi::OsStr::from_bytes(&environment[at].as_bytes()["LD_PRELOAD=".len()..]));
            environment[at] = entry;
        }
        None => environment.push(format!("LD_PRELOAD={own}").into()),
    }
    environment.push(format!("SBX_SHIM_FD={number}").into());
    let variables =
        [(env::ALLOW, &seal.allow), (env::DENY, &seal.deny), (env::ACTION, &Some(seal.action.clone()))];
    for (name, value) in variables {
        environment.extend(value.iter().map(|value| OsString::from(format!("{name}={value}"))));
    }
    Ok(shim)
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
