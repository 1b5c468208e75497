//! One connection of the command's: from its being accepted to its end.
//!
//! Two things go on at the same time: a connection to the host is made, and the first bytes are looked at where that
//! is to be done. When both have come out well, bytes flow.

use crate::broker::RunsEnd;
use crate::broker::clients;
use crate::broker::dial::{Dial, Progress};
use crate::broker::look::Look;
use crate::broker::pipes::Pipes;
use crate::broker::poll::{Interest, Kind, Poller, Ready, Token};
use crate::broker::proxy::{self, Form};
use crate::broker::relay::{End, Flow, Turn, reset};
use crate::broker::said::{self, Host, Part, Verdict, tls};
use crate::hosts::{HostRules, Protocol};
use crate::sys::socket::{Ends, hold_little, local_address, peer_address, send_at_once};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How much waits to be sent to a program that does not read, on a connection that may not take much memory. The kernel
/// would hold ten times of it.
const LITTLE: u32 = 128 * 1024;
/// How much of a server's answer is looked at for another ClientHello that it asks for.
const LONGEST_ANSWER: usize = 1024;

/// How far the connection to the host is.
enum Way {
    /// Its name is being looked up.
    Resolving,
    /// It is being made.
    Dialling(Dial),
    /// It is made.
    Made(End),
}

/// A connection.
pub struct Link {
    id: u64,
    /// Whom the command asked for.
    pub host: Host,
    /// At which port.
    pub port: u16,
    /// The ends of the command's own connection.
    pub ends: Option<Ends>,
    is_roomy: bool,
    inside: End,
    way: Way,
    look: Option<Look>,
    /// For how long what is looked at is waited for.
    look_time: Duration,
    /// How a client of the proxy said whom it wants, until it is answered.
    form: Option<Form>,
    /// What is to be looked at once it is.
    looks_later: Vec<Protocol>,
    /// What the host gets before what the client says from now on.
    head: Vec<u8>,
    /// The first ClientHello was let through. What follows it waits until the server's answer tells whether there is to
    /// be another one: this, which was taken with it, and what is in the socket.
    behind_hello: Option<Vec<u8>>,
    up: Flow,
    down: Flow,
    /// It has its turn anyway.
    pub is_busy: bool,
}

/// The ends of a connection that was accepted here.
pub fn ends_of_accepted(socket: &OwnedFd) -> Option<Ends> {
    Some((peer_address(socket)?, local_address(socket)?))
}

/// What is to be told or done about a connection.
pub enum Step {
    /// Nothing.
    Waits,
    /// It has more to do, after the others.
    Again,
    /// There is no pipe for it.
    NoPipe,
    /// It leads here now.
    Opened(SocketAddr),
    /// It cannot be made.
    Failed(i32),
    /// The first bytes do not match.
    Mismatch(Protocol, Option<String>),
    /// It has ended, or was broken.
    Closed,
}

impl Link {
    /// An accepted connection, whose first bytes are looked at, and are waited for so long when its host is reached.
    /// `is_roomy`: it may take much memory.
    pub fn new(
        id: u64,
        socket: OwnedFd,
        host: Host,
        port: u16,
        (protocols, look_time): (Vec<Protocol>, Duration),
        is_roomy: bool,
    ) -> Link {
        // So what is looked at and what is forwarded are the same bytes, urgent ones among them.
        End::prepare(&socket);
        if !is_roomy {
            hold_little(&socket, LITTLE);
        }
        let look = (!protocols.is_empty()).then(|| Look::new(protocols, Vec::new()));
        let ends = ends_of_accepted(&socket);
        let (inside, way) = (End::new(socket), Way::Resolving);
        let (up, down) = (Flow::default(), Flow::default());
        let (form, looks_later, head) = (None, Vec::new(), Vec::new());
        let (behind_hello, is_busy) = (None, false);
        Link {
            id,
            host,
            port,
            ends,
            is_roomy,
            inside,
            way,
            look,
            look_time,
            form,
            looks_later,
            head,
            behind_hello,
            up,
            down,
            is_busy,
        }
    }

