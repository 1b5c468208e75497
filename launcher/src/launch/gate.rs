//! Where the command's process waits for the path rules. They are still being added when it is made, for making it takes
//! time as well.

use crate::sys::Failed;
use crate::sys::descriptor::{self, Interest};
use crate::sys::process::{self, Pid};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// What is said of the rules.
const COMPLETE: u64 = 1;
const GIVEN_UP: u64 = 2;

/// The gate: the supervisor opens it. Both sides have its descriptors, as long as they share theirs.
pub struct Gate {
    word: OwnedFd,
    supervisor: OwnedFd,
}

impl Gate {
    /// A gate of this supervisor's.
    pub fn new(supervisor: Pid) -> Result<Gate, Failed> {
        Ok(Gate { supervisor: process::open_pid(supervisor)?, word: descriptor::event()? })
    }

    /// What can be read when the supervisor has ended (pidfd_open(2)).
    pub fn supervisor(&self) -> RawFd {
        self.supervisor.as_raw_fd()
    }

    /// Says that the rules are complete, or never will be.
    pub fn open(&self, complete: bool) -> Result<(), Failed> {
        let word = if complete { COMPLETE } else { GIVEN_UP };
        descriptor::write_all(self.word.as_raw_fd(), &word.to_ne_bytes())
    }

    /// Waits until they are complete. Without all of them the command could do less, not more.
    pub fn wait(&self) -> Result<(), String> {
        let (word, supervisor) = (self.word.as_raw_fd(), self.supervisor.as_raw_fd());
        loop {
            let interests = [word, supervisor].map(|number| Interest::read(Some(number)));
            let [said, ended] = descriptor::poll(interests, None).map_err(|failed| failed.to_string())?;
            if said.now {
                let mut found = [0; size_of::<u64>()];
                descriptor::read(word, &mut found).map_err(|failed| failed.to_string())?;
                let complete = u64::from_ne_bytes(found) == COMPLETE;
                return if complete { Ok(()) } else { Err("the supervisor gave up".to_string()) };
            }
            if ended.now || ended.gone {
                return Err("the supervisor is gone".to_string());
            }
        }
    }
}
