//! The plan of a run that waits, for as long as nothing has changed that it was made from. Then the plan of a command
//! is the same but for the command, and is not made again.
//!
//! The files that it was made from are known by a copy of this process, which makes the plan while each of its calls is
//! observed ([`crate::sys::observed`]). Everything else comes from the caller, and is compared: the request by the
//! pool's key, the variables here, and what the command gets as descriptors 0 to 2 by [`Plan::suits`].

use crate::host::{Environment, Host};
use crate::plan::{Plan, find_program};
use crate::request::Request;
use crate::sys::observed::observe;
use crate::sys::unchanged::Unchanged;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// How long a plan may take under observation.
const LONGEST: Duration = Duration::from_secs(5);

/// For how long nobody has asked for a run before it makes such a plan, since that takes longer than a plan by itself.
/// For as long it does not look at what has happened to files, so that it holds nobody up who changes many. Twice as
/// long each time that a plan was made.
const SHORTEST_REST: Duration = Duration::from_millis(20);
const LONGEST_REST: Duration = Duration::from_secs(10);

/// As many times in a row no plan that lasts may come of it.
const MOST_FAILURES: u32 = 3;

/// When there are news for a run that waits.
pub enum News<'f> {
    /// There are none.
    Never,
    /// When something can be read there.
    From(BorrowedFd<'f>),
    /// After some time.
    After(Duration),
}

/// Such a plan, if there is one just now.
pub struct Kept {
    lasting: Option<Lasting>,
    /// Whether something has happened that may matter.
    has_news: bool,
    rest: Duration,
    failures: u32,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { lasting: None, has_news: false, rest: SHORTEST_REST, failures: 0 }
    }
}

impl Kept {
    /// When [`Kept::hear`] is to be called.
    pub fn news(&self) -> News<'_> {
        match &self.lasting {
            // Not at once: who has begun to write goes on.
            Some(_) if self.has_news => News::After(self.rest),
            Some(lasting) => News::From(lasting.unchanged.as_fd()),
            None if self.failures < MOST_FAILURES => News::After(self.rest),
            None => News::Never,
        }
    }

    /// Makes one where there is none that lasts.
    pub fn hear(&mut self, make: impl FnOnce() -> Option<Lasting>) {
        let rests = self.lasting.is_some() && !self.has_news;
        self.has_news = rests;
        if !rests && !self.lasting.as_ref().is_some_and(Lasting::holds) {
            self.lasting = make();
            self.failures = if self.lasting.is_some() { 0 } else { self.failures + 1 };
            self.rest = (self.rest * 2).min(LONGEST_REST);
        }
    }

    /// The plan of a request, if it is the same but for the command. It can be used once.
    pub fn take(&mut self, request: &Request, host: &Host) -> Option<Plan> {
        self.lasting.as_mut()?.take(request, host)
    }
}

/// A plan, and what it was made from.
pub struct Lasting {
    environment: Environment,
    /// Until it is used.
    plan: Option<Plan>,
    /// Not to be dropped before the run has ended: closing inotify(7) takes 10 to 20 ms.
    unchanged: Unchanged,
}

impl Lasting {
    /// Of the plan that `make` makes with these variables. `None` if the kernel would not tell of all changes, if
    /// something has changed meanwhile, or if somebody asks for the run.
    pub fn of(
        environment: Environment,
        make: impl Fn() -> Option<Plan>,
        is_asked: &dyn Fn() -> bool,
    ) -> Option<Lasting> {
        let (plan, unchanged) = watched(make, is_asked)?;
        Some(Lasting { environment, plan: Some(plan), unchanged })
    }

    /// The plan, until it is taken.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Whether it is still to be had, and nothing has changed.
    fn holds(&self) -> bool {
        self.plan.is_some() && self.unchanged.holds()
    }

    fn take(&mut self, request: &Request, host: &Host) -> Option<Plan> {
        let plan = self.plan.as_ref().filter(|_| self.environment == host.environment)?;
        let (program, None) = find_program(request.command.first()?, host, &plan.directory).ok()? else {
            return None;
        };
        // The last look is at what may have changed.
        let is_it = plan.suits(request, &program, host) && self.unchanged.holds();
        let mut plan = self.plan.take_if(|_| is_it)?;
        plan.give(request, program, host).ok()?;
        Some(plan)
    }
}

/// What is made from files, and whether those are as they were then.
fn watched<T>(make: impl Fn() -> Option<T>, is_asked: &dyn Fn() -> bool) -> Option<(T, Unchanged)> {
    let goes_on = || (!is_asked()).then_some(());
    let looks = || observe(|| make().is_some(), LONGEST);
    let marked = looks()?;
    goes_on()?;
    let unchanged = Unchanged::from_now(&marked)?;
    let made = make()?;
    goes_on()?;
    // Nothing was marked when it was made under observation first. So it may be made from other files by now, unless
    // nothing has changed since and it still looks at those only.
    let is_all = looks()?.is_subset(&marked);
    (is_all && unchanged.holds()).then_some((made, unchanged))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::cell::Cell;
    use std::fs;

    #[test]
    fn what_is_made_from_other_files_than_were_marked_is_not_kept() {
        let scratch = Scratch::create(None).unwrap();
        let [one, other] = ["one", "other"].map(|name| scratch.path().join(name));
        let (made, unchanged) = watched(|| Some(one.exists()), &|| false).unwrap();
        assert!(!made && unchanged.holds());
        // Those that are observed are copies of this process.
        let this = std::process::id();
        let is_copy = || std::process::id() != this;
        let change = || {
            let known = one.exists();
            (is_copy() || fs::write(&one, "").is_ok()).then_some(known)
        };
        assert!(watched(change, &|| false).is_none());
        // From then on it looks elsewhere, where nothing is marked.
        let goes_on = Cell::new(false);
        let elsewhere = || {
            let before = goes_on.replace(goes_on.get() || !is_copy());
            Some(if before { other.exists() } else { one.exists() })
        };
        assert!(watched(elsewhere, &|| false).is_none());
        // Who asks does not wait for it.
        let made = Cell::new(false);
        let make = || {
            made.set(true);
            Some(())
        };
        assert!(watched(make, &|| true).is_none() && !made.get());
    }
}
