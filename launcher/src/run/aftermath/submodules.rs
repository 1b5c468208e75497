//! The submodules that indexes name. `git status` goes into each that has a `.git`, whether any configuration speaks of
//! it or not. A search may not come to a deep one in its time, so they are looked at by their names.

use super::told::RECORDED;
use super::{Aftermath, Look};
use crate::sys::path::{is_there, real_for_all};
use crate::text::shown;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// More of one workspace are not looked at.
const MOST: usize = 4096;

/// Where the submodules are, as the indexes have it: links may be on the way.
#[derive(Default)]
pub struct Submodules {
    all: BTreeSet<PathBuf>,
    waiting: Vec<PathBuf>,
    size: usize,
    too_many: bool,
}

impl Submodules {
    /// Adds some.
    pub fn extend(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        paths.into_iter().for_each(|path| self.add(path));
    }

    fn add(&mut self, path: PathBuf) {
        if self.all.contains(&path) {
            return;
        }
        let size = self.size + path.as_os_str().as_bytes().len();
        if self.all.len() == MOST || size > RECORDED {
            self.too_many = true;
            return;
        }
        self.size = size;
        self.all.insert(path.clone());
        self.waiting.push(path);
    }

    /// All that were added.
    pub fn all(&self) -> &BTreeSet<PathBuf> {
        &self.all
    }
}

/// What is recorded of them. Which ones no index names any more is not known; where there are too many, only those stay
/// that have a directory.
pub fn together(known: Vec<PathBuf>, new: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let mut all: BTreeSet<PathBuf> = known.into_iter().chain(new.iter().cloned()).collect();
    if all.len() > MOST {
        all.retain(|path| is_there(path));
    }
    all
}

impl Aftermath {
    /// Looks at those of all indexes that a look has met, in this run or before: a command may put a repository where
    /// an index has named a submodule all along.
    pub(super) fn look_at_submodules(&self, look: &mut Look) {
        look.submodules.extend(self.record.submodules.iter().cloned());
        // Of a full record nobody knows what is not in it.
        look.submodules.too_many |= self.record.submodules.len() >= MOST;
        // The index of one may name others.
        while let Some(path) = look.submodules.waiting.pop() {
            // Most of those that nobody has cloned have none.
            if !is_there(&path.join(".git")) {
                continue;
            }
            // What is closed is opened on the way to it.
            let real = real_for_all(&path).unwrap_or(path);
            if let Ok(place) = real.strip_prefix(&self.workspace) {
                self.look(&place.join(".git"), look);
            }
        }
        if look.submodules.too_many {
            look.outcome.failures.push(format!(
                "cannot tell what git would execute in '{}': its indexes name more submodules than are looked at",
                shown(&self.workspace)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_kept_than_can_be_looked_at() {
        let mut submodules = Submodules::default();
        submodules.extend((0..MOST).chain(0..MOST).map(|number| PathBuf::from(format!("/w/{number}"))));
        assert!(submodules.all().len() == MOST && submodules.waiting.len() == MOST && !submodules.too_many);
        submodules.extend([PathBuf::from("/w/more")]);
        assert!(submodules.too_many && submodules.all().len() == MOST);
        // What is gone makes room.
        let known = vec![PathBuf::from("/nowhere/known"), PathBuf::from("/")];
        assert_eq!(together(known.clone(), &BTreeSet::new()).len(), 2);
        assert_eq!(together(known, submodules.all()), BTreeSet::from([PathBuf::from("/")]));
    }
}
