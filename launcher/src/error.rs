//! Why `sbx` did not start the command.
//!
//! Errors that callers tell apart have types of their own, whose variants carry their facts. [`Refusal`] holds one of
//! them, or a sentence, until it is shown or reported.

use crate::sys::SyscallError;
use crate::text::tame;
use sbx_client::report::Cause;
use std::error::Error;
use std::fmt::{self, Write};

/// `sbx` itself failed, or refused to enforce less than was asked for.
pub const REFUSED: u8 = 125;
/// The command was found, but may not or cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;

/// What an error means to the caller of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Status 125.
    Refused,
    /// Status 126: `sbx` does not want to execute the command.
    ExecutionRefused,
    /// Status 126: the command cannot be executed.
    NotExecutable,
    /// Status 127.
    NotFound,
}

impl Outcome {
    /// The exit status.
    pub fn status(self) -> u8 {
        match self {
            Outcome::Refused => REFUSED,
            Outcome::ExecutionRefused | Outcome::NotExecutable => NOT_EXECUTABLE,
            Outcome::NotFound => NOT_FOUND,
        }
    }

    /// The cause that a report gives.
    pub fn cause(self) -> Cause {
        match self {
            Outcome::Refused | Outcome::ExecutionRefused => Cause::Refused,
            Outcome::NotExecutable => Cause::NotExecutable,
            Outcome::NotFound => Cause::NotFound,
        }
    }
}

/// An error that ends a run before its command starts. Its text is one sentence: what, why, what to do.
pub trait EndsRun: Error + 'static {
    /// What it means to the caller.
    fn outcome(&self) -> Outcome {
        Outcome::Refused
    }
}

/// The end of a run before its command started.
#[derive(Debug)]
pub struct Refusal {
    /// What it means to the caller.
    pub outcome: Outcome,
    error: Box<dyn Error>,
}

impl<E: EndsRun> From<E> for Refusal {
    #[cold]
    fn from(error: E) -> Refusal {
        Refusal { outcome: error.outcome(), error: Box::new(error) }
    }
}

impl Refusal {
    /// With exit status 125 and this sentence.
    #[cold]
    pub fn new(sentence: impl Into<String>) -> Refusal {
        Refusal::with(Outcome::Refused, sentence)
    }

    /// With another outcome.
    #[cold]
    pub fn with(outcome: Outcome, sentence: impl Into<String>) -> Refusal {
        Refusal { outcome, error: sentence.into().into() }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        self.outcome.status()
    }

    /// The error, for whoever wants to know which one it is.
    pub fn error(&self) -> &(dyn Error + 'static) {
        &*self.error
    }
}

/// A system call that failed: `cannot WHAT: CALL: CAUSE`.
pub fn cannot(what: &'static str) -> impl FnOnce(SyscallError) -> Refusal {
    move |failed| Refusal::new(format!("cannot {what}: {failed}"))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The sentence may quote names that are chosen by somebody who is not to write to this terminal.
        self.error.to_string().chars().map(tame).try_for_each(|character| f.write_char(character))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_names_do_not_steer_the_terminal() {
        assert_eq!(Refusal::new("'a\x1b[2J\n\u{9b}\u{202e}é'").to_string(), "'a?[2J???é'");
    }
}
