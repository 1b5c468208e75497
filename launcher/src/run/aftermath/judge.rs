//! What git would execute of one repository, and how that is put aside.

use super::mercurial::is_plain_hgrc;
use super::new::{New, Times};
use super::remotes;
use super::repository::{
    Before, COMMON, MOST_NAMED, OF_WORKTREE, WORKTREES, is_absent_or, is_worktree, leads_to,
};
use super::worktrees;
use crate::enforce::aside::set_aside;
use crate::plan::namespaces::git::shape::{is_no_hook, is_within_git};
use crate::plan::namespaces::git::{OF_MERCURIAL, SHARED};
use crate::plan::namespaces::git_config::LONGEST;
use crate::plan::namespaces::{CONFIG, HOOKS, Setting};
use crate::supervise::handlers::git_config::harmless::{self, Harm};
use crate::supervise::handlers::git_config::sift::{Sifted, address_here, is_of_partial_clone, sift};
use crate::sys::SyscallError;
use crate::sys::beneath::{Directory, from_root};
use crate::sys::file;
use crate::sys::path::{joined, joined_below, says_missing};
use sbx_client::report::Bytes;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Variables that are not named, and hooks that are not put aside one by one, are more.
const MOST_VARIABLES: usize = 64;
const MOST_HOOKS: usize = 256;

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
    /// Files that have no harmless part, those of linked worktrees among them.
    whole: Vec<PathBuf>,
}

/// Looks at a repository; `None` if it is only a file that leads to one.
pub fn judge(
    root: &Directory,
    place: &Path,
    times: Times,
    known: Known<'_>,
) -> Result<Option<Judged>, SyscallError> {
    let own = match root.below(place) {
        Ok(own) => own,
        Err(failed) if says_missing(&failed.cause) => return Ok(None),
        Err(failed) => return Err(failed),
    };
    let (is_made, new) = age(&own, times, known);
    let look = Look { root, place, own: &own, new, known };
    let (hooks, replaced) = look.hooks()?;
    let mut whole = look.of_mercurial();
    whole.extend(look.common());
    whole.extend(replaced);
    whole.extend(worktrees::astray(&own, new, &|name| look.has_stayed(name)));
    whole.extend(remotes::files(&own, new));
    Ok(Some(Judged { is_made, configs: look.configs(), hooks, whole }))
}

/// Whether the command made a repository, and what is new in it.
fn age(
    own: &Directory,
    Times { began, since }: Times,
    Known { before, was_absent, .. }: Known<'_>,
) -> (bool, New) {
    // One may have been made in a directory that was there.
    let born = |name: &str| own.ages(name.as_ref()).ok()?.born;
    let is_made =
        was_absent || [".", "objects"].iter().any(|name| born(name).is_some_and(|born| born >= began));
    // It may have become one by what it got, or by its name: a clone of somebody else's brings all parts but a `.git`.
    let was_whole = before.is_some_and(Before::is_whole);
    let is_other = || before.is_some_and(|before| !before.is_it(own));
    let is_joined = || !was_whole && own.has_changed(OsStr::new(""), since);
    let is_new = is_made || is_other() || is_joined();
    (is_made, if is_new { New::All } else { New::Since(since) })
}

/// A repository that is looked at.
struct Look<'a> {
    root: &'a Directory,
    place: &'a Path,
    own: &'a Directory,
    new: New,
    known: Known<'a>,
}

