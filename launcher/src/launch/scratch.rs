//! The private directories of a run: scratch, removed afterwards, and tool caches, which last.

use crate::launch::landlock::plain;
use crate::refusal::Refusal;
use crate::sys::memory;
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory that only this user can enter, and that goes with the run.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one below the user's TMPDIR, or /tmp.
    pub fn create(tmpdir: Option<&OsStr>) -> Result<Scratch, Refusal> {
        let base = tmpdir
            .map(Path::new)
            .filter(|path| path.is_absolute() && path.is_dir())
            .unwrap_or(Path::new("/tmp"));
        let failed = |cause: String| {
            Refusal::new(format!(
                "cannot make a scratch directory in '{}': {cause}; set TMPDIR to a directory that you can write",
                base.display()
            ))
        };
        for _ in 0..8 {
            let random = memory::random().map_err(|e| failed(e.to_string()))?;
            let path = base.join(format!("sbx-{random:016x}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(plain(&error))),
            }
        }
        Err(failed("every name that was tried exists".to_string()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a scratch directory with whatever the command left in it, directories without permissions too.
pub fn remove(path: &Path) {
    if std::fs::remove_dir_all(path).is_err() {
        open_up(path, 0);
        // What still can't be removed is not ours to remove: the command cannot have made it.
        let _ = std::fs::remove_dir_all(path);
    }
}

/// Gives the user entry to directories from which the command took it.
fn open_up(path: &Path, depth: usize) {
    use std::os::unix::fs::PermissionsExt;
    const DEEPEST: usize = 256;
    if depth > DEEPEST || !path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return;
    }
    let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700));
    for entry in path.read_dir().into_iter().flatten().flatten() {
        open_up(&entry.path(), depth + 1);
    }
}

/// The directory for tool caches of one workspace: nothing outside the sandbox reads it, and no other
/// workspace's commands write it.
pub fn cache(cache_home: Option<&OsStr>, home: Option<&OsStr>, workspace: &Path) -> io::Result<PathBuf> {
    let absolute = |value: Option<&OsStr>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute(cache_home).or_else(|| absolute(home).map(|home| home.join(".cache")));
    let base = base
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "neither XDG_CACHE_HOME nor HOME is set"))?;
    let path = base.join("sbx").join(format!("{:016x}", fingerprint(workspace.as_os_str().as_bytes())));
    DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
    Ok(path)
}

/// FNV-1a, 64 bits: names a directory, decides nothing.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
