//! What can go wrong before or beside a command.

use crate::refusal::Refusal;
use crate::report::model::{Cause, Report};
use crate::sys::plain;
use std::fmt;
use std::io;

/// The command did not run, or nobody knows how. Displayed, it is one sentence.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    sentence: String,
    report: Option<Box<Report>>,
}

/// Which part failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// There is no `sbx` program, or it cannot be started.
    NoSbx,
    /// `sbx` refused to run the command with less than was asked for, or was asked for what it does not know.
    Refused,
    /// The command was not found.
    NotFound,
    /// The command was found, but cannot be executed.
    NotExecutable,
    /// `sbx` ended without a report that can be read; what it started has ended with it.
    NoReport,
    /// A system call of this process failed.
    System,
}

impl Error {
    pub(super) fn new(kind: Kind, sentence: impl Into<String>) -> Error {
        Error { kind, sentence: sentence.into(), report: None }
    }

    pub(super) fn system(what: &str, error: &io::Error) -> Error {
        Error::new(Kind::System, format!("cannot {what}: {}", plain(error)))
    }

    /// The report, if it says that the command did not run.
    pub(super) fn of(report: &Report) -> Option<Error> {
        let kind = match report.cause {
            Cause::Refused => Kind::Refused,
            Cause::NotFound => Kind::NotFound,
            Cause::NotExecutable => Kind::NotExecutable,
            _ => return None,
        };
        let sentence = report.error.clone().unwrap_or_else(|| "sbx did not run the command".to_string());
        Some(Error { kind, sentence, report: Some(Box::new(report.clone())) })
    }

    /// Which part failed.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The report, where `sbx` wrote one.
    pub fn report(&self) -> Option<&Report> {
        self.report.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::new(Kind::Refused, refusal.sentence)
    }
}
