//! Who asked for a run that was parked, at the other end of a connection.

use crate::supervise::tells_to_end;
use crate::sys::packet;
use crate::sys::signal::Arrived;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

/// The length of a message: the number of a signal, and whether the kernel sent it.
const LENGTH: usize = 5;

/// Bytes of the message about a signal that the caller got.
pub fn encode(arrived: Arrived) -> [u8; LENGTH] {
    let [a, b, c, d] = arrived.number.to_le_bytes();
    [a, b, c, d, u8::from(arrived.from_kernel)]
}

/// The caller.
#[derive(Clone)]
pub struct Caller(pub Rc<OwnedFd>);

impl Caller {
    /// The descriptor that can be read when it says something.
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Whether it wants the run to end, or has ended. What else it has said is forgotten.
    pub fn tells_to_end(&self) -> bool {
        loop {
            match self.next() {
                Some(Some(arrived)) if tells_to_end(arrived.number) => return true,
                Some(Some(_)) => {}
                Some(None) => return false,
                None => return true,
            }
        }
    }

    /// Forgets what it has said.
    pub fn drain(&self) {
        while let Some(Some(_)) = self.next() {}
    }

    /// A signal that it got; an inner `None` for nothing, an outer one when the caller has ended.
    pub fn next(&self) -> Option<Option<Arrived>> {
        let mut message = [0; LENGTH];
        match packet::receive_now(self.0.as_fd(), &mut message) {
            Ok(Some(LENGTH)) => {
                let [a, b, c, d, from_kernel] = message;
                let number = i32::from_le_bytes([a, b, c, d]);
                Some(Some(Arrived { number, from_kernel: from_kernel != 0 }))
            }
            Ok(None) => Some(None),
            _ => None,
        }
    }
}
