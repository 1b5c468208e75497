//! Which files a policy opens: places with an access each, of which the longest that leads to a file decides.
//!
//! A profile has grants, denials below them, and protections below what may be written. So what a policy opens again
//! below something that it closes has to be said in another way, or is lost.

mod reopened;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::profile::foreign::nesting::{Nesting, may_hold, nearest};
pub use crate::profile::foreign::nesting::{below, root};
use crate::profile::foreign::{Losses, MOST};
use crate::profile::location::{Location, Variables};
use crate::profile::words::Variable;

/// What may be done with the files below a place. Of two about one place the greater counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Reading and executing.
    Read,
    /// The same, and changing.
    Write,
    /// Reading and executing, and no changing, whatever may be changed above.
    Fixed,
    /// Nothing.
    Deny,
}

/// The places of a policy.
#[derive(Debug, Default)]
pub struct Files {
    places: BTreeMap<Location, Entry>,
    /// Where nothing may be changed, whatever is said about what is below. That opens nothing.
    forbidden: Vec<Location>,
    /// Where nothing may be changed that is there.
    kept: BTreeSet<Location>,
    /// What is open only where no denial holds it.
    yielding: BTreeSet<Location>,
    /// Whether what every profile opens is open.
    opens_minimal: bool,
    /// How many could not be added.
    left_out: usize,
    executable: Option<Vec<(Location, bool)>>,
}

#[derive(Debug)]
struct Entry {
    access: Access,
    /// Whether it may be missing.
    optional: bool,
    /// Where the document says so.
    place: String,
}

/// Whether a place is the machine's directory for scratch.
pub fn is_tmp(location: &Location) -> bool {
    location.base.is_none() && location.rest.trim_end_matches('/') == "/tmp"
}

/// What a document means by a place to write to. A run has a `/tmp` of its own, which a rule about the machine's would
/// put out of the way: what others keep there would be open.
fn in_run(location: Location, access: Access) -> Location {
    match access {
        Access::Write if is_tmp(&location) => {
            Location { base: Some(Variable::Tmp), rest: String::new().into() }
        }
        _ => location,
    }
}

/// The lists of a profile's `paths`.
#[derive(Debug, Default)]
pub struct Lists {
    /// Reading.
    pub read: Vec<Value>,
    /// Reading and executing.
    pub execute: Vec<Value>,
    /// Reading and changing.
    pub write: Vec<Value>,
    /// Nothing.
    pub deny: Vec<Value>,
    /// Reading, below what may be changed.
    pub protect: Vec<Value>,
    /// Whether the workspace may be changed.
    pub opens_workspace: bool,
}

impl Files {
    /// Adds a place. `at` is where the document names it.
    pub fn add(&mut self, location: Location, access: Access, at: impl ToString) {
        self.put(location, Entry { access, optional: false, place: at.to_string() });
    }

    /// Adds a place that may be missing: the other side passes over it then.
    pub fn add_optional(&mut self, location: Location, access: Access, at: impl ToString) {
        self.put(location, Entry { access, optional: true, place: at.to_string() });
    }

    fn put(&mut self, location: Location, entry: Entry) {
        let location = in_run(location, entry.access);
        let is_full = self.places.len() >= MOST;
        match self.places.get_mut(&location) {
            Some(known) => {
                let optional = known.optional && entry.optional;
                if known.access < entry.access {
                    *known = entry;
                }
                known.optional = optional;
            }
            None if is_full => self.left_out += 1,
            None => {
                self.places.insert(location, entry);
            }
        }
    }

    /// Lets nothing be changed below a place, not even what something else opens there.
    pub fn forbid_writing(&mut self, location: Location) {
        if self.forbidden.len() < MOST {
            self.forbidden.push(location);
        } else {
            self.left_out += 1;
        }
    }

    /// Lets nothing be changed at a place where something is; what is not there may be made.
    pub fn keep_if_there(&mut self, location: Location) {
        if self.kept.len() < MOST {
            self.kept.insert(location);
        } else {
            self.left_out += 1;
        }
    }

    /// Has a place stay closed where a denial holds it, without exception.
    pub fn yield_to_denials(&mut self, location: Location) {
        self.yielding.insert(location);
    }

    /// Says that what every profile opens is open in the document too.
    pub fn open_minimal(&mut self) {
        self.opens_minimal = true;
    }

    /// Whether there are more places than any profile has.
    pub fn are_too_many(&self) -> bool {
        self.left_out > 0
    }