    /// The connection of a client of the proxy. It speaks to the host when it has been answered, and the host gets
    /// `head` before that.
    pub fn of_client(
        id: u64,
        socket: OwnedFd,
        (host, port): (Host, u16),
        (form, head): (Form, Vec<u8>),
        (protocols, look_time): (Vec<Protocol>, Duration),
        is_roomy: bool,
    ) -> Link {
        let new = Link::new(id, socket, host, port, (Vec::new(), look_time), is_roomy);
        // No call waits for it but those whose way to the host the supervisor has found.
        let ends = new.ends.filter(|_| form == Form::Plain);
        let looks_later = if form.is_request() { Vec::new() } else { protocols };
        Link { form: Some(form), looks_later, head, ends, ..new }
    }

    /// Tells a client of the proxy that its host is not reached. Returns whether there was one to tell.
    pub fn refuse(&mut self, errno: i32) -> bool {
        let text = self.form.take().and_then(|form| proxy::answer(form, Some(errno)));
        text.as_ref().is_some_and(|text| {
            clients::say_last(&self.inside.socket, text);
            true
        })
    }

    /// Tells it that it is. From here on it speaks to the host, and what it says is looked at.
    fn welcome(&mut self) -> Step {
        let Some(form) = self.form.take() else { return Step::Waits };
        if proxy::answer(form, None).is_some_and(|text| !send_at_once(&self.inside.socket, &text)) {
            return self.broken();
        }
        let protocols = std::mem::take(&mut self.looks_later);
        if !protocols.is_empty() {
            self.look = Some(Look::new(protocols, Vec::new()));
        }
        Step::Waits
    }

    /// The time runs for what is looked at, once the host is reached.
    fn start_clock(&mut self, poller: &mut Poller) {
        if let (Some(look), Way::Made(_)) = (&mut self.look, &self.way)
            && let Some(until) = look.start_clock(self.look_time)
        {
            poller.wake_at(until, Token::new(Kind::Attempt, self.id));
        }
    }

    /// Waits for it.
    pub fn register(&self, poller: &Poller) -> bool {
        poller.add(&self.inside.socket, Token::new(Kind::Inside, self.id), Interest::Changes).is_ok()
    }

    /// The command sees an error when it is dropped.
    pub fn reset(&self) {
        reset(&self.inside.socket);
        if let Way::Made(outside) = &self.way {
            reset(&outside.socket);
        }
    }

    /// Gives up what belongs to all.
    pub fn release(&mut self, pipes: &mut Pipes) {
        self.up.release(pipes);
        self.down.release(pipes);
    }

    /// The numbers of bytes that have arrived, if the connection has been made.
    pub fn counts(&self) -> Option<(u64, u64)> {
        matches!(self.way, Way::Made(_)).then_some((self.up.total, self.down.total))
    }

    /// Whether everything has arrived that the run has sent on it, with its end.
    pub fn has_passed_on(&self, run: RunsEnd) -> bool {
        matches!(self.way, Way::Made(_)) && self.of_run(run).is_done
    }

    /// How many bytes of the run's have arrived.
    pub fn passed_on(&self, run: RunsEnd) -> u64 {
        self.of_run(run).total
    }

    /// Whether it holds bytes of the run's, or may: a connection that nothing was said on yet is no loss.
    pub fn holds(&self, run: RunsEnd) -> bool {
        let waits = |socket: &OwnedFd| {
            let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            rustix::net::recv(socket, &mut [0], peek).is_ok_and(|(count, _)| count > 0)
        };
        let is_looked_at = self.look.as_ref().is_some_and(|look| !look.bytes.is_empty());
        let is_held = is_looked_at || !self.head.is_empty() || self.behind_hello.is_some();
        match (run, &self.way) {
            (RunsEnd::Inside, _) => is_held || self.up.held > 0 || waits(&self.inside.socket),
            (RunsEnd::Outside, Way::Made(outside)) => self.down.held > 0 || waits(&outside.socket),
            (RunsEnd::Outside, _) => false,
        }
    }

