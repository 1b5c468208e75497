//! The directories of a run: where it starts, and what the variables of its profile stand for.

use crate::error::Refusal;
use crate::host::Host;
use crate::plan::namespaces::{self, Workspaces};
use crate::profile::Variables;
use crate::request::Request;
use crate::sys::within::is_within;
use crate::sys::{path, plain};
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
    let named = match request.cwd.as_deref().or(request.workspace.as_deref()) {
        Some(path) => Some(absolute(path, host)?),
        None => None,
    };
    let given = named.as_deref().map_or_else(|| host.directory(), Ok)?;
    let words = request.cwd.as_deref().or(request.workspace.as_deref()).unwrap_or(given);
    let cannot = |why: &str| Refusal::new(format!("cannot enter '{}': {why}", shown(words)));
    let directory = match &named {
        None => given.to_path_buf(),
        Some(named) => real_place(named, host).map_err(|to| {
            let place = "a directory where commands of runs write";
            cannot(&format!(
                "it leads out of {place}, to '{}'; name that path itself if it is meant",
                shown(&to)
            ))
        })?,
    };
    match directory.metadata() {
        Ok(meta) if meta.is_dir() => Ok(directory),
        Ok(_) => Err(cannot("it is not a directory")),
        Err(error) => Err(cannot(&plain(&error))),
    }
}

/// A path from where `sbx` was started.
pub fn absolute(path: &Path, host: &Host) -> Result<PathBuf, Refusal> {
    Ok(if path.is_absolute() { path.to_path_buf() } else { host.directory()?.join(path) })
}

/// The real place of a directory that the user names; an error with where it leads if a link in another run's workspace
/// leads it out of that.
pub fn real_place(named: &Path, host: &Host) -> Result<PathBuf, PathBuf> {
    let way = path::way(named);
    if Workspaces::of(host).lead_out(&way.links, &way.real) { Err(way.real) } else { Ok(way.real) }
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
