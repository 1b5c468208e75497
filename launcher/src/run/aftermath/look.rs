//! What a look at the workspace has found so far.

use super::index;
use super::new::New;
use super::recorded::Looked;
use super::remotes::Followed;
use super::submodules::Submodules;
use super::told::{Seen, Told, Unprotected};
use crate::enforce::aside::set_aside_below;
use crate::sys::SyscallError;
use crate::sys::beneath::Directory;
use crate::text::shown;
use sbx_client::report::{Bytes, Finding, FindingKind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A look under way.
pub struct Look {
    pub outcome: Told,
    pub seen: Seen,
    pub found: Unprotected,
    pub indexes: Looked,
    /// The submodules that indexes name.
    pub submodules: Submodules,
    /// How many files and links led to what is looked at.
    pub led: usize,
    pub followed: Followed,
    /// What has been put aside.
    pub aside: BTreeSet<PathBuf>,
}

/// A repository that is looked at.
pub struct Opened<'a> {
    pub own: &'a Directory,
    /// Its place in the workspace.
    pub place: &'a Path,
    pub path: &'a Path,
    /// What of git's own files may have been changed.
    pub new: New,
}

impl Look {
    /// One that has seen nothing.
    pub fn new() -> Look {
        Look {
            outcome: Told::new(),
            seen: Seen::default(),
            found: Unprotected::default(),
            indexes: Looked { left: index::MOST_READ, has_new: false, has_unseen: false },
            submodules: Submodules::default(),
            led: 0,
            followed: Followed::default(),
            aside: BTreeSet::new(),
        }
    }

    /// Puts something aside, and tells where that fails. `path` is its whole path.
    pub fn put_aside(&mut self, below: &Directory, place: &Path, path: &Path) -> Option<PathBuf> {
        let aside = self.tell_failure(path, set_aside_below(below, place))?;
        self.aside.insert(path.with_file_name(aside.file_name()?));
        Some(aside)
    }

    /// Names a file that is made or changed, and where it is if it was put aside: by whole paths.
    pub fn found_file(&mut self, path: &Path, kind: FindingKind, names: Vec<Bytes>, aside: Option<PathBuf>) {
        let put_aside = aside.iter().filter_map(|aside| Some(path.with_file_name(aside.file_name()?)));
        let put_aside = put_aside.map(|aside| aside.as_path().into()).collect();
        self.outcome.findings.push(Finding { path: path.into(), kind, names, put_aside });
    }

    pub fn tell_failure(&mut self, path: &Path, aside: Result<PathBuf, SyscallError>) -> Option<PathBuf> {
        let failed =
            |failed| self.outcome.failures.push(format!("cannot put aside '{}': {failed}", shown(path)));
        aside.map_err(failed).ok()
    }
}
