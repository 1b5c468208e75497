//! The steps of the child between its birth and the exec, in their fixed order. A step that fails ends the
//! run; nothing runs with less than was asked for.

use crate::launch::gate::Gate;
use crate::launch::guard::Guard;
use crate::launch::landlock::Prepared;
use crate::launch::limits::Resource;
use crate::launch::namespaces::Layout;
use crate::launch::token::Image;
use crate::sys::privilege;
use crate::sys::process::{self, Pid};
use crate::sys::signal::{self, Disposition};
use crate::sys::{Failed, descriptor, namespace, seccomp};
use std::borrow::Cow;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

/// What the steps work on.
pub struct Steps {
    /// The parent that has to be alive, and whose death ends the command.
    pub parent: Option<Pid>,
    /// Limits to lower.
    pub limits: Vec<Resource>,
    /// The file by which the command enters its control group.
    pub door: Option<OwnedFd>,
    /// A low number that is kept free for the notification descriptor, where open files are limited.
    pub spare: Option<OwnedFd>,
    /// The working directory.
    pub directory: Option<OwnedFd>,
    /// The path rules.
    pub landlock: Option<Prepared>,
    /// Descriptors above 2 that are passed on.
    pub pass: Vec<RawFd>,
    /// Descriptors of 0 to 2 that the caller had closed.
    pub closed: Vec<RawFd>,
    /// The signals that the caller had blocked.
    pub mask: signal::Set,
    /// What the caller had SIGPIPE do.
    pub broken_pipe: Disposition,
    /// Whether this process is confined by `sbx` already.
    pub nested: bool,
    /// The namespaces and mounts of its own, which the parent makes.
    pub layout: Option<Rc<Layout>>,
    /// Whether it gets a session of its own, without a controlling terminal.
    pub session: bool,
    /// Where it waits until all path rules are there; `None` where they are already.
    pub gate: Option<Gate>,
    /// Whether the parent has taken the steps of [`withdraw`] already.
    pub withdrawn: bool,
    /// The filter; `None` for a run without any.
    pub guard: Option<Guard>,
    /// What is exec'd.
    pub image: Image,
}

/// How far the steps came.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The number of the notification descriptor.
    pub listener: Option<RawFd>,
    /// Why there is none although one was asked for.
    pub unheard: Option<String>,
    /// Why the machine does not give the namespaces that were wanted.
    pub unavailable: Option<String>,
    /// The step that failed.
    pub failure: Option<Failure>,
    /// Whether every step up to the exec succeeded.
    pub ready: bool,
}

/// A step that failed.
#[derive(Debug)]
pub struct Failure {
    /// What was being done.
    pub step: Cow<'static, str>,
    /// The system call and its error.
    pub cause: String,
    /// The error number of the exec itself.
    pub exec_errno: Option<i32>,
}

impl Failure {
    /// Of a step before the exec.
    pub fn new(step: &'static str, cause: String) -> Failure {
        Failure { step: step.into(), cause, exec_errno: None }
    }
}

impl Outcome {
    /// Why the command was not started, if it was not. A child that ended without a word was killed.
    pub fn into_failure(self) -> Option<Failure> {
        let killed = || {
            Failure::new(
                "start the command",
                "something killed its process before it was confined".to_string(),
            )
        };
        self.failure.or_else(|| (!self.ready).then(killed))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.step, self.cause)
    }
}

