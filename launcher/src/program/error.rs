//! Why a command cannot be run.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{EndsRun, Outcome};
use crate::program::access::{Obstacle, Quoted};
use crate::program::elf::Malformed;
use crate::program::script::ScriptError;
use crate::sys::plain;

/// A command that cannot be run.
#[derive(Debug, thiserror::Error)]
#[error("cannot run {}: {cause}", Quoted(command))]
pub struct ProgramError {
    /// The command as given, or its file.
    pub(crate) command: OsString,
    pub(crate) cause: ProgramCause,
}

impl ProgramError {
    pub(super) fn new(command: impl Into<OsString>, cause: impl Into<ProgramCause>) -> ProgramError {
        ProgramError { command: command.into(), cause: cause.into() }
    }

    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self.cause, ProgramCause::NotInPath { .. } | ProgramCause::Obstacle(Obstacle::Missing))
    }
}

/// As a shell has it: 127 if the command is not found, else 126. A missing interpreter or loader is 126 as well, since
/// the command was found.
impl EndsRun for ProgramError {
    fn outcome(&self) -> Outcome {
        match &self.cause {
            ProgramCause::Empty | ProgramCause::NulByte | ProgramCause::NotInPath { .. } => Outcome::NotFound,
            ProgramCause::Line(_) | ProgramCause::OfShells(_) | ProgramCause::Assignment(_) => {
                Outcome::NotFound
            }
            ProgramCause::Unit => Outcome::NotFound,
            ProgramCause::Obstacle(obstacle) => obstacle.outcome(),
            _ => Outcome::NotExecutable,
        }
    }
}

/// Why a command cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramCause {
    #[error("the command is empty; name a program after '--'")]
    Empty,
    #[error("the command contains a NUL byte; no file has such a name")]
    NulByte,
    /// `here` is the executable file of that name in the working directory.
    #[error("not found in PATH; {}", elsewhere(here))]
    NotInPath { here: Option<OsString> },
    /// What was meant for a shell.
    #[error("no program has such a name; sbx starts programs, and a shell reads lines: sh -c {}", Quoted(.0))]
    Line(OsString),
    #[error("it is a command of shells, and no program; give a shell the whole line: sh -c '{} ...'", .0.display())]
    OfShells(OsString),
    #[error("a shell would set a variable by it; sbx does so with --env {} before '--'", Quoted(.0))]
    Assignment(OsString),
    #[error(
        "it is a unit, and no program; a unit stands beside its number, as in --timeout 5m or --max-memory 1G"
    )]
    Unit,
    #[error(transparent)]
    Obstacle(#[from] Obstacle),
    /// The kernel refuses to read it, for another reason than its permissions.
    #[error("cannot read it: {}", plain(.0))]
    Unreadable(io::Error),
    #[error("the file is empty; check that it was written completely")]
    EmptyFile,
    #[error(
        "it is neither ELF nor a script with '#!' (formats of binfmt_misc are not looked up); name the program that \
         reads it; a shell script can be run as: sh {}", Quoted::path(.0)
    )]
    UnknownFormat(PathBuf),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The loader that a program asks for cannot be executed.
    #[error("it needs the loader {}: {obstacle}", Quoted::path(loader))]
    Loader { loader: PathBuf, obstacle: Obstacle },
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The interpreter that a script names cannot be executed.
    #[error("its interpreter {}{}", Quoted::path(interpreter), in_the_way(interpreter, obstacle))]
    Interpreter { interpreter: PathBuf, obstacle: Obstacle },
    #[error(
        "its interpreters are scripts themselves, more than 5 deep; name a program in one of the first lines"
    )]
    TooDeep,
}

fn elsewhere(here: &Option<OsString>) -> String {
    match here {
        None => "check the spelling, or give the path of the file".to_string(),
        Some(path) => format!("the file of that name in the working directory is {}", Quoted(path)),
    }
}

fn in_the_way(interpreter: &Path, obstacle: &Obstacle) -> String {
    // The usual reason for an interpreter that seems to be there, and is not found.
    if interpreter.as_os_str().as_bytes().ends_with(b"\r") {
        return " ends in a carriage return; convert the script to UNIX line ends".to_string();
    }
    format!(": {obstacle}")
}
