//! Questions over TCP (RFC 7766): each message behind its length.

use crate::broker::dns;
use crate::broker::poll::{Interest, Kind, Poller, Ready, Token};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Maximum number of connections with questions.
pub const MOST: usize = 32;

/// For how long a connection may be idle.
const IDLE: Duration = Duration::from_secs(10);

/// Maximum length of answers that wait to be taken. Nothing is read meanwhile.
const MOST_UNSENT: usize = 4096;

struct Asker {
    socket: OwnedFd,
    arrived: Vec<u8>,
    unsent: Vec<u8>,
    until: Instant,
    /// Nothing more comes.
    ended: bool,
}

/// All connections with questions.
#[derive(Default)]
pub struct Askers {
    askers: HashMap<u64, Asker>,
}

/// Answers a message, or not.
pub type Answer<'a> = dyn FnMut(&[u8]) -> Option<Vec<u8>> + 'a;

impl Askers {
    /// Whether there are too many.
    pub fn are_full(&self) -> bool {
        self.askers.len() >= MOST
    }

    /// Takes a new connection.
    pub fn add(&mut self, socket: OwnedFd, id: u64, poller: &mut Poller, now: Instant) {
        let (token, until) = (Token::new(Kind::Asker, id), now + IDLE);
        if self.are_full() || poller.add(&socket, token, Interest::Reads).is_err() {
            return;
        }
        poller.wake_at(until, token);
        let asker = Asker { socket, arrived: Vec::new(), unsent: Vec::new(), until, ended: false };
        self.askers.insert(id, asker);
    }

    /// Serves one. Returns whether it is gone.
    pub fn on_ready(
        &mut self,
        id: u64,
        ready: Ready,
        poller: &mut Poller,
        now: Instant,
        answer: &mut Answer<'_>,
    ) -> bool {
        let Some(asker) = self.askers.get_mut(&id) else { return false };
        if asker.serve(ready, now, answer).is_none() {
            self.askers.remove(&id);
            return true;
        }
        let token = Token::new(Kind::Asker, id);
        let interest = if asker.unsent.is_empty() { Interest::Reads } else { Interest::Writes };
        let is_over = asker.ended && asker.unsent.is_empty();
        if is_over || poller.change(&asker.socket, token, interest).is_err() {
            self.askers.remove(&id);
            return true;
        }
        false
    }

    /// Time has passed for one. Returns whether it is gone.
    pub fn on_time(&mut self, id: u64, poller: &mut Poller, now: Instant) -> bool {
        let Some(asker) = self.askers.get(&id) else { return false };
        if now < asker.until {
            // It was served meanwhile. Each has one time only, however often it is served.
            poller.wake_at(asker.until, Token::new(Kind::Asker, id));
            return false;
        }
        self.askers.remove(&id).is_some()
    }

    /// Whether one is there.
    pub fn has(&self, id: u64) -> bool {
        self.askers.contains_key(&id)
    }
}

impl Asker {
    /// `None`: it is over.
    fn serve(&mut self, ready: Ready, now: Instant, answer: &mut Answer<'_>) -> Option<()> {
        if ready.write && !self.unsent.is_empty() {
            match rustix::net::send(&self.socket, &self.unsent, SendFlags::NOSIGNAL) {
                Ok(count) => drop(self.unsent.drain(..count.min(self.unsent.len()))),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return None,
            }
            self.until = now + IDLE;
        }
        if ready.read && self.unsent.is_empty() && !self.ended {
            let mut part = [0; 2048];
            match rustix::net::recv(&self.socket, &mut part, RecvFlags::DONTWAIT) {
                Ok((0, _)) => self.ended = true,
                Ok((count, _)) => self.arrived.extend(part.iter().take(count)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        while let Some(message) = self.next_message()? {
            self.until = now + IDLE;
            // Silence would have the client wait: it asks again over a new connection.
            let answer = answer(&message)?;
            let length = u16::try_from(answer.len()).ok()?;
            self.unsent.extend(length.to_be_bytes());
            self.unsent.extend(answer);
            if self.unsent.len() > MOST_UNSENT {
                break;
            }
        }
        Some(())
    }

    /// The next message that has arrived as a whole. `None`: none can follow.
    fn next_message(&mut self) -> Option<Option<Vec<u8>>> {
        let Some(length) = self.arrived.first_chunk() else { return Some(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if length > dns::LONGEST {
            return None;
        }
        let Some(message) = self.arrived.get(2..2 + length).map(<[u8]>::to_vec) else { return Some(None) };
        self.arrived.drain(..2 + length);
        Some(Some(message))
    }
}
