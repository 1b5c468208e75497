//! What is noted before the command starts, so that its end can be understood.

use crate::enforce::reaper::Duty;
use crate::error::{Refusal, cannot};
use crate::plan::Plan;
use crate::report::Reporter;
use crate::run::aftermath::home::{HomeBefore, Written};
use crate::run::aftermath::{Aftermath, Outcome};
use crate::run::arguments::Arguments;
use crate::run::compiling::Compiling;
use crate::run::signing::Signing;
use crate::supervise::judge::Judge;
use crate::supervise::violation::Violations;
use crate::supervise::{Ending, Summary};
use crate::sys::process::Pid;
use std::os::fd::RawFd;
use std::rc::Rc;

/// Things as they are before the command starts.
pub struct Hindsight {
    home: Option<HomeBefore>,
    workspace: Option<Rc<Aftermath>>,
    arguments: Option<Arguments>,
    signing: Option<Signing>,
    compiling: Compiling,
}

impl Hindsight {
    /// Of a plan. `asks_for_all`: whether somebody wants to know all that was written to the home.
    pub fn of(plan: &Plan, asks_for_all: bool) -> Result<Hindsight, Refusal> {
        let workspace = Aftermath::before(plan).transpose();
        Ok(Hindsight {
            home: HomeBefore::of(plan, asks_for_all),
            workspace: workspace
                .map_err(cannot("open the workspace, to look at it afterwards"))?
                .map(Rc::new),
            arguments: Arguments::of(plan),
            signing: Signing::of(plan),
            compiling: Compiling::of(plan),
        })
    }

    /// There is a command from now on.
    pub fn has_begun(&self) {
        self.workspace.iter().for_each(|workspace| workspace.has_begun());
    }

    /// What the reaper does of that if this process is killed, in lines that are shown like those.
    pub fn duty(&self, violations: &Violations) -> Option<Rc<dyn Duty>> {
        let workspace = self.workspace.clone()?;
        Some(Rc::new(LookInPlace { workspace, is_shown: violations.is_shown() }))
    }

    /// Looks at things again when the command, this process, has ended.
    pub fn look(self, command: Pid, summary: Option<&Summary>, judge: &mut Judge) -> Seen {
        if let Some((arguments, summary)) = self.arguments.zip(summary) {
            arguments.tell(summary, command, judge);
        }
        Seen {
            found: self.workspace.map(|workspace| workspace.after()).unwrap_or_default(),
            written: self.home.map(HomeBefore::written).unwrap_or_default(),
            signing: self.signing,
            compiling: self.compiling,
        }
    }
}

/// The look at the workspace, by the reaper.
struct LookInPlace {
    workspace: Rc<Aftermath>,
    is_shown: bool,
}

impl Duty for LookInPlace {
    fn descriptors(&self) -> Vec<RawFd> {
        self.workspace.descriptors()
    }

    fn stand_in(&self) {
        let violations = Violations::new(self.is_shown);
        // Nobody ends this process if nobody reads what it says.
        violations.never_wait();
        self.workspace.after().lines().for_each(|line| violations.line(&line));
        violations.finish();
    }
}

/// What was seen when the command had ended.
pub struct Seen {
    found: Outcome,
    written: Written,
    signing: Option<Signing>,
    compiling: Compiling,
}

impl Seen {
    /// Records it.
    pub fn report(&self, reporter: &mut Reporter) {
        let written = self.written.paths.iter().map(|path| path.as_path().into());
        reporter.wrote_home(written.collect(), self.written.more);
        reporter.looked(self.found.findings.clone(), self.found.failures.clone());
    }

    /// What the command left in the workspace that something outside would execute.
    pub fn findings(&self) -> impl Iterator<Item = String> {
        self.found.lines()
    }

    /// Why the command may have failed, where its own words do not tell.
    pub fn hints(&self, ending: Ending) -> impl Iterator<Item = String> {
        let signing = self.signing.as_ref().and_then(|signing| signing.hint(ending)).map(str::to_string);
        signing.into_iter().chain(self.compiling.hint(ending))
    }

    /// What was written to the home.
    pub fn written(&self) -> Option<String> {
        self.written.line()
    }
}
