//! Asking the host's nameservers for the addresses of a name.
//!
//! Each question goes over a socket of its own, from a port that the kernel chooses at random, with a random number.
//! The socket is connected, so the kernel drops what comes from anybody but the server that was asked.

use crate::broker::dial;
use crate::broker::message::{self, Family, Reply};
use crate::broker::poll::{Interest, Kind, Poller, Ready, Token};
use crate::broker::resolver::Resolver;
use crate::hosts::HostName;
use crate::sys::memory;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketType};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Maximum number of addresses that one name has.
pub const MOST_ADDRESSES: usize = 32;

/// For how long an answer is used for further connections. A longer time would let an address be used whose name has
/// another one by now.
const KEPT: Duration = Duration::from_secs(3);

/// The same for the answer that a name has no address. A program that tries again without a pause asks nobody so often.
const KEPT_WITHOUT: Duration = Duration::from_secs(1);

/// Maximum number of answers that are kept.
const MOST_KEPT: usize = 256;

/// For how long the other family is waited for when one has answered (RFC 8305).
const OTHER_FAMILY: Duration = Duration::from_millis(50);

/// The addresses of a name, or an error number.
pub type Outcome = Result<Vec<IpAddr>, i32>;

/// Who waits for an outcome: numbers of connections.
pub struct Finished {
    /// They.
    pub waiting: HashSet<u64>,
    /// It.
    pub outcome: Outcome,
}

struct Query {
    name: HostName,
    family: Family,
    /// How many servers have been asked.
    tried: usize,
    number: u16,
    socket: OwnedFd,
    over_tcp: bool,
    /// Over TCP: what is left to be sent, and what has arrived.
    unsent: Vec<u8>,
    arrived: Vec<u8>,
    until: Instant,
}

struct Lookup {
    waiting: HashSet<u64>,
    queries: Vec<u64>,
    found: Vec<IpAddr>,
    /// When the rest is no longer waited for.
    soon: Option<(Instant, u64)>,
    is_no_name: bool,
    errno: Option<i32>,
}

/// All questions that are open.
pub struct Lookups {
    resolver: Resolver,
    queries: HashMap<u64, Query>,
    /// By the name of each lookup; times of a lookup have a number, too.
    names: HashMap<u64, HostName>,
    lookups: HashMap<HostName, Lookup>,
    kept: HashMap<HostName, (Instant, Outcome)>,
    next_id: u64,
    buffer: Vec<u8>,
}

impl Lookups {
    /// None.
    pub fn new(resolver: Resolver) -> Lookups {
        Lookups {
            resolver,
            queries: HashMap::new(),
            names: HashMap::new(),
            lookups: HashMap::new(),
            kept: HashMap::new(),
            next_id: 0,
            buffer: vec![0; message::LONGEST],
        }
    }

    /// The names that hosts(5) has for an address.
    pub fn names_at(&self, address: IpAddr) -> impl Iterator<Item = HostName> {
        self.resolver.names_at(address)
    }

    /// From now on other servers are asked.
    pub fn follow(&mut self, resolver: Resolver) {
        self.resolver = resolver;
        self.kept.clear();
    }

    /// Begins to look a name up for a connection. `Some`: the outcome is known.
    pub fn start(
        &mut self,
        name: &HostName,
        connection: u64,
        poller: &mut Poller,
        now: Instant,
    ) -> Option<Outcome> {
        let of_hosts = self.resolver.of_hosts(name);
        if !of_hosts.is_empty() {
            return Some(Ok(of_hosts));
        }
        if let Some((until, outcome)) = self.kept.get(name)
            && now < *until
        {
            return Some(outcome.clone());
        }
        if let Some(lookup) = self.lookups.get_mut(name) {
            lookup.waiting.insert(connection);
            return None;
        }
        let mut lookup = Lookup {
            waiting: HashSet::from([connection]),
            queries: Vec::new(),
            found: Vec::new(),
            soon: None,
            is_no_name: false,
            errno: None,
        };
        for family in [Family::V6, Family::V4] {
            match self.ask(name, family, (0, self.resolver.only_tcp, libc::ENETUNREACH), poller, now) {
                Ok(id) => lookup.queries.push(id),
                Err(errno) => lookup.errno = Some(errno),
            }
        }
        if lookup.queries.is_empty() {
            return Some(Err(lookup.errno.unwrap_or(libc::EHOSTUNREACH)));
        }
        self.lookups.insert(name.clone(), lookup);
        None
    }

    /// A connection does not wait any longer.
    pub fn leave(&mut self, name: &HostName, connection: u64) {
        self.lookups.get_mut(name).map(|lookup| lookup.waiting.remove(&connection));
    }

    /// Whether a time of this number is of something that is still there.
    pub fn has(&self, id: u64) -> bool {
        self.queries.contains_key(&id) || self.names.contains_key(&id)
    }

