//! What git executes of a repository that nobody had protected, and how that is put aside.

use super::Aftermath;
use super::mercurial::is_plain_hgrc;
use super::new::{New, Times};
use super::remotes;
use super::worktrees;
use crate::enforce::aside::set_aside;
use crate::plan::files::tidy;
use crate::plan::namespaces::git::shape::{is_bare, is_no_hook, is_within_git, line};
use crate::plan::namespaces::git::{OF_MERCURIAL, SHARED};
use crate::plan::namespaces::git_config::LONGEST;
use crate::plan::namespaces::placeholder::{self, Shape};
use crate::plan::namespaces::{CONFIG, HOOKS, Repository, Setting};
use crate::supervise::handlers::git_config::harmless::{self, Harm};
use crate::supervise::handlers::git_config::sift::{Sifted, address_here, is_of_partial_clone, sift};
use crate::sys::SyscallError;
use crate::sys::beneath::{self, Ages, Directory, from_root};
use crate::sys::file::{self, Identity};
use crate::sys::path::{is_there, joined_below, says_missing};
use crate::sys::within::is_below;
use sbx_client::report::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// More hooks are not named.
pub const MOST_NAMED: usize = 8;
pub const COMMON: &str = "commondir";
pub const OF_WORKTREE: &str = "config.worktree";
/// Where a repository keeps what it knows of its linked worktrees.
pub const WORKTREES: &str = "worktrees";
/// Variables that are not named, and hooks that are not put aside one by one, are more.
const MOST_VARIABLES: usize = 64;
const MOST_HOOKS: usize = 256;
/// More linked worktrees are not looked at.
pub const MOST_WORKTREES: usize = 256;

/// A repository as it was at the start.
#[derive(Clone, Debug)]
pub struct Before {
    /// `None` if it had none: nothing of a new one was there.
    config: Option<Vec<u8>>,
    /// Whether git took it for a repository.
    was_one: bool,
    own: Option<Identity>,
    hooks: Option<Identity>,
    worktrees: BTreeMap<OsString, Identity>,
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

