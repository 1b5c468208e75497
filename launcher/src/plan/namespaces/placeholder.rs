//! A placeholder occupies a name so that the command cannot create anything there. This module says how one is
//! recognised.

use crate::sys::listing::is_empty_directory;
use crate::sys::path::says_missing;
use crate::sys::{access, file, process};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The mode of a placeholder directory: nobody else sets the sticky bit (S_ISVTX) on a directory that only its owner
/// can write to. The user can, so that git and editors outside can bring along what belongs there: inside, a mount is
/// over it.
pub const MODE: u32 = 0o1755;
/// The mode of a placeholder file.
pub const FILE_MODE: u32 = 0o444;
/// Where a placeholder link leads: nothing can ever be made there.
pub const NOWHERE: &str = "/dev/null/sbx-placeholder";
/// The bits of a mode that chmod(2) sets.
pub const PERMISSIONS: u32 = 0o7777;

/// A name that is kept from being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// Where.
    pub path: PathBuf,
    /// As what.
    pub shape: Shape,
}

/// A path where nothing is, and nothing may be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    /// A directory above it that exists, and is held in its place during the run.
    pub above: PathBuf,
    /// The rest of the path.
    pub below: PathBuf,
}

impl Watched {
    /// A path, by its first component that does not exist.
    pub fn of(path: &Path, missing: &Path) -> Watched {
        let above = missing.parent().unwrap_or(missing).to_path_buf();
        let below = path.strip_prefix(&above).unwrap_or(path).to_path_buf();
        Watched { above, below }
    }

    /// The path.
    pub fn path(&self) -> PathBuf {
        self.above.join(&self.below)
    }

    /// What of the path does not exist, from the top down, as places below [`above`](Watched::above).
    pub fn places(&self) -> impl Iterator<Item = &Path> {
        let mut places: Vec<&Path> = self.below.ancestors().collect();
        // The last one is empty.
        places.pop();
        places.into_iter().rev()
    }
}

/// What occupies a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An empty directory.
    Directory,
    /// A file with these contents, where a directory would not do.
    File(&'static str),
    /// A symbolic link to nowhere. Made while the command runs, which may open what it is before it is held: a link
    /// has no contents.
    Link,
}

/// Whether nothing stands at a path, or a placeholder that a run made: another run's goes when that one ends. `wanted`
/// is what would be made there.
pub fn is_free(path: &Path, wanted: Shape) -> bool {
    standing(path, wanted).is_ok()
}

/// Whether an entry of a directory is a placeholder link; by an empty name, a link that is held open.
pub fn is_link(directory: BorrowedFd<'_>, name: &OsStr) -> bool {
    file::read_link(directory, name).is_ok_and(|target| target == NOWHERE)
}

/// The first component of a path that does not exist, or is a placeholder; `None` if there is something at the path.
pub fn first_missing(path: &Path, wanted: Shape) -> Option<&Path> {
    // Those of other runs go when they end.
    let shape = |part: &Path| if part == path { wanted } else { Shape::Directory };
    path.ancestors().take_while(|part| is_free(part, shape(part))).last()
}

/// The placeholder at a path; `None` where there is nothing, an error where there is something else.
pub fn standing(path: &Path, wanted: Shape) -> Result<Option<Shape>, NotFree> {
    match path.symlink_metadata() {
        Ok(meta) => is_one(path, &meta, wanted).map(Some).ok_or(NotFree),
        Err(error) if says_missing(&error) => Ok(None),
        Err(_) => Err(NotFree),
    }
}

/// Something stands there that is no placeholder, or nobody can tell.
#[derive(Debug)]
pub struct NotFree;

/// The placeholder that stands at a path. `meta` comes from the caller's one look; a second look could find something
/// else.
pub fn is_one(path: &Path, meta: &Metadata, wanted: Shape) -> Option<Shape> {
    let shape = looks_like_one(path, meta, wanted).ok()??;
    // Not by its mode alone: a command can give any of the user's directories that, and have what is denied or
    // protected taken for a name to be kept. One that cannot be looked into may hold something.
    let is_empty = || is_empty_directory(path);
    (shape != Shape::Directory || is_empty()).then_some(shape)
}

/// The same of a directory, whatever it holds.
pub fn looks_like_one(path: &Path, meta: &Metadata, wanted: Shape) -> io::Result<Option<Shape>> {
    let has = |mode: u32| meta.uid() == process::user() && meta.mode() & PERMISSIONS == mode;
    let is_one = match wanted {
        Shape::File(contents) => {
            return Ok((meta.is_file() && has(FILE_MODE) && holds(path, contents)?).then_some(wanted));
        }
        _ if meta.is_symlink() => (path.read_link()? == Path::new(NOWHERE)).then_some(Shape::Link),
        _ => (meta.is_dir() && has(MODE)).then_some(Shape::Directory),
    };
    Ok(is_one)
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
