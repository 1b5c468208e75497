//! Names that appear in directories (inotify(7)), whoever makes them and in whatever mount namespace.

use crate::sys::{OfCall, SyscallError};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Can be read when a name has appeared in one of the directories.
pub struct NewNames(OwnedFd);

impl NewNames {
    /// In no directory yet.
    pub fn new() -> Result<NewNames, SyscallError> {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        inotify::init(flags).of("inotify_init1").map(NewNames)
    }

    /// Also in this directory, as long as it exists.
    pub fn watch(&self, directory: &Path) -> Result<(), SyscallError> {
        let what = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        inotify::add_watch(&self.0, directory, what).of("inotify_add_watch").map(drop)
    }

    /// Forgets what has appeared so far.
    pub fn clear(&self) {
        let mut buffer = [0; 4096];
        while rustix::io::read(&self.0, &mut buffer).is_ok_and(|length| length > 0) {}
    }
}

impl AsFd for NewNames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
