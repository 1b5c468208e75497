//! Why a process was not confined.

use crate::error::Refusal;
use std::fmt;

/// The process is not confined as asked for. Its `Display` is one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfineError {
    /// `sbx` refused; nothing has changed.
    Refused(String),
    /// The kernel refused a step. Some rules may be in force, and the process should end.
    System(String),
}

impl fmt::Display for ConfineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ConfineError::Refused(sentence) | ConfineError::System(sentence)) = self;
        f.write_str(sentence)
    }
}

impl std::error::Error for ConfineError {}

impl From<Refusal> for ConfineError {
    fn from(refusal: Refusal) -> ConfineError {
        ConfineError::Refused(refusal.to_string())
    }
}
