//! A run that waits for its command, as the pool's socket serves it.

use crate::error::Refusal;
use crate::pool::key::Key;
use crate::pool::messages::{Answer, LONGEST, Wish};
use crate::pool::peer::{Proof, Standing};
use crate::request::Request;
use crate::run::warm::lasting::News;
use crate::run::warm::{self, Asked, Door, Ended, Waited};
use crate::supervise::{Caller, Stderr};
use crate::sys::mount::Changes;
use crate::sys::packet::Came;
use crate::sys::process::{self, Pid};
use crate::sys::{descriptor, packet, stream};
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

/// What the pool and its runs share.
pub struct Shared {
    /// What is asked for, with a command that stands for those which come later.
    pub request: Request,
    /// The key.
    pub key: Key,
    /// Where callers connect.
    pub listener: OwnedFd,
    /// What callers have to be.
    pub standing: Standing,
    /// What they have to know.
    pub proof: Proof,
    /// The pool.
    pub pool: Pid,
    /// Where it is told how its runs fare.
    pub notices: OwnedFd,
}

/// What the pool is told: a letter, and the number of the run's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It waits.
    Ready,
    /// It has a command.
    Taken,
    /// The command has ended.
    Ended,
}

impl Notice {
    /// The length of a notice.
    pub const LENGTH: usize = 5;

    fn encode(self, run: Pid) -> [u8; Notice::LENGTH] {
        let [a, b, c, d] = run.to_le_bytes();
        let letter = match self {
            Notice::Ready => b'r',
            Notice::Taken => b't',
            Notice::Ended => b'e',
        };
        [letter, a, b, c, d]
    }

    /// From bytes.
    pub fn decode([letter, number @ ..]: [u8; Notice::LENGTH]) -> Option<(Notice, Pid)> {
        let notice = match letter {
            b'r' => Notice::Ready,
            b't' => Notice::Taken,
            b'e' => Notice::Ended,
            _ => return None,
        };
        Some((notice, Pid::from_le_bytes(number)))
    }
}

/// Statuses with which a run ends that got no command.
pub const STALE: i32 = 1;
pub const UNSUITED: i32 = 2;

/// The life of a run, to its exit status. `said` takes the reason why there is none.
pub fn live(shared: &Shared, said: OwnedFd) -> i32 {
    // It has a command to end with, or none.
    if process::die_with_parent(libc::SIGKILL).is_err() || process::parent() != shared.pool {
        return UNSUITED;
    }
    let mut door = Socket { shared, connection: None };
    match warm::park(&shared.request, &mut door) {
        Ended::Ran => 0,
        Ended::Stale(_) | Ended::Over => STALE,
        Ended::Unsuited(why) => {
            let _ = descriptor::write_all(said.as_raw_fd(), why.as_bytes());
            UNSUITED
        }
    }
}

struct Socket<'s> {
    shared: &'s Shared,
    connection: Option<Rc<OwnedFd>>,
}

impl Socket<'_> {
    fn tell(&self, notice: Notice) {
        let bytes = notice.encode(process::id());
        let _ = descriptor::write_all(self.shared.notices.as_raw_fd(), &bytes);
    }

    fn answer(&self, answer: &Answer) -> bool {
        let Some(connection) = &self.connection else { return false };
        packet::send(connection.as_fd(), &[&answer.encode()], &[]).is_ok()
    }

    /// A caller's request, if who connected is one.
    fn hear(&mut self, connection: OwnedFd, broken: [RawFd; 2]) -> Option<Waited> {
        let peer = self.shared.standing.peer(connection.as_fd());
        // Whoever connects sends at once, or is gone; and nobody else is served meanwhile.
        if !descriptor::readable(connection.as_raw_fd(), LONGEST_SILENCE) {
            return None;
        }
        let received = packet::receive(connection.as_fd(), LONGEST).ok()?;
        let wish = Wish::decode(&received.bytes);
        self.connection = Some(Rc::new(connection));
        let may_look = wish.as_ref().is_some_and(|wish| self.shared.proof.is(&wish.proof));
        if !may_look || !peer.is_some_and(|peer| peer.is_equal(received.sender)) {
            self.refuse(
                "the caller is not what the pool is: its user, rights, namespaces or control group differ, or \
                 something confines it",
            );
            return None;
        }
        // It was killed while it waited.
        if broken.into_iter().any(|number| descriptor::readable(number, Duration::ZERO)) {
            self.refuse("the run that waited has ended");
            return Some(Waited::Broken);
        }
        let wish = wish.filter(|wish| !received.is_cut && wish.key == self.shared.key.bytes());
        let mut descriptors = received.descriptors;
        let report = if descriptors.len() > 3 { descriptors.pop() } else { None };
        let number = report.as_ref().map(AsRawFd::as_raw_fd);
        let request = wish.as_ref().and_then(|wish| wish.request(&self.shared.request, number));
        let (Some(request), Some(wish), Ok(streams)) = (request, wish, descriptors.try_into()) else {
            self.refuse("the pool is for something else");
            return None;
        };
        let asked = Asked { request, environment: wish.environment, streams, report };
        Some(Waited::Asked(Box::new(asked)))
    }
}

