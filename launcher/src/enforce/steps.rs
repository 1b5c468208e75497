//! Turns a plan into what the child works on: filter, path rules, exec permit.

use crate::enforce::EnforceError;
use crate::enforce::child::Steps;
use crate::enforce::error::Named;
use crate::enforce::exec_permit::ExecPermit;
use crate::enforce::guard::Guard;
use crate::enforce::landlock::{self, Prepared, Report, View};
use crate::error::Refusal;
use crate::plan::namespaces::Layout;
use crate::plan::network::Route;
use crate::plan::{LibraryPlace, OnViolation, Plan, rules};
use crate::profile::NetworkMode;
use crate::sys::ahead::Ahead;
use crate::sys::within::is_within;
use crate::sys::{descriptor, namespace, process, signal, terminal};
use crate::text::shown;
use sbx_policy::env;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `libsandbox.so`, as launcher/build linked it.
pub static SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libsandbox.so"));

/// `libsbx-explain.so`, likewise.
pub static EXPLAINER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libsbx-explain.so"));

const PRELOAD: &[u8] = b"LD_PRELOAD=";

/// What the child needs that no plan contains.
#[derive(Default)]
pub struct Parts {
    /// Descriptors of 0 to 2 that the caller had closed.
    pub closed: Vec<i32>,
    /// A low number that is kept free for the notification descriptor.
    pub spare: Option<OwnedFd>,
    /// The cgroup.procs file, by which the command enters its control group.
    pub cgroup_procs: Option<OwnedFd>,
    /// Whether violations are notified.
    pub listens: bool,
    /// Makes the run's network.
    pub ahead: Option<Ahead>,
    /// Whether the words of the command come later.
    pub later: bool,
}

/// Lays out everything that the child needs, except the path rules: [`landlock::Prepared::fill`] adds them,
/// with the view that is returned.
pub fn lay_out<'a>(plan: Plan, parts: Parts, view: View<'a>) -> Result<(Steps, View<'a>), EnforceError> {
    plan.namespaces.as_deref().map_or(Ok(()), |layout| is_in_sight(&plan.directory, layout))?;
    let guard =
        Guard::new(&plan.profile.name, plan.calls.clone(), plan.extras(), plan.on_violation, parts.listens);
    let view = View { report: reported(&plan, &guard), ..view };
    let landlock = path_rules(&plan, &parts, view)?;
    let Parts { closed, spare, cgroup_procs, ahead, later, .. } = parts;
    let mut environment = plan.environment;
    // The shim is loaded only where it has something to restrict.
    let seal = plan.seal.filter(|_| plan.loads_shim);
    let shim = seal.map(|seal| preload(&seal.text, &mut environment)).transpose()?;
    plan.explainer.as_ref().map_or(Ok(()), |library| load(library, &mut environment))?;
    let path = plan.program.path.as_os_str().as_bytes();
    let permit = if later { ExecPermit::room() } else { ExecPermit::new(path, plan.arguments, environment) };
    let permit = permit.step("lay out the command")?;
    let guard = if plan.unconfined { None } else { Some(permitting(guard, &permit, plan.watch_paths)?) };
    let layout = plan.namespaces.ok();
    let directory = descriptor::open_path(&plan.directory).step_at("enter '{}'", &plan.directory)?;
    let mut pass = plan.pass;
    // The exec passes it on, so it must stay open here.
    pass.extend(shim.map(IntoRawFd::into_raw_fd));
    Ok((
        Steps {
            parent: None,
            limits: plan.limits.resources,
            cgroup_procs,
            spare,
            directory: Some(directory.into()),
            landlock,
            pass,
            closed,
            mask: signal::mask(),
            broken_pipe: signal::disposition(libc::SIGPIPE),
            nested: plan.nested,
            // Without a terminal of its own the command cannot take the foreground from others.
            session: layout.is_some()
                && (!(0..3).any(descriptor::is_terminal) || terminal::is_in_background()),
            foreground: None,
            own: plan.own,
            doors: plan.network.hosts.clone().filter(|hosts| hosts.route == Route::Doors),
            shows_ports: !plan.publish.is_empty(),
            ahead,
            made: None,
            library: plan.explainer.and_then(LibraryPlace::made_in_view),
            number_limit: layout.as_ref().and_then(|_| namespace::number_limit()),
            layout,
            barrier: None,
            processors: None,
            parks: later,
            gate: None,
            placed: None,
            dropped_early: false,
            guard,
            permit,
        },
        view,
    ))
}

/// What the supervisor is told of the path rules.
fn reported(plan: &Plan, guard: &Guard) -> Report {
    match (plan.watch_paths, guard.calls.supervisor_connects() || plan.attributes) {
        (true, _) => Report::All,
        (_, true) => Report::Writable,
        _ => Report::Nothing,
    }
}