    /// Sends a question to the next server that takes it: how many have been asked, whether it is to be TCP, and why
    /// the one before failed.
    fn ask(
        &mut self,
        name: &HostName,
        family: Family,
        (mut tried, over_tcp, mut failed): (usize, bool, i32),
        poller: &mut Poller,
        now: Instant,
    ) -> Result<u64, i32> {
        let servers = self.resolver.servers.len().max(1);
        while tried < servers * self.resolver.attempts as usize {
            let server = self.resolver.servers.get(tried % servers).copied();
            match server.ok_or(Errno::NXIO).and_then(|server| {
                let (socket, number, unsent) = send(server, name, family, over_tcp)?;
                self.next_id += 1;
                let token = Token::new(Kind::Query, self.next_id);
                let interest = if over_tcp { Interest::Both } else { Interest::Reads };
                poller.add(&socket, token, interest).map_err(|_| Errno::NOMEM)?;
                let until = now + self.resolver.timeout;
                poller.wake_at(until, token);
                let (name, arrived) = (name.clone(), Vec::new());
                let query = Query { name, family, tried, number, socket, over_tcp, unsent, arrived, until };
                self.queries.insert(self.next_id, query);
                Ok(self.next_id)
            }) {
                Ok(id) => return Ok(id),
                Err(errno) => failed = errno.raw_os_error(),
            }
            tried += 1;
        }
        Err(failed)
    }

    /// Something has arrived for a question.
    pub fn on_ready(&mut self, id: u64, ready: Ready, poller: &mut Poller, now: Instant) -> Option<Finished> {
        let query = self.queries.get_mut(&id)?;
        let reply = if query.over_tcp {
            over_tcp(query, ready, poller, id)
        } else {
            over_udp(query, &mut self.buffer)
        };
        match reply? {
            Reply::Foreign => None,
            Reply::Failed => self.ask_again(id, false, libc::EREMOTEIO, poller, now),
            Reply::Truncated => self.ask_again(id, true, libc::EREMOTEIO, poller, now),
            Reply::Addresses(addresses) => self.answered(id, Ok(addresses), poller, now),
            Reply::NoName => self.answered(id, Err(None), poller, now),
        }
    }

    /// Time has passed for a question or a lookup.
    pub fn on_time(&mut self, id: u64, poller: &mut Poller, now: Instant) -> Option<Finished> {
        if let Some(name) = self.names.remove(&id) {
            let is_due = |lookup: &Lookup| lookup.soon.is_some_and(|(time, own)| own == id && time <= now);
            return if self.lookups.get(&name).is_some_and(is_due) { self.finish(&name, now) } else { None };
        }
        let is_late = self.queries.get(&id).is_some_and(|query| now >= query.until);
        if is_late { self.ask_again(id, false, libc::ETIMEDOUT, poller, now) } else { None }
    }

    /// Asks the next server, or the same one over TCP.
    fn ask_again(
        &mut self,
        id: u64,
        over_tcp: bool,
        failed: i32,
        poller: &mut Poller,
        now: Instant,
    ) -> Option<Finished> {
        let query = self.queries.remove(&id)?;
        // An answer that did not fit over TCP either is no answer.
        let same = over_tcp && !query.over_tcp;
        let tried = if same { query.tried } else { query.tried + 1 };
        let over_tcp = same || self.resolver.only_tcp;
        match self.ask(&query.name, query.family, (tried, over_tcp, failed), poller, now) {
            Ok(new) => {
                let lookup = self.lookups.get_mut(&query.name)?;
                lookup.queries.iter_mut().filter(|own| **own == id).for_each(|own| *own = new);
                None
            }
            Err(errno) => self.ended(&query.name, id, Err(Some(errno)), poller, now),
        }
    }

    fn answered(
        &mut self,
        id: u64,
        result: Result<Vec<IpAddr>, Option<i32>>,
        poller: &mut Poller,
        now: Instant,
    ) -> Option<Finished> {
        let query = self.queries.remove(&id)?;
        self.ended(&query.name, id, result, poller, now)
    }

    /// A question has ended: with addresses, without such a name, or with an error number.
    fn ended(
        &mut self,
        name: &HostName,
        id: u64,
        result: Result<Vec<IpAddr>, Option<i32>>,
        poller: &mut Poller,
        now: Instant,
    ) -> Option<Finished> {
        let lookup = self.lookups.get_mut(name)?;
        lookup.queries.retain(|own| *own != id);
        match result {
            Ok(addresses) => lookup.found.extend(addresses),
            Err(None) => lookup.is_no_name = true,
            Err(Some(errno)) => lookup.errno = Some(errno),
        }
        // Even where a server knows no such name, the other answer is waited for: some say so of a name that has no
        // address of one kind (RFC 4074, 4.2).
        if lookup.queries.is_empty() {
            return self.finish(name, now);
        }
        if !lookup.found.is_empty() && lookup.soon.is_none() {
            self.next_id += 1;
            lookup.soon = Some((now + OTHER_FAMILY, self.next_id));
            self.names.insert(self.next_id, name.clone());
            poller.wake_at(now + OTHER_FAMILY, Token::new(Kind::Query, self.next_id));
        }
        None
    }

