//! The process between the supervisor and the command, where the command may start further ones.
//!
//! If one of the two is killed, the other ends the tree. Both are subreapers (prctl(2)), so orphans move up
//! to the reaper, or past it to the supervisor, and never out of reach.
//!
//! This module is the supervisor's side, and `start` its beginning. `life` is the reaper itself, `orders` are the
//! supervisor's signals to it, and `messages` are its answers.

mod ending;
mod life;
mod messages;
mod orders;
mod protection;
mod start;
mod watched_names;

pub use ending::{Departing, end_all};
pub use messages::{has_daemon, names_left};
pub use start::{Meanwhile, Unstarted};

use crate::enforce::home::Held;
use crate::enforce::placeholders::Placeholders;
use crate::enforce::presence::Presence;
use crate::sys::descriptor::{self, Interest};
use crate::sys::process::{self, Change, Pid};
use crate::sys::socket;
use crate::sys::status::Status;
use messages::decode;
use orders::{acquainted, kill, looked_at, resume, suspend, terminate};
use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

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

impl Afterwards {
    /// What has to stay open for it.
    fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let presence = self.presence.iter().flat_map(|presence| presence.descriptors());
        let home = self.home.files().iter().map(AsRawFd::as_raw_fd);
        presence.chain(home).chain(self.duty.iter().flat_map(|duty| duty.descriptors()))
    }
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

/// A reaper that has started the command.
pub struct Reaper {
    /// The reaper.
    pub pid: Pid,
    /// Whether the command has a process group of its own, which signals to ours do not reach.
    pub detached: bool,
    /// Whether it has a session of its own. Nobody there could continue it, so the kernel does not stop it as a job.
    pub session: bool,
    /// The command's number in the reaper's pid namespace.
    number: Pid,
    /// Whether that is not our own pid namespace.
    apart: bool,
    events: OwnedFd,
    pairs: Option<Pairs>,
    /// The tree has been told to continue, and the reaper has not answered yet.
    resuming: Cell<bool>,
}

impl Reaper {
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
