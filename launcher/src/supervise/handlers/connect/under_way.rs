//! Connections on their way. Each is made by a thread of its own, by the socket's own flags and timeout, for as
//! long as the server takes; that thread answers the call. So everything is as in the kernel, but for one thing: a
//! signal does not reach a thread whose call was notified. So the supervisor looks for signals that wait, and has
//! the call give way.

use crate::hosts::reached;
use crate::supervise::dials::{Dials, Held};
use crate::supervise::dispatch::Step;
use crate::supervise::handlers::connect::own_network::Watched;
use crate::supervise::handlers::domains::Restricts;
use crate::supervise::hosts::address_in;
use crate::supervise::judge::error;
use crate::sys::SyscallError;
use crate::sys::crew::{Begun, Crew, Prepare};
use crate::sys::descriptor::{self, Interest};
use crate::sys::pending::{self, Pending};
use crate::sys::privilege::Limit;
use crate::sys::process::Pid;
use crate::sys::seccomp::{self, Answer};
use crate::sys::socket::{self, SocketFile};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Maximum number of connections that wait for their servers at the same time. Each holds a thread, and up to two
/// descriptors.
const MOST: usize = 256;
/// As many more may be begun by sockets that do not wait. They are done at once, unless their owner changes his mind.
const RESERVE: usize = 64;

/// More ports are not noted: a command can try them all.
const MOST_PORTS: usize = 64;

/// How often those that wait are looked at.
const TICK: Duration = Duration::from_millis(20);
/// How often at first, where something may have to be said before the call is answered: that is known at once mostly.
const FIRST_TICK: Duration = Duration::from_millis(1);
/// How often, where there are many of them.
const SLOW_TICK: Duration = Duration::from_millis(100);
/// As many as this can be looked at often.
const FEW: usize = 16;

/// Nobody has asked for the call to end.
const GOES_ON: u8 = 0;
/// The call is to end with EINTR.
const INTERRUPTED: u8 = 1;
/// The call is to end as the kernel's own does for a signal that waits for this very thread.
const GIVES_WAY: u8 = 2;

/// Who asks for a connection, and where the answer goes.
pub struct Client {
    /// Where the call waits.
    pub listener: Arc<OwnedFd>,
    /// Which call it is.
    pub id: u64,
    /// The thread that makes it.
    pub thread: Pid,
    /// The process that the thread belongs to.
    pub process: Pid,
}

/// What is connected to.
pub enum Target {
    /// Exactly this file.
    File(SocketFile),
    /// Whatever the address leads to.
    Address(Vec<u8>),
    /// The broker, by this address. A call that waits is answered when the host outside has.
    Host {
        /// The address of the broker's socket.
        address: Vec<u8>,
        /// The calls that wait.
        dials: Dials,
        /// What the broker is told first, where the address does not tell whom the connection is for.
        told: Vec<u8>,
    },
}

impl Target {
    /// What a domain restricts that may refuse a connection of this socket.
    pub fn kind(&self, socket: &OwnedFd) -> Restricts {
        match self {
            Target::File(_) => Restricts::PATHS,
            _ if socket::is_internet(socket.as_raw_fd()) => Restricts::INTERNET,
            _ => Restricts::ABSTRACT,
        }
    }
}

impl Target {
    fn dials(&self) -> Option<&Dials> {
        match self {
            Target::Host { dials, .. } => Some(dials),
            Target::File(_) | Target::Address(_) => None,
        }
    }
}

/// Notes whether somebody listened at one of the first ports. Programs try one until its server is up, or by another
/// address.
fn note(ports: &Mutex<BTreeMap<u16, bool>>, port: u16, is_answered: bool) {
    if let Ok(mut ports) = ports.lock()
        && (ports.len() < MOST_PORTS || ports.contains_key(&port))
    {
        *ports.entry(port).or_default() |= is_answered;
    }
}

/// Connections that were begun and may still be waiting.
pub struct UnderWay {
    crew: Crew,
    /// Maximum number of those that wait.
    most: usize,
    waiting: Vec<Waiting>,
    looked: Instant,
    /// The ports of the run's own loopback, and whether somebody has listened there.
    ports: Arc<Mutex<BTreeMap<u16, bool>>>,
}

struct Waiting {
    id: u64,
    thread: Pid,
    process: Pid,
    begun: Begun,
    since: Instant,
    wish: Arc<AtomicU8>,
    watched: Option<Watched>,
    /// The answer, where something is to be said first.
    held_back: Arc<OnceLock<Answer>>,
    /// Where the call may wait for a host.
    dials: Option<Dials>,
}

