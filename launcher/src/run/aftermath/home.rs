//! What a run has written to its private home: told for those who wonder where it went.

use crate::enforce::home::STAMPS;
use crate::enforce::{home_copies, home_places};
use crate::explain::sensitive::secrets_at;
use crate::plan::Plan;
use crate::plan::home::{PrivateHome, Store};
use crate::profile::Variables;
use crate::sys::beneath::{Directory, Entry, LISTING};
use crate::sys::{path, timer};
use crate::text::shown;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What is deeper is told by the directory at this level.
const LEVELS: usize = 2;
/// Maximum number of paths that are told.
const MOST_TOLD: usize = 20;
/// Maximum number of entries that are looked at, and of levels.
const MOST_LOOKED_AT: usize = 20_000;
const DEEPEST: usize = 32;
/// The same where not everything is asked for.
const FEW: usize = 500;

/// Where tools install programs, in a directory of theirs: `~/.local/bin`, `~/.cargo/bin`, `~/go/bin`.
const PROGRAMS: &str = "bin";

/// The home of a run that has not begun.
pub struct HomeBefore {
    home: PrivateHome,
    stores: Vec<Store>,
    /// Places for mounts, which the run has made itself.
    places: BTreeSet<PathBuf>,
    /// Copies of settings as they are at the start, with the time of their last change: they may be as new as that.
    copies: BTreeMap<PathBuf, SystemTime>,
    /// Hidden names at its top: of these only new ones are told. Programs replace their files there, and such a file is
    /// as young as a new one (`~/.python_history`).
    hidden: BTreeSet<OsString>,
    /// Names in the home that are left out: directories of tools, and copies of settings. `None`: nothing is left out.
    tools: Option<BTreeSet<OsString>>,
    /// The start, by the clock that files go by: on a busy machine it is well behind the other one.
    time: SystemTime,
}

impl HomeBefore {
    /// That of a plan, if it has one. Where not everything is asked for, only what somebody may miss is looked at: what
    /// has no leading dot, and is no directory of packages; programs; keys; and new files in the place of yours.
    pub fn of(plan: &Plan, everything: bool) -> Option<HomeBefore> {
        let home = plan.private_home.clone()?;
        let places =
            plan.namespaces.as_ref().map(|layout| home_places::used(&home, layout)).unwrap_or_default();
        let variables = Variables { home: Some(&home.at), ..Variables::default() };
        let stores = plan.profile.home.stores.iter().filter_map(|store| store.expand_path(&variables));
        let first = |path: PathBuf| path.strip_prefix(&home.at).ok()?.iter().next().map(OsStr::to_os_string);
        let copied = plan.profile.home.copies.iter().filter_map(|copy| copy.path.expand_path(&variables));
        let tools = (!everything).then(|| stores.chain(copied).filter_map(first).collect());
        let hidden = if everything || !home.lasts { BTreeSet::new() } else { hidden(&home.directory) };
        let copies = if everything { copies(plan, &home, &variables) } else { BTreeMap::new() };
        let stores = if everything { plan.stores().to_vec() } else { Vec::new() };
        Some(HomeBefore { home, stores, places, copies, hidden, tools, time: timer::file_time() })
    }

    fn is_newer(&self, path: &Path, changed: SystemTime) -> bool {
        changed >= self.time && self.copies.get(path) != Some(&changed)
    }

    /// What the run has written.
    pub fn written(self) -> Written {
        Written::since(&self)
    }
}

/// The names at the top of a home that begin with a dot.
fn hidden(home: &Path) -> BTreeSet<OsString> {
    let is_hidden = |name: &OsStr| name.as_bytes().starts_with(b".");
    let top = Directory::open(home).and_then(|home| home.below(Path::new("")));
    let names = top.and_then(|top| top.names_like(FEW, is_hidden));
    names.map(|(names, _)| names.into_iter().collect()).unwrap_or_default()
}

/// The copies of settings that are there.
fn copies(plan: &Plan, home: &PrivateHome, variables: &Variables<'_>) -> BTreeMap<PathBuf, SystemTime> {
    let Ok(top) = Directory::open(&home.directory) else { return BTreeMap::new() };
    let paths = plan.profile.home.copies.iter().filter_map(|copy| copy.path.expand_path(variables));
    let aged = paths.filter_map(|path| {
        let path = path.strip_prefix(&home.at).ok()?;
        let directory = top.place(path.parent()?).ok()?;
        Some((path.to_path_buf(), directory.ages(path.file_name()?).ok()?.changed))
    });
    aged.collect()
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Paths in the home.
    pub paths: BTreeSet<PathBuf>,
    /// There is more, or it was too much to look at.
    pub more: bool,
    /// Whether the home is there after the run.
    lasts: bool,
}