/// The path rules of a plan that has any, with nothing added to them yet.
fn path_rules(plan: &Plan, parts: &Parts, view: View<'_>) -> Result<Option<Prepared>, EnforceError> {
    let Some(paths) = &plan.paths else { return Ok(None) };
    let logs = plan.on_violation == OnViolation::Log;
    let mut rules = landlock::prepare(plan.landlock, paths, &of_command(&plan.network, logs), view)?;
    if let Some(LibraryPlace::View(library)) = &plan.explainer {
        rules.read_made(library.clone());
    }
    // What waits for its words has not its descriptors yet.
    if !parts.later {
        let standard = (0..3).filter(|number| !parts.closed.contains(number));
        rules.reopen(standard.chain(plan.pass.iter().copied()).collect());
    }
    Ok(Some(rules))
}

/// The guard that lets the command's program be started, where it does not let all programs be.
fn permitting(mut guard: Guard, permit: &ExecPermit, watches_paths: bool) -> Result<Guard, EnforceError> {
    // A notified exec would wait for a supervisor that waits for it.
    let plain_exec = guard.calls.allows_fully("execve") && !watches_paths && !guard.calls.notes();
    if !plain_exec {
        guard.allow_exec(permit).step("build the filter")?;
    }
    Ok(guard)
}

/// Refuses a working directory that the command would not find.
fn is_in_sight(directory: &Path, layout: &Layout) -> Result<(), EnforceError> {
    let Some(denied) = layout.denied.iter().find(|denied| is_within(directory, denied)) else {
        return Ok(());
    };
    let denied = shown(denied);
    let why =
        format!("'{denied}' is denied in this run; change to another directory, or name one with --cwd");
    Err(EnforceError::at("start in '{}'", directory, Refusal::new(why)))
}

/// What the command itself may connect to: nothing, where the supervisor makes all connections.
fn of_command(network: &rules::Network, logs: bool) -> rules::Network {
    let network = logged(network, logs);
    if network.is_supervised_proxy() { rules::Network { connect: Vec::new(), ..network } } else { network }
}

/// In log mode system calls are allowed, so Landlock must not refuse ports either.
pub fn logged(network: &rules::Network, logs: bool) -> rules::Network {
    if logs {
        rules::Network { mode: NetworkMode::Host, ..rules::Network::default() }
    } else {
        network.clone()
    }
}

/// Puts the words of a command into the room that a plan of the same rules has had laid out for it. False where they
/// have none there, or would need something that was not made: a library outside of the view.
pub fn fill(permit: &ExecPermit, plan: &Plan) -> Result<bool, EnforceError> {
    let mut environment = plan.environment.clone();
    match &plan.explainer {
        Some(library @ LibraryPlace::View(_)) => load(library, &mut environment)?,
        Some(LibraryPlace::Scratch { .. }) => return Ok(false),
        None => {}
    }
    Ok(!plan.loads_shim
        && permit.fill(plan.program.path.as_os_str().as_bytes(), &plan.arguments, &environment))
}

/// Has the explainer loaded after all other libraries. The first process of the run puts it into the view.
fn load(library: &LibraryPlace, environment: &mut Vec<OsString>) -> Result<(), EnforceError> {
    if let LibraryPlace::Scratch { outside, .. } = library {
        const WRITE: &str = "write '{}'";
        let _umask = process::without_umask();
        std::fs::write(outside, EXPLAINER).step_at(WRITE, outside)?;
    }
    let preload = environment.iter_mut().find(|entry| entry.as_bytes().starts_with(PRELOAD));
    match preload {
        Some(entry) => entry.push(":"),
        None => environment.push(OsStr::from_bytes(PRELOAD).to_os_string()),
    }
    let preload = environment.iter_mut().find(|entry| entry.as_bytes().starts_with(PRELOAD));
    preload.into_iter().for_each(|entry| entry.push(library.inside()));
    Ok(())
}

/// Puts the shim and the seal's variables into the environment.
fn preload(seal: &env::Text, environment: &mut Vec<OsString>) -> Result<OwnedFd, EnforceError> {
    let shim = descriptor::sealed_memory_file(c"libsandbox.so", SHIM).step("make libsandbox.so available")?;
    let number = shim.as_raw_fd();
    let own = descriptor::own_name(number);
    let others = environment.iter().position(|entry| entry.as_bytes().starts_with(PRELOAD));
    match others {
        Some(at) => {
            // The user's own libraries come after it: the seal restricts them already.
            let mut entry = OsString::from(format!("LD_PRELOAD={own}:"));
            entry.push(OsStr::from_bytes(&environment[at].as_bytes()[PRELOAD.len()..]));
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
