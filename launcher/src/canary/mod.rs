//! Canaries: what a profile promises to refuse is tried inside its real sandbox, and looked at from outside.
//!
//! `sbx test` runs this program once more as the *canary* (`acts`), first without a sandbox and then under each
//! profile. The first run is the control: what fails there proves nothing when it fails under a profile. What a run
//! promises is worked out from its own rules (`claims`); that they are in force is what is tested. `sbx run
//! --verify` does the quick part of this before the command, with the flags of the run.

pub mod acts;
mod claims;
mod judge;
pub mod rows;
mod run;
mod show;
mod stage;

use acts::NEEDS;
pub use acts::{WORD, main};
pub use judge::Verdict;
pub use show::{json, summary, table};

use crate::cli::{OnViolation, Run, RunOnly};
use crate::launch;
use crate::launch::landlock::Version;
use crate::profile::{self, DefaultAction};
use crate::refusal::Refusal;
use crate::supervise::decode::escape;
use crate::sys::{plain, seccomp};
use claims::Claims;
use clap::Parser;
use rows::{ROWS, Row};
use run::Seen;
use stage::Stage;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of the JSON object.
pub const VERSION: u32 = 1;
/// The profiles that are tested where none is named: `unrestricted` promises nothing.
const TESTED: [&str; 7] = ["custom", "minimal", "network", "write", "no-exec", "read-only", "workspace"];

