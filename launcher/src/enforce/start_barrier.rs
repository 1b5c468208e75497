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

/// The calls of who waits at one.
pub const CALLS: [&str; 5] = ["poll", "ppoll", "read", "restart_syscall", "write"];

/// A barrier, which the supervisor opens. Both sides have its descriptors, as long as they share theirs.
pub struct StartBarrier {
    event: OwnedFd,
    supervisor: Rc<OwnedFd>,
    /// Where who waits says that it does, if anybody wants to know.
    arrival: Option<OwnedFd>,
}

impl StartBarrier {
    /// A barrier that this supervisor opens.
    pub fn new(supervisor: Pid) -> Result<StartBarrier, SyscallError> {
        let supervisor = process::open_pid(supervisor)?.into();
        Ok(StartBarrier { supervisor, event: descriptor::event()?, arrival: None })
    }

    /// One whose supervisor learns that somebody waits at it.
    pub fn announcing(self) -> Result<StartBarrier, SyscallError> {
        Ok(StartBarrier { arrival: Some(descriptor::event()?), ..self })
    }

    /// What can be read when somebody waits.
    pub fn arrival(&self) -> Option<RawFd> {
        self.arrival.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Another one of the same supervisor.
    pub fn another(&self) -> Result<StartBarrier, SyscallError> {
        let supervisor = self.supervisor.clone();
        Ok(StartBarrier { supervisor, event: descriptor::event()?, arrival: None })
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
        if let Some(arrival) = &self.arrival {
            descriptor::write_all(arrival.as_raw_fd(), &COMPLETE.to_ne_bytes())?;
        }
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
