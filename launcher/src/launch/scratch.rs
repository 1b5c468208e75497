//! The private directories of a run: scratch, removed afterwards, and tool caches, which last.
//!
//! A scratch directory is called `sbx-`, then 16 hexadecimal digits, so that people can tell what it is. The
//! supervisor removes it when the command has ended; where the supervisor was killed, the reaper does, once
//! nothing of the command is left. Only when both are killed at once, or the run has no reaper because its
//! profile starts no processes, a killed supervisor leaves one behind. Nothing looks for those at a start,
//! for that would cost every run, and a directory of a living run looks the same.

use crate::launch::landlock::plain;
use crate::refusal::Refusal;
use crate::supervise::decode::escape;
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
        let failed = |cause: &str, way: &str| {
            let base = escape(base.as_os_str().as_bytes(), 400);
            Refusal::new(format!("cannot make a scratch directory in '{base}': {cause}{way}"))
        };
        const ELSEWHERE: &str = "; set TMPDIR to a directory that you can write";
        for _ in 0..8 {
            let random = memory::random().map_err(|e| failed(&e.to_string(), ""))?;
            let path = base.join(format!("sbx-{random:016x}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // Permissions and Landlock give EACCES, filters EPERM.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && is_filtered() => {
                    return Err(failed("a sandbox around this one refuses it", ""));
                }
                Err(error) => return Err(failed(&plain(&error), ELSEWHERE)),
            }
        }
        Err(failed("every name that was tried exists", ELSEWHERE))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it there: somebody still uses it.
    pub fn keep(self) -> PathBuf {
        let kept = std::mem::ManuallyDrop::new(self);
        kept.path.clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Whether this process is under a filter already.
fn is_filtered() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nSeccomp:\t2"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_scratch_directory_is_private_recognisable_and_goes() {
        let scratch = Scratch::create(None).unwrap();
        let path = scratch.path().to_path_buf();
        let name = path.file_name().unwrap().to_str().unwrap();
        let digits = name.strip_prefix("sbx-").unwrap();
        assert!(digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
        fs::create_dir_all(path.join("closed/deep")).unwrap();
        fs::set_permissions(path.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_directory_is_passed_over() {
        let scratch = Scratch::create(Some(OsStr::new("relative"))).unwrap();
        assert!(scratch.path().starts_with("/tmp"));
        assert!(Scratch::create(Some(OsStr::new("/no/such"))).unwrap().path().starts_with("/tmp"));
    }

    #[test]
    fn a_place_without_room_for_one_is_named() {
        let Err(refusal) = Scratch::create(Some(OsStr::new("/proc/self"))) else { panic!() };
        let said = refusal.to_string();
        assert!(said.starts_with("cannot make a scratch directory in '/proc/self': "), "{said}");
    }

    #[test]
    fn names_in_errors_keep_their_letters() {
        let error = cache(None, None, Path::new("/")).unwrap_err();
        assert_eq!(plain(&error), "neither XDG_CACHE_HOME nor HOME is set");
        assert_eq!(plain(&io::Error::from_raw_os_error(libc::ENOENT)), "no such file or directory");
    }
}
