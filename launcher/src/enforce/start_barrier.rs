//! The start barrier: the command's process waits there for the path rules. They are still being added
//! while the process is made, which takes time as well.

use crate::enforce::Cause;
use crate::sys::SyscallError;
use crate::sys::descriptor::{self, Interest};
use crate::sys::process::{self, Pid};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// What the supervisor writes.
const COMPLETE: u64 = 1;
const GIVEN_UP: u64 = 2;

/// The barrier, which the supervisor opens. Both sides have its descriptors, as long as they share theirs.
pub struct StartBarrier {
    rules: OwnedFd,
    supervisor: OwnedFd,
}

impl StartBarrier {
    /// A barrier that this supervisor opens.
    pub fn new(supervisor: Pid) -> Result<StartBarrier, SyscallError> {
        Ok(StartBarrier { supervisor: process::open_pid(supervisor)?, rules: descriptor::event()? })
    }

    /// A descriptor that can be read when the supervisor has ended (pidfd_open(2)).
    pub fn supervisor(&self) -> RawFd {
        self.supervisor.as_raw_fd()
    }

    /// Says that the rules are complete, or never will be.
    pub fn open(&self, complete: bool) -> Result<(), SyscallError> {
        let message = if complete { COMPLETE } else { GIVEN_UP };
        descriptor::write_all(self.rules.as_raw_fd(), &message.to_ne_bytes())
    }

    /// Waits until they are complete. Without all of them the command could do less, not more.
    pub fn wait(&self) -> Result<(), Cause> {
        let (rules, supervisor) = (self.rules.as_raw_fd(), self.supervisor.as_raw_fd());
        loop {
            let interests = [rules, supervisor].map(|number| Interest::read(Some(number)));
            let [told, ended] = descriptor::poll(interests, None)?;
            if told.now {
                let mut message = [0; size_of::<u64>()];
                descriptor::read(rules, &mut message)?;
                let complete = u64::from_ne_bytes(message) == COMPLETE;
                return if complete { Ok(()) } else { Err("the supervisor gave up".into()) };
            }
            if ended.now || ended.gone {
                return Err("the supervisor is gone".into());
            }
        }
    }
}
