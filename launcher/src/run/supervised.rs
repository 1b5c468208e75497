//! A run under a supervisor: the command is started, and [followed](crate::run::follow) until it has ended.

use crate::enforce::EnforceError;
use crate::enforce::cgroup::Group;
use crate::enforce::child::{self, Progress, Steps};
use crate::enforce::landlock::{Report, View};
use crate::enforce::placeholders::Placeholders;
use crate::enforce::presence::Presence;
use crate::enforce::reaper::{Afterwards, Meanwhile, Reaper, Unstarted};
use crate::enforce::scratch::Scratch;
use crate::enforce::steps::{self, Parts};
use crate::error::{Refusal, cannot};
use crate::plan::limits::Limits;
use crate::plan::namespaces::{Layout, Missing};
use crate::plan::rules::PathRule;
use crate::plan::{OnViolation, Plan};
use crate::run::case::Case;
use crate::run::follow::{Run, Voice, follow};
use crate::run::hindsight::Hindsight;
use crate::run::provide::Resources;
use crate::run::publish::Publishing;
use crate::run::{Stop, fill, proxy};
use crate::supervise::output::{self, Diverted, Pumps};
use crate::supervise::terminal::Terminal;
use crate::supervise::{self, Watch};
use crate::sys::namespace::{self, Own};
use crate::sys::signal::{self, Disposition, Set};
use crate::sys::{privilege, process, terminal, timer};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

/// Starts the command and waits for it.
pub fn run(plan: Plan, parts: Parts, resources: Resources, voice: Voice<'_>) -> Result<i32, Stop> {
    let prospect = Prospect::of(&plan, voice.asks_for_all())?;
    let signals = Signals::take()?;
    let closed_streams = parts.closed.clone();
    let mut laid = Laid::out(plan, parts, &signals, Presence::of)?;
    let (mut afterwards, kept) = laid.afterwards(resources, &prospect.limits, voice.reporter.is_some());
    afterwards.duty = prospect.hindsight.duty(&voice.violations);
    let going = Going::begin(&prospect.limits, &closed_streams, laid.steps.foreground.is_some())?;
    let result = laid.start(&afterwards, |_, _| Ok(()));
    let (caller, left) = (None, None);
    follow(result, Run { prospect, going, signals, afterwards, kept, caller, left, voice })
}

/// What is noted of a plan, which the start uses up, and of things as they are before.
pub struct Prospect {
    pub limits: Limits,
    pub(super) case: Case,
    pub(super) publishing: Option<Publishing>,
    pub(super) hindsight: Hindsight,
}

impl Prospect {
    /// Of a plan.
    pub fn of(plan: &Plan, asks_for_all: bool) -> Result<Prospect, Refusal> {
        Ok(Prospect {
            limits: plan.limits.clone(),
            case: Case::of(plan, plan.namespaces.as_ref().ok().cloned()),
            publishing: (!plan.publish.is_empty()).then(|| Publishing::of(&plan.publish)).transpose()?,
            hindsight: Hindsight::of(plan, asks_for_all)?,
        })
    }
}

/// What the child works on, laid out.
pub struct Laid {
    pub steps: Steps,
    pub presence: Option<Rc<Presence>>,
    layout: Option<Rc<Layout>>,
    absent: BTreeSet<OsString>,
    report: Report,
    /// Whether a reaper starts the command.
    pub tree: bool,
}

impl Laid {
    /// Of a plan. `come` makes the run's lock.
    pub fn out(
        mut plan: Plan,
        parts: Parts,
        signals: &Signals,
        come: impl FnOnce(&Layout) -> Result<Option<Presence>, EnforceError>,
    ) -> Result<Laid, EnforceError> {
        let layout = plan.namespaces.as_ref().ok().cloned();
        // The command must not be process 1 of its namespace, so a reaper is. In log mode the command may do whatever
        // its profile says.
        let tree = plan.calls.needs_reaper() || plan.own.is_some() || plan.on_violation == OnViolation::Log;
        let absent = std::mem::take(&mut plan.absent);
        let view = View { layout: layout.as_deref(), absent: Some(&absent), ..View::default() };
        let (mut steps, view) = steps::lay_out(plan, parts, view)?;
        let report = view.report;
        let presence = layout.as_deref().map(come).transpose()?.flatten().map(Rc::new);
        (steps.mask, steps.broken_pipe) = (signals.mask, signals.broken_pipe);
        // A group that this process leads has no number in the run's namespaces, and whoever makes one of its own there
        // (timeout(1), gdb) would be in the background.
        steps.foreground = terminal::of_own_group().filter(|_| tree && !steps.parks);
        Ok(Laid { steps, presence, layout, absent, report, tree })
    }

    /// What happens afterwards, and what the supervisor keeps until then.
    pub fn afterwards(
        &mut self,
        resources: Resources,
        limits: &Limits,
        is_reported: bool,
    ) -> (Afterwards, Kept) {
        let Resources { scratch, in_memory, group, home, proxy } = resources;
        let layout = self.layout.as_deref();
        let afterwards = Afterwards {
            keep_background: limits.keep_background,
            scratch: scratch.iter().chain(&in_memory).map(|scratch| scratch.path().to_path_buf()).collect(),
            group: group.as_ref().map(|group| group.path().to_path_buf()),
            introduces: is_reported && layout.is_some(),
            placeholders: layout.map(Placeholders::of).unwrap_or_default(),
            presence: self.presence.clone(),
            home,
            duty: None,
        };
        (afterwards, Kept { scratch, in_memory, group, proxy })
    }

