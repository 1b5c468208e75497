//! Start barriers. The command's process waits at one for the path rules. They are still being added while the
//! process is made, which takes time as well. The reaper waits at another one for the placeholders, which are made
//! only when somebody is there who removes them if the supervisor is killed.

use crate::enforce::Cause;
use crate::sys::SyscallError;
use crate::sys::descriptor::{self, Interest};
use crate::sys::process::{self, Pid};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

/// What the supervisor writes.
const COMPLETE: u64 = 1;
const GIVEN_UP: u64 = 2;

/// A barrier, which the supervisor opens. Both sides have its descriptors, as long as they share theirs.
pub struct StartBarrier {
    event: OwnedFd,
    supervisor: Rc<OwnedFd>,
}

impl StartBarrier {
    /// A barrier that this supervisor opens.
    pub fn new(supervisor: Pid) -> Result<StartBarrier, SyscallError> {
        Ok(StartBarrier { supervisor: process::open_pid(supervisor)?.into(), event: descriptor::event()? })
    }

    /// Another one of the same supervisor.
    pub fn another(&self) -> Result<StartBarrier, SyscallError> {
        Ok(StartBarrier { supervisor: self.supervisor.clone(), event: descriptor::event()? })
    }

    /// A descriptor that can be read when the supervisor has ended (pidfd_open(2)).
    pub fn supervisor(&self) -> RawFd {
        self.supervisor.as_raw_fd()
    }

    /// Says that what is waited for is complete, or never will be.
    pub fn open(&self, complete: bool) -> Result<(), SyscallError> {
        let message = if complete { COMPLETE } else { GIVEN_UP };
        descriptor::write_all(self.event.as_raw_fd(), &message.to_ne_bytes())
    }

    /// Waits until it is complete. Without all path rules the command could do less, not more; without a placeholder
    /// the reaper's next step fails.
    pub fn wait(&self) -> Result<(), Cause> {
        let (event, supervisor) = (self.event.as_raw_fd(), self.supervisor.as_raw_fd());
        loop {
            let interests = [event, supervisor].map(|number| Interest::read(Some(number)));
            let [told, ended] = descriptor::poll(interests, None)?;
            if told.now {
                let mut message = [0; size_of::<u64>()];
                descriptor::read(event, &mut message)?;
                let complete = u64::from_ne_bytes(message) == COMPLETE;
                return if complete { Ok(()) } else { Err("the supervisor gave up".into()) };
            }
            if ended.now || ended.gone {
                return Err("the supervisor is gone".into());
            }
        }
    }
}
