//! What git goes on with after a stop: the files of a merge, a rebase, a cherry-pick. Commands may write them, for git
//! in the sandbox stops too. git and the prompts of shells believe what stands there: git copies the files that
//! `MERGE_RR` names, prompts hand numbers to the shell and names of objects to `git log`, and a link has git read or
//! write another file. So each file has to have the form that git gives it, whatever it says.

use super::index::is_odd;
use super::repository::{MOST_NAMED, MOST_WORKTREES};
use super::{Aftermath, Look};
use crate::enforce::aside::set_aside_below;
use crate::plan::namespaces::CONFIG;
use crate::plan::namespaces::git::shape::{entry_of, files_of};
use crate::plan::namespaces::git_config::settings;
use crate::sys::SyscallError;
use crate::sys::beneath::Directory;
use crate::sys::file::{self, Identity};
use crate::text::shown;
use sbx_client::report::{Finding, FindingKind};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Longer files than git writes there.
const LONGEST: u64 = 1 << 20;
/// The conflicts of a merge: a name and a path each. git reads the files, and keeps copies of them in the second.
const CONFLICTS: &str = "MERGE_RR";
const RESOLUTIONS: &str = "rr-cache";

/// Directories of states, and the files in them that consist of numbers and names of objects.
const STATES: [(&str, &[&str]); 3] = [
    (
        "rebase-merge",
        &[
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
    ),
    (
        "rebase-apply",
        &["next", "last", "onto", "orig-head", "original-commit", "rewritten", "abort-safety", "autostash"],
    ),
    ("sequencer", &["head", "abort-safety"]),
];

impl Aftermath {
    /// Looks at the repositories that are known: a command may have changed a file in a directory that did not change.
    pub(super) fn look_at_known_states(&self, look: &mut Look) {
        let held = self.layout.iter().flat_map(|layout| layout.configs.iter());
        let known: Vec<&PathBuf> = self.recorded().chain(held).collect();
        for path in known {
            let Ok(place) = path.strip_prefix(&self.workspace) else { continue };
            if !look.seen.contains(path) {
                self.look_at_states(place, look);
            }
        }
    }

    /// Puts aside what has not the form that git gives it.
    pub(super) fn look_at_states(&self, place: &Path, look: &mut Look) {
        // One that cannot be opened is told of elsewhere.
        let Ok(own) = self.root.below(place) else { return };
        let path = self.workspace.join(place);
        let odd = find(&own, &path, self.index_since(&path));
        let mut put_aside = Vec::new();
        for name in &odd {
            match set_aside_below(&own, name) {
                Ok(aside) => put_aside.push(aside),
                Err(failed) => {
                    let sentence = format!("cannot put aside '{}': {failed}", shown(&path.join(name)));
                    look.outcome.failures.push(sentence);
                }
            }
        }
        if !odd.is_empty() {
            let named =
                |paths: &[PathBuf]| paths.iter().take(MOST_NAMED).map(|path| path.as_path().into()).collect();
            look.outcome.findings.push(Finding {
                path: path.as_path().into(),
                kind: FindingKind::StateChanged,
                names: named(&odd),
                put_aside: named(&put_aside),
            });
        }
    }
}

/// What git never writes of the states of a repository and its linked worktrees, by paths from there. Links count that
/// are new `since` a time.
fn find(own: &Directory, path: &Path, since: SystemTime) -> Vec<PathBuf> {
    let mut scan = Scan { since, odd: Vec::new() };
    scan.look_into(own, Path::new(""), path);
    let all = Path::new("worktrees");
    let worktrees = own.below(all).and_then(|all| all.names()).unwrap_or_default();
    for place in worktrees.iter().take(MOST_WORKTREES).map(|name| all.join(name)) {
        if let Ok(worktree) = own.below(&place) {
            scan.look_into(&worktree, &place, &path.join(&place));
        }
    }
    scan.odd.sort();
    scan.odd
}

/// A look under way.
struct Scan {
    since: SystemTime,
    odd: Vec<PathBuf>,
}

impl Scan {
    /// A directory of git's, its place in the repository and its path.
    fn look_into(&mut self, own: &Directory, place: &Path, path: &Path) {
        for name in own.names().unwrap_or_default() {
            let at = place.join(&name);
            let state = STATES.iter().find(|(state, _)| name == *state);
            if let Some((_, of_objects)) = state {
                self.look_at_state(own, &name, at, of_objects);
            } else if name == RESOLUTIONS {
                self.look_at_resolutions(own, &name, at);
            } else if name == CONFLICTS {
                self.odd.extend((!are_own(own, &name, path)).then_some(at));
            } else if is_pseudo(&name) {
                self.odd.extend((is_link(own, &name) && self.is_new(own, &name)).then_some(at));
            }
        }
    }

    fn look_at_state(&mut self, own: &Directory, name: &OsStr, at: PathBuf, of_objects: &[&str]) {
        let Some(state) = opened(own, name) else { return };
        // A link, or closed.
        let Ok((state, names)) = state else { return self.odd.push(at) };
        for name in names {
            let is_of_objects = of_objects.iter().any(|of_objects| name == *of_objects);
            let is_plain = match is_of_objects {
                true => state.read(&name, LONGEST).is_ok_and(|text| text.is_none_or(|text| is_hex(&text))),
                false => is_plain(&state, &name),
            };
            if !is_plain {
                self.odd.push(at.join(name));
            }
        }
    }

    /// git writes what it compares into files there.
    fn look_at_resolutions(&mut self, own: &Directory, name: &OsStr, at: PathBuf) {
        let Some(all) = opened(own, name) else { return };
        let Ok((all, names)) = all else {
            return self.odd.extend(self.is_new(own, name).then_some(at));
        };
        for name in names {
            if self.is_new(&all, &name) {
                self.look_at_resolution(&all, &name, at.join(&name));
            }
        }
    }

    fn look_at_resolution(&mut self, all: &Directory, name: &OsStr, at: PathBuf) {
        match opened(all, name) {
            Some(Ok((own, files))) => {
                let links = files.into_iter().filter(|file| is_link(&own, file));
                self.odd.extend(links.map(|file| at.join(file)));
            }
            Some(Err(_)) => {
                // Closed, or no directory; a file says nothing.
                let is_file = identity(all, name).is_some_and(Identity::is_regular);
                self.odd.extend((!is_file).then_some(at));
            }
            None => {}
        }
    }

    fn is_new(&self, directory: &Directory, name: &OsStr) -> bool {
        directory.ages(name).is_ok_and(|ages| ages.changed >= self.since)
    }
}

/// A directory with the names in it; `None` if there is nothing.
fn opened(own: &Directory, name: &OsStr) -> Option<Result<(Directory, Vec<OsString>), SyscallError>> {
    let found = own.below(Path::new(name)).and_then(|found| found.names().map(|names| (found, names)));
    match found {
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

/// Whether it is a file or a directory, or gone.
fn is_plain(directory: &Directory, name: &OsStr) -> bool {
    identity(directory, name).is_none_or(|found| found.is_regular() || found.is_directory())
}

/// Whether a name is one of those that git gives to what it goes on with, and to messages: `MERGE_MSG`, `FETCH_HEAD`.
/// git itself has made a link of `HEAD`.
fn is_pseudo(name: &OsStr) -> bool {
    name != "HEAD" && name.as_bytes().iter().all(|byte| matches!(byte, b'A'..=b'Z' | b'_'))
}

/// Whether there are only numbers and names of objects in a text.
fn is_hex(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace())
}

/// Whether the paths of conflicts are files of the working tree. git does not look.
fn are_own(own: &Directory, name: &OsStr, path: &Path) -> bool {
    let text = match own.read(name, LONGEST) {
        Ok(text) => text.unwrap_or_default(),
        Err(_) => return false,
    };
    let Some(paths) = paths(&text) else { return false };
    let tree = tree_of(path).and_then(|tree| Directory::open(&tree).ok());
    let is_own = |path: &&[u8]| {
        !is_odd(path, 0)
            && tree.as_ref().is_none_or(|tree| !leads_away(tree, Path::new(OsStr::from_bytes(path))))
    };
    paths.iter().all(is_own)
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
fn leads_away(tree: &Directory, path: &Path) -> bool {
    match tree.place(path.parent().unwrap_or(Path::new(""))) {
        Ok(above) => path.file_name().is_some_and(|name| is_link(&above, name)),
        Err(failed) => failed.errno() != libc::ENOENT,
    }
}

/// Where the files of a git directory are.
fn tree_of(path: &Path) -> Option<PathBuf> {
    let of_worktree = || Some(entry_of(path)?.parent()?.to_path_buf());
    let of_settings = || files_of(path, &settings(&path.join(CONFIG)).ok()?);
    let beside = || path.ends_with(".git").then(|| path.parent().map(Path::to_path_buf)).flatten();
    of_worktree().or_else(of_settings).or_else(beside)
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
        assert!(
            is_pseudo("MERGE_MSG".as_ref()) && !is_pseudo("HEAD".as_ref()) && !is_pseudo("index".as_ref())
        );
    }
}
