//! What stays as it is inside a directory that may be changed: files that something outside the sandbox executes or
//! trusts later.

use crate::plan::listings::Listings;
use crate::plan::namespaces::placeholder::{self, Shape};
use crate::plan::namespaces::places::Roots;
use crate::sys::path::{self, Way};
use crate::sys::plain;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// Something protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Absolute; below the real path of its directory.
    pub path: PathBuf,
    /// What happens where there is nothing.
    pub missing: IfMissing,
    /// A git configuration that may be replaced by a new one that has been checked.
    pub replaced: bool,
    /// Protected also where it is itself what may be written, and not only something above it.
    pub itself: bool,
}

/// What happens where a protected path does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    /// A placeholder of this shape keeps it from being made.
    Placeholder(Shape),
    /// What is made there is put aside.
    SetAside,
    /// The command may make it.
    MadeFreely,
}

/// What there is at a protected path.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A file or a directory.
    There,
    /// What cannot be looked at, and why.
    Unseen(String),
    /// A symbolic link, and where it leads.
    Link(Option<PathBuf>),
    /// It is reached through a symbolic link.
    Behind,
}

impl Protected {
    /// Protected, and cannot be created if missing.
    pub fn new(path: PathBuf) -> Protected {
        let missing = IfMissing::Placeholder(Shape::Directory);
        Protected { path, missing, replaced: false, itself: false }
    }

    /// Protected only if it exists; it may be created.
    pub fn existing(path: PathBuf) -> Protected {
        Protected { missing: IfMissing::MadeFreely, ..Protected::new(path) }
    }

    /// Whether a placeholder stands there.
    fn is_kept_free(&self, meta: &Metadata) -> bool {
        let is_one = |shape| placeholder::is_one(&self.path, meta, shape).is_some();
        match self.missing {
            IfMissing::Placeholder(shape) => is_one(shape),
            IfMissing::SetAside => is_one(Shape::Link),
            IfMissing::MadeFreely => false,
        }
    }

    /// Looks what is there.
    pub fn find(&self, roots: &Roots, listings: &Listings) -> Found {
        let root = roots.above(&self.path);
        let between = self.path.ancestors().skip(1).take_while(|above| Some(*above) != root);
        let may_be_link = |above: &&Path| !listings.has_directory(above);
        let mut links = between
            .take_while(may_be_link)
            .filter(|above| above.symlink_metadata().is_ok_and(|meta| meta.is_symlink()));
        if links.next().is_some() {
            return Found::Behind;
        }
        match self.path.symlink_metadata() {
            Err(error) if path::says_missing(&error) => Found::Nothing,
            Ok(meta) if self.is_kept_free(&meta) => Found::Nothing,
            Ok(meta) if meta.is_symlink() => Found::Link(self.path.canonicalize().ok()),
            Ok(_) => Found::There,
            // It may be there, and mounting will tell.
            Err(error) => Found::Unseen(plain(&error)),
        }
    }
}

/// What there is at a protected path, with the links to the directory that it is in.
pub fn find(
    protected: Protected,
    roots: &Roots,
    listings: &Listings,
) -> Option<(Protected, Found, Vec<PathBuf>)> {
    let found = protected.find(roots, listings);
    if found != Found::Behind {
        return Some((protected, found, Vec::new()));
    }
    if protected.missing == IfMissing::MadeFreely && !path::is_there(&protected.path) {
        return None;
    }
    let (directory, name) = protected.path.parent().zip(protected.path.file_name())?;
    let Way { real, links, .. } = path::way(directory);
    let protected = Protected { path: real.join(name), ..protected };
    // Elsewhere nothing of it can be changed.
    let found = roots.above(&protected.path).map(|_| protected.find(roots, listings));
    Some((protected, found.unwrap_or(Found::Behind), links))
}
