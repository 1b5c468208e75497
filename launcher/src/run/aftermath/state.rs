//! What git goes on with after a stop: the files of a merge, a rebase, a cherry-pick; and hg's transactions. Commands
//! may write them, for git in the sandbox stops too. git and prompts of shells believe what stands there: git copies
//! the files that `MERGE_RR` names and starts the program of a strategy, prompts hand numbers to the shell and names
//! of objects to `git log`, and a link has git read or write another file. So each file has to have the form that git
//! gives it, whatever it says.

mod strategy;

use super::index::is_odd;
use super::mercurial;
use super::new::New;
use super::repository::{MOST_NAMED, linked};
use super::{Aftermath, Look, Opened};
use crate::enforce::aside::is_aside;
use crate::plan::namespaces::CONFIG;
use crate::plan::namespaces::git::shape::{entry_of, files_of, led_to};
use crate::plan::namespaces::git_config::settings;
use crate::sys::SyscallError;
use crate::sys::beneath::{Directory, Entry, LISTING};
use crate::sys::file::{self, Identity};
use crate::sys::within::is_within;
use sbx_client::report::{Finding, FindingKind};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use strategy::{SHEET, STRATEGY};

/// Longer files than git writes there.
const LONGEST: u64 = 1 << 20;
/// What more there is in one directory is taken with the directory.
const FEW: usize = 16;
/// The conflicts of a merge: a name and a path each. git reads the files, and keeps copies of them.
const CONFLICTS: &str = "MERGE_RR";
/// What `git am` passes on to each patch.
const OPTIONS: &str = "apply-opt";

/// Whether a text has the form that git gives it.
type HasForm = fn(&[u8]) -> bool;

/// What git goes on with, in a directory of its own.
struct State {
    name: &'static str,
    /// The files in it that consist of numbers and names of objects.
    of_objects: &'static [&'static str],
    /// Others by which git may execute or write something.
    of_words: &'static [(&'static str, HasForm)],
}

impl State {
    /// All files in it that have a form.
    fn forms(&self) -> impl Iterator<Item = (&'static str, HasForm)> {
        let of_objects = self.of_objects.iter().map(|name| (*name, is_hex as HasForm));
        of_objects.chain(self.of_words.iter().copied())
    }
}

const STATES: [State; 3] = [
    State {
        name: "rebase-merge",
        of_objects: &[
            "msgnum",
            "end",
            "onto",
            "orig-head",
            "amend",
            "stopped-sha",
            "squash-onto",
            "autostash",
            "rewritten-list",
            "rewritten-pending",
        ],
        of_words: &[(STRATEGY, strategy::is_own)],
    },
    State {
        name: "rebase-apply",
        of_objects: &[
            "next",
            "last",
            "onto",
            "orig-head",
            "original-commit",
            "rewritten",
            "abort-safety",
            "autostash",
        ],
        // Old versions of git kept a strategy here as well.
        of_words: &[(STRATEGY, strategy::is_own), (OPTIONS, are_for_apply)],
    },
    State {
        name: "sequencer",
        of_objects: &["head", "abort-safety"],
        of_words: &[(SHEET, strategy::is_sheet)],
    },
];

impl Aftermath {
    /// Puts aside what has not the form that git gives it.
    pub(super) fn look_at_states(&self, &Opened { own, path, new, .. }: &Opened<'_>, look: &mut Look) {
        let odd = find(own, path, new, &|path| self.shows(path));
        self.put_states_aside(own, path, &odd, look);
    }

    /// The same of conflicts in a working tree that leads to a repository: any file `.git` makes one.
    pub(super) fn look_at_conflicts(&self, entry: &Path, place: &Path, look: &mut Look) {
        let Ok(own) = self.root.below(place) else { return };
        let tree = entry.parent().map(|tree| self.workspace.join(tree));
        if !are_own(&own, New::All, tree, &|path| self.shows(path)) {
            self.put_states_aside(&own, &self.workspace.join(place), &[CONFLICTS.into()], look);
        }
    }

    /// Whether the command could read a file of a working tree.
    fn shows(&self, path: &Path) -> bool {
        let is_denied = || {
            self.denied.iter().any(|denied| is_within(path, denied))
                || self.layout.as_ref().is_some_and(|layout| layout.denies(path))
        };
        is_within(path, &self.workspace) && !is_denied()
    }