/// What became of a profile's promises.
pub struct Report {
    /// The profile.
    pub profile: OsString,
    /// What the canary was allowed besides, since it says nothing without.
    pub added: Vec<&'static str>,
    /// Its rows, with their verdicts.
    pub rows: Vec<(&'static Row, Verdict)>,
}

impl Report {
    /// Whether a promise does not hold.
    pub fn is_broken(&self) -> bool {
        self.rows.iter().any(|(_, verdict)| matches!(verdict, Verdict::Broken(_)))
    }
}

/// Tests profiles, those that are shipped where none is named, against their own promises or those of another one.
pub fn test(profiles: &[OsString], against: Option<&OsStr>) -> Result<Vec<Report>, Refusal> {
    let own = std::env::current_exe()
        .map_err(|error| Refusal::new(format!("cannot find this program: {}", plain(&error))))?;
    let tested: Vec<OsString> =
        if profiles.is_empty() { TESTED.map(OsString::from).to_vec() } else { profiles.to_vec() };
    let rows: Vec<&Row> = ROWS.iter().collect();
    let control = control(&own, &rows)?;
    let report = |profile: &OsString| {
        let stage = Stage::new()?;
        let mut flags = flags(&own, profile, &stage)?;
        let mut claims = Claims::of(&flags, &stage)?;
        let added = claims.lacking(NEEDS);
        flags.allow_calls.extend(added.iter().map(OsString::from));
        if let Some(other) = against {
            claims = Claims::of(&self::flags(&own, other, &stage)?, &stage)?;
        }
        let seen = confined(&flags, &stage, &rows)?;
        let rows =
            rows.iter().map(|row| (*row, verdict(row, &claims, &stage, &seen, Some(&control)))).collect();
        Ok(Report { profile: profile.clone(), added, rows })
    };
    tested.iter().map(report).collect()
}

/// What every row comes to where nothing confines the canary: each that proves anything has to be broken.
pub fn test_without_sandbox(program: &Path) -> Result<Vec<(&'static Row, Verdict)>, Refusal> {
    let rows: Vec<&Row> = ROWS.iter().collect();
    let seen = control(program, &rows)?;
    Ok(rows.iter().map(|row| (*row, judge::judge(row, Ok(()), Ok(()), &seen, Some(&seen)))).collect())
}

/// The quick part, for a run with these flags: refuses it if a promise does not hold.
pub fn verify(flags: &Run) -> Result<(), Refusal> {
    let rows: Vec<&Row> = ROWS.iter().filter(|row| !row.slow).collect();
    let stage = Stage::new()?;
    let mut flags = staged(flags, &stage)?;
    let claims = Claims::of(&flags, &stage)?;
    flags.allow_calls.extend(claims.lacking(NEEDS).iter().map(OsString::from));
    let seen = confined(&flags, &stage, &rows)?;
    for row in rows {
        if let Verdict::Broken(why) = verdict(row, &claims, &stage, &seen, None) {
            let why = escape(why.as_bytes(), 200);
            return Err(Refusal::new(format!(
                "refused to run the command: --verify found that a promise does not hold here: {} ({why})",
                row.promise
            )));
        }
    }
    Ok(())
}

fn verdict(row: &Row, claims: &Claims, stage: &Stage, seen: &Seen, control: Option<&Seen>) -> Verdict {
    let twin = row.twin.map_or(Ok(()), |(_, claim)| claim(claims, stage));
    judge::judge(row, (row.claim)(claims, stage), twin, seen, control)
}

/// Without any sandbox.
fn control(program: &Path, rows: &[&'static Row]) -> Result<Seen, Refusal> {
    let stage = Stage::new()?;
    run::observe(&stage, &rows::acts(rows), &|brief, acts| {
        let error = Command::new(program).args(brief.arguments(acts)).exec();
        Err(Refusal::new(format!("cannot start the canary: {}", plain(&error))))
    })
}

/// In the sandbox of a run with these flags.
fn confined(flags: &Run, stage: &Stage, rows: &[&'static Row]) -> Result<Seen, Refusal> {
    run::observe(stage, &rows::acts(rows), &|brief, acts| {
        let mut flags = flags.clone();
        flags.command.truncate(1);
        flags.command.extend(brief.arguments(acts));
        launch::run(flags)
    })
}

/// The flags by which a profile is tested: a violation is an error for the canary, which would not get far
/// otherwise.
fn flags(own: &Path, profile: &OsStr, stage: &Stage) -> Result<Run, Refusal> {
    let workspace = stage.path("home/project");
    let words: [&OsStr; 10] = [
        OsStr::new("run"),
        OsStr::new("--quiet"),
        OsStr::new("--on-violation"),
        OsStr::new("errno"),
        OsStr::new("--profile"),
        profile,
        OsStr::new("--workspace"),
        workspace.as_os_str(),
        OsStr::new("--"),
        own.as_os_str(),
    ];
    let parsed = RunOnly::try_parse_from(words).map_err(|error| Refusal::new(error.to_string()))?;
    let mut flags = parsed.run;
    flags.ro = granted(stage);
    let search = crate::cli::search();
    let loaded = profile::load(profile, &search).map_err(|error| Refusal::new(error.to_string()))?;
    let name = escape(profile.as_bytes(), 200);
    match loaded.syscalls.default.as_deref() {
        Some(DefaultAction::Log) => {
            return Err(Refusal::new(format!(
                "cannot test profile '{name}': it lets every call through, and lists them"
            )));
        }
        // Only what it does not promise can be seen, against another profile.
        Some(DefaultAction::Allow) => {
            flags.dangerously_unconfined = true;
            flags.on_violation = None;
            flags.ro.clear();
        }
        _ => {}
    }
    Ok(flags)
}

/// What is opened for reading only, where path rules are to be had.
fn granted(stage: &Stage) -> Vec<PathBuf> {
    let there = Version(seccomp::landlock_version()) >= Version::FILES;
    there.then(|| stage.path("home/granted")).into_iter().collect()
}

/// The flags of a run, for a canary on a stage in place of the command.
fn staged(flags: &Run, stage: &Stage) -> Result<Run, Refusal> {
    let own = std::env::current_exe()
        .map_err(|error| Refusal::new(format!("cannot find this program: {}", plain(&error))))?;
    let start = flags.cwd.as_deref().or(flags.workspace.as_deref());
    let start = start.map(Path::to_path_buf).unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default().join(start);
    let absolute = |paths: &[PathBuf]| paths.iter().map(|path| here.join(path)).collect::<Vec<_>>();
    let commands = |named: &[OsString]| {
        let path = |text: &OsString| match text.as_bytes().contains(&b'/') {
            true => here.join(text).into(),
            false => text.clone(),
        };
        named.iter().map(path).collect::<Vec<_>>()
    };
    let mut ro = absolute(&flags.ro);
    ro.extend(granted(stage));
    Ok(Run {
        workspace: Some(stage.path("home/project")),
        cwd: None,
        ro,
        rox: absolute(&flags.rox),
        rw: absolute(&flags.rw),
        rwx: absolute(&flags.rwx),
        deny: absolute(&flags.deny),
        allow_command: commands(&flags.allow_command),
        block_command: commands(&flags.block_command),
        unix: absolute(&flags.unix),
        on_violation: Some(OnViolation::Errno),
        env: Vec::new(),
        pass_fd: Vec::new(),
        verify: false,
        verbose: false,
        quiet: !flags.explain,
        command: vec![own.into()],
        ..flags.clone()
    })
}
