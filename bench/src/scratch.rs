//! The directory in which everything runs: empty, private, removed afterwards.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::Result;

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
        let mut number = 0;
        loop {
            let path = parent.join(format!("sbx-bench-{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(format!("cannot make a directory '{}': {e}", path.display())),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A copy of this program in here, where every profile allows it to be read and executed.
    pub(crate) fn copy_of_self(&self) -> Result<PathBuf> {
        copy_of_self(&self.0)
    }
}

/// Where projects and home directories are, as far as sandboxes care: not below `/tmp`, which several replace, and have
/// to mount a project again that lies there.
pub(crate) fn place() -> PathBuf {
    std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from)
}

/// Makes a directory the working directory, in which commands start.
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
        // If this fails, it is left in the temporary directory; there is nobody to report it to.
        let _ = std::env::set_current_dir("/");
        let _ = fs::remove_dir_all(&self.0);
    }
}
