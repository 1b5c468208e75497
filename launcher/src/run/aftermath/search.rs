//! Looks for repositories: a `.git` or `.hg`, and directories with what git needs in a repository.

mod waiting;

use super::LEAST;
use crate::plan::namespaces::git::shape::is_within_git;
use crate::sys::beneath::{Directory, Entry, LISTING};
use crate::sys::file;
use crate::sys::file_system::FileSystem;
use crate::sys::path::{joined_below, says_missing};
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};
use waiting::{Node, ROOM, Tree, Waiting};

/// Maximum number of directories that are looked into.
const MOST: usize = 1 << 20;

/// More that cannot be looked into are not named.
const MOST_CLOSED: usize = 64;

/// How many bytes of names are taken from a directory at once where a path is followed down.
const AT_ONCE: usize = 2048;

const GIT: &str = ".git";
/// Where git keeps the repositories of submodules.
const MODULES: &str = "modules";

/// More links that may lead out are not looked at.
const MOST_LEADING: usize = 1 << 16;

/// More links where git makes none are not taken one by one.
const MOST_LINKS: usize = 256;

/// What git needs in a repository, and what makes a part of one, for a later command to add the rest.
const NEEDED: [&str; 6] = ["HEAD", "commondir", "objects", "refs", "config", "hooks"];

/// Names of what leads to a repository, or is one.
const ENTRIES: [&str; 2] = [GIT, ".hg"];

/// Directories that are looked into last: there is much in them, and seldom a repository.
const LAST: [&str; 3] = ["objects", ".hg", "node_modules"];

/// What a search has noticed besides repositories.
#[derive(Default)]
pub struct Noticed {
    /// The directories that have changed and cannot be looked into.
    pub closed: Vec<PathBuf>,
    /// Whether there are more of them.
    pub more_closed: bool,
    /// Directories with more links in the place of repositories than are taken one by one.
    pub crowded: Vec<PathBuf>,
    /// Whether there were more directories than are looked into, of those that have changed.
    pub too_many: bool,
    /// New links that may lead out of the directory.
    pub leading_out: Vec<PathBuf>,
}

/// Calls `each` with the repositories below a directory, by their paths from there, what is near the top first.
///
/// Directories that were made or have changed `since` are looked into in any case:
/// to look takes less time than to make them did. Others follow `until` it is too late, and at least some.
pub fn repositories(root: &Directory, since: SystemTime, until: Instant, each: impl FnMut(&Path)) -> Noticed {
    with_room(ROOM, (root, since, until), each)
}

fn with_room(
    room: usize,
    (root, since, until): (&Directory, SystemTime, Instant),
    each: impl FnMut(&Path),
) -> Noticed {
    let mut search = Search {
        root,
        since,
        each,
        start: RandomState::new().hash_one(()) as usize,
        buffer: Vec::with_capacity(LISTING),
        tree: Tree::with_room(room),
        changed: Waiting::default(),
        others: Waiting::default(),
        seen: 0,
        noticed: Noticed::default(),
    };
    search.changed.add(Tree::TOP, false);
    search.search(until);
    search.noticed
}

struct Search<'r, F> {
    root: &'r Directory,
    since: SystemTime,
    each: F,
    /// Each run begins elsewhere, so that short ones do not see the same all the time.
    start: usize,
    buffer: Vec<u8>,
    tree: Tree,
    changed: Waiting,
    others: Waiting,
    seen: usize,
    noticed: Noticed,
}

/// A directory on the way down.
struct Level {
    /// Directories in it that are next.
    names: Vec<OsString>,
    /// Where the listing goes on.
    next: Option<u64>,
}

