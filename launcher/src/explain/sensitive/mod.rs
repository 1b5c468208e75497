//! What must not be allowed only because a command asked for it: secrets, what something outside executes later,
//! sockets of services, calls that no built-in profile has.
//!
//! The lists say what is known. What is not known is closed: what a home directory hides, what permissions close to
//! other users, every socket outside the workspace, every device and every call that no built-in profile gives.

mod calls;
mod git;
mod look;
pub mod table;

pub use calls::KnownCalls;

use crate::error::Refusal;
use crate::host::Host;
use crate::hosts::{HostPattern, HostRule, is_public};
use crate::profile::{self, Given, Moved, Name, PathEntry, Pattern, Protection, Search, Variables};
use crate::sys::path::{canonical, is_there};
use crate::sys::within::{is_below, is_within};
use crate::text::shown;
use look::{EXECUTED, Found, Look, OtherName};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use table::{HOME_LATER, HOME_SECRETS, LATER, LATER_NAMES, OF_OTHER_MACHINES, Place, SECRET_NAMES, SECRETS};

/// What a rule lets be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Reading, or reading and executing.
    Read,
    /// Changing.
    Write,
}

/// Something sensitive that a rule about a path opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Where: the path of the rule, something below it, or the nearest that is known of a place around it.
    pub at: PathBuf,
    /// What it is.
    pub why: String,
    /// Whether it is below the path of the rule.
    pub is_below: bool,
    /// Whether a list knows the place, and says what it is.
    pub is_known: bool,
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
    /// Such files that have other names as well: secrets, and what is executed.
    other_names: [Vec<OtherName>; 2],
    /// Where other users' homes are.
    homes: PathBuf,
}

/// The profile whose lists say what is open and what is protected.
const KNOWING: &str = "workspace";

/// Where devices are.
pub const DEVICES: &str = "/dev";
/// What is said of a device.
const DEVICE: &str = "a device that no built-in profile opens";
/// What is said of what git executes.
const GIT: &str = "git executes what is named there";
/// What is said of an address that is not the internet's.
const PRIVATE: &str = "an address of this machine, a private network or a metadata service";

/// What git writes all the time in a repository, and executes nothing of.
const GIT_DATA: [&str; 5] = ["objects", "refs", "logs", "lfs", "index"];

/// What git executes of a repository: programs, and names of programs. `info/attributes` only picks among those that
/// the configuration names, as a `.gitattributes` in the tree does.
fn executed_by_git(repository: &Path) -> [PathBuf; 2] {
    ["hooks", "config"].map(|name| repository.join(name))
}

impl Touched {
    /// Something at a path that a rule about a path opens.
    fn found(at: PathBuf, why: String, path: &Path) -> Touched {
        Touched { is_below: is_below(&at, path), at, why, is_known: false }
    }

    fn here(path: &Path, why: impl Into<String>) -> Touched {
        Touched { at: path.to_path_buf(), why: why.into(), is_below: false, is_known: false }
    }
}

/// What secrets a list knows at a path, or around it, where this is the user's home directory.
pub fn secrets_at(path: &Path, home: Option<&Path>) -> Option<&'static str> {
    let known = match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => listed(OF_OTHER_MACHINES, below).or_else(|| listed(HOME_SECRETS, below)),
        None => listed(SECRETS, path),
    };
    known.or_else(|| is_secret_by_name(path).then_some("a secret, as its name says"))
}

/// Whether what is at a path in the home directory opens something on other machines only.
pub fn is_of_other_machines(path: &Path, home: Option<&Path>) -> bool {
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    below.is_some_and(|below| listed(OF_OTHER_MACHINES, below).is_some())
}

fn listed(places: &[Place], path: &Path) -> Option<&'static str> {
    places.iter().find(|(place, _)| path.starts_with(place)).map(|(_, what)| *what)
}

/// What listens at a UNIX socket, where that does what the user may do, or more.
pub fn service_at(path: &Path) -> Option<&'static str> {
    let is_it = |socket: &Path| socket == path || canonical(socket) == canonical(path);
    let known = table::SOCKETS.iter().find(|(socket, _)| is_it(Path::new(socket)));
    let in_directory = |(name, _): &&Place| {
        path.iter().rev().skip(1).any(|part| part.as_bytes().starts_with(name.as_bytes()))
    };
    known.or_else(|| table::SOCKET_DIRECTORIES.iter().find(in_directory)).map(|(_, what)| *what)
}

