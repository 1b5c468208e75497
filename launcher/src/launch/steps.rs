//! From a plan to what the child works on: filter, path rules, the image of the command.

use crate::launch::cgroup::Group;
use crate::launch::child::Steps;
use crate::launch::guard::{Guard, OnViolation};
use crate::launch::landlock::{self, Report, View};
use crate::launch::limits::Limits;
use crate::launch::plan::Plan;
use crate::launch::resolve::Extras;
use crate::launch::token::{Image, ImageError};
use crate::launch::{cannot, policy, treatment};
use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use crate::sys::{descriptor, plain, signal};
use sbx_policy::env;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Everything that the child needs, laid out, but for the path rules, which are to be added by what is returned.
pub fn lay_out<'a>(
    plan: Plan,
    limits: &Limits,
    closed: Vec<i32>,
    listens: bool,
    view: View<'a>,
) -> Result<(Steps, View<'a>), Refusal> {
    let logs = plan.on_violation == OnViolation::Log;
    let seal = if plan.unconfined || logs { None } else { plan.calls.seal(plan.on_violation.value())? };
    // The shim goes in only where it has something to take away.
    let sealed = seal.is_some() && treatment::is_sealable(&plan.program);
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
    let view = View { report, ..view };
    let layout = plan.namespaces.ok();
    let landlock = match &plan.paths {
        Some(paths) => Some(landlock::prepare(plan.landlock, paths, &logged(&plan.network, logs), view)?),
        None => None,
    };
    let door = limits.group.as_ref().map(Group::door).transpose();
    let door = door.map_err(|e| Refusal::new(format!("cannot open the control group: {}", plain(&e))))?;
    let directory = descriptor::open_path(&plan.directory)
        .map_err(|e| Refusal::new(format!("cannot enter '{}': {}", shown(&plan.directory), plain(&e))))?;
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
            directory: Some(directory.into()),
            landlock,
            pass,
            closed,
            mask: signal::mask(),
            broken_pipe: signal::disposition(libc::SIGPIPE),
            nested: plan.nested,
            session: layout.is_some() && !(0..3).any(descriptor::is_terminal),
            layout,
            gate: None,
            withdrawn: false,
            guard: (!plan.unconfined).then_some(guard),
            image,
        },
        view,
    ))
}

/// In log mode system calls are let through, so the ports must not be refused a layer below.
pub fn logged(network: &policy::Network, logs: bool) -> policy::Network {
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
