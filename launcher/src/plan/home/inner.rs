//! The directory that has a home and its stores, below the one that stands for a workspace and a profile. It gets
//! another name whenever the last run that uses it ends, which nobody can guess: what a command has noted of its path,
//! for programs outside to follow, leads nowhere from then on.

use crate::sys::beneath::Directory;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Its name in a home that no run has left yet. Of several runs that begin at once, each makes the same.
const FIRST: &str = "0000000000000000";

/// Where it is.
pub fn of(directory: &Path) -> Option<PathBuf> {
    let listed = Directory::open(directory).and_then(|held| held.below(Path::new(""))).ok()?;
    let (names, _) = listed.names_like(1, is_one).ok()?;
    names.first().map(|name| directory.join(name))
}

/// Where it is, or will be.
pub fn of_next_run(directory: &Path) -> PathBuf {
    of(directory).unwrap_or_else(|| directory.join(FIRST))
}

/// Whether a name is one that it may have.
pub fn is_one(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.len() == FIRST.len() && name.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}
