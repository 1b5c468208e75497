//! The process between the supervisor and the command, where the command may start further ones.
//!
//! If one of the two is killed, the other ends the tree. Both are subreapers (prctl(2)), so orphans move up
//! to the reaper, or past it to the supervisor, and never out of reach.
//!
//! This module is the supervisor's side. `life` is the reaper itself, `orders` are the supervisor's signals
//! to it, and `messages` are its answers.

mod ending;
mod life;
mod messages;
mod orders;
mod protection;
mod watched_names;

pub use ending::{Departing, end_all};
pub use messages::{has_daemon, names_left};

use crate::enforce::child::{Progress, Steps};
use crate::enforce::home::Held;
use crate::enforce::placeholders::Placeholders;
use crate::enforce::presence::Presence;
use crate::enforce::start_barrier::StartBarrier;
use crate::error::Refusal;
use crate::sys::descriptor::{self, Interest};
use crate::sys::namespace::{self, Own};
use crate::sys::process::{self, Change, Pid};
use crate::sys::processor::Processors;
use crate::sys::status::Status;
use crate::sys::{OfCall, SyscallError, ahead, signal, socket};
use ending::{KILLING, TICK};
use life::reap;
use messages::{decode, read_progress};
use orders::{acquainted, kill, looked_at, resume, suspend, terminate};
use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// Maximum number of attempts in a row to get the memory that poll(2) needs.
const ATTEMPTS: u32 = 100;
/// How long a reaper may send nothing before the supervisor checks whether it still exists.
const SILENCE: Duration = Duration::from_millis(20);

/// Signals that are passed on to the command. SIGKILL and SIGSTOP cannot be. The signals by which the
/// kernel stops a whole job are among them: the supervisor stops when the command has stopped. If it
/// stopped by itself, the later report of the command's stop would stop it again.
pub const FORWARDED: [i32; 13] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
    libc::SIGWINCH,
    libc::SIGPIPE,
];

/// Has the reaper of a run with namespaces protect a new configuration. It answers with
/// [`Event::ConfigProtected`].
pub fn protect_config(reaper: Pid) {
    process::signal(reaper, orders::protect_config());
}

/// Has the reaper of a run with a network of its own make pairs of sockets there.
#[derive(Clone)]
pub struct Pairs {
    reaper: Pid,
    answers: Rc<OwnedFd>,
}

impl Pairs {
    /// A pair of sockets of the run's network that send packets to each other.
    pub fn make(&self) -> Option<[OwnedFd; 2]> {
        process::signal(self.reaper, orders::make_pair());
        let interest = Interest::read(Some(self.answers.as_raw_fd()));
        let [ready] = descriptor::poll([interest], Some(LONGEST_MAKING)).ok()?;
        if !ready.now {
            return None;
        }
        socket::receive_descriptors(self.answers.as_fd()).ok().flatten()
    }
}

/// How long the reaper may take to make a pair of sockets.
const LONGEST_MAKING: Duration = Duration::from_millis(200);

/// What else there is to do when the command has ended, for whoever of supervisor and reaper is left.
pub trait Duty {
    /// The descriptors that it takes.
    fn descriptors(&self) -> Vec<RawFd>;
    /// The reaper does it, because the supervisor was killed. No process of the run is left, and no mount that hides
    /// what is outside.
    fn stand_in(&self);
}

/// What happens to the tree, and is removed, when the command has ended.
#[derive(Default)]
pub struct Afterwards {
    /// Processes that are still running may continue.
    pub keep_background: bool,
    /// The scratch directories, which the reaper removes if the supervisor cannot.
    pub scratch: Vec<PathBuf>,
    /// The control group, likewise.
    pub group: Option<PathBuf>,
    /// The supervisor reports which process the command is. The command's end is not waited for before that.
    pub introduces: bool,
    /// The placeholders, which the reaper removes likewise.
    pub placeholders: Placeholders,
    /// The lock that shows other runs that this one is in the repository.
    pub presence: Option<Rc<Presence>>,
    /// The locks on the run's home.
    pub home: Held,
    /// What the reaper does besides, if the supervisor cannot.
    pub duty: Option<Rc<dyn Duty>>,
}

/// What the reaper tells the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The command changed.
    Command(Change),
    /// The new configuration with this inode number is protected; 0 if none could be.
    ConfigProtected(u32),
    /// The tree continues, as ordered.
    Resumed,
    /// A piece of the name of a process that the command has left behind, and that is to be ended.
    Left([u8; 4]),
    /// No process of the tree is left. The reaper itself ends, and does nothing more.
    Gone,
    /// The reaper is done, or gone.
    End,
}

/// What there is of a reaper while rules are added.
#[derive(Clone, Copy, Debug)]
pub struct Meanwhile {
    /// Can be read when it has failed.
    pub events: RawFd,
    /// Its process, if it has been started.
    pub reaper: Option<Pid>,
}

