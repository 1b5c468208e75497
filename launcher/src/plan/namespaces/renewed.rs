//! Directories that are others inside: /tmp, where services have their sockets, and the file systems that are
//! the run's own.

use crate::plan::namespaces::layout::{DEVICES, Given, TMP};
use crate::plan::namespaces::places::Placed;
use crate::plan::rules::PathRights;
use crate::sys::mount::Kind;
use crate::sys::path::{self, canonical};
use crate::sys::within::{is_below, is_same, is_within};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where services of the host have their sockets.
pub const SERVICES: [&str; 2] = ["/run", "/var/run"];
/// Where shared memory is.
pub const SHARED_MEMORY: &str = "/dev/shm";
/// Where terminals have their names.
pub const TERMINALS: &str = "/dev/pts";

/// A directory that another takes the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    /// Where.
    pub at: PathBuf,
    /// What is there instead; `None` for an empty directory that cannot be changed.
    pub from: Option<PathBuf>,
    /// What stays where it is, parents first.
    pub keep: Vec<Kept>,
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
    let private = all.filter(|(at, _)| is_plain_directory(at) && !is_meant(at, given));
    private.map(|(at, from)| Private { keep: keep(&at, given, places), at, from }).collect()
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
    let own = |path: &PathBuf| given.scratch.is_none_or(|scratch| !is_within(path, scratch));
    let below = places.iter().filter(|(path, _)| is_below(path, at) && own(path) && path.exists());
    let rules: Vec<&Placed> = below.collect();
    let sockets = given.sockets.iter().filter(|path| is_below(path, at));
    let mut paths: BTreeMap<&PathBuf, PathRights> =
        sockets.map(|path| (path, PathRights::default())).collect();
    for (path, _) in &rules {
        let above = rules.iter().filter(|(rule, _)| is_within(path, rule));
        paths.insert(path, above.fold(PathRights::default(), |sum, (_, rights)| sum.union(*rights)));
    }
    let mut keep: Vec<Kept> = Vec::new();
    for (path, rights) in paths {
        let kept = Kept { path: path.clone(), write: rights.write, execute: rights.execute };
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
    let mut systems = vec![System { kind: Kind::Proc, at: PathBuf::from("/proc"), keep: Vec::new() }];
    for (kind, path) in [(Kind::Memory, SHARED_MEMORY), (Kind::Terminals, TERMINALS)] {
        let path = Path::new(path);
        if has_rule(path) && !named(path) && is_plain_directory(path) {
            systems.push(System { kind, at: path.to_path_buf(), keep: kept_in(kind, path, given, places) });
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
    let rules = given.rules.iter().filter(|rule| rule.rights.write || !rule.optional);
    let all = rules.map(|rule| &*rule.path).chain([given.directory]);
    all.filter(|path| !is_within(path, Path::new(DEVICES))).map(Path::to_path_buf).collect()
}
