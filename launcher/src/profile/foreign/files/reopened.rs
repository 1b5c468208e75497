//! What a policy opens below something that it closes. A denial of a profile has no exceptions: the denial is left out
//! where nothing else opens what it closes, or it stays and what is open in it is lost.

use std::collections::{BTreeMap, BTreeSet};

use crate::profile::foreign::Losses;
use crate::profile::foreign::files::{Access, Files};
use crate::profile::foreign::nesting::{Nesting, root};
use crate::profile::location::Location;

/// What the system gives every run anew, whatever its profile says.
const OWN: [&str; 2] = ["/dev", "/proc"];

impl Files {
    /// Settles what is opened below something closed. `base` is what the profile that is extended opens.
    pub(super) fn open_again(&mut self, base: &[Location], nesting: &Nesting, losses: &mut Losses) {
        let (closed, opened): (Vec<_>, Vec<_>) =
            self.places.iter().partition(|(_, entry)| entry.access == Access::Deny);
        // The whole file system need not be open.
        let reads_all = self.reads_all();
        let opened: Vec<&Location> = opened
            .into_iter()
            .map(|(place, _)| place)
            .filter(|place| !(reads_all && place.is_root()))
            .collect();
        let has_opener = |closed: &Location| {
            base.iter().chain(opened.iter().copied()).any(|opener| nesting.holds(opener, closed))
        };
        let mut left_out: BTreeMap<Location, Location> = BTreeMap::new();
        let mut lost: BTreeMap<Location, Location> = BTreeMap::new();
        for location in &opened {
            let around =
                || closed.iter().map(|(place, _)| *place).filter(|place| nesting.holds(place, location));
            let stays = around().find(|place| self.yielding.contains(*location) || has_opener(place));
            match stays {
                Some(place) => drop(lost.insert((*location).clone(), place.clone())),
                None => around().for_each(|place| {
                    left_out.entry(place.clone()).or_insert_with(|| (*location).clone());
                }),
            }
        }
        let whys: Vec<(String, String)> = left_out
            .iter()
            .filter_map(|(closed, location)| {
                let at = self.places.get(closed)?.place.clone();
                let why = format!(
                    "'{closed}' is closed with '{location}' open in it, and a denial has no exceptions"
                );
                if reads_all {
                    let rest =
                        format!("the profile opens '{location}' and what programs need, and nothing else");
                    return Some((at, format!("{why}: {rest} of the machine")));
                }
                let (first, more) = self.opened_anyway(closed, base)?;
                let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
                Some((at, format!("{why}: '{first}' stays open, as in every profile{more}")))
            })
            .collect();
        whys.into_iter().for_each(|(at, why)| losses.note(at, why));
        if reads_all && !left_out.is_empty() {
            self.places.remove(&root());
        }
        left_out.keys().for_each(|closed| drop(self.places.remove(closed)));
        for (location, closed) in lost {
            if let Some(entry) = self.places.remove(&location) {
                let why =
                    format_args!("a denial has no exceptions: '{location}' stays closed with '{closed}'");
                losses.note(entry.place, why);
            }
        }
    }

    /// Whether the whole file system is open for reading.
    fn reads_all(&self) -> bool {
        let all = self.places.get(&root());
        all.is_some_and(|entry| matches!(entry.access, Access::Read | Access::Fixed))
    }

    /// What of a closed place every profile opens, and the document does not: the first, and how many more.
    fn opened_anyway(&self, closed: &Location, base: &[Location]) -> Option<(Location, usize)> {
        let own = OWN.map(|path| Location { base: None, rest: path.to_string().into() });
        let is_said = |place: &Location| {
            let mut open = self.places.iter().filter(|(_, entry)| entry.access != Access::Deny);
            self.opens_minimal || open.any(|(opener, _)| opener.holds(place))
        };
        // Whatever a document says, a run has its workspace, its scratch and the toolchains of the home.
        let of_system = base.iter().filter(|place| place.base.is_none() && closed.holds(place));
        let unsaid: BTreeSet<&Location> =
            of_system.filter(|place| !is_said(place) && !own.iter().any(|own| own.holds(place))).collect();
        let first = (*unsaid.first()?).clone();
        Some((first, unsaid.len() - 1))
    }
}
