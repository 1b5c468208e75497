//! The library by which refused calls on paths are told: where it is put, if a run has it.
//!
//! `explainer/` has the library, and says what it does. Nothing depends on it: a run that has no place for it, or whose
//! programs do not load it, is explained with `--explain` only.

use crate::plan::namespaces::{Layout, renewed};
use std::path::{Path, PathBuf};

/// Its file name, by which the library knows itself in LD_PRELOAD.
pub const NAME: &str = "libsbx-explain.so";

/// More bytes than the library has, which its build checks: where a caller's limit has no room for it, a run has none.
pub const LARGEST: u64 = 40 * 1024;

/// Where the library is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryPlace {
    /// In a directory of the run's view that the command cannot change, at this path.
    View(PathBuf),
    /// In the scratch directory: its path there, and the one that the command sees.
    Scratch {
        /// Outside.
        outside: PathBuf,
        /// Inside.
        inside: PathBuf,
    },
}

impl LibraryPlace {
    /// Its place in a run with this view and this scratch directory.
    pub fn of(layout: Option<&Layout>, scratch: Option<&Path>) -> Option<LibraryPlace> {
        let own = layout.and_then(|layout| layout.private.iter().find(|private| is_empty(private)));
        match own {
            Some(private) => Some(LibraryPlace::View(private.at.join(NAME))),
            None => scratch.map(|scratch| {
                let outside = scratch.join(NAME);
                let inside = layout.map_or_else(|| outside.clone(), |layout| layout.inside(outside.clone()));
                LibraryPlace::Scratch { outside, inside }
            }),
        }
    }

    /// Its path in the run's view, if it is there: the first process of the run makes it.
    pub fn made_in_view(self) -> Option<PathBuf> {
        match self {
            LibraryPlace::View(path) => Some(path),
            LibraryPlace::Scratch { .. } => None,
        }
    }

    /// The path that the loader is told.
    pub fn inside(&self) -> &Path {
        match self {
            LibraryPlace::View(path) | LibraryPlace::Scratch { inside: path, .. } => path,
        }
    }
}

/// Whether it is a directory that the run has empty.
fn is_empty(private: &renewed::Private) -> bool {
    private.from.is_none()
}
