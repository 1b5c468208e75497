//! Waiting for descriptors and times.

use crate::sys::{OfCall, SyscallError};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// What a descriptor or a time belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The supervisor.
    Channel,
    /// Connections of the command's that wait to be accepted.
    Listener,
    /// Questions in datagrams.
    Datagrams,
    /// Connections with questions that wait to be accepted.
    Questions,
    /// A connection with questions.
    Asker,
    /// A question of ours.
    Query,
    /// A client of the proxy that has not said yet whom it wants to reach.
    Client,
    /// The command's end of a connection.
    Inside,
    /// The other end of it.
    Outside,
    /// A connection that is being made; as a time, anything about a connection.
    Attempt,
    /// A pause of accepting.
    Pause,
}

const KINDS: [Kind; 11] = [
    Kind::Channel,
    Kind::Listener,
    Kind::Datagrams,
    Kind::Questions,
    Kind::Asker,
    Kind::Query,
    Kind::Client,
    Kind::Inside,
    Kind::Outside,
    Kind::Attempt,
    Kind::Pause,
];

/// Whose turn it is. Numbers are never used again, so that what has arrived for something that is gone by now is not
/// taken for its successor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Which part of it.
    pub part: u8,
    /// Its number, below 2^48.
    pub id: u64,
}

impl Token {
    /// Of something that has no parts.
    pub fn new(kind: Kind, id: u64) -> Token {
        Token { kind, part: 0, id }
    }

    fn pack(self) -> u64 {
        (self.kind as u64) << 56 | u64::from(self.part) << 48 | self.id & (u64::MAX >> 16)
    }

    fn unpack(bits: u64) -> Option<Token> {
        let kind = *KINDS.get((bits >> 56) as usize)?;
        Some(Token { kind, part: (bits >> 48) as u8, id: bits & (u64::MAX >> 16) })
    }
}

/// What has become of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Reading would not wait, be it for an end or an error.
    pub read: bool,
    /// Writing would not wait.
    pub write: bool,
    /// The other end sends no more. There may be something to be read in front.
    pub ended: bool,
    /// There is an error.
    pub error: bool,
    /// There is urgent data, or was (tcp(7)).
    pub urgent: bool,
}

/// How a descriptor is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// While it can be read.
    Reads,
    /// While it can be written to.
    Writes,
    /// While either.
    Both,
    /// Each time that something changes.
    Changes,
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Interest::Reads => EventFlags::IN,
            Interest::Writes => EventFlags::OUT,
            Interest::Both => EventFlags::IN | EventFlags::OUT,
            Interest::Changes => {
                EventFlags::IN | EventFlags::OUT | EventFlags::PRI | EventFlags::RDHUP | EventFlags::ET
            }
        }
    }
}

/// How many descriptors are served before the clock is looked at.
const AT_ONCE: usize = 256;

/// The descriptors and times that are waited for.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    times: BinaryHeap<Reverse<(Instant, Token)>>,
    /// With so many times, those of what is gone are looked for.
    most_times: usize,
}

/// So many times need no looking through.
const FEW_TIMES: usize = 4096;

