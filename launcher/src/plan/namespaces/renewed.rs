//! Directories that are others inside: /tmp, where services have their sockets, and the file systems that are
//! the run's own.

use crate::plan::home::Store;
use crate::plan::namespaces::layout::{DEVICES, Given, TMP};
use crate::plan::namespaces::places::Placed;
use crate::plan::rules::{PathRights, PathRule};
use crate::sys::mount::Kind;
use crate::sys::path::{self, canonical};
use crate::sys::within::{is_below, is_same, is_within, rest_below};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where services of the host have their sockets.
pub const SERVICES: [&str; 2] = ["/run", "/var/run"];
/// Where shared memory is.
pub const SHARED_MEMORY: &str = "/dev/shm";
/// Where terminals have their names.
pub const TERMINALS: &str = "/dev/pts";

/// The names of the user's keys: keyrings are in no namespace.
const KEYS: &str = "/proc/keys";

/// A directory that another takes the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    /// Where.
    pub at: PathBuf,
    /// What is there instead; `None` for an empty directory that cannot be changed.
    pub from: Option<PathBuf>,
    /// What stays where it is, parents first.
    pub keep: Vec<Kept>,
    /// Directories in it that the run changes without changing what is there.
    pub stores: Vec<Store>,
    /// Symbolic links in it that lead to what stays, with their texts.
    pub links: BTreeMap<PathBuf, OsString>,
    /// What is denied in it, and whether a directory is made for the mount where nothing is there.
    pub denied: BTreeMap<PathBuf, bool>,
}

/// A path that stays although the directory above it is replaced. Landlock gives it the rights of the rules above it
/// as well, so its mount takes away those that its own rules do not give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where.
    pub path: PathBuf,
    /// Whether it may be changed.
    pub write: bool,
    /// Whether it may be executed.
    pub execute: bool,
    /// Whether it is there to be connected to alone. So nothing but a socket may be at its place.
    pub is_socket: bool,
}

/// A file system that is the run's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// Which.
    pub kind: Kind,
    /// Where.
    pub at: PathBuf,
    /// What stays where it is: a workspace in shared memory.
    pub keep: Vec<Kept>,
    /// A file in it that cannot be opened, because the kernel shows in it what is not the run's own.
    pub closed: Option<PathBuf>,
}

/// The directories that are others inside, with what stays of them.
pub fn changed<'l>(
    private: &'l [Private],
    systems: &'l [System],
) -> impl DoubleEndedIterator<Item = (&'l Path, &'l [Kept])> {
    let of_private = private.iter().map(|private| (&*private.at, &*private.keep));
    of_private.chain(systems.iter().map(|system| (&*system.at, &*system.keep)))
}

/// Directories that are replaced.
pub fn private(given: &Given<'_>, places: &[Placed]) -> Vec<Private> {
    let tmp = given.scratch.map(|scratch| (PathBuf::from(TMP), Some(scratch.to_path_buf())));
    let services: BTreeSet<PathBuf> = SERVICES.iter().map(|path| canonical(Path::new(path))).collect();
    let all = tmp.into_iter().chain(services.into_iter().map(|path| (path, None)));
    let all = all.filter(|(at, _)| is_plain_directory(at) && !is_meant(at, given));
    let mut private: Vec<Private> = all
        .map(|(at, from)| Private {
            keep: keep(&at, given, places),
            at,
            from,
            stores: Vec::new(),
            links: BTreeMap::new(),
            denied: BTreeMap::new(),
        })
        .collect();
    // After the scratch directory: a home may be below /tmp.
    private.extend(given.home.map(|home| {
        let (places, links) = resolve_links(&home.at, given, places);
        let mut keep = keep(&home.at, given, &places);
        // Where nothing but some files may be executed, the path rules see to that, by all names of these files.
        let executes = |rule: &PathRule| rule.path == home.directory && rule.rights.execute;
        if !given.rules.iter().any(executes) {
            keep.iter_mut().for_each(|kept| kept.execute = true);
        }
        let is_real = |path: &Path| !keep.iter().any(|kept| is_within(path, &kept.path));
        let stores = given.stores.iter().filter(|store| is_real(&store.at)).cloned().collect();
        let links = links.into_iter().filter(|link| is_real(link));
        let links = links.filter_map(|link| Some((link.read_link().ok()?.into_os_string(), link)));
        let links = links.map(|(text, link)| (link, text)).collect();
        let (at, from) = (home.at.clone(), Some(home.directory.clone()));
        Private { at, from, keep, stores, links, denied: BTreeMap::new() }
    }));
    private
}

