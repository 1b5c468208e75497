//! A repository that nobody had protected: how it was at the start, and what belongs to it.

use super::Aftermath;
use super::new::{New, Times};
pub use crate::plan::namespaces::git::shape::OF_WORKTREE;
use crate::plan::namespaces::git::shape::{is_bare, line};
use crate::plan::namespaces::git_config::LONGEST;
use crate::plan::namespaces::placeholder::{self, Shape};
use crate::plan::namespaces::{CONFIG, HOOKS, Repository};
use crate::sys::SyscallError;
use crate::sys::beneath::{self, Ages, Directory};
use crate::sys::file::{self, Identity};
use crate::sys::path::{is_there, way};
use crate::sys::within::is_below;
use sbx_client::report::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// More hooks are not named.
pub const MOST_NAMED: usize = 8;
pub const COMMON: &str = "commondir";
/// Where a repository keeps what it knows of its linked worktrees.
pub const WORKTREES: &str = "worktrees";
/// More linked worktrees are not looked at.
pub const MOST_WORKTREES: usize = 256;

/// A repository as it was at the start.
#[derive(Clone, Debug)]
pub struct Before {
    /// `None` if it had none: nothing of a new one was there.
    pub(super) config: Option<Vec<u8>>,
    /// Whether git took it for a repository.
    was_one: bool,
    own: Option<Identity>,
    pub(super) hooks: Option<Identity>,
    pub(super) worktrees: BTreeMap<OsString, Identity>,
}

impl Before {
    /// As it is now; `None` if it is no repository, or has a configuration that cannot be put back.
    pub fn of(path: &Path) -> Option<Before> {
        let own = Directory::open(path).ok()?;
        let was_one = own.has("HEAD");
        let is_one = was_one || path.ends_with(".git");
        // A file of this name may be any elsewhere, or an earlier command's.
        let config = if is_one { own.read(CONFIG.as_ref(), LONGEST).ok()? } else { None };
        is_one.then(|| Before {
            config,
            was_one,
            own: file::identity(own.as_fd()).ok(),
            hooks: file::identity_of(own.as_fd(), HOOKS.as_ref(), false).ok(),
            worktrees: identities(&own).unwrap_or_default(),
        })
    }

    /// Whether this directory is the one of then.
    pub fn is_it(&self, now: &Directory) -> bool {
        self.own.is_some_and(|own| file::identity(now.as_fd()).is_ok_and(|now| own.is(now)))
    }

    pub(super) fn is_whole(&self) -> bool {
        self.config.is_some() || self.was_one
    }
}

/// The directories of a repository's linked worktrees that can be listed, with their places and what is new in them.
pub fn linked(own: &Directory, new: New) -> Vec<(PathBuf, Directory, New)> {
    let at = Path::new(WORKTREES);
    let Ok(all) = own.below(at) else { return Vec::new() };
    let in_all = new.within(own, at.as_os_str());
    let names = all.names_like(MOST_WORKTREES, |_| true).unwrap_or_default().0;
    let opened = |name: OsString| {
        let worktree = all.below(Path::new(&name)).ok()?;
        Some((at.join(&name), worktree, in_all.within(&all, &name)))
    };
    names.into_iter().filter_map(opened).collect()
}

/// The directories of a repository's linked worktrees.
fn identities(own: &Directory) -> Result<BTreeMap<OsString, Identity>, SyscallError> {
    let all = own.below(Path::new(WORKTREES))?;
    let (names, _) = all.names_like(MOST_WORKTREES, |_| true)?;
    let known = |name: OsString| file::identity_of(all.as_fd(), &name, false).ok().map(|found| (name, found));
    Ok(names.into_iter().filter_map(known).collect())
}

/// Whether a file is missing, or its text is of some kind. What cannot be read is not.
pub fn is_absent_or(directory: &Directory, name: &str, kind: impl FnOnce(&[u8]) -> bool) -> bool {
    directory.read(name.as_ref(), LONGEST).is_ok_and(|text| text.is_none_or(|text| kind(&text)))
}

