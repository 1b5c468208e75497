//! What is mounted in a run's own mount namespace: decided from rules and the file system as it is, before there is a
//! child; and what that does to a path.

use super::places::{Roots, places};
use super::protect::Protected;
use super::renewed::{self, Private, System, changed};
use super::stubs::Stub;
use crate::launch::mounts::Mounts;
use crate::launch::policy::PathRule;
use crate::launch::within::{is_below, is_same, is_within};
use crate::sys::mount::Kind;
use crate::sys::namespace::{self, Identity, Kinds};
use crate::sys::privilege;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where the scratch directory is inside.
pub const TMP: &str = "/tmp";
/// And where the caches in it are, if they could be made nowhere else.
pub const CACHE_IN_TMP: &str = "/tmp/cache";
/// Where devices are.
pub const DEVICES: &str = "/dev";
/// What stands for the scratch directory where a run is only asked about, and none is made.
pub const NO_SCRATCH: &str = "/tmp/.sbx-none";

/// What is mounted, in the order of the fields.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The namespaces.
    pub kinds: Kinds,
    /// Who the command is in them.
    pub identity: Identity,
    /// Directories that are replaced, and what of them stays.
    pub private: Vec<Private>,
    /// New file systems in the place of the host's.
    pub systems: Vec<System>,
    /// Directories in which root opens no devices.
    pub without_devices: BTreeSet<PathBuf>,
    /// Numbers of the caller's terminals, which keep their names among the new ones.
    pub terminals: BTreeSet<u32>,
    /// Directories mounted on themselves, so that they cannot be renamed or removed: above what is shielded.
    pub pins: BTreeSet<PathBuf>,
    /// What can be read, but not changed, replaced or removed.
    pub read_only: BTreeSet<PathBuf>,
    /// Symbolic links that cannot be replaced, and the files that are seen in their place: such as may be read.
    pub links: BTreeMap<PathBuf, Option<PathBuf>>,
    /// What is out of reach.
    pub denied: BTreeSet<PathBuf>,
    /// What cannot be made.
    pub stubs: Vec<Stub>,
    /// The other names of those, which would be ways to put something into them.
    pub stubs_elsewhere: BTreeSet<PathBuf>,
    /// Repositories whose configurations are read-only and may be replaced by others that have been checked.
    pub configs: Vec<PathBuf>,
    /// Where the command starts.
    pub directory: PathBuf,
}

/// What a layout is made from.
pub struct Given<'a> {
    /// The path rules, without what is denied.
    pub rules: &'a [PathRule],
    /// What is denied.
    pub denied: &'a [PathBuf],
    /// What is protected.
    pub protected: Vec<Protected>,
    /// The paths that flags name: the host's are meant.
    pub named: &'a [PathBuf],
    /// What is mounted where.
    pub mounts: &'a Mounts,
    /// Socket files that may be connected to.
    pub sockets: &'a [PathBuf],
    /// The scratch directory, where it takes the place of /tmp.
    pub scratch: Option<&'a Path>,
    /// Where the command starts.
    pub directory: &'a Path,
    /// The home directory, by the name that rules have for it.
    pub home: Option<&'a Path>,
    /// Whether the run has a network of its own.
    pub network: bool,
}

impl Layout {
    /// As little as a run ever has.
    pub fn smallest() -> Layout {
        let given = Given {
            rules: &[],
            denied: &[],
            protected: Vec::new(),
            named: &[],
            mounts: &Mounts::default(),
            sockets: &[],
            scratch: None,
            directory: Path::new("/"),
            home: None,
            network: false,
        };
        Layout::of(given, &mut Vec::new())
    }

    /// The layout. What cannot be protected is said, with the reason.
    pub fn of(given: Given<'_>, remarks: &mut Vec<String>) -> Layout {
        // The supervisor can tell sockets of the run's network from the host's as the owner of its user namespace.
        let user = given.network || !privilege::is_administrator();
        let places = places(&given);
        let mut layout = Layout {
            kinds: Kinds { user, network: given.network },
            identity: namespace::identity(),
            private: renewed::private(&given, &places),
            terminals: BTreeSet::new(),
            systems: renewed::systems(&given, &places),
            without_devices: renewed::without_devices(&given),
            pins: BTreeSet::new(),
            read_only: BTreeSet::new(),
            links: BTreeMap::new(),
            denied: BTreeSet::new(),
            stubs: Vec::new(),
            stubs_elsewhere: BTreeSet::new(),
            configs: Vec::new(),
            directory: given.directory.to_path_buf(),
        };
        if layout.systems.iter().any(|system| system.kind == Kind::Terminals) {
            layout.terminals = (0..3).filter_map(renewed::number_of_terminal).collect();
        }
        let roots = Roots::of_places(&places);
        for path in given.denied {
            layout.deny(path, &roots, given.rules);
        }
        let mounts = given.mounts;
        for protected in given.protected {
            for path in mounts.other_names(&protected.path) {
                layout.protect(Protected { path, ..protected.clone() }, &roots, given.rules, remarks);
            }
            layout.protect(protected, &roots, given.rules, remarks);
        }
        layout.keep_shielded_configs(mounts);
        layout.shield_elsewhere(mounts);
        layout.pin_kept();
        layout
    }

