//! The outline of one run: request -> draft -> plan -> started -> ended.

pub mod aftermath;
mod arguments;
mod case;
mod compiling;
mod conclusion;
mod follow;
mod hindsight;
mod hosts;
mod messages;
mod provide;
mod proxy;
mod publish;
mod signing;
mod supervised;
pub mod warm;
mod withheld;

use crate::enforce::EnforceError;
use crate::enforce::child::{self, Progress, Steps};
use crate::enforce::home_places;
use crate::enforce::landlock::View;
use crate::enforce::steps::{self, Parts};
use crate::error::{Refusal, cannot};
use crate::host::Host;
use crate::plan::namespaces::{Missing, Unavailable};
use crate::plan::rules::PathRule;
use crate::plan::variables::Loudness;
use crate::plan::{Draft, Inputs, Plan};
use crate::report::Reporter;
use crate::request::Request;
use crate::supervise::violation::Violations;
use crate::sys::ahead::Ahead;
use crate::sys::signal::{self, Disposition};
use crate::sys::stream::StatusFlags;
use crate::sys::{descriptor, privilege, process, stream, terminal};
use follow::Voice;
use messages::Closing;
use provide::{Resources, provide};
use std::os::fd::OwnedFd;
use withheld::Withheld;

/// What is done before a run that asks for `--verify`.
pub type Check = fn(&Request) -> Result<(), Refusal>;

/// Runs what is asked for, and returns the exit status.
pub fn run(request: Request, verify: Check) -> Result<i32, Refusal> {
    // Before anything is opened: a descriptor of ours could take a number that the caller means.
    let closed = descriptor::fill_standard().map_err(cannot("make sure of standard input and output"))?;
    terminal::leave_input().map_err(cannot("leave what is typed to the terminal's foreground"))?;
    let passable = passable(&request.pass_fd);
    let (mut reporter, opened) = Reporter::open(&request);
    let flags = StatusFlags::of_standard();
    let result = passable.and(opened).and_then(|()| {
        if request.verify {
            verify(&request)?;
        }
        planned(&request, &closed, reporter.as_mut())
    });
    let result = match reporter {
        Some(reporter) => reporter.finish(result),
        None => result,
    };
    flags.restore();
    result
}

/// Refuses descriptors that are not the caller's to pass on.
fn passable(numbers: &[i32]) -> Result<(), Refusal> {
    match numbers.iter().find(|number| **number < 3 || !descriptor::is_open(**number)) {
        None => Ok(()),
        Some(number) => Err(Refusal::new(format!(
            "cannot pass descriptor {number} on: it is not open, or is one of 0 to 2, which are passed anyway"
        ))),
    }
}

/// Runs with the namespaces that are wanted; again without those that the machine does not give.
fn planned(request: &Request, closed: &[i32], mut reporter: Option<&mut Reporter>) -> Result<i32, Refusal> {
    let host = Host::of_this_process();
    let (mut said, mut unavailable) = (Vec::new(), Unavailable::default());
    loop {
        let before = unavailable.clone();
        let result = attempt(request, &host, closed, reporter.as_deref_mut(), &unavailable, &mut said);
        match &result {
            Err(Stop::Unavailable(missing, why)) => unavailable.add(*missing, why),
            Err(Stop::NoOverlays(why)) => unavailable.add_overlays(why),
            _ => {}
        }
        // What is missing is not tried again.
        if unavailable == before {
            return result.map_err(Refusal::from);
        }
    }
}

/// Why a run did not start.
enum Stop {
    /// The machine does not give it these namespaces, for this reason.
    Unavailable(Missing, String),
    /// The machine does not give it overlays.
    NoOverlays(String),
    Refused(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

impl From<EnforceError> for Stop {
    fn from(error: EnforceError) -> Stop {
        Stop::Refused(error.into())
    }
}

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Refusal {
        match stop {
            Stop::NoOverlays(why) => Refusal::new(why),
            Stop::Unavailable(_, why) => Refusal::new(format!("cannot make namespaces: {why}")),
            Stop::Refused(refusal) => refusal,
        }
    }
}

/// A plan to be completed, and what begins before it is.
struct Drafted<'a> {
    /// The lowest free number, kept for the notification descriptor where numbers are limited.
    spare: Option<OwnedFd>,
    draft: Draft<'a>,
    ahead: Option<Ahead>,
}

