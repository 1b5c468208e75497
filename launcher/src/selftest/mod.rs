//! Tries what is promised: what this machine can enforce (`status`), and whether a profile's promises hold here.
//!
//! `sbx test` runs this program as the *self-test* (`acts`) inside the sandbox of each profile, and looks at
//! the effects from outside. It does the same without a sandbox first, as a control: what fails there proves
//! nothing when it fails under a profile. The promises follow from the run's own plan (`claims`), so only
//! their enforcement is tested. `sbx run --verify` tries the quick rows before the command, with the flags of
//! the run.

mod acts;
mod claims;
mod error;
pub mod hosts;
mod judge;
mod observe;
pub mod rows;
mod show;
mod stage;
pub mod status;

use acts::NEEDS;
pub use acts::{WORD, main};
pub use judge::Verdict;
pub use show::{json, summary, table};

use crate::error::Refusal;
use crate::host::Host;
use crate::profile::{self, DefaultAction};
use crate::request::{OnViolation, Request};
use crate::run;
use crate::text::escape;
use claims::Claims;
use error::SelfTestError;
use hosts::outside::Outside;
use observe::{Body, Seen};
use rows::{ROWS, Row};
use stage::Stage;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of the JSON object.
pub const VERSION: u32 = 1;
/// The profiles that are tested by default. `unrestricted` promises nothing.
const TESTED: [&str; 7] = ["custom", "minimal", "network", "write", "no-exec", "read-only", "workspace"];

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A profile as it is.
    Profile,
    /// The same with rules about hosts.
    Hosts,
}

