//! Why a file cannot be what a command runs.

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::sys::plain;

use super::access::{CANNOT_EXECUTE, Obstacle, Quoted};
use super::elf::Malformed;
use super::script::ScriptError;

/// Why a file is no program that could be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExamineError {
    /// The file itself cannot be executed.
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is in the way.
        obstacle: Obstacle,
    },
    /// It cannot be read, for another reason than its permissions.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// It is neither ELF nor a script.
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// There is nothing in it at all.
        empty: bool,
    },
    /// It is ELF, but not one that could be started.
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: Malformed,
    },
    /// The loader that it asks for cannot be executed.
    Loader {
        /// The program.
        path: PathBuf,
        /// The loader that it names.
        interpreter: PathBuf,
        /// What is in the loader's way.
        obstacle: Obstacle,
    },
    /// It is a script without a usable first line.
    Script {
        /// The script.
        path: PathBuf,
        /// What is wrong with the line.
        reason: ScriptError,
    },
    /// The interpreter that a script names cannot be executed.
    Interpreter {
        /// The script.
        path: PathBuf,
        /// The interpreter that it names.
        interpreter: PathBuf,
        /// What is in the interpreter's way.
        obstacle: Obstacle,
    },
    /// Scripts are interpreted by scripts to a depth at which the kernel gives up.
    TooDeep {
        /// The first script.
        path: PathBuf,
    },
}

impl ExamineError {
    /// The exit status that a shell would give: 127 if the file itself is missing, else 126. A missing interpreter
    /// or loader is 126 as well, since the command was found.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Unusable { obstacle, .. } => obstacle.exit_code(),
            _ => CANNOT_EXECUTE,
        }
    }
}

impl fmt::Display for ExamineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unusable { path, .. }
        | Self::Unreadable { path, .. }
        | Self::UnknownFormat { path, .. }
        | Self::Malformed { path, .. }
        | Self::Loader { path, .. }
        | Self::Script { path, .. }
        | Self::Interpreter { path, .. }
        | Self::TooDeep { path }) = self;
        let path = Quoted::path(path);
        write!(f, "cannot run {path}: ")?;
        match self {
            Self::Unusable { obstacle, .. } => write!(f, "{obstacle}"),
            Self::Unreadable { error, .. } => write!(f, "cannot read it: {}", plain(error)),
            Self::UnknownFormat { empty: true, .. } => {
                f.write_str("the file is empty; check that it was written completely")
            }
            Self::UnknownFormat { empty: false, .. } => write!(
                f,
                "it is neither ELF nor a script with '#!' (formats of binfmt_misc are not looked up); name the \
                 program that reads it; a shell script can be run as: sh {path}"
            ),
            Self::Malformed { reason, .. } => write!(f, "{reason}"),
            Self::Loader { interpreter, obstacle, .. } => {
                write!(f, "it needs the loader {}: {obstacle}", Quoted::path(interpreter))
            }
            Self::Script { reason, .. } => write!(f, "{reason}"),
            Self::Interpreter { interpreter, .. } if ends_in_carriage_return(interpreter) => write!(
                f,
                "its interpreter {} ends in a carriage return; convert the script to UNIX line ends",
                Quoted::path(interpreter)
            ),
            Self::Interpreter { interpreter, obstacle, .. } => {
                write!(f, "its interpreter {}: {obstacle}", Quoted::path(interpreter))
            }
            Self::TooDeep { .. } => f.write_str(
                "its interpreters are scripts themselves, more than 5 deep; name a program in one of the first lines",
            ),
        }
    }
}

impl std::error::Error for ExamineError {}

/// The usual reason for an interpreter that is there, to all appearances, and not found.
fn ends_in_carriage_return(interpreter: &Path) -> bool {
    interpreter.as_os_str().as_bytes().ends_with(b"\r")
}
