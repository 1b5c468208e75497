//! Protected files that are others when the run has ended, or have changed. A mount goes with its file: between the
//! moment when something outside replaces the file and the moment when the new one is protected, the command could
//! write to it. And it holds only who comes by its path: another run, which has no such mount, may hand over a
//! directory.

use super::repository::{MOST_NAMED, OF_WORKTREE, is_since};
use super::{Aftermath, Look};
use crate::enforce::aside::is_aside;
use crate::plan::namespaces::git::shape::is_no_hook;
use crate::plan::namespaces::git_config;
use crate::plan::namespaces::placeholder::{Shape, is_free};
use crate::plan::namespaces::{CONFIG, HOOKS, Layout};
use crate::supervise::handlers::git_config::harmless::{self, Harm};
use crate::sys::beneath::{self, Directory};
use crate::sys::file;
use crate::sys::number::FileNumber;
use crate::sys::path::is_there;
use crate::text::shown;
use sbx_client::report::{Bytes, Finding, FindingKind};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How many entries of one protected directory are looked at.
const MOST_LOOKED_AT: usize = 4096;
/// More hooks that came are put aside with their directory.
const MOST_CAME: usize = 256;

/// Something protected, as it was at the start.
pub struct Kept {
    path: PathBuf,
    identity: Identity,
    /// Of a configuration of git's, which git may replace.
    text: Option<Vec<u8>>,
    /// What is in a directory of hooks.
    hooks: Option<BTreeSet<OsString>>,
}

impl Aftermath {
    /// Looks at what mounts held. A hook that came meanwhile is put aside: git would execute it without asking. Nobody
    /// can tell whether the user made it.
    pub(super) fn look_at_kept(&self, look: &mut Look) {
        let stands_in = |path: &Path| self.layout.as_ref().is_some_and(|layout| layout.stands_in(path));
        for kept in &self.kept {
            let Some(mut finding) = kept.finding(self, stands_in, look) else { continue };
            let aside = kept.put_hooks_aside(look);
            finding.put_aside = aside.iter().take(MOST_NAMED).map(|aside| aside.as_path().into()).collect();
            finding.names.truncate(MOST_NAMED);
            look.outcome.findings.push(finding);
        }
        self.look_at_placeholders(look);
    }

    /// Names the directories that were to keep a name from being made, and that have something in them.
    fn look_at_placeholders(&self, look: &mut Look) {
        let all = self.layout.iter().flat_map(|layout| &layout.placeholders);
        for (path, shape) in all.filter(|(_, shape)| **shape == Shape::Directory) {
            let is_written = path.symlink_metadata().is_ok_and(|meta| {
                let made = meta.created().ok();
                meta.is_dir() && made.is_none_or(|made| meta.modified().is_ok_and(|written| written > made))
            });
            if is_written && !is_free(path, *shape) {
                look.found_file(path, FindingKind::FileMade, Vec::new(), None);
            }
        }
    }
}

/// What mounts hold in a run.
pub fn before(layout: &Layout) -> Vec<Kept> {
    // What stands there for the run only may be another run's, which is about to remove it.
    let files = layout.read_only.iter().chain(layout.links.keys()).filter(|path| !layout.stands_in(path));
    let kept = |path: &PathBuf| {
        let meta = path.symlink_metadata().ok()?;
        let is_within = |own: Option<&Path>| layout.configs.iter().any(|config| own == Some(config));
        let of_worktree = || is_within(path.parent()) || is_within(path.ancestors().nth(3));
        let of_git = path.ends_with(CONFIG) && is_within(path.parent())
            || path.ends_with(OF_WORKTREE) && of_worktree();
        let text = of_git.then(|| git_config::read(path)).flatten();
        let hooks = (path.ends_with(HOOKS) && meta.is_dir()).then(|| hooks(path));
        Some(Kept { path: path.clone(), identity: identity(&meta), text, hooks })
    };
    files.filter_map(kept).collect()
}

/// What is in a directory of hooks.
fn hooks(directory: &Path) -> BTreeSet<OsString> {
    let names = directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| !is_no_hook(name)).collect()
}

/// Its number, and the time of birth where the file system knows it: an inode's number is used again.
type Identity = (FileNumber, Option<SystemTime>);

fn identity(meta: &Metadata) -> Identity {
    (FileNumber::of(meta), meta.created().ok())
}

