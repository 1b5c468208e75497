//! Why a self-test could not be made, or why it refuses a run.

use crate::error::EndsRun;
use crate::sys::{SyscallError, plain};
use crate::text::escape;
use std::io;

/// Why a self-test could not be made, or why it refuses a run.
#[derive(Debug, thiserror::Error)]
pub enum SelfTestError {
    #[error("cannot find this program: {}", plain(.0))]
    OwnProgram(io::Error),
    #[error("cannot prepare the self-test: {}", plain(.0))]
    Files(io::Error),
    #[error("cannot {0} the self-test: {1}")]
    Call(&'static str, SyscallError),
    #[error("cannot start the self-test: {}", plain(.0))]
    Exec(io::Error),
    #[error("cannot test profile '{0}': it is log-only, so there is nothing to test")]
    LogOnly(String),
    #[error("cannot test: the self-test ended before it had tried '{0}'")]
    Ended(String),
    #[error(
        "cannot test: the self-test could not even say that it had begun (exit status {0}); the profile has to let \
         a program start and write to its standard output"
    )]
    Mute(i32),
    #[error("no outside can be made here to look from: {}", escape(.0.as_bytes(), 200))]
    NoOutside(String),
    #[error("cannot test: the self-test was not done after ten seconds")]
    TooLong,
    /// The run itself was refused, with this sentence.
    #[error("{0}")]
    RunRefused(String),
    #[error(
        "refused to run the command: --verify found that a promise does not hold here: {promise} ({})",
        escape(.why.as_bytes(), 200)
    )]
    Broken { promise: &'static str, why: String },
}

impl EndsRun for SelfTestError {}
