//! The directories of a run: where it starts, and what the variables of its profile stand for.

use crate::error::Refusal;
use crate::host::Host;
use crate::plan::namespaces;
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
        Some(path) if path.is_absolute() => Some(path.to_path_buf()),
        Some(path) => Some(host.directory()?.join(path)),
        None => None,
    };
    let given = named.as_deref().map_or_else(|| host.directory(), Ok)?;
    let cannot = |why: &str| Refusal::new(format!("cannot enter '{}': {why}", shown(given)));
    let real = named.as_deref().map_or_else(|| Ok(given.to_path_buf()), path::real);
    let directory = real.map_err(|error| cannot(&plain(&error)))?;
    match directory.metadata() {
        Ok(meta) if meta.is_dir() => Ok(directory),
        Ok(_) => Err(cannot("it is not a directory")),
        Err(error) => Err(cannot(&plain(&error))),
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
    let way =
        path::way(&if given.is_absolute() { given.to_path_buf() } else { host.directory()?.join(given) });
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
