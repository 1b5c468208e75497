//! The directories of a run: where it starts, and what the variables of its profile stand for.

use crate::error::Refusal;
use crate::host::Host;
use crate::plan::namespaces;
use crate::profile::Variables;
use crate::request::Request;
use crate::sys::plain;
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

/// The directory in which the command starts.
pub fn working_directory(request: &Request, host: &Host) -> Result<PathBuf, Refusal> {
    let directory = match request.cwd.as_deref().or(request.workspace.as_deref()) {
        Some(path) if path.is_absolute() => path.to_path_buf(),
        Some(path) => host.directory()?.join(path),
        None => host.directory()?.to_path_buf(),
    };
    match directory.metadata() {
        Ok(meta) if meta.is_dir() => Ok(directory),
        Ok(_) => Err(Refusal::new(format!("cannot enter '{}': it is not a directory", shown(&directory)))),
        Err(error) => Err(Refusal::new(format!("cannot enter '{}': {}", shown(&directory), plain(&error)))),
    }
}
