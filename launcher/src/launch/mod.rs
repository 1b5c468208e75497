//! From a plan to a running, confined command.

pub mod cgroup;
pub mod child;
pub mod commands;
mod conclusion;
pub(crate) mod demands;
pub mod environment;
pub(crate) mod files;
pub mod gate;
pub mod ground;
pub mod guard;
pub mod landlock;
pub mod limits;
mod messages;
pub mod mounts;
pub mod namespaces;
mod places;
pub mod plan;
pub mod policy;
pub mod question;
mod removal;
pub mod resolve;
mod rows;
pub mod scratch;
pub mod siblings;
mod steps;
mod supervised;
pub mod token;
pub mod treatment;
pub mod within;
pub mod workspace;

use crate::canary;
use crate::cli::Run;
use crate::cli::variables::{self, Loudness};
use crate::launch::child::{Failure, Outcome, Steps};
use crate::launch::landlock::View;
use crate::launch::messages::Closing;
use crate::launch::plan::Plan;
use crate::launch::policy::PathRule;
use crate::refusal::{NOT_EXECUTABLE, NOT_FOUND, REFUSED, Refusal};
use crate::report::Reporter;
use crate::supervise::violation::{Show, Violations};
use crate::sys::signal::Disposition;
use crate::sys::{Failed, descriptor, privilege, process, signal, stream};

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
    let mut said = Vec::new();
    match attempt(flags, closed.clone(), reporter.as_deref_mut(), None, &mut said) {
        Err(Stop::Unavailable(why)) => {
            attempt(flags, closed, reporter, Some(&why), &mut said).map_err(Refusal::from)
        }
        result => result.map_err(Refusal::from),
    }
}

/// Why a run did not start.
enum Stop {
    /// The machine does not give it namespaces.
    Unavailable(String),
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Refusal {
        match stop {
            Stop::Unavailable(why) => Refusal::new(format!("cannot make namespaces: {why}")),
            Stop::Refused(refusal) => refusal,
        }
    }
}

/// One run, from its plan on: with namespaces where they are wanted, unless they `failed` before.
fn attempt(
    flags: &Run,
    closed: Vec<i32>,
    mut reporter: Option<&mut Reporter>,
    failed: Option<&str>,
    said: &mut Vec<String>,
) -> Result<i32, Stop> {
    hear_of_children()?;
    // The lowest number that is free now is the notification descriptor's, where their number is limited.
    let spare = flags.max_open_files.is_some().then(|| stream::duplicate(0)).transpose();
    let spare = spare.map_err(cannot("keep a descriptor free"))?;
    let mut plan = plan::make(flags, failed)?;
    plan.spare = spare;
    if let Some(reporter) = &mut reporter {
        reporter.planned(&mut plan);
    }
    let loudness = variables::loudness(flags)?;
    let show = if loudness == Loudness::Quiet { Show::Nothing } else { Show::Lines };
    let violations = Violations::new(show);
    for remark in &plan.remarks {
        if !said.contains(remark) {
            violations.line(remark);
            said.push(remark.clone());
        }
    }
    let closing = (loudness == Loudness::Verbose).then(|| {
        violations.line(&messages::banner(&plan));
        Closing::new(&plan)
    });
    // Its secrets are in our environment and memory, which the command could read otherwise.
    privilege::undumpable().map_err(cannot("protect the supervisor's memory"))?;
    if flags.exec {
        return in_place(plan, closed).map_err(Stop::from);
    }
    can_end()?;
    supervised::run(plan, closed, violations, closing, reporter)
}

fn cannot(what: &'static str) -> impl FnOnce(Failed) -> Refusal {
    move |failed| Refusal::new(format!("cannot {what}: {failed}"))
}

/// Where a caller that does not wait for its children had SIGCHLD ignored, the kernel would tell of the end of ours neither
/// by a signal nor by a status.
pub fn hear_of_children() -> Result<(), Refusal> {
    signal::dispose(libc::SIGCHLD, Disposition::Default)
        .map(drop)
        .map_err(cannot("learn of the end of processes"))
}

/// Where a filter around us refuses to be asked about children nobody would learn of the end of the run, and where no
/// signals can be sent nobody could bring it about.
fn can_end() -> Result<(), Refusal> {
    process::can_wait().map_err(cannot("learn of the end of processes"))?;
    process::sends_signals().map_err(cannot("send signals, by which runs end"))
}

/// Becomes the command.
fn in_place(mut plan: Plan, closed: Vec<i32>) -> Result<i32, Refusal> {
    let limits = std::mem::take(&mut plan.limits);
    let (mut steps, view) = steps::lay_out(plan, &limits, closed, false, View::default())?;
    fill(&mut steps, view)?;
    let mut outcome = Outcome::default();
    child::run(&mut steps, &mut outcome);
    Err(outcome.failure.map_or_else(|| Refusal::new("cannot execute the command"), refusal))
}

/// Adds the path rules to the ruleset; what was granted where is returned.
fn fill(steps: &mut Steps, view: View<'_>) -> Result<Vec<PathRule>, Refusal> {
    steps.landlock.as_mut().map_or(Ok(Vec::new()), |landlock| landlock.fill(view))
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
