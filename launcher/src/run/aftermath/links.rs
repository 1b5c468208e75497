//! New links in git's own directories. git outside would write through them, into files of the user's that a command
//! cannot change: names of branches and of people, which a command chooses (`packed-refs`, `info/refs`, logs), and
//! whatever else it keeps there (`gc.pid`, messages). git itself makes no link but those that stand for a ref.

use super::repository::{New, linked};
use super::{Aftermath, Look};
use crate::enforce::aside::{is_aside, set_aside_above};
use crate::sys::beneath::{Directory, Entry, LISTING};
use crate::sys::file;
use crate::text::shown;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// As many links are put aside at a time, and as often.
const AT_A_TIME: usize = 4096;
const TIMES: usize = 64;
/// More directories of one repository are not looked into.
const MOST_DIRECTORIES: usize = 1 << 16;
/// Directories that git writes in at any depth.
const TREES: [&str; 3] = ["info", "logs", "refs"];
/// It makes the directories in this one, and what is in them has a name that nobody chooses.
const OBJECTS: &str = "objects";

impl Aftermath {
    /// Puts aside new links in a repository and in what it keeps of its linked worktrees.
    pub(super) fn look_at_links(&self, place: &Path, look: &mut Look) {
        let path = self.workspace.join(place);
        let mut seen = BTreeSet::new();
        for _ in 0..TIMES {
            // One that cannot be opened is told of elsewhere. It is opened anew, for each can be listed once.
            let Ok(own) = self.root.below(place) else { return };
            let new = self.new_entries(&path, &own);
            let Links { found, has_more, .. } = Links::of(&own, new, &seen);
            // Among refs and logs, any name is one of a ref.
            let put_aside = found
                .iter()
                .filter_map(|place| look.tell_failure(&path.join(place), set_aside_above(&own, place)));
            let put_aside: Vec<PathBuf> = put_aside.collect();
            look.found_states(&path, &found, &put_aside);
            seen.extend(found);
            if !has_more {
                return;
            }
        }
        look.outcome.failures.push(format!(
            "cannot put aside all links that git would follow in '{}': there are too many",
            shown(&path)
        ));
    }
}

/// Links that are found, by their places in a repository.
struct Links<'s> {
    /// Those that have been found before: not each can be put aside.
    seen: &'s BTreeSet<PathBuf>,
    found: Vec<PathBuf>,
    has_more: bool,
    /// Directories that were looked into.
    directories: usize,
}

impl Links<'_> {
    fn of<'s>(own: &Directory, new: New, seen: &'s BTreeSet<PathBuf>) -> Links<'s> {
        let mut links = Links { seen, found: Vec::new(), has_more: false, directories: 0 };
        links.look_into(own, new, Path::new(""));
        for (place, worktree, new) in linked(own, new) {
            links.look_into(&worktree, new, &place);
        }
        links
    }

    /// One of git's own directories, at this place in the repository.
    fn look_into(&mut self, own: &Directory, new: New, place: &Path) {
        self.list(own, new, place, |_| {});
        for tree in TREES {
            if let Ok(directory) = own.below(Path::new(tree)) {
                self.descend(&directory, new.within(own, tree.as_ref()), &place.join(tree));
            }
        }
        if let Ok(objects) = own.below(Path::new(OBJECTS)) {
            let new = new.within(own, OBJECTS.as_ref());
            // Where no name is new, no link is: there may be many.
            if new.is(&objects, OsStr::new("")) {
                self.list(&objects, new, &place.join(OBJECTS), |_| {});
            }
        }
    }

    /// A directory with all that are in it.
    fn descend(&mut self, top: &Directory, new: New, place: &Path) {
        let mut rest = vec![(PathBuf::new(), new)];
        while let Some((below, new)) = rest.pop() {
            self.directories += 1;
            if self.directories > MOST_DIRECTORIES {
                self.has_more = true;
                return;
            }
            // What is closed, is closed to git outside as well.
            let Ok(directory) = top.below(&below) else { continue };
            self.list(&directory, new, &place.join(&below), |name| {
                rest.push((below.join(name), new.within(&directory, name)));
            });
        }
    }

    /// Finds the links of one directory, and calls `inner` with the directories in it.
    fn list(&mut self, directory: &Directory, new: New, place: &Path, mut inner: impl FnMut(&OsStr)) {
        let listed = directory.each_entry(&mut Vec::with_capacity(LISTING), |name, entry| match entry {
            Entry::Link if new.is(directory, name) && !is_left(directory, name, place) => {
                self.add(place.join(name));
            }
            Entry::Directory => inner(name),
            _ => {}
        });
        self.has_more |= listed.is_err();
    }

    fn add(&mut self, place: PathBuf) {
        if self.seen.contains(&place) {
            return;
        }
        let has_room = self.found.len() < AT_A_TIME;
        self.has_more |= !has_room;
        self.found.extend(has_room.then_some(place));
    }
}

/// Whether git writes nothing elsewhere by a link: old versions had such ones to say which ref is meant, which lead to
/// what is beside them; and git knows nothing of the name of what was put aside, but among refs and logs.
fn is_left(directory: &Directory, name: &OsStr, place: &Path) -> bool {
    let names_a_ref = |target: &OsStr| {
        target.as_bytes().starts_with(b"refs/") && !target.as_bytes().windows(2).any(|two| two == b"..")
    };
    let is_in_tree = || place.iter().any(|part| TREES.iter().any(|tree| part == *tree));
    is_aside(name) && !is_in_tree()
        || file::read_link(directory.as_fd(), name).is_ok_and(|target| names_a_ref(&target))
}