    fn finish(&mut self, name: &HostName, now: Instant) -> Option<Finished> {
        let mut lookup = self.lookups.remove(name)?;
        lookup.queries.iter().for_each(|id| drop(self.queries.remove(id)));
        lookup.soon.iter().for_each(|(_, id)| drop(self.names.remove(id)));
        lookup.found.truncate(MOST_ADDRESSES);
        let outcome = match (lookup.found.is_empty(), lookup.is_no_name) {
            (false, _) => Ok(in_turns(lookup.found)),
            (true, true) => Err(libc::ENOENT),
            // Without an error the name exists, and has no address.
            (true, false) => Err(lookup.errno.unwrap_or(libc::ENOENT)),
        };
        let time = match &outcome {
            Ok(_) => Some(KEPT),
            Err(libc::ENOENT) => Some(KEPT_WITHOUT),
            Err(_) => None,
        };
        if let Some(time) = time {
            self.kept.retain(|_, (until, _)| now < *until);
            if self.kept.len() < MOST_KEPT {
                self.kept.insert(name.clone(), (now + time, outcome.clone()));
            }
        }
        Some(Finished { waiting: lookup.waiting, outcome })
    }
}

/// Addresses of both families in turns, IPv6 first.
fn in_turns(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let (six, four): (Vec<IpAddr>, Vec<IpAddr>) = addresses.into_iter().partition(IpAddr::is_ipv6);
    let longer = six.len().max(four.len());
    (0..longer).flat_map(|place| [six.get(place), four.get(place)]).flatten().copied().collect()
}

/// Sends a question. Over TCP it is left to be sent.
fn send(
    server: SocketAddr,
    name: &HostName,
    family: Family,
    over_tcp: bool,
) -> Result<(OwnedFd, u16, Vec<u8>), Errno> {
    let number = memory::random().map_err(|_| Errno::NOSYS)? as u16;
    let question = message::question(number, name, family).ok_or(Errno::INVAL)?;
    let kind = if over_tcp { SocketType::STREAM } else { SocketType::DGRAM };
    let socket = dial::socket(server.ip(), kind)?;
    match rustix::net::connect(&socket, &server) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(errno) => return Err(errno),
    }
    if !over_tcp {
        rustix::net::send(&socket, &question, SendFlags::NOSIGNAL)?;
        return Ok((socket, number, Vec::new()));
    }
    let length = u16::try_from(question.len()).map_err(|_| Errno::INVAL)?;
    Ok((socket, number, [&length.to_be_bytes()[..], &question].concat()))
}

/// What has arrived in a datagram, if it counts.
fn over_udp(query: &Query, buffer: &mut [u8]) -> Option<Reply> {
    loop {
        match rustix::net::recv(&query.socket, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((count, _)) => {
                let message = buffer.get(..count).unwrap_or_default();
                match message::read(message, query.number, &query.name, query.family) {
                    Reply::Foreign => continue,
                    reply => return Some(reply),
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => return None,
            // Nobody is there.
            Err(_) => return Some(Reply::Failed),
        }
    }
}

/// What has become of a question over TCP, if it counts.
fn over_tcp(query: &mut Query, ready: Ready, poller: &Poller, id: u64) -> Option<Reply> {
    if ready.write && !query.unsent.is_empty() {
        match rustix::net::send(&query.socket, &query.unsent, SendFlags::NOSIGNAL) {
            Ok(count) => drop(query.unsent.drain(..count.min(query.unsent.len()))),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return Some(Reply::Failed),
        }
        if query.unsent.is_empty()
            && poller.change(&query.socket, Token::new(Kind::Query, id), Interest::Reads).is_err()
        {
            return Some(Reply::Failed);
        }
    }
    if !ready.read {
        return None;
    }
    loop {
        let wanted = match query.arrived.first_chunk() {
            Some(length) => 2 + usize::from(u16::from_be_bytes(*length)),
            None => 2,
        };
        if wanted > message::LONGEST {
            return Some(Reply::Failed);
        }
        let left = wanted.saturating_sub(query.arrived.len());
        if left == 0 && query.arrived.len() > 2 {
            let message = query.arrived.get(2..).unwrap_or_default();
            return Some(match message::read(message, query.number, &query.name, query.family) {
                Reply::Foreign => Reply::Failed,
                reply => reply,
            });
        }
        let mut part = [0; 512];
        let room = part.get_mut(..left.min(512)).unwrap_or_default();
        match rustix::net::recv(&query.socket, room, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Some(Reply::Failed),
            Ok((count, _)) => query.arrived.extend(part.iter().take(count)),
            Err(Errno::AGAIN | Errno::INTR) => return None,
            Err(_) => return Some(Reply::Failed),
        }
    }
}

#[cfg(test)]
mod tests;