/// Whether a directory is where git keeps what it knows of a linked worktree.
pub fn is_worktree(root: &Directory, place: &Path) -> bool {
    let above = place.parent().and_then(Path::file_name);
    above.is_some_and(|name| name == WORKTREES) && root.place(place).is_ok_and(|own| own.has(COMMON))
}

/// Whether this path is all that a file says: git takes nothing off but the ends of lines.
pub fn leads_to(text: &[u8], place: &str) -> bool {
    line(text) == Path::new(place)
}

/// What hooks and configuration of a repository lead to, as far as that may have been changed and is not `held`:
/// scripts, more configuration. A file is passed over that is the same in the working tree beside the repository: a new
/// linked worktree has the hooks of the tree.
pub fn led_to(
    of_git: Repository,
    own: &Path,
    workspace: &Path,
    times: Times,
    held: impl Fn(&Path) -> bool,
) -> Vec<Bytes> {
    let elsewhere = of_git.protected.into_iter().map(|protected| way(&protected.path).real);
    let elsewhere = elsewhere.filter(|path| is_below(path, workspace));
    let is_changed = |path: &Path| path.symlink_metadata().is_ok_and(|meta| is_since(&meta, times.since));
    let within = |path: PathBuf| {
        let entries = path.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        [path].into_iter().chain(entries)
    };
    let inside = of_git.hooks_inside;
    let all = elsewhere.filter(|path| !path.starts_with(own) && !path.ends_with(".git"));
    let all = all.chain(inside).flat_map(within);
    let is_new =
        |path: &PathBuf| path.is_file() && is_changed(path) && !held(path) && !is_as_in_tree(own, path);
    let mut changed = BTreeSet::new();
    for path in all.filter(is_new) {
        changed.insert(path);
        if changed.len() > MOST_NAMED {
            changed.pop_last();
        }
    }
    changed.iter().map(|path| path.as_path().into()).collect()
}

/// Whether something has changed since a time.
pub fn is_since(meta: &Metadata, since: SystemTime) -> bool {
    let nanoseconds = u32::try_from(meta.ctime_nsec()).unwrap_or_default();
    beneath::at(meta.ctime(), nanoseconds) >= since
}

/// Whether a file of a linked worktree is the same as that of the working tree that the repository is in.
fn is_as_in_tree(own: &Path, path: &Path) -> bool {
    let Some(tree) = own.parent().filter(|_| own.ends_with(".git")) else { return false };
    let top = path.ancestors().skip(1).find(|above| above.join(".git").is_file());
    let below = top.filter(|top| *top != tree).and_then(|top| path.strip_prefix(top).ok());
    let read = |path: &Path| {
        Directory::open(path.parent().unwrap_or(path))?.read(path.file_name().unwrap_or_default(), LONGEST)
    };
    let same = |below| Some(read(path).ok()?? == read(&tree.join(below)).ok()??);
    below.and_then(same).unwrap_or(false)
}

/// When an entry came to be and was last changed.
pub fn ages(root: &Directory, place: &Path) -> Result<Ages, SyscallError> {
    root.place(place.parent().unwrap_or(Path::new("")))?.ages(place.file_name().unwrap_or_default())
}

impl Aftermath {
    /// Whether later runs take the workspace for a repository by its new configuration, and protect that, whoever wrote
    /// it.
    pub(super) fn has_become_bare(&self) -> bool {
        self.absent.contains(&Path::new(""))
            && self.root.has_changed(CONFIG.as_ref(), self.since)
            && placeholder::is_free(&self.workspace.join(".git"), Shape::Directory)
            && is_bare(&self.workspace)
    }

    /// The directories of hooks in a repository that a relative `core.hooksPath` leads to, by their places there.
    pub(super) fn hooks_inside(&self, own: &Path) -> Vec<PathBuf> {
        let all = Repository::of_one(own, None, self.home.as_deref()).hooks_inside;
        let places = all.iter().filter(|hooks| is_there(hooks) && !self.holds(hooks));
        places.filter_map(|hooks| Some(hooks.strip_prefix(own).ok()?.to_path_buf())).collect()
    }
}