/// A reaper that has started the command.
pub struct Reaper {
    /// The reaper.
    pub pid: Pid,
    /// Whether the command has a process group of its own, which signals to ours do not reach.
    pub detached: bool,
    /// The command's number in the reaper's pid namespace.
    number: Pid,
    /// Whether that is not our own pid namespace.
    apart: bool,
    events: OwnedFd,
    pairs: Option<Pairs>,
    /// The tree has been told to continue, and the reaper has not answered yet.
    resuming: Cell<bool>,
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
        let barrier = StartBarrier::new(supervisor);
        steps.barrier = match barrier {
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
        let mut add_rules = |steps: &mut Steps, reaper| {
            let meanwhile = Meanwhile { events: events.as_raw_fd(), reaper };
            add_rules(steps, meanwhile).map_err(Unstarted::Refused)
        };
        // A sandbox around us can refuse what the barrier needs. Then the rules are added first.
        let added = if steps.barrier.is_none() { Some(add_rules(&mut steps, None)?) } else { None };
        // Blocks all signals before the reaper starts: those for the command or the supervisor must not end
        // it, and those for the reaper must wait until it looks.
        let mask = signal::set_mask(&signal::Set::full())?;
        steps.made = steps.ahead.take().and_then(|ahead| ahead.made(steps.own.as_ref())).map(Rc::new);
        // Only at the barrier is it certain that nothing more is said about them.
        let nested = steps.nested;
        steps.processors = steps.barrier.as_ref().and_then(|_| Processors::of_this_process(nested));
        let mut life = |steps: &mut Steps| {
            let barrier = steps.barrier.as_ref().filter(|_| steps.layout.is_some());
            let held = barrier.map(StartBarrier::supervisor);
            reap(steps, (supervisor, held), (sender.as_raw_fd(), maker.take()), afterwards)
        };
        let forked = fork(&mut steps, &mut life);
        if !matches!(forked, Ok(0)) {
            signal::set_mask(&mask).inspect_err(|_| end_all(KILLING, None))?;
        }
        let pid = forked?;
        if pid == 0 {
            process::exit_now(life(&mut steps));
        }
        steps.processors.iter().for_each(|processors| processors.send_away(pid));
        // From here on there is somebody who removes them if this process is killed.
        let placed = steps.placed.as_ref().map_or(Ok(()), |placed| {
            let made = afterwards.placeholders.make().map_err(|error| Unstarted::Refused(error.into()));
            // If this fails, the reaper notices our end.
            let _ = placed.open(made.is_ok());
            made
        });
        let added = placed.and_then(|()| added.map_or_else(|| add_rules(&mut steps, Some(pid)), Ok));
        // If this fails, the reaper notices our end. Who gives up does not know at which one the child waits.
        let barriers = [&steps.gate, &steps.barrier].into_iter().flatten();
        let told =
            barriers.take(if added.is_ok() { 1 } else { 2 }).try_for_each(|one| one.open(added.is_ok()));
        told.inspect_err(|_| end_all(KILLING, None))?;
        let added = added.inspect_err(|_| {
            process::wait(Some(pid), true, false);
        })?;
        let heard =
            wait_for_message(events.as_raw_fd(), pid).and_then(|()| read_progress(events.as_raw_fd()));
        steps.forget_passed();
        let (number, progress) = heard.inspect_err(|_| end_all(KILLING, None))?;
        // Not earlier: while the reaper shares our descriptors, closing ours closes its own.
        drop((
            sender,
            maker,
            steps.barrier.take(),
            steps.gate.take(),
            steps.placed.take(),
            steps.made.take(),
        ));
        // If the command does not run, the reaper ends, and releases what is to be cleaned up.
        if !progress.ready || progress.failure.is_some() {
            process::wait(Some(pid), true, false);
        }
        let apart = steps.layout.is_some();
        let resuming = Cell::new(false);
        let pairs = pairs.map(|answers| Pairs { reaper: pid, answers: Rc::new(answers) });
        let detached = steps.session || steps.foreground.is_some();
        Ok((Reaper { pid, number, apart, detached, events, pairs, resuming }, progress, added))
    }

    /// The command; 0 when it has ended.
    pub fn command(&self) -> Pid {
        if !self.apart {
            return self.number;
        }
        let children = process::children_of(self.pid, self.pid);
        children.into_iter().find(|child| process::number_inside(*child) == Some(self.number)).unwrap_or(0)
    }

    /// Where sockets of the run's own network come from, if it has one.
    pub fn pairs(&self) -> Option<&Pairs> {
        self.pairs.as_ref()
    }

    /// The descriptor that can be read when there is an event.
    pub fn events(&self) -> RawFd {
        self.events.as_raw_fd()
    }

    /// Whether a signal was sent to the whole process group, command included. The reaper is a member as
    /// well and blocks all signals, so its copy still waits.
    pub fn has_waiting(&self, number: i32) -> bool {
        let waits = Status::of(self.pid).is_ok_and(|own| own.set("ShdPnd") & (1 << (number - 1)) != 0);
        if waits {
            process::signal(self.pid, looked_at());
        }
        waits
    }

    /// Says that the command's number is known.
    pub fn acquaint(&self) {
        process::signal(self.pid, acquainted());
    }

    /// Has every process of the tree get SIGTERM.
    pub fn terminate(&self) {
        process::signal(self.pid, terminate());
    }

    /// Has every process of the tree stop.
    pub fn suspend(&self) {
        process::signal(self.pid, suspend());
    }

    /// Has every process of the tree continue.
    pub fn resume(&self) {
        self.resuming.set(true);
        process::signal(self.pid, resume());
    }

    /// Has the reaper end the tree, and itself.
    pub fn kill(&self) {
        process::signal(self.pid, kill());
    }

    /// The reaper after [`Event::Gone`].
    pub fn departing(&self) -> Departing {
        Departing::of(self.pid)
    }

    /// Ends the reaper, which leaves its descendants to the supervisor.
    pub fn dismiss(&self) {
        process::signal(self.pid, libc::SIGKILL);
    }

    /// The next event. A stop of the command does not count if the tree has been told to continue since.
    pub fn next(&self) -> Event {
        let mut message = [0; 5];
        let event = match descriptor::read(self.events.as_raw_fd(), &mut message) {
            Ok(5) => decode(message).unwrap_or(Event::End),
            _ => Event::End,
        };
        match event {
            Event::Resumed => self.resuming.set(false),
            Event::Command(Change::Stopped(_)) if self.resuming.get() => {
                return Event::Command(Change::Continued);
            }
            _ => {}
        }
        event
    }
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
