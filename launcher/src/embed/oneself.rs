//! Confining the calling process itself: a profile without a launcher around it.
//!
//! There is no supervisor, so what only one could do is refused here rather than left out.

use super::error::{Error, Kind};
use crate::cli::{self, Run};
use crate::launch::files::Executed;
use crate::launch::guard::{Guard, OnViolation};
use crate::launch::landlock::{self, Prepared, Version, View};
use crate::launch::policy::PathRule;
use crate::launch::resolve::{Calls, Extras};
use crate::launch::workspace::{self, Working};
use crate::launch::{demands, files, namespaces, plan};
use crate::profile::{self, Profile, Variables};
use crate::refusal::Refusal;
use crate::supervise::attributes;
use crate::sys::{Failed, plain, privilege, seccomp};
use sbx_policy::bpf::Insn;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::rc::Rc;

/// What is in force now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Confined {
    /// The version of Landlock's ABI; 0 where files are not restricted, since the kernel has no Landlock.
    pub landlock: i32,
    /// What is less than usual, in sentences.
    pub remarks: Vec<String>,
}

/// Confines the calling process, and all that it will start, by the rules of a profile, for good.
///
/// Path rules, the network, system calls: all at once and without the exceptions that a program needs while it is
/// being loaded. The capabilities go, and `no_new_privs` is set. The current directory is the workspace. What the profile says about
/// variables does not apply, and neither do descriptors get closed: what this process has in its environment, in its
/// memory and open, it keeps. So do programs that it starts, as far as the profile lets it start any.
///
/// Nobody is told what is refused: a call just fails (or ends the process, if the profile says so). Changing modes, owners and times of
/// files fails always, since Landlock cannot tell where. There is no scratch directory.
///
/// # Errors
///
/// Nothing has changed if the profile cannot be found or understood, or asks for what takes a supervisor (limits,
/// UNIX sockets by path before Landlock ABI 9, listing instead of refusing, a choice of commands), or confines nothing, or if this process has more
/// than one thread: the others would stay as they are.
/// An error of [`Kind::System`] says that the kernel refused a step: some rules may be in force then, and the process
/// should end.
pub fn confine_self(profile: impl AsRef<OsStr>) -> Result<Confined, Error> {
    one_thread()?;
    let profile = profile::load(profile.as_ref(), &cli::search()).map_err(|e| Refusal::new(e.to_string()))?;
    let mut prepared = prepare(&profile)?;
    apply(&mut prepared).map_err(|why| Error::new(Kind::System, why))?;
    Ok(prepared.confined)
}

/// Seccomp and Landlock bind the thread that asks for it.
fn one_thread() -> Result<(), Error> {
    let threads = std::fs::read_dir("/proc/self/task").map_err(|error| {
        let why = plain(&error);
        Error::new(
            Kind::Refused,
            format!("cannot confine this process: cannot count its threads in /proc/self/task: {why}"),
        )
    })?;
    match threads.count() {
        1 => Ok(()),
        count => Err(Error::new(
            Kind::Refused,
            format!(
                "cannot confine this process: it has {count} threads, and only the calling one would be confined; do it before others are started"
            ),
        )),
    }
}

/// Everything that can be decided before something changes.
struct Steps {
    landlock: Option<Prepared>,
    filter: Vec<Insn>,
    confined: Confined,
}

fn prepare(profile: &Profile) -> Result<Steps, Refusal> {
    let flags = Run::default();
    let version = Version(seccomp::landlock_version());
    supervised(profile, version)?;
    let mut remarks = Vec::new();
    let network = demands::network(&flags, profile, version)?;
    let choice = namespaces::choose_for_oneself(profile, &network)?;
    demands::level(&flags, profile, version, &choice, &mut remarks)?;
    let mut calls = plan::calls(&flags, profile, &network, version)?;
    if demands::names_sockets(&flags, profile, &network, version)? {
        calls.add_sockets(false)?;
    }
    let paths = (version >= Version::FILES).then(|| paths(&flags, profile, &mut remarks));
    let paths = paths.transpose()?;
    let landlock = paths.as_ref().map(|paths| landlock::prepare(version, paths, &network, View::default()));
    let mut landlock = landlock.transpose()?;
    if let Some(landlock) = &mut landlock {
        landlock.fill(View::default())?;
    }
    let filter = filter(profile, calls, paths.is_some())?;
    Ok(Steps { landlock, filter, confined: Confined { landlock: version.0, remarks } })
}

/// What takes a supervisor, or a launcher.
fn supervised(profile: &Profile, version: Version) -> Result<(), Refusal> {
    let (name, limits) = (&profile.name, &profile.limits);
    let keys = [
        ("limits.timeout", limits.timeout.is_some()),
        ("limits.output", limits.output.is_some()),
        ("limits.processes", limits.processes.is_some()),
        ("limits.open_files", limits.open_files.is_some()),
        ("limits.file_size", limits.file_size.is_some()),
        ("limits.memory", limits.memory.is_some()),
        ("limits.cpu", limits.cpu.is_some()),
        ("commands.allow", !profile.commands.allow.is_empty()),
        ("commands.block", !profile.commands.block.is_empty()),
        ("network.unix", !profile.network.unix.is_empty() && version < Version::UNIX),
    ];
    let logs = demands::on_violation(&Run::default(), profile) == OnViolation::Log;
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

fn paths(flags: &Run, profile: &Profile, remarks: &mut Vec<String>) -> Result<Vec<PathRule>, Refusal> {
    let directory = std::env::current_dir()
        .map_err(|e| Refusal::new(format!("cannot find the working directory: {}", plain(&e))))?;
    let workspace = workspace::find(None, Working { directory: &directory, is_own: true }, remarks)?;
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let variables =
        Variables { workspace: workspace.as_deref(), home: home.as_deref(), tmp: None, cache: None };
    let sockets = files::sockets(flags, profile, &variables, &directory)?;
    let given = files::Given {
        variables: &variables,
        executed: Executed::default(),
        directory: &directory,
        sockets: &sockets,
        more: &[],
        masks: false,
    };
    let rules = files::rules(flags, profile, given, remarks)?.rules;
    remarks.extend(namespaces::unprotected(profile, &variables, &rules, namespaces::ONESELF));
    Ok(rules)
}

fn filter(profile: &Profile, calls: Calls, restricts_files: bool) -> Result<Vec<Insn>, Refusal> {
    let changes = attributes::all().any(|name| calls.allows(name));
    // To be decided by a supervisor, and so refused.
    let extras = Extras { attributes: restricts_files && changes, ..Extras::default() };
    let on_violation = demands::on_violation(&Run::default(), profile);
    Guard::new(&profile.name, Rc::new(calls), extras, on_violation, false).program()
}

fn apply(steps: &mut Steps) -> Result<(), String> {
    let failed = |what: &'static str| move |why: Failed| format!("cannot {what}: {why}");
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
        assert_eq!(error.kind(), Kind::Refused);
        assert!(error.to_string().contains("threads"), "{error}");
        drop(done);
        let _ = other.join();
    }

    #[test]
    fn what_takes_a_supervisor_is_refused() {
        let check = |text: &str| {
            let file = std::env::temp_dir().join(format!("sbx-oneself-{}.json", std::process::id()));
            std::fs::write(&file, text).unwrap();
            let profile = profile::load(file.as_os_str(), &profile::Search::default()).unwrap();
            std::fs::remove_file(&file).unwrap();
            prepare(&profile).map(drop).map_err(|refusal| refusal.to_string())
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
