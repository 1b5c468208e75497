//! Names that appear in directories, whoever makes them and in whatever mount namespace (F_NOTIFY, fcntl(2)).
//!
//! Not inotify(7): closing that waits for all processors, which takes 10 to 20 ms, and a run would end as much later.

use crate::sys::signal::{self, Set};
use crate::sys::{OfCall, SyscallError, checked, file};
use rustix::fs::{CWD, Mode, OFlags};
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Has the kernel send a signal of our choice (fcntl(2)).
const F_SETSIG: libc::c_int = 10;
/// A name was made, or moved here.
const DN_CREATE: libc::c_ulong = 0x4;
/// A name of the directory was changed.
const DN_RENAME: libc::c_ulong = 0x10;
/// Tell more than once.
const DN_MULTISHOT: libc::c_ulong = 0x8000_0000;
/// Of this signal only one waits at a time, however many names appear.
const TOLD_BY: libc::c_int = libc::SIGIO;

/// Can be read when a name has appeared in one of the directories.
pub struct NewNames {
    told: OwnedFd,
    directories: RefCell<Vec<(file::Identity, OwnedFd)>>,
    /// A directory cannot be watched (`fs.dir-notify-enable` is 0).
    is_blind: Cell<bool>,
}

impl NewNames {
    /// In no directory yet. The signal must be blocked, as all are in this process.
    pub fn new() -> Result<NewNames, SyscallError> {
        let told = signal::descriptor(&Set::of(&[TOLD_BY]))?;
        Ok(NewNames { told, directories: RefCell::default(), is_blind: Cell::new(false) })
    }

    /// Also in this directory, as long as it exists.
    pub fn watch(&self, directory: &Path) -> Result<(), SyscallError> {
        let mut directories = self.directories.borrow_mut();
        // Nearly always it is watched already.
        let is_known = |there| directories.iter().any(|(known, _): &(file::Identity, _)| known.is(there));
        if file::identity_at(directory).is_ok_and(is_known) {
            return Ok(());
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(CWD, directory, flags, Mode::empty()).of("openat")?;
        let identity = file::identity(held.as_fd())?;
        // SAFETY: numbers only.
        checked("fcntl", unsafe { libc::fcntl(held.as_raw_fd(), F_SETSIG, TOLD_BY) })?;
        let what = DN_CREATE | DN_RENAME | DN_MULTISHOT;
        // SAFETY: numbers only.
        let watched = checked("fcntl", unsafe { libc::fcntl(held.as_raw_fd(), libc::F_NOTIFY, what) });
        self.is_blind.set(self.is_blind.get() || watched.is_err());
        directories.push((identity, held));
        Ok(())
    }

    /// Somebody has to look from now on, for a directory that cannot be watched.
    pub fn go_blind(&self) {
        self.is_blind.set(true);
    }

    /// Whether names may have appeared since the last call.
    pub fn have_appeared(&self) -> bool {
        signal::next(self.told.as_fd()).is_some() || self.is_blind.get()
    }

    /// Whether somebody has to look from time to time, since the kernel does not tell of everything.
    pub fn is_blind(&self) -> bool {
        self.is_blind.get()
    }
}

impl AsFd for NewNames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}
