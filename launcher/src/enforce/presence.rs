//! The runs in a repository.
//!
//! Every run that protects a repository holds a shared lock (flock(2)) on its directory of hooks, which no
//! command can rename or remove. A run with an exclusive lock is the only one there, and no other begins
//! until the lock is shared again. Changing the kind of a lock releases it for a moment. So that no two
//! runs do that at a time, there is a second lock, on a file that exists only while a run holds it.
//!
//! A workspace may hold several repositories, and be in one. The runs there need not have found the same ones first, so
//! each is locked by itself.

use crate::enforce::EnforceError;
use crate::enforce::error::Named;
use crate::enforce::placeholders::share;
use crate::plan::namespaces::{CONFIG_LOCK, HOOKS, Layout, outermost_repository};
use crate::sys::file::{self, Times};
use crate::sys::{OfCall, SyscallError};
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// A run's locks.
#[derive(Debug)]
pub struct Presence(Vec<Hooks>);

/// The directory of hooks of a repository that is no part of another.
#[derive(Debug)]
struct Hooks {
    held: Rc<File>,
    directory: PathBuf,
}

impl Presence {
    /// The locks of a run that has configurations which may be replaced.
    pub fn of(layout: &Layout) -> Result<Option<Presence>, EnforceError> {
        let presence = Presence::away(layout);
        presence.iter().try_for_each(Presence::come)?;
        Ok(presence)
    }

    /// The same, which does not hold the locks yet.
    pub fn away(layout: &Layout) -> Option<Presence> {
        let directories: BTreeSet<PathBuf> = layout.configs.iter().map(|own| hooks_of(own)).collect();
        let open =
            |directory: PathBuf| Some(Hooks { held: Rc::new(File::open(&directory).ok()?), directory });
        let all: Vec<Hooks> = directories.into_iter().filter_map(open).collect();
        (!all.is_empty()).then_some(Presence(all))
    }

    /// Takes the locks.
    pub fn come(&self) -> Result<(), EnforceError> {
        self.0.iter().try_for_each(|hooks| share(&hooks.held).step_at("protect '{}'", &hooks.directory))
    }

    /// Gives the locks up again.
    pub fn leave(&self) {
        self.0.iter().for_each(|hooks| drop(hooks.held.unlock()));
    }

    /// The descriptors, which hold the locks.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.0.iter().map(|hooks| hooks.held.as_raw_fd())
    }

    /// Excludes other runs from a repository; `None` if there are any. After an error this run has no lock there.
    pub fn alone(&self, repository: &Path) -> Result<Option<Alone>, SyscallError> {
        let directory = hooks_of(repository);
        let Some(hooks) = self.0.iter().find(|hooks| hooks.directory == directory) else { return Ok(None) };
        let second = directory.join(CONFIG_LOCK);
        let times = Times::of(&hooks.held);
        let Some(held) = lock(&second) else { return Ok(None) };
        let alone = Alone { hooks: hooks.held.clone(), second, _held: held, times };
        if alone.hooks.try_lock().is_ok() {
            return Ok(Some(alone));
        }
        alone.end().map(|()| None)
    }
}

fn hooks_of(repository: &Path) -> PathBuf {
    outermost_repository(repository).join(HOOKS)
}

/// A lock that one run at a time holds.
fn lock(path: &Path) -> Option<File> {
    let directory = file::open_directory(path.parent()?).ok()?;
    let name = path.file_name()?;
    let file = File::from(file::open_or_create(directory.as_fd(), name, 0o600).ok()?);
    file.try_lock().ok()?;
    // The run that held it before may have removed it.
    let (own, found) =
        (file::identity(file.as_fd()).ok()?, file::identity_of(directory.as_fd(), name, false).ok()?);
    own.is(found).then_some(file)
}

/// No other run is there.
#[derive(Debug)]
pub struct Alone {
    hooks: Rc<File>,
    second: PathBuf,
    _held: File,
    times: Times,
}

impl Alone {
    /// Lets others in again.
    pub fn end(self) -> Result<(), SyscallError> {
        // Only the command can hold a lock here, for a moment or as a nuisance.
        const ATTEMPTS: usize = 100;
        const PAUSE: Duration = Duration::from_millis(1);
        let mut attempts = (0..ATTEMPTS).map(|_| self.hooks.try_lock_shared());
        let shared = attempts.any(|result| {
            let is_shared = !matches!(result, Err(TryLockError::WouldBlock));
            if !is_shared {
                std::thread::sleep(PAUSE);
            }
            is_shared
        });
        let _ = std::fs::remove_file(&self.second);
        self.times.restore(&self.hooks);
        if shared {
            return Ok(());
        }
        Err(io::Error::from_raw_os_error(libc::EWOULDBLOCK)).of("flock")
    }
}