impl Written {
    /// What has changed since then. Nobody can set the time of a file's last change back.
    fn since(before: &HomeBefore) -> Written {
        let left = if before.tools.is_some() { FEW } else { MOST_LOOKED_AT };
        let mut search = Search { before, left, written: Written::default() };
        search.look(&before.home.directory, Path::new(""));
        for store in &before.stores {
            let Ok(name) = store.at.strip_prefix(&before.home.at) else { continue };
            let mut inner = Search { before, left: search.left, written: Written::default() };
            inner.look(&store.written(), Path::new(""));
            search.left = inner.left;
            search.written.more |= inner.written.more;
            if !inner.written.paths.is_empty() {
                search.tell(name.to_path_buf());
            }
        }
        Written { lasts: before.home.lasts, ..search.written }
    }

    /// In words, for a line.
    pub fn line(&self) -> Option<String> {
        if self.paths.is_empty() {
            return None;
        }
        let mut names: Vec<String> = self.paths.iter().map(|path| format!("'{}'", shown(path))).collect();
        if self.more {
            names.push("more".to_string());
        }
        let now = if self.lasts { "('sbx home show' says where that is)" } else { "(it is gone now)" };
        Some(format!("written to the run's own home, and not to yours: {} {now}", names.join(", ")))
    }
}

struct Search<'b> {
    before: &'b HomeBefore,
    left: usize,
    written: Written,
}

