//! The profile that is being learned: rights, each once and none that another one covers, with their evidence.

use crate::explain::hint::covers_calls;
use crate::learn::right::{Access, Evidence, Right};
use crate::sys::within::{is_below, is_within};
use sbx_policy::list::{self, Target};
use std::path::{Path, PathBuf};

/// Maximum number of rules. A command that wants more is not one kind of command, or makes names up.
pub const MOST: usize = 256;
/// Maximum number of pieces of evidence that are kept of one rule.
const MOST_EVIDENCE: usize = 16;
/// So many files of one directory, and the directory takes their place: their names are made up, or many.
const MANY: usize = 8;

/// A right, and what shows that it is wanted.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The right.
    pub right: Right,
    /// At least one.
    pub evidence: Vec<Evidence>,
}

impl Rule {
    /// Whether the user gave it.
    pub fn is_given(&self) -> bool {
        self.evidence.iter().any(|evidence| matches!(evidence, Evidence::Given(_)))
    }
}

/// The rules.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    rules: Vec<Rule>,
    /// Where the start profile lets files be changed.
    writable: Vec<PathBuf>,
}

impl Candidate {
    /// None yet. `writable`: where the start profile lets files be changed, by real paths.
    pub fn new(writable: Vec<PathBuf>) -> Candidate {
        Candidate { rules: Vec::new(), writable }
    }

    /// The rules, in the order in which they came.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether there is such a right.
    pub fn has(&self, right: &Right) -> bool {
        self.rules.iter().any(|rule| covers(&rule.right, right))
    }

    /// Adds a right; says whether anything is allowed now that was not before.
    pub fn add(&mut self, right: Right, evidence: Evidence) -> bool {
        let right = self.lifted(right);
        if let Some(rule) = self.rules.iter_mut().find(|rule| covers(&rule.right, &right)) {
            keep(&mut rule.evidence, [evidence]);
            return false;
        }
        let wider = self.rules.iter().position(|rule| joined(&rule.right, &right).is_some());
        let (right, mut all) = match wider {
            Some(place) => {
                let rule = self.rules.remove(place);
                (joined(&rule.right, &right).unwrap_or(right), rule.evidence)
            }
            None => (right, Vec::new()),
        };
        keep(&mut all, [evidence]);
        self.put(right, all);
        true
    }

    /// Puts a rule in, and takes out those that it covers.
    fn put(&mut self, right: Right, mut evidence: Vec<Evidence>) {
        let mut right = right;
        let mut place = self.rules.len();
        // What is in a place that may be changed can become a link to anywhere: no rule is about it alone.
        if let Right::Path(path, access) = &mut right
            && access.write
        {
            for rule in &self.rules {
                if let Right::Path(below, more) = &rule.right
                    && is_below(below, path)
                {
                    *access = access.and(*more);
                }
            }
        }
        let mut kept = Vec::with_capacity(self.rules.len() + 1);
        for (at, rule) in std::mem::take(&mut self.rules).into_iter().enumerate() {
            if covers(&right, &rule.right) {
                place = place.min(at);
                keep(&mut evidence, rule.evidence);
            } else {
                kept.push(rule);
            }
        }
        let place = place.min(kept.len());
        kept.insert(place, Rule { right, evidence });
        self.rules = kept;
    }

    /// The same right on the whole place that may be changed and that the path is in.
    fn lifted(&self, right: Right) -> Right {
        let Right::Path(path, access) = &right else { return right };
        let learned = self.rules.iter().filter_map(|rule| match &rule.right {
            Right::Path(place, access) if access.write => Some(place),
            _ => None,
        });
        let above = learned.chain(&self.writable).filter(|place| is_below(path, place));
        match above.min_by_key(|place| place.components().count()) {
            Some(place) => Right::Path(place.clone(), *access),
            None => right,
        }
    }

    /// Removes rules, and returns them.
    pub fn remove(&mut self, which: impl Fn(&Rule) -> bool) -> Vec<Rule> {
        let (gone, kept) = std::mem::take(&mut self.rules).into_iter().partition(|rule| which(rule));
        self.rules = kept;
        gone
    }

    /// The directories of which so many files have a rule that the directory should have one, with what they allow.
    pub fn crowded(&self) -> Vec<(PathBuf, Access)> {
        let mut found: Vec<(PathBuf, Access, usize)> = Vec::new();
        for rule in self.rules.iter().filter(|rule| !rule.is_given()) {
            let Right::Path(path, access) = &rule.right else { continue };
            let Some(directory) = path.parent() else { continue };
            match found.iter_mut().find(|(known, ..)| known == directory) {
                Some((_, all, count)) => (*all, *count) = (all.and(*access), *count + 1),
                None => found.push((directory.to_path_buf(), *access, 1)),
            }
        }
        found
            .into_iter()
            .filter(|(.., count)| *count > MANY)
            .map(|(path, access, _)| (path, access))
            .collect()
    }

    /// Has a rule about a directory take the place of those about what is in it.
    pub fn join(&mut self, directory: &Path, access: Access) {
        let below =
            |rule: &Rule| matches!(&rule.right, Right::Path(path, _) if path.parent() == Some(directory));
        let count = self.rules.iter().filter(|rule| below(rule)).count();
        self.put(Right::Path(directory.to_path_buf(), access), vec![Evidence::Joined(count)]);
    }
}