/// The verdicts on the promises of one profile.
pub struct Report {
    /// What it is about.
    pub subject: Subject,
    /// The profile.
    pub profile: OsString,
    /// The calls that the self-test was allowed besides, since it cannot report without them.
    pub added: Vec<&'static str>,
    /// The rows with their verdicts.
    pub rows: Vec<(&'static Row, Verdict)>,
}

impl Report {
    /// Whether a promise does not hold.
    pub fn is_broken(&self) -> bool {
        self.rows.iter().any(|(_, verdict)| matches!(verdict, Verdict::Broken(_)))
    }
}

/// Tests these profiles, or else the built-in ones, against their own promises or those of another profile.
pub fn test(profiles: &[OsString], against: Option<&OsStr>) -> Result<Vec<Report>, Refusal> {
    let own = own_program()?;
    let tested: Vec<OsString> =
        if profiles.is_empty() { TESTED.map(OsString::from).to_vec() } else { profiles.to_vec() };
    let rows: Vec<&Row> = ROWS.iter().collect();
    let control = control(&own, &rows, None)?;
    let report = |profile: &OsString| {
        let stage = Stage::new()?;
        let mut request = request(&own, profile, &stage)?;
        let mut claims = Claims::of(&request, &stage)?;
        let added = claims.lacking(NEEDS);
        request.allow_calls.extend(added.iter().map(OsString::from));
        if let Some(other) = against {
            claims = Claims::of(&self::request(&own, other, &stage)?, &stage)?;
        }
        let seen = confined(&request, &stage, &rows, None)?;
        let rows =
            rows.iter().map(|row| (*row, verdict(row, &claims, &stage, &seen, Some(&control)))).collect();
        Ok(Report { subject: Subject::Profile, profile: profile.clone(), added, rows })
    };
    let mut reports = tested.iter().map(report).collect::<Result<Vec<_>, Refusal>>()?;
    reports.extend(hosts::test(&own, profiles, against)?);
    Ok(reports)
}

/// The verdicts where nothing confines the self-test: each row that can prove anything has to be broken.
pub fn test_without_sandbox(program: &Path) -> Result<Vec<(&'static Row, Verdict)>, Refusal> {
    let rows: Vec<&Row> = ROWS.iter().collect();
    let seen = control(program, &rows, None)?;
    Ok(rows.iter().map(|row| (*row, judge::judge(row, Ok(()), Ok(()), &seen, Some(&seen)))).collect())
}

/// Tries the quick rows for a run, and refuses the run if a promise does not hold.
pub fn verify(request: &Request) -> Result<(), Refusal> {
    let rows: Vec<&Row> = ROWS.iter().filter(|row| !row.slow).collect();
    let stage = Stage::new()?;
    let mut request = staged(request, &stage)?;
    let claims = Claims::of(&request, &stage)?;
    request.allow_calls.extend(claims.lacking(NEEDS).iter().map(OsString::from));
    let seen = confined(&request, &stage, &rows, None)?;
    for row in rows {
        if let Verdict::Broken(why) = verdict(row, &claims, &stage, &seen, None) {
            return Err(SelfTestError::Broken { promise: row.promise, why }.into());
        }
    }
    Ok(())
}

fn verdict(row: &Row, claims: &Claims, stage: &Stage, seen: &Seen, control: Option<&Seen>) -> Verdict {
    let twin = row.twin.map_or(Ok(()), |(_, claim)| claim(claims, stage));
    judge::judge(row, (row.claim)(claims, stage), twin, seen, control)
}

fn own_program() -> Result<PathBuf, SelfTestError> {
    std::env::current_exe().map_err(SelfTestError::OwnProgram)
}

/// What is seen without any sandbox.
fn control(program: &Path, rows: &[&'static Row], outside: Option<&Outside>) -> Result<Seen, Refusal> {
    let stage = Stage::new()?;
    observed(&stage, rows, outside, &|brief, acts| {
        Err(SelfTestError::Exec(Command::new(program).args(brief.arguments(acts)).exec()).into())
    })
}

/// What is seen in the sandbox of a run with this request.
fn confined(
    request: &Request,
    stage: &Stage,
    rows: &[&'static Row],
    outside: Option<&Outside>,
) -> Result<Seen, Refusal> {
    observed(stage, rows, outside, &|brief, acts| {
        let mut request = request.clone();
        request.command.truncate(1);
        request.command.extend(brief.arguments(acts));
        run::run(request, |_| Ok(()))
    })
}

/// What is seen of a self-test on this machine, or on the one that has an outside of its own.
fn observed(
    stage: &Stage,
    rows: &[&'static Row],
    outside: Option<&Outside>,
    body: Body<'_>,
) -> Result<Seen, Refusal> {
    let mut seen = observe::observe(stage, &rows::acts(rows), &|brief, acts| {
        let entered = outside.map_or(Ok(()), Outside::enter);
        entered.map_err(|failed| SelfTestError::Call("move", failed))?;
        body(brief, acts)
    })?;
    if let Some(outside) = outside {
        seen.touched.extend(outside.arrived()?);
    }
    Ok(seen)
}

/// The request by which a profile is tested. A violation is an error, or the first one would end the self-test.
fn request(own: &Path, profile: &OsStr, stage: &Stage) -> Result<Request, Refusal> {
    let mut request = Request {
        quiet: true,
        on_violation: Some(OnViolation::Errno),
        profile: Some(profile.to_os_string()),
        workspace: Some(stage.path("home/project")),
        command: vec![own.into()],
        ..Request::default()
    };
    let loaded = profile::load(profile, &Host::of_this_process().search())?;
    match loaded.syscalls.default.as_deref() {
        Some(DefaultAction::Log) => {
            return Err(SelfTestError::LogOnly(escape(profile.as_bytes(), 200)).into());
        }
        // Such a profile promises nothing, but it can be tested against another one.
        Some(DefaultAction::Allow) => {
            request.dangerously_unconfined = true;
            request.on_violation = None;
        }
        _ => {}
    }
    Ok(request)
}

/// The request of a run, with the self-test on a stage instead of its command. Paths become absolute, since
/// the run starts in another directory.
fn staged(request: &Request, stage: &Stage) -> Result<Request, Refusal> {
    let start = request.cwd.as_deref().or(request.workspace.as_deref()).unwrap_or(Path::new(""));
    let here = std::env::current_dir().unwrap_or_default().join(start);
    let absolute = |paths: &[PathBuf]| paths.iter().map(|path| here.join(path)).collect::<Vec<_>>();
    let commands = |named: &[OsString]| {
        let path = |text: &OsString| match text.as_bytes().contains(&b'/') {
            true => here.join(text).into(),
            false => text.clone(),
        };
        named.iter().map(path).collect::<Vec<_>>()
    };
    Ok(Request {
        workspace: Some(stage.path("home/project")),
        cwd: None,
        ro: absolute(&request.ro),
        rox: absolute(&request.rox),
        rw: absolute(&request.rw),
        rwx: absolute(&request.rwx),
        deny: absolute(&request.deny),
        allow_command: commands(&request.allow_command),
        block_command: commands(&request.block_command),
        unix: absolute(&request.unix),
        on_violation: Some(OnViolation::Errno),
        env: Vec::new(),
        pass_fd: Vec::new(),
        verify: false,
        verbose: false,
        quiet: !request.explain,
        command: vec![own_program()?.into()],
        ..request.clone()
    })
}