impl Waiting {
    fn is_over(&self) -> bool {
        self.begun.is_done() && self.held_back.get().is_none() && !self.waits_for_host()
    }

    fn waits_for_host(&self) -> bool {
        self.dials.as_ref().is_some_and(|dials| dials.holds(self.id))
    }

    /// Has the call end for a signal. As in the kernel, the connection goes on being made, and a call that is made anew
    /// waits for the same one.
    fn give_host_up(&self, wish: u8) {
        let comes_again = wish == GIVES_WAY;
        let answer = if comes_again { Answer::Error(seccomp::GIVE_WAY) } else { error(libc::EINTR) };
        self.dials.iter().for_each(|dials| dials.give_up(self.id, answer, comes_again));
    }
}

impl UnderWay {
    /// None yet. Each thread is prepared before it connects anything.
    pub fn new(prepare: Prepare) -> UnderWay {
        // The supervisor needs descriptors for more than this.
        let open_files = Limit::OpenFiles.soft().unwrap_or(u64::MAX);
        let most = MOST.min(usize::try_from(open_files / 4).unwrap_or(MOST));
        UnderWay {
            crew: Crew::new(prepare),
            most,
            waiting: Vec::new(),
            looked: Instant::now(),
            ports: Arc::default(),
        }
    }

    /// Begins to connect a socket. The call is answered when that is done. If the connection is watched for
    /// something, and turns out to be that, its answer is held back.
    pub fn begin(
        &mut self,
        client: Client,
        socket: OwnedFd,
        target: Target,
        watched: Option<Watched>,
    ) -> Step {
        self.waiting.retain(|waiting| !waiting.is_over());
        if self.waiting.is_empty() {
            self.looked = Instant::now();
        }
        let Client { listener, id, thread, process } = client;
        let most = if socket::waits(&socket) { self.most } else { self.most + RESERVE.min(self.most / 4) };
        let wish = Arc::new(AtomicU8::new(GOES_ON));
        let held_back = Arc::new(OnceLock::new());
        let (wished, holds_back) = (wish.clone(), held_back.clone());
        let lead = watched.as_ref().map(|watched| watched.lead);
        let dials = target.dials().cloned();
        let ports = self.ports.clone();
        let work = move |prepared: bool| {
            let answer = if prepared {
                connect(&socket, &target, &wished)
            } else {
                // What restricts the thread is not in force.
                error(libc::EACCES)
            };
            let is_told = lead.is_some_and(|lead| lead.is_true(&socket, answer));
            if let Some((port, is_answered)) = lead.and_then(|lead| lead.answered(&socket, answer)) {
                note(&ports, port, is_answered || is_told);
            }
            if let Target::Host { address, dials, .. } = &target {
                let ends = socket::local_address(&socket).zip(far_end(address));
                let ends = ends.filter(|ends| waits_for_host(&socket, answer, || dials.is_again(ends)));
                let is_held = ends.is_some();
                dials.made(ends.map(|ends| (ends, Held { listener: listener.clone(), id, socket })));
                if is_held {
                    return;
                }
            }
            drop(target);
            if is_told {
                let _ = holds_back.set(answer);
                return;
            }
            // Whoever is gone needs no answer. Any other failure means that nobody listens any more.
            let _ = seccomp::answer(listener.as_fd(), id, answer);
        };
        dials.iter().for_each(Dials::begin);
        let begun = if self.waiting.len() < most { self.crew.begin(work) } else { None };
        let Some(begun) = begun else {
            dials.iter().for_each(|dials| dials.made(None));
            return Step::Answer(error(libc::EAGAIN));
        };
        let since = Instant::now();
        self.waiting.push(Waiting { id, thread, process, begun, since, wish, watched, held_back, dials });
        Step::Settled
    }

    /// The answers that were held back, with their calls and what they turned out to be.
    pub fn held_back(&mut self) -> Vec<(u64, Watched, Answer)> {
        let held = self.waiting.extract_if(.., |waiting| waiting.held_back.get().is_some());
        held.filter_map(|held| Some((held.id, held.watched?, *held.held_back.get()?))).collect()
    }

    /// The ports of the run's own loopback at which nobody has listened.
    pub fn unanswered(&self) -> BTreeSet<u16> {
        let Ok(ports) = self.ports.lock() else { return BTreeSet::new() };
        ports.iter().filter_map(|(port, is_answered)| (!is_answered).then_some(*port)).collect()
    }