fn is_secret_by_name(path: &Path) -> bool {
    path.file_name().is_some_and(is_name_of_secrets) && !anyone_may_have(path)
}

/// Whether files of a name usually hold secrets.
pub fn is_name_of_secrets(name: &OsStr) -> bool {
    let name = Name::new(name.as_bytes());
    SECRET_NAMES.iter().any(|secret| Pattern::fixed(secret).matches(name))
}

fn anyone_may_have(path: &Path) -> bool {
    table::PUBLIC.iter().any(|open| is_within(path, Path::new(open)))
}

/// What a profile protects, with what reads it, where that is outside the workspace.
fn protected(entries: &[Given<Protection>], variables: &Variables<'_>) -> Vec<(PathBuf, String)> {
    const SETTINGS: &str = "settings of a tool that is started outside";
    let is_outside = |path: &PathBuf| !variables.workspace.is_some_and(|own| is_within(path, own));
    let of = |entry: &Given<Protection>| {
        let why = entry.origin.why.as_deref().unwrap_or("something outside could execute it").to_string();
        let readers: Vec<PathBuf> = entry
            .readers
            .iter()
            .flat_map(|reader| reader.expand_path(variables).into_iter().chain(reader.elsewhere(variables)))
            .collect();
        // What is not there, and nobody would read, is nothing yet.
        let is_read = readers.is_empty() || readers.iter().any(|reader| is_there(reader));
        let path = entry.path.expand_path(variables).filter(|path| is_read || is_there(path));
        let outside = readers.into_iter().filter(is_outside).map(|path| (path, SETTINGS.to_string()));
        path.map(|path| (path, why)).into_iter().chain(outside).collect::<Vec<_>>()
    };
    entries.iter().flat_map(of).collect()
}

/// Where shells look for commands.
fn commands(host: &Host) -> impl Iterator<Item = (PathBuf, String)> {
    let all = std::env::split_paths(host.variable("PATH").unwrap_or_default());
    let all = all.filter(|directory| directory.is_absolute());
    all.map(|at| (canonical(&at), "shells look for commands in it".to_string()))
}

/// What git executes of the workspace's repository. One that a run makes is looked at when it has ended.
fn git_of(workspace: Option<&Path>) -> impl Iterator<Item = (PathBuf, String)> {
    let repository = workspace.map(|at| at.join(".git")).filter(|repository| is_there(repository));
    let executed = repository.into_iter().flat_map(|repository| executed_by_git(&repository));
    executed.map(|at| (at, GIT.to_string()))
}

/// Names of what something outside executes. What is protected by its name in a workspace, or a home, is so in the next
/// one.
fn later_names(entries: &[Given<Protection>]) -> Vec<Pattern> {
    let based = entries.iter().filter(|entry| entry.path.base.is_some());
    let named =
        based.filter_map(|entry| entry.path.rest.strip_prefix('/').filter(|rest| !rest.contains('/')));
    let known = LATER_NAMES.iter().map(|name| Pattern::fixed(name));
    known.chain(named.map(|name| Pattern::new(name.to_string().into()))).collect()
}

impl Sensitive {
    /// On this machine, in this workspace.
    pub fn of(host: &Host, workspace: Option<&Path>) -> Result<Sensitive, Refusal> {
        let home = host.home().map(canonical);
        // A workspace that holds the home directory hides nothing of it.
        let workspace = workspace.map(canonical);
        let holds_home = |at: &PathBuf| home.as_ref().is_some_and(|home| is_within(home, at));
        let workspace = workspace.filter(|at| !holds_home(at));
        let knowing = profile::load(OsStr::new(KNOWING), &Search::default())?;
        let moved = Moved::all(|name| host.variable(name));
        let (own, home_at) = (workspace.as_deref(), home.as_deref());
        let variables = Variables { workspace: own, home: home_at, moved: &moved, ..Variables::default() };
        let expanded = |list: &[PathEntry]| -> Vec<PathBuf> {
            list.iter().filter_map(|entry| entry.expand_path(&variables)).collect()
        };
        let paths = &knowing.paths;
        let open = [expanded(&paths.read), expanded(&paths.execute)].concat();
        let devices = [expanded(&paths.read), expanded(&paths.write)].concat();
        let below_home = |places: &[Place]| -> Vec<(PathBuf, String)> {
            let at = |(path, what): &Place| Some((home.as_ref()?.join(path), what.to_string()));
            places.iter().filter_map(at).collect()
        };
        let absolute = |places: &[Place]| -> Vec<(PathBuf, String)> {
            let places = places.iter().map(|(path, what)| (PathBuf::from(path), what.to_string()));
            // The user's own home is known better.
            places.filter(|(path, _)| home.as_ref() != Some(path)).collect()
        };
        let mut later = protected(&paths.protect, &variables);
        later.extend(below_home(HOME_LATER));
        later.extend(absolute(LATER));
        later.extend(commands(host).chain(git_of(workspace.as_deref())));
        let secrets = [below_home(OF_OTHER_MACHINES), below_home(HOME_SECRETS), absolute(SECRETS)].concat();
        let secret_names = SECRET_NAMES.iter().map(|name| Pattern::fixed(name)).collect();
        let later_names = later_names(&paths.protect);
        let by_name = later_names.iter().filter_map(|name| Some((home.as_ref()?.join(&**name), EXECUTED)));
        let by_list = later.iter().map(|(path, why)| (path.clone(), &**why));
        let other_names = [
            secrets.iter().flat_map(|(path, why)| OtherName::of(path, why)).collect(),
            by_list.chain(by_name).flat_map(|(path, why)| OtherName::of(&path, why)).collect(),
        ];
        let homes = PathBuf::from("/home");
        Ok(Sensitive {
            home,
            workspace,
            open,
            devices,
            secrets,
            later,
            secret_names,
            later_names,
            other_names,
            homes,
        })
    }