impl Search<'_> {
    fn look(&mut self, directory: &Path, name: &Path) {
        if let Ok(top) = Directory::open(directory) {
            self.walk(&top, name, 0);
        }
    }

    fn walk(&mut self, top: &Directory, below: &Path, level: usize) {
        let Ok(directory) = top.below(below) else { return };
        let mut entries: Vec<(OsString, bool)> = Vec::new();
        let mut buffer = Vec::with_capacity(LISTING);
        let most = self.left;
        let listed = directory.each_entry_at(0, &mut buffer, |name, entry, _| {
            entries.push((name.to_os_string(), entry == Entry::Directory));
            if entries.len() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if listed.is_err() || level > DEEPEST || entries.len() > self.left {
            self.written.more = true;
            return;
        }
        self.left -= entries.len();
        for (name, is_directory) in entries {
            let path = below.join(&name);
            if level == 0 && self.is_left_out(&name) {
                match is_directory {
                    true if self.is_for_keys(&name) => self.walk(top, &path, level + 1),
                    true => self.walk(top, &path.join(PROGRAMS), level + 1),
                    false if self.before.places.contains(&path) => {}
                    false if self.takes_the_place_of_yours(&directory, &name) => self.tell(path),
                    false => {}
                }
                continue;
            }
            if is_directory {
                self.walk(top, &path, level + 1);
                if self.is_all_that_was_made(top, &directory, &path) {
                    self.tell_briefly(&path);
                }
            } else if !self.before.places.contains(&path)
                && directory
                    .ages(&name)
                    .is_ok_and(|ages| ages.keeps && self.before.is_newer(&path, ages.changed))
            {
                self.tell_briefly(&path);
            }
        }
    }

    fn is_left_out(&self, name: &OsStr) -> bool {
        self.before
            .tools
            .as_ref()
            .is_some_and(|tools| name.as_bytes().starts_with(b".") || tools.contains(name))
    }

    /// Whether it is a new directory with nothing in it: `mkdir ../new` has made it. Tools make hidden ones.
    fn is_all_that_was_made(&self, top: &Directory, above: &Directory, path: &Path) -> bool {
        if path.as_os_str().as_bytes().starts_with(b".") || self.before.places.contains(path) {
            return false;
        }
        let ages = path.file_name().and_then(|name| above.ages(name).ok());
        let is_new = ages.and_then(|ages| ages.born).is_some_and(|born| born >= self.before.time);
        let names = || top.below(path).and_then(|directory| directory.names_like(1, |_| true));
        is_new && names().is_ok_and(|(names, _)| names.is_empty())
    }

    /// Whether keys are kept there (`~/.ssh`): whoever makes one looks for it.
    fn is_for_keys(&self, name: &OsStr) -> bool {
        let home = &self.before.home.at;
        secrets_at(&home.join(name), Some(home)).is_some()
    }

    /// Whether it is a file that the run has made, and that the user has too: `~/.profile`. Later runs find it there.
    fn takes_the_place_of_yours(&self, directory: &Directory, name: &OsStr) -> bool {
        let is_tool = self.before.tools.as_ref().is_some_and(|tools| tools.contains(name));
        let was_there = self.before.hidden.contains(name);
        let is_made =
            || directory.ages(name).is_ok_and(|ages| ages.born.is_some_and(|born| born >= self.before.time));
        let home = &self.before.home;
        let is_copy = || home_copies::is_named(&home.directory.with_file_name(STAMPS), Path::new(name));
        !is_tool && !was_there && is_made() && path::is_there(&home.at.join(name)) && !is_copy()
    }

    fn tell_briefly(&mut self, path: &Path) {
        self.tell(path.iter().take(LEVELS).map(OsStr::to_os_string).collect());
    }

    fn tell(&mut self, path: PathBuf) {
        if self.written.paths.len() < MOST_TOLD || self.written.paths.contains(&path) {
            self.written.paths.insert(path);
        } else {
            self.written.more = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use crate::plan::home::HOME;
    use std::fs;

    #[test]
    fn what_is_new_is_told_by_short_names_and_no_link_is_followed() {
        let scratch = Scratch::create(None).unwrap();
        let directory = scratch.path().join(HOME);
        fs::create_dir_all(directory.join("old/deep")).unwrap();
        fs::write(directory.join("old/file"), "").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let time = timer::file_time();
        let home = PrivateHome {
            at: PathBuf::from("/home/u"),
            directory: directory.clone(),
            layers: None,
            no_layers: None,
            lasts: true,
        };
        let directory_of = |name: &str| directory.join(name);
        let (stores, places, copies, hidden) =
            (Vec::new(), BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        let mut before = HomeBefore { home, stores, places, copies, hidden, tools: None, time };
        assert_eq!(Written::since(&before).line(), None);
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::create_dir_all(directory.join("a/b/c/d")).unwrap();
        fs::write(directory.join("a/b/c/d/e"), "").unwrap();
        fs::write(directory.join("top"), "").unwrap();
        fs::create_dir(scratch.path().join("outside")).unwrap();
        fs::write(scratch.path().join("outside/secret"), "").unwrap();
        std::os::unix::fs::symlink("../outside", directory.join("link")).unwrap();
        fs::create_dir_all(directory.join(".cache")).unwrap();
        fs::write(directory.join(".cache/x"), "").unwrap();
        // Of directories those are told that have nothing in them.
        [".cache/y", "empty", "more/empty/deep"]
            .iter()
            .for_each(|name| fs::create_dir_all(directory_of(name)).unwrap());
        let written = Written::since(&before);
        let all = [".cache/x", "a/b", "empty", "link", "more/empty", "top"];
        assert_eq!(written.paths, all.map(PathBuf::from).into());
        ["empty", "more"].iter().for_each(|name| fs::remove_dir_all(directory_of(name)).unwrap());
        assert!(!written.more);
        before.tools = Some(["a".into()].into());
        before.places = ["top".into()].into();
        assert_eq!(Written::since(&before).paths, ["link"].map(PathBuf::from).into());
        for directory in [".tool/bin", "a/bin", ".tool/etc"] {
            fs::create_dir_all(directory_of(directory)).unwrap();
            fs::write(directory_of(directory).join("x"), "").unwrap();
        }
        let told = [".tool/bin", "a/bin", "link"].map(PathBuf::from);
        assert_eq!(Written::since(&before).paths, told.into());
        [".tool", "a/bin"].iter().for_each(|name| fs::remove_dir_all(directory_of(name)).unwrap());
        (before.tools, before.places) = (None, BTreeSet::new());
        let upper = scratch.path().join("layers/upper/x");
        fs::create_dir_all(&upper).unwrap();
        fs::write(upper.join("y"), "").unwrap();
        let store = Store {
            at: PathBuf::from("/home/u/.npm"),
            below: PathBuf::from("/home/u"),
            layers: scratch.path().join("layers"),
            part: PathBuf::from("x"),
        };
        before.stores.push(store);
        let written = Written::since(&before);
        let names = "to yours: '.cache/x', '.npm', 'a/b', 'link', 'top' (";
        assert!(written.line().unwrap().contains(names), "{written:?}");
    }
}
