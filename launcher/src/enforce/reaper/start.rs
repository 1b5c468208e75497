//! How a reaper is started, and with it the command.

use crate::enforce::child::{Progress, Steps};
use crate::enforce::reaper::ending::{KILLING, TICK, end_all};
use crate::enforce::reaper::life::reap;
use crate::enforce::reaper::messages::read_progress;
use crate::enforce::reaper::{Afterwards, Pairs, Reaper};
use crate::enforce::start_barrier::StartBarrier;
use crate::error::Refusal;
use crate::sys::descriptor::{self, Interest};
use crate::sys::namespace::{self, Own};
use crate::sys::process::{self, Change, Pid};
use crate::sys::processor::Processors;
use crate::sys::{OfCall, SyscallError, ahead, signal, socket};
use std::cell::Cell;
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

/// Maximum number of attempts in a row to get the memory that poll(2) needs.
const ATTEMPTS: u32 = 100;
/// How long a reaper may send nothing before the supervisor checks whether it still exists.
const SILENCE: Duration = Duration::from_millis(20);

/// What there is of a reaper while rules are added.
#[derive(Clone, Copy, Debug)]
pub struct Meanwhile {
    /// Can be read when it has failed.
    pub events: RawFd,
    /// Its process, if it has been started.
    pub reaper: Option<Pid>,
}

/// Why there is no reaper.
pub enum Unstarted {
    /// It could not be started.
    Failed(SyscallError),
    /// The machine does not support namespaces, or what the reaper needs in them. Nothing has been started.
    Unsupported(SyscallError),
    /// The path rules could not be added.
    Refused(Refusal),
}

impl From<SyscallError> for Unstarted {
    fn from(failed: SyscallError) -> Unstarted {
        Unstarted::Failed(failed)
    }
}

impl Reaper {
    /// Starts a reaper, which takes `steps` in a child of its own. The path rules are added here while the
    /// reaper makes its namespaces and the child, which waits for the rules before it puts them in force.
    pub fn start<T>(
        mut steps: Steps,
        afterwards: &Afterwards,
        mut add_rules: impl FnMut(&mut Steps, Meanwhile) -> Result<T, Refusal>,
    ) -> Result<(Reaper, Progress, T), Unstarted> {
        let (events, sender) = descriptor::pipe()?;
        // Only a network of the run's own needs somebody in it to make sockets.
        let own_network = steps.own.is_some_and(|own| own.kinds.network);
        let (pairs, mut maker) =
            own_network.then(socket::packet_pair).transpose()?.map(<(_, _)>::from).unzip();
        let supervisor = process::id();
        process::become_subreaper()?;
        put_up_barriers(&mut steps, supervisor, afterwards)?;
        let mut add_rules = |steps: &mut Steps, reaper| {
            let meanwhile = Meanwhile { events: events.as_raw_fd(), reaper };
            add_rules(steps, meanwhile).map_err(Unstarted::Refused)
        };
        // A sandbox around us can refuse what the barrier needs. Then the rules are added first.
        let added = if steps.barrier.is_none() { Some(add_rules(&mut steps, None)?) } else { None };
        let pid = begin(&mut steps, &mut |steps| {
            let barrier = steps.barrier.as_ref().filter(|_| steps.layout.is_some());
            let held = barrier.map(StartBarrier::supervisor);
            reap(steps, (supervisor, held), (sender.as_raw_fd(), maker.take()), afterwards)
        })?;
        // From here on there is somebody who removes them if this process is killed.
        let placed = place(&steps, afterwards);
        let added = placed.and_then(|()| added.map_or_else(|| add_rules(&mut steps, Some(pid)), Ok));
        open_barriers(&steps, added.is_ok()).inspect_err(|_| end_all(KILLING, None))?;
        let added = added.inspect_err(|_| {
            process::wait(Some(pid), true, false);
        })?;
        let heard =
            wait_for_message(events.as_raw_fd(), pid).and_then(|()| read_progress(events.as_raw_fd()));
        steps.forget_passed();
        let (number, progress) = heard.inspect_err(|_| end_all(KILLING, None))?;
        // Not earlier: while the reaper shares our descriptors, closing ours closes its own.
        let ours = (steps.barrier.take(), steps.gate.take(), steps.placed.take(), steps.made.take());
        drop((sender, maker, ours));
        // If the command does not run, the reaper ends, and releases what is to be cleaned up.
        if !progress.ready || progress.failure.is_some() {
            process::wait(Some(pid), true, false);
        }
        let apart = steps.layout.is_some();
        let resuming = Cell::new(false);
        let pairs = pairs.map(|answers| Pairs { reaper: pid, answers: Rc::new(answers) });
        let session = steps.session;
        let detached = session || steps.foreground.is_some();
        Ok((Reaper { pid, number, apart, detached, session, events, pairs, resuming }, progress, added))
    }
}