    /// Why a rule about a path, and all below it, must not be learned; `None` if it may. The path is a real one.
    pub fn path(&self, path: &Path, what: Use) -> Option<String> {
        // What is there of a workspace is opened with it; what is nowhere is nobody's.
        let counts = |found: &Touched| !found.is_below || (!self.is_own(path) && is_there(&found.at));
        let named = self.named(path, what).into_iter().find(counts);
        let found = named.or_else(|| self.unnamed(path, what, 1).into_iter().next())?;
        Some(match found.at == path {
            true => found.why,
            false => format!("{}: {}", shown(&found.at), found.why),
        })
    }

    /// What a rule about a path, and all below it, opens: the sensitive places that the path lies in, is, or holds. Of
    /// what no list names, so many are told. The path is a real one.
    pub fn touched(&self, path: &Path, what: Use, most: usize) -> Vec<Touched> {
        let mut touched = self.named(path, what);
        // What a list knows of a path is said better there.
        if touched.iter().all(|touched| touched.is_below) {
            touched.extend(self.unnamed(path, what, most));
        }
        if what == Use::Read
            && let Some(own) = self.workspace.as_deref().filter(|own| is_within(path, own))
        {
            let below = self.look(what).by_name_only().at(path, own, most).into_iter();
            touched.extend(below.map(|(at, why)| Touched::found(at, why, path)));
            let settings = own.join(".git/config");
            let is_opened = is_within(&settings, path);
            if let Some(why) = is_opened.then(|| git::login_in(&settings)).flatten() {
                let found = Touched::found(settings, why.to_string(), path);
                touched.push(Touched { is_known: true, ..found });
            }
        }
        touched
    }

