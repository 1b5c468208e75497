//! The supervisor's end of a broker: it hears what that one tells, and ends it.

use crate::broker::{Event, FINISH};
use crate::sys::process::Pid;
use crate::sys::{descriptor, process, socket};
use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// How long a broker may take to tell the last it knows.
const LONGEST: Duration = Duration::from_millis(200);

/// How long it may take to pass on what the run has sent: longer than it takes itself.
const FINISHING: Duration = Duration::from_secs(20);

/// The broker at the other end of a channel.
pub struct Broker {
    channel: OwnedFd,
    pid: Pid,
    is_gone: Cell<bool>,
}

impl Broker {
    /// A child of this process.
    pub fn new(channel: OwnedFd, pid: Pid) -> Broker {
        Broker { channel, pid, is_gone: Cell::new(false) }
    }

    /// Whether it has closed the channel.
    pub fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// The descriptor that can be read when it has told something.
    pub fn told(&self) -> Option<RawFd> {
        (!self.is_gone()).then(|| self.channel.as_raw_fd())
    }

    /// Some of the events that it has told; it tells more when they have been read. What cannot be read is none.
    pub fn events(&self) -> Vec<Event> {
        const MOST_AT_ONCE: usize = 256;
        let mut events = Vec::new();
        let mut buffer = [0; 2048];
        for _ in 0..MOST_AT_ONCE {
            match socket::receive_at_once(&self.channel, &mut buffer) {
                _ if self.is_gone() => break,
                Ok(Some(0)) | Err(_) => self.is_gone.set(true),
                Ok(Some(length)) => events.extend(buffer.get(..length).and_then(Event::decode)),
                Ok(None) => break,
            }
        }
        events
    }

    /// Has it ask the name servers that these files name. Returns whether it will know.
    pub fn follow(&self, files: &[File; 2]) -> bool {
        let [configuration, hosts] = files;
        socket::send_descriptors(self.channel.as_fd(), &[configuration.as_fd(), hosts.as_fd()]).is_ok()
    }

    /// Ends it. `hear` reads what it still tells. `finishes`: no process of the run is left, and what they have sent
    /// is waited for.
    pub fn end(&self, finishes: bool, hear: &mut dyn FnMut()) {
        if finishes && socket::send_at_once(&self.channel, &[FINISH]) {
            self.hear_until(Instant::now() + FINISHING, hear);
        }
        let _ = socket::send_no_more(&self.channel);
        self.hear_until(Instant::now() + LONGEST, hear);
        process::signal(self.pid, libc::SIGKILL);
        process::wait(Some(self.pid), true, false);
    }

    /// Hears until it has closed the channel.
    fn hear_until(&self, deadline: Instant, hear: &mut dyn FnMut()) {
        while let Some(number) = self.told() {
            let left = deadline.saturating_duration_since(Instant::now());
            let interest = descriptor::Interest::read(Some(number));
            let ready = descriptor::poll([interest], Some(left)).map(|[ready]| ready.now || ready.gone);
            if left.is_zero() || !ready.unwrap_or(false) {
                return;
            }
            hear();
        }
    }
}
