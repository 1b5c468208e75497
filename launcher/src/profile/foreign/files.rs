//! Which files a policy opens: places with an access each, of which the longest that leads to a file decides.
//!
//! A profile has grants, denials below them, and protections below what may be written. So what a policy opens again
//! below something that it closes has to be said in another way, or is lost.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::profile::foreign::{Losses, MOST};
use crate::profile::location::Location;
use crate::profile::words::Variable;

/// What may be done with the files below a place. Of two about one place the greater counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Reading and executing.
    Read,
    /// The same, and changing.
    Write,
    /// Nothing.
    Deny,
}

/// The places of a policy.
#[derive(Debug, Default)]
pub struct Files {
    places: BTreeMap<Location, Entry>,
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

/// What a document means by a place to write to. A run has a `/tmp` of its own, which a rule about the machine's would
/// put out of the way: what others keep there would be open.
fn in_run(location: Location, access: Access) -> Location {
    let is_tmp = location.base.is_none() && location.rest.trim_end_matches('/') == "/tmp";
    match access {
        Access::Write if is_tmp => Location { base: Some(Variable::Tmp), rest: String::new().into() },
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

    /// What is said about exactly this place.
    pub fn at(&self, location: &Location) -> Option<Access> {
        self.places.get(location).map(|entry| entry.access)
    }

    /// Whether there are more places than any profile has.
    pub fn are_too_many(&self) -> bool {
        self.left_out > 0
    }

    /// Lets nothing be executed but what is below these places, of which some may be missing.
    pub fn execute_only(&mut self, locations: Vec<(Location, bool)>) {
        self.executable = Some(locations);
    }

    /// The lists that say the same.
    pub fn settle(mut self, losses: &mut Losses) -> Lists {
        self.open_again(losses);
        let mut lists = Lists::default();
        let readable = if self.executable.is_some() { &mut lists.read } else { &mut lists.execute };
        for (location, entry) in &self.places {
            let (text, opened) = (json!(location.to_string()), opened(location, entry.optional));
            let nearest = self.around(location, is_in).map(|(_, entry)| entry.access);
            match (entry.access, self.around(location, holds).map(|(_, entry)| entry.access)) {
                (Access::Deny, _) => lists.deny.push(text),
                (Access::Read, Some(Access::Write)) => lists.protect.push(text),
                _ if nearest == Some(entry.access) => {}
                (Access::Read, _) => readable.push(opened),
                (Access::Write, _) => {
                    lists.write.push(opened.clone());
                    if self.executable.is_none() {
                        readable.push(opened);
                    }
                }
            }
        }
        let executable = self.executable.into_iter().flatten();
        lists.execute.extend(executable.map(|(location, optional)| opened(&location, optional)));
        lists
    }

    /// What is said about the nearest place above, by one of the two relations below.
    fn around(
        &self,
        location: &Location,
        is_below: fn(&Location, &Location) -> bool,
    ) -> Option<(&Location, &Entry)> {
        let above = self.places.iter().filter(|(other, _)| *other != location && is_below(other, location));
        above.max_by_key(|(other, _)| (other.base.is_some(), other.rest.len()))
    }

    /// Settles what is opened below something closed: a denial of a profile has no exceptions. What is closed in the
    /// whole file system need not be denied, if nothing opens the whole file system.
    fn open_again(&mut self, losses: &mut Losses) {
        let reopened: Vec<(Location, Location)> = self
            .places
            .iter()
            .filter(|(_, entry)| entry.access != Access::Deny)
            .filter_map(|(location, _)| {
                let (closed, entry) = self.around(location, holds)?;
                (entry.access == Access::Deny).then(|| (location.clone(), closed.clone()))
            })
            .collect();
        for (location, closed) in reopened {
            let Some(entry) = self.places.get(&closed) else { continue };
            let place = entry.place.clone();
            match self.around(&closed, holds).map(|(above, entry)| (is_root(above), entry.access)) {
                Some((true, Access::Read)) => {
                    self.places.remove(&root());
                    self.places.remove(&closed);
                    losses.note(
                        place,
                        format_args!(
                            "'{closed}' is closed with '{location}' open in it, and a denial has no exceptions: the \
                             profile opens '{location}' and what programs need, and nothing else of the machine"
                        ),
                    );
                }
                None | Some((_, Access::Deny)) => {
                    self.places.remove(&closed);
                }
                Some((_, Access::Read | Access::Write)) => {
                    if let Some(lost) = self.places.remove(&location) {
                        losses.note(
                            lost.place,
                            format_args!(
                                "a denial has no exceptions: '{location}' stays closed with '{closed}'"
                            ),
                        );
                    }
                }
            }
        }
    }
}

/// An entry about what is opened.
fn opened(location: &Location, optional: bool) -> Value {
    let path = location.to_string();
    if optional { json!({ "path": path, "optional": true }) } else { json!(path) }
}

/// The whole file system.
pub fn root() -> Location {
    Location { base: None, rest: "/".into() }
}

fn is_root(location: &Location) -> bool {
    location.base.is_none() && location.rest == "/"
}

/// A place below a variable, or the variable itself.
pub fn below(base: Variable, rest: &str) -> Location {
    Location { base: Some(base), rest: rest.to_string().into() }
}

/// Whether a place is below another one, wherever the variables lead.
fn is_in(outer: &Location, inner: &Location) -> bool {
    is_root(outer) || (outer.base == inner.base && is_below(&outer.rest, &inner.rest))
}

/// Whether a place is, or usually is, below another one. Where the home directory and the workspace are, a document
/// does not know: they may be below what usually has them.
pub fn holds(outer: &Location, inner: &Location) -> bool {
    is_in(outer, inner)
        || match (outer.base, inner.base) {
            (None, Some(Variable::Home | Variable::Workspace)) => has_homes(&outer.rest),
            (Some(Variable::Home), Some(Variable::Workspace)) => outer.rest.is_empty(),
            (Some(Variable::Home), None) => outer.rest.is_empty() && has_homes(&inner.rest),
            _ => false,
        }
}

fn is_below(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a home directory is usually here or below.
fn has_homes(path: &str) -> bool {
    ["/home", "/root", "/Users"].iter().any(|homes| is_below(homes, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(entries: &[(&str, Access)]) -> (Lists, Vec<String>) {
        let mut files = Files::default();
        for (path, access) in entries {
            files.add(Location::path(path.to_string().into()).unwrap(), *access, path);
        }
        let mut losses = Losses::default();
        (files.settle(&mut losses), losses.lines().to_vec())
    }

    #[test]
    fn the_nearest_place_decides() {
        use Access::{Deny, Read, Write};
        let (lists, lost) = settled(&[
            ("/", Read),
            ("/etc", Read),
            ("/var/lib/x", Write),
            ("/var/lib/x/fixed", Read),
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
        use Access::{Read, Write};
        let (lists, _) = settled(&[("/home/me/x", Write), ("${WORKSPACE}", Write), ("${WORKSPACE}/a", Read)]);
        assert_eq!(lists.write, ["/home/me/x", "${WORKSPACE}"]);
        assert_eq!(lists.protect, ["${WORKSPACE}/a"]);
    }

    #[test]
    fn what_is_opened_again_is_said_in_another_way_or_lost() {
        use Access::{Deny, Read, Write};
        // Nothing but the home directory was closed: now nothing but what is named is open.
        let (lists, lost) = settled(&[("/", Read), ("${HOME}", Deny), ("${WORKSPACE}", Write)]);
        assert_eq!((lists.write, lists.deny), (vec![json!("${WORKSPACE}")], vec![]));
        assert_eq!(lists.execute, ["${WORKSPACE}"]);
        assert_eq!(lost.len(), 1, "{lost:?}");
        // The whole file system is closed anyway.
        let (lists, lost) = settled(&[("/", Deny), ("/srv", Read)]);
        assert_eq!((lists.execute, lists.deny, lost), (vec![json!("/srv")], vec![], vec![]));
        // Below something else a denial stays, and what it had open is lost.
        let (lists, lost) = settled(&[("/srv", Write), ("/srv/a", Deny), ("/srv/a/b", Read)]);
        assert_eq!(lists.deny, ["/srv/a"]);
        assert_eq!(lost, ["/srv/a/b: a denial has no exceptions: '/srv/a/b' stays closed with '/srv/a'"]);
    }
}
