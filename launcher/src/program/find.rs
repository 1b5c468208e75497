//! Finds the file that a command names, as `execvp` would.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::access::{self, CANNOT_EXECUTE, NOT_FOUND, Obstacle, Quoted};

/// Searched when there is no `PATH` at all. The current directory is left out: nobody asked for it.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Why no file was found for a command.
#[derive(Debug)]
#[non_exhaustive]
pub enum FindError {
    /// The command is the empty string.
    Empty,
    /// The command contains a NUL byte, which no file name can.
    NulByte {
        /// The command as given.
        command: OsString,
    },
    /// No directory of `PATH` has it.
    NotInPath {
        /// The command as given.
        command: OsString,
        /// Whether the working directory has an executable file of that name.
        here: bool,
    },
    /// The file is there, or its path was given, but it cannot be executed.
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is in the way.
        obstacle: Obstacle,
    },
}

impl FindError {
    /// The exit status that a shell would give: 127 not found, 126 found but not executable.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Empty | Self::NulByte { .. } | Self::NotInPath { .. } => NOT_FOUND,
            Self::Unusable { obstacle, .. } => obstacle.exit_code(),
        }
    }
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("cannot run '': the command is empty; name a program after '--'"),
            Self::NulByte { command } => write!(
                f,
                "cannot run {}: the command contains a NUL byte; no file has such a name",
                Quoted(command)
            ),
            Self::NotInPath { command, here } => {
                write!(f, "cannot run {}: not found in PATH; ", Quoted(command))?;
                if !here {
                    return f.write_str("check the spelling, or give the path of the file");
                }
                let mut path = OsString::from("./");
                path.push(command);
                write!(f, "the file of that name in the working directory is {}", Quoted(&path))
            }
            Self::Unusable { path, obstacle } => write!(f, "cannot run {}: {obstacle}", Quoted::path(path)),
        }
    }
}

impl std::error::Error for FindError {}

/// Finds the file of `command` for a process whose working directory is `cwd` and whose `PATH` is `path_var`.
///
/// A command with a `/` is a path, relative to `cwd`. Any other is looked up in each directory of `PATH`, where
/// an empty entry stands for `cwd`; what cannot be executed is passed over, and named if nothing better turns up.
/// The answer is absolute when `cwd` is, but symbolic links in it are kept: many programs look at the name they
/// were started by.
pub fn find(command: &OsStr, path_var: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, FindError> {
    let bytes = command.as_bytes();
    if bytes.is_empty() {
        return Err(FindError::Empty);
    }
    if bytes.contains(&0) {
        return Err(FindError::NulByte { command: command.to_owned() });
    }
    if bytes.contains(&b'/') {
        let path = cwd.join(command);
        return match access::executable(&path) {
            Ok(_) => Ok(path),
            Err(obstacle) => Err(FindError::Unusable { obstacle: obstacle.look_for_link(&path), path }),
        };
    }
    search(command, path_var.unwrap_or(OsStr::new(DEFAULT_PATH)), cwd)
}

/// Looks for `command` in every entry of `path_var`.
fn search(command: &OsStr, path_var: &OsStr, cwd: &Path) -> Result<PathBuf, FindError> {
    let mut passed_over = None;
    for entry in path_var.as_bytes().split(|&byte| byte == b':') {
        let path = candidate(OsStr::from_bytes(entry), command, cwd);
        match access::executable(&path) {
            Ok(_) => return Ok(path),
            Err(obstacle) if obstacle.exit_code() == CANNOT_EXECUTE => {
                passed_over.get_or_insert(FindError::Unusable { path, obstacle });
            }
            Err(_) => {}
        }
    }
    Err(passed_over.unwrap_or_else(|| FindError::NotInPath {
        command: command.to_owned(),
        here: access::executable(&cwd.join(command)).is_ok(),
    }))
}

/// The file that `entry` of PATH stands for. An empty entry must not become `cwd/` + `/` + command.
fn candidate(entry: &OsStr, command: &OsStr, cwd: &Path) -> PathBuf {
    if entry.is_empty() { cwd.join(command) } else { cwd.join(entry).join(command) }
}
