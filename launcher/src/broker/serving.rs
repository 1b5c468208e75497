//! The broker's loop. It has one thread, and waits in one place.

use crate::broker::askers::Askers;
use crate::broker::clients::{self, Clients};
use crate::broker::dial;
use crate::broker::dns::{self, Book};
use crate::broker::events::{Event, Teller};
use crate::broker::link::{Link, Step};
use crate::broker::lookup::{Finished, Lookups, Outcome};
use crate::broker::names::Names;
use crate::broker::pipes::Pipes;
use crate::broker::poll::{Interest, Kind, Poller, Ready, Token};
use crate::broker::resolver::Resolver;
use crate::broker::said::{self, Host};
use crate::broker::{Doors, RunsEnd, Setup};
use crate::hosts::{HostRules, reached};
use crate::sys::route::Routes;
use crate::sys::{SyscallError, datagram, socket};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

pub use finish::FINISH;
use finish::Finishing;

/// How many connections or datagrams are taken before the others have their turn.
const AT_ONCE: usize = 64;

/// For how long nothing is accepted when descriptors have run out, unless one becomes free before.
const PAUSE: Duration = Duration::from_millis(200);

/// Descriptors that are not for connections.
const RESERVED: u64 = 128;

/// Maximum number of connections, whatever the limit of descriptors is. Others wait. What is stuck in them is memory of
/// the kernel's, which no limit of the command's is about.
pub(super) const MOST_LINKS: usize = 2048;

/// Maximum number of connections that may take much memory of the kernel's each, some mebibytes when they are stuck.
pub(super) const MOST_ROOMY: usize = 128;

/// What may differ in tests.
pub struct Settings {
    /// The addresses that stand for names.
    pub names: Names,
    /// For how long the first bytes are waited for when the host is reached.
    pub look_time: Duration,
    /// The limit of descriptors.
    pub descriptors: u64,
    /// Rules may be about loopback: in tests, where there is no other network.
    pub reaches_loopback: bool,
}

impl Settings {
    /// With so many descriptors.
    pub fn new(descriptors: u64) -> Settings {
        Settings { names: Names::default(), look_time: said::TIME, descriptors, reaches_loopback: false }
    }
}

/// Everything that is going on.
pub struct Loop {
    rules: HostRules,
    watches: bool,
    look_time: Duration,
    reaches_loopback: bool,
    doors: Doors,
    poller: Poller,
    teller: Teller,
    /// The channel is waited for until it takes more.
    tells: bool,
    book: Book,
    askers: Askers,
    clients: Clients,
    lookups: Lookups,
    links: HashMap<u64, Link>,
    most_links: usize,
    /// Whether it was told that there are as many.
    was_full: bool,
    pipes: Pipes,
    /// Connections that have something to do.
    busy: VecDeque<u64>,
    /// Connections that wait for a pipe.
    starved: Vec<u64>,
    /// Nothing is accepted at present.
    is_paused: bool,
    /// No connection with questions is accepted at present, as there are too many.
    questions_wait: bool,
    next_id: u64,
    buffer: Vec<u8>,
    run: RunsEnd,
    routes: Option<Routes>,
    finishing: Option<Finishing>,
}

impl Loop {
    /// With these doors.
    pub fn new(
        setup: Setup,
        settings: Settings,
        doors: Doors,
        channel: OwnedFd,
    ) -> Result<Loop, SyscallError> {
        // Two sockets for each connection, and two ends of a pipe for half of them in both directions.
        let share = usize::try_from(settings.descriptors.saturating_sub(RESERVED) / 4).unwrap_or(MOST_LINKS);
        let share = share.clamp(1, MOST_LINKS);
        let poller = Poller::new()?;
        let teller = Teller::new(channel);
        poller.add(teller.channel(), Token::new(Kind::Channel, 0), Interest::Reads)?;
        for (place, socket) in doors.datagrams.iter().enumerate() {
            poller.add(socket, Token::new(Kind::Datagrams, place as u64), Interest::Reads)?;
        }
        let mut book = Book::new(settings.names, setup.watches);
        book.follow(setup.resolver.search.clone());
        let mut new = Loop {
            rules: setup.rules,
            watches: setup.watches,
            look_time: settings.look_time,
            reaches_loopback: settings.reaches_loopback,
            doors,
            poller,
            teller,
            tells: false,
            book,
            askers: Askers::default(),
            clients: Clients::default(),
            lookups: Lookups::new(setup.resolver),
            links: HashMap::new(),
            most_links: share,
            was_full: false,
            pipes: Pipes::new(share),
            busy: VecDeque::new(),
            starved: Vec::new(),
            is_paused: true,
            questions_wait: false,
            next_id: 0,
            buffer: vec![0; said::LONGEST],
            run: setup.run,
            routes: setup.routes,
            finishing: None,
        };
        new.resume()?;
        Ok(new)
    }

