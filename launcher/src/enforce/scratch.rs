//! The private directories of a run: scratch, removed afterwards, and tool caches, which last.
//!
//! A scratch directory is called `sbx-`, then 16 hexadecimal digits, so that people recognise it. The
//! supervisor removes it when the command has ended. If the supervisor was killed, the reaper removes it
//! when no process of the run is left. Only if both are killed at once, or the run has no reaper because
//! its profile starts no processes, it stays behind. A later run removes it: every run holds a lock on its
//! own directory (flock(2)), so one without a lock belongs to no run. Runs that end within a second do not
//! look for any, since that would take too long for them.

use crate::digest;
use crate::enforce::EnforceError;
use crate::enforce::error::Named;
use crate::enforce::removal;
use crate::plan::home;
use crate::plan::state;
use crate::sys::listing::is_empty_directory;
use crate::sys::{memory, path, probe, process};
use crate::text::escape;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// A run that lasts longer removes what others left behind.
const LONG: Duration = Duration::from_secs(1);
/// A younger directory may not be locked yet.
const SETTLED: Duration = Duration::from_secs(60);
/// Maximum number of names that one run looks at, and of directories that it removes.
const MOST_LOOKED_AT: usize = 10_000;
const MOST_REMOVED: usize = 8;

/// Where temporary files are outside.
const TMP_OUTSIDE: &str = "/tmp";

/// The part of a scratch directory that takes the place of /tmp, where a home is beside it.
pub const TMP: &str = "tmp";

/// The directory of tool caches that do not last.
pub const CACHE: &str = "cache";

/// The mode bit (S_ISVTX) of a directory that is kept on purpose. It has no other effect: only the user can
/// enter.
const KEPT: u32 = 0o1000;

/// A directory that only this user can enter, and that is removed with the run.
pub struct Scratch {
    path: PathBuf,
    /// Held as long as the run lives; the kernel releases it when the supervisor is killed. On a file
    /// system without locks, no directory counts as left behind.
    _lock: Option<File>,
    since: Instant,
    /// Where it is left for the next run: its last change as it was at the start.
    unchanged: Option<SystemTime>,
}

impl Scratch {
    /// Makes one below the user's TMPDIR, or /tmp.
    pub fn create(tmpdir: Option<&OsStr>) -> Result<Scratch, EnforceError> {
        const MAKE: &str = "make a scratch directory in '{}'";
        let base = tmpdir
            .map(Path::new)
            .filter(|path| path.is_absolute() && path.is_dir())
            .unwrap_or(Path::new(TMP_OUTSIDE));
        // The names that lead there are not looked up again: they may be in another run's workspace.
        let real = path::real(base).step_at(MAKE, base).map_err(EnforceError::advising_tmpdir)?;
        for _ in 0..8 {
            let path = real.join(memory::random_name("sbx-").step_at(MAKE, base)?);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let mut scratch = Scratch { path, _lock: None, since: Instant::now(), unchanged: None };
                    scratch._lock = lock(&scratch.path).step_at(MAKE, base)?;
                    return Ok(scratch);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // Permissions and Landlock give EACCES, filters EPERM.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && is_filtered() => {
                    return Err(EnforceError::at(MAKE, base, "a sandbox around this one refuses it"));
                }
                Err(error) => return Err(EnforceError::at(MAKE, base, error).advising_tmpdir()),
            }
        }
        Err(EnforceError::at(MAKE, base, "every name that was tried exists").advising_tmpdir())
    }

    /// One that takes the place of /tmp and is left for the next run, if nothing in it or about it has changed: to make
    /// and to remove a directory are the longest calls of a short run. It is in a directory that only this run uses as
    /// long as it has the `lock`, on the same file system as /tmp; else there is none.
    pub fn again(held: &Path, lock: &File) -> Option<Scratch> {
        let lock = Some(lock.try_clone().ok()?);
        let device = |path: &Path| path.symlink_metadata().ok().map(|meta| meta.dev());
        if device(held)? != device(Path::new(TMP_OUTSIDE))? {
            return None;
        }
        let path = held.join(TMP);
        let mut unchanged = changed(&path).filter(|_| is_empty_directory(&path));
        if unchanged.is_none() {
            // What a run has left that was killed.
            remove(&path);
            DirBuilder::new().mode(0o700).create(&path).ok()?;
            unchanged = Some(changed(&path)?);
        }
        Some(Scratch { path, _lock: lock, since: Instant::now(), unchanged })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it there, because processes still use it.
    pub fn keep(self) -> PathBuf {
        let kept = std::mem::ManuallyDrop::new(self);
        // Our lock ends with us, so its mode says that it is kept.
        let _ = std::fs::set_permissions(&kept.path, Permissions::from_mode(0o700 | KEPT));
        kept.path.clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.since.elapsed() > LONG {
            let others = self.unchanged.map(|_| Path::new(TMP_OUTSIDE));
            sweep(&self.path, others.or_else(|| self.path.parent()));
        }
        let is_clean = self.unchanged.is_some()
            && self.unchanged == changed(&self.path)
            && is_empty_directory(&self.path);
        if !is_clean {
            remove(&self.path);
        }
    }
}

