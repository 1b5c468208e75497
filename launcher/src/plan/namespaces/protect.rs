//! What stays as it is inside a directory that may be changed: files that something outside the sandbox executes or
//! trusts later.

use crate::plan::namespaces::placeholder;
use crate::plan::namespaces::places::Roots;
use crate::sys::{path, plain};
use crate::text::shown;
use std::path::{Path, PathBuf};

/// Something protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Absolute; below the real path of its directory.
    pub path: PathBuf,
    /// Contents of the placeholder file, if the path does not exist; `None` for an empty directory.
    pub placeholder: Option<&'static str>,
    /// Only what exists is protected.
    pub made_freely: bool,
    /// A git configuration that may be replaced by a new one that has been checked.
    pub replaced: bool,
    /// Protected also where it is itself what may be written, and not only something above it.
    pub itself: bool,
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
    /// It is reached through this symbolic link, which may be replaced.
    Behind(PathBuf),
}

impl Protected {
    /// Protected, and cannot be created if missing.
    pub fn new(path: PathBuf) -> Protected {
        Protected { path, placeholder: None, made_freely: false, replaced: false, itself: false }
    }

    /// Protected only if it exists; it may be created.
    pub fn existing(path: PathBuf) -> Protected {
        Protected { made_freely: true, ..Protected::new(path) }
    }

    /// Looks what is there.
    pub fn find(&self, roots: &Roots) -> Found {
        let root = roots.above(&self.path);
        let between = self.path.ancestors().skip(1).take_while(|above| Some(*above) != root);
        let links = between.filter(|above| above.symlink_metadata().is_ok_and(|meta| meta.is_symlink()));
        if let Some(link) = links.last() {
            return Found::Behind(link.to_path_buf());
        }
        if !self.made_freely && placeholder::is_free(&self.path, self.placeholder) {
            return Found::Nothing;
        }
        match self.path.symlink_metadata() {
            Err(error) if path::says_missing(&error) => Found::Nothing,
            Ok(meta) if meta.is_symlink() => Found::Link(self.path.canonicalize().ok()),
            Ok(_) => Found::There,
            // It may be there, and mounting will tell.
            Err(error) => Found::Unseen(plain(&error)),
        }
    }
}

/// What there is at a protected path. Where a link leads there, which the command could replace, that is
/// said, and what it leads to now stays as it is.
pub fn find(protected: Protected, roots: &Roots, warnings: &mut Vec<String>) -> Option<(Protected, Found)> {
    let found = protected.find(roots);
    let Found::Behind(link) = &found else { return Some((protected, found)) };
    if protected.made_freely && !path::is_there(&protected.path) {
        return None;
    }
    warnings.push(replaceable(&protected.path, link));
    let path = path::in_real_directory(&protected.path)?;
    roots.above(&path)?;
    let protected = Protected { path, ..protected };
    let found = protected.find(roots);
    Some((protected, found))
}

/// What is said of a link that the command could replace.
pub fn replaceable(protected: &Path, link: &Path) -> String {
    format!(
        "warning: '{}' is not protected: '{}' is a symbolic link, which the command could replace",
        shown(protected),
        shown(link)
    )
}

/// The other symbolic links on the way from one, whose directory is a real one, to what it leads to.
pub fn links_behind(link: &Path) -> Vec<PathBuf> {
    let mut links = path::way(link).links;
    links.retain(|other| other != link);
    links
}