    fn put_states_aside(&self, own: &Directory, path: &Path, odd: &[PathBuf], look: &mut Look) {
        let put_aside: Vec<PathBuf> =
            odd.iter().filter_map(|name| look.put_aside(own, name, &path.join(name))).collect();
        look.found_states(path, odd, &put_aside);
    }
}

impl Look {
    /// Adds what git never writes in a repository, and where that is now.
    pub(super) fn found_states(&mut self, path: &Path, odd: &[PathBuf], put_aside: &[PathBuf]) {
        if odd.is_empty() {
            return;
        }
        let named =
            |paths: &[PathBuf]| paths.iter().take(MOST_NAMED).map(|path| path.as_path().into()).collect();
        self.outcome.findings.push(Finding {
            // A repository in the place of the workspace has no name in it.
            path: path.components().collect::<PathBuf>().as_path().into(),
            kind: FindingKind::StateChanged,
            names: named(odd),
            put_aside: named(put_aside),
        });
    }
}

/// What git never writes of the states of a repository and its linked worktrees, by paths from there. Links count that
/// are new.
fn find(own: &Directory, path: &Path, new: New, shows: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut scan = Scan { shows, odd: mercurial::astray(own, path, new) };
    scan.look_into(own, new, Path::new(""), path);
    for (place, worktree, new) in linked(own, new) {
        scan.look_into(&worktree, new, &place, &path.join(&place));
    }
    scan.odd.sort();
    scan.odd.dedup();
    scan.odd
}

/// A look under way.
struct Scan<'s> {
    /// Whether the command could read a file.
    shows: &'s dyn Fn(&Path) -> bool,
    odd: Vec<PathBuf>,
}

/// What is odd in a directory: the directory itself where that is much, for git makes nothing odd there.
#[derive(Default)]
struct Strays {
    names: Vec<PathBuf>,
    are_many: bool,
}

impl Strays {
    fn add(&mut self, name: impl Into<PathBuf>) {
        self.are_many |= self.names.len() == FEW;
        self.names.extend((!self.are_many).then(|| name.into()));
    }
}

impl Scan<'_> {
    /// A directory of git's, its place in the repository and its path.
    fn look_into(&mut self, own: &Directory, new: New, place: &Path, path: &Path) {
        for state in &STATES {
            self.take(place.join(state.name), in_state(own, state));
        }
        let are_own = are_own(own, new, tree_of(path), self.shows);
        self.odd.extend((!are_own).then(|| place.join(CONFLICTS)));
    }

    fn take(&mut self, at: PathBuf, odd: Option<Strays>) {
        match odd {
            Some(odd) if !odd.are_many => self.odd.extend(odd.names.into_iter().map(|name| at.join(name))),
            Some(_) => self.odd.push(at),
            None => {}
        }
    }
}

fn in_state(own: &Directory, state: &State) -> Option<Strays> {
    let mut odd = Strays::default();
    let listed = opened(own, state.name.as_ref())?.and_then(|directory| {
        for (name, has_form) in state.forms() {
            let is_plain = |text: Option<Vec<u8>>| text.is_none_or(|text| has_form(&text));
            if !directory.read(name.as_ref(), LONGEST).is_ok_and(is_plain) {
                odd.add(name);
            }
        }
        if !strategy::takes_options(&directory) {
            odd.add(strategy::OPTIONS);
        }
        directory.each_entry(&mut Vec::with_capacity(LISTING), |name, entry| {
            let is_known = state.forms().any(|(known, _)| name == known);
            let is_plain = entry == Entry::Directory
                || entry == Entry::Other && identity(&directory, name).is_none_or(Identity::is_regular);
            // git reads nothing of such a name.
            if !is_known && !is_plain && !is_aside(name) {
                odd.add(name);
            }
        })
    });
    // A link, or closed.
    odd.are_many |= listed.is_err();
    Some(odd)
}

/// A directory; `None` if there is nothing.
fn opened(own: &Directory, name: &OsStr) -> Option<Result<Directory, SyscallError>> {
    match own.below(Path::new(name)) {
        Err(failed) if failed.errno() == libc::ENOENT => None,
        found => Some(found),
    }
}

fn identity(directory: &Directory, name: &OsStr) -> Option<Identity> {
    file::identity_of(directory.as_fd(), name, false).ok()
}

fn is_link(directory: &Directory, name: &OsStr) -> bool {
    identity(directory, name).is_some_and(Identity::is_link)
}

