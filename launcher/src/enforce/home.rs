//! Makes a home directory of the run's own: one that lasts, below the user's directory of state, or one in the scratch
//! directory.
//!
//! A run holds a shared lock (flock(2)) on the directory of its home, and another one on the layers of its stores: the
//! kernel does not say what two overlays with the same upper layer show. So runs at the same time have layers of
//! their own.

use crate::enforce::EnforceError;
use crate::enforce::error::Named;
use crate::enforce::homes::{ABOUT, About};
use crate::enforce::scratch::{open_directory, own_directory};
use crate::plan::home::{HOME, PrivateHome, STORES, inner};
use crate::plan::{CacheOf, HomeOf};
use crate::sys::file_system::FileSystem;
use crate::sys::{file, memory, plain};
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Maximum number of layers of a home, and so of runs at the same time that can change its stores. The runs of a pool
/// have some while they wait.
const MOST_LAYERS: u32 = 128;
/// The file that says what the copies of settings in a home were made of.
pub const STAMPS: &str = "stamps";
/// How often, and after which pause, it is tried to hold a home that is being looked at or removed.
const ATTEMPTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(1);
/// How long ago a use may be that nobody has to write down again: homes are removed by their age in hours and days, and
/// a change of a time is one of the disk.
const RECENT: Duration = Duration::from_secs(10);
const MAKE: &str = "make a home in '{}'";

/// The locks of a run. They go with it, and with its reaper.
#[derive(Debug, Default)]
pub struct Held {
    files: Vec<File>,
    /// The directory of the home that lasts.
    directory: Option<PathBuf>,
}

impl Held {
    /// The descriptors, which hold the locks.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The one on the layers of the stores, which is no other run's.
    pub fn of_layers(&self) -> Option<&File> {
        self.files.get(1)
    }

    /// Does something while no other run uses the home; `None` if one does.
    pub fn alone<T>(&self, act: impl FnOnce() -> T) -> io::Result<Option<T>> {
        let (Some(lock), Some(directory)) = (self.files.first(), &self.directory) else { return Ok(None) };
        let done = lock.try_lock().is_ok().then(act);
        // The lock is gone, whether the other one was had or not: somebody may have removed the home meanwhile.
        let _ = lock.lock_shared();
        if is_still(lock, directory)? {
            Ok(done)
        } else {
            Err(io::Error::other("it was removed just now; try again"))
        }
    }

