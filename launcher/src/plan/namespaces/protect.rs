//! What stays as it is inside a directory that may be changed: files that something outside the sandbox executes or
//! trusts later.

use crate::plan::namespaces::placeholder::{self, Shape};
use crate::sys::path;
use crate::sys::plain;
use std::fs::Metadata;
use std::path::PathBuf;

/// Something protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Absolute, as whoever acts on it names it: links and `..` lead where the kernel takes them.
    pub path: PathBuf,
    /// What happens where there is nothing.
    pub missing: IfMissing,
    /// A git configuration that may be replaced by a new one that has been checked.
    pub replaced: bool,
    /// Protected also where it is itself what may be written, and not only something above it.
    pub itself: bool,
    /// Only what decides where the path leads: what is there may change.
    pub only_way: bool,
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
    /// A symbolic link.
    Link,
}

impl IfMissing {
    /// The same for what a link leads to: who makes that decides what the link means.
    pub fn of_target(self) -> IfMissing {
        match self {
            IfMissing::MadeFreely => IfMissing::SetAside,
            missing => missing,
        }
    }
}

impl Protected {
    /// Protected, and cannot be created if missing.
    pub fn new(path: PathBuf) -> Protected {
        let missing = IfMissing::Placeholder(Shape::Directory);
        Protected { path, missing, replaced: false, itself: false, only_way: false }
    }

    /// Protected only if it exists; it may be created.
    pub fn existing(path: PathBuf) -> Protected {
        Protected { missing: IfMissing::MadeFreely, ..Protected::new(path) }
    }

    /// The way to a directory in which commands may write.
    pub fn way(path: PathBuf) -> Protected {
        Protected { only_way: true, ..Protected::existing(path) }
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
    pub fn find(&self) -> Found {
        match self.path.symlink_metadata() {
            Err(error) if path::says_missing(&error) => Found::Nothing,
            Ok(meta) if self.is_kept_free(&meta) => Found::Nothing,
            Ok(meta) if meta.is_symlink() => Found::Link,
            Ok(_) => Found::There,
            // It may be there, and mounting will tell.
            Err(error) => Found::Unseen(plain(&error)),
        }
    }
}
