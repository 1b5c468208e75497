//! The directories of a run: where it starts, and what the variables of its profile stand for.

use crate::cli::Run;
use crate::launch::namespaces;
use crate::launch::scratch::{self, Scratch};
use crate::launch::workspace::{self, Working};
use crate::profile::{Profile, Variable, Variables};
use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use crate::sys::plain;
use std::path::{Path, PathBuf};

/// What the variables stand for.
pub struct Places {
    /// The workspace.
    pub workspace: Option<PathBuf>,
    /// The scratch directory.
    pub scratch: Option<Scratch>,
    cache: Option<PathBuf>,
    /// The caller's home directory.
    pub home: Option<PathBuf>,
}

impl Places {
    /// Finds them, and makes those that are the run's own, if that is `wanted`.
    pub fn find(
        flags: &Run,
        profile: &Profile,
        directory: &Path,
        wanted: bool,
        remarks: &mut Vec<String>,
    ) -> Result<Places, Refusal> {
        let working = Working { directory, is_own: flags.cwd.is_none() };
        let workspace = workspace::find(flags.workspace.as_deref(), working, remarks)?;
        let wants = |variable| wanted && profile.uses(variable);
        let scratch = if wants(Variable::Tmp) && !flags.exec {
            Some(Scratch::create(std::env::var_os("TMPDIR").as_deref())?)
        } else {
            None
        };
        let cache = if wants(Variable::Cache) {
            cache(workspace.as_deref(), scratch.as_ref(), remarks)
        } else {
            None
        };
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        Ok(Places { workspace, scratch, cache, home })
    }

    /// The variables.
    pub fn variables(&self) -> Variables<'_> {
        Variables {
            workspace: self.workspace.as_deref(),
            home: self.home.as_deref(),
            tmp: self.scratch.as_ref().map(Scratch::path),
            cache: self.cache.as_deref(),
        }
    }
}

/// The tool caches; where they cannot be made they are part of the scratch directory, and do not last.
fn cache(workspace: Option<&Path>, scratch: Option<&Scratch>, remarks: &mut Vec<String>) -> Option<PathBuf> {
    let (cache_home, home) = (std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"));
    let lasting =
        workspace.map(|workspace| scratch::cache(cache_home.as_deref(), home.as_deref(), workspace));
    match lasting {
        Some(Ok(path)) => return Some(path),
        Some(Err(error)) => {
            remarks.push(format!("tool caches do not last beyond this run: {}", plain(&error)));
        }
        None => {}
    }
    scratch
        .map(|scratch| scratch.path().join(scratch::CACHE))
        .filter(|path| std::fs::create_dir(path).is_ok())
}

/// What the profile's variables stand for inside: the scratch directory may be in another place there.
pub fn inside_variables<'a>(variables: &Variables<'a>, scratch: Option<&Path>) -> Variables<'a> {
    let tmp = Path::new(namespaces::TMP);
    let moved = |path: &'a Path| match scratch {
        Some(scratch) if path == scratch => tmp,
        Some(scratch) if path.starts_with(scratch) => Path::new(namespaces::CACHE_IN_TMP),
        _ => path,
    };
    Variables { tmp: variables.tmp.map(moved), cache: variables.cache.map(moved), ..*variables }
}

/// Where the command starts.
pub fn working_directory(flags: &Run) -> Result<PathBuf, Refusal> {
    let start = flags.cwd.as_deref().or(flags.workspace.as_deref());
    let here = || {
        std::env::current_dir().map_err(|e| {
            Refusal::new(format!("cannot find the working directory: {}; name one with --cwd", plain(&e)))
        })
    };
    let directory = match start {
        Some(path) if path.is_absolute() => path.to_path_buf(),
        Some(path) => here()?.join(path),
        None => here()?,
    };
    match directory.metadata() {
        Ok(meta) if meta.is_dir() => Ok(directory),
        Ok(_) => Err(Refusal::new(format!("cannot enter '{}': it is not a directory", shown(&directory)))),
        Err(error) => Err(Refusal::new(format!("cannot enter '{}': {}", shown(&directory), plain(&error)))),
    }
}