/// The places below a home by their real paths, and the symbolic links that lead to them.
fn resolve_links(home: &Path, given: &Given<'_>, places: &[Placed]) -> (Vec<Placed>, BTreeSet<PathBuf>) {
    let mut links: BTreeSet<PathBuf> =
        given.links.iter().filter(|link| is_below(link, home)).cloned().collect();
    let mut resolve = |placed: &Placed| {
        let path = &placed.path;
        // The home is a real path.
        let below = rest_below(path, home).filter(|below| !below.as_os_str().is_empty());
        let below = below.filter(|_| placed.follows && !given.listings.is_straight(path));
        let Some(way) = below.map(|below| path::way_from(home, below)) else { return placed.clone() };
        if !way.links.is_empty() && !path::is_there(path) {
            return placed.clone();
        }
        links.extend(way.links.into_iter().filter(|link| is_below(link, home)));
        Placed { path: way.real, ..*placed }
    };
    let places = places.iter().map(&mut resolve).collect();
    (places, links)
}

/// A directory under its own name, and not the root.
pub fn is_plain_directory(path: &Path) -> bool {
    path::is_directory(path) && path.parent().is_some()
}

/// Whether a flag or rule names exactly this directory, so that the host's is meant and not a replacement.
fn is_meant(path: &Path, given: &Given<'_>) -> bool {
    given.named.iter().chain(given.rules.iter().map(|rule| &rule.path)).any(|named| is_same(named, path))
}

/// What has a rule of its own below a directory.
fn keep(at: &Path, given: &Given<'_>, places: &[Placed]) -> Vec<Kept> {
    let made = [given.scratch, given.home.map(|home| &*home.directory)];
    let inner = given.home.map(|home| &*home.at).filter(|home| is_below(home, at));
    let elsewhere: Vec<&Path> = made.into_iter().chain([inner]).flatten().collect();
    let own = |path: &PathBuf| !elsewhere.iter().any(|other| is_within(path, other));
    let is_there = |path: &Path| given.listings.has(path, Path::exists);
    let below = places.iter().map(|place| (&place.path, place.rights));
    let below = below.filter(|(path, _)| is_below(path, at) && own(path) && is_there(path));
    let rules: Vec<(&PathBuf, PathRights)> = below.collect();
    let sockets = given.sockets.iter().filter(|path| is_below(path, at));
    let mut paths: BTreeMap<&PathBuf, (PathRights, bool)> =
        sockets.map(|path| (path, (PathRights::default(), true))).collect();
    for (path, _) in &rules {
        let above = rules.iter().filter(|(rule, _)| is_within(path, rule));
        let rights = above.fold(PathRights::default(), |sum, (_, rights)| sum.union(*rights));
        paths.insert(*path, (rights, false));
    }
    let mut keep: Vec<Kept> = Vec::new();
    for (path, (rights, is_socket)) in paths {
        let kept = Kept { path: path.clone(), write: rights.write, execute: rights.execute, is_socket };
        let above = keep.iter().rfind(|above| is_within(path, &above.path));
        if above.is_none_or(|above| (above.write, above.execute) != (kept.write, kept.execute)) {
            keep.push(kept);
        }
    }
    keep
}

/// The number of a terminal that is open here; of one that comes after many others it is not worth the while.
pub fn number_of_terminal(name: &Path) -> Option<u32> {
    const LAST: u32 = 63;
    let number = name.strip_prefix(TERMINALS).ok()?.to_str()?.parse().ok()?;
    Some(number).filter(|number| *number <= LAST)
}

/// The caller's terminals, and those that flags name, get their names back one by one.
fn kept_in(kind: Kind, at: &Path, given: &Given<'_>, places: &[Placed]) -> Vec<Kept> {
    if kind == Kind::Memory { keep(at, given, places) } else { Vec::new() }
}

/// New file systems.
pub fn systems(given: &Given<'_>, places: &[Placed]) -> Vec<System> {
    let has_rule = |path: &Path| given.rules.iter().any(|rule| is_same(&rule.path, path));
    let named = |path: &Path| given.named.iter().any(|named| is_same(named, path));
    let at = PathBuf::from("/proc");
    let keys = Path::new(KEYS);
    let closed = (has_rule(&at) && !named(keys) && keys.exists()).then(|| keys.to_path_buf());
    let mut systems = vec![System { kind: Kind::Proc, at, keep: Vec::new(), closed }];
    for (kind, path) in [(Kind::Memory, SHARED_MEMORY), (Kind::Terminals, TERMINALS)] {
        let path = Path::new(path);
        if has_rule(path) && !named(path) && is_plain_directory(path) {
            let keep = kept_in(kind, path, given, places);
            systems.push(System { kind, at: path.to_path_buf(), keep, closed: None });
        }
    }
    systems
}

/// Where device nodes may lie about that root alone may open: what the user names, and what may be written. The tree of
/// another system has some, and they lead to this machine's disks.
pub fn without_devices(given: &Given<'_>) -> BTreeSet<PathBuf> {
    if !given.host.root.get() {
        return BTreeSet::new();
    }
    let rules = given.rules.iter().filter(|rule| rule.rights.write || !rule.built_in);
    let all = rules.map(|rule| &*rule.path).chain([given.directory]);
    all.filter(|path| !is_within(path, Path::new(DEVICES))).map(Path::to_path_buf).collect()
}
