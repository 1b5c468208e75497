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
    /// The command has a group of its own, which has the foreground while both run.
    is_lent: bool,
}

impl Terminal {
    /// The terminal among the standard descriptors, if this process group is in its foreground. In the
    /// background it belongs to another group. `is_lent`: a group of the command's gets the foreground.
    pub fn of_caller(is_lent: bool) -> Result<Option<Terminal>, SyscallError> {
        let mut terminals = (0..3).filter(|number| descriptor::is_terminal(*number));
        let Some((number, modes)) = terminals.find_map(|number| Some((number, terminal::modes(number)?)))
        else {
            return Ok(None);
        };
        let group = process::group();
        if terminal::foreground(number) != Some(group) {
            return Ok(None);
        }
        Ok(Some(Terminal { terminal: stream::duplicate(number)?, modes, group, is_lent }))
    }

    /// Gives the foreground to the command's group, if it is this one's by now: the caller has continued the job there.
    pub fn lend(&self, command: Pid) {
        if self.is_lent && terminal::foreground(self.terminal.as_raw_fd()) == Some(self.group) {
            terminal::set_foreground(self.terminal.as_fd(), command);
        }
    }

    /// Takes it back, before this process stops or ends. To be called with SIGTTOU ignored.
    pub fn take_back(&self, command: Pid) {
        let foreground = terminal::foreground(self.terminal.as_raw_fd());
        let is_theirs = |group: Pid| group == command || terminal::is_empty_group(group);
        if self.is_lent && foreground.is_some_and(is_theirs) {
            terminal::set_foreground(self.terminal.as_fd(), self.group);
        }
    }

    /// Whether the command has it.
    pub fn is_lent(&self) -> bool {
        self.is_lent
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
