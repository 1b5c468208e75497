//! Why `sbx` did not start the command, and with which exit status it says so.

use crate::profile::tame;
use crate::report::model::Cause;
use std::fmt;

/// `sbx` itself failed, or refused to enforce less than was asked for.
pub const REFUSED: u8 = 125;
/// The command was found, but may not or cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;

/// The end of a run before its command started.
#[derive(Debug)]
pub struct Refusal {
    /// Exit status.
    pub code: u8,
    /// One sentence: what, why, what to do.
    pub sentence: String,
    /// The same for a report, which tells a program that cannot be executed from one that is refused.
    pub cause: Cause,
}

impl Refusal {
    /// With exit status 125.
    #[cold]
    pub fn new(sentence: impl Into<String>) -> Refusal {
        Refusal::with_code(REFUSED, sentence)
    }

    /// With another exit status.
    #[cold]
    pub fn with_code(code: u8, sentence: impl Into<String>) -> Refusal {
        let cause = match code {
            NOT_FOUND => Cause::NotFound,
            NOT_EXECUTABLE => Cause::NotExecutable,
            _ => Cause::Refused,
        };
        // It may quote what somebody has chosen who is not to write to this terminal.
        Refusal { code, sentence: sentence.into().chars().map(tame).collect(), cause }
    }

    /// Whatever the exit status is, this is what we refuse.
    #[must_use]
    pub fn by_choice(self) -> Refusal {
        Refusal { cause: Cause::Refused, ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sentence_quotes_does_not_steer_the_terminal() {
        assert_eq!(Refusal::new("'a\x1b[2J\n\u{9b}\u{202e}é'").to_string(), "'a?[2J???é'");
    }
}
