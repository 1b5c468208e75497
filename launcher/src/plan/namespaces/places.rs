//! Where the path rules really are: a rule's path may lead through links.

use crate::plan::namespaces::layout::{Given, TMP};
use crate::plan::namespaces::renewed::{SERVICES, SHARED_MEMORY};
use crate::plan::rules::{PathRights, PathRule};
use crate::sys::within::{is_below, is_same, is_within, rest_below};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The outermost directories below which something may be changed.
pub struct Roots(Vec<PathBuf>);

impl Roots {
    /// Of these rules.
    pub fn of(rules: &[PathRule]) -> Roots {
        let writable = rules.iter().filter(|rule| rule.rights.changes_files());
        Roots(outermost(writable.map(|rule| rule.place().into_owned()).collect()))
    }

    /// Of these places.
    pub fn of_places<'p>(places: impl IntoIterator<Item = &'p Placed>) -> Roots {
        let writable = places.into_iter().filter(|place| place.rights.changes_files());
        Roots(outermost(writable.map(|place| place.path.clone()).collect()))
    }

    /// Those that are at a path, or below it.
    pub fn within(&self, path: &Path) -> impl Iterator<Item = &Path> {
        self.0.iter().filter(move |root| is_within(root, path)).map(|root| &**root)
    }

    /// Whether a path is one of them.
    pub fn are(&self, path: &Path) -> bool {
        self.0.iter().any(|root| is_same(path, root))
    }

    /// The one that a path is below.
    pub fn above(&self, path: &Path) -> Option<&Path> {
        self.0.iter().find(|root| is_below(path, root)).map(|root| &**root)
    }
}

fn outermost(paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut outermost: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !outermost.last().is_some_and(|above| is_within(&path, above)) {
            outermost.push(path);
        }
    }
    outermost
}

/// What a rule is really about, and what it gives.
#[derive(Clone)]
pub struct Placed {
    /// Where it is.
    pub path: PathBuf,
    /// What may be done there.
    pub rights: PathRights,
    /// Whether the names on the way may be links. They may not where planning has looked them up.
    pub follows: bool,
}

/// The rules by real paths, as far as that may matter: for what may be changed, and for what is below a
/// directory that is another inside. What is missed is out of sight there. Most rules are about the system's
/// own directories, and asking of each costs time.
pub fn places(given: &Given<'_>) -> Vec<Placed> {
    let home = given.host.home().zip(given.host.real_home());
    let changed = [TMP, SERVICES[0], SERVICES[1], SHARED_MEMORY, "/etc/resolv.conf"];
    let place = |rule: &PathRule| {
        let home = home.as_ref().filter(|(home, _)| is_within(&rule.path, home));
        let below = home.and_then(|(home, real)| Some((real, rest_below(&rule.path, home)?)));
        let path = match below {
            _ if rule.rights.changes_files() => rule.place().into_owned(),
            Some((real, below)) if rule.built_in => real.join(below),
            None if rule.built_in && !changed.iter().any(|path| is_within(&rule.path, Path::new(path))) => {
                rule.path.clone()
            }
            _ => rule.place().into_owned(),
        };
        Placed { path, rights: rule.rights, follows: rule.follows }
    };
    given.rules.iter().map(place).collect()
}
