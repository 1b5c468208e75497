//! Looks for repositories: a `.git` or `.hg`, and directories with what git needs in a repository.

use super::LEAST;
use crate::enforce::aside::is_aside;
use crate::sys::beneath::{Directory, LISTING};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Maximum number of directories that are looked into.
const MOST: usize = 1 << 20;

/// What git needs in a repository.
const NEEDED: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// Calls `each` with every repository below a directory, by its path from there, what is near the top first. After
/// `until`, and some directories, it ends.
pub fn repositories(root: &Directory, until: Instant, mut each: impl FnMut(&Path)) {
    let mut waiting = VecDeque::from([PathBuf::new()]);
    let mut buffer = Vec::with_capacity(LISTING);
    let mut seen = 0;
    while let Some(place) = waiting.pop_front() {
        if seen >= MOST || (seen >= LEAST && Instant::now() > until) {
            return;
        }
        seen += 1;
        let mut found = Found::default();
        let listed =
            root.below(&place).and_then(|at| at.each_entry(&mut buffer, |name, is| found.note(name, is)));
        if listed.is_err() {
            // One that may be entered can be used without being listed.
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
        // A working tree may look like a repository too, so of its directories only one is passed over.
        found.directories.retain(|name| !(is_repository && name == "objects"));
        for name in found.directories {
            let at = place.join(&name);
            waiting.push_back(if name == ".git" { at.join("modules") } else { at });
        }
    }
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
        if is_directory && name != ".hg" && !is_aside(name) {
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
