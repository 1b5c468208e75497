//! Values as a report spells them.

use super::{Cause, Level};
use std::fmt;

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Exited => "exited",
            Cause::Signalled => "signalled",
            Cause::Violation => "violation",
            Cause::Timeout => "timeout",
            Cause::MemoryLimit => "memory-limit",
            Cause::OutputFailed => "output-failed",
            Cause::Refused => "refused",
            Cause::NotFound => "not-found",
            Cause::NotExecutable => "not-executable",
            Cause::Lost => "lost",
            Cause::Unknown => "unknown",
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::None => "none",
            Level::Minimal => "minimal",
            Level::Standard => "standard",
            Level::Full => "full",
            Level::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_one_in_the_report() {
        let causes = [
            Cause::Exited,
            Cause::Signalled,
            Cause::Violation,
            Cause::Timeout,
            Cause::MemoryLimit,
            Cause::OutputFailed,
            Cause::Refused,
            Cause::NotFound,
            Cause::NotExecutable,
            Cause::Lost,
        ];
        for cause in causes {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.to_string());
        }
        for level in [Level::None, Level::Minimal, Level::Standard, Level::Full] {
            assert_eq!(serde_json::to_value(level).unwrap(), level.to_string());
        }
    }

    #[test]
    fn a_later_versions_word_is_unknown() {
        assert_eq!(serde_json::from_str::<Cause>(r#""bored""#).unwrap(), Cause::Unknown);
        assert!(serde_json::to_string(&Cause::Unknown).is_err());
    }
}