/// Keeps evidence: what one program was refused by one call of a round is one piece.
fn keep(all: &mut Vec<Evidence>, more: impl IntoIterator<Item = Evidence>) {
    for new in more {
        if all.iter_mut().any(|known| known.takes(&new)) {
            continue;
        }
        if all.len() < MOST_EVIDENCE {
            all.push(new);
        }
    }
}

/// Whether one right gives all that another one gives.
fn covers(wide: &Right, narrow: &Right) -> bool {
    match (wide, narrow) {
        (Right::Path(above, wide), Right::Path(below, narrow)) => {
            is_within(below, above) && wide.covers(*narrow)
        }
        (Right::Call(wide), Right::Call(narrow)) => {
            wide == narrow || covers_calls(wide, narrow) == Some(true) || is_in_group(wide, narrow)
        }
        (wide, narrow) => wide == narrow,
    }
}

/// Whether an entry is about a call of a group, which another entry names.
fn is_in_group(wide: &str, narrow: &str) -> bool {
    let target = |entry: &'_ str| list::parse(entry.as_bytes()).ok().map(|parsed| parsed.target);
    match (target(wide), target(narrow)) {
        (Some(Target::Group(group)), Some(Target::Call(call))) => group.contains(call),
        _ => false,
    }
}

/// Two rights on one thing as one.
fn joined(one: &Right, other: &Right) -> Option<Right> {
    match (one, other) {
        (Right::Path(path, one), Right::Path(same, other)) if path == same => {
            Some(Right::Path(path.clone(), one.and(*other)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Access = Access { write: false, execute: false };
    const WRITE: Access = Access { write: true, execute: false };
    const EXECUTE: Access = Access { write: false, execute: true };
    const BOTH: Access = Access { write: true, execute: true };

    fn path(path: &str, access: Access) -> Right {
        Right::Path(path.into(), access)
    }

    fn learned(rights: &[Right]) -> Vec<Right> {
        let mut candidate = Candidate::new(vec!["/start".into()]);
        for right in rights {
            candidate.add(right.clone(), Evidence::Joined(0));
        }
        candidate.rules().iter().map(|rule| rule.right.clone()).collect()
    }

    #[test]
    fn each_right_stands_once_and_none_that_another_covers() {
        let call = |entry: &str| Right::Call(entry.to_string());
        for (rights, expected) in [
            (vec![path("/a", READ), path("/a", READ)], vec![path("/a", READ)]),
            (vec![path("/d/x", READ), path("/d", READ)], vec![path("/d", READ)]),
            (
                vec![path("/d", READ), path("/d/x", READ), path("/de", READ)],
                vec![path("/d", READ), path("/de", READ)],
            ),
            (vec![path("/a", READ), path("/a", WRITE)], vec![path("/a", WRITE)]),
            (vec![path("/d", READ), path("/d/x", WRITE)], vec![path("/d", READ), path("/d/x", WRITE)]),
            (vec![call("ioctl[query]"), call("ioctl")], vec![call("ioctl")]),
            (vec![call("ioctl"), call("ioctl[query]"), call("read")], vec![call("ioctl"), call("read")]),
            (vec![call("settimeofday"), call("@clock")], vec![call("@clock")]),
            (vec![Right::Hosts, Right::Hosts], vec![Right::Hosts]),
        ] {
            assert_eq!(learned(&rights), expected, "{rights:?}");
        }
    }

    /// The command could make a link of what it may replace, and the next run would follow that.
    #[test]
    fn no_rule_is_about_what_may_be_replaced() {
        assert_eq!(learned(&[path("/d", WRITE), path("/d/tool", EXECUTE)]), [path("/d", BOTH)]);
        assert_eq!(learned(&[path("/d/tool", EXECUTE), path("/d", WRITE)]), [path("/d", BOTH)]);
        assert_eq!(
            learned(&[path("/d/e/tool", EXECUTE), path("/d/e", READ), path("/d", WRITE)]),
            [path("/d", BOTH)]
        );
        assert_eq!(learned(&[path("/start/a/tool", EXECUTE)]), [path("/start", EXECUTE)]);
        assert_eq!(learned(&[path("/d", READ), path("/d/tool", EXECUTE)]).len(), 2);
    }

    #[test]
    fn many_files_of_a_directory_are_one_rule_about_it() {
        let mut candidate = Candidate::new(Vec::new());
        for number in 0..MANY {
            candidate.add(path(&format!("/d/{number}"), READ), Evidence::Joined(0));
        }
        assert!(candidate.crowded().is_empty());
        candidate.add(path("/d/last", READ), Evidence::Joined(0));
        assert_eq!(candidate.crowded(), [(PathBuf::from("/d"), READ)]);
        candidate.join(Path::new("/d"), READ);
        assert_eq!(candidate.rules().len(), 1);
        assert!(candidate.rules()[0].evidence.contains(&Evidence::Joined(MANY + 1)));
    }
}