    /// Serves until the supervisor closes the channel, or what was begun is finished.
    pub fn run(&mut self) -> Result<(), SyscallError> {
        while self.turn()? && !self.is_finished() {}
        self.cut();
        // Whoever still reads learns how far the connections came that end now.
        let open: Vec<u64> = self.links.keys().copied().collect();
        open.into_iter().for_each(|id| self.close(id));
        if self.book.untold > 0 {
            self.teller.tell(&Event::Untold { count: self.book.untold });
        }
        self.teller.flush();
        Ok(())
    }

    fn turn(&mut self) -> Result<bool, SyscallError> {
        let ready = self.poller.wait(!self.busy.is_empty())?;
        let now = Instant::now();
        for (token, ready) in ready {
            if token.kind == Kind::Channel {
                match self.hear() {
                    Heard::Nothing => {}
                    Heard::Finish => self.finish(now),
                    Heard::End => return Ok(false),
                }
            } else {
                self.on_ready(token, ready, now);
            }
        }
        for token in self.poller.due(now) {
            self.on_time(token, now);
        }
        for _ in 0..self.busy.len() {
            let Some(id) = self.busy.pop_front() else { break };
            self.go_on(id);
        }
        if self.pipes.has_one() {
            std::mem::take(&mut self.starved).into_iter().for_each(|id| self.is_busy(id));
        }
        let (links, askers, clients, lookups) = (&self.links, &self.askers, &self.clients, &self.lookups);
        self.poller.forget(|token| match token.kind {
            Kind::Attempt => links.contains_key(&token.id),
            Kind::Asker => askers.has(token.id),
            Kind::Client => clients.has(token.id),
            Kind::Query => lookups.has(token.id),
            _ => true,
        });
        self.watch_channel()?;
        Ok(true)
    }

    /// The supervisor says that other name servers are to be asked, and that it is over.
    fn hear(&mut self) -> Heard {
        self.teller.flush();
        let mut byte = [0];
        match socket::receive_with_descriptors(self.teller.channel().as_fd(), &mut byte) {
            Ok((1, Some(files))) => {
                let resolver = Resolver::of_files(files.map(|file| Some(file.into())));
                self.book.follow(resolver.search.clone());
                self.lookups.follow(resolver);
                Heard::Nothing
            }
            Ok((1, None)) if byte == [FINISH] => Heard::Finish,
            Err(failed) if matches!(failed.errno(), libc::EAGAIN | libc::EINTR) => Heard::Nothing,
            Ok(_) | Err(_) => Heard::End,
        }
    }

    fn watch_channel(&mut self) -> Result<(), SyscallError> {
        if self.tells == self.teller.waits() || self.finishing.is_some() {
            return Ok(());
        }
        self.tells = !self.tells;
        let interest = if self.tells { Interest::Both } else { Interest::Reads };
        self.poller.change(self.teller.channel(), Token::new(Kind::Channel, 0), interest)
    }

    fn on_ready(&mut self, token: Token, ready: Ready, now: Instant) {
        match token.kind {
            Kind::Datagrams => self.answer_datagrams(token.id as usize),
            Kind::Questions => self.accept_askers(token.id as usize, now),
            Kind::Listener => self.accept_links(token.id as usize, now),
            Kind::Asker => {
                let (book, rules, teller) = (&mut self.book, &self.rules, &mut self.teller);
                let mut answer = |message: &[u8]| book.answer(message, rules, teller);
                let poller = &mut self.poller;
                if self.askers.on_ready(token.id, ready, poller, now, &mut answer) {
                    self.has_room();
                }
            }
            Kind::Query => {
                let finished = self.lookups.on_ready(token.id, ready, &mut self.poller, now);
                self.resolved(finished, now);
            }
            Kind::Client => match self.clients.on_ready(token.id, &mut self.buffer, &self.poller) {
                clients::Step::Waits => {}
                clients::Step::Gone => self.has_room(),
                clients::Step::Wants(socket, wish) => self.open_for_client(socket, wish, now),
            },
            Kind::Inside | Kind::Outside | Kind::Attempt => {
                let Some(link) = self.links.get_mut(&token.id) else { return };
                let step = link.on_ready(token, ready, &mut self.poller, now);
                self.step(token.id, step);
                self.is_busy(token.id);
            }
            Kind::Channel | Kind::Pause => {}
        }
    }

    fn on_time(&mut self, token: Token, now: Instant) {
        match token.kind {
            Kind::Asker if self.askers.on_time(token.id, &mut self.poller, now) => self.has_room(),
            Kind::Client if self.clients.on_time(token.id, now) => self.has_room(),
            Kind::Query => {
                let finished = self.lookups.on_time(token.id, &mut self.poller, now);
                self.resolved(finished, now);
            }
            Kind::Attempt => {
                let Some(link) = self.links.get_mut(&token.id) else { return };
                let step = link.on_time(&mut self.poller, now);
                self.step(token.id, step);
            }
            Kind::Pause => self.has_room(),
            _ => {}
        }
    }

