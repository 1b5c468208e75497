//! What a unit says about the file system, as systemd mounts it. Of all that is said about one place the strictest
//! counts. What is closed hides what is named below it. What directives keep stays, whatever else is opened.

use std::collections::BTreeMap;

use crate::profile::error::{Plain, ProfileCause};
use crate::profile::foreign::files::{Access, Files, is_tmp};
use crate::profile::foreign::nesting::{holds_usually, may_hold, nearest};
use crate::profile::foreign::systemd::kept::{self, Mount};
use crate::profile::foreign::systemd::service::Service;
use crate::profile::foreign::systemd::unit::Setting;
use crate::profile::foreign::systemd::{values, words};
use crate::profile::foreign::{Losses, MOST};
use crate::profile::location::Location;
use crate::profile::words::Variable;

/// The lists of paths.
const LISTS: [(&str, Mount); 3] =
    [("ReadWritePaths", Mount::Write), ("ReadOnlyPaths", Mount::Read), ("InaccessiblePaths", Mount::Closed)];

/// The lists of binds.
const BINDS: [(&str, Mount); 2] = [("BindReadOnlyPaths", Mount::BindRead), ("BindPaths", Mount::Bind)];

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

/// A place above another one, and what the unit says about it.
type Above<'p> = (&'p Location, &'p Entry);

/// What of an entry a profile is told.
enum Said {
    All,
    /// That nothing there is changed. It opens nothing.
    Kept,
    Nothing,
}

impl Places {
    /// Those of a service.
    pub fn of(service: &Service, losses: &mut Losses) -> Result<Places, ProfileCause> {
        let mut places = Places::default();
        places.add_kept(service, losses)?;
        for (name, mount) in LISTS {
            for (setting, word) in service.words(name)? {
                let (optional, path) = split(&word);
                places.add(setting, path, mount, optional, losses);
            }
        }
        for (name, mount) in BINDS {
            for (setting, parts) in service.binds(name)? {
                places.add_bind(setting, &parts, mount, losses);
            }
        }
        for (setting, word) in service.words("TemporaryFileSystem")? {
            let (path, options) = words::path_with_options(&word).map_err(|why| setting.wrong(why))?;
            let is_scratch = values::path(&path).is_ok_and(|location| is_tmp(&location));
            if !is_scratch && !options.split(',').any(|option| option == "ro") {
                let what = format_args!("'{}' is closed, and no scratch of its own", Plain(&path));
                losses.note(setting.place(), what);
            }
            places.add(setting, &path, Mount::Hidden, false, losses);
        }
        for (name, above, mount) in OWN {
            for (setting, word) in service.words(name)? {
                let parts = words::directory(&word).map_err(|why| setting.wrong(why))?;
                places.add_own(setting, above, &parts, mount, losses);
            }
        }
        Ok(places)
    }

    /// Adds what directives keep.
    fn add_kept(&mut self, service: &Service, losses: &mut Losses) -> Result<(), ProfileCause> {
        for row in kept::rows(service)? {
            let at = service.last(row.directive).map_or_else(String::new, Setting::place);
            for path in row.places {
                let location = Location { base: None, rest: (*path).into() };
                let entry = Entry { mount: row.mount, optional: true, kept: true, at: at.clone() };
                self.put(location, entry, losses);
            }
        }
        if let Some(setting) = service.last("ProtectHome").filter(|setting| setting.value == "tmpfs") {
            losses.note(setting.place(), "the homes are closed, and not empty");
        }
        Ok(())
    }

    /// Adds a path of a list.
    fn add(&mut self, setting: &Setting, path: &str, mount: Mount, optional: bool, losses: &mut Losses) {
        match values::path(path) {
            Ok(location) => {
                self.put(location, Entry { mount, optional, kept: false, at: setting.place() }, losses);
            }
            Err(why) => losses.note(setting.place(), why),
        }
    }