/// What the reaper and the command wait at until rules and placeholders are there.
fn put_up_barriers(steps: &mut Steps, supervisor: Pid, afterwards: &Afterwards) -> Result<(), Unstarted> {
    steps.barrier = match StartBarrier::new(supervisor) {
        Ok(barrier) => Some(barrier),
        Err(failed) if steps.layout.is_some() => return Err(unsupported(failed)),
        Err(_) => None,
    };
    let gate = steps.barrier.as_ref().filter(|_| steps.parks).map(StartBarrier::another);
    steps.gate = gate.transpose()?.map(StartBarrier::announcing).transpose()?;
    steps.placed = match &steps.barrier {
        Some(barrier) if !afterwards.placeholders.is_empty() => Some(barrier.another()?),
        _ => None,
    };
    Ok(())
}

/// Starts the process that lives as the reaper.
fn begin(steps: &mut Steps, life: &mut dyn FnMut(&mut Steps) -> i32) -> Result<Pid, Unstarted> {
    // Blocks all signals before the reaper starts: those for the command or the supervisor must not end
    // it, and those for the reaper must wait until it looks.
    let mask = signal::set_mask(&signal::Set::full())?;
    steps.made = steps.ahead.take().and_then(|ahead| ahead.made(steps.own.as_ref())).map(Rc::new);
    // Only at the barrier is it certain that nothing more is said about them.
    let nested = steps.nested;
    let helpers = u8::from(steps.made.is_some());
    steps.processors = steps.barrier.as_ref().and_then(|_| Processors::of_this_process(nested, helpers));
    let forked = fork(steps, life);
    if !matches!(forked, Ok(0)) {
        signal::set_mask(&mask).inspect_err(|_| end_all(KILLING, None))?;
    }
    let pid = forked?;
    if pid == 0 {
        process::exit_now(life(steps));
    }
    steps.processors.iter().for_each(|processors| processors.send_away(pid));
    Ok(pid)
}

/// Makes the placeholders that the reaper waits for.
fn place(steps: &Steps, afterwards: &Afterwards) -> Result<(), Unstarted> {
    let Some(placed) = &steps.placed else { return Ok(()) };
    let made = afterwards.placeholders.make().map_err(|error| Unstarted::Refused(error.into()));
    // If this fails, the reaper notices our end.
    let _ = placed.open(made.is_ok());
    made
}

/// Lets the command go on, or tells it to end. If this fails, the reaper notices our end.
fn open_barriers(steps: &Steps, complete: bool) -> Result<(), SyscallError> {
    // Who gives up does not know at which one the child waits.
    let count = if complete { 1 } else { 2 };
    let mut barriers = [&steps.gate, &steps.barrier].into_iter().flatten().take(count);
    barriers.try_for_each(|one| one.open(complete))
}

/// Starts the reaper as the first process of the run's namespaces. Returns 0 there, or has it live there.
fn fork(steps: &mut Steps, life: &mut dyn FnMut(&mut Steps) -> i32) -> Result<Pid, Unstarted> {
    let Some(Own { kinds, .. }) = steps.own else {
        return process::fork_sharing_descriptors(0).map_err(Unstarted::Failed);
    };
    if let Some(made) = steps.made.clone() {
        let forked = made.fork_into(kinds, &mut || life(steps));
        match forked {
            Ok(pid) => return Ok(pid),
            // The usual way tells why, if it fails too.
            Err(ahead::Unstarted::Nothing(_)) => steps.made = None,
            // There must not be two of them, one of which gets no orders.
            Err(ahead::Unstarted::Unknown(failed)) => {
                end_all(KILLING, None);
                return Err(Unstarted::Failed(failed));
            }
        }
    }
    namespace::fork_into(kinds).map_err(unsupported)
}

fn unsupported(failed: SyscallError) -> Unstarted {
    if failed.is_passing() { Unstarted::Failed(failed) } else { Unstarted::Unsupported(failed) }
}

/// Waits for the first message of the reaper. Where signals are not scoped, the command, which may run by
/// then, can kill or stop the reaper before that. The pipe would not tell, since we hold its other end as
/// well.
fn wait_for_message(events: RawFd, reaper: Pid) -> Result<(), SyscallError> {
    let mut fell_silent = false;
    let mut attempts = ATTEMPTS;
    loop {
        let [ready] = match descriptor::poll([Interest::read(Some(events))], Some(SILENCE)) {
            // Nothing is wrong with the command, which may run by now.
            Err(failed) if failed.is_passing() && attempts > 0 => {
                attempts -= 1;
                std::thread::sleep(TICK);
                continue;
            }
            polled => polled?,
        };
        if ready.now || ready.gone {
            return Ok(());
        }
        if fell_silent {
            let cause = "something killed or stopped the supervisor's helper";
            return Err(std::io::Error::other(cause)).of("poll");
        }
        match process::wait(Some(reaper), false, true) {
            None | Some((_, Change::Continued)) => continue,
            Some((_, Change::Stopped(_))) => {
                process::signal(reaper, libc::SIGKILL);
                process::wait(Some(reaper), true, false);
            }
            Some((_, Change::Exited(_) | Change::Killed(_))) => {}
        }
        // It may have sent something before it was checked.
        fell_silent = true;
    }
}
