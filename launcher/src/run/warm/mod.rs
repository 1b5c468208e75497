//! A run that is started before its command is known: everything stands and is in force, and the command's process
//! waits at a barrier of its own ([`crate::enforce::start_barrier`]) to execute it.
//!
//! When a command comes, its plan is made by the code that makes every plan, and has to be the one of the run that
//! waits (`same`). Where nothing has changed that the run's own plan was made from, it is that one
//! ([`lasting`]). Whatever depends on the command or on the moment is made then: the checks of the program,
//! the environment, the report, the limits of time, the looking about in the workspace.

pub mod lasting;
mod same;
mod stands;
mod vigil;
mod waiting;

use crate::enforce::presence::Presence;
use crate::enforce::steps::Parts;
use crate::error::{Refusal, cannot};
use crate::host::{Environment, Host};
use crate::plan::namespaces::Unavailable;
use crate::request::Request;
use crate::run::follow::{Left, Run, Voice, follow};
use crate::run::provide::provide;
use crate::run::supervised::{Laid, Signals, Started};
use crate::run::{Drafted, Stop, can_end, hear_of_children, settle_home};
use crate::supervise::Caller;
use crate::sys::{mount, privilege};
use lasting::News;
use same::{Policy, unsuited};
use std::cell::OnceCell;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Duration;
use vigil::{Came, Vigil};
use waiting::{Taken, Waiting};

/// A run that somebody asks for.
pub struct Asked {
    /// What is asked.
    pub request: Request,
    /// The caller's environment.
    pub environment: Environment,
    /// Its standard input, output and error.
    pub streams: [OwnedFd; 3],
    /// Its descriptor for the report, whose number the request has.
    pub report: Option<OwnedFd>,
}

/// What came of waiting.
pub enum Waited {
    /// Somebody asks for a run.
    Asked(Box<Asked>),
    /// There may be news.
    News,
    /// The run that waits has failed.
    Broken,
    /// Nobody will ask any more.
    Over,
}

/// Where runs are asked for.
pub trait Door {
    /// The run stands, and waits.
    fn ready(&mut self);
    /// Whether somebody asks already.
    fn is_asked(&self) -> bool;
    /// Waits until somebody asks, or for news, as which counts that something of the run's mounts is gone; any of
    /// `broken` can be read when the run has failed meanwhile.
    fn wait(&mut self, broken: [RawFd; 2], mounts: Option<&mount::Changes>, news: News<'_>) -> Waited;
    /// Tells who asked that this run is not the one, and why.
    fn refuse(&mut self, why: &str);
    /// Tells who asked that the command starts here, and how long it may run, unless nobody is there any more. From
    /// then on descriptors 0 to 2 are the caller's.
    fn take(&mut self, streams: [OwnedFd; 3], time: Option<Duration>) -> Option<Caller>;
    /// The command goes on by itself.
    fn begun(&mut self);
    /// Tells who asked how the run has ended: nothing of it can act any more. What it left is removed afterwards.
    fn end(&mut self, result: Result<i32, Refusal>);
}

/// How the waiting ended.
pub enum Ended {
    /// With the run of a command.
    Ran,
    /// Without: the run is none that would be started now, for this reason.
    Stale(String),
    /// Without: nobody asks any more.
    Over,
    /// No run of this kind can wait.
    Unsuited(String),
}

/// Starts a run of what is asked for but its command, and waits for that at the door. `request` has a command that
/// stands for it.
pub fn park(request: &Request, door: &mut dyn Door) -> Ended {
    let mut unavailable = Unavailable::default();
    loop {
        let before = unavailable.clone();
        match attempt(request, door, &unavailable) {
            Ok(ended) => return ended,
            Err(Stop::Unavailable(missing, why)) => unavailable.add(missing, &why),
            Err(Stop::NoOverlays(why)) => unavailable.add_overlays(&why),
            Err(Stop::Refused(refusal)) => return Ended::Unsuited(refusal.to_string()),
        }
        if unavailable == before {
            return Ended::Unsuited("the machine does not give it namespaces".to_string());
        }
    }
}

/// What cannot be asked of a run that waits, whatever its plan is.
pub fn cannot_wait(request: &Request) -> Option<&'static str> {
    let found = [
        (request.exec, "--exec leaves nobody who waits"),
        (request.verify, "--verify tries things before the start"),
        (request.dangerously_unconfined, "nothing confines it"),
        (!request.pass_fd.is_empty(), "it gets descriptors of its caller"),
    ];
    found.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why)
}