/// When a directory of the user's alone changed last, or its mode, or what is said about it; `None` if it is no such.
fn changed(path: &Path) -> Option<SystemTime> {
    const PERMISSIONS: u32 = 0o7777;
    let meta = path.symlink_metadata().ok()?;
    let is_own = meta.is_dir() && meta.uid() == process::user() && meta.mode() & PERMISSIONS == 0o700;
    let nanoseconds = u32::try_from(meta.ctime_nsec()).ok()?;
    let since = Duration::new(u64::try_from(meta.ctime()).ok()?, nanoseconds);
    SystemTime::UNIX_EPOCH.checked_add(since).filter(|_| is_own)
}

/// A lock on a new directory; `None` on a file system without locks. Any other failure is an error: others
/// would take the directory for left behind.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let directory = match open_directory(path) {
        // The umask may have taken from the owner too.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
            open_directory(path)
        }
        opened => opened,
    }?;
    match directory.try_lock_shared() {
        Ok(()) => Ok(Some(directory)),
        Err(TryLockError::Error(error)) if !has_no_locks(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether the file system has no locks, or a filter around us refuses them.
fn has_no_locks(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::ENOLCK | libc::EPERM)
    )
}

/// Whether this process is under a filter already.
fn is_filtered() -> bool {
    probe::confinement().0 == Some(libc::SECCOMP_MODE_FILTER as i32)
}

/// Removes a scratch directory with whatever the command left in it.
pub fn remove(path: &Path) {
    if removal::remove(path).is_err() {
        // Without descriptors to spare, or without /proc, it cannot be looked into. A run that was refused
        // for that has made no more than this. Nothing else is removed: the command cannot have made it.
        for own in [CACHE, TMP, home::HOME] {
            let _ = std::fs::remove_dir(path.join(own));
        }
        let _ = std::fs::remove_dir(path);
    }
}

/// Removes what killed supervisors of this user have left behind beside `own`.
fn sweep(own: &Path, base: Option<&Path>) {
    let entries = base.and_then(|base| base.read_dir().ok());
    let names = entries.into_iter().flatten().take(MOST_LOOKED_AT).flatten();
    let stale = names.filter(|entry| is_ours(&entry.file_name())).map(|entry| entry.path());
    for path in stale.filter(|path| path != own && is_stale(path)).take(MOST_REMOVED) {
        remove(&path);
    }
}

/// `sbx-` and 16 hexadecimal digits.
pub fn is_ours(name: &OsStr) -> bool {
    let digits = name.as_bytes().strip_prefix(b"sbx-").unwrap_or_default();
    digest::is_hex(digits, 16)
}

/// A directory of this user, not new, not kept, that no living run has locked.
fn is_stale(path: &Path) -> bool {
    let Ok(directory) = open_directory(path) else { return false };
    let Ok(meta) = directory.metadata() else { return false };
    let age = meta.modified().ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
    meta.uid() == process::user() && meta.mode() & KEPT == 0 && age > SETTLED && directory.try_lock().is_ok()
}

/// Opens a directory that is no link.
pub fn open_directory(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(path)
}