    fn is_whole(&self) -> bool {
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

/// Whether git may push to an address on this machine: it runs the hooks of a repository there.
pub type MayPush<'a> = &'a dyn Fn(&[u8]) -> bool;

/// What is known of a repository.
#[derive(Clone, Copy, Default)]
pub struct Known<'a> {
    /// How it was at the start.
    pub before: Option<&'a Before>,
    /// Whether it was not there then.
    pub was_absent: bool,
    /// The working tree that leads to it, where that is elsewhere.
    pub tree: Option<&'a Path>,
    /// Whether the run had a network, and could send by itself what git outside may be made to send.
    pub had_network: bool,
    /// Where it may push to.
    pub may_push: Option<MayPush<'a>>,
}

/// A repository with what git would act on.
#[derive(Debug, Default)]
pub struct Judged {
    /// Whether the command made it.
    pub is_made: bool,
    /// Configurations, each with its harmless part and the variables that are not.
    configs: Vec<(&'static str, Sifted)>,
    /// Executable hooks.
    hooks: Vec<OsString>,
    /// Files that have no harmless part, and directories of linked worktrees that lead elsewhere.
    whole: Vec<PathBuf>,
}

/// Looks at a repository; `None` if it is only a file that leads to one.
pub fn judge(
    root: &Directory,
    place: &Path,
    Times { began, since }: Times,
    Known { before, was_absent, tree, had_network, may_push }: Known<'_>,
) -> Result<Option<Judged>, SyscallError> {
    let own = match root.below(place) {
        Ok(own) => own,
        Err(failed) if says_missing(&failed.cause) => return Ok(None),
        Err(failed) => return Err(failed),
    };
    // One may have been made in a directory that was there.
    let born = |name: &str| own.ages(name.as_ref()).ok()?.born;
    let is_made =
        was_absent || [".", "objects"].iter().any(|name| born(name).is_some_and(|born| born >= began));
    // It may have become one by what it got, or by its name: a clone of somebody else's brings all parts but a `.git`.
    let was_whole = before.is_some_and(Before::is_whole);
    let is_other = || before.is_some_and(|before| !before.is_it(&own));
    let is_joined = || !was_whole && own.has_changed(OsStr::new(""), since);
    let new = if is_made || is_other() || is_joined() { New::All } else { New::Since(since) };
    let mut judged = Judged { is_made, ..Judged::default() };
    let fresh = |name: &str| new.is(&own, name.as_ref());
    // By what is there and not by its name: a `.git` may lead to a directory of any name.
    let harmful = |name: &&&str| {
        fresh(name) && !is_absent_or(&own, name, |text| **name != SHARED && is_plain_hgrc(text))
    };
    judged.whole = OF_MERCURIAL.iter().filter(harmful).map(PathBuf::from).collect();
    for name in [CONFIG, OF_WORKTREE].into_iter().filter(|name| fresh(name)) {
        let before = before.filter(|_| name == CONFIG).and_then(|before| before.config.as_ref());
        let sifted = match (own.read(name.as_ref(), LONGEST), before) {
            (Ok(None), _) => continue,
            (Ok(Some(text)), Some(before)) => compared(before, &text),
            (Ok(Some(text)), None) => sift(&text, |setting| {
                is_own_worktree(root, setting, place, tree)
                    || had_network && is_of_partial_clone(setting)
                    || address_here(setting)
                        .zip(may_push)
                        .is_some_and(|(address, may_push)| may_push(address))
            })
            .unwrap_or_else(|_| unreadable(name)),
            // A link, or no file.
            (Err(_), before) => Sifted { kept: before.cloned().unwrap_or_default(), ..unreadable(name) },
        };
        // By another name of the file, a later command could write what mounts protect by this one.
        let has_names = own.ages(name.as_ref()).is_ok_and(|ages| ages.names > 1);
        let names = (has_names && sifted.harmful.is_empty()).then(|| name.as_bytes().to_vec());
        let harmful = sifted.harmful.iter().cloned().chain(names).collect();
        judged.configs.push((name, Sifted { harmful, ..sifted }));
    }
    judged.configs.retain(|(_, sifted)| !sifted.harmful.is_empty());
    // A linked worktree's repository is looked at by itself.
    let common = if is_worktree(root, place) { "../.." } else { "." };
    if fresh(COMMON) && !is_absent_or(&own, COMMON, |text| leads_to(text, common) || leads_to(text, ".")) {
        judged.whole.push(COMMON.into());
    }
    match file::identity_of(own.as_fd(), HOOKS.as_ref(), false) {
        Ok(found) if !found.is_directory() => {
            judged.whole.extend(fresh(HOOKS).then(|| PathBuf::from(HOOKS)));
        }
        _ => judged.hooks = hooks(&own, new, before)?,
    }
    if judged.hooks.len() > MOST_HOOKS {
        judged.hooks.clear();
        judged.whole.push(HOOKS.into());
    }
    let stayed = |name: &OsStr| {
        let then = before.and_then(|before| before.worktrees.get(name));
        let now = || file::identity_of(own.as_fd(), Path::new(WORKTREES).join(name).as_os_str(), false).ok();
        then.is_some_and(|then| now().is_some_and(|now| then.is(now)))
    };
    judged.whole.extend(worktrees::astray(&own, new, &stayed));
    judged.whole.extend(remotes::files(&own, new));
    Ok(Some(judged))
}

/// The configuration from before, with a variable of the new one that may not change, if there is one.
fn compared(before: &[u8], now: &[u8]) -> Sifted {
    let harmful = match harmless::check(before, now) {
        Ok(()) => Vec::new(),
        Err(Harm::Variable(key)) => vec![key],
        Err(Harm::Unreadable) => unreadable(CONFIG).harmful,
    };
    Sifted { kept: before.to_vec(), harmful }
}

/// A configuration that git would stop at, or read another way than we do, has no harmless part.
fn unreadable(name: &str) -> Sifted {
    Sifted { kept: Vec::new(), harmful: vec![name.as_bytes().to_vec()] }
}

/// Whether a file is missing, or its text is of some kind. What cannot be read is not.
pub fn is_absent_or(directory: &Directory, name: &str, kind: impl FnOnce(&[u8]) -> bool) -> bool {
    directory.read(name.as_ref(), LONGEST).is_ok_and(|text| text.is_none_or(|text| kind(&text)))
}

/// Whether a submodule's repository names a directory of the same working tree as its own, or the one that leads to it.
/// No link is followed there: a command of a later run could have it lead elsewhere.
fn is_own_worktree(root: &Directory, setting: &Setting, place: &Path, tree: Option<&Path>) -> bool {
    let named = || match tree {
        Some(tree) => {
            let named = tidy(&Path::new("/").join(place).join(setting.path()));
            (named == tree).then(|| from_root(&named).to_path_buf())
        }
        None => own_worktree(setting.path(), place),
    };
    setting.is("core", "worktree") && named().is_some_and(|named| root.is_straight(&named))
}

/// Where the files of a submodule are that has its repository at this place, if in the same working tree.
fn own_worktree(path: &Path, place: &Path) -> Option<PathBuf> {
    let top = place.ancestors().find(|above| above.ends_with(".git")).and_then(Path::parent)?;
    let named = joined_below(place, path)?;
    let is_within_other = is_within_git(place.parent().unwrap_or(place));
    (is_within_other && named.starts_with(top) && !is_within_git(&named)).then_some(named)
}

fn hooks(own: &Directory, new: New, before: Option<&Before>) -> Result<Vec<OsString>, SyscallError> {
    let hooks = match own.below(Path::new(HOOKS)) {
        Ok(hooks) => hooks,
        Err(failed) if failed.errno() == libc::ENOENT => return Ok(Vec::new()),
        Err(failed) => return Err(failed),
    };
    // A directory that was moved here brings its hooks along; in the one that was there, each has its own time.
    let now = file::identity(hooks.as_fd())?;
    let stayed = before.and_then(|before| before.hooks).is_some_and(|before| before.is(now));
    let new = if !stayed && new.is(own, HOOKS.as_ref()) { New::All } else { new };
    let is_new = |name: &OsStr| !is_no_hook(name) && new.is(&hooks, name);
    hooks.names_like(MOST_HOOKS + 1, is_new).map(|(names, _)| names)
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
    let elsewhere =
        of_git.protected.into_iter().map(|protected| protected.path).filter(|path| is_below(path, workspace));
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

impl Judged {
    /// Of files that the command has made.
    pub fn of_files(whole: Vec<PathBuf>) -> Judged {
        Judged { is_made: true, whole, ..Judged::default() }
    }

    /// The same, with more files or directories that git would act on if the command made it.
    pub fn with(mut self, of_made: impl FnOnce() -> Vec<PathBuf>) -> Judged {
        if self.is_made {
            self.whole.extend(of_made());
        }
        self
    }

    /// What git would act on, by the names of variables and files.
    pub fn names(&self) -> Vec<Bytes> {
        let variables = self.configs.iter().flat_map(|(_, sifted)| &sifted.harmful).take(MOST_VARIABLES);
        let variables = variables.map(|key| key[..].into());
        let hooks =
            self.hooks.iter().take(MOST_NAMED).map(|name| Path::new(HOOKS).join(name).as_path().into());
        let whole = self.whole.iter().map(|path| path.as_path().into());
        let mut names: Vec<Bytes> = variables.chain(hooks).chain(whole).collect();
        names.dedup();
        names
    }

    /// Renames what git would act on, and leaves the harmless part of configurations, or what was there before. Returns
    /// the new names.
    pub fn put_aside(&self, root: &Directory, place: &Path) -> Result<Vec<PathBuf>, SyscallError> {
        let own = root.below(place)?;
        let mut aside = Vec::new();
        let mut rename = |name: &Path| {
            let directory = own.place(name.parent().unwrap_or(Path::new("")))?;
            let free = set_aside(&directory, name.file_name().unwrap_or_default())?;
            aside.push(name.with_file_name(free));
            Ok::<(), SyscallError>(())
        };
        for (name, sifted) in &self.configs {
            // It may hold a password.
            let old =
                file::open_to_read(own.as_fd(), name.as_ref()).and_then(|old| file::identity(old.as_fd()));
            let mode = old.ok().filter(|old| old.is_regular()).map_or(0o644, |old| old.permissions() & 0o666);
            rename(Path::new(name))?;
            let new = file::create_new(own.as_fd(), name.as_ref(), mode)?;
            file::write_all(new.as_fd(), &sifted.kept)?;
        }
        self.whole.iter().try_for_each(|path| rename(path))?;
        if self.is_made && !self.hooks.is_empty() {
            rename(Path::new(HOOKS))?;
            // Without one, git could not change the configuration in later runs.
            file::make_directory(own.as_fd(), HOOKS.as_ref(), 0o755)?;
        } else {
            self.hooks.iter().try_for_each(|name| rename(&Path::new(HOOKS).join(name)))?;
        }
        Ok(aside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submodule_names_a_directory_of_the_same_working_tree() {
        let is_own =
            |place: &str, worktree: &str| own_worktree(Path::new(worktree), Path::new(place)).is_some();
        assert!(is_own(".git/modules/lib", "../../../lib"));
        assert!(is_own("sub/.git/modules/a/b", "../../../../a/b"));
        for (place, worktree) in [
            (".git", ".."),
            (".git/modules/lib", "/"),
            (".git/modules/lib", "/lib"),
            (".git/modules/lib", "../../hooks"),
            ("sub/.git/modules/lib", "../../../../lib"),
            ("sub/.git/modules/lib", "../../../../../.."),
            ("modules/lib", "../../lib"),
            (".git/modules/lib", "../../../../victim"),
        ] {
            assert!(!is_own(place, worktree), "{place}: {worktree}");
        }
    }
}
