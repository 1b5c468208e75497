//! Names that appear in directories (inotify(7)), whoever makes them and in whatever mount namespace.

use crate::sys::{OfCall, SyscallError};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
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

    /// Which names have appeared that matter; `None` if there are none. An empty name stands for names that were lost.
    /// Forgets what has appeared so far: not more at once than a command can hold up.
    pub fn appeared(&self, matters: impl Fn(&OsStr) -> bool) -> Option<Vec<OsString>> {
        const MOST: usize = 4096;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.0, &mut buffer);
        let mut appeared = Vec::new();
        for _ in 0..MOST {
            let Ok(event) = reader.next() else { break };
            let name = event.file_name().map_or(OsStr::new(""), |name| OsStr::from_bytes(name.to_bytes()));
            if name.is_empty() || matters(name) {
                appeared.push(name.to_os_string());
            }
        }
        (!appeared.is_empty()).then_some(appeared)
    }
}

impl AsFd for NewNames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