/// Whether there are only numbers and names of objects in a text.
fn is_hex(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace())
}

/// Whether these are flags that `git am` passes on to `git apply`, each in quotes. Others have that write files.
fn are_for_apply(text: &[u8]) -> bool {
    const KNOWN: [&[u8]; 10] = [
        b"--whitespace=",
        b"--directory=",
        b"--exclude=",
        b"--include=",
        b"--reject'",
        b"--ignore-space-change'",
        b"--ignore-whitespace'",
        b"--unidiff-zero'",
        b"-C",
        b"-p",
    ];
    let mut flags = text.trim_ascii().split(u8::is_ascii_whitespace).filter(|flag| !flag.is_empty());
    flags.all(|flag| {
        let flag = flag.strip_prefix(b"'").unwrap_or(flag);
        KNOWN.iter().any(|known| flag.starts_with(known))
    })
}

/// Whether the paths of conflicts are files of the working tree. git does not look. What the command could not read, it
/// cannot have merged: a new list would have git copy that to where the command reads it.
fn are_own(own: &Directory, new: New, tree: Option<PathBuf>, shows: &dyn Fn(&Path) -> bool) -> bool {
    let text = match own.read(CONFLICTS.as_ref(), LONGEST) {
        Ok(text) => text.unwrap_or_default(),
        Err(_) => return false,
    };
    let Some(paths) = paths(&text) else { return false };
    if paths.is_empty() {
        return true;
    }
    // Without the working tree, nobody can tell.
    let Some(tree) = tree else { return false };
    let Ok(held) = Directory::open(&tree) else { return false };
    let is_new = new.is(own, CONFLICTS.as_ref());
    paths.iter().map(|path| Path::new(OsStr::from_bytes(path))).all(|path| {
        let is_shown = || !is_new || shows(&tree.join(path));
        !is_odd(path.as_os_str().as_bytes(), 0) && !leads_away(&held, path) && is_shown()
    })
}

/// The paths in a list of conflicts: `ID`, a tab, a path and a zero each; `None` if it is none.
fn paths(text: &[u8]) -> Option<Vec<&[u8]>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let records = text.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    let paths = records.map(|record| record.get(record.iter().position(|byte| *byte == b'\t')? + 1..));
    paths.collect()
}

/// Whether a link is on the way to a path, or in its place.
pub fn leads_away(tree: &Directory, path: &Path) -> bool {
    match tree.place(path.parent().unwrap_or(Path::new(""))) {
        Ok(above) => path.file_name().is_some_and(|name| is_link(&above, name)),
        Err(failed) => failed.errno() != libc::ENOENT,
    }
}

/// Where the files of a git directory are. That a linked worktree names a place says nothing, if nothing there leads
/// back.
pub fn tree_of(path: &Path) -> Option<PathBuf> {
    let of_settings = || files_of(path, &settings(&path.join(CONFIG)).ok()?);
    let beside = || path.ends_with(".git").then(|| path.parent().map(Path::to_path_buf)).flatten();
    match entry_of(path) {
        Some(entry) => {
            let leads_back = led_to(&entry)?.canonicalize().is_ok_and(|own| own == path);
            entry.parent().filter(|_| leads_back).map(Path::to_path_buf)
        }
        None => of_settings().or_else(beside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_conflicts_has_an_end() {
        let paths = |text: &'static [u8]| paths(text);
        assert_eq!(paths(b""), Some(Vec::new()));
        assert_eq!(paths(b"12\ta\0ab.1\tb/c\td\0"), Some(vec![&b"a"[..], b"b/c\td"]));
        for text in [&b"12\ta"[..], b"12\0", b"12\ta\0x", b"\0"] {
            assert_eq!(paths(text), None, "{text:?}");
        }
    }

    #[test]
    fn states_have_names_and_numbers_of_their_own() {
        assert!(is_hex(b"12\n") && is_hex(b"") && is_hex(b"1a2b 3c4d\n5e6f 7a8b\n"));
        assert!(!is_hex(b"$(x)") && !is_hex(b"--output=x 1a2b") && !is_hex(b"1\0"));
        assert!(are_for_apply(b"") && are_for_apply(b" '--whitespace=fix' '-p2' '--reject'\n"));
        assert!(!are_for_apply(b" '--build-fake-ancestor=/x'") && !are_for_apply(b"'-p1' '--rejected'"));
    }
}
