//! The directory that has a home and its stores, below the one that stands for a workspace and a profile. It gets
//! another name whenever the last run that uses it ends, which nobody can guess: what a command has noted of its path,
//! for programs outside to follow, leads nowhere from then on.

use crate::digest;
use crate::sys::beneath::Directory;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Its name in a home that no run has left yet. Of several runs that begin at once, each makes the same.
const FIRST: &str = "0000000000000000";

/// Where it is.
pub fn of(directory: &Path) -> Option<PathBuf> {
    let held = Directory::open(directory).ok()?;
    name_in(&held).map(|name| directory.join(name))
}

/// Its name in a directory that is held.
pub fn name_in(directory: &Directory) -> Option<OsString> {
    let (names, _) = directory.below(Path::new("")).ok()?.names_like(1, is_one).ok()?;
    names.into_iter().next()
}

/// Where it is, or will be.
pub fn of_next_run(directory: &Path) -> PathBuf {
    of(directory).unwrap_or_else(|| directory.join(FIRST))
}

/// Whether a name is one that it may have.
fn is_one(name: &OsStr) -> bool {
    digest::is_hex(name.as_bytes(), FIRST.len())
}
