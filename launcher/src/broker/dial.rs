//! Making a connection to one of several addresses.
//!
//! They are tried in their order. The next one begins when the one before has failed, or has not answered for a while
//! (as RFC 8305 has it); the first that answers is taken.

use crate::broker::poll::{Interest, Kind, Poller, Token};
use crate::broker::relay::End;
use crate::hosts::HostRules;
use crate::sys::route::Routes;
use crate::sys::socket::{local_address, make_room, peer_address};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// For how long an address has a chance of its own.
const HEAD_START: Duration = Duration::from_millis(250);

/// Maximum time for all.
const LONGEST: Duration = Duration::from_secs(60);

/// Maximum number of addresses that are tried.
const MOST: usize = 16;

/// How much may have arrived from a host that is not passed on yet, from the start. The kernel begins with an eighth:
/// many short streams at once would be many turns.
const ROOM: u32 = 1024 * 1024;

struct Attempt {
    number: u8,
    socket: OwnedFd,
    address: SocketAddr,
}

/// The addresses that are left, and those that are being tried.
pub struct Dial {
    id: u64,
    is_roomy: bool,
    rest: VecDeque<SocketAddr>,
    running: Vec<Attempt>,
    next_number: u8,
    next_at: Instant,
    until: Instant,
    errno: i32,
}

/// How it goes.
pub enum Progress {
    /// Not yet.
    Waits,
    /// A connection.
    Made(OwnedFd, SocketAddr),
    /// None can be made; the error number of the last one.
    Failed(i32),
}

impl Dial {
    /// Begins with the first address. `id` is the connection's, and `is_roomy` whether it may take much memory.
    pub fn start(
        (id, is_roomy): (u64, bool),
        addresses: &[SocketAddr],
        poller: &mut Poller,
        now: Instant,
    ) -> (Dial, Progress) {
        let until = now + LONGEST;
        let rest = addresses.iter().copied().take(MOST).collect();
        let errno = libc::EHOSTUNREACH;
        let running = Vec::new();
        let mut dial = Dial { id, is_roomy, rest, running, next_number: 0, next_at: now, until, errno };
        poller.wake_at(until, Token::new(Kind::Attempt, id));
        let progress = dial.go_on(poller, now);
        (dial, progress)
    }

    /// One of the attempts has come to an end.
    pub fn on_ready(&mut self, number: u8, poller: &mut Poller, now: Instant) -> Progress {
        let Some(place) = self.running.iter().position(|attempt| attempt.number == number) else {
            return Progress::Waits;
        };
        let failed = match self.running.get(place).map(|attempt| sockopt::socket_error(&attempt.socket)) {
            Some(Ok(Ok(()))) => None,
            Some(Ok(Err(errno)) | Err(errno)) => Some(errno),
            None => return Progress::Waits,
        };
        let attempt = self.running.swap_remove(place);
        match failed.or_else(|| is_own_end(&attempt.socket)) {
            None => return Progress::Made(attempt.socket, attempt.address),
            Some(errno) => self.errno = errno.raw_os_error(),
        }
        self.next_at = now;
        self.go_on(poller, now)
    }

    /// Time has passed.
    pub fn on_time(&mut self, poller: &mut Poller, now: Instant) -> Progress {
        if now >= self.until {
            return Progress::Failed(libc::ETIMEDOUT);
        }
        self.go_on(poller, now)
    }

    fn go_on(&mut self, poller: &mut Poller, now: Instant) -> Progress {
        while now >= self.next_at
            && let Some(address) = self.rest.pop_front()
        {
            match self.attempt(address, poller) {
                Ok(Some(socket)) => return Progress::Made(socket, address),
                Ok(None) => {
                    self.next_at = now + HEAD_START;
                    poller.wake_at(self.next_at, Token::new(Kind::Attempt, self.id));
                }
                Err(errno) => self.errno = errno.raw_os_error(),
            }
        }
        let is_over = self.running.is_empty() && self.rest.is_empty();
        if is_over { Progress::Failed(self.errno) } else { Progress::Waits }
    }

    /// A connection that was made at once; `None`: it is on its way.
    fn attempt(&mut self, address: SocketAddr, poller: &Poller) -> Result<Option<OwnedFd>, Errno> {
        let socket = stream_socket(address.ip())?;
        End::prepare(&socket);
        if self.is_roomy {
            make_room(&socket, ROOM);
        }
        let is_made = match rustix::net::connect(&socket, &address) {
            Ok(()) => true,
            Err(Errno::INPROGRESS) => false,
            Err(errno) => return Err(errno),
        };
        let number = self.next_number;
        self.next_number = self.next_number.wrapping_add(1);
        let token = Token { kind: Kind::Attempt, part: number, id: self.id };
        poller.add(&socket, token, Interest::Changes).map_err(|_| Errno::NOMEM)?;
        if is_made {
            return Ok(Some(socket));
        }
        self.running.push(Attempt { number, socket, address });
        Ok(None)
    }
}

/// Whether a connection leads to another machine, or to this one by a rule that has its address.
pub fn leads_out(rules: &HostRules, routes: Option<&Routes>, address: IpAddr, port: u16) -> bool {
    let to = SocketAddr::new(address, port);
    rules.name_address(address, port) || routes.is_some_and(|routes| routes.lead_out(to))
}

/// A socket for TCP that waits for nothing.
pub fn stream_socket(address: IpAddr) -> Result<OwnedFd, Errno> {
    socket(address, SocketType::STREAM)
}

/// A socket that waits for nothing.
pub fn socket(address: IpAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// Whether a connection to a port of this machine where nobody listens has met itself.
fn is_own_end(socket: &OwnedFd) -> Option<Errno> {
    let (local, peer) = (local_address(socket), peer_address(socket));
    (local.is_some() && local == peer).then_some(Errno::CONNREFUSED)
}
