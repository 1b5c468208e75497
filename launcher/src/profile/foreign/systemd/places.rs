//! What a unit says about the file system, as systemd mounts it. Of all that is said about one place the strictest
//! counts. What is closed hides what is named below it. What directives keep stays, whatever else is opened.

use std::collections::BTreeMap;

use crate::profile::error::{Plain, ProfileCause};
use crate::profile::foreign::files::{Access, Files, is_tmp};
use crate::profile::foreign::nesting::{holds_usually, nearest};
use crate::profile::foreign::systemd::kept::{self, Mount};
use crate::profile::foreign::systemd::service::Service;
use crate::profile::foreign::systemd::unit::Setting;
use crate::profile::foreign::systemd::values;
use crate::profile::foreign::{Losses, MOST};
use crate::profile::location::Location;

/// The lists of paths, by their new and old names.
const LISTS: [(&str, Mount); 8] = [
    ("ReadWritePaths", Mount::Write),
    ("ReadWriteDirectories", Mount::Write),
    ("ReadOnlyPaths", Mount::Read),
    ("ReadOnlyDirectories", Mount::Read),
    ("InaccessiblePaths", Mount::Closed),
    ("InaccessibleDirectories", Mount::Closed),
    ("BindReadOnlyPaths", Mount::BindRead),
    ("BindPaths", Mount::Bind),
];

/// Directories that systemd makes for the service, and where.
const OWN: [(&str, &str, Mount); 5] = [
    ("RuntimeDirectory", "/run", Mount::Bind),
    ("StateDirectory", "/var/lib", Mount::Bind),
    ("CacheDirectory", "/var/cache", Mount::Bind),
    ("LogsDirectory", "/var/log", Mount::Bind),
    ("ConfigurationDirectory", "/etc", Mount::BindRead),
];

/// The places of a unit.
#[derive(Debug, Default)]
pub struct Places(BTreeMap<Location, Entry>);

#[derive(Debug)]
struct Entry {
    mount: Mount,
    /// Whether it may be missing.
    optional: bool,
    /// Whether a directive keeps it that is not about this place alone: it opens nothing.
    kept: bool,
    /// Where the unit says so.
    at: String,
}

impl Places {
    /// Those of a service.
    pub fn of(service: &Service, losses: &mut Losses) -> Result<Places, ProfileCause> {
        let mut places = Places::default();
        for row in kept::rows(service)? {
            let at = service.last(row.directive).map_or_else(String::new, Setting::place);
            for path in row.places {
                let location = Location { base: None, rest: (*path).into() };
                let entry = Entry { mount: row.mount, optional: true, kept: true, at: at.clone() };
                places.put(location, entry, losses);
            }
        }
        if let Some(setting) = service.last("ProtectHome").filter(|setting| setting.value == "tmpfs") {
            losses.note(setting.place(), "the homes are closed, and not empty");
        }
        for (name, mount) in LISTS {
            for (setting, word) in service.words(name)? {
                places.add(setting, &word, mount, losses);
            }
        }
        for (setting, word) in service.words("TemporaryFileSystem")? {
            let (path, options) = word.split_once(':').unwrap_or((&word, ""));
            let is_scratch = values::path(path).is_ok_and(|location| is_tmp(&location));
            if !is_scratch && !options.split(',').any(|option| option == "ro") {
                let what = format_args!("'{}' is closed, and no scratch of its own", Plain(path));
                losses.note(setting.place(), what);
            }
            places.add(setting, path, Mount::Hidden, losses);
        }
        for (name, above, mount) in OWN {
            for (setting, word) in service.words(name)? {
                let (own, links) = word.split_once(':').unwrap_or((&word, ""));
                if !links.is_empty() {
                    losses.note(setting.place(), "no links are made to the directory");
                }
                let path = format!("{above}/{own}");
                if values::path(&path).is_ok_and(|location| location.base.is_none()) {
                    let what = format_args!("'{}' has to exist: a run does not make it", Plain(&path));
                    losses.note(setting.place(), what);
                }
                places.add(setting, &path, mount, losses);
            }
        }
        Ok(places)
    }