    fn of_run(&self, run: RunsEnd) -> &Flow {
        if run == RunsEnd::Inside { &self.up } else { &self.down }
    }

    /// Begins to connect to one of these addresses.
    pub fn dial(&mut self, addresses: &[SocketAddr], poller: &mut Poller, now: Instant) -> Step {
        let (dial, progress) = Dial::start((self.id, self.is_roomy), addresses, poller, now);
        self.way = Way::Dialling(dial);
        self.progress(progress, poller)
    }

    fn progress(&mut self, progress: Progress, poller: &mut Poller) -> Step {
        match progress {
            Progress::Waits => Step::Waits,
            Progress::Failed(errno) => Step::Failed(errno),
            Progress::Made(socket, address) => {
                let token = Token::new(Kind::Outside, self.id);
                if poller.change(&socket, token, Interest::Changes).is_err() {
                    return Step::Failed(libc::ENOMEM);
                }
                self.way = Way::Made(End::new(socket));
                let step = self.welcome();
                self.start_clock(poller);
                if matches!(step, Step::Waits) { Step::Opened(address) } else { step }
            }
        }
    }

    /// One of its sockets is ready. `token.kind` tells which.
    pub fn on_ready(&mut self, token: Token, ready: Ready, poller: &mut Poller, now: Instant) -> Step {
        let end = match (token.kind, &mut self.way) {
            (Kind::Attempt, Way::Dialling(dial)) => {
                let progress = dial.on_ready(token.part, poller, now);
                return self.progress(progress, poller);
            }
            (Kind::Inside, _) => &mut self.inside,
            (Kind::Outside, Way::Made(outside)) => outside,
            _ => return Step::Waits,
        };
        end.readable |= ready.read;
        end.writable |= ready.write;
        end.ended |= ready.ended;
        end.urgent |= ready.urgent;
        if token.kind == Kind::Inside
            && let Some(look) = &mut self.look
        {
            look.is_new |= ready.read;
        }
        // Where nothing is read, the error shows nowhere else.
        let is_read = match token.kind {
            Kind::Inside => !self.up.ended && self.behind_hello.is_none(),
            _ => !self.down.ended,
        };
        let is_broken = ready.error && (!is_read || self.counts().is_none());
        if is_broken { self.broken() } else { Step::Waits }
    }

    /// It ends with an error on both sides.
    fn broken(&self) -> Step {
        self.reset();
        Step::Closed
    }

    /// Time has passed.
    pub fn on_time(&mut self, poller: &mut Poller, now: Instant) -> Step {
        if let Some(look) = self.look.as_ref().filter(|look| look.is_late(now)) {
            return Step::Mismatch(look.part().protocol(), None);
        }
        match &mut self.way {
            Way::Dialling(dial) => {
                let progress = dial.on_time(poller, now);
                self.progress(progress, poller)
            }
            _ => Step::Waits,
        }
    }

    /// Goes on with what can be done now.
    pub fn go_on(
        &mut self,
        rules: &HostRules,
        buffer: &mut [u8],
        pipes: &mut Pipes,
        poller: &mut Poller,
    ) -> Step {
        match self.look_at_answer(poller) {
            Step::Waits => {}
            step => return step,
        }
        match self.look(rules, buffer, poller) {
            Step::Waits => {}
            step => return step,
        }
        let Way::Made(outside) = &mut self.way else { return Step::Waits };
        let awaits_answer = self.behind_hello.is_some();
        let up = match &self.look {
            _ if !self.head.is_empty() => send_head(&mut self.head, &mut self.up, outside),
            None if !awaits_answer => self.up.pump(&mut self.inside, outside, pipes),
            // What the host says first may come before: it knows nothing of the command yet.
            _ => Turn::Waits,
        };
        let down = match awaits_answer {
            false => self.down.pump(outside, &mut self.inside, pipes),
            true => Turn::Waits,
        };
        match (up, down) {
            (Turn::Broken, _) | (_, Turn::Broken) => self.broken(),
            (Turn::Done, Turn::Done) => Step::Closed,
            (Turn::NoPipe, _) | (_, Turn::NoPipe) => Step::NoPipe,
            (Turn::More, _) | (_, Turn::More) => Step::Again,
            _ => Step::Waits,
        }
    }

