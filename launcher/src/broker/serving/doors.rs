//! What comes in through the doors, and when they are closed.

use super::{AT_ONCE, Loop, MOST_ROOMY, PAUSE};
use crate::broker::Door;
use crate::broker::clients;
use crate::broker::dns;
use crate::broker::events::Event;
use crate::broker::link::{Link, ends_of_accepted};
use crate::broker::poll::{Interest, Kind, Token};
use crate::broker::proxy::{self, Form, Wish};
use crate::broker::relay::reset;
use crate::broker::said::Host;
use crate::hosts::{HostName, Protocol};
use crate::sys::SyscallError;
use crate::sys::socket::local_address;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

impl Loop {
    pub(super) fn accept_askers(&mut self, place: usize, now: Instant) {
        for _ in 0..AT_ONCE {
            if self.askers.are_full() {
                self.questions_wait = true;
                return self.doors.questions.iter().for_each(|socket| self.poller.remove(socket));
            }
            let Some(socket) = self.doors.questions.get(place) else { return };
            let accepted = accept(socket);
            match accepted {
                Ok(socket) => {
                    let id = self.id();
                    self.askers.add(socket, id, &mut self.poller, now);
                }
                Err(errno) if is_passing(errno) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => return self.pause(now),
            }
        }
    }

    pub(super) fn accept_links(&mut self, place: usize, now: Instant) {
        for _ in 0..AT_ONCE {
            if self.links.len() + self.clients.count() >= self.most_links {
                if !std::mem::replace(&mut self.was_full, true) {
                    self.teller.tell(&Event::Full { count: self.most_links as u64 });
                }
                return self.pause(now);
            }
            let Some(listener) = self.doors.listeners.get(place) else { return };
            let kind = listener.kind;
            match accept(&listener.socket) {
                Ok(socket) => self.open(kind, socket, now),
                Err(errno) if is_passing(errno) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => return self.pause(now),
            }
        }
    }

    /// A connection of the command's.
    fn open(&mut self, door: Door, socket: OwnedFd, now: Instant) {
        let (host, port) = match door {
            Door::HostPort(port) => (Some(Host::Loopback), port),
            Door::Rule(port) => (self.host_of(&socket, port), port),
            Door::Proxy => {
                let id = self.id();
                return self.clients.add(socket, id, &mut self.poller, now);
            }
        };
        let Some(host) = host else { return self.refuse_stranger(&socket, port) };
        if !self.allow(&host, port) {
            return self.refuse(&socket, host.to_string(), port, libc::EACCES);
        }
        let look = (self.protocols(&host, port), self.look_time);
        let id = self.id();
        let link = Link::new(id, socket, host, port, look, self.is_roomy());
        self.begin(id, link, now);
    }

    /// A connection of a client of the proxy, which has said whom it wants to reach.
    pub(super) fn open_for_client(&mut self, socket: OwnedFd, wish: Wish, now: Instant) {
        let Wish { host, port, form, head } = wish;
        let host = if let Host::Address(address) = host { self.by_file(address, port) } else { host };
        let protocols = if self.allow(&host, port) {
            self.protocols(&host, port)
        } else {
            return self.refuse_client(&socket, form, host.to_string(), port);
        };
        if form.is_request() && !protocols.is_empty() && !protocols.contains(&Protocol::Http) {
            let protocol = protocols.first().copied().unwrap_or(Protocol::Tls);
            self.teller.tell(&Event::Mismatch { host: host.to_string(), port, said: None, protocol });
            return turn_away(&socket, form);
        }
        let id = self.id();
        let look = (protocols, self.look_time);
        let link = Link::of_client(id, socket, (host, port), (form, head), look, self.is_roomy());
        self.begin(id, link, now);
    }

    fn allow(&self, host: &Host, port: u16) -> bool {
        match host {
            Host::Name(name) => self.rules.allow_name(name, port) || self.watches && !dns::is_local(name),
            Host::Address(address) => self.allow_address(*address, port),
            Host::ByFile(address, _) => self.watches || self.may_dial(*address, port),
            Host::Loopback => true,
        }
    }

    fn protocols(&self, host: &Host, port: u16) -> Vec<Protocol> {
        match host {
            Host::Name(name) => self.rules.protocols_of_name(name, port),
            Host::Address(address) => self.rules.protocols_of_address(*address, port),
            Host::ByFile(_, names) => self.rules.protocols_of_names(names, port),
            Host::Loopback => Vec::new(),
        }
    }

    /// Whether the next connection has room from the host.
    fn is_roomy(&self) -> bool {
        self.links.len() < MOST_ROOMY
    }

