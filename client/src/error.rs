//! What can go wrong before a command or beside it.

use crate::report::{Cause, Report};
use crate::text;
use std::fmt;
use std::io;

/// The command did not run, or nobody knows what became of it. Its `Display` is one sentence.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    sentence: String,
    report: Option<Box<Report>>,
}

/// Which part failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no `sbx` program, or it cannot be started.
    NoSbx,
    /// `sbx` refused to run the command with less than was asked for, or did not understand a flag or the profile.
    Refused,
    /// The command was not found.
    NotFound,
    /// The command was found, but cannot be executed.
    NotExecutable,
    /// `sbx` ended without a report that can be read. What it started has ended with it.
    NoReport,
    /// A system call of this process failed.
    System,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, sentence: impl Into<String>) -> Error {
        Error { kind, sentence: sentence.into(), report: None }
    }

    pub(crate) fn system(what: &str, error: &io::Error) -> Error {
        Error::new(ErrorKind::System, format!("cannot {what}: {}", text::cause(error)))
    }

    /// The report, if it says that the command did not run.
    pub(crate) fn of(report: &Report) -> Option<Error> {
        let kind = match report.cause {
            Cause::Refused => ErrorKind::Refused,
            Cause::NotFound => ErrorKind::NotFound,
            Cause::NotExecutable => ErrorKind::NotExecutable,
            _ => return None,
        };
        let sentence = report.error.clone().unwrap_or_else(|| "sbx did not run the command".to_string());
        Some(Error { kind, sentence, report: Some(Box::new(report.clone())) })
    }

    /// Which part failed.
    pub fn kind(&self) -> ErrorKind {
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
