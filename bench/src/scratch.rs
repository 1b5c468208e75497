//! The directory in which everything runs: empty, private, removed afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Result, sys};

/// Removed with all that is in it when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory and enters it, so that a profile's workspace is this directory and nothing bigger.
    pub(crate) fn enter() -> Result<Self> {
        let path = sys::make_temporary_directory(&std::env::temp_dir().join("sbx-bench-XXXXXX"))?;
        std::env::set_current_dir(&path).map_err(|e| format!("cannot enter '{}': {e}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A copy of this program in here, where every profile lets it be read and executed.
    pub(crate) fn copy_of_self(&self) -> Result<PathBuf> {
        let own = std::env::current_exe().map_err(|e| format!("cannot find this program's own file: {e}"))?;
        let copy = self.0.join("sbx-bench");
        fs::copy(&own, &copy).map_err(|e| format!("cannot copy '{}': {e}", own.display()))?;
        Ok(copy)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind in the temporary directory at worst; there is nobody to tell who could do more.
        let _ = std::env::set_current_dir("/");
        let _ = fs::remove_dir_all(&self.0);
    }
}
