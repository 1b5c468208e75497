//! How a path leads to a file.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The kernel follows no more links than this.
const MOST_LINKS: usize = 40;

/// The way that an absolute path takes.
pub struct Way {
    /// The real directories in which names were looked up.
    directories: Vec<PathBuf>,
}

impl Way {
    /// Whether somebody who may write in a directory, given by its real path, decides where this leads.
    pub fn passes(&self, directory: &Path) -> bool {
        self.directories.iter().any(|looked_up| looked_up.starts_with(directory))
    }
}

/// Walks a path once, so that the directories found belong together even while somebody changes the links.
pub fn way(path: &Path) -> Way {
    let mut way = Way { directories: Vec::new() };
    let (mut real, mut links) = (PathBuf::from("/"), 0);
    // The names still to be walked, the next one last.
    let mut names = reversed(path);
    while let Some(name) = names.pop() {
        match name.as_bytes() {
            b"." => continue,
            b".." => {
                real.pop();
                continue;
            }
            // A root replaces what was walked.
            b"/" => {}
            _ => way.directories.push(real.clone()),
        }
        let next = real.join(&name);
        match next.read_link() {
            Ok(target) if links < MOST_LINKS => {
                names.extend(reversed(&target));
                links += 1;
            }
            _ => real = next,
        }
    }
    way
}

fn reversed(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// Whether something is at a path, if only a link. A path that cannot be looked at counts as there: a command may have
/// taken the permission away for a while.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().map_or_else(|error| !says_missing(&error), |_| true)
}

fn says_missing(error: &io::Error) -> bool {
    let nowhere = matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENAMETOOLONG));
    nowhere || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a path leads to a regular file that somebody may execute.
pub fn is_program(path: &Path) -> bool {
    const ANY_EXECUTE: u32 = 0o111;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.mode() & ANY_EXECUTE != 0)
}
