//! A run that is started before its command is known: everything stands and is in force, and the command's process
//! waits at a barrier of its own ([`crate::enforce::start_barrier`]) to execute it.
//!
//! When a command comes, its plan is made by the code that makes every plan, and has to be the one of the run that
//! waits (`super::same`). Where nothing has changed that the run's own plan was made from, it is that one
//! (`super::lasting`). Whatever depends on the command or on the moment is made then: the checks of the program,
//! the environment, the report, the limits of time, the looking about in the workspace.

use crate::enforce::child::Steps;
use crate::enforce::home_places;
use crate::enforce::presence::Presence;
use crate::enforce::start_barrier::StartBarrier;
use crate::enforce::steps::{self, Parts};
use crate::error::{Refusal, cannot};
use crate::host::mounts::Mounts;
use crate::host::{Environment, Host};
use crate::plan::namespaces::Unavailable;
use crate::plan::{Draft, Inputs, Plan, Provided};
use crate::report::Reporter;
use crate::request::Request;
use crate::run::lasting::{Kept, Lasting, News};
use crate::run::messages::{self, Closing};
use crate::run::provide::{provide, refresh_copies};
use crate::run::same::{Files, Policy, unsuited};
use crate::run::stands::Stands;
use crate::run::supervised::{Going, Laid, Left, Prospect, Signals, Started, Voice, follow};
use crate::run::withheld::Withheld;
use crate::run::{Drafted, Stop, can_end, hear_of_children, voice};
use crate::supervise::Caller;
use crate::supervise::violation::Violations;
use crate::sys::descriptor::{self, Interest};
use crate::sys::{mount, privilege, process};
use crate::text::shown;
use std::cell::OnceCell;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

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
    /// Waits until somebody asks, or for news; any of `broken` can be read when the run has failed meanwhile.
    fn wait(&mut self, broken: [RawFd; 2], news: News<'_>) -> Waited;
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

const OTHER_MOUNTS: &str = "what is mounted on this machine has changed";

/// What a run that waits was made by.
struct Waiting<'a> {
    unavailable: &'a Unavailable,
    provided: Provided,
    policy: Policy,
    files: Files,
    mounts: mount::Changes,
    /// What was mounted, and still is as long as nothing has changed.
    mounted: Mounts,
    presence: Option<Rc<Presence>>,
    /// What the run has for itself, from when it waits.
    stands: OnceCell<Stands>,
}

/// What the run that waits is to do, for whom.
struct Admitted {
    request: Request,
    caller: Caller,
    plan: Plan,
    /// Whether the plan was made before the command came.
    lasted: bool,
    host: Host,
}

/// A command that the run has got.
struct Taken {
    caller: Caller,
    prospect: Prospect,
    going: Going,
    said: Said,
}