    /// Adds a bind: what is bound, where it is seen, and how.
    fn add_bind(&mut self, setting: &Setting, parts: &[String], mount: Mount, losses: &mut Losses) {
        let [source, more @ ..] = parts else { return };
        let bare = source.strip_prefix('-');
        let (optional, source) = (bare.is_some(), bare.unwrap_or(source));
        let target = more.first().map_or(source, String::as_str);
        match more.get(1..).unwrap_or_default() {
            [] => {}
            [options] if matches!(&**options, "" | "rbind") => {}
            [options] if options == "norbind" => {
                let what = format_args!("what is mounted below '{}' is there as well", Plain(source));
                losses.note(setting.place(), what);
            }
            options => {
                let what = format_args!("'{}' is no option of a bind", Plain(&options.join(":")));
                return losses.note(setting.place(), what);
            }
        }
        let is_elsewhere = match (values::path(source), values::path(target)) {
            (Ok(source), Ok(target)) => source != target,
            (Err(why), _) | (_, Err(why)) => return losses.note(setting.place(), why),
        };
        if !is_elsewhere {
            return self.add(setting, source, mount, optional, losses);
        }
        let what = format_args!(
            "'{}' has no other name in a run: '{}' is closed, where the unit has it",
            Plain(source),
            Plain(target)
        );
        losses.note(setting.place(), what);
        // What the machine has there is out of sight. Scratch is the run's own anyway.
        let is_scratch = values::path(target).is_ok_and(|location| is_tmp(&location));
        let mount = if is_scratch { Mount::Hidden } else { Mount::Closed };
        self.add(setting, target, mount, optional, losses);
    }

