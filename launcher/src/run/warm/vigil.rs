//! The wait of a run for its command.

use crate::enforce::child::Steps;
use crate::enforce::reaper::Meanwhile;
use crate::enforce::start_barrier::StartBarrier;
use crate::error::Refusal;
use crate::report::Reporter;
use crate::request::Request;
use crate::run::warm::lasting::Kept;
use crate::run::warm::stands::Stands;
use crate::run::warm::waiting::{Taken, Waiting};
use crate::run::warm::{Door, Waited};
use crate::sys::descriptor::{self, Interest};
use crate::sys::{privilege, process};
use std::os::fd::{AsRawFd, RawFd};

/// A run's wait for its command.
pub struct Vigil<'a> {
    request: &'a Request,
    waiting: &'a Waiting<'a>,
    pub kept: Kept,
    pub came: Came,
    /// Of the command that came, if somebody wants a report.
    pub reporter: Option<Reporter>,
}

/// What came of the wait.
pub enum Came {
    /// Nothing: the run itself has failed.
    Nobody,
    /// A command.
    Command(Box<Taken>),
    /// A command that could not be begun.
    Lost,
    /// A change, after which the run is none that would be started now.
    Stale(String),
    /// The end of the pool.
    Over,
}

impl<'a> Vigil<'a> {
    /// Of a run that was made by this, for what is asked.
    pub fn begin(request: &'a Request, waiting: &'a Waiting<'a>) -> Vigil<'a> {
        Vigil { request, waiting, kept: Kept::default(), came: Came::Nobody, reporter: None }
    }

    /// Waits at the door until a command has come that this run is for. An error ends the run.
    pub fn keep(
        &mut self,
        steps: &mut Steps,
        meanwhile: Meanwhile,
        door: &mut dyn Door,
    ) -> Result<(), Refusal> {
        let Some((first, reaper)) =
            meanwhile.reaper.and_then(|pid| Some(pid).zip(process::open_pid(pid).ok()))
        else {
            return Ok(());
        };
        let broken = [meanwhile.events, reaper.as_raw_fd()];
        if !arrives(steps, broken) {
            return Ok(());
        }
        let Vigil { request, waiting, .. } = *self;
        steps.forget_passed();
        let _ = waiting.stands.set(Stands::of(first, &waiting.policy)?);
        // What was covered before that may be another file since.
        if let Some(why) = waiting.is_other() {
            return self.stale(why);
        }
        // Half of what is given up when the command has begun. What cannot be given up now is asked for again then.
        let _ = privilege::bound_capabilities();
        door.ready();
        loop {
            // Another takes its place before anybody asks. Who asks already may have woken no other run.
            if let Some(lost) = waiting.lost().filter(|_| !door.is_asked()) {
                return self.stale(lost);
            }
            let mounts = waiting.stands.get().map(Stands::mounts);
            let asked = match door.wait(broken, mounts, self.kept.news()) {
                Waited::Asked(asked) => asked,
                Waited::News => {
                    self.kept.hear(|| waiting.keep(request, steps, &|| door.is_asked()));
                    continue;
                }
                Waited::Broken => return Ok(()),
                Waited::Over => {
                    self.came = Came::Over;
                    return Err(Refusal::new("nobody asks for the run any more"));
                }
            };
            match waiting.admit(*asked, &mut self.kept, steps, door) {
                Ok(None) => {}
                Ok(Some(admitted)) => {
                    self.came = Came::Lost;
                    let (opened, places) = Reporter::open(&admitted.request);
                    self.reporter = opened;
                    self.reporter.iter_mut().for_each(|reporter| reporter.answer_to(&admitted.caller));
                    places?;
                    let taken = waiting.begin(admitted, self.reporter.as_mut())?;
                    self.came = Came::Command(Box::new(taken));
                    return Ok(());
                }
                Err(why) => {
                    door.refuse(&why);
                    // With the pool's own environment it may be what it was.
                    if let Some(why) = waiting.is_stale(request) {
                        return self.stale(why);
                    }
                }
            }
        }
    }

    fn stale(&mut self, why: String) -> Result<(), Refusal> {
        self.came = Came::Stale(why);
        Err(Refusal::new("the run is none that would be started now"))
    }
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