    fn answer_datagrams(&mut self, place: usize) {
        let Some(socket) = self.doors.datagrams.get(place) else { return };
        let buffer = self.buffer.get_mut(..dns::LONGEST).unwrap_or_default();
        for _ in 0..AT_ONCE {
            match datagram::receive(socket, buffer) {
                Ok(Some((count, ends))) => {
                    let message = buffer.get(..count).unwrap_or_default();
                    let answer = self.book.answer(message, &self.rules, &mut self.teller);
                    // Whoever gets no answer asks again.
                    let _ = answer.map(|answer| datagram::answer(socket, &answer, &ends));
                }
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    fn resolved(&mut self, finished: Option<Finished>, now: Instant) {
        let Some(finished) = finished else { return };
        finished.waiting.into_iter().for_each(|id| self.resolved_for(id, &finished.outcome, now));
    }

    /// The addresses of a name are judged for each connection anew.
    fn resolved_for(&mut self, id: u64, outcome: &Outcome, now: Instant) {
        let Some(port) = self.links.get(&id).map(|link| link.port) else { return };
        match outcome {
            Err(errno) => self.step(id, Step::Failed(*errno)),
            Ok(addresses) => {
                // Log mode lets through what leads elsewhere. On loopback it is the run that listens.
                let allowed = |address: &&IpAddr| match self.watches {
                    true => self.reaches_loopback || !reached(**address).is_loopback(),
                    false => self.rules.allow_resolved(**address, port) && self.may_dial(**address, port),
                };
                let addresses: Vec<IpAddr> = addresses.iter().filter(allowed).copied().collect();
                if addresses.is_empty() {
                    return self.step(id, Step::Failed(libc::EACCES));
                }
                self.dial(id, &addresses, now);
            }
        }
    }

    /// Whether what rules allow leads to another machine, or to this one by a rule that says so. Its addresses are
    /// public ones, too. Its loopback is out of reach however wide a range is: there, it is the run that has it.
    fn may_dial(&self, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        if address.is_loopback() || address.is_unspecified() {
            return self.reaches_loopback;
        }
        dial::leads_out(&self.rules, self.routes.as_ref(), address, port)
    }

    fn dial(&mut self, id: u64, addresses: &[IpAddr], now: Instant) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let port = link.port;
        let addresses: Vec<SocketAddr> =
            addresses.iter().map(|address| SocketAddr::new(*address, port)).collect();
        let step = link.dial(&addresses, &mut self.poller, now);
        self.step(id, step);
    }

    /// A connection has its turn, once.
    fn is_busy(&mut self, id: u64) {
        if let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_busy) {
            link.is_busy = true;
            self.busy.push_back(id);
        }
    }

    fn go_on(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.is_busy = false;
        let step = link.go_on(&self.rules, &mut self.buffer, &mut self.pipes, &mut self.poller);
        self.step(id, step);
    }

    fn step(&mut self, id: u64, step: Step) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let port = link.port;
        let host = || link.host.to_string();
        match step {
            Step::Waits => {}
            Step::Again => self.is_busy(id),
            Step::NoPipe => {
                self.starved.push(id);
                self.poller.wake_at(Instant::now() + PAUSE, Token::new(Kind::Pause, 0));
            }
            Step::Opened(address) => {
                self.teller.tell(&Event::Opened { host: host(), port, address, ends: link.ends });
                self.is_busy(id);
            }
            Step::Failed(errno) => {
                self.failed(id, errno);
            }
            Step::Mismatch(protocol, said) => {
                self.teller.tell(&Event::Mismatch { host: host(), port, said, protocol });
                if self.watches {
                    link.overlook();
                    self.is_busy(id);
                } else {
                    link.reset();
                    self.close(id);
                }
            }
            Step::Closed => self.close(id),
        }
    }

    /// It cannot be made.
    fn failed(&mut self, id: u64, errno: i32) {
        let Some(mut link) = self.links.remove(&id) else { return };
        if !link.refuse(errno) {
            link.reset();
        }
        self.ended(id, link, errno);
    }

    fn close(&mut self, id: u64) {
        // Who goes before the host has answered has given up.
        let Some(link) = self.links.remove(&id) else { return };
        self.ended(id, link, libc::ECONNABORTED);
    }

    /// `errno` counts for a connection that has not been made.
    fn ended(&mut self, id: u64, mut link: Link, errno: i32) {
        let (host, port) = (link.host.to_string(), link.port);
        self.teller.tell(&match link.counts() {
            Some((sent, received)) => Event::Closed { host, port, sent, received, ends: link.ends },
            None => Event::Failed { host, port, errno, ends: link.ends },
        });
        if let Host::Name(name) = &link.host {
            self.lookups.leave(name, id);
        }
        link.release(&mut self.pipes);
        drop(link);
        self.has_room();
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

/// What the supervisor has said.
enum Heard {
    Nothing,
    /// No process of the run is left.
    Finish,
    /// It is not waited for any more.
    End,
}

mod doors;
mod finish;
#[cfg(test)]
pub mod tests;
