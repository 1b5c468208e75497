//! Which runs are in a repository.
//!
//! Every run that protects one holds a shared lock (flock(2)) on its directory of hooks, which no command can rename or
//! remove. Who gets it alone is the only run there, and none begins until it is shared again. Taking a lock in
//! another way lets go of it for a moment; so that no two do that at a time, who does it holds a second lock.

use crate::launch::namespaces::{HOOKS, Layout, outermost_repository, share};
use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use crate::sys::Failed;
use crate::sys::file::{self, Times};
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// In the directory of hooks; only there while somebody holds it.
const SECOND: &str = "sbx-config.lock";

/// A run's lock.
#[derive(Debug)]
pub struct Presence {
    hooks: Rc<File>,
    directory: PathBuf,
}

impl Presence {
    /// That of a run, where it has a configuration that may be replaced.
    pub fn of(layout: &Layout) -> Result<Option<Presence>, Refusal> {
        let Some(repository) = layout.configs.first() else { return Ok(None) };
        let directory = outermost_repository(repository).join(HOOKS);
        let Ok(hooks) = File::open(&directory) else { return Ok(None) };
        share(&hooks)
            .map_err(|cause| Refusal::new(format!("cannot protect '{}': {cause}", shown(&directory))))?;
        Ok(Some(Presence { hooks: Rc::new(hooks), directory }))
    }

    /// The descriptor, which holds the lock.
    pub fn descriptor(&self) -> RawFd {
        self.hooks.as_raw_fd()
    }

    /// Keeps other runs out; `None` if there are some. An error leaves this one without a lock.
    pub fn alone(&self) -> Result<Option<Alone>, Failed> {
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
    // Who held it before may have removed it.
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
    pub fn end(self) -> Result<(), Failed> {
        // Only the command can be in the way, for a moment or to be a nuisance.
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
        Err(Failed { call: "flock", cause: io::Error::from_raw_os_error(libc::EWOULDBLOCK) })
    }
}