    /// A connection that may be made.
    fn begin(&mut self, id: u64, link: Link, now: Instant) {
        if !link.register(&self.poller) {
            link.reset();
            return self.ended(id, link, libc::ENOMEM);
        }
        let host = link.host.clone();
        self.links.insert(id, link);
        self.is_busy(id);
        match host {
            Host::Name(name) => {
                if let Some(outcome) = self.lookups.start(&name, id, &mut self.poller, now) {
                    self.resolved_for(id, &outcome, now);
                }
            }
            Host::Address(address) | Host::ByFile(address, _) => self.dial(id, &[address], now),
            Host::Loopback => self.dial(id, &[Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()], now),
        }
    }

    /// A connection to an address of the range that stands for no name, as one that a program has kept from an earlier
    /// run.
    fn refuse_stranger(&mut self, socket: &OwnedFd, port: u16) {
        match local_address(socket) {
            Some(address) => self.refuse(socket, address.ip().to_string(), port, libc::EADDRNOTAVAIL),
            None => reset(socket),
        }
    }

    fn refuse(&mut self, socket: &OwnedFd, host: String, port: u16, errno: i32) {
        self.teller.tell(&Event::Failed { host, port, errno, ends: ends_of_accepted(socket) });
        reset(socket);
    }

    fn refuse_client(&mut self, socket: &OwnedFd, form: Form, host: String, port: u16) {
        let ends = ends_of_accepted(socket).filter(|_| form == Form::Plain);
        self.teller.tell(&Event::Failed { host, port, errno: libc::EACCES, ends });
        turn_away(socket, form);
    }

    /// Whom a connection is meant for: the address that it was made to is its local one here.
    fn host_of(&self, socket: &OwnedFd, port: u16) -> Option<Host> {
        let address = local_address(socket)?.ip();
        if self.book.names.is_synthetic(address) {
            return self.book.names.name_of(address).cloned().map(Host::Name);
        }
        Some(self.by_file(address, port))
    }

    /// The host at an address, by the names that hosts(5) gives it, where those are what rules are about.
    fn by_file(&self, address: IpAddr, port: u16) -> Host {
        if self.rules.allow_address(address, port) {
            return Host::Address(address);
        }
        let may = self.watches || self.rules.allow_resolved(address, port);
        let has_rule = |name: &HostName| may && (self.watches || self.rules.allow_name(name, port));
        let names: Rc<[HostName]> = self.lookups.names_at(address).filter(has_rule).collect();
        if names.is_empty() { Host::Address(address) } else { Host::ByFile(address, names) }
    }

    /// In log mode, too, an address of loopback means the command's own machine, not this one.
    fn allow_address(&self, address: IpAddr, port: u16) -> bool {
        let is_own = address.is_loopback() || address.is_unspecified();
        let by_rules = || self.rules.allow_address(address, port) && self.may_dial(address, port);
        by_rules() || self.watches && !is_own
    }

    /// Accepts nothing until there is room again. What waits stays in the queues of the sockets.
    pub(super) fn pause(&mut self, now: Instant) {
        self.poller.wake_at(now + PAUSE, Token::new(Kind::Pause, 0));
        if !std::mem::replace(&mut self.is_paused, true) {
            self.doors.questions.iter().for_each(|socket| self.poller.remove(socket));
            self.doors.listeners.iter().for_each(|listener| self.poller.remove(&listener.socket));
        }
    }

    /// A descriptor has become free, or time has passed.
    pub(super) fn has_room(&mut self) {
        self.pipes.refresh();
        // Where the kernel has no memory for that, the next time will do.
        if (self.is_paused || self.questions_wait) && self.resume().is_err() {
            self.poller.wake_at(Instant::now() + PAUSE, Token::new(Kind::Pause, 0));
        }
    }

    pub(super) fn resume(&mut self) -> Result<(), SyscallError> {
        self.questions_wait = self.askers.are_full();
        for (place, socket) in self.doors.questions.iter().enumerate().filter(|_| !self.questions_wait) {
            let token = Token::new(Kind::Questions, place as u64);
            again(self.poller.add(socket, token, Interest::Reads))?;
        }
        for (place, listener) in self.doors.listeners.iter().enumerate() {
            let token = Token::new(Kind::Listener, place as u64);
            again(self.poller.add(&listener.socket, token, Interest::Reads))?;
        }
        self.is_paused = false;
        Ok(())
    }
}

/// Tells a client of the proxy that no rule allows what it wants.
fn turn_away(socket: &OwnedFd, form: Form) {
    match proxy::answer(form, Some(libc::EACCES)) {
        Some(text) => clients::say_last(socket, &text),
        None => reset(socket),
    }
}

/// What is waited for already, as the first try came so far.
fn again(added: Result<(), SyscallError>) -> Result<(), SyscallError> {
    added.or_else(|failed| if failed.errno() == libc::EEXIST { Ok(()) } else { Err(failed) })
}

fn accept(socket: &OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::net::accept_with(socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
}

/// Whether an error is about the connection that was to be accepted, and the next one may do (accept(2)).
fn is_passing(errno: Errno) -> bool {
    matches!(errno, Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::NETDOWN | Errno::HOSTUNREACH)
}
