//! What must not be allowed only because a command asked for it: secrets, what something outside executes later,
//! sockets of services, calls that no built-in profile has.
//!
//! The lists say what is known. What is not known is closed: what a home directory hides, what permissions close to
//! other users, every socket outside the workspace, every device and every call that no built-in profile gives.

mod calls;
mod look;
pub mod table;

pub use calls::KnownCalls;

use crate::error::Refusal;
use crate::host::Host;
use crate::hosts::{HostPattern, HostRule, is_public};
use crate::profile::{self, PathEntry, Pattern, Search, Variables};
use crate::sys::path::{canonical, is_there};
use crate::sys::within::{is_below, is_within};
use crate::text::shown;
use look::Look;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use table::{HOME_LATER, HOME_SECRETS, LATER, LATER_NAMES, Place, SECRET_NAMES, SECRETS};

/// What a rule lets be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Reading, or reading and executing.
    Read,
    /// Changing.
    Write,
}

/// Knows what is sensitive on this machine, for a run in a workspace.
pub struct Sensitive {
    home: Option<PathBuf>,
    workspace: Option<PathBuf>,
    /// What built-in profiles open of a home directory.
    open: Vec<PathBuf>,
    /// The devices that they open.
    devices: Vec<PathBuf>,
    secrets: Vec<(PathBuf, String)>,
    later: Vec<(PathBuf, String)>,
    /// Names of secrets, wherever they are.
    secret_names: Vec<Pattern>,
    /// Names of what something outside executes, wherever they are.
    later_names: Vec<Pattern>,
    /// Where other users' homes are.
    homes: PathBuf,
}

/// The profile whose lists say what is open and what is protected.
const KNOWING: &str = "workspace";

impl Sensitive {
    /// On this machine, in this workspace.
    pub fn of(host: &Host, workspace: Option<&Path>) -> Result<Sensitive, Refusal> {
        let home = host.home().map(canonical);
        // A workspace that holds the home directory hides nothing of it.
        let workspace = workspace.map(canonical);
        let holds_home = |at: &PathBuf| home.as_ref().is_some_and(|home| is_within(home, at));
        let workspace = workspace.filter(|at| !holds_home(at));
        let knowing = profile::load(OsStr::new(KNOWING), &Search::default())?;
        let variables =
            Variables { workspace: workspace.as_deref(), home: home.as_deref(), ..Variables::default() };
        let expanded = |list: &[PathEntry]| -> Vec<PathBuf> {
            list.iter().filter_map(|entry| entry.expand_path(&variables)).collect()
        };
        let paths = &knowing.paths;
        let open = [expanded(&paths.read), expanded(&paths.execute)].concat();
        let devices = [expanded(&paths.read), expanded(&paths.write)].concat();
        let protected = paths.protect.iter().flat_map(|entry| {
            let why = entry.origin.why.as_deref().unwrap_or("something outside could execute it").to_string();
            let readers: Vec<PathBuf> =
                entry.readers.iter().filter_map(|reader| reader.expand_path(&variables)).collect();
            let path = entry.path.expand_path(&variables);
            // What is not there, and nobody would read, is nothing yet.
            let is_read = readers.is_empty() || readers.iter().any(|reader| is_there(reader));
            let path = path.filter(|path| is_read || is_there(path)).map(|path| (path, why));
            let settings = "settings of a tool that is started outside";
            let outside = readers
                .into_iter()
                .filter(|path| !workspace.as_ref().is_some_and(|own| is_within(path, own)));
            path.into_iter().chain(outside.map(|path| (path, settings.to_string())))
        });
        let below_home = |places: &[Place]| -> Vec<(PathBuf, String)> {
            let at = |(path, what): &Place| Some((home.as_ref()?.join(path), what.to_string()));
            places.iter().filter_map(at).collect()
        };
        let absolute = |places: &[Place]| -> Vec<(PathBuf, String)> {
            let places = places.iter().map(|(path, what)| (PathBuf::from(path), what.to_string()));
            // The user's own home is known better.
            places.filter(|(path, _)| home.as_ref() != Some(path)).collect()
        };
        let commands = std::env::split_paths(host.variable("PATH").unwrap_or_default());
        let commands = commands.filter(|directory| directory.is_absolute());
        let commands = commands.map(|at| (canonical(&at), "shells look for commands in it".to_string()));
        // A repository that a run makes is looked at when it has ended.
        let git = workspace.iter().filter(|at| is_there(&at.join(".git"))).flat_map(|at| {
            let of =
                |name: &str| (at.join(".git").join(name), "git executes what is named there".to_string());
            ["hooks", "config", "info"].map(of)
        });
        let mut later: Vec<_> = protected.collect();
        later.extend(below_home(HOME_LATER));
        later.extend(absolute(LATER));
        later.extend(commands.chain(git));
        let secrets = [below_home(HOME_SECRETS), absolute(SECRETS)].concat();
        let secret_names = SECRET_NAMES.iter().map(|name| Pattern::fixed(name)).collect();
        // What is protected by its name in a workspace, or a home, is so in the next one.
        let named = paths.protect.iter().filter(|entry| entry.path.base.is_some());
        let named =
            named.filter_map(|entry| entry.path.rest.strip_prefix('/').filter(|rest| !rest.contains('/')));
        let later_names = LATER_NAMES.iter().map(|name| Pattern::fixed(name));
        let later_names =
            later_names.chain(named.map(|name| Pattern::new(name.to_string().into()))).collect();
        let homes = PathBuf::from("/home");
        Ok(Sensitive { home, workspace, open, devices, secrets, later, secret_names, later_names, homes })
    }

