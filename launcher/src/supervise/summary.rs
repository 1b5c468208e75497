//! How a run ended.

use crate::enforce::reaper::Departing;
use crate::plan::limits::Applied;
use crate::supervise::output::{self, Stream};
use std::time::Duration;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// A signal killed it.
    Killed(i32),
    /// It timed out.
    Timeout,
    /// It used too much memory.
    Memory,
    /// A violation ended it.
    Violation,
    /// Its output could not be passed on.
    OutputFailed,
    /// Something killed the reaper, and with it the command.
    Lost,
}

impl Ending {
    /// The exit status of such a run.
    pub fn status(self) -> i32 {
        match self {
            Ending::Exited(status) => status,
            Ending::Killed(signal) => 128 + signal,
            Ending::Timeout => 124,
            Ending::Memory => 128 + libc::SIGKILL,
            Ending::Violation => 128 + libc::SIGSYS,
            Ending::OutputFailed | Ending::Lost => crate::error::REFUSED.into(),
        }
    }
}

/// Why a run was killed that a signal to `sbx` had told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// It had not ended in time.
    Late {
        /// The signal.
        signal: i32,
        /// The time that it had.
        after: Duration,
    },
    /// The signal came again.
    Again(i32),
}

/// A run that is over.
#[derive(Debug)]
pub struct Summary {
    /// How the command ended.
    pub ending: Ending,
    /// What became of each stream that was limited.
    pub output: Vec<Stream>,
    /// The limits that were in force, and what enforced them.
    pub limits: Vec<Applied>,
    /// Why it was killed, where a signal to `sbx` was the reason.
    pub killed: Option<Killed>,
    /// Whether somebody has pressed the interrupt key.
    pub interrupted: bool,
    /// Whether background processes go on, as was asked for.
    pub kept_background: bool,
    /// The names of processes that the command had left behind, and that were ended. They may hold anything.
    pub left: Vec<Vec<u8>>,
    /// Whether one of these had left the session of the command: its program has mostly said then that it goes on.
    pub has_daemon: bool,
    /// Why output could not be passed on, where that failed.
    pub failure: Option<output::Failure>,
    /// The reaper, where it has only itself to end.
    pub departing: Option<Departing>,
}