impl Kept {
    /// What to say of it at the end. `is_ours` tells what stands there for the run only.
    fn finding(&self, run: &Aftermath, is_ours: impl Fn(&Path) -> bool, look: &mut Look) -> Option<Finding> {
        let meta = self.path.symlink_metadata().ok()?;
        let since = run.precisely_since;
        let mut names = Vec::new();
        match &self.text {
            // A configuration is compared in any case.
            Some(before) => {
                let now = read(&self.path)?;
                match harmless::check(before, &now) {
                    Ok(()) => return None,
                    Err(_) if now == *before => return None,
                    Err(Harm::Variable(key)) => names.push(key[..].into()),
                    Err(Harm::Unreadable) => {}
                }
            }
            None if identity(&meta) != self.identity => {}
            None if meta.is_dir() => {
                let (changed, is_all) = changed_in(&self.path, since, is_ours);
                names = changed;
                if !is_all {
                    look.outcome.failures.push(format!(
                        "cannot tell whether more has changed in '{}': it has more than {MOST_LOOKED_AT} entries",
                        shown(&self.path)
                    ));
                }
                // What comes changes the directory too. A hook counts that came in the tick of the start, too.
                let has_new =
                    || is_since(&meta, run.since) && self.came().is_some_and(|(_, came)| !came.is_empty());
                if names.is_empty() && !has_new() {
                    return None;
                }
            }
            None if is_since(&meta, since) => {}
            None => return None,
        }
        let kind = FindingKind::FileReplaced;
        Some(Finding { path: self.path.as_path().into(), kind, names, put_aside: Vec::new() })
    }

    /// Puts aside the hooks that came, or, where these are many, the directory. Returns the new names.
    fn put_hooks_aside(&self, look: &mut Look) -> Vec<PathBuf> {
        let Some((hooks, came)) = self.came().filter(|(_, came)| !came.is_empty()) else { return Vec::new() };
        let (above, name) = (self.path.parent(), self.path.file_name().unwrap_or_default());
        if came.len() <= MOST_CAME {
            let put = |name: &OsString| look.put_aside(&hooks, name.as_ref(), &self.path.join(name));
            return came.iter().filter_map(put).collect();
        }
        let Some(above) = above.and_then(held) else { return Vec::new() };
        let aside = look.put_aside(&above, name.as_ref(), &self.path);
        // Without one, git could not change the configuration in later runs.
        let _ = file::make_directory(above.as_fd(), name, 0o755);
        aside.into_iter().collect()
    }

    /// The directory of hooks, and those that were not there at the start. What was put aside is none.
    fn came(&self) -> Option<(Directory, Vec<OsString>)> {
        let before = self.hooks.as_ref()?;
        let hooks = held(&self.path)?;
        let is_new = |name: &OsStr| !is_no_hook(name) && !before.contains(name) && !is_aside(name);
        let (mut came, _) = hooks.names_like(usize::MAX, is_new).ok()?;
        came.sort();
        Some((hooks, came))
    }
}

/// A directory, if no link leads there by now: what is put aside in it would be somebody else's.
fn held(path: &Path) -> Option<Directory> {
    Directory::open(Path::new("/")).and_then(|root| root.below(beneath::from_root(path))).ok()
}

/// What has changed in a directory, and whether that is all: a mount does not hold it for who got the directory from
/// another run.
fn changed_in(top: &Path, since: SystemTime, is_ours: impl Fn(&Path) -> bool) -> (Vec<Bytes>, bool) {
    let is_skipped =
        |path: &Path| is_ours(path) || top.ends_with(HOOKS) && path.file_name().is_some_and(is_no_hook);
    let mut left = MOST_LOOKED_AT;
    let mut all = vec![top.to_path_buf()];
    let (mut changed, mut is_all) = (BTreeSet::new(), true);
    'all: while let Some(directory) = all.pop() {
        let entries = directory.read_dir().into_iter().flatten().flatten();
        for entry in entries.filter(|entry| !is_skipped(&entry.path())) {
            let Some(rest) = left.checked_sub(1) else {
                is_all = false;
                break 'all;
            };
            left = rest;
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                all.push(entry.path());
            } else if is_since(&meta, since) {
                changed.insert(entry.path());
            }
        }
    }
    let below = changed.iter().filter_map(|path| path.strip_prefix(top).ok());
    (below.map(Into::into).collect(), is_all)
}

/// A configuration of now; empty if it cannot be read as one.
fn read(path: &Path) -> Option<Vec<u8>> {
    let name = path.file_name()?;
    let text = Directory::open(path.parent()?).and_then(|own| own.read(name, git_config::LONGEST));
    is_there(path).then(|| text.ok().flatten().unwrap_or_default())
}
