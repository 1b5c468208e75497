//! The caller's terminal, for a command that is ended before it could put it back in order: an editor has echo
//! turned off, an interactive shell has its own jobs in the foreground.

use crate::sys::process::Pid;
use crate::sys::terminal::{self, Modes};
use crate::sys::{Failed, stream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// The terminal as the caller left it to us.
pub struct Terminal {
    terminal: OwnedFd,
    modes: Modes,
    group: Pid,
}

impl Terminal {
    /// The terminal among the standard descriptors, if it is our turn there. In the background it is not ours to change.
    pub fn of_caller() -> Result<Option<Terminal>, Failed> {
        let Some((number, modes)) = (0..3).find_map(|number| Some((number, terminal::modes(number)?))) else {
            return Ok(None);
        };
        let group = terminal::own_group();
        if terminal::foreground(number) != Some(group) {
            return Ok(None);
        }
        Ok(Some(Terminal { terminal: stream::duplicate(number)?, modes, group }))
    }

    /// Puts it back, unless it is somebody else's turn by now. To be called with SIGTTOU blocked, or the kernel would stop us
    /// where a group that has ended was in the foreground.
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
