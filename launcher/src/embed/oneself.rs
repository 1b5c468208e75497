//! Confining the calling process itself: a profile without a launcher around it.
//!
//! There is no supervisor, so what only one could do is refused here rather than left out.

use crate::embed::error::ConfineError;
use crate::enforce::guard::Guard;
use crate::enforce::landlock::{self, Prepared, View};
use crate::error::Refusal;
use crate::host::Host;
use crate::host::landlock::Version;
use crate::plan::namespaces::Unavailable;
use crate::plan::{self, Draft, Inputs, OnViolation, Provided, validation};
use crate::profile::{Limits, Profile};
use crate::program::Program;
use crate::request::Request;
use crate::sys::{SyscallError, plain, privilege, seccomp};
use sbx_policy::bpf::Insn;
use std::ffi::OsStr;

/// What is in force now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Confined {
    /// The version of Landlock's ABI; 0 where files are not restricted, since the kernel has no Landlock.
    pub landlock: i32,
    /// What is less than usual, in sentences.
    pub warnings: Vec<String>,
}

/// Confines the calling process, and all that it will start, by the rules of a profile, for good.
///
/// Path rules, the network, system calls: all at once and without the exceptions that a program needs while
/// it is being loaded. The capabilities go, and `no_new_privs` is set. The current directory is the
/// workspace. What the profile says about variables does not apply, and neither do descriptors get closed:
/// what this process has in its environment, in its memory and open, it keeps. So do programs that it starts,
/// as far as the profile lets it start any.
///
/// Nobody is told what is refused: a call just fails (or ends the process, if the profile says so). Changing
/// modes, owners and times of files fails always, since Landlock cannot tell where. There is no scratch
/// directory.
///
/// # Errors
///
/// Nothing has changed if the profile cannot be found or understood, or asks for what takes a supervisor
/// (limits, UNIX sockets by path before Landlock ABI 9, listing instead of refusing, a choice of commands),
/// or confines nothing, or if this process has more than one thread: the others would stay as they are.
/// [`ConfineError::System`] says that the kernel refused a step: some rules may be in force then, and the process
/// should end.
pub fn confine_self(profile: impl AsRef<OsStr>) -> Result<Confined, ConfineError> {
    one_thread()?;
    let mut prepared = prepare(profile.as_ref())?;
    apply(&mut prepared).map_err(ConfineError::System)?;
    Ok(prepared.confined)
}

/// Seccomp and Landlock bind the thread that asks for it.
fn one_thread() -> Result<(), ConfineError> {
    let threads = std::fs::read_dir("/proc/self/task").map_err(|error| {
        let why = plain(&error);
        ConfineError::Refused(format!(
            "cannot confine this process: cannot count its threads in /proc/self/task: {why}"
        ))
    })?;
    match threads.count() {
        1 => Ok(()),
        count => Err(ConfineError::Refused(format!(
            "cannot confine this process: it has {count} threads, and only the calling one would be confined; \
             do it before others are started"
        ))),
    }
}

/// Everything that can be decided before something changes.
struct Steps {
    landlock: Option<Prepared>,
    filter: Vec<Insn>,
    confined: Confined,
}

fn prepare(profile: &OsStr) -> Result<Steps, Refusal> {
    let host = Host::of_this_process();
    let request = Request { profile: Some(profile.to_os_string()), ..Request::default() };
    let profile = plan::load_profile(&request, &host)?;
    supervised(&profile, host.landlock()?)?;
    let (program, directory) = (Program::default(), host.directory()?.to_path_buf());
    let inputs =
        Inputs { request: &request, host: &host, profile, program, missing: None, directory, itself: true };
    let plan = Draft::new(inputs, &Unavailable::default())?.complete(Provided::default())?;
    let view = View::default();
    let landlock =
        plan.paths.as_ref().map(|paths| landlock::prepare(plan.landlock, paths, &plan.network, view));
    let mut landlock = landlock.transpose()?;
    if let Some(landlock) = &mut landlock {
        landlock.fill(view)?;
    }
    let (name, extras) = (&plan.profile.name, plan.extras());
    let filter = Guard::new(name, plan.calls, extras, plan.on_violation, false).program()?;
    Ok(Steps { landlock, filter, confined: Confined { landlock: plan.landlock.0, warnings: plan.warnings } })
}

