//! What a run that waits was made by, and whether it is still the one that is asked for.

use crate::enforce::child::Steps;
use crate::enforce::presence::Presence;
use crate::enforce::steps;
use crate::error::{Refusal, cannot};
use crate::host::Host;
use crate::host::mounts::Mounts;
use crate::plan::namespaces::Unavailable;
use crate::plan::{Draft, Inputs, Plan, Provided};
use crate::report::Reporter;
use crate::request::Request;
use crate::run::messages::{self, Closing};
use crate::run::provide::refresh_copies;
use crate::run::supervised::{Going, Prospect};
use crate::run::voice;
use crate::run::warm::lasting::{Kept, Lasting};
use crate::run::warm::same::{Files, Policy, unsuited};
use crate::run::warm::stands::Stands;
use crate::run::warm::{Asked, Door};
use crate::run::withheld::Withheld;
use crate::supervise::Caller;
use crate::supervise::violation::Violations;
use crate::sys::{descriptor, mount};
use crate::text::shown;
use std::cell::OnceCell;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::rc::Rc;

const OTHER_MOUNTS: &str = "what is mounted on this machine has changed";

/// What a run that waits was made by.
pub struct Waiting<'a> {
    pub unavailable: &'a Unavailable,
    pub provided: Provided,
    pub policy: Policy,
    pub files: Files,
    pub mounts: mount::Changes,
    /// What was mounted, and still is as long as nothing has changed.
    pub mounted: Mounts,
    pub presence: Option<Rc<Presence>>,
    /// What the run has for itself, from when it waits.
    pub stands: OnceCell<Stands>,
}

/// What the run that waits is to do, for whom.
pub struct Admitted {
    pub request: Request,
    pub caller: Caller,
    plan: Plan,
    /// Whether the plan was made before the command came.
    lasted: bool,
    host: Host,
}

/// A command that the run has got.
pub struct Taken {
    pub caller: Caller,
    pub prospect: Prospect,
    pub going: Going,
    pub violations: Violations,
    pub closing: Option<Closing>,
    pub withheld: Withheld,
}

impl Waiting<'_> {
    /// Plans what is asked for, and takes it if it is the run that waits. An error says why it is not; nothing, that
    /// nobody is there any more.
    pub fn admit(
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
    pub fn lost(&self) -> Option<String> {
        self.stands.get().and_then(Stands::lost)
    }

    /// What is mounted is known.
    fn among_mounts(&self, host: Host) -> Host {
        Host { mounts: host.mounts.known(Ok(self.mounted.clone())), ..host }
    }

    /// Keeps the plan of the pool's own request, if it is still the one of the run that waits.
    pub fn keep(&self, request: &Request, steps: &Steps, is_asked: &dyn Fn() -> bool) -> Option<Lasting> {
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
        match self.is_other() {
            None if self.mounts.happened() => Err(OTHER_MOUNTS.to_string()),
            None => Ok(plan),
            Some(why) => Err(why),
        }
    }

    /// Which file is another than the run was made from, if so.
    pub fn is_other(&self) -> Option<String> {
        self.files.changed().map(|path| format!("'{}' is another file by now", shown(path)))
    }

    /// Why it is not the run that the pool's own request would start now, if so.
    pub fn is_stale(&self, request: &Request) -> Option<String> {
        self.plan(request, &Host::of_this_process()).err()
    }

    /// What begins with the command.
    pub fn begin(&self, admitted: Admitted, reporter: Option<&mut Reporter>) -> Result<Taken, Refusal> {
        let Admitted { request, caller, mut plan, lasted, host } = admitted;
        // The child has seen to those that were open then.
        descriptor::close_all_on_exec().map_err(cannot("keep descriptors from the command"))?;
        let is_reported = reporter.is_some();
        if let Some(reporter) = reporter {
            reporter.planned(&mut plan);
        }
        let (violations, closing) = voice(&plan, &request, &host, &mut Vec::new());
        if closing.is_some() {
            violations.line(messages::warm(lasted));
        }
        let withheld = Withheld::of(&plan, &host);
        let prospect = Prospect::of(&plan, closing.is_some() || is_reported)?;
        let going = Going::begin(&prospect.limits, &[], false)?;
        Ok(Taken { caller, prospect, going, violations, closing, withheld })
    }
}

fn sentence(refusal: Refusal) -> String {
    refusal.to_string()
}
