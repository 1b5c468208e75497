//! The runs in a repository.
//!
//! Every run that protects a repository holds a shared lock (flock(2)) on its directory of hooks, which no
//! command can rename or remove. A run with an exclusive lock is the only one there, and no other begins
//! until the lock is shared again. Changing the kind of a lock releases it for a moment. So that no two
//! runs do that at a time, there is a second lock.

use crate::enforce::EnforceError;
use crate::enforce::error::Named;
use crate::enforce::placeholders::share;
use crate::plan::namespaces::{HOOKS, Layout, outermost_repository};
use crate::sys::file::{self, Times};
use crate::sys::{OfCall, SyscallError};
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// The second lock: a file in the directory of hooks, which exists only while a run holds it.
const SECOND: &str = "sbx-config.lock";

/// A run's lock.
#[derive(Debug)]
pub struct Presence {
    hooks: Rc<File>,
    directory: PathBuf,
}

impl Presence {
    /// The lock of a run that has a configuration which may be replaced.
    pub fn of(layout: &Layout) -> Result<Option<Presence>, EnforceError> {
        let presence = Presence::away(layout);
        presence.iter().try_for_each(Presence::come)?;
        Ok(presence)
    }

    /// The same, which does not hold the lock yet.
    pub fn away(layout: &Layout) -> Option<Presence> {
        let directory = outermost_repository(layout.configs.first()?).join(HOOKS);
        let hooks = Rc::new(File::open(&directory).ok()?);
        Some(Presence { hooks, directory })
    }

    /// Takes the lock.
    pub fn come(&self) -> Result<(), EnforceError> {
        share(&self.hooks).step_at("protect '{}'", &self.directory)
    }

    /// The descriptor, which holds the lock.
    pub fn descriptor(&self) -> RawFd {
        self.hooks.as_raw_fd()
    }

    /// Excludes other runs; `None` if there are any. After an error this run has no lock.
    pub fn alone(&self) -> Result<Option<Alone>, SyscallError> {
        let second = self.directory.join(SECOND);
        let times = Times::of(&self.hooks);
        let Some(held) = lock(&second) else { return Ok(None) };
        let alone = Alone { hooks: self.hooks.clone(), second, _held: held, times };
        if alone.hooks.try_lock().is_ok() {
            return Ok(Some(alone));
        }
        alone.end().map(|()| None)
    }
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