/// What takes a supervisor, or a launcher.
fn supervised(profile: &Profile, version: Version) -> Result<(), Refusal> {
    let name = &profile.name;
    // Named one by one, so that the compiler asks about a new one.
    let Limits { timeout, output, processes, open_files, file_size, memory, cpu } = &profile.limits;
    let keys = [
        ("limits.timeout", timeout.is_some()),
        ("limits.output", output.is_some()),
        ("limits.processes", processes.is_some()),
        ("limits.open_files", open_files.is_some()),
        ("limits.file_size", file_size.is_some()),
        ("limits.memory", memory.is_some()),
        ("limits.cpu", cpu.is_some()),
        ("commands.allow", !profile.commands.allow.is_empty()),
        ("commands.block", !profile.commands.block.is_empty()),
        ("network.unix", !profile.network.unix.is_empty() && version < Version::UNIX),
    ];
    let logs = validation::on_violation(&Request::default(), profile) == OnViolation::Log;
    let sentence = match keys.into_iter().find(|(_, asked)| *asked) {
        _ if profile.is_unrestricted() => format!("profile '{name}' confines nothing"),
        _ if logs => {
            format!("profile '{name}' lists what it would refuse, and there is no supervisor to do so")
        }
        Some((key, _)) => {
            format!(
                "'{key}' of profile '{name}' takes a supervisor; take the key out, or start a command in a Sandbox"
            )
        }
        None => return Ok(()),
    };
    Err(Refusal::new(format!("cannot confine this process: {sentence}")))
}

fn apply(steps: &mut Steps) -> Result<(), String> {
    let failed = |what: &'static str| move |why: SyscallError| format!("cannot {what}: {why}");
    privilege::no_new_privs().map_err(failed("set no_new_privs"))?;
    if let Some(landlock) = &mut steps.landlock {
        landlock.restrict_self().map_err(|why| format!("cannot put the path rules in force: {why}"))?;
    }
    privilege::drop_capabilities().map_err(failed("drop the capabilities"))?;
    seccomp::install(&steps.filter).map_err(failed("install the filter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_is_refused() {
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv());
        let error = confine_self("minimal").unwrap_err();
        assert!(matches!(error, ConfineError::Refused(_)), "{error:?}");
        assert!(error.to_string().contains("threads"), "{error}");
        drop(done);
        let _ = other.join();
    }

    #[test]
    fn what_takes_a_supervisor_is_refused() {
        let check = |text: &str| {
            let file = std::env::temp_dir().join(format!("sbx-oneself-{}.json", std::process::id()));
            std::fs::write(&file, text).unwrap();
            let prepared = prepare(file.as_os_str());
            std::fs::remove_file(&file).unwrap();
            prepared.map(drop).map_err(|refusal| refusal.to_string())
        };
        let with = |key: &str| check(&format!(r#"{{ "description": "x", "extends": "minimal", {key} }}"#));
        assert_eq!(with(r#""syscalls": { "allow": ["mkdir"] }"#), Ok(()));
        for (key, word) in [
            (r#""limits": { "timeout": "1s" }"#, "limits.timeout"),
            (r#""limits": { "file_size": "1K" }"#, "limits.file_size"),
            (r#""commands": { "allow": ["ls"] }"#, "commands.allow"),
            (r#""syscalls": { "default": "log" }"#, "no supervisor"),
            (r#""syscalls": { "default": "allow" }"#, "confines nothing"),
        ] {
            let why = with(key).unwrap_err();
            assert!(why.contains(word), "{key}: {why}");
        }
    }
}
