//! Pairs of UNIX datagram sockets.
//!
//! A datagram socket can address every socket file of the host with each message, in memory, where no filter
//! sees it, and before ABI 9 Landlock does not look. So none can be made. For the two ends of a pair, which is
//! mostly made to keep messages apart, sequenced-packet sockets stand in: they send to each other alone,
//! whatever address a message has. What is different: if the other end is closed, one reads the end of the
//! file, and writing fails with EPIPE.
//!
//! In a network of the run's own the reaper makes them, so that they are of that network.

use crate::enforce::reaper::Pairs;
use crate::plan::calls::Calls;
use crate::supervise::dispatch::{Handler, Step};
use crate::supervise::judge::{Judge, Verdict};
use crate::supervise::waiting::{NotifiedCall, Waiting};
use crate::sys::seccomp::Answer;
use crate::sys::{SyscallError, bounded, socket, stream};
use std::cell::OnceCell;
use std::fs::File;
use std::rc::Rc;

/// Makes pairs that stand in.
pub struct DatagramPairs {
    calls: Rc<Calls>,
    maker: Option<Pairs>,
    allowed: OnceCell<bool>,
}

/// A pair that somebody asks for.
pub struct Wanted {
    flags: i32,
    /// The caller's memory, which cannot become that of another process, and where it wants the numbers.
    numbers: (File, u64),
}

impl Handler for DatagramPairs {
    type Copy = Wanted;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Wanted> {
        let NotifiedCall { notification, verdict, .. } = waiting.call;
        let [family, kind, protocol, place, ..] = notification.args;
        let (family, kind, protocol) = (family as i32, kind as i32, protocol as i32);
        let flags = kind & (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
        let is_pair = family == libc::AF_UNIX
            && kind == libc::SOCK_DGRAM | flags
            && [0, libc::AF_UNIX].contains(&protocol)
            && !waiting.call.is_x32();
        if !is_pair || !matches!(verdict, Verdict::Violation | Verdict::Logged) || !self.is_allowed() {
            return None;
        }
        let pid = notification.pid;
        // An exec of another thread can keep everybody from it.
        let open = move || File::options().read(true).write(true).open(format!("/proc/{pid}/mem"));
        Some(Wanted { flags, numbers: (bounded::within(open)?.ok()?, place) })
    }

    fn act(&mut self, wanted: Wanted, call: &NotifiedCall, _: &mut Judge) -> Result<Step, SyscallError> {
        if call.verdict == Verdict::Logged {
            return Ok(Step::Answer(Answer::Continue));
        }
        let made = match &self.maker {
            Some(maker) => maker.make(),
            None => socket::packet_pair().ok(),
        };
        let Some(pair) = made else { return Ok(Step::Next) };
        if wanted.flags & libc::SOCK_NONBLOCK != 0 {
            pair.iter().try_for_each(stream::never_wait)?;
        }
        let close_on_exec = wanted.flags & libc::SOCK_CLOEXEC != 0;
        Ok(Step::HandOverPair { pair, close_on_exec, numbers: wanted.numbers })
    }
}

impl DatagramPairs {
    /// By these calls. Without a maker, the supervisor makes the sockets: they are of its network.
    pub fn new(calls: Rc<Calls>, maker: Option<Pairs>) -> DatagramPairs {
        DatagramPairs { calls, maker, allowed: OnceCell::new() }
    }

    /// Whether the command could make those that stand in by itself.
    fn is_allowed(&self) -> bool {
        let args = [libc::AF_UNIX as u64, libc::SOCK_SEQPACKET as u64, 0, 0, 0, 0];
        *self.allowed.get_or_init(|| self.calls.let_through(&[("socketpair", args)]))
    }
}