impl<F: FnMut(&Path)> Search<'_, F> {
    fn search(&mut self, until: Instant) {
        let mut seen_of_others = 0;
        loop {
            let (node, is_changed) = match self.changed.next() {
                Some(node) => (node, true),
                None if seen_of_others >= LEAST && Instant::now() > until => break,
                None => match self.others.next() {
                    Some(node) => (node, false),
                    None => break,
                },
            };
            seen_of_others += usize::from(!is_changed);
            if self.seen >= MOST {
                self.noticed.too_many |= is_changed;
                break;
            }
            let place = self.tree.path(node);
            if let Some(from) = self.look_into(&place, Some(node)) {
                self.go_down(place, from);
            }
        }
    }

    /// Looks into a directory, and has those in it wait. Returns where in its listing those that have changed begin for
    /// which there is no room.
    fn look_into(&mut self, place: &Path, node: Option<Node>) -> Option<u64> {
        self.seen += 1;
        let mut found = Found::default();
        let at = self.root.below(place);
        if at.as_ref().is_ok_and(|at| is_of_kernel(at, place)) {
            return None;
        }
        let (mut without_room, mut leading_out) = (None, Vec::new());
        let before = self.others.waiting();
        let listed = match &at {
            Ok(at) => {
                // One that may be listed and not entered tells nothing either.
                if !at.has(".") {
                    self.closed(place);
                }
                let mut here = 0;
                let mut buffer = std::mem::take(&mut self.buffer);
                let listed = at.each_entry_at(0, &mut buffer, |name, entry, next| {
                    found.note(place, name, entry);
                    let is_new = || at.has_changed(name, self.since);
                    if entry == Entry::Link && is_new() && self.may_lead_out(at, place, name) {
                        leading_out.push(place.join(name));
                    }
                    // Added with the `.git`.
                    let is_known = name == MODULES && place.ends_with(GIT);
                    let is_new = entry == Entry::Directory && !is_known;
                    if let Some(node) = node.filter(|_| is_new && without_room.is_none()) {
                        without_room = self.wait(at, node, name).then_some(here);
                    }
                    here = next;
                    ControlFlow::Continue(())
                });
                self.buffer = buffer;
                listed.is_ok()
            }
            Err(failed) if says_missing(&failed.cause) => return None,
            Err(_) => false,
        };
        let room = MOST_LEADING.saturating_sub(self.noticed.leading_out.len());
        self.noticed.too_many |= leading_out.len() > room;
        self.noticed.leading_out.extend(leading_out.into_iter().take(room));
        if !listed {
            // One that may be entered can be used without being listed.
            self.closed(place);
            let Ok(held) = self.root.place(place) else { return None };
            found = Found::default();
            let names = ENTRIES.iter().chain(&NEEDED).filter(|name| held.has(name));
            names.for_each(|name| found.note(place, name.as_ref(), Entry::Other));
        }
        // Later runs protect such a part where git keeps submodules, whoever made it.
        if found.is_repository() || found.is_part() && is_of_submodule(self.root, place) {
            (self.each)(place);
        }
        found.entries().for_each(|name| (self.each)(&place.join(name)));
        found.links.retain(|name| is_for_submodules(self.root, &place.join(name)));
        if found.links.len() > MOST_LINKS {
            self.noticed.too_many |= self.noticed.crowded.len() == MOST_CLOSED;
            self.noticed.crowded.extend((!self.noticed.too_many).then(|| place.to_path_buf()));
        } else {
            found.links.iter().for_each(|name| (self.each)(&place.join(name)));
        }
        self.others.rotate(before, self.start);
        without_room
    }

    /// Has a directory wait. Returns whether it has changed, and there is no room.
    fn wait(&mut self, above: &Directory, node: Node, name: &OsStr) -> bool {
        let is_changed = self.is_changed(above, name);
        let waiting = if is_changed { &mut self.changed } else { &mut self.others };
        let Some(own) = self.tree.add(node, name) else { return is_changed };
        let is_git = name == GIT;
        if is_git {
            let Some(modules) = self.tree.add(own, MODULES.as_ref()) else { return is_changed };
            waiting.add(modules, false);
        }
        waiting.add(own, is_git || LAST.iter().any(|last| name == *last));
        false
    }

    fn is_changed(&self, above: &Directory, name: &OsStr) -> bool {
        above.has_changed(name, self.since)
    }

    /// Whether a link leads out of the directory that the search began in: by its words, or by another link.
    fn may_lead_out(&self, at: &Directory, place: &Path, name: &OsStr) -> bool {
        let is_above = |target: OsString| joined_below(place, Path::new(&target)).is_none();
        file::read_link(at.as_fd(), name).is_ok_and(is_above) || self.root.leads_out(&place.join(name))
    }

    fn closed(&mut self, place: &Path) {
        let ages = self.root.place(place).and_then(|own| own.ages(OsStr::new("")));
        // One that was removed has no name left.
        if !ages.is_ok_and(|ages| ages.changed >= self.since && ages.names > 0) {
            return;
        }
        self.noticed.more_closed |= self.noticed.closed.len() == MOST_CLOSED;
        self.noticed.closed.extend((!self.noticed.more_closed).then(|| place.to_path_buf()));
    }

    /// Looks into all directories below one that have changed, along one path at a time: that takes little room,
    /// however many there are.
    fn go_down(&mut self, top: PathBuf, from: u64) {
        let mut path = top;
        let mut levels = vec![Level { names: Vec::new(), next: Some(from) }];
        while let Some(level) = levels.last_mut() {
            if let Some(name) = level.names.pop() {
                if self.seen >= MOST {
                    self.noticed.too_many = true;
                    return;
                }
                path.push(name);
                self.look_into(&path, None);
                levels.push(Level { names: Vec::new(), next: Some(0) });
            } else if let Some(next) = level.next {
                *level = self.part(&path, next).unwrap_or(Level { names: Vec::new(), next: None });
            } else {
                levels.pop();
                path.pop();
            }
        }
    }

    /// Some of the directories in one that have changed.
    fn part(&mut self, path: &Path, from: u64) -> Option<Level> {
        let at = self.root.below(path).ok()?;
        let (mut names, mut size, mut rest) = (Vec::new(), 0, None);
        let mut buffer = std::mem::take(&mut self.buffer);
        let listed = at.each_entry_at(from, &mut buffer, |name, entry, next| {
            if entry == Entry::Directory && self.is_changed(&at, name) {
                names.push(name.to_os_string());
                size += name.len();
            }
            if size < AT_ONCE {
                return ControlFlow::Continue(());
            }
            rest = Some(next);
            ControlFlow::Break(())
        });
        self.buffer = buffer;
        listed.ok().map(|()| Level { names, next: rest })
    }
}

