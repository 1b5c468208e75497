//! What a run has written to its private home: told for those who wonder where it went.

use crate::plan::Plan;
use crate::plan::home::{PrivateHome, Store};
use crate::sys::beneath::{Directory, LISTING};
use crate::sys::timer;
use crate::text::shown;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What is deeper is told by the directory at this level.
const LEVELS: usize = 2;
/// Maximum number of paths that are told.
const MOST_TOLD: usize = 20;
/// Maximum number of entries that are looked at, and of levels.
const MOST_LOOKED_AT: usize = 20_000;
const DEEPEST: usize = 32;

/// The home of a run that has not begun.
pub struct HomeBefore {
    home: PrivateHome,
    stores: Vec<Store>,
    /// The start, by the clock that files go by: on a busy machine it is well behind the other one.
    time: SystemTime,
}

impl HomeBefore {
    /// That of a plan, if it has one.
    pub fn of(plan: &Plan) -> Option<HomeBefore> {
        let home = plan.private_home.clone()?;
        Some(HomeBefore { home, stores: plan.stores().to_vec(), time: timer::file_time() })
    }

    /// What the run has written.
    pub fn written(self) -> Written {
        Written::since(self.time, &self.home, &self.stores)
    }
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Paths in the home.
    pub paths: BTreeSet<PathBuf>,
    /// There is more, or it was too much to look at.
    pub more: bool,
}

impl Written {
    /// What has changed since a time. Nobody can set the time of a file's last change back.
    pub fn since(time: SystemTime, home: &PrivateHome, stores: &[Store]) -> Written {
        let mut search = Search { time, left: MOST_LOOKED_AT, written: Written::default() };
        search.look(&home.directory, Path::new(""));
        for store in stores {
            let Ok(name) = store.at.strip_prefix(&home.at) else { continue };
            let mut inner = Search { time, left: search.left, written: Written::default() };
            inner.look(&store.written(), Path::new(""));
            search.left = inner.left;
            search.written.more |= inner.written.more;
            if !inner.written.paths.is_empty() {
                search.tell(name.to_path_buf());
            }
        }
        search.written
    }

    /// In words, for a line.
    pub fn line(&self) -> Option<String> {
        if self.paths.is_empty() && !self.more {
            return None;
        }
        let mut names: Vec<String> = self.paths.iter().map(|path| format!("'{}'", shown(path))).collect();
        if self.more {
            names.push("more".to_string());
        }
        Some(format!("written to the run's own home, and not to yours: {}", names.join(", ")))
    }
}

struct Search {
    time: SystemTime,
    left: usize,
    written: Written,
}

impl Search {
    fn look(&mut self, directory: &Path, name: &Path) {
        if let Ok(top) = Directory::open(directory) {
            self.walk(&top, name, 0);
        }
    }

    fn walk(&mut self, top: &Directory, below: &Path, level: usize) {
        let Ok(directory) = top.below(below) else { return };
        let mut entries: Vec<(OsString, bool)> = Vec::new();
        let mut buffer = Vec::with_capacity(LISTING);
        let listed = directory.each_entry(&mut buffer, |name, is_directory| {
            entries.push((name.to_os_string(), is_directory));
        });
        if listed.is_err() || level > DEEPEST || entries.len() > self.left {
            self.written.more = true;
            return;
        }
        self.left -= entries.len();
        for (name, is_directory) in entries {
            let path = below.join(&name);
            if is_directory {
                self.walk(top, &path, level + 1);
            } else if directory.ages(&name).is_ok_and(|ages| ages.changed >= self.time) {
                self.tell(path.iter().take(LEVELS).map(OsStr::to_os_string).collect());
            }
        }
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
        assert_eq!(Written::since(time, &home, &[]).line(), None);
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::create_dir_all(directory.join("a/b/c/d")).unwrap();
        fs::write(directory.join("a/b/c/d/e"), "").unwrap();
        fs::write(directory.join("top"), "").unwrap();
        fs::create_dir(scratch.path().join("outside")).unwrap();
        fs::write(scratch.path().join("outside/secret"), "").unwrap();
        std::os::unix::fs::symlink("../outside", directory.join("link")).unwrap();
        let written = Written::since(time, &home, &[]);
        assert_eq!(written.paths, ["a/b", "link", "top"].map(PathBuf::from).into());
        assert!(!written.more);
        let upper = scratch.path().join("layers/upper/x");
        fs::create_dir_all(&upper).unwrap();
        fs::write(upper.join("y"), "").unwrap();
        let store = Store {
            at: PathBuf::from("/home/u/.npm"),
            below: PathBuf::from("/home/u"),
            layers: scratch.path().join("layers"),
            part: PathBuf::from("x"),
        };
        let written = Written::since(time, &home, &[store]);
        assert!(written.line().unwrap().ends_with("'.npm', 'a/b', 'link', 'top'"), "{written:?}");
    }
}