    /// Adds a directory that systemd makes.
    fn add_own(
        &mut self,
        setting: &Setting,
        above: &str,
        parts: &[String],
        mount: Mount,
        losses: &mut Losses,
    ) {
        let [own, more @ ..] = parts else { return };
        let mut names = own.split('/').filter(|name| !matches!(*name, "" | ".")).peekable();
        // systemd has links to others there.
        if own.starts_with('/') || names.peek().is_none_or(|name| *name == "private") {
            let what = format_args!("'{}' is no directory below '{above}'", Plain(own));
            return losses.note(setting.place(), what);
        }
        if more.iter().any(|part| !part.is_empty()) {
            losses.note(setting.place(), "no links are made to the directory");
        }
        let path = format!("{above}/{own}");
        if values::path(&path).is_ok_and(|location| location.base.is_none()) {
            let what = format_args!("'{}' has to exist: a run does not make it", Plain(&path));
            losses.note(setting.place(), what);
        }
        let is_read_only = more.get(1).is_some_and(|flags| flags == "ro");
        self.add(setting, &path, if is_read_only { Mount::BindRead } else { mount }, false, losses);
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
            let said = if is_full { Said::All } else { self.said(location, entry, losses) };
            match (said, entry.mount.access()) {
                (Said::Nothing, _) => {}
                (Said::Kept, _) => files.keep_if_there(location.clone()),
                // Scratch is the run's own.
                (Said::All, Access::Deny) if entry.mount == Mount::Hidden && is_tmp(location) => {}
                (Said::All, Access::Fixed) if entry.kept => files.keep_if_there(location.clone()),
                (Said::All, access) if entry.optional => {
                    files.add_optional(location.clone(), access, &entry.at);
                }
                (Said::All, access) => files.add(location.clone(), access, &entry.at),
            }
        }
    }

    /// What a profile is told of a place, in the midst of the others. A home may be elsewhere than homes usually are:
    /// what only usually lies in another place is left out as far as it opens something, and no further.
    fn said(&self, location: &Location, entry: &Entry, losses: &mut Losses) -> Said {
        let around = self.above(location);
        let surely: Vec<Above> = around.iter().copied().filter(|(other, _)| other.holds(location)).collect();
        if is_closed(&surely) {
            return Said::Nothing;
        }
        if entry.kept {
            return self.said_of_kept(location, entry, &surely);
        }
        if is_closed(&around) {
            return match entry.mount {
                Mount::Closed | Mount::Hidden => Said::All,
                Mount::BindRead | Mount::Read => Said::Kept,
                Mount::Bind | Mount::Write => Said::Nothing,
            };
        }
        let (usually, always) = (hidden(&around), hidden(&surely));
        if let Some((place, by)) = usually.or(always).filter(|_| !decides(entry)) {
            // What is usually shown is for reading anyway.
            if usually.is_some() || entry.mount == Mount::Write {
                let what = format_args!("'{location}' stays closed: {} hides '{place}'", by.at);
                losses.note(&entry.at, what);
            }
            return if entry.mount == Mount::Read { Said::Kept } else { Said::Nothing };
        }
        if let Some(kept) = self.protected(entry, &around) {
            let what =
                format_args!("what is protected has no exceptions: '{location}' stays as '{kept}' does");
            losses.note(&entry.at, what);
            return Said::Nothing;
        }
        Said::All
    }

    /// What a profile is told of a place that a directive keeps. No rule about it names a home.
    fn said_of_kept(&self, location: &Location, entry: &Entry, above: &[Above]) -> Said {
        let by = nearest(above.iter().copied()).map(|(_, by)| by.mount);
        let is_said = match entry.mount {
            Mount::Read => by.is_some_and(|by| by.access() == Access::Write) || self.may_be_in_home(location),
            // Nothing of the machine's is there anyway.
            mount => !(mount == Mount::Hidden && by == Some(Mount::Hidden)),
        };
        if is_said { Said::All } else { Said::Nothing }
    }

    /// Whether a place could lie in one that the unit opens below the home, wherever that is.
    fn may_be_in_home(&self, location: &Location) -> bool {
        let is_below = |rest: &str| {
            let mut ends = location.rest.match_indices(rest).map(|(at, _)| &location.rest[at + rest.len()..]);
            ends.any(|end| end.is_empty() || end.starts_with('/'))
        };
        let mut opened = self.0.iter().filter(|(place, entry)| {
            place.base == Some(Variable::Home) && entry.mount.access() == Access::Write
        });
        !location.is_root() && opened.any(|(place, _)| may_hold(place, location) && is_below(&place.rest))
    }

    /// The nearest place above what is to be written, if it is read-only in one that is written as well.
    fn protected<'p>(&'p self, entry: &Entry, around: &[Above<'p>]) -> Option<&'p Location> {
        let (place, by) = nearest(around.iter().copied())?;
        if by.mount.access() != Access::Fixed || entry.mount.access() != Access::Write {
            return None;
        }
        let outer = nearest(self.above(place).into_iter());
        outer.is_some_and(|(_, outer)| outer.mount.access() == Access::Write).then_some(place)
    }

    /// The places that a place lies in, always or usually.
    fn above(&self, place: &Location) -> Vec<Above<'_>> {
        self.0.iter().filter(|(other, _)| *other != place && holds_usually(other, place)).collect()
    }
}

/// Whether an entry says what is at its place, and not only what may be done there.
fn decides(entry: &Entry) -> bool {
    !matches!(entry.mount, Mount::Read | Mount::Write)
}

fn is_closed(above: &[Above]) -> bool {
    above.iter().any(|(_, by)| by.mount == Mount::Closed)
}

/// The nearest place that says what is there, if it hides what the machine has.
fn hidden<'p>(above: &[Above<'p>]) -> Option<Above<'p>> {
    let deciding = above.iter().copied().filter(|(_, by)| decides(by));
    nearest(deciding).filter(|(_, by)| by.mount == Mount::Hidden)
}

/// Whether a path of a list may be missing, and the path. Before it stands one `-` and then one `+`, if any: with more
/// it is none to systemd.
pub fn split(word: &str) -> (bool, &str) {
    let bare = word.strip_prefix('-');
    let (optional, path) = (bare.is_some(), bare.unwrap_or(word));
    (optional, path.strip_prefix('+').unwrap_or(path))
}

#[cfg(test)]
mod tests;
