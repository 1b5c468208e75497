//! Clients of the proxy that have not said yet whom they want to reach.

use crate::broker::poll::{Interest, Kind, Poller, Token};
use crate::broker::proxy::{self, Asked, Wish};
use crate::broker::said;
use crate::sys::socket;
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::Instant;

struct Client {
    socket: OwnedFd,
    until: Instant,
    is_greeted: bool,
}

/// All of them.
#[derive(Default)]
pub struct Clients(HashMap<u64, Client>);

/// What has become of a client.
pub enum Step {
    /// It has more to say.
    Waits,
    /// It is gone.
    Gone,
    /// It wants to reach somebody.
    Wants(OwnedFd, Wish),
}

impl Clients {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether one has said something, or ended, that is not read yet.
    pub fn have_news(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        self.0.values().any(|client| rustix::net::recv(&client.socket, &mut [0], flags) != Err(Errno::AGAIN))
    }

    /// Takes a new one.
    pub fn add(&mut self, socket: OwnedFd, id: u64, poller: &mut Poller, now: Instant) {
        let (token, until) = (Token::new(Kind::Client, id), now + said::TIME);
        if poller.add(&socket, token, Interest::Changes).is_ok() {
            poller.wake_at(until, token);
            self.0.insert(id, Client { socket, until, is_greeted: false });
        }
    }

    /// Something has arrived from one.
    pub fn on_ready(&mut self, id: u64, buffer: &mut [u8], poller: &Poller) -> Step {
        let Some(client) = self.0.get_mut(&id) else { return Step::Waits };
        let wish = match client.read(buffer) {
            Ok(None) => return Step::Waits,
            Ok(Some(wish)) => Some(wish),
            Err(Over) => None,
        };
        match (self.0.remove(&id), wish) {
            (Some(client), Some(wish)) => {
                poller.remove(&client.socket);
                Step::Wants(client.socket, wish)
            }
            _ => Step::Gone,
        }
    }

    /// Time has passed for one. Returns whether it is gone.
    pub fn on_time(&mut self, id: u64, now: Instant) -> bool {
        self.has(id)
            && self.0.get(&id).is_none_or(|client| now >= client.until)
            && self.0.remove(&id).is_some()
    }

    /// Whether one is there.
    pub fn has(&self, id: u64) -> bool {
        self.0.contains_key(&id)
    }
}

/// There will be no wish.
struct Over;

impl Client {
    /// Its wish, if it has arrived as a whole. What follows is left in the socket.
    fn read(&mut self, buffer: &mut [u8]) -> Result<Option<Wish>, Over> {
        loop {
            let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
            let count = match rustix::net::recv(&self.socket, &mut *buffer, flags) {
                Ok((0, _)) => return Err(Over),
                Ok((count, _)) => count,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
                Err(_) => return Err(Over),
            };
            match proxy::read(buffer.get(..count).unwrap_or_default(), self.is_greeted) {
                Asked::Unfinished if count < buffer.len() => return Ok(None),
                Asked::Unfinished => return Err(Over),
                Asked::Greeting(length, answer) => {
                    self.consume(buffer, length)?;
                    socket::send_at_once(&self.socket, answer).then_some(()).ok_or(Over)?;
                    self.is_greeted = true;
                }
                Asked::Wish(length, wish) => {
                    self.consume(buffer, length)?;
                    return Ok(Some(wish));
                }
                Asked::Wrong(answer) => {
                    let _ = self.consume(buffer, count);
                    say_last(&self.socket, answer);
                    return Err(Over);
                }
            }
        }
    }

    /// Takes bytes that were looked at out of the socket.
    fn consume(&self, buffer: &mut [u8], length: usize) -> Result<(), Over> {
        let room = buffer.get_mut(..length).ok_or(Over)?;
        match rustix::net::recv(&self.socket, room, RecvFlags::DONTWAIT) {
            Ok((count, _)) if count == length => Ok(()),
            _ => Err(Over),
        }
    }
}

/// Says something short to a client, and then nothing more.
pub fn say_last(socket: &OwnedFd, text: &[u8]) {
    if socket::send_at_once(socket, text) {
        let _ = rustix::net::shutdown(socket, Shutdown::Write);
    }
}