    /// Gives the home another path outside, if no other run uses it: nothing of this one looks for it any more.
    fn leave(&self) {
        let rename = |directory: &Path| {
            let name = memory::random_name("").map_err(|failed| failed.cause)?;
            inner::of(directory).map_or(Ok(()), |inner| std::fs::rename(inner, directory.join(name)))
        };
        let _ = self.directory.as_deref().map(|directory| self.alone(|| rename(directory)));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Makes a home that lasts. `no_layers` tells why its stores cannot be written to, if that is known.
pub fn make(of: &HomeOf, no_layers: Option<&str>) -> Result<(PrivateHome, Held), EnforceError> {
    let directory = of.directory.as_deref().unwrap_or(Path::new(""));
    let made = make_lasting(directory, &of.owner);
    let (lock, inner) = made.step_at(MAKE, directory)?;
    let mut held = Held { files: vec![lock], directory: Some(directory.to_path_buf()) };
    let layers = match no_layers.map(str::to_string).or_else(|| refuses_overlays(directory)) {
        Some(why) => Err(why),
        None => match free_layers(&inner.join(STORES)).step_at(MAKE, directory)? {
            Some((number, lock)) => {
                held.files.push(lock);
                Ok(inner.join(STORES).join(number.to_string()))
            }
            None => Err(format!("{MOST_LAYERS} other runs use this home")),
        },
    };
    Ok((PrivateHome::lasting(of, &inner, layers), held))
}

/// Makes a home in a directory that is removed with the run.
pub fn make_temporary(of: &HomeOf, base: &Path) -> Result<PrivateHome, EnforceError> {
    let home = PrivateHome::temporary(of, base);
    new_directory(&home.directory).step_at(MAKE, base)?;
    Ok(home)
}

fn new_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn make_lasting(directory: &Path, owner: &CacheOf) -> io::Result<(File, PathBuf)> {
    // `state/sbx/homes/NAME`.
    let state = directory.ancestors().nth(3).unwrap_or(directory);
    let own = directory.strip_prefix(state).unwrap_or(directory);
    let lock = hold_lasting(directory, || own_directory(state, own).map(drop))?;
    // Nobody renames it as long as the lock is held.
    let inner = inner::of_next_run(directory);
    let home = inner.join(HOME);
    for made in [&inner, &home, &inner.join(STORES)] {
        new_directory(made)?;
    }
    // A command may have closed its own home.
    let mode = home.symlink_metadata()?.mode();
    if mode & 0o700 != 0o700 {
        std::fs::set_permissions(&home, Permissions::from_mode(0o700))?;
    }
    note_use(&directory.join(ABOUT), owner)?;
    Ok((lock, inner))
}

/// A shared lock on the directory that a home has now. Somebody may just be looking whether it is used, or be removing
/// it: then it gets another name, and there is a new one.
fn hold_lasting(directory: &Path, make: impl Fn() -> io::Result<()>) -> io::Result<File> {
    for _ in 0..ATTEMPTS {
        make()?;
        let held = open_directory(directory)?;
        match held.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(PAUSE);
                continue;
            }
            // A file system without locks.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        if is_still(&held, directory)? {
            return Ok(held);
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is being removed"))
}

/// Whether a name still stands for a directory that is held.
fn is_still(held: &File, directory: &Path) -> io::Result<bool> {
    let own = file::identity(held.as_fd()).map_err(|failed| failed.cause)?;
    Ok(file::identity_at(directory).is_ok_and(|there| own.is(there)))
}

/// Writes down whose a home is, and that it is used now.
fn note_use(about: &Path, owner: &CacheOf) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(about) {
        Ok(file) => serde_json::to_writer(file, &About::of(owner)).map_err(io::Error::from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let (file, now) = (OpenOptions::new().write(true).open(about)?, SystemTime::now());
            let last = file.metadata()?.modified()?;
            match now.duration_since(last) {
                Ok(age) if age < RECENT => Ok(()),
                _ => file.set_modified(now),
            }
        }
        Err(error) => Err(error),
    }
}

/// The first layers that no other run uses.
fn free_layers(stores: &Path) -> io::Result<Option<(u32, File)>> {
    for number in 0..MOST_LAYERS {
        let path = stores.join(number.to_string());
        new_directory(&path)?;
        let layers = open_directory(&path)?;
        match layers.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => return Ok(Some((number, layers))),
        }
    }
    Ok(None)
}

/// Why the file system of a directory cannot hold the upper layer of an overlay, if it is one of those that are known
/// not to (Documentation/filesystems/overlayfs.rst).
pub fn refuses_overlays(directory: &Path) -> Option<String> {
    match FileSystem::of(directory) {
        Ok(kind) => kind
            .refuses_overlays()
            .map(|name| format!("overlays cannot be written to on a file system of kind {name}")),
        Err(failed) => Some(plain(&failed.cause).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::cell::Cell;
    use std::fs;

    #[test]
    fn a_home_that_is_removed_meanwhile_is_not_the_one_that_is_held() {
        let scratch = Scratch::create(None).unwrap();
        let (place, aside) = (scratch.path().join("home"), scratch.path().join("removed"));
        let calls = Cell::new(0);
        let held = hold_lasting(&place, || {
            calls.set(calls.get() + 1);
            new_directory(&place)
        });
        let number = |file: &File| file.metadata().unwrap().ino();
        assert_eq!((calls.get(), number(&held.unwrap())), (1, place.metadata().unwrap().ino()));
        // Whoever removes it has an exclusive lock, and renames it.
        let remover = open_directory(&place).unwrap();
        remover.try_lock().unwrap();
        let remover = Cell::new(Some(remover));
        let held = hold_lasting(&place, || {
            calls.set(calls.get() + 1);
            if calls.get() == 4 {
                fs::rename(&place, &aside).unwrap();
                drop(remover.take());
            }
            new_directory(&place)
        });
        assert_eq!(number(&held.unwrap()), place.metadata().unwrap().ino());
        assert!(calls.get() >= 4 && aside.is_dir());
        let remover = open_directory(&place).unwrap();
        remover.try_lock().unwrap();
        assert!(hold_lasting(&place, || Ok(())).is_err());
    }
}
