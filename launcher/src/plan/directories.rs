//! The directories of a run: where it starts, and what the variables of its profile stand for.

use crate::error::Refusal;
use crate::host::Host;
use crate::plan::namespaces::{self, Workspaces};
use crate::profile::Variables;
use crate::request::Request;
use crate::sys::path::{self, Way};
use crate::sys::plain;
use crate::sys::within::is_within;
use crate::text::shown;
use std::path::{Path, PathBuf};

/// What the profile's variables stand for inside: the scratch directory may be at another place there.
pub fn inside_variables<'a>(variables: &Variables<'a>, scratch: Option<&Path>) -> Variables<'a> {
    let tmp = Path::new(namespaces::TMP);
    let moved = |path: &'a Path| match scratch {
        Some(scratch) if path == scratch => tmp,
        Some(scratch) if path.starts_with(scratch) => Path::new(namespaces::CACHE_IN_TMP),
        _ => path,
    };
    Variables { tmp: variables.tmp.map(moved), cache: variables.cache.map(moved), ..*variables }
}

/// The directory in which the command starts, by its real path: inside, a link on the way may lead elsewhere, or not be
/// there. What getcwd(3) says is a real path, and is not looked up again: another run may have renamed the directory,
/// and put a link in its place.
pub fn working_directory(request: &Request, host: &Host) -> Result<PathBuf, Refusal> {
    let named = request.cwd.as_deref().or(request.workspace.as_deref());
    let given = named.map_or_else(|| host.directory(), Ok)?;
    let directory = match named {
        Some(named) => real_directory(&absolute(named, host)?, host),
        None => existing(given.to_path_buf()),
    };
    directory.map_err(|why| Refusal::new(format!("cannot enter '{}': {why}", shown(given))))
}

/// A path from where `sbx` was started.
pub fn absolute(path: &Path, host: &Host) -> Result<PathBuf, Refusal> {
    Ok(if path.is_absolute() { path.to_path_buf() } else { host.directory()?.join(path) })
}

/// The real place of a directory that the user names; an error in words where it is none, or where a link that a
/// command of another run may have left leads there.
pub fn real_directory(named: &Path, host: &Host) -> Result<PathBuf, String> {
    let Way { real, links, .. } = path::way(named);
    match Workspaces::of(host).lead_out(&links, &real) {
        true => Err(format!(
            "it leads out of a directory where commands of runs write, to '{}'; name that path itself if it is meant",
            shown(&real)
        )),
        false => existing(real),
    }
}

fn existing(directory: PathBuf) -> Result<PathBuf, String> {
    match directory.metadata() {
        Ok(meta) if meta.is_dir() => Ok(directory),
        Ok(_) => Err("it is not a directory".to_string()),
        Err(error) => Err(plain(&error)),
    }
}

/// Refuses a working directory to which a link in the workspace leads out of it: an earlier command may have put that
/// there. `directory` is what was found.
pub fn stays_inside(
    request: &Request,
    host: &Host,
    workspace: Option<&Path>,
    directory: &Path,
) -> Result<(), Refusal> {
    let Some((given, workspace)) = request.cwd.as_deref().zip(workspace) else { return Ok(()) };
    if is_within(directory, workspace) {
        return Ok(());
    }
    let way = path::way(&absolute(given, host)?);
    // A concurrent command may change the link meanwhile.
    if way.real == directory && !way.leads_out_of(workspace) {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "cannot enter '{}': it leads out of the workspace, to '{}'; name that path itself if it is meant",
        shown(given),
        shown(directory)
    )))
}
