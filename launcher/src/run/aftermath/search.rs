//! Looks for repositories: a `.git` or `.hg`, and directories with what git needs in a repository.

use super::LEAST;
use crate::sys::beneath::{Directory, Entry, LISTING};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

/// Maximum number of directories that are looked into.
const MOST: usize = 1 << 20;

const GIT: &str = ".git";
/// Where git keeps the repositories of submodules.
const MODULES: &str = "modules";

/// What git needs in a repository.
const NEEDED: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// Directories that are looked into last: there is much in them, and seldom a repository.
const LAST: [&str; 3] = ["objects", ".hg", "node_modules"];

/// What a search did not see.
#[derive(Default)]
pub struct Unseen {
    /// The directories that cannot be looked into.
    pub closed: Vec<PathBuf>,
    /// Whether there were more directories than are looked into, of those that have changed.
    pub too_many: bool,
}

/// Directories that are to be looked into.
#[derive(Default)]
struct Waiting {
    first: VecDeque<PathBuf>,
    last: VecDeque<PathBuf>,
}

impl Waiting {
    fn add(&mut self, place: PathBuf, is_last: bool) {
        if is_last { self.last.push_back(place) } else { self.first.push_back(place) }
    }

    fn next(&mut self) -> Option<PathBuf> {
        self.first.pop_front().or_else(|| self.last.pop_front())
    }
}

/// Calls `each` with the repositories below a directory, by their paths from there, what is near the top first.
///
/// Directories that were made or have changed `since` are looked into in any case:
/// to look takes less time than to make them did. Others follow `until` it is too late, and at least some.
pub fn repositories(
    root: &Directory,
    since: SystemTime,
    until: Instant,
    mut each: impl FnMut(&Path),
) -> Unseen {
    let (mut changed, mut others) = (Waiting::default(), Waiting::default());
    let mut unseen = Unseen::default();
    let mut buffer = Vec::with_capacity(LISTING);
    let (mut seen, mut seen_of_others) = (0, 0);
    let start = RandomState::new().hash_one(());
    changed.add(PathBuf::new(), false);
    while seen < MOST {
        let place = match changed.next() {
            Some(place) => place,
            None if seen_of_others >= LEAST && Instant::now() > until => break,
            None => {
                seen_of_others += 1;
                let Some(place) = others.next() else { break };
                place
            }
        };
        seen += 1;
        let mut found = Found::default();
        let at = root.below(&place);
        let listed = at.as_ref().map_err(|_| ()).and_then(|at| {
            // One that may be listed and not entered tells nothing either.
            if !at.has(".") {
                unseen.closed.push(place.clone());
            }
            at.each_entry(&mut buffer, |name, entry| found.note(&place, name, entry)).map_err(|_| ())
        });
        if listed.is_err() {
            // One that may be entered can be used without being listed.
            unseen.closed.push(place.clone());
            let Ok(held) = root.place(&place) else { continue };
            let names = [".git", ".hg"].iter().chain(&NEEDED).filter(|name| held.has(name));
            found = Found::default();
            names.for_each(|name| found.note(&place, OsStr::new(name), Entry::Other));
        }
        let is_repository = found.is_repository();
        if is_repository {
            each(&place);
        }
        found.entries.iter().chain(&found.links).for_each(|name| each(&place.join(name)));
        if place.ends_with(GIT) {
            // It was added with the `.git`.
            found.directories.retain(|name| name != MODULES);
        }
        // Each run begins elsewhere, so that short ones do not see the same all the time.
        let first = (start as usize).checked_rem(found.directories.len()).unwrap_or_default();
        found.directories.rotate_left(first);
        for name in found.directories {
            let is_changed =
                at.as_ref().is_ok_and(|at| at.ages(&name).is_ok_and(|ages| ages.changed >= since));
            let waiting = if is_changed { &mut changed } else { &mut others };
            let path = place.join(&name);
            match name.to_str() {
                Some(GIT) => {
                    waiting.add(path.join(MODULES), false);
                    waiting.add(path, true);
                }
                name => waiting.add(path, name.is_some_and(|name| LAST.contains(&name))),
            }
        }
    }
    unseen.too_many = changed.next().is_some();
    unseen
}

/// Whether a place is where git keeps the repositories of submodules, or one of them.
pub fn is_for_submodules(place: &Path) -> bool {
    let mut names = place.components().map(|part| part.as_os_str());
    names.any(|name| name == GIT) && names.any(|name| name == MODULES)
}

/// What is in a directory, as far as it matters.
#[derive(Default)]
struct Found {
    directories: Vec<OsString>,
    /// `.git` and `.hg`.
    entries: Vec<OsString>,
    /// Symbolic links where git keeps the repositories of submodules.
    links: Vec<OsString>,
    has: [bool; NEEDED.len()],
}

impl Found {
    fn note(&mut self, place: &Path, name: &OsStr, entry: Entry) {
        let is_entry = name == ".git" || name == ".hg";
        if is_entry {
            self.entries.push(name.to_os_string());
        }
        match entry {
            Entry::Directory => self.directories.push(name.to_os_string()),
            // git makes none there, and follows them.
            Entry::Link if !is_entry && is_for_submodules(&place.join(name)) => {
                self.links.push(name.to_os_string());
            }
            Entry::Link | Entry::Other => {}
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
