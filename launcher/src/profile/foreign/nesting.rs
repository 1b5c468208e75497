//! Which places lie in which.
//!
//! Two places that are written in different ways (`/srv/x`, `${WORKSPACE}/x`) may be one, and a document does not say
//! so. What depends on it is said for both cases where a profile can do that (`may_hold`). Elsewhere it counts what is
//! usual, and what is so where the document is imported (`Nesting::holds`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::profile::location::{Location, Variables};
use crate::profile::words::Variable;

/// The places of a document, as they are where it is imported.
#[derive(Debug, Default)]
pub struct Nesting(BTreeMap<Location, PathBuf>);

impl Nesting {
    /// Of these places.
    pub fn of<'l>(locations: impl Iterator<Item = &'l Location>, here: &Variables) -> Nesting {
        let known = locations.filter_map(|place| Some((place.clone(), place.expand_path(here)?)));
        Nesting(known.collect())
    }

    /// Whether a place is another one or below it: always, usually, or here.
    pub fn holds(&self, outer: &Location, inner: &Location) -> bool {
        holds_usually(outer, inner) || (outer.base != inner.base && self.holds_here(outer, inner))
    }

    fn holds_here(&self, outer: &Location, inner: &Location) -> bool {
        let pair = self.0.get(outer).zip(self.0.get(inner));
        pair.is_some_and(|(outer, inner)| inner.starts_with(outer))
    }
}

/// The whole file system.
pub fn root() -> Location {
    Location { base: None, rest: "/".into() }
}

/// A place below a variable, or the variable itself.
pub fn below(base: Variable, rest: &str) -> Location {
    Location { base: Some(base), rest: rest.to_string().into() }
}

/// Whether a place is another one or below it: always or usually.
pub fn holds_usually(outer: &Location, inner: &Location) -> bool {
    outer.holds(inner) || (outer.base != inner.base && usually_holds(outer, inner))
}

/// The nearest of the places above one, with what is said about it.
pub fn nearest<'l, T>(above: impl Iterator<Item = (&'l Location, T)>) -> Option<(&'l Location, T)> {
    above.max_by_key(|(place, _)| (place.base.is_some(), place.rest.len()))
}

/// Whether a place could be another one or below it, if the variables lead there. Nothing of the machine is in what is
/// the run's own.
pub fn may_hold(outer: &Location, inner: &Location) -> bool {
    match (outer.base, inner.base) {
        (one, other) if one == other => outer.holds(inner),
        (Some(Variable::Tmp | Variable::Cache), _) => false,
        _ => !usually_holds(inner, outer),
    }
}

/// Whether the home directory or the workspace is where it usually is.
fn usually_holds(outer: &Location, inner: &Location) -> bool {
    match (outer.base, inner.base) {
        (None, Some(Variable::Home | Variable::Workspace)) => {
            depth_in_homes(&outer.rest).is_some_and(|d| d <= 1)
        }
        (Some(Variable::Home), Some(Variable::Workspace)) => outer.rest.is_empty(),
        (Some(Variable::Home), None) => {
            outer.rest.is_empty() && depth_in_homes(&inner.rest).is_some_and(|depth| depth >= 1)
        }
        _ => false,
    }
}

/// How deep a path is in a directory that home directories are in: 1 for a home directory.
fn depth_in_homes(path: &str) -> Option<usize> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match *parts.first()? {
        "home" | "Users" => Some(parts.len() - 1),
        "root" => Some(parts.len()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn location(text: &str) -> Location {
        Location::path(text.to_string().into()).unwrap()
    }

    #[test]
    fn a_place_holds_another_always_or_usually_or_here() {
        let places = [
            "/",
            "/home",
            "/home/me",
            "/home/me/x",
            "/w",
            "/w/x",
            "${HOME}",
            "${WORKSPACE}",
            "${WORKSPACE}/x",
        ];
        let places = places.map(location);
        let here = Variables {
            workspace: Some(Path::new("/w")),
            home: Some(Path::new("/h")),
            ..Variables::default()
        };
        let [here, elsewhere] = [here, Variables::default()].map(|here| Nesting::of(places.iter(), &here));
        for (outer, inner, usually, so_here) in [
            ("/", "${WORKSPACE}", true, true),
            ("/home", "${WORKSPACE}", true, true),
            ("/home/me", "${HOME}", true, true),
            ("/home/me/x", "${WORKSPACE}", false, false),
            ("${HOME}", "${WORKSPACE}", true, true),
            ("${HOME}", "/home/me/x", true, true),
            ("${HOME}", "/home", false, false),
            ("/w", "${WORKSPACE}", false, true),
            ("/w/x", "${WORKSPACE}", false, false),
            ("/w/x", "${WORKSPACE}/x", false, true),
            ("${WORKSPACE}", "/w/x", false, true),
        ] {
            let (one, other) = (location(outer), location(inner));
            assert_eq!(elsewhere.holds(&one, &other), usually, "{outer} {inner}");
            assert_eq!(here.holds(&one, &other), so_here, "{outer} {inner}");
        }
    }

    #[test]
    fn a_place_may_hold_what_is_written_in_another_way() {
        for (outer, inner, may) in [
            ("${WORKSPACE}", "/srv/x", true),
            ("/srv", "${HOME}/.bashrc", true),
            ("${WORKSPACE}", "${HOME}/x", true),
            ("${WORKSPACE}", "${HOME}", false),
            ("${WORKSPACE}", "/home", false),
            ("${WORKSPACE}", "/home/me/x", true),
            ("${TMP}", "/srv/x", false),
            ("/srv", "/srv/x", true),
            ("/srv", "/usr", false),
        ] {
            assert_eq!(may_hold(&location(outer), &location(inner)), may, "{outer} {inner}");
        }
    }
}