/// Whether the kernel makes all that is in a directory, where it is mounted as usual.
fn is_of_kernel(at: &Directory, place: &Path) -> bool {
    let is_named = place.file_name().is_some_and(|name| name == "proc" || name == "sys");
    is_named && FileSystem::of_open(at).is_ok_and(FileSystem::is_of_processes_or_devices)
}

/// Whether a place is where git keeps the repositories of submodules, or one of them: in a directory of git's, whatever
/// its name, and in those of linked worktrees.
pub fn is_for_submodules(root: &Directory, place: &Path) -> bool {
    let is_modules = |above: &&Path| above.file_name().is_some_and(|name| name == MODULES);
    let mut all = place.ancestors().filter(is_modules).filter_map(Path::parent);
    all.any(|own| is_within_git(own) || is_repository(root, own))
}

/// Whether a part of a repository there is one of a submodule's, and not of what such a one has in it: directories of
/// refs have a `HEAD` as well.
fn is_of_submodule(root: &Directory, place: &Path) -> bool {
    let mut above =
        place.ancestors().skip(1).take_while(|above| above.file_name().is_some_and(|name| name != MODULES));
    let is_part =
        |above: &Path| root.place(above).is_ok_and(|above| above.has("HEAD") || above.has("config"));
    is_for_submodules(root, place) && !above.any(is_part)
}

/// Whether git would take a directory for a repository.
fn is_repository(root: &Directory, place: &Path) -> bool {
    let mut found = Found::default();
    let has =
        |own: Directory| NEEDED.iter().filter(|name| own.has(name)).for_each(|name| found.has(name.as_ref()));
    root.below(place).map(has).is_ok() && found.is_repository()
}

/// What is in a directory, as far as it matters.
#[derive(Default)]
struct Found {
    leads: [bool; ENTRIES.len()],
    /// Symbolic links where git keeps the repositories of submodules.
    links: Vec<OsString>,
    has: [bool; NEEDED.len()],
}

impl Found {
    fn note(&mut self, place: &Path, name: &OsStr, entry: Entry) {
        // git makes none there, and follows them.
        let is_link = entry == Entry::Link
            && self.links.len() <= MOST_LINKS
            && !ENTRIES.iter().any(|known| name == *known);
        if is_link && (name == MODULES || place.iter().any(|above| above == MODULES)) {
            self.links.push(name.to_os_string());
        }
        self.has(name);
    }

    /// Notes a name that matters.
    fn has(&mut self, name: &OsStr) {
        let all = ENTRIES.iter().zip(&mut self.leads).chain(NEEDED.iter().zip(&mut self.has));
        all.filter(|(known, _)| name == **known).for_each(|(_, has)| *has = true);
    }

    /// What leads to a repository, or is one.
    fn entries(&self) -> impl Iterator<Item = &'static str> {
        ENTRIES.into_iter().zip(self.leads).filter_map(|(name, is_there)| is_there.then_some(name))
    }

    /// Whether git would take the directory for a repository.
    fn is_repository(&self) -> bool {
        let [head, common, objects, refs, ..] = self.has;
        head && (common || (objects && refs))
    }

    /// Whether it may become one.
    fn is_part(&self) -> bool {
        let [head, .., config, hooks] = self.has;
        head || config || hooks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::collections::BTreeSet;
    use std::fs;

    /// Whatever room there is, all of it is found.
    #[test]
    fn what_has_changed_is_looked_into_without_room_too() {
        let scratch = Scratch::create(None).unwrap();
        let mut expected = BTreeSet::new();
        for wide in 0..40 {
            let above = format!("{wide}-{}", "n".repeat(200));
            for deep in ["", "a/b/c", "a/b", ".git/modules/lib", "node_modules/x"] {
                let place = Path::new(&above).join(deep).join(".git");
                fs::create_dir_all(scratch.path().join(&place)).unwrap();
                expected.insert(place);
            }
        }
        let root = Directory::open(scratch.path()).unwrap();
        for room in [0, 500, 5000, ROOM] {
            let mut found = Vec::new();
            let given = (&root, SystemTime::UNIX_EPOCH, Instant::now());
            let noticed = with_room(room, given, |place| found.push(place.to_path_buf()));
            assert!(!noticed.too_many && noticed.closed.is_empty());
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "{room}");
        }
        // Those that have not changed take their time.
        let mut found = 0;
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        with_room(ROOM, (&root, later, Instant::now()), |_| found += 1);
        assert!(found < expected.len());
    }

    /// Somebody outside has removed the workspace during the run.
    #[test]
    fn a_directory_that_was_removed_is_not_closed() {
        let scratch = Scratch::create(None).unwrap();
        let top = scratch.path().join("top");
        fs::create_dir(&top).unwrap();
        let root = Directory::open(&top).unwrap();
        fs::remove_dir(&top).unwrap();
        let given = (&root, SystemTime::UNIX_EPOCH, Instant::now());
        assert!(with_room(ROOM, given, |_| ()).closed.is_empty());
    }
}