    /// Starts the child, directly or below a reaper. The path rules are added while a reaper makes its namespaces.
    /// `between` is called when all of them are; the reaper's child waits for it.
    pub fn start(
        self,
        afterwards: &Afterwards,
        mut between: impl FnMut(&mut Steps, Meanwhile) -> Result<(), Refusal>,
    ) -> Result<Started, Stop> {
        let Laid { mut steps, presence, layout, absent, report, tree } = self;
        let view = View { layout: layout.as_deref(), report, absent: Some(&absent) };
        if tree {
            let own = steps.own;
            let started = Reaper::start(steps, afterwards, |steps, meanwhile| {
                let granted = fill(steps, view)?;
                between(steps, meanwhile).map(|()| granted)
            });
            return match started {
                Ok((reaper, outcome, granted)) => {
                    Ok(Started { watch: Watch::Reaper(reaper), outcome, granted, presence })
                }
                Err(Unstarted::Unsupported(failed)) => {
                    Err(Stop::Unavailable(missing(own), failed.to_string()))
                }
                Err(Unstarted::Failed(failed)) => Err(cannot("start the command")(failed).into()),
                Err(Unstarted::Refused(refusal)) => Err(refusal.into()),
            };
        }
        let granted = fill(&mut steps, view)?;
        steps.parent = Some(process::id());
        let mut outcome = Progress::default();
        let pid = process::spawn_sharing(&mut || child::run(&mut steps, &mut outcome))
            .map_err(cannot("start the command"))?;
        if !outcome.ready || outcome.failure.is_some() {
            process::wait(Some(pid), true, false);
        }
        Ok(Started { watch: Watch::Direct(pid), outcome, granted, presence })
    }
}

/// What the supervisor keeps until the run has ended.
pub struct Kept {
    pub(super) scratch: Option<Scratch>,
    pub(super) in_memory: Option<Scratch>,
    pub(super) group: Option<Group>,
    pub(super) proxy: Option<proxy::Sockets>,
}

/// What begins with the command.
pub struct Going {
    pub(super) pumps: Option<Pumps>,
    pub(super) diverted: Option<Diverted>,
    pub(super) terminal: Option<Rc<Terminal>>,
    pub(super) started: Instant,
}

impl Going {
    /// Now. `lends_terminal`: the command gets its foreground.
    pub fn begin(limits: &Limits, closed_streams: &[i32], lends_terminal: bool) -> Result<Going, Refusal> {
        let terminal = Terminal::of_caller(lends_terminal).map_err(cannot("remember the terminal"))?;
        let started = Instant::now();
        // Before there is a command that could stop us.
        limits.timeout.map_or(Ok(()), timer::continue_after).map_err(cannot("start the clock"))?;
        // The last that may fail: nobody would read why something else did.
        let diverted = limits.output.map(|cap| output::divert(cap, closed_streams)).transpose();
        let (pumps, diverted) = diverted.map_err(cannot("lead the output through a pipe"))?.unzip();
        Ok(Going { pumps, diverted, terminal: terminal.map(Rc::new), started })
    }
}

/// A child that was started.
pub struct Started {
    pub(super) watch: Watch,
    pub outcome: Progress,
    pub(super) granted: Vec<PathRule>,
    pub(super) presence: Option<Rc<Presence>>,
}

/// The signals as the supervisor has them, and as the caller had them, which is how the command gets them.
pub struct Signals {
    pub mask: Set,
    broken_pipe: Disposition,
    pub(super) arriving: OwnedFd,
}

impl Signals {
    /// From now on.
    pub fn take() -> Result<Signals, Refusal> {
        let watched = supervise::watched_signals();
        let mask = signal::set_mask(&watched).map_err(cannot("block signals"))?;
        let arriving = signal::descriptor(&watched).map_err(cannot("wait for signals"))?;
        let broken_pipe =
            signal::dispose(libc::SIGPIPE, Disposition::Ignore).map_err(cannot("ignore SIGPIPE"))?;
        Ok(Signals { mask, broken_pipe, arriving })
    }

    /// As the caller had them.
    pub fn give_back(&self) -> Result<(), Refusal> {
        signal::set_mask(&self.mask).map_err(cannot("restore the signal mask"))?;
        signal::dispose(libc::SIGPIPE, self.broken_pipe)
            .map(drop)
            .map_err(cannot("restore what SIGPIPE does"))
    }
}

/// Which of the namespaces that could not be made together cannot be made by themselves either.
fn missing(own: Option<Own>) -> Missing {
    let Some(Own { kinds, .. }) = own.filter(|own| own.kinds.view && own.kinds.network) else {
        return Missing::Both;
    };
    // An administrator may need a user namespace for the network alone.
    let user = kinds.user && !privilege::is_administrator();
    if namespace::can_make(namespace::Kinds { view: false, ..kinds }) {
        Missing::View
    } else if namespace::can_make(namespace::Kinds { user, network: false, ..kinds }) {
        Missing::Network
    } else {
        Missing::Both
    }
}
