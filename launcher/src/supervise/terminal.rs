//! Restores the caller's terminal after a command that was killed: an editor has echo turned off, an
//! interactive shell has its own jobs in the foreground.

use crate::sys::process::{self, Pid};
use crate::sys::terminal::{self, Modes};
use crate::sys::{SyscallError, descriptor, stream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// The terminal as it was before the command started.
pub struct Terminal {
    terminal: OwnedFd,
    modes: Modes,
    group: Pid,
}

impl Terminal {
    /// The terminal among the standard descriptors, if this process group is in its foreground. In the
    /// background it belongs to another group.
    pub fn of_caller() -> Result<Option<Terminal>, SyscallError> {
        let mut terminals = (0..3).filter(|number| descriptor::is_terminal(*number));
        let Some((number, modes)) = terminals.find_map(|number| Some((number, terminal::modes(number)?)))
        else {
            return Ok(None);
        };
        let group = process::group();
        if terminal::foreground(number) != Some(group) {
            return Ok(None);
        }
        Ok(Some(Terminal { terminal: stream::duplicate(number)?, modes, group }))
    }

    /// Restores it, unless another group is in the foreground by now. To be called with SIGTTOU blocked:
    /// where the foreground group has ended, the kernel would stop this process.
    pub fn restore(&self) {
        let foreground = terminal::foreground(self.terminal.as_raw_fd());
        let Some(foreground) = foreground else { return };
        if foreground != self.group {
            if !terminal::is_empty_group(foreground) {
                return;
            }
            terminal::set_foreground(self.terminal.as_fd(), self.group);
        }
        terminal::set_modes(self.terminal.as_fd(), &self.modes);
    }
}