    /// Lets nothing be executed but what is below these places, of which some may be missing.
    pub fn execute_only(&mut self, locations: Vec<(Location, bool)>) {
        self.executable = Some(locations);
    }

    /// The lists that say the same. `base` is what the profile that is extended opens, and `here` where the document is
    /// imported.
    pub fn settle(mut self, base: &[Location], here: &Variables, losses: &mut Losses) -> Lists {
        let nesting = Nesting::of(self.places.keys().chain(&self.forbidden).chain(base), here);
        let forbidden = std::mem::take(&mut self.forbidden);
        self.places.retain(|location, entry| {
            entry.access != Access::Write || !forbidden.iter().any(|place| nesting.holds(place, location))
        });
        self.open_again(base, &nesting, losses);
        let protect = self.protected(forbidden, losses);
        let workspace = self.places.get(&below(Variable::Workspace, ""));
        let opens_workspace = workspace.is_some_and(|entry| entry.access == Access::Write);
        let mut lists = Lists { protect, opens_workspace, ..Lists::default() };
        let readable = if self.executable.is_some() { &mut lists.read } else { &mut lists.execute };
        for (location, entry) in &self.places {
            let (text, opened) = (json!(location.to_string()), opened(location, entry.optional));
            let nearest = self.nearest(location);
            match (entry.access, nearest) {
                (Access::Deny, _) => lists.deny.push(text),
                (Access::Write, Some(Access::Write)) => {}
                (Access::Write, _) => {
                    lists.write.push(opened.clone());
                    if self.executable.is_none() {
                        readable.push(opened);
                    }
                }
                (Access::Read | Access::Fixed, None | Some(Access::Deny)) => readable.push(opened),
                (Access::Read | Access::Fixed, Some(_)) => {}
            }
        }
        let executable = self.executable.into_iter().flatten();
        lists.execute.extend(executable.map(|(location, optional)| opened(&location, optional)));
        lists
    }

    /// What has to be protected: all that may not be changed and that may be below something that may. A place that is
    /// written in another way than what holds it is protected too, for nothing here says that it is elsewhere.
    fn protected(&mut self, forbidden: Vec<Location>, losses: &mut Losses) -> Vec<Value> {
        let of = |access: Access| self.places.iter().filter(move |(_, entry)| entry.access == access);
        let fixed: BTreeSet<Location> = of(Access::Fixed).map(|(location, _)| location.clone()).collect();
        let writable: Vec<Location> = of(Access::Write).map(|(location, _)| location.clone()).collect();
        let is_at_stake = |place: &&Location| writable.iter().any(|outer| may_hold(outer, place));
        // What may be changed below something fixed that is itself below what may be changed.
        let is_inside =
            |place: &&Location| writable.iter().any(|outer| outer != *place && outer.holds(place));
        let inside: Vec<&Location> = fixed.iter().filter(is_inside).collect();
        for location in &writable {
            let Some(place) = inside.iter().find(|place| place.holds(location)) else { continue };
            if let Some(lost) = self.places.remove(location) {
                let why = format_args!(
                    "a protection has no exceptions: '{location}' stays as it is with '{place}'"
                );
                losses.note(lost.place, why);
            }
        }
        let all: BTreeSet<Location> =
            fixed.into_iter().chain(forbidden).filter(|place| !place.is_root()).collect();
        // Where the only reader of a path is the path itself, a missing one may be made.
        let if_there =
            |place: &Location| json!({ "path": place.to_string(), "readers": [place.to_string()] });
        let kept = self.kept.difference(&all).filter(is_at_stake).map(if_there);
        all.iter().filter(is_at_stake).map(|place| json!(place.to_string())).chain(kept).collect()
    }

    /// What is said about the nearest place above, wherever the variables lead.
    fn nearest(&self, location: &Location) -> Option<Access> {
        let above = self.places.iter().filter(|(other, _)| *other != location && other.holds(location));
        nearest(above).map(|(_, entry)| entry.access)
    }
}