    /// Adds a path of a list.
    fn add(&mut self, setting: &Setting, word: &str, mount: Mount, losses: &mut Losses) {
        let (optional, bare) = split(word);
        let (source, rest) = bare.split_once(':').unwrap_or((bare, ""));
        let target = rest.split(':').next().unwrap_or("");
        if !target.is_empty() && target != source {
            losses.note(setting.place(), format_args!("'{}' has no other name in a run", Plain(source)));
        }
        match values::path(source) {
            Ok(location) => {
                self.put(location, Entry { mount, optional, kept: false, at: setting.place() }, losses);
            }
            Err(why) => losses.note(setting.place(), why),
        }
    }

    fn put(&mut self, location: Location, entry: Entry, losses: &mut Losses) {
        let Some(known) = self.0.get_mut(&location) else {
            self.0.insert(location, entry);
            return;
        };
        let (mount, optional) = (known.mount.and(entry.mount), known.optional && entry.optional);
        let other = if mount == entry.mount && mount != known.mount {
            std::mem::replace(known, entry)
        } else {
            entry
        };
        (known.mount, known.optional) = (mount, optional);
        if mount == Mount::Hidden && other.mount == Mount::Write && !is_tmp(&location) {
            losses.note(other.at, format_args!("'{location}' stays closed: {} hides it", known.at));
        }
    }

    /// Adds them to what a profile is made of. What it cannot say is lost.
    pub fn settle(self, files: &mut Files, losses: &mut Losses) {
        // The files refuse so many.
        let is_full = self.0.len() > MOST;
        for (location, entry) in &self.0 {
            if is_full || self.is_there(location, entry, losses) {
                match entry.mount.access() {
                    // Scratch is the run's own.
                    Access::Deny if entry.mount == Mount::Hidden && is_tmp(location) => {}
                    Access::Fixed if entry.kept => files.keep_if_there(location.clone()),
                    access if entry.optional => files.add_optional(location.clone(), access, &entry.at),
                    access => files.add(location.clone(), access, &entry.at),
                }
            }
        }
    }

    /// Whether a place says something to a profile, in the midst of the others.
    fn is_there(&self, location: &Location, entry: &Entry, losses: &mut Losses) -> bool {
        let above = |place: &Location| {
            self.0
                .iter()
                .filter(|(other, _)| *other != place && holds_usually(other, place))
                .collect::<Vec<_>>()
        };
        let around = above(location);
        if around.iter().any(|(_, entry)| entry.mount == Mount::Closed) {
            return false;
        }
        if entry.kept {
            let plain = around.iter().filter(|(other, _)| other.base.is_none());
            let by = nearest(plain.copied()).map(|(_, by)| by.mount);
            return match entry.mount {
                Mount::Read => by.is_some_and(|by| by.access() == Access::Write),
                // Nothing of the machine's is there anyway.
                mount => !(mount == Mount::Hidden && by == Some(Mount::Hidden)),
            };
        }
        let decides = |mount: Mount| !matches!(mount, Mount::Read | Mount::Write);
        let shown = nearest(around.iter().copied().filter(|(_, entry)| decides(entry.mount)));
        if let Some((hidden, by)) = shown.filter(|(_, by)| by.mount == Mount::Hidden && !decides(entry.mount))
        {
            let what = format_args!("'{location}' stays closed: {} hides '{hidden}'", by.at);
            losses.note(&entry.at, what);
            return false;
        }
        let held = nearest(around.into_iter()).filter(|(_, by)| by.mount.access() == Access::Fixed);
        let held = held.filter(|_| entry.mount.access() == Access::Write);
        let is_written = |(place, _): &(&Location, &Entry)| {
            nearest(above(place).into_iter()).is_some_and(|(_, entry)| entry.mount.access() == Access::Write)
        };
        if let Some((kept, _)) = held.filter(is_written) {
            let what =
                format_args!("what is protected has no exceptions: '{location}' stays as '{kept}' does");
            losses.note(&entry.at, what);
            return false;
        }
        true
    }
}

/// Whether a path of a list may be missing, and the path.
pub fn split(word: &str) -> (bool, &str) {
    let bare = word.trim_start_matches(['-', '+', '!']);
    (word[..word.len() - bare.len()].contains('-'), bare)
}
