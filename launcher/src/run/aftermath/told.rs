//! What a look has found, within bounds: a command can leave any number of things to find, and whoever looks must not
//! run out of memory before the last of them was looked at.

use super::Outcome;
use crate::sys::within::is_within;
use sbx_client::report::{Bytes, Finding};
use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How many bytes of findings are told, and how many of failures.
const TOLD: usize = 1 << 20;
/// How many bytes of paths are recorded.
pub const RECORDED: usize = 1 << 20;
/// Maximum number of places that are looked at: where directories, files and links may be repositories.
const MOST_SEEN: usize = 7 << 16;

/// What takes room.
pub trait Weighs {
    /// How many bytes, about.
    fn size(&self) -> usize;
}

impl Weighs for String {
    fn size(&self) -> usize {
        self.len() + size_of::<String>()
    }
}

impl Weighs for Finding {
    fn size(&self) -> usize {
        let names = self.names.iter().chain(&self.put_aside);
        names.map(|name| name.0.len() + size_of::<Bytes>()).sum::<usize>()
            + self.path.0.len()
            + size_of::<Finding>()
    }
}

/// As many of some as there is room for.
pub struct Few<T> {
    list: Vec<T>,
    left: usize,
    has_more: bool,
}

impl<T: Weighs> Few<T> {
    fn new() -> Few<T> {
        Few { list: Vec::new(), left: TOLD, has_more: false }
    }

    /// Adds one, if there is room.
    pub fn push(&mut self, new: T) {
        match self.left.checked_sub(new.size()) {
            Some(left) => {
                self.left = left;
                self.list.push(new);
            }
            None => self.has_more = true,
        }
    }

    /// Adds some.
    pub fn extend(&mut self, new: impl IntoIterator<Item = T>) {
        new.into_iter().for_each(|new| self.push(new));
    }
}

/// What came of a look that is under way.
pub struct Told {
    /// What was found.
    pub findings: Few<Finding>,
    /// What could not be done.
    pub failures: Few<String>,
}

impl Told {
    /// Nothing yet.
    pub fn new() -> Told {
        Told { findings: Few::new(), failures: Few::new() }
    }

    /// All of it.
    pub fn outcome(self) -> Outcome {
        let Told { findings, failures } = self;
        let more = (findings.has_more || failures.has_more).then(|| {
            "the run left more than is named here that git or another program would act on".to_string()
        });
        Outcome { findings: findings.list, failures: failures.list.into_iter().chain(more).collect() }
    }
}

/// The places that were looked at. Only a hash of each is kept, which nobody can foresee.
#[derive(Default)]
pub struct Seen {
    hashes: HashSet<u64>,
    state: RandomState,
    /// Whether there were more.
    pub too_many: bool,
}

impl Seen {
    /// Notes one. Returns whether it is to be looked at.
    pub fn insert(&mut self, path: &Path) -> bool {
        let hash = self.state.hash_one(path.as_os_str());
        if self.hashes.len() >= MOST_SEEN {
            self.too_many |= !self.hashes.contains(&hash);
            return false;
        }
        self.hashes.insert(hash)
    }

    /// Whether one was looked at.
    pub fn contains(&self, path: &Path) -> bool {
        self.hashes.contains(&self.state.hash_one(path.as_os_str()))
    }
}

/// What nothing protected, as far as it is recorded.
#[derive(Default)]
pub struct Unprotected {
    paths: BTreeSet<PathBuf>,
    size: usize,
}

impl Unprotected {
    /// Adds one.
    pub fn insert(&mut self, path: &Path) {
        self.size += path.as_os_str().as_bytes().len();
        if self.size <= RECORDED {
            self.paths.insert(path.to_path_buf());
        }
    }

    /// Those below a directory.
    pub fn below(mut self, workspace: &Path) -> BTreeSet<PathBuf> {
        self.paths.retain(|path| is_within(path, workspace));
        self.paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_and_recorded_has_bounds() {
        let mut told = Told::new();
        (0..1000).for_each(|number| told.failures.push(format!("{number:4000}")));
        let Outcome { failures, .. } = told.outcome();
        assert!((200..300).contains(&failures.len()) && failures[0].ends_with(" 0"));
        assert!(failures.last().unwrap().contains("more than is named here"));
        let mut unprotected = Unprotected::default();
        (0..1000).for_each(|number| unprotected.insert(Path::new(&format!("/w/{number:04000}"))));
        assert!((200..300).contains(&unprotected.below(Path::new("/w")).len()));
    }

    #[test]
    fn a_place_is_looked_at_once() {
        let mut seen = Seen::default();
        assert!(
            seen.insert(Path::new("/a")) && !seen.insert(Path::new("/a")) && !seen.contains(Path::new("/b"))
        );
        for number in 0..MOST_SEEN {
            seen.insert(Path::new(&format!("/{number}")));
        }
        assert!(seen.too_many && !seen.insert(Path::new("/b")));
    }
}
