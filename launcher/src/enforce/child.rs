//! The steps of the child between its birth and the exec, in their fixed order. If a step fails, the run
//! ends: nothing runs with less than was asked for.

use crate::enforce::doors::Door;
use crate::enforce::error::Named;
use crate::enforce::exec_permit::ExecPermit;
use crate::enforce::guard::Guard;
use crate::enforce::landlock::Prepared;
use crate::enforce::start_barrier::StartBarrier;
use crate::enforce::{Cause, EnforceError};
use crate::plan::limits::Resource;
use crate::plan::namespaces::{Layout, Missing};
use crate::plan::network::Hosts;
use crate::sys::ahead::{Ahead, Made};
use crate::sys::namespace::Own;
use crate::sys::process::{self, Pid};
use crate::sys::processor::Processors;
use crate::sys::signal::{self, Disposition};
use crate::sys::{SyscallError, descriptor, namespace, privilege, seccomp, terminal};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::rc::Rc;

/// What the steps work on.
pub struct Steps {
    /// The parent, which must be alive. Its death ends the command.
    pub parent: Option<Pid>,
    /// Limits to lower.
    pub limits: Vec<Resource>,
    /// The cgroup.procs file, by which the command enters its control group.
    pub cgroup_procs: Option<OwnedFd>,
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
    /// The caller's action on SIGPIPE.
    pub broken_pipe: Disposition,
    /// Whether `sbx` confines this process already.
    pub nested: bool,
    /// The namespaces of the run, in which the reaper is the first process.
    pub own: Option<Own>,
    /// The ways out of the run's network to hosts that rules name.
    pub doors: Option<Rc<Hosts>>,
    /// Whether ports of the run's network are shown outside.
    pub shows_ports: bool,
    /// Makes the network of these ahead.
    pub ahead: Option<Ahead>,
    /// That network, where it was made ahead.
    pub made: Option<Rc<Made>>,
    /// The mounts of the run, which the reaper makes.
    pub layout: Option<Rc<Layout>>,
    /// The limit of process numbers outside.
    pub number_limit: Option<String>,
    /// Where in it the explainer library is to be, if there.
    pub library: Option<PathBuf>,
    /// Whether the command gets a session of its own, without a controlling terminal.
    pub session: bool,
    /// The terminal on which it leads the foreground, with a process group of its own.
    pub foreground: Option<RawFd>,
    /// Where the child waits until all path rules are added; `None` where they are already.
    pub barrier: Option<StartBarrier>,
    /// The processors of the command, if the child may have others until the barrier is open.
    pub processors: Option<Processors>,
    /// Whether the command comes later.
    pub parks: bool,
    /// Where the child waits for it then, with everything in force, and says that it does.
    pub gate: Option<StartBarrier>,
    /// Where the reaper waits until all placeholders are made, if there are any.
    pub placed: Option<StartBarrier>,
    /// Whether the parent has taken the steps of [`drop_early`] already.
    pub dropped_early: bool,
    /// The filter; `None` for a run without any.
    pub guard: Option<Guard>,
    /// The exec.
    pub permit: ExecPermit,
}

impl Steps {
    /// Forgets descriptors of this copy that the child has closed, in the table that both share, once it has come to
    /// the end of the steps.
    pub fn forget_passed(&mut self) {
        self.landlock.iter_mut().for_each(Prepared::forget);
        // The listener has this number by now.
        std::mem::forget(self.spare.take());
    }
}

/// How far the steps came.
#[derive(Debug, Default)]
pub struct Progress {
    /// The number of the notification descriptor.
    pub listener: Option<RawFd>,
    /// Why there is none although one was asked for.
    pub no_listener: Option<String>,
    /// Which namespaces that were wanted the machine does not give, and why.
    pub missing: Option<(Missing, String)>,
    /// Why the machine does not give the overlays that were wanted.
    pub no_overlays: Option<String>,
    /// The cookie of the run's own network, where it has one and the kernel has cookies.
    pub network: Option<u64>,
    /// The sockets that lead out of it.
    pub doors: Vec<Door>,
    /// The step that failed.
    pub failure: Option<EnforceError>,
    /// Whether every step up to the exec succeeded.
    pub ready: bool,
}

