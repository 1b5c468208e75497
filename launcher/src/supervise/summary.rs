//! What became of a run, for whoever reports it.

use crate::launch::limits::Applied;
use crate::supervise::output::Stream;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// We ended it when its time was up.
    Timeout,
    /// It was ended because it used too much memory.
    Memory,
    /// We ended it for a violation.
    Violation,
    /// We ended it because its output could not be passed on.
    OutputFailed,
    /// Something killed our reaper, and with it the command.
    Lost,
}

impl Ending {
    /// The exit status that says so.
    pub fn status(self) -> i32 {
        match self {
            Ending::Exited(status) => status,
            Ending::Killed(signal) => 128 + signal,
            Ending::Timeout => 124,
            Ending::Memory => 128 + libc::SIGKILL,
            Ending::Violation => 128 + libc::SIGSYS,
            Ending::OutputFailed | Ending::Lost => crate::refusal::REFUSED.into(),
        }
    }
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct Summary {
    /// How it ended.
    pub ending: Ending,
    /// What became of each stream whose output was limited.
    pub output: Vec<Stream>,
    /// The limits that were in force, and by which means.
    pub limits: Vec<Applied>,
    /// Whether something of it still runs, because that was wanted.
    pub kept_background: bool,
    /// Why output could not be passed on, where that failed.
    pub failure: Option<String>,
}
