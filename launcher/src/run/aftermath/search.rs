//! Looks for repositories: a `.git` or `.hg`, and directories with what git needs in a repository.

use super::LEAST;
use crate::sys::beneath::{Directory, LISTING};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Maximum number of directories that are looked into.
const MOST: usize = 1 << 20;

/// What git needs in a repository.
const NEEDED: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// Directories that are looked into last: there is much in them, and seldom a repository.
const LAST: [&str; 3] = ["objects", ".hg", "node_modules"];

/// Calls `each` with every repository below a directory, by its path from there, what is near the top first. After
/// `until`, and some directories, it ends. Returns the directories that cannot be looked into.
pub fn repositories(root: &Directory, until: Instant, mut each: impl FnMut(&Path)) -> Vec<PathBuf> {
    let mut waiting = VecDeque::from([PathBuf::new()]);
    let (mut last, mut closed) = (VecDeque::new(), Vec::new());
    let mut buffer = Vec::with_capacity(LISTING);
    let mut seen = 0;
    while let Some(place) = waiting.pop_front().or_else(|| last.pop_front()) {
        if seen >= MOST || (seen >= LEAST && Instant::now() > until) {
            break;
        }
        seen += 1;
        let mut found = Found::default();
        let listed = root.below(&place).and_then(|at| {
            // One that may be listed and not entered tells nothing either.
            if !at.has(".") {
                closed.push(place.clone());
            }
            at.each_entry(&mut buffer, |name, is| found.note(name, is))
        });
        if listed.is_err() {
            // One that may be entered can be used without being listed.
            closed.push(place.clone());
            let Ok(held) = root.place(&place) else { continue };
            let names = [".git", ".hg"].iter().chain(&NEEDED).filter(|name| held.has(name));
            found = Found::default();
            names.for_each(|name| found.note(OsStr::new(name), false));
        }
        let is_repository = found.is_repository();
        if is_repository {
            each(&place);
        }
        found.entries.iter().for_each(|name| each(&place.join(name)));
        for name in found.directories {
            let at = place.join(&name);
            match name.to_str() {
                Some(".git") => waiting.push_back(at.join("modules")),
                Some(name) if LAST.contains(&name) => last.push_back(at),
                _ => waiting.push_back(at),
            }
        }
    }
    closed
}

/// What is in a directory, as far as it matters.
#[derive(Default)]
struct Found {
    directories: Vec<OsString>,
    /// `.git` and `.hg`.
    entries: Vec<OsString>,
    has: [bool; NEEDED.len()],
}

impl Found {
    fn note(&mut self, name: &OsStr, is_directory: bool) {
        let is_entry = name == ".git" || name == ".hg";
        if is_entry {
            self.entries.push(name.to_os_string());
        }
        if is_directory {
            self.directories.push(name.to_os_string());
        }
        if let Some(needed) = NEEDED.iter().position(|needed| name == *needed) {
            self.has[needed] = true;
        }
    }

    /// Whether git would take the directory for a repository.
    fn is_repository(&self) -> bool {
        let [head, common, objects, refs] = self.has;
        head && (common || (objects && refs))
    }
}