fn attempt(request: &Request, door: &mut dyn Door, unavailable: &Unavailable) -> Result<Ended, Stop> {
    hear_of_children()?;
    if let Some(why) = cannot_wait(request) {
        return Ok(Ended::Unsuited(why.to_string()));
    }
    let host = Host::of_this_process();
    // Before anything is looked at.
    let mounts = mount::Changes::from_now().map_err(cannot("watch what is mounted"))?;
    let Drafted { spare, draft, ahead } = Drafted::of(request, &host, unavailable)?;
    let needs = draft.needs();
    let (resources, provided) = provide(&draft, &host, unavailable, ahead.as_ref())?;
    let plan = draft.complete(provided.clone())?;
    if let Some(why) = unsuited(&plan) {
        return Ok(Ended::Unsuited(why.to_string()));
    }
    settle_home(&plan, &resources)?;
    let policy = Policy::of(&plan, needs);
    let (files, mounted) = (policy.files(), host.mounts()?.clone());
    privilege::undumpable().map_err(cannot("protect the supervisor's memory"))?;
    can_end()?;
    let cgroup_procs = resources.group.as_ref().map(|group| group.procs()).transpose()?;
    let parts =
        Parts { closed: Vec::new(), spare, cgroup_procs, listens: !plan.unconfined, ahead, later: true };
    let signals = Signals::take()?;
    let limits = plan.limits.clone();
    let mut laid = Laid::out(plan, parts, &signals, |layout| Ok(Presence::away(layout)))?;
    if !laid.tree {
        return Ok(Ended::Unsuited("its command starts no processes".to_string()));
    }
    // There may be a report of it.
    let (afterwards, kept) = laid.afterwards(resources, &limits, true);
    let presence = laid.presence.clone();
    let waiting =
        Waiting { unavailable, provided, policy, files, mounts, mounted, presence, stands: OnceCell::new() };
    let mut vigil = Vigil::begin(request, &waiting);
    let result = laid.start(&afterwards, |steps, meanwhile| vigil.keep(steps, meanwhile, door));
    // What is kept lasts as long as this process has something to do: to give it up takes time.
    let Vigil { came, mut reporter, kept: _kept, .. } = vigil;
    let mut left = Left::default();
    let result = match came {
        Came::Command(taken) => {
            door.begun();
            let Taken { caller, prospect, going, violations, closing, withheld } = *taken;
            let voice = Voice { violations, closing, withheld, reporter: reporter.as_mut() };
            let (caller, left) = (Some(caller), Some(&mut left));
            follow(result, Run { prospect, going, signals, afterwards, kept, caller, left, voice })
        }
        // It could not be started after all.
        Came::Lost => {
            door.begun();
            result.map(|_| 0)
        }
        Came::Stale(why) => return Ok(Ended::Stale(why)),
        Came::Over => return Ok(Ended::Over),
        Came::Nobody => return Err(unstarted(result, &signals)?),
    };
    let result = result.map_err(Refusal::from);
    door.end(match reporter {
        Some(reporter) => reporter.finish(result),
        None => result,
    });
    drop(left);
    Ok(Ended::Ran)
}

/// Why a run that was to wait does not.
fn unstarted(result: Result<Started, Stop>, signals: &Signals) -> Result<Stop, Stop> {
    signals.give_back()?;
    let outcome = match result {
        Ok(Started { outcome, .. }) => outcome,
        Err(stop) => return Ok(stop),
    };
    Ok(match (outcome.missing, outcome.no_overlays, outcome.failure) {
        (Some((missing, why)), ..) => Stop::Unavailable(missing, why),
        (None, Some(why), _) => Stop::NoOverlays(why),
        (None, None, Some(failure)) => Refusal::from(failure).into(),
        (None, None, None) => Refusal::new("the run that was to wait ended").into(),
    })
}
