//! The plan of a run that waits, for as long as nothing has changed that it was made from. Then the plan of a command
//! is the same but for the command, and is not made again.
//!
//! The files that it was made from are known by a copy of this process, which makes the plan while each of its calls is
//! observed ([`crate::sys::observed`]). Everything else comes from the caller, and is compared: the request by the pool's
//! key, the variables here, and what the command gets as descriptors 0 to 2 by [`Plan::suits`].

use crate::host::{Environment, Host};
use crate::plan::{Plan, find_program};
use crate::request::Request;
use crate::sys::observed::observe;
use crate::sys::unchanged::Unchanged;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// How long a plan may take under observation.
const LONGEST: Duration = Duration::from_secs(5);

/// Such a plan.
pub struct Lasting {
    environment: Environment,
    /// Until it is used.
    plan: Option<Plan>,
    /// Not to be dropped before the run has ended: closing inotify(7) takes 10 to 20 ms.
    unchanged: Unchanged,
}

impl Lasting {
    /// Of the plan that `make` makes with these variables, by a single thread that depends on nothing else. `None` if
    /// the kernel would not tell of all changes, or if something has changed meanwhile.
    pub fn of(environment: Environment, make: impl Fn() -> Option<Plan>) -> Option<Lasting> {
        let looks = || observe(|| make().is_some(), LONGEST);
        let marked = looks()?;
        let unchanged = Unchanged::from_now(&marked)?;
        let plan = make()?;
        // Nothing had been marked when it was made under observation first. So what it is made from now may be other
        // files, unless nothing has changed since and it still looks at those only.
        let is_all = looks()?.is_subset(&marked);
        (is_all && unchanged.holds()).then_some(Lasting { environment, plan: Some(plan), unchanged })
    }

    /// Can be read when something has happened to files, which may matter.
    pub fn news(&self) -> BorrowedFd<'_> {
        self.unchanged.as_fd()
    }

    /// Whether it is still to be had, and nothing has changed.
    pub fn holds(&self) -> bool {
        self.plan.is_some() && self.unchanged.holds()
    }

    /// The plan of a request, if it is the same but for the command. It can be used once.
    pub fn take(&mut self, request: &Request, host: &Host) -> Option<Plan> {
        let plan = self.plan.as_ref().filter(|_| self.environment == host.environment)?;
        let (program, None) = find_program(request.command.first()?, host, &plan.directory).ok()? else {
            return None;
        };
        // The last look is at what may have changed.
        let is_it = plan.suits(request, &program, host) && self.unchanged.holds();
        let mut plan = self.plan.take_if(|_| is_it)?;
        plan.give(request, program, host);
        Some(plan)
    }
}