impl Progress {
    /// Why the command was not started, if it was not. A child that ended without reporting anything was
    /// killed.
    pub fn into_failure(self) -> Option<EnforceError> {
        let killed =
            || EnforceError::new("start the command", "something killed its process before it was confined");
        self.failure.or_else(|| (!self.ready).then(killed))
    }
}

/// Takes all steps. Returns only if one of them failed; `progress` then says which, and the filter may be in
/// force already.
pub fn run(steps: &mut Steps, progress: &mut Progress) {
    progress.failure = Some(match confine(steps, progress) {
        Err(failure) => failure,
        Ok(()) => {
            progress.ready = true;
            EnforceError::Exec(steps.permit.exec())
        }
    });
}

fn confine(steps: &mut Steps, progress: &mut Progress) -> Result<(), EnforceError> {
    if let Some(parent) = steps.parent {
        process::die_with_parent(libc::SIGKILL).step("tie the command to its supervisor")?;
        if process::parent() != parent {
            return Err(EnforceError::new("start the command", "its supervisor is gone"));
        }
    }
    if steps.session {
        namespace::new_session().step("start a session")?;
    }
    if let Some(number) = steps.foreground {
        terminal::lead_foreground(number).step("take the terminal")?;
    }
    if !steps.dropped_early {
        drop_early(steps)?;
    }
    if let Some(procs) = &steps.cgroup_procs {
        descriptor::write_all(procs.as_raw_fd(), b"0").step("enter the control group")?;
    }
    if let Some(directory) = &steps.directory {
        process::change_directory(directory.as_fd()).step("enter the working directory")?;
    }
    // Landlock requires it of a process without CAP_SYS_ADMIN.
    privilege::no_new_privs().step("set no_new_privs")?;
    if let Some(barrier) = &steps.barrier {
        barrier.wait().step("wait for the path rules")?;
        steps.processors.iter().for_each(|processors| processors.take());
    }
    if let Some(landlock) = &mut steps.landlock {
        landlock.restrict_self().step("put the path rules in force")?;
    }
    privilege::drop_own_capabilities().step("drop the capabilities")?;
    descriptors(steps).step("pass descriptors on")?;
    // After the descriptors: on older kernels, they are searched up to the limit of open files.
    for (limit, soft, hard) in &steps.limits {
        privilege::limit(*limit, *soft, *hard).step("lower the limits")?;
    }
    signal::dispose(libc::SIGPIPE, steps.broken_pipe).step("restore what SIGPIPE does")?;
    signal::set_mask(&steps.mask).step("restore the signal mask")?;
    drop(steps.spare.take());
    steps.guard.as_mut().map_or(Ok(()), |guard| install(guard, progress))?;
    steps.gate.as_ref().map_or(Ok(()), |gate| gate.wait().step("wait for the command"))
}

/// Drops what neither the command nor a reaper needs. A reaper therefore does it for the command, while
/// path rules are being added.
pub fn drop_early(steps: &mut Steps) -> Result<(), EnforceError> {
    if !steps.nested {
        privilege::new_session_keyring().step("leave the session keyring")?;
    }
    privilege::bound_capabilities().step("drop the capabilities")?;
    steps.dropped_early = true;
    Ok(())
}

fn descriptors(steps: &Steps) -> Result<(), SyscallError> {
    descriptor::close_all_on_exec()?;
    for number in &steps.pass {
        descriptor::keep_on_exec(*number)?;
    }
    // The parent still shares the table, so only the exec may close descriptors.
    for number in &steps.closed {
        descriptor::close_on_exec(*number)?;
    }
    Ok(())
}

/// Installs the filter. From here on, only the exec is sure to be allowed, and for one that comes later
/// those of who waits (`start_barrier::CALLS`).
fn install(guard: &mut Guard, progress: &mut Progress) -> Result<(), EnforceError> {
    const STEP: &str = "install the filter";
    let program = guard.program().step(STEP)?;
    if !guard.listens {
        return seccomp::install(&program).step(STEP);
    }
    match seccomp::install_with_listener(&program) {
        Ok(listener) => {
            progress.listener = Some(listener);
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
                return Err(EnforceError::new(STEP, Cause::NoListener { failed, why, need }));
            }
            progress.no_listener = Some(failed.to_string());
            guard.listens = false;
            guard.calls = Rc::new(guard.calls.without_supervisor());
            seccomp::install(&guard.program().step(STEP)?).step(STEP)
        }
    }
}