/// How long a caller may take from connecting to asking.
const LONGEST_SILENCE: Duration = Duration::from_millis(100);

impl Door for Socket<'_> {
    fn ready(&mut self) {
        self.tell(Notice::Ready);
    }

    fn is_asked(&self) -> bool {
        descriptor::readable(self.shared.listener.as_raw_fd(), Duration::ZERO)
    }

    fn wait(&mut self, broken: [RawFd; 2], mounts: Option<&Changes>, news: News<'_>) -> Waited {
        let (elsewhere, limit) = match news {
            News::Never => (None, None),
            News::From(elsewhere) => (Some(elsewhere), None),
            News::After(limit) => (None, Some(limit)),
        };
        // It may have been killed while this process was not to end with it (see `take`).
        if process::parent() != self.shared.pool {
            return Waited::Over;
        }
        loop {
            self.connection = None;
            let connection = match packet::next(self.shared.listener.as_fd(), elsewhere, mounts, limit) {
                Ok(Came::Connection(connection)) => connection,
                Ok(Came::Other | Came::Nothing) => return Waited::News,
                // Whoever ends the pool shuts the socket down.
                Err(_) => return Waited::Over,
            };
            if let Some(waited) = self.hear(connection, broken) {
                return waited;
            }
        }
    }

    fn refuse(&mut self, why: &str) {
        self.answer(&Answer::Refused(OsString::from(why)));
    }

    fn take(&mut self, streams: [OwnedFd; 3], time: Option<Duration>) -> Option<Caller> {
        // From here on this process does not end with the pool.
        stream::replace_standard(&streams).and_then(|()| process::die_with_parent(0)).ok()?;
        let time = time.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
        if !self.answer(&Answer::Taken(time)) {
            let _ = descriptor::release_all_standard();
            let _ = process::die_with_parent(libc::SIGKILL);
            return None;
        }
        self.connection.clone().map(Caller)
    }

    fn begun(&mut self) {
        // Not before: the pool would take a processor from the command's start.
        self.tell(Notice::Taken);
        // As long as somebody has it open, callers wait to be served, even where the pool was killed. This process
        // never gives what it shares with the pool back.
        drop(descriptor::own(self.shared.listener.as_raw_fd()));
    }

    fn end(&mut self, result: Result<i32, Refusal>) {
        let status = result.unwrap_or_else(|refusal| {
            Stderr::say_alone(&format!("sbx: {refusal}\n"));
            refusal.status().into()
        });
        // Whoever reads what was written to them is not to wait for what follows.
        let _ = descriptor::release_all_standard();
        // Signals that came too late: who has left something unread cannot answer.
        self.connection.iter().for_each(|connection| drop(packet::hear_no_more(connection.as_fd())));
        self.answer(&Answer::Ended(status));
        self.connection = None;
        self.tell(Notice::Ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::path::Path;

    fn with_pool(pool: Pid, use_it: impl FnOnce(&Shared, &Path, &OwnedFd)) {
        let scratch = Scratch::create(None).unwrap();
        let path = scratch.path().join("socket");
        let request = Request { command: vec!["true".into()], ..Request::default() };
        let (pipe, notices) = descriptor::pipe().unwrap();
        let shared = Shared {
            key: Key::of(&request).unwrap(),
            listener: packet::listen(&path, 1).unwrap(),
            standing: Standing::own().unwrap(),
            proof: Proof::known("proof"),
            pool,
            request,
            notices,
        };
        use_it(&shared, &path, &pipe);
    }

    /// A caller that is what this process is, and nothing but confined by something that /proc does not tell of.
    #[test]
    fn who_does_not_know_the_proof_is_refused() {
        with_pool(process::parent(), |shared, path, pipe| {
            for (told, is_served) in [("proof", true), ("proo", false), ("proofs", false), ("", false)] {
                let (key, proof) = (shared.key.bytes().to_vec(), told.as_bytes().to_vec());
                let command = vec!["true".into()];
                let wish = Wish { key, proof, flags: Vec::new(), command, environment: Vec::new() };
                let caller = packet::connect(path).unwrap();
                packet::send(caller.as_fd(), &[&wish.encode()], &[pipe.as_fd(); 3]).unwrap();
                let came = packet::next(shared.listener.as_fd(), None, None, None).unwrap();
                let Came::Connection(connection) = came else { panic!("nobody came") };
                let mut socket = Socket { shared, connection: None };
                let heard = socket.hear(connection, [pipe.as_raw_fd(); 2]);
                assert_eq!(matches!(heard, Some(Waited::Asked(_))), is_served, "{told}");
            }
        });
        assert!(!Proof::known("").is(b""));
    }

    #[test]
    fn nobody_waits_without_a_pool() {
        for (pool, waits) in [(process::parent(), true), (process::id(), false)] {
            with_pool(pool, |shared, _, pipe| {
                let mut socket = Socket { shared, connection: None };
                let waited = socket.wait([pipe.as_raw_fd(); 2], None, News::After(Duration::ZERO));
                assert_eq!((matches!(waited, Waited::News), matches!(waited, Waited::Over)), (waits, !waits));
            });
        }
    }
}