/// The directory for tool caches of one workspace and profile: no program outside the sandbox reads it, and no
/// command of another workspace or profile writes it. Returns its real path: below the user's own directory no
/// link is followed.
pub fn cache(
    cache_home: Option<&OsStr>,
    home: Option<&OsStr>,
    workspace: &Path,
    profile: &OsStr,
) -> io::Result<PathBuf> {
    let absolute = |value: Option<&OsStr>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let base = match (absolute(cache_home), absolute(home)) {
        (Some(cache_home), _) => cache_home,
        (None, Some(home)) if state::is_users(&home) => home.join(".cache"),
        (None, Some(home)) => {
            let home = escape(home.as_os_str().as_bytes(), 400);
            return Err(io::Error::other(format!("'{home}' is not a directory of this user's")));
        }
        (None, None) => {
            let why = "neither XDG_CACHE_HOME nor HOME is an absolute path";
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
    };
    own_directory(&base, &Path::new("sbx").join(cache_name(workspace, profile)))
}

/// A directory of the user's alone below one of the user's own. Returns its real path: below that one no link is
/// followed.
pub fn own_directory(base: &Path, own: &Path) -> io::Result<PathBuf> {
    let path = base.join(own);
    DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
    let found = path::real(&path)?;
    if found != path && found != path::real(base)?.join(own) {
        let path = escape(path.as_os_str().as_bytes(), 400);
        return Err(io::Error::other(format!("'{path}' is reached over a symbolic link")));
    }
    // A command may have changed its mode, which would close it to all later ones.
    if found.metadata()?.mode() & 0o700 != 0o700 {
        std::fs::set_permissions(&found, Permissions::from_mode(0o700))?;
    }
    Ok(found)
}

/// Nobody can find a second path for it, so the name of a workspace's directory cannot be chosen to get the caches of
/// another one.
fn cache_name(workspace: &Path, profile: &OsStr) -> String {
    digest::short(&[workspace.as_os_str().as_bytes(), profile.as_bytes()].join(&0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_scratch_directory_is_private_recognisable_and_goes() {
        let scratch = Scratch::create(None).unwrap();
        let path = scratch.path().to_path_buf();
        let name = path.file_name().unwrap().to_str().unwrap();
        let digits = name.strip_prefix("sbx-").unwrap();
        assert!(digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
        fs::create_dir_all(path.join("closed/deep")).unwrap();
        fs::set_permissions(path.join("closed"), Permissions::from_mode(0o000)).unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    /// Below a directory of its own, as old as a test says.
    fn aged(base: &Path, name: &str, seconds: u64) -> PathBuf {
        let path = base.join(name);
        fs::create_dir_all(path.join("inner")).unwrap();
        let then = SystemTime::now() - Duration::from_secs(seconds);
        File::open(&path).unwrap().set_modified(then).unwrap();
        path
    }

    #[test]
    fn one_that_nothing_was_done_to_serves_again() {
        let base = Scratch::create(None).unwrap();
        let lock = open_directory(base.path()).unwrap();
        let number = |scratch: &Scratch| scratch.path().metadata().unwrap().ino();
        let Some(scratch) = Scratch::again(base.path(), &lock) else { return };
        // The clock that files go by has moved on when the next one begins.
        std::thread::sleep(Duration::from_millis(20));
        let (path, first) = (scratch.path().to_path_buf(), number(&scratch));
        drop(scratch);
        let again = || Scratch::again(base.path(), &lock).unwrap();
        let scratch = again();
        assert_eq!(number(&scratch), first);
        drop(scratch);
        let changes: [&dyn Fn(&Path); 4] = [
            &|path| fs::write(path.join("left"), "").unwrap(),
            &|path| {
                fs::write(path.join("gone"), "").and_then(|()| fs::remove_file(path.join("gone"))).unwrap()
            },
            &|path| fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap(),
            &|path| fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap(),
        ];
        for change in changes {
            let scratch = again();
            change(scratch.path());
            drop(scratch);
            assert!(!path.exists());
        }
        // What a killed run left.
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        fs::create_dir_all(path.join("a/b")).unwrap();
        assert!(is_empty_directory(again().path()));
    }

    #[test]
    fn what_killed_runs_left_behind_goes_and_nothing_else() {
        let base = Scratch::create(None).unwrap();
        let own = Scratch::create(Some(base.path().as_os_str())).unwrap();
        let stale = aged(base.path(), "sbx-00112233445566aa", 3600);
        let new = aged(base.path(), "sbx-00112233445566bb", 1);
        let living = aged(base.path(), "sbx-00112233445566cc", 3600);
        let lock = open_directory(&living).unwrap();
        lock.try_lock_shared().unwrap();
        let kept = aged(base.path(), "sbx-00112233445566ee", 3600);
        Scratch { path: kept.clone(), _lock: None, since: Instant::now(), unchanged: None }.keep();
        let others = ["sbx-00112233445566AA", "sbx-1", "sbx-00112233445566aaa", "other"];
        let others = others.map(|name| aged(base.path(), name, 3600));
        let link = base.path().join("sbx-00112233445566dd");
        std::os::unix::fs::symlink(&others[3], &link).unwrap();
        sweep(own.path(), Some(base.path()));
        assert!(!stale.exists());
        assert!(new.exists() && living.exists() && kept.exists() && own.path().exists() && link.exists());
        assert!(others.iter().all(|path| path.join("inner").exists()));
        drop(lock);
        sweep(own.path(), Some(base.path()));
        assert!(!living.exists());
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
    fn no_workspace_has_the_caches_of_another() {
        let base = Scratch::create(None).unwrap();
        let cache = |path: &str| {
            cache(Some(base.path().as_os_str()), None, Path::new(path), OsStr::new("p")).unwrap()
        };
        // FNV-1a has one value for both.
        let (one, other) = (cache("8yn0iYCKYHlIj4-BwPqk"), cache("GReLUrM4wMqfg9yzV3KQ"));
        assert!(one != other && one.starts_with(base.path()), "{one:?} {other:?}");
        assert_eq!(one.file_name().unwrap().len(), 32);
        assert_eq!(cache("8yn0iYCKYHlIj4-BwPqk"), one);
    }

    #[test]
    fn a_cache_is_not_reached_over_a_link_that_was_left_there() {
        use std::os::unix::fs::symlink;
        let base = Scratch::create(None).unwrap();
        let cache = |home: &str| {
            cache(Some(base.path().join(home).as_os_str()), None, Path::new("/workspace"), OsStr::new("p"))
        };
        let first = cache("one").unwrap();
        // The user's own directory may be a link.
        symlink("one", base.path().join("two")).unwrap();
        assert_eq!(cache("two").unwrap(), first);
        fs::create_dir(base.path().join("secret")).unwrap();
        fs::remove_dir(&first).unwrap();
        symlink(base.path().join("secret"), &first).unwrap();
        for home in ["one", "two"] {
            let said = cache(home).unwrap_err().to_string();
            assert!(said.ends_with("is reached over a symbolic link"), "{said}");
        }
        // Nor is the directory of all caches.
        fs::remove_dir_all(base.path().join("one")).unwrap();
        fs::create_dir_all(base.path().join("one")).unwrap();
        fs::create_dir(base.path().join("elsewhere")).unwrap();
        symlink(base.path().join("elsewhere"), base.path().join("one/sbx")).unwrap();
        assert!(cache("one").is_err());
    }

    #[test]
    fn names_in_errors_keep_their_letters() {
        let error = cache(None, None, Path::new("/"), OsStr::new("p")).unwrap_err();
        use crate::sys::plain;
        assert_eq!(plain(&error), "neither XDG_CACHE_HOME nor HOME is an absolute path");
        let home = Scratch::create(None).unwrap();
        let missing = home.path().join("home");
        let error = cache(None, Some(missing.as_os_str()), Path::new("/"), OsStr::new("p")).unwrap_err();
        assert!(plain(&error).to_string().ends_with("/home' is not a directory of this user's"), "{error}");
        assert!(!missing.exists());
        assert_eq!(plain(&io::Error::from_raw_os_error(libc::ENOENT)), "no such file or directory");
    }
}