    /// The secrets that are known, with what they are.
    pub fn secrets(&self) -> &[(PathBuf, String)] {
        &self.secrets
    }

    /// The places that are known of which something outside executes what is there.
    pub fn executed_later(&self) -> &[(PathBuf, String)] {
        &self.later
    }

    /// Why a rule about a path, and all below it, is sensitive; `None` if it is not. The path is a real one.
    pub fn path(&self, path: &Path, what: Use) -> Option<String> {
        if is_within(path, Path::new("/dev")) {
            let known = self.devices.iter().any(|device| is_within(path, device));
            return (!known).then(|| "a device that no built-in profile opens".to_string());
        }
        let tables = match what {
            Use::Read => vec![&self.secrets],
            Use::Write => vec![&self.later, &self.secrets],
        };
        let is_own = self.workspace.as_deref().is_some_and(|own| is_within(path, own));
        // Of the workspace, what is listed in it counts; what is above it does not.
        let counts = |place: &Path| match self.workspace.as_deref().filter(|_| is_own) {
            Some(own) => is_below(place, own) && is_within(path, place),
            None => is_within(path, place) || (is_below(place, path) && is_there(place)),
        };
        let named = tables.into_iter().flatten().find(|(place, _)| counts(place));
        // What a built-in profile opens for reading is known to be harmless.
        let is_open = what == Use::Read && self.open.iter().any(|open| is_within(path, open));
        if let Some((place, why)) = named.filter(|(place, _)| !(is_open && is_below(path, place))) {
            return Some(if place == path { why.clone() } else { format!("{}: {why}", shown(place)) });
        }
        if is_own || is_open {
            return None;
        }
        self.by_home(path).or_else(|| by_permissions(path, what)).or_else(|| self.by_contents(path, what))
    }

    /// The workspace, where a rule about a path in it would open what git executes. What protects that is about the
    /// workspace as a whole.
    pub fn needs_whole(&self, path: &Path) -> Option<&Path> {
        const DATA: [&str; 5] = ["objects", "refs", "logs", "lfs", "index"];
        let own = self.workspace.as_deref().filter(|own| is_below(path, own))?;
        let mut parts = path.strip_prefix(own).ok()?.iter().skip_while(|part| *part != ".git");
        let opens = match (parts.next(), parts.next()) {
            (None, _) => self.look(Use::Write).without_services().at(path, own).is_some(),
            (Some(_), Some(part)) => !DATA.iter().any(|data| part == *data),
            (Some(_), None) => true,
        };
        opens.then_some(own)
    }

    /// Why a home directory closes it.
    fn by_home(&self, path: &Path) -> Option<String> {
        let holds_homes =
            is_within(&self.homes, path) || self.home.as_deref().is_some_and(|at| is_within(at, path));
        if holds_homes {
            return Some("it holds home directories".to_string());
        }
        let Some(home) = self.home.as_deref().filter(|home| is_below(path, home)) else {
            return is_within(path, &self.homes).then(|| "another user's home directory".to_string());
        };
        let first = path.strip_prefix(home).ok()?.iter().next()?;
        let is_hidden = first.as_encoded_bytes().starts_with(b".");
        is_hidden.then(|| "hidden in the home directory, where settings and keys are".to_string())
    }

    /// Why something below it makes it sensitive.
    fn by_contents(&self, path: &Path, what: Use) -> Option<String> {
        if table::PUBLIC.iter().any(|open| is_within(path, Path::new(open))) {
            return None;
        }
        // The way to the home directory says nothing about what is in it.
        let home = self.home.as_deref().filter(|home| is_below(path, home));
        self.look(what).at(path, home.unwrap_or(Path::new("/")))
    }

    fn look(&self, what: Use) -> Look<'_> {
        Look::new(what, if what == Use::Read { &self.secret_names } else { &self.later_names })
    }

    /// Why a UNIX socket is sensitive: what listens there has rights of its own.
    pub fn unix(&self, path: &Path) -> Option<String> {
        let known = table::SOCKETS.iter().find(|(socket, _)| canonical(Path::new(socket)) == path);
        match known {
            Some((_, what)) => Some(what.to_string()),
            None if self.workspace.as_deref().is_some_and(|own| is_within(path, own)) => None,
            None => Some("a service outside, with rights of its own".to_string()),
        }
    }

    /// Why a rule about hosts is sensitive.
    pub fn host(&self, rule: &HostRule) -> Option<String> {
        match &rule.hosts {
            HostPattern::Any => Some("every host".to_string()),
            HostPattern::Name(_) => None,
            HostPattern::Below(_) => Some("every host below a name".to_string()),
            HostPattern::Range(range) => match range.single() {
                Some(address) if is_public(address) => None,
                Some(_) => {
                    Some("an address of this machine, a private network or a metadata service".to_string())
                }
                None => Some("a range of addresses".to_string()),
            },
        }
    }
}

/// Why permissions close it to other users: what only its owner may read is the owner's.
fn by_permissions(path: &Path, what: Use) -> Option<String> {
    let meta = path.metadata().ok().filter(|_| what == Use::Read)?;
    look::is_closed(&meta).then(|| look::CLOSED.to_string())
}

#[cfg(test)]
mod tests;