impl Poller {
    /// None.
    pub fn new() -> Result<Poller, SyscallError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).of("epoll_create1")?;
        Ok(Poller {
            epoll,
            events: Vec::with_capacity(AT_ONCE),
            times: BinaryHeap::new(),
            most_times: FEW_TIMES,
        })
    }

    /// Waits for one more. It is forgotten when it is closed.
    pub fn add(&self, descriptor: impl AsFd, token: Token, interest: Interest) -> Result<(), SyscallError> {
        let data = EventData::new_u64(token.pack());
        epoll::add(&self.epoll, descriptor, data, interest.flags()).of("epoll_ctl(EPOLL_CTL_ADD)")
    }

    /// Waits for one in another way. What is ready already is told again.
    pub fn change(
        &self,
        descriptor: impl AsFd,
        token: Token,
        interest: Interest,
    ) -> Result<(), SyscallError> {
        let data = EventData::new_u64(token.pack());
        epoll::modify(&self.epoll, descriptor, data, interest.flags()).of("epoll_ctl(EPOLL_CTL_MOD)")
    }

    /// Waits for one no longer.
    pub fn remove(&self, descriptor: impl AsFd) {
        let _ = epoll::delete(&self.epoll, descriptor);
    }

    /// Tells this token when the time has come. It may tell too often; what it belongs to looks at the clock.
    pub fn wake_at(&mut self, time: Instant, token: Token) {
        self.times.push(Reverse((time, token)));
    }

    /// Forgets the times of what is gone, if there are many.
    pub fn forget(&mut self, is_there: impl Fn(Token) -> bool) {
        if self.times.len() > self.most_times {
            self.times.retain(|Reverse((_, token))| is_there(*token));
            self.most_times = FEW_TIMES + 2 * self.times.len();
        }
    }

    /// The tokens whose time has come.
    pub fn due(&mut self, now: Instant) -> Vec<Token> {
        let mut due = Vec::new();
        while let Some(Reverse((time, token))) = self.times.peek()
            && *time <= now
        {
            due.push(*token);
            self.times.pop();
        }
        due
    }

    /// Waits until something is ready, a time has come, or at once if told so.
    pub fn wait(&mut self, at_once: bool) -> Result<Vec<(Token, Ready)>, SyscallError> {
        let next = self.times.peek().map(|Reverse((time, _))| time.saturating_duration_since(Instant::now()));
        let next = if at_once { Some(Duration::ZERO) } else { next };
        // Rounded up: waking too early would mean waiting again.
        let next = next.map(|time| time + Duration::from_millis(1) * u32::from(!time.is_zero()));
        let next = next.and_then(|time| Timespec::try_from(time).ok());
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), next.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            failed => failed.of("epoll_wait").map(drop)?,
        }
        Ok(self.events.iter().filter_map(read).collect())
    }
}

fn read(event: &epoll::Event) -> Option<(Token, Ready)> {
    let (flags, data) = (event.flags, event.data);
    let error = flags.contains(EventFlags::ERR);
    let gone = error || flags.contains(EventFlags::HUP);
    let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
    let ready = Ready {
        read: gone || ended || flags.contains(EventFlags::IN),
        write: gone || flags.contains(EventFlags::OUT),
        ended,
        error,
        urgent: flags.contains(EventFlags::PRI),
    };
    Token::unpack(data.u64()).map(|token| (token, ready))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_packed() {
        for (place, kind) in KINDS.into_iter().enumerate() {
            let token = Token { kind, part: 200, id: (1 << 48) - 1 - place as u64 };
            assert_eq!(Token::unpack(token.pack()), Some(token));
        }
        assert_eq!(Token::unpack(u64::MAX), None);
    }

    #[test]
    fn times_and_descriptors_are_told() {
        let mut poller = Poller::new().unwrap();
        let (end, other) = crate::sys::descriptor::pipe().unwrap();
        let (of_pipe, of_time) = (Token::new(Kind::Asker, 5), Token::new(Kind::Query, 6));
        poller.add(&end, of_pipe, Interest::Reads).unwrap();
        poller.wake_at(Instant::now() + Duration::from_millis(20), of_time);
        while poller.due(Instant::now()).is_empty() {
            assert_eq!(poller.wait(false).unwrap(), []);
        }
        (0..FEW_TIMES as u64 * 2).for_each(|id| poller.wake_at(Instant::now(), Token::new(Kind::Query, id)));
        poller.forget(|token| token.id == 7);
        assert_eq!(poller.due(Instant::now()), [Token::new(Kind::Query, 7)]);
        rustix::io::write(&other, b"x").unwrap();
        let ready = poller.wait(false).unwrap();
        assert!(matches!(ready[..], [(token, Ready { read: true, .. })] if token == of_pipe));
    }
}
