//! The first bytes of a connection that are looked at, and until when.

use crate::broker::said::{self, Part};
use crate::hosts::Protocol;
use std::time::{Duration, Instant};

/// They are taken out of the socket first, and the host gets these very bytes. What is still in a socket may be pages
/// that the command has mapped (sendfile(2)), and can change after it was looked at.
///
/// The time runs from the first byte: a connection that is kept for later has said nothing wrong. It does not run while
/// the host is being connected to either, because a call that waits for that can say nothing yet.
pub struct Look {
    /// What they may be. Empty: another ClientHello.
    protocols: Vec<Protocol>,
    /// At most [`said::LONGEST`].
    pub bytes: Vec<u8>,
    until: Option<Instant>,
    /// Bytes have arrived since they were last looked at.
    pub is_new: bool,
}

impl Look {
    /// With what was taken already.
    pub fn new(protocols: Vec<Protocol>, bytes: Vec<u8>) -> Look {
        Look { protocols, bytes, until: None, is_new: true }
    }

    /// What the bytes that have come so far are.
    pub fn part(&self) -> Part {
        match self.protocols.is_empty() {
            true => Part::SecondHello,
            false => Part::First(said::spoken(&self.protocols, &self.bytes)),
        }
    }

    /// From here on the time runs, if there are bytes and it does not run yet. Returns until when.
    pub fn start_clock(&mut self, time: Duration) -> Option<Instant> {
        if self.bytes.is_empty() || self.until.is_some() {
            return None;
        }
        self.until = Some(Instant::now() + time);
        self.until
    }

    /// Whether it is over.
    pub fn is_late(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now >= until)
    }
}
