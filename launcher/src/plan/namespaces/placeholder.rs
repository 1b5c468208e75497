//! A placeholder occupies a name so that the command cannot create anything there. This module says how one is
//! recognised.

use crate::sys::path::says_missing;
use crate::sys::{access, process};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The mode of a placeholder directory: nobody else sets the sticky bit (S_ISVTX) on a directory that nobody can write.
pub const MODE: u32 = 0o1555;
/// The mode of a placeholder file.
pub const FILE_MODE: u32 = 0o444;
/// The bits of a mode that chmod(2) sets.
const PERMISSIONS: u32 = 0o7777;

/// A name that is kept from being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// Where.
    pub path: PathBuf,
    /// A file with these contents, where a directory would not do.
    pub contents: Option<&'static str>,
}

/// Whether nothing stands at a path, or a placeholder that a run made: another run's goes when that one ends.
pub fn is_free(path: &Path, contents: Option<&str>) -> bool {
    match path.symlink_metadata() {
        Ok(meta) => is_one(path, &meta, contents),
        Err(error) => says_missing(&error),
    }
}

/// Whether what stands at a path is a placeholder. `meta` comes from the caller's one look; a second look could find
/// something else.
pub fn is_one(path: &Path, meta: &Metadata, contents: Option<&str>) -> bool {
    // Not by its mode alone: a command can give any of the user's directories that, and have what is denied or
    // protected taken for a name to be kept. One that cannot be looked into may hold something.
    let is_empty = || contents.is_some() || path.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    looks_like_one(path, meta, contents).unwrap_or(false) && is_empty()
}

/// The same of a directory, whatever it holds.
pub fn looks_like_one(path: &Path, meta: &Metadata, contents: Option<&str>) -> io::Result<bool> {
    let has = |mode: u32| meta.uid() == process::user() && meta.mode() & PERMISSIONS == mode;
    match contents {
        None => Ok(meta.is_dir() && has(MODE)),
        Some(contents) if meta.is_file() && has(FILE_MODE) => holds(path, contents),
        Some(_) => Ok(false),
    }
}

fn holds(path: &Path, contents: &str) -> io::Result<bool> {
    let mut text = Vec::new();
    File::open(path)?.take(64).read_to_end(&mut text)?;
    Ok(text == contents.as_bytes())
}

/// Whether the command could make something at a path, and so a placeholder is of use. It has no
/// capabilities: in another user's directory root can do no more than others, and by the same token the
/// supervisor could not remove the placeholder. Nor is anything made on a read-only file system, by either of
/// them.
pub fn can_be_made(path: &Path) -> bool {
    let Some(parent) = path.parent() else { return false };
    parent.metadata().is_ok_and(|meta| access::may_change(&meta)) && !access::is_read_only(parent)
}