    /// Where the scratch directory is inside, if elsewhere than outside.
    pub fn scratch(&self) -> Option<&Path> {
        self.private.iter().find(|private| private.from.is_some()).map(|private| &*private.at)
    }

    /// Whether there is anything that mounts keep from being changed, read or made.
    pub fn shields_something(&self) -> bool {
        let Layout { read_only, links, denied, stubs, .. } = self;
        !(read_only.is_empty() && links.is_empty() && denied.is_empty() && stubs.is_empty())
    }

    /// What cannot be made, by all of its names.
    pub fn stubbed(&self) -> impl Iterator<Item = &PathBuf> {
        self.stubs.iter().map(|stub| &stub.path).chain(&self.stubs_elsewhere)
    }

    /// Whether a file is kept from being changed, or from being read.
    pub fn shields(&self, path: &Path) -> bool {
        let mut all = self.read_only.iter().chain(&self.denied);
        all.any(|shielded| is_within(path, shielded))
    }

    /// Whether mounts have a call fail that would change, or only read, what is at a path.
    pub fn refuses(&self, path: &Path, changes: bool) -> bool {
        let mut kept = self.read_only.iter().chain(self.links.keys()).chain(self.stubbed());
        self.denies(path) || (changes && (self.pins.contains(path) || kept.any(|kept| is_within(path, kept))))
    }

    /// Whether something is at a path for the time of the run only, so that nothing can be made there.
    pub fn stands_in(&self, path: &Path) -> bool {
        self.stubs.iter().any(|stub| stub.path == path)
    }

    /// Whether a path is denied.
    pub fn denies(&self, path: &Path) -> bool {
        self.denied.iter().any(|denied| is_within(path, denied))
    }

    /// Whether a rule about a directory that is another inside does not hold for a path below, which was kept with its
    /// own rules.
    pub fn cuts(&self, rule: &Path, path: &Path) -> bool {
        let changed = changed(&self.private, &self.systems).filter(|(at, _)| is_same(at, rule));
        changed.flat_map(|(_, keep)| keep).any(|kept| is_within(path, &kept.path))
    }

    /// Whether a path is out of sight, because what it is below is another directory inside.
    pub fn hides(&self, path: &Path) -> bool {
        let changed = self.private.iter().filter(|private| private.from.is_some());
        changed.clone().any(|private| is_below(path, &private.at))
            && !changed.flat_map(|private| &private.keep).any(|kept| is_within(path, &kept.path))
    }

    /// The directory that is another inside, where that puts a path out of sight.
    pub fn replaces(&self, path: &Path) -> Option<&Path> {
        let systems = self.systems.iter().filter(|system| system.kind != Kind::Proc);
        let systems = systems.map(|system| (&*system.at, &*system.keep));
        let private = self.private.iter().map(|private| (&*private.at, &*private.keep));
        let mut above = private.chain(systems).filter(|(at, _)| is_below(path, at));
        let (at, keep) = above.next()?;
        (!keep.iter().any(|kept| is_within(path, &kept.path))).then_some(at)
    }

    /// Whether a directory is held in its place only: what is in it can be changed.
    pub fn only_holds(&self, path: &Path) -> bool {
        self.pins.contains(path) && !self.shields(path) && !self.links.contains_key(path)
    }

    /// Whether a path stays where it is below a directory that is another, and cannot be changed there.
    pub fn keeps_unchanged(&self, path: &Path) -> bool {
        let mut kept = changed(&self.private, &self.systems).flat_map(|(_, keep)| keep);
        // Parents come first.
        kept.rfind(|kept| is_within(path, &kept.path)).is_some_and(|kept| !kept.write)
    }

    /// Whether something new is mounted there, so that a path rule is about another file than before.
    pub fn renews(&self, path: &Path) -> bool {
        let renewed = |system: &System| {
            is_same(path, &system.at) || (system.kind == Kind::Proc && is_within(path, &system.at))
        };
        self.systems.iter().any(renewed)
    }
}
