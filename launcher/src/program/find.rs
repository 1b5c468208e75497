//! Finds the file that a command names, as `execvp` would.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Outcome;
use crate::profile::shells;
use crate::program::access;
use crate::program::error::{ProgramCause, ProgramError};

/// Searched if there is no `PATH` at all. The current directory is left out: nobody asked for it.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Finds the file of `command` for a process whose working directory is `cwd` and whose `PATH` is `path_var`.
///
/// A command with a `/` is a path, relative to `cwd`. Any other is looked up in each directory of `PATH`,
/// where an empty entry means `cwd`. A file that cannot be executed is passed over, and named in the error if
/// no other is found. The answer is absolute if `cwd` is, but symbolic links in it are kept: many programs
/// look at the name that started them.
pub fn find(command: &OsStr, path_var: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, ProgramError> {
    let bytes = command.as_bytes();
    if bytes.is_empty() {
        return Err(ProgramError::new(command, ProgramCause::Empty));
    }
    if bytes.contains(&0) {
        return Err(ProgramError::new(command, ProgramCause::NulByte));
    }
    if bytes.contains(&b'/') {
        let path = cwd.join(command);
        let found = access::executable(&path).map_err(|obstacle| obstacle.look_for_link(&path));
        found.map_err(|obstacle| ProgramError::new(&path, obstacle))?;
        return Ok(path);
    }
    search(command, path_var.unwrap_or(OsStr::new(DEFAULT_PATH)), cwd)
}

/// Looks for `command` in every entry of `path_var`.
fn search(command: &OsStr, path_var: &OsStr, cwd: &Path) -> Result<PathBuf, ProgramError> {
    // In each directory of PATH it would be that.
    if command == "." {
        return Err(ProgramError::new(command, ProgramCause::OfShells(command.to_os_string())));
    }
    let mut passed_over = None;
    for entry in path_var.as_bytes().split(|&byte| byte == b':') {
        let path = candidate(OsStr::from_bytes(entry), command, cwd);
        match access::executable(&path) {
            Ok(_) => return Ok(path),
            Err(obstacle) if obstacle.outcome() == Outcome::NotExecutable => {
                passed_over.get_or_insert_with(|| ProgramError::new(path, obstacle));
            }
            Err(_) => {}
        }
    }
    Err(passed_over.unwrap_or_else(|| {
        let here = access::executable(&cwd.join(command)).is_ok();
        let here = here.then(|| OsString::from_iter([OsStr::new("./"), command]));
        let cause = match here {
            None if is_line(command) => ProgramCause::Line(command.to_os_string()),
            None if is_of_shells(command) => ProgramCause::OfShells(command.to_os_string()),
            None if assigns(command) => ProgramCause::Assignment(command.to_os_string()),
            None if is_unit(command) => ProgramCause::Unit,
            here => ProgramCause::NotInPath { here },
        };
        ProgramError::new(command, cause)
    }))
}

/// Whether a name is a unit of time or size: what follows a number that a flag has taken.
fn is_unit(command: &OsStr) -> bool {
    const UNITS: [&str; 9] = ["ms", "sec", "min", "kb", "kib", "mb", "mib", "gb", "gib"];
    command.to_str().is_some_and(|name| UNITS.contains(&&*name.to_ascii_lowercase()))
}

/// Whether a name is rather several words, or has what only a shell understands.
fn is_line(command: &OsStr) -> bool {
    command.as_bytes().iter().any(|byte| b" |&;<>()$`*".contains(byte))
}

/// Whether only shells have such a command.
fn is_of_shells(command: &OsStr) -> bool {
    command.to_str().is_some_and(shells::is_of_shells_alone)
}

/// Whether a shell would set a variable by it.
fn assigns(command: &OsStr) -> bool {
    let name = command.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_set = command.as_bytes().get(name.len()) == Some(&b'=');
    is_set && !name.is_empty() && !name[0].is_ascii_digit() && name.iter().all(is_name)
}

/// The file that `entry` of PATH stands for. An empty entry must not become `cwd/` + `/` + command.
fn candidate(entry: &OsStr, command: &OsStr, cwd: &Path) -> PathBuf {
    if entry.is_empty() { cwd.join(command) } else { cwd.join(entry).join(command) }
}