impl<'a> Drafted<'a> {
    fn of(request: &'a Request, host: &'a Host, unavailable: &Unavailable) -> Result<Drafted<'a>, Refusal> {
        let inputs = Inputs::read(request, host)?;
        let limited = request.max_open_files.is_some() || inputs.profile.limits.open_files.is_some();
        let spare = limited.then(|| stream::duplicate(0)).transpose();
        let spare = spare.map_err(cannot("keep a descriptor free"))?;
        let draft = Draft::new(inputs, unavailable)?;
        let ahead = draft.own_ahead().map(|own| Ahead::begin(own, *host.nested.get())).transpose();
        let ahead = ahead.map_err(cannot("block signals"))?.flatten();
        Ok(Drafted { spare, draft, ahead })
    }
}

/// One run, from its plan on. Warnings that an earlier attempt has printed are in `said`.
fn attempt(
    request: &Request,
    host: &Host,
    closed: &[i32],
    mut reporter: Option<&mut Reporter>,
    unavailable: &Unavailable,
    said: &mut Vec<String>,
) -> Result<i32, Stop> {
    hear_of_children()?;
    let Drafted { spare, draft, ahead } = Drafted::of(request, host, unavailable)?;
    let (resources, provided) = provide(&draft, host, unavailable, ahead.as_ref())?;
    let mut plan = draft.complete(provided)?;
    settle_home(&plan, &resources)?;
    if let Some(reporter) = &mut reporter {
        reporter.planned(&mut plan);
    }
    let (violations, closing) = voice(&plan, request, host, said);
    // The environment and memory of this process hold secrets, which the command could read otherwise.
    privilege::undumpable().map_err(cannot("protect the supervisor's memory"))?;
    let closed = closed.to_vec();
    if request.exec {
        return in_place(plan, Parts { closed, spare, ..Parts::default() }).map_err(Stop::from);
    }
    can_end()?;
    let cgroup_procs = resources.group.as_ref().map(|group| group.procs()).transpose()?;
    let parts = Parts { closed, spare, cgroup_procs, listens: !plan.unconfined, ahead, later: false };
    let withheld = Withheld::of(&plan, host);
    supervised::run(plan, parts, resources, Voice { violations, closing, withheld, reporter })
}

/// Writes down what this run mounts on in a home that lasts, and removes what earlier runs mounted on.
fn settle_home(plan: &Plan, resources: &Resources) -> Result<(), Refusal> {
    match (plan.private_home.as_ref().filter(|home| home.lasts), &plan.namespaces) {
        (Some(home), Ok(layout)) => Ok(home_places::settle(home, &resources.home, layout)?),
        _ => Ok(()),
    }
}

/// Says what there is to say before the start, but for what has been `said`. Returns who goes on saying things.
fn voice(
    plan: &Plan,
    request: &Request,
    host: &Host,
    said: &mut Vec<String>,
) -> (Violations, Option<Closing>) {
    let violations =
        Violations::new(plan.loudness != Loudness::Quiet).showing_all(plan.loudness == Loudness::Verbose);
    for warning in &plan.warnings {
        if !said.contains(warning) {
            violations.line(warning);
            said.push(warning.clone());
        }
    }
    let closing = (plan.loudness == Loudness::Verbose).then(|| {
        violations.line(&messages::banner(plan));
        let more = [messages::unused_profile(plan, request), withheld::all(plan, host)];
        more.iter().flatten().for_each(|line| violations.line(line));
        Closing::new(plan)
    });
    (violations, closing)
}

/// Where a caller that does not wait for its children had SIGCHLD ignored, the kernel would tell of the end
/// of ours neither by a signal nor by a status.
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
fn in_place(plan: Plan, parts: Parts) -> Result<i32, Refusal> {
    let (mut steps, view) = steps::lay_out(plan, parts, View::default())?;
    fill(&mut steps, view)?;
    let mut outcome = Progress::default();
    child::run(&mut steps, &mut outcome);
    Err(outcome.failure.map_or_else(|| Refusal::new("cannot execute the command"), Refusal::from))
}

/// Adds the path rules to the ruleset; what was granted where is returned.
fn fill(steps: &mut Steps, view: View<'_>) -> Result<Vec<PathRule>, Refusal> {
    steps.landlock.as_mut().map_or(Ok(Vec::new()), |landlock| Ok(landlock.fill(view)?))
}
