//! The directory in which everything runs: empty, private, removed afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Result, sys};

/// Removed with all that is in it when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory and enters it, so that a profile's workspace is this directory and nothing bigger.
    pub(crate) fn enter() -> Result<Self> {
        let scratch = Self::new(&place())?;
        enter(scratch.path())?;
        Ok(scratch)
    }

    /// Makes the directory in this one.
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        sys::make_temporary_directory(&parent.join("sbx-bench-XXXXXX")).map(Self)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A copy of this program in here, where every profile lets it be read and executed.
    pub(crate) fn copy_of_self(&self) -> Result<PathBuf> {
        copy_of_self(&self.0)
    }
}

/// Where projects and home directories are, as far as sandboxes care: not below `/tmp`, which several replace, and have to
/// mount a project again that lies there.
pub(crate) fn place() -> PathBuf {
    std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from)
}

/// Makes a directory the one that commands start in.
pub(crate) fn enter(path: &Path) -> Result<()> {
    std::env::set_current_dir(path).map_err(|e| format!("cannot enter '{}': {e}", path.display()))
}

/// A copy of this program in a directory.
pub(crate) fn copy_of_self(directory: &Path) -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(|e| format!("cannot find this program's own file: {e}"))?;
    let copy = directory.join("sbx-bench");
    fs::copy(&own, &copy).map_err(|e| format!("cannot copy '{}': {e}", own.display()))?;
    Ok(copy)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind in the temporary directory at worst; there is nobody to tell who could do more.
        let _ = std::env::set_current_dir("/");
        let _ = fs::remove_dir_all(&self.0);
    }
}
