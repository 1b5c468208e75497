//! The content of a directory, for comparing before with after and confined with unconfined.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Times before this one were set on purpose and are compared; later ones are just "now".
const SET_ON_PURPOSE: i64 = 1_600_000_000;

/// One file, as far as it can be compared between two runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    mode: u32,
    links: u64,
    time: Option<i64>,
    what: What,
}

impl Entry {
    /// Whether both are the same kind of file with the same mode, whatever they contain.
    pub fn alike(&self, other: &Entry) -> bool {
        self.mode == other.mode && std::mem::discriminant(&self.what) == std::mem::discriminant(&other.what)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    File(Content),
    Directory,
    Link(OsString),
    Special(char),
}

/// A file's bytes, shown by their beginning.
#[derive(PartialEq, Eq)]
struct Content(Vec<u8>);

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = &self.0[..self.0.len().min(60)];
        write!(f, "{} bytes {:?}", self.0.len(), String::from_utf8_lossy(start))
    }
}

/// The entries that only one of two trees has, or that differ: path, first, second.
pub fn differences<'a>(
    first: &'a Tree,
    second: &'a Tree,
) -> Vec<(&'a Path, Option<&'a Entry>, Option<&'a Entry>)> {
    let paths: BTreeSet<&PathBuf> = first.keys().chain(second.keys()).collect();
    let pairs = paths.into_iter().map(|path| (path.as_path(), first.get(path), second.get(path)));
    pairs.filter(|(_, one, other)| one != other).collect()
}

/// The permissions of a file, with set-ID and sticky bits.
pub fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Everything below a directory, by relative path.
pub type Tree = BTreeMap<PathBuf, Entry>;

/// Reads a directory tree; links are not followed.
pub fn snapshot(root: &Path) -> Tree {
    snapshot_but(root, &|_| false)
}

/// The same without the relative paths that `left_out` accepts, and everything below them.
pub fn snapshot_but(root: &Path, left_out: &dyn Fn(&Path) -> bool) -> Tree {
    let mut tree = Tree::new();
    visit(root, Path::new(""), left_out, &mut tree);
    tree
}

fn visit(root: &Path, below: &Path, left_out: &dyn Fn(&Path) -> bool, tree: &mut Tree) {
    let Ok(entries) = fs::read_dir(root.join(below)) else { return };
    for entry in entries.flatten() {
        let relative = below.join(entry.file_name());
        if left_out(&relative) {
            continue;
        }
        let meta = entry.metadata().unwrap();
        if meta.is_dir() {
            visit(root, &relative, left_out, tree);
        }
        tree.insert(relative, describe(&entry.path(), &meta));
    }
}

fn describe(path: &Path, meta: &fs::Metadata) -> Entry {
    let kind = meta.file_type();
    let what = if kind.is_dir() {
        What::Directory
    } else if kind.is_symlink() {
        What::Link(fs::read_link(path).unwrap().into())
    } else if kind.is_file() {
        What::File(Content(fs::read(path).unwrap_or_default()))
    } else {
        What::Special(if kind.is_fifo() { 'p' } else { 's' })
    };
    let links = if kind.is_dir() { 0 } else { meta.nlink() };
    let time = Some(meta.mtime()).filter(|time| *time < SET_ON_PURPOSE && !kind.is_symlink());
    Entry { mode: meta.mode(), links, time, what }
}