/// What is to be said about its run, and to whom.
struct Said {
    plan: (Violations, Option<Closing>),
    withheld: Withheld,
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
    if let (Some(home), Ok(layout)) = (plan.private_home.as_ref().filter(|home| home.lasts), &plan.namespaces)
    {
        home_places::settle(home, &resources.home, layout)?;
    }
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
    let (afterwards, held) = laid.afterwards(resources, &limits, true);
    let presence = laid.presence.clone();
    let stands = OnceCell::new();
    let waiting = Waiting { unavailable, provided, policy, files, mounts, mounted, presence, stands };
    let (mut taken, mut reporter, mut stale) = (None, None, None);
    // Lasts as long as this process has something to do: to give it up takes time.
    let mut kept = Kept::default();
    let (mut is_taken, mut is_over, mut left) = (false, false, Left::default());
    let result = laid.start(&afterwards, |steps, meanwhile| {
        let Some((first, reaper)) =
            meanwhile.reaper.and_then(|pid| Some(pid).zip(process::open_pid(pid).ok()))
        else {
            return Ok(());
        };
        let broken = [meanwhile.events, reaper.as_raw_fd()];
        if !arrives(steps, broken) {
            return Ok(());
        }
        steps.forget_passed();
        let _ = waiting.stands.set(Stands::of(first, &waiting.policy)?);
        // Half of what is given up when the command has begun. What cannot be given up now is asked for again then.
        let _ = privilege::bound_capabilities();
        door.ready();
        loop {
            let asked = match door.wait(broken, kept.news()) {
                Waited::Asked(asked) => asked,
                Waited::News => {
                    kept.hear(|| waiting.keep(request, steps, &|| door.is_asked()));
                    continue;
                }
                Waited::Broken => return Ok(()),
                Waited::Over => {
                    is_over = true;
                    return Err(Refusal::new("nobody asks for the run any more"));
                }
            };
            match waiting.admit(*asked, &mut kept, steps, door) {
                Ok(None) => {}
                Ok(Some(admitted)) => {
                    is_taken = true;
                    let (opened, places) = Reporter::open(&admitted.request);
                    reporter = opened;
                    reporter.iter_mut().for_each(|reporter| reporter.answer_to(&admitted.caller));
                    places?;
                    taken = Some(waiting.begin(admitted, reporter.as_mut())?);
                    return Ok(());
                }
                Err(why) => {
                    door.refuse(&why);
                    // With the pool's own environment it may be what it was.
                    if let Some(why) = waiting.is_stale(request) {
                        stale = Some(why);
                        return Err(Refusal::new("the run is none that would be started now"));
                    }
                }
            }
        }
    });
    if is_taken {
        door.begun();
    }
    let result = match taken {
        Some(Taken { caller, prospect, going, said: Said { plan: (violations, closing), withheld } }) => {
            let voice = Voice { violations, closing, withheld, reporter: reporter.as_mut() };
            let (begun, held) = ((prospect, going, signals), (afterwards, held));
            follow(result, begun, held, (Some(caller), Some(&mut left)), voice)
        }
        // It could not be started after all.
        None if is_taken => result.map(|_| 0),
        None => match (stale, is_over) {
            (Some(why), _) => return Ok(Ended::Stale(why)),
            (None, true) => return Ok(Ended::Over),
            (None, false) => return Err(unstarted(result, &signals)?),
        },
    };
    let result = result.map_err(Refusal::from);
    door.end(match reporter {
        Some(reporter) => reporter.finish(result),
        None => result,
    });
    drop(left);
    Ok(Ended::Ran)
}

fn sentence(refusal: Refusal) -> String {
    refusal.to_string()
}