    /// Looks at the first bytes, where that is to be done and there are new ones.
    fn look(&mut self, rules: &HostRules, buffer: &mut [u8], poller: &mut Poller) -> Step {
        let Some(look) = self.look.as_mut().filter(|look| look.is_new) else { return Step::Waits };
        look.is_new = false;
        loop {
            let part = look.part();
            match said::judge(part, &look.bytes, &self.host, self.port, rules) {
                Verdict::Unfinished => {}
                Verdict::Mismatch(said) => return Step::Mismatch(part.protocol(), said),
                Verdict::Matches => break,
            }
            let room = said::LONGEST.saturating_sub(look.bytes.len());
            let room = buffer.get_mut(..room).unwrap_or_default();
            match rustix::net::recv(&self.inside.socket, room, RecvFlags::DONTWAIT) {
                // It ended before it began: nothing was said that could be wrong.
                Ok((0, _)) if look.bytes.is_empty() => return self.broken(),
                Ok((0, _)) => return Step::Mismatch(part.protocol(), None),
                Ok((count, _)) => look.bytes.extend(buffer.iter().take(count)),
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.start_clock(poller);
                    return Step::Waits;
                }
                Err(_) => return self.broken(),
            }
        }
        let is_first_hello = look.part() == Part::First(Protocol::Tls);
        let mut bytes = self.look.take().map(|look| look.bytes).unwrap_or_default();
        if is_first_hello {
            self.behind_hello = Some(bytes.split_off(tls::length(&bytes).min(bytes.len())));
        }
        self.head.append(&mut bytes);
        Step::Waits
    }

    /// Looks at the first bytes of the server's, where what the client says next depends on them.
    fn look_at_answer(&mut self, poller: &mut Poller) -> Step {
        let (Way::Made(outside), Some(behind)) = (&self.way, &self.behind_hello) else { return Step::Waits };
        let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let mut answer = [0; LONGEST_ANSWER];
        let asks_again = match rustix::net::recv(&outside.socket, &mut answer, peek) {
            Ok((0, _)) => Some(false),
            // No server splits its answer so much that this does not tell.
            Ok((count, _)) => tls::asks_again(answer.get(..count).unwrap_or_default())
                .or((count == LONGEST_ANSWER).then_some(true)),
            Err(Errno::AGAIN | Errno::INTR) => None,
            // The kernel tells it once: the flow would take what follows for an end in order.
            Err(_) => return self.broken(),
        };
        let asks_again = match asks_again {
            Some(asks_again) => asks_again,
            None if !self.inside.ended => return Step::Waits,
            // A client that says no more says nothing wrong. What it has said before its end cannot be let through, and
            // is of no use: without a word after the answer no handshake comes to its end.
            None => match rustix::net::recv(&self.inside.socket, &mut [0], peek) {
                Ok((0, _)) if behind.is_empty() => false,
                Err(Errno::INTR) => return Step::Again,
                _ => return self.broken(),
            },
        };
        let mut behind = self.behind_hello.take().unwrap_or_default();
        if asks_again {
            self.look = Some(Look::new(Vec::new(), behind));
            self.start_clock(poller);
        } else {
            self.head.append(&mut behind);
        }
        Step::Waits
    }

    /// Lets it go on although its first bytes do not match.
    pub fn overlook(&mut self) {
        if let Some(mut look) = self.look.take() {
            self.head.append(&mut look.bytes);
        }
    }
}

/// Sends what the host gets first.
fn send_head(head: &mut Vec<u8>, up: &mut Flow, outside: &mut End) -> Turn {
    match rustix::net::send(&outside.socket, head, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        Ok(count) => {
            head.drain(..count.min(head.len()));
            up.total = up.total.saturating_add(count as u64);
            Turn::More
        }
        Err(Errno::AGAIN | Errno::INTR) => {
            outside.writable = false;
            Turn::Waits
        }
        Err(_) => {
            outside.failed = true;
            Turn::Broken
        }
    }
}