impl Look<'_> {
    fn is_fresh(&self, name: &str) -> bool {
        self.new.is(self.own, name.as_ref())
    }

    /// What Mercurial acts on, by what is there and not by its name: a `.git` may lead to a directory of any name.
    fn of_mercurial(&self) -> Vec<PathBuf> {
        let is_plain =
            |name: &str| is_absent_or(self.own, name, |text| name != SHARED && is_plain_hgrc(text));
        let harmful = |name: &&&str| self.is_fresh(name) && !is_plain(name);
        OF_MERCURIAL.iter().filter(harmful).map(PathBuf::from).collect()
    }

    /// The configurations that hold harm.
    fn configs(&self) -> Vec<(&'static str, Sifted)> {
        let names = [CONFIG, OF_WORKTREE].into_iter().filter(|name| self.is_fresh(name));
        let sifted = names.filter_map(|name| Some((name, self.sifted(name)?)));
        sifted.filter(|(_, sifted)| !sifted.harmful.is_empty()).collect()
    }

    /// A configuration; `None` if it is missing.
    fn sifted(&self, name: &'static str) -> Option<Sifted> {
        let before = self.known.before.filter(|_| name == CONFIG).and_then(|before| before.config.as_ref());
        let sifted = match (self.own.read(name.as_ref(), LONGEST), before) {
            (Ok(text), Some(before)) => compared(before, &text?),
            (Ok(text), None) => {
                sift(&text?, |setting| self.is_harmless(setting)).unwrap_or_else(|_| unreadable(name))
            }
            // A link, or no file.
            (Err(_), before) => Sifted { kept: before.cloned().unwrap_or_default(), ..unreadable(name) },
        };
        // By another name of the file, a later command could write what mounts protect by this one.
        let has_names = self.own.ages(name.as_ref()).is_ok_and(|ages| ages.names > 1);
        let names = (has_names && sifted.harmful.is_empty()).then(|| name.as_bytes().to_vec());
        let harmful = sifted.harmful.iter().cloned().chain(names).collect();
        Some(Sifted { harmful, ..sifted })
    }

    /// Whether a variable that is harmful elsewhere is not in this place, or in this run.
    fn is_harmless(&self, setting: &Setting) -> bool {
        let Known { tree, had_network, may_push, .. } = self.known;
        let address = || address_here(setting).zip(may_push);
        is_own_worktree(self.root, setting, self.place, tree)
            || had_network && is_of_partial_clone(setting)
            || address().is_some_and(|(address, may_push)| may_push(address))
    }

    /// The file that leads to another repository. That of a linked worktree is looked at by itself.
    fn common(&self) -> Option<PathBuf> {
        let common = if is_worktree(self.root, self.place) { "../.." } else { "." };
        let is_usual = |text: &[u8]| leads_to(text, common) || leads_to(text, ".");
        let leads_away = self.is_fresh(COMMON) && !is_absent_or(self.own, COMMON, is_usual);
        leads_away.then(|| COMMON.into())
    }

    /// The hooks one by one, or what holds them if it is no directory or holds too many.
    fn hooks(&self) -> Result<(Vec<OsString>, Option<PathBuf>), SyscallError> {
        let found = file::identity_of(self.own.as_fd(), HOOKS.as_ref(), false);
        if found.is_ok_and(|found| !found.is_directory()) {
            return Ok((Vec::new(), self.is_fresh(HOOKS).then(|| HOOKS.into())));
        }
        let hooks = hooks(self.own, self.new, self.known.before)?;
        Ok(if hooks.len() > MOST_HOOKS { (Vec::new(), Some(HOOKS.into())) } else { (hooks, None) })
    }

    /// Whether a linked worktree is that of the start.
    fn has_stayed(&self, name: &OsStr) -> bool {
        let then = self.known.before.and_then(|before| before.worktrees.get(name));
        let at = Path::new(WORKTREES).join(name);
        let now = || file::identity_of(self.own.as_fd(), at.as_os_str(), false).ok();
        then.is_some_and(|then| now().is_some_and(|now| then.is(now)))
    }
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

/// Whether a submodule's repository names a directory of the same working tree as its own, or the one that leads to it.
/// No link is followed there: a command of a later run could have it lead elsewhere.
fn is_own_worktree(root: &Directory, setting: &Setting, place: &Path, tree: Option<&Path>) -> bool {
    let named = || match tree {
        Some(tree) => {
            let named = joined(&Path::new("/").join(place), setting.path()).filter(|named| named == tree);
            named.map(|named| from_root(&named).to_path_buf())
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

impl Judged {
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