/// Has the child put everything in force, and waits until it waits for the command; false where the run has failed
/// before.
fn arrives(steps: &Steps, [events, reaper]: [RawFd; 2]) -> bool {
    let is_open = steps.barrier.as_ref().is_some_and(|barrier| barrier.open(true).is_ok());
    let arrival = steps.gate.as_ref().filter(|_| is_open).and_then(StartBarrier::arrival);
    let Some(arrival) = arrival else { return false };
    loop {
        let interests = [arrival, events, reaper].map(|number| Interest::read(Some(number)));
        match descriptor::poll(interests, None) {
            Ok(ready) if ready.iter().any(|ready| ready.now || ready.gone) => return ready[0].now,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
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

impl Waiting<'_> {
    /// Plans what is asked for, and takes it if it is the run that waits. An error says why it is not; nothing, that
    /// nobody is there any more.
    fn admit(
        &self,
        Asked { request, environment, streams, report }: Asked,
        kept: &mut Kept,
        steps: &Steps,
        door: &mut dyn Door,
    ) -> Result<Option<Admitted>, String> {
        let host = Host::of_caller(environment, streams.each_ref().map(AsRawFd::as_raw_fd));
        let host = self.among_mounts(host);
        let (plan, lasted) = match kept.take(&request, &host) {
            Some(_) if self.mounts.happened() => return Err(OTHER_MOUNTS.to_string()),
            Some(plan) => (plan, true),
            None => (self.plan(&request, &host)?, false),
        };
        match steps::fill(&steps.permit, &plan) {
            Ok(true) => {}
            Ok(false) => return Err("its words have no room".to_string()),
            Err(error) => return Err(error.to_string()),
        }
        self.come()?;
        let Some(caller) = door.take(streams, plan.limits.timeout) else {
            self.leave();
            return Ok(None);
        };
        // The report takes it over by its number.
        report.map(IntoRawFd::into_raw_fd);
        Ok(Some(Admitted { request, caller, plan, lasted, host }))
    }

    /// Takes the locks on repositories, and then the last look at what protects files. No other run replaces a
    /// configuration from then on.
    fn come(&self) -> Result<(), String> {
        let came = self.presence.iter().try_for_each(|presence| presence.come());
        let lost = came.map_or_else(|error| Some(error.to_string()), |()| self.lost());
        lost.map_or(Ok(()), |why| {
            self.leave();
            Err(why)
        })
    }

    fn leave(&self) {
        self.presence.iter().for_each(|presence| presence.leave());
    }

    /// What is gone of what protects files.
    fn lost(&self) -> Option<String> {
        self.stands.get().and_then(Stands::lost)
    }

    /// What is mounted is known.
    fn among_mounts(&self, host: Host) -> Host {
        Host { mounts: host.mounts.known(Ok(self.mounted.clone())), ..host }
    }

    /// Keeps the plan of the pool's own request, if it is still the one of the run that waits.
    fn keep(&self, request: &Request, steps: &Steps, is_asked: &dyn Fn() -> bool) -> Option<Lasting> {
        let host = self.among_mounts(Host::of_this_process());
        // The program is looked for when the command comes.
        let inputs = Inputs::read(request, &host).ok()?;
        let make = || {
            let host = self.among_mounts(Host::of_this_process());
            let inputs = Inputs::with(request, &host, |_| Ok((inputs.program.clone(), None)));
            let plan = self.plan_of(inputs.ok()?).ok();
            // How many processes the user has is another number each time.
            plan.filter(|_| !host.tasks.is_read())
        };
        let lasting = Lasting::of(host.environment.clone(), make, is_asked)?;
        // The command's words take memory that is there by then.
        lasting.plan().is_none_or(|plan| steps::fill(&steps.permit, plan).is_ok()).then_some(lasting)
    }

    /// The plan of what is asked for, if it is the one of the run that waits.
    fn plan(&self, request: &Request, host: &Host) -> Result<Plan, String> {
        self.plan_of(Inputs::read(request, host).map_err(sentence)?)
    }

    fn plan_of(&self, inputs: Inputs<'_>) -> Result<Plan, String> {
        if self.mounts.happened() {
            return Err(OTHER_MOUNTS.to_string());
        }
        if let Some(lost) = self.lost() {
            return Err(lost);
        }
        let draft = Draft::new(inputs, self.unavailable).map_err(sentence)?;
        let needs = draft.needs();
        let mut provided = self.provided.clone();
        refresh_copies(&draft, &mut provided);
        let plan = draft.complete(provided).map_err(sentence)?;
        if let Some(why) = unsuited(&plan) {
            return Err(why.to_string());
        }
        if let Some(what) = self.policy.difference(&Policy::of(&plan, needs)) {
            return Err(format!("{what} would be another"));
        }
        match self.files.changed() {
            None if self.mounts.happened() => Err(OTHER_MOUNTS.to_string()),
            None => Ok(plan),
            Some(path) => Err(format!("'{}' is another file by now", shown(path))),
        }
    }

    /// Why it is not the run that the pool's own request would start now, if so.
    fn is_stale(&self, request: &Request) -> Option<String> {
        self.plan(request, &Host::of_this_process()).err()
    }

    /// What begins with the command.
    fn begin(&self, admitted: Admitted, reporter: Option<&mut Reporter>) -> Result<Taken, Refusal> {
        let Admitted { request, caller, mut plan, lasted, host } = admitted;
        // The child has seen to those that were open then.
        descriptor::close_all_on_exec().map_err(cannot("keep descriptors from the command"))?;
        let is_reported = reporter.is_some();
        if let Some(reporter) = reporter {
            reporter.planned(&mut plan);
        }
        let (violations, closing) = voice(&plan, &request, &mut Vec::new());
        if closing.is_some() {
            violations.line(messages::warm(lasted));
        }
        let withheld = Withheld::of(&plan, &host);
        let prospect = Prospect::of(&plan, closing.is_some() || is_reported)?;
        let going = Going::begin(&prospect.limits, &[])?;
        Ok(Taken { caller, prospect, going, said: Said { plan: (violations, closing), withheld } })
    }
}