    /// How long until those that wait are to be looked at.
    pub fn pause(&self) -> Option<Duration> {
        let mut waiting = self.waiting.iter().filter(|waiting| !waiting.is_over()).peekable();
        waiting.peek()?;
        let is_known_soon = |waiting: &Waiting| waiting.watched.is_some() && waiting.since.elapsed() < TICK;
        let first = if waiting.any(is_known_soon) { FIRST_TICK } else { SLOW_TICK };
        Some(first.min(self.tick().saturating_sub(self.looked.elapsed())))
    }

    fn tick(&self) -> Duration {
        if self.waiting.len() > FEW { SLOW_TICK } else { TICK }
    }

    /// Looks at those that wait: whoever is gone, has to see to a signal, or has shut the socket down, waits no longer.
    pub fn look(&mut self, listener: BorrowedFd<'_>) -> Result<(), SyscallError> {
        if self.waiting.is_empty() || self.looked.elapsed() < self.tick() {
            return Ok(());
        }
        // All have the same.
        if let Some(dials) = self.waiting.iter().find_map(|waiting| waiting.dials.as_ref()) {
            dials.end_shut();
        }
        self.waiting.retain(|waiting| !waiting.is_over());
        for waiting in &self.waiting {
            let wish = match waiting.wish.load(Ordering::Acquire) {
                GOES_ON if !seccomp::still_waits(listener, waiting.id)? => INTERRUPTED,
                GOES_ON => match pending::signals(waiting.process, waiting.thread) {
                    Pending::Nothing => continue,
                    Pending::Own => GIVES_WAY,
                    Pending::Shared => INTERRUPTED,
                },
                // The signal may have come just before the call.
                asked => asked,
            };
            if waiting.waits_for_host() {
                waiting.give_host_up(wish);
                continue;
            }
            waiting.wish.store(wish, Ordering::Release);
            self.crew.interrupt(&waiting.begun);
        }
        self.looked = Instant::now();
        Ok(())
    }
}

/// Whether a call that has connected to the broker waits until the host has answered: the socket waits, and for as long
/// as it takes. One that was made anew finds the socket connected. One that has begun nothing (TCP_FASTOPEN_CONNECT)
/// waits for nobody.
fn waits_for_host(socket: &OwnedFd, answer: Answer, is_again: impl Fn() -> bool) -> bool {
    let is_made = answer == Answer::Done || answer == error(libc::EISCONN) && is_again();
    let is_at_broker = is_made && !socket::is_being_connected(socket);
    is_at_broker && socket::waits(socket) && !socket::has_timeout(socket)
}

/// The end that was connected to. The socket does not know it any more when the broker has ended the connection.
fn far_end(address: &[u8]) -> Option<SocketAddr> {
    address_in(address).map(|address| SocketAddr::new(reached(address.ip()), address.port()))
}

/// Tells the broker whom a connection is for. One on its way is there in a moment, as it does not leave this machine.
/// It is completed here, or its owner's next connect(2) would be taken for the first one, and tell it again.
fn tell(socket: &OwnedFd, address: &[u8], told: &[u8], is_made: bool) -> bool {
    const LONGEST: Duration = Duration::from_secs(3);
    let is_there = || {
        let [ready] = descriptor::poll([Interest::write(Some(socket.as_raw_fd()))], Some(LONGEST))?;
        Ok::<bool, SyscallError>(ready.now && !ready.gone)
    };
    let is_made = is_made || is_there().unwrap_or(false) && socket::connect(socket, address).is_ok();
    is_made && socket::send_at_once(socket, told)
}

/// Connects, and returns the answer for the caller.
fn connect(socket: &OwnedFd, target: &Target, wish: &AtomicU8) -> Answer {
    let own;
    let address = match target {
        Target::File(file) => {
            own = socket::address_of(file);
            &own
        }
        Target::Address(address) | Target::Host { address, .. } => address,
    };
    let told = match target {
        Target::Host { told, .. } => told.as_slice(),
        Target::File(_) | Target::Address(_) => &[],
    };
    loop {
        let result = socket::connect(socket, address);
        let is_begun = matches!(result, Ok(()) | Err(libc::EINPROGRESS));
        if !told.is_empty() && is_begun && !tell(socket, address, told, result.is_ok()) {
            socket::disconnect(socket);
            return error(libc::ECONNREFUSED);
        }
        match (result, wish.load(Ordering::Acquire)) {
            (Ok(()), _) => return Answer::Done,
            // Meant for the work before. An internet socket goes on where it was.
            (Err(libc::EINTR), GOES_ON) => {}
            (Err(libc::EINTR), GIVES_WAY) if !socket::has_timeout(socket) => {
                return Answer::Error(seccomp::GIVE_WAY);
            }
            (Err(errno), _) => return error(errno),
        }
    }
}