trait Step<T> {
    fn step(self, step: &'static str) -> Result<T, Failure>;
}

impl<T, E: fmt::Display> Step<T> for Result<T, E> {
    fn step(self, step: &'static str) -> Result<T, Failure> {
        self.map_err(|e| Failure::new(step, e.to_string()))
    }
}

/// Takes all steps. Returns only if one of them failed; `outcome` then says which, and the filter may be in
/// force already.
pub fn run(steps: &mut Steps, outcome: &mut Outcome) {
    if let Err(failure) = confine(steps, outcome) {
        outcome.failure = Some(failure);
        return;
    }
    outcome.ready = true;
    let failed = steps.image.exec();
    outcome.failure = Some(Failure {
        exec_errno: Some(failed.errno()),
        ..Failure::new("execute the command", failed.to_string())
    });
}

fn confine(steps: &mut Steps, outcome: &mut Outcome) -> Result<(), Failure> {
    if let Some(parent) = steps.parent {
        process::die_with_parent(libc::SIGKILL).step("tie the command to its supervisor")?;
        if process::parent() != parent {
            return Err(Failure::new("start the command", "its supervisor is gone".to_string()));
        }
    }
    if steps.session {
        namespace::new_session().step("start a session")?;
    }
    if !steps.withdrawn {
        withdraw(steps)?;
    }
    if let Some(door) = &steps.door {
        descriptor::write_all(door.as_raw_fd(), b"0").step("enter the control group")?;
    }
    if let Some(directory) = &steps.directory {
        process::change_directory(directory.as_fd()).step("enter the working directory")?;
    }
    // Landlock asks for it, where CAP_SYS_ADMIN is missing.
    privilege::no_new_privs().step("set no_new_privs")?;
    if let Some(gate) = &steps.gate {
        gate.wait().step("wait for the path rules")?;
    }
    if let Some(landlock) = &mut steps.landlock {
        landlock.restrict_self().step("put the path rules in force")?;
    }
    privilege::drop_own_capabilities().step("drop the capabilities")?;
    descriptors(steps).step("pass descriptors on")?;
    // Not before: up to the limit of open files is where descriptors are looked for on older kernels.
    for (limit, soft, hard) in &steps.limits {
        privilege::limit(*limit, *soft, *hard).step("lower the limits")?;
    }
    signal::dispose(libc::SIGPIPE, steps.broken_pipe).step("restore what SIGPIPE does")?;
    signal::set_mask(&steps.mask).step("restore the signal mask")?;
    drop(steps.spare.take());
    steps.guard.as_mut().map_or(Ok(()), |guard| install(guard, outcome))
}

/// Gives up what the command gets nothing of and a reaper does not need either, which therefore does it for the
/// command while path rules are being added.
pub fn withdraw(steps: &mut Steps) -> Result<(), Failure> {
    if !steps.nested {
        privilege::new_session_keyring().step("leave the session keyring")?;
    }
    privilege::bound_capabilities().step("drop the capabilities")?;
    steps.withdrawn = true;
    Ok(())
}

fn descriptors(steps: &Steps) -> Result<(), Failed> {
    descriptor::close_all_on_exec()?;
    for number in &steps.pass {
        descriptor::keep_on_exec(*number)?;
    }
    // The table is still shared with the parent, so what has to be closed is closed by the exec.
    for number in &steps.closed {
        descriptor::close_on_exec(*number)?;
    }
    Ok(())
}

/// The filter: from here on, only the exec is sure to be allowed.
fn install(guard: &mut Guard, outcome: &mut Outcome) -> Result<(), Failure> {
    const STEP: &str = "install the filter";
    let program = guard.program().step(STEP)?;
    if !guard.listens {
        return seccomp::install(&program).step(STEP);
    }
    match seccomp::install_with_listener(&program) {
        Ok(listener) => {
            outcome.listener = Some(listener);
            Ok(())
        }
        Err(failed) if !matches!(failed.errno(), libc::EBUSY | libc::EINVAL | libc::ENOSYS) => {
            Err(failed).step(STEP)
        }
        // EBUSY: a sandbox around us listens already. EINVAL, ENOSYS: Linux before 5.0, or an outer filter.
        Err(failed) => {
            if let Some(need) = guard.needs_listener() {
                let why = match failed.errno() {
                    libc::EBUSY => "a sandbox around this one is notified of calls already",
                    _ => "the kernel, or a sandbox around this one, has no notifications",
                };
                return Err(Failure::new(STEP, format!("{failed}: {why}, and {need}")));
            }
            outcome.unheard = Some(failed.to_string());
            guard.listens = false;
            seccomp::install(&guard.program().step(STEP)?).step(STEP)
        }
    }
}
