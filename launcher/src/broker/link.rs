//! One connection of the command's: from its being accepted to its end.
//!
//! Two things go on at the same time: a connection to the host is made, and the first bytes are looked at where that
//! is to be done. When both have come out well, bytes flow.

use crate::broker::dial::{Dial, Progress};
use crate::broker::pipes::Pipes;
use crate::broker::poll::{Interest, Kind, Poller, Ready, Token};
use crate::broker::relay::{End, Flow, Turn, reset};
use crate::broker::said::{self, Host, Part, Verdict, tls};
use crate::hosts::{HostRules, Protocol};
use crate::sys::socket::{Ends, local_address, peer_address};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// How far the connection to the host is.
enum Way {
    /// Its name is being looked up.
    Resolving,
    /// It is being made.
    Dialling(Dial),
    /// It is made.
    Made(End),
}

/// Bytes that are looked at, and until when.
struct Look {
    /// What they may be. Empty: another ClientHello.
    protocols: Vec<Protocol>,
    until: Instant,
    /// Bytes have arrived since they were last looked at.
    is_new: bool,
    /// No more will.
    ended: bool,
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
    inside: End,
    way: Way,
    look: Option<Look>,
    /// The first ClientHello was let through. What follows it waits until the server's answer tells whether there is to
    /// be another one.
    awaits_answer: bool,
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
    /// An accepted connection, whose first bytes are looked at until some time.
    pub fn new(
        id: u64,
        socket: OwnedFd,
        host: Host,
        port: u16,
        look: Option<(Vec<Protocol>, Instant)>,
    ) -> Link {
        End::prepare(&socket);
        // What is looked at and what is forwarded are the same bytes, urgent ones among them.
        let _ = rustix::net::sockopt::set_socket_oobinline(&socket, true);
        let look = look.map(|(protocols, until)| Look::new(protocols, until));
        let ends = ends_of_accepted(&socket);
        let (inside, way) = (End::new(socket), Way::Resolving);
        let (up, down) = (Flow::default(), Flow::default());
        Link { id, host, port, ends, inside, way, look, awaits_answer: false, up, down, is_busy: false }
    }

    /// Waits for it.
    pub fn register(&self, poller: &mut Poller) -> bool {
        if let Some(look) = &self.look {
            poller.wake_at(look.until, Token::new(Kind::Attempt, self.id));
        }
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

    /// Begins to connect to one of these addresses.
    pub fn dial(&mut self, addresses: &[SocketAddr], poller: &mut Poller, now: Instant) -> Step {
        let (dial, progress) = Dial::start(self.id, addresses, poller, now);
        self.way = Way::Dialling(dial);
        self.progress(progress, poller)
    }

    fn progress(&mut self, progress: Progress, poller: &Poller) -> Step {
        match progress {
            Progress::Waits => Step::Waits,
            Progress::Failed(errno) => Step::Failed(errno),
            Progress::Made(socket, address) => {
                let token = Token::new(Kind::Outside, self.id);
                if poller.change(&socket, token, Interest::Changes).is_err() {
                    return Step::Failed(libc::ENOMEM);
                }
                self.way = Way::Made(End::new(socket));
                Step::Opened(address)
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
        if token.kind == Kind::Inside
            && let Some(look) = &mut self.look
        {
            look.is_new |= ready.read;
            look.ended |= ready.ended;
        }
        // Where there is nothing more to be read, the error shows nowhere else.
        let is_read = if token.kind == Kind::Inside { self.up.ended } else { self.down.ended };
        let is_broken = ready.error && (is_read || self.counts().is_none());
        if is_broken { self.broken() } else { Step::Waits }
    }

    /// It ends with an error on both sides.
    fn broken(&self) -> Step {
        self.reset();
        Step::Closed
    }

    /// Time has passed.
    pub fn on_time(&mut self, poller: &mut Poller, now: Instant) -> Step {
        if let Some(look) = self.look.as_ref().filter(|look| now >= look.until) {
            return Step::Mismatch(look.part(&[]).protocol(), None);
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
        self.look_at_answer(poller);
        match self.look(rules, buffer) {
            Step::Waits => {}
            step => return step,
        }
        let Way::Made(outside) = &mut self.way else { return Step::Waits };
        let up = match &self.look {
            None => self.up.pump(&mut self.inside, outside, pipes),
            // What the host says first may come before: it knows nothing of the command yet.
            Some(_) => Turn::Waits,
        };
        let down = match self.awaits_answer {
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
    fn look(&mut self, rules: &HostRules, buffer: &mut [u8]) -> Step {
        let Some(look) = self.look.as_mut().filter(|look| look.is_new || look.ended) else {
            return Step::Waits;
        };
        look.is_new = false;
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let count = match rustix::net::recv(&self.inside.socket, &mut *buffer, flags) {
            Ok((count, _)) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Step::Waits,
            Err(_) => return self.broken(),
        };
        // It ended before it began: nothing was said that could be wrong.
        if count == 0 {
            return self.broken();
        }
        let bytes = buffer.get(..count).unwrap_or_default();
        let part = look.part(bytes);
        match said::judge(part, bytes, &self.host, self.port, rules) {
            Verdict::Unfinished if look.ended => Step::Mismatch(part.protocol(), None),
            Verdict::Unfinished => Step::Waits,
            Verdict::Mismatch(said) => Step::Mismatch(part.protocol(), said),
            Verdict::Matches => {
                if part == Part::First(Protocol::Tls) {
                    self.up.most = Some(tls::length(bytes) as u64);
                    self.awaits_answer = true;
                }
                self.look = None;
                Step::Waits
            }
        }
    }

    /// Looks at the first bytes of the server's, where what the client says next depends on them.
    fn look_at_answer(&mut self, poller: &mut Poller) {
        let Way::Made(outside) = &self.way else { return };
        if !self.awaits_answer {
            return;
        }
        let mut answer = [0; 64];
        let asks_again =
            match rustix::net::recv(&outside.socket, &mut answer, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                Ok((0, _)) => Some(false),
                Ok((count, _)) => tls::asks_again(answer.get(..count).unwrap_or_default()),
                Err(Errno::AGAIN | Errno::INTR) => None,
                // The flow meets the same error.
                Err(_) => Some(false),
            };
        let Some(asks_again) = asks_again else { return };
        (self.awaits_answer, self.up.most) = (false, None);
        if asks_again {
            let until = Instant::now() + said::TIME;
            self.look = Some(Look::new(Vec::new(), until));
            poller.wake_at(until, Token::new(Kind::Attempt, self.id));
        }
    }

    /// Lets it go on although its first bytes do not match.
    pub fn overlook(&mut self) {
        self.look = None;
    }
}

impl Look {
    fn new(protocols: Vec<Protocol>, until: Instant) -> Look {
        Look { protocols, until, is_new: true, ended: false }
    }

    /// What the bytes that have come so far are.
    fn part(&self, bytes: &[u8]) -> Part {
        match self.protocols.is_empty() {
            true => Part::SecondHello,
            false => Part::First(said::spoken(&self.protocols, bytes)),
        }
    }
}
