//! What is new in a repository since the command was started, or since the last look at it.

use crate::sys::beneath::Directory;
use std::ffi::OsStr;
use std::time::SystemTime;

/// Since when something is new.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The start of this run. What was made before is older. So may be what was made in the first tick after: the clock
    /// that files go by is a coarse one.
    pub began: SystemTime,
    /// When something in this repository may have been changed by a command: in this run, or in any if no run has
    /// recorded the repository. By the coarse clock: what is changed from then on is not older.
    pub since: SystemTime,
}

/// What of a repository is new.
#[derive(Clone, Copy)]
pub enum New {
    All,
    Since(SystemTime),
}

impl New {
    /// Whether this entry is.
    pub fn is(self, directory: &Directory, name: &OsStr) -> bool {
        match self {
            New::All => true,
            New::Since(since) => directory.has_changed(name, since),
        }
    }

    /// What is new in a directory of this name in that one. A directory that was moved here brings along what is older:
    /// the kernel gives only itself a new time.
    pub fn within(self, directory: &Directory, name: &OsStr) -> New {
        self.into_one(directory, name).0
    }

    /// The same, and whether there may be entries that are new in it, or in directories in it.
    pub fn into_one(self, directory: &Directory, name: &OsStr) -> (New, bool) {
        let New::Since(since) = self else { return (self, true) };
        match directory.ages(name) {
            Ok(ages) if ages.changed >= since => (New::All, true),
            Ok(ages) => (self, ages.names != 2),
            Err(_) => (self, false),
        }
    }
}