    /// The workspace, by its real path; none where that holds the home directory.
    pub fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }

    /// Whether built-in profiles open a device.
    pub fn is_known_device(&self, path: &Path) -> bool {
        self.devices.iter().any(|device| is_within(path, device))
    }

    fn is_own(&self, path: &Path) -> bool {
        self.workspace.as_deref().is_some_and(|own| is_within(path, own))
    }

    /// Whether a built-in profile opens it for reading, and so it is known to be harmless; by an entry that is about it
    /// more closely than a place around it.
    fn is_open(&self, path: &Path, what: Use, around: &Path) -> bool {
        what == Use::Read && self.open.iter().any(|open| is_within(path, open) && is_within(open, around))
    }

    /// What the lists know of.
    fn named(&self, path: &Path, what: Use) -> Vec<Touched> {
        let devices = Path::new(DEVICES);
        if is_within(path, devices) {
            let device = (!self.is_known_device(path)).then(|| Touched::here(path, DEVICE));
            return device.into_iter().collect();
        }
        let tables = match what {
            Use::Read => vec![&self.secrets],
            Use::Write => vec![&self.later, &self.secrets],
        };
        let is_own = self.is_own(path);
        let places = tables.into_iter().flatten();
        let mut named: Vec<Touched> = places
            .filter_map(|(place, why)| {
                let holds = is_below(place, path);
                // What is around the workspace does not count in it.
                let is_in_own = self.workspace.as_ref().is_some_and(|own| is_below(place, own));
                let is_open = || path != place && self.is_open(path, what, place);
                let lies_in = is_within(path, place) && (!is_own || is_in_own) && !is_open();
                let touched =
                    || Touched { at: place.clone(), why: why.clone(), is_below: holds, is_known: true };
                (holds || lies_in).then(touched)
            })
            .collect();
        if is_within(devices, path) {
            named.push(Touched::found(devices.to_path_buf(), DEVICE.to_string(), path));
        }
        named
    }

    /// What no list names, up to a number of things.
    fn unnamed(&self, path: &Path, what: Use, most: usize) -> Vec<Touched> {
        if is_within(path, Path::new(DEVICES))
            || self.is_own(path)
            || self.is_open(path, what, Path::new("/"))
        {
            return Vec::new();
        }
        let around = self.by_home(path).or_else(|| self.by_permissions(path, what));
        if let Some(why) = around {
            return vec![Touched::here(path, why)];
        }
        let found = self.by_contents(path, what, most).into_iter();
        let points =
            found.flat_map(|(at, why)| match at.ends_with(".git") && at.is_dir() && is_within(&at, path) {
                true => executed_by_git(&at).map(|at| (at, GIT.to_string())).to_vec(),
                false => vec![(at, why)],
            });
        points.map(|(at, why)| Touched::found(at, why, path)).collect()
    }

    /// The workspace, where a rule about a path in it would open what git executes. What protects that is about the
    /// workspace as a whole.
    pub fn needs_whole(&self, path: &Path) -> Option<&Path> {
        let own = self.workspace.as_deref().filter(|own| is_below(path, own))?;
        let mut parts = path.strip_prefix(own).ok()?.iter().skip_while(|part| *part != ".git");
        let opens = match (parts.next(), parts.next()) {
            (None, _) => !self.look(Use::Write).without_services().at(path, own, 1).is_empty(),
            (Some(_), Some(part)) => !GIT_DATA.iter().any(|data| part == *data),
            (Some(_), None) => true,
        };
        opens.then_some(own)
    }

    /// Why a home directory closes it.
    fn by_home(&self, path: &Path) -> Option<String> {
        let holds_homes =
            is_within(&self.homes, path) || self.home.as_deref().is_some_and(|at| is_within(at, path));
        if self.home.as_deref() == Some(path) {
            return Some("the home directory".to_string());
        }
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

    /// Why permissions close it to other users, its own or those of a directory above: what only its owner may read is
    /// the owner's. A home directory that is closed as a whole says nothing about a file in it, nor does what is above.
    fn by_permissions(&self, path: &Path, what: Use) -> Option<String> {
        if what != Use::Read {
            return None;
        }
        if path.metadata().is_ok_and(|meta| look::is_closed(&meta)) {
            return Some(look::CLOSED.to_string());
        }
        let leads_home = |above: &Path| self.home.as_deref().is_some_and(|home| is_within(home, above));
        let mut above = path.ancestors().skip(1).take_while(|above| !leads_home(above));
        let closing = above.find(|above| above.metadata().is_ok_and(|meta| look::keeps_out(&meta)))?;
        Some(format!("the permissions of {} close it to other users", shown(closing)))
    }

    /// Why something below it makes it sensitive.
    fn by_contents(&self, path: &Path, what: Use, most: usize) -> Vec<Found> {
        if anyone_may_have(path) {
            return Vec::new();
        }
        // The way to the home directory says nothing about what is in it.
        let home = self.home.as_deref().filter(|home| is_below(path, home));
        self.look(what).at(path, home.unwrap_or(Path::new("/")), most)
    }

    fn look(&self, what: Use) -> Look<'_> {
        let [secrets, later] = &self.other_names;
        match what {
            Use::Read => Look::new(what, &self.secret_names, secrets),
            Use::Write => Look::new(what, &self.later_names, later),
        }
    }

    /// Why a UNIX socket is sensitive: what listens there has rights of its own.
    pub fn unix(&self, path: &Path) -> Option<String> {
        match service_at(path) {
            Some(what) => Some(what.to_string()),
            None if self.workspace.as_deref().is_some_and(|own| is_within(path, own)) => None,
            None => Some(table::SERVICE.to_string()),
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
                Some(_) => Some(PRIVATE.to_string()),
                None if !is_public(range.first()) => Some(format!("{PRIVATE}: a whole range")),
                None => Some("a range of addresses".to_string()),
            },
        }
    }
}

#[cfg(test)]
mod tests;
