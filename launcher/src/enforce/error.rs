//! Why a plan could not be carried out.

use crate::error::{EndsRun, Outcome, Refusal};
use crate::sys::{SyscallError, plain};
use crate::text::shown;
use landlock::RulesetError;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why the command was not started as planned.
#[derive(Debug, thiserror::Error)]
pub enum EnforceError {
    /// A step failed.
    #[error("cannot {step}: {cause}")]
    Failed {
        /// The step.
        step: Step,
        /// Why.
        cause: Cause,
    },
    /// The same, where another place for temporary files may help.
    #[error("cannot {step}: {cause}; set TMPDIR to a directory that you can write")]
    NeedsTmpdir {
        /// The step.
        step: Step,
        /// Why.
        cause: Cause,
    },
    /// The exec itself failed.
    #[error("cannot execute the command: {0}")]
    Exec(SyscallError),
    /// One of these, as the reaper reported it.
    #[error("{sentence}")]
    Reported {
        /// Its text.
        sentence: String,
        /// The error number of the exec.
        exec: Option<i32>,
    },
}

/// What was being done, and to which file.
#[derive(Debug)]
pub struct Step {
    /// Completes "cannot ..."; `{}` stands for the file.
    what: &'static str,
    path: Option<PathBuf>,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// A system call failed.
    #[error("{0}")]
    Call(#[from] SyscallError),
    /// As the standard library reports it.
    #[error("{}", plain(.0))]
    Io(#[from] io::Error),
    /// What was planned cannot be carried out.
    #[error("{0}")]
    Plan(Refusal),
    /// Something else.
    #[error("{0}")]
    Other(&'static str),
    /// The kernel does not notify of system calls, and the run depends on that.
    #[error("{failed}: {why}, and {need}")]
    NoListener {
        /// The call that said so.
        failed: SyscallError,
        /// What that means.
        why: &'static str,
        /// What depends on it, and what to do.
        need: &'static str,
    },
}

impl From<Refusal> for Cause {
    fn from(refusal: Refusal) -> Cause {
        Cause::Plan(refusal)
    }
}

impl From<&'static str> for Cause {
    fn from(sentence: &'static str) -> Cause {
        Cause::Other(sentence)
    }
}

/// An error of the Landlock crate, without its own types: mostly the kernel's is behind it.
impl From<RulesetError> for Cause {
    fn from(error: RulesetError) -> Cause {
        let mut innermost: &dyn Error = &error;
        while let Some(inner) = innermost.source() {
            innermost = inner;
        }
        match innermost.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            Some(number) => Cause::Io(io::Error::from_raw_os_error(number)),
            None => Cause::Other("the kernel's Landlock has not what its version promises"),
        }
    }
}

impl EnforceError {
    /// A step that failed.
    pub fn new(what: &'static str, cause: impl Into<Cause>) -> EnforceError {
        EnforceError::Failed { step: Step { what, path: None }, cause: cause.into() }
    }

    /// A step about a file, for which `{}` stands.
    pub fn at(what: &'static str, path: &Path, cause: impl Into<Cause>) -> EnforceError {
        let step = Step { what, path: Some(path.to_path_buf()) };
        EnforceError::Failed { step, cause: cause.into() }
    }

    /// The same, with the advice to set TMPDIR.
    pub fn advising_tmpdir(self) -> EnforceError {
        match self {
            EnforceError::Failed { step, cause } => EnforceError::NeedsTmpdir { step, cause },
            other => other,
        }
    }

    /// The error number of the exec itself.
    pub fn exec(&self) -> Option<i32> {
        match self {
            EnforceError::Exec(failed) => Some(failed.errno()),
            EnforceError::Reported { exec, .. } => *exec,
            _ => None,
        }
    }
}

/// The status for a failed exec tells whether there was something to execute.
impl EndsRun for EnforceError {
    fn outcome(&self) -> Outcome {
        match self.exec() {
            Some(libc::ENOENT | libc::ENOTDIR) => Outcome::NotFound,
            Some(_) => Outcome::NotExecutable,
            None => Outcome::Refused,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => f.write_str(&self.what.replacen("{}", &shown(path), 1)),
            None => f.write_str(self.what),
        }
    }
}

/// Names the step whose result this is.
pub trait Named<T> {
    /// A step.
    fn step(self, what: &'static str) -> Result<T, EnforceError>;
    /// A step about a file, for which `{}` stands.
    fn step_at(self, what: &'static str, path: &Path) -> Result<T, EnforceError>;
}

impl<T, E: Into<Cause>> Named<T> for Result<T, E> {
    fn step(self, what: &'static str) -> Result<T, EnforceError> {
        self.map_err(|cause| EnforceError::new(what, cause))
    }

    fn step_at(self, what: &'static str, path: &Path) -> Result<T, EnforceError> {
        self.map_err(|cause| EnforceError::at(what, path, cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_with_its_file_and_the_call_that_failed() {
        let failed = || SyscallError { call: "openat2", cause: io::Error::from_raw_os_error(libc::ENOENT) };
        let error = EnforceError::at("protect '{}'", Path::new("/a{}"), failed());
        let sentence = "cannot protect '/a{}': openat2: no such file or directory";
        assert_eq!(Refusal::from(error).to_string(), sentence);
        assert_eq!(Refusal::from(EnforceError::Exec(failed())).outcome, Outcome::NotFound);
        assert_eq!(Refusal::from(EnforceError::new("deny", failed())).outcome, Outcome::Refused);
    }
}