/// An entry about what is opened.
fn opened(location: &Location, optional: bool) -> Value {
    let path = location.to_string();
    if optional { json!({ "path": path, "optional": true }) } else { json!(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &str) -> Location {
        Location::path(text.to_string().into()).unwrap()
    }

    fn settled(entries: &[(&str, Access)]) -> (Lists, Vec<String>) {
        let mut files = Files::default();
        for (path, access) in entries {
            files.add(location(path), *access, path);
        }
        let base = ["/usr", "/opt", "/etc/passwd", "${WORKSPACE}"].map(location);
        let mut losses = Losses::default();
        (files.settle(&base, &Variables::default(), &mut losses), losses.lines().to_vec())
    }

    #[test]
    fn the_nearest_place_decides() {
        use Access::{Deny, Fixed, Read, Write};
        let (lists, lost) = settled(&[
            ("/", Read),
            ("/etc", Read),
            ("/var/lib/x", Write),
            ("/var/lib/x/fixed", Fixed),
            ("/var/lib/x/secret", Deny),
            ("${HOME}/.ssh", Deny),
        ]);
        assert_eq!(lists.execute, ["/", "/var/lib/x"]);
        assert_eq!(lists.write, ["/var/lib/x"]);
        assert_eq!(lists.protect, ["/var/lib/x/fixed"]);
        assert_eq!(lists.deny, ["/var/lib/x/secret", "${HOME}/.ssh"]);
        assert!(lost.is_empty(), "{lost:?}");
    }

    #[test]
    fn a_place_that_may_be_elsewhere_is_said() {
        use Access::{Fixed, Write};
        let (lists, _) =
            settled(&[("/home/me/x", Write), ("${WORKSPACE}", Write), ("${WORKSPACE}/a", Fixed)]);
        assert_eq!(lists.write, ["/home/me/x", "${WORKSPACE}"]);
        assert_eq!(lists.protect, ["${WORKSPACE}/a"]);
    }

    #[test]
    fn what_is_fixed_is_protected_where_it_may_be_below_what_may_be_changed() {
        use Access::{Fixed, Write};
        let (lists, lost) = settled(&[("${WORKSPACE}", Write), ("/srv/a", Fixed), ("/srv/a/b", Write)]);
        assert_eq!(lists.protect, ["/srv/a"]);
        assert_eq!(lists.execute, ["/srv/a", "/srv/a/b", "${WORKSPACE}"]);
        assert_eq!((lists.write, lost), (["/srv/a/b", "${WORKSPACE}"].map(Value::from).to_vec(), vec![]));
        let (lists, lost) = settled(&[("/srv", Write), ("/srv/a", Fixed), ("/srv/a/b", Write)]);
        assert_eq!((lists.protect, lists.write), (vec![json!("/srv/a")], vec![json!("/srv")]));
        assert_eq!(
            lost,
            ["/srv/a/b: a protection has no exceptions: '/srv/a/b' stays as it is with '/srv/a'"]
        );
    }

    #[test]
    fn what_is_opened_again_is_said_in_another_way_or_lost() {
        use Access::{Deny, Read, Write};
        // Nothing but the home directory was closed: now nothing but what is named is open.
        let (lists, lost) = settled(&[("/", Read), ("${HOME}", Deny), ("${WORKSPACE}", Write)]);
        assert_eq!((lists.write, lists.deny), (vec![json!("${WORKSPACE}")], vec![]));
        assert_eq!(lists.execute, ["${WORKSPACE}"]);
        assert_eq!(lost.len(), 1, "{lost:?}");
        // The whole file system is closed anyway, but for what every profile opens.
        let (lists, lost) = settled(&[("/", Deny), ("/srv", Read), ("/usr", Read), ("/opt", Read)]);
        assert_eq!((lists.execute, lists.deny), (["/opt", "/srv", "/usr"].map(Value::from).to_vec(), vec![]));
        let why = "'/' is closed with '/opt' open in it, and a denial has no exceptions";
        assert_eq!(lost, [format!("/: {why}: '/etc/passwd' stays open, as in every profile")]);
        let (_, lost) = settled(&[("/srv", Deny), ("/srv/a", Read)]);
        assert_eq!(lost, Vec::<String>::new());
        // Below something else a denial stays, and what it had open is lost.
        let (lists, lost) = settled(&[("/srv", Write), ("/srv/a", Deny), ("/srv/a/b", Read)]);
        assert_eq!(lists.deny, ["/srv/a"]);
        assert_eq!(lost, ["/srv/a/b: a denial has no exceptions: '/srv/a/b' stays closed with '/srv/a'"]);
        // So it does where every profile opens what it closes.
        for more in [("/", Read), ("/", Deny)] {
            let (lists, lost) = settled(&[more, ("/opt/a", Deny), ("/opt/a/b", Read)]);
            assert!(lists.deny.contains(&json!("/opt/a")), "{:?}", lists.deny);
            assert_eq!(lost, ["/opt/a/b: a denial has no exceptions: '/opt/a/b' stays closed with '/opt/a'"]);
        }
    }
}
