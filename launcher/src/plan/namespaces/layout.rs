//! What is mounted in a run's own mount namespace: decided from rules and the file system as it is, before there is a
//! child; and what that does to a path.

use crate::host::Host;
use crate::host::mounts::Mounts;
use crate::plan::home::{PrivateHome, Store};
use crate::plan::listings::Listings;
use crate::plan::namespaces::placeholder::{Shape, Watched};
use crate::plan::namespaces::places::{Roots, places};
use crate::plan::namespaces::protect::Protected;
use crate::plan::namespaces::protected::Looked;
use crate::plan::namespaces::renewed::{self, Private, System, changed};
use crate::plan::rules::PathRule;
use crate::sys::mount::Kind;
use crate::sys::within::{is_below, is_same, is_within, rest_below};
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

/// What is mounted on a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLink {
    /// The link: it leads where it does.
    Itself,
    /// Nothing: it leads nowhere.
    Nothing,
}

/// What is mounted, in the order of the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Directories that are replaced, and what of them stays.
    pub private: Vec<Private>,
    /// New file systems in the place of the host's.
    pub systems: Vec<System>,
    /// Directories in which root opens no devices.
    pub without_devices: BTreeSet<PathBuf>,
    /// Numbers of the caller's terminals, which keep their names among the new ones.
    pub terminals: BTreeSet<u32>,
    /// Directories mounted on themselves, so that they cannot be renamed or removed: above what is protected.
    pub pins: BTreeSet<PathBuf>,
    /// What can be read, but not changed, replaced or removed.
    pub read_only: BTreeSet<PathBuf>,
    /// Symbolic links that cannot be replaced, each with what is mounted on it.
    pub links: BTreeMap<PathBuf, OnLink>,
    /// What is out of reach.
    pub denied: BTreeSet<PathBuf>,
    /// Names that the command cannot make: a placeholder of this shape stands there.
    pub placeholders: BTreeMap<PathBuf, Shape>,
    /// Names that are watched: what is made there is put aside at once.
    pub watched: BTreeSet<Watched>,
    /// Other names of the placeholders. By these, something could be put into them.
    pub placeholders_elsewhere: BTreeSet<PathBuf>,
    /// Repositories whose configurations are read-only and may be replaced by others that have been checked.
    pub configs: Vec<PathBuf>,
    /// Repositories without a configuration. The command may make one, which is looked at in the end.
    pub lacking: Vec<PathBuf>,
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
    /// A home of the run's own.
    pub home: Option<&'a PrivateHome>,
    /// The stores in it.
    pub stores: Vec<Store>,
    /// The copies of settings in it, each with the real path of what it is made of.
    pub copies: Vec<(PathBuf, PathBuf)>,
    /// The symbolic links by which the user names paths.
    pub links: Vec<PathBuf>,
    /// Where the command starts.
    pub directory: &'a Path,
    /// What was found on this machine.
    pub host: &'a Host,
    /// What is not there.
    pub listings: &'a Listings,
}

impl Layout {
    /// As little as a run ever has.
    pub fn smallest(host: &Host) -> Layout {
        let given = Given {
            rules: &[],
            denied: &[],
            protected: Vec::new(),
            named: &[],
            mounts: &Mounts::default(),
            sockets: &[],
            scratch: None,
            home: None,
            stores: Vec::new(),
            copies: Vec::new(),
            links: Vec::new(),
            directory: Path::new("/"),
            host,
            listings: &Listings::default(),
        };
        Layout::of(given, &mut Vec::new())
    }

    /// The layout. What cannot be protected is said, with the reason.
    pub fn of(given: Given<'_>, warnings: &mut Vec<String>) -> Layout {
        let places = places(&given);
        let mut layout = Layout {
            private: renewed::private(&given, &places),
            terminals: BTreeSet::new(),
            systems: renewed::systems(&given, &places),
            without_devices: renewed::without_devices(&given),
            pins: BTreeSet::new(),
            read_only: BTreeSet::new(),
            links: BTreeMap::new(),
            denied: BTreeSet::new(),
            placeholders: BTreeMap::new(),
            watched: BTreeSet::new(),
            placeholders_elsewhere: BTreeSet::new(),
            configs: Vec::new(),
            lacking: Vec::new(),
            directory: given.directory.to_path_buf(),
        };
        if layout.systems.iter().any(|system| system.kind == Kind::Terminals) {
            let terminals = given.host.terminals.get().iter().chain(given.named);
            layout.terminals = terminals.filter_map(|path| renewed::number_of_terminal(path)).collect();
        }
        // What is replaced inside cannot be changed there.
        let roots = Roots::of_places(places.iter().filter(|place| !layout.renews(&place.path)));
        layout.deny_all(&given, &roots);
        let (mounts, listings) = (given.mounts, given.listings);
        let looked = Looked { roots: &roots, listings };
        for protected in given.protected {
            for path in mounts.other_names(&protected.path) {
                layout.protect(Protected { path, ..protected.clone() }, looked, warnings);
            }
            layout.protect(protected, looked, warnings);
        }
        layout.keep_protected_configs(mounts);
        layout.shield_elsewhere(mounts);
        layout.pin_kept();
        layout
    }

    /// Where the scratch directory is inside, if elsewhere than outside.
    pub fn scratch(&self) -> Option<&Path> {
        let tmp = Path::new(TMP);
        self.private.iter().find(|private| private.from.is_some() && private.at == tmp).map(|_| tmp)
    }

    /// The path inside of a file that is at this path outside.
    pub fn inside(&self, path: PathBuf) -> PathBuf {
        let moved = |private: &Private| {
            let rest = rest_below(&path, private.from.as_deref()?)?;
            Some(if rest.as_os_str().is_empty() { private.at.clone() } else { private.at.join(rest) })
        };
        self.private.iter().find_map(moved).unwrap_or(path)
    }

    /// The path outside of what has this path in a directory of the run's own.
    pub fn outside(&self, path: &Path) -> Option<PathBuf> {
        let above = self.private.iter().filter(|private| is_within(path, &private.at));
        let own = above.max_by_key(|private| private.at.components().count())?;
        Some(own.from.as_ref()?.join(rest_below(path, &own.at)?))
    }

    /// Whether there is anything that mounts keep from being changed, read or made.
    pub fn shields_something(&self) -> bool {
        let Layout { read_only, links, denied, placeholders, watched, .. } = self;
        let held =
            !(read_only.is_empty() && links.is_empty() && denied.is_empty() && placeholders.is_empty());
        held || !watched.is_empty()
    }

    /// What mounts hold, whatever they keep from happening to it.
    pub fn shielded(&self) -> impl Iterator<Item = &PathBuf> {
        self.read_only.iter().chain(self.links.keys()).chain(&self.denied).chain(self.held_free())
    }

    /// What cannot be made, by all of its names.
    pub fn held_free(&self) -> impl Iterator<Item = &PathBuf> {
        self.placeholders.keys().chain(&self.placeholders_elsewhere)
    }

    /// Whether a file is kept from being changed, or from being read.
    pub fn shields(&self, path: &Path) -> bool {
        let holds = |above: &Path| self.read_only.contains(above) || self.denied.contains(above);
        path.ancestors().any(holds)
    }

    /// Whether mounts have a call fail that would change, or only read, what is at a path.
    pub fn refuses(&self, path: &Path, changes: bool) -> bool {
        self.denies(path) || (changes && (self.pins.contains(path) || self.keeper(path).is_some()))
    }

    /// What keeps a path as it is: this path, or one that it is in.
    pub fn keeper(&self, path: &Path) -> Option<&PathBuf> {
        let mut kept = self.read_only.iter().chain(self.links.keys()).chain(self.held_free());
        kept.find(|kept| is_within(path, kept))
    }

    /// The same, also where a change succeeds and is put aside.
    pub fn shuts(&self, path: &Path, changes: bool) -> bool {
        let mut watched = self.watched.iter();
        self.refuses(path, changes) || (changes && watched.any(|watched| is_within(path, &watched.path())))
    }

    /// Whether something is at a path for the time of the run only, so that nothing can be made there.
    pub fn stands_in(&self, path: &Path) -> bool {
        self.placeholders.contains_key(path)
    }

    /// Whether a path is denied.
    pub fn denies(&self, path: &Path) -> bool {
        self.closes(path) || self.denied.iter().any(|denied| is_within(path, denied))
    }

    /// Whether a path is closed in a file system of the run's own.
    pub fn closes(&self, path: &Path) -> bool {
        self.systems.iter().any(|system| system.closed.as_deref() == Some(path))
    }

    /// Whether a rule does not hold for a path below it: a directory between the two, or the rule's own, is replaced
    /// inside, and the path was kept with the rules that it has there.
    pub fn cuts(&self, rule: &Path, path: &Path) -> bool {
        let changed = changed(&self.private, &self.systems).filter(|(at, _)| is_within(at, rule));
        changed.flat_map(|(_, keep)| keep).any(|kept| is_within(path, &kept.path))
    }

    /// Whether a path is out of sight, because a directory above it is replaced inside.
    pub fn hides(&self, path: &Path) -> bool {
        let changed = self.private.iter().filter(|private| private.from.is_some());
        changed.clone().any(|private| is_below(path, &private.at))
            && !changed.flat_map(|private| &private.keep).any(|kept| is_within(path, &kept.path))
    }

    /// Whether a path is not there inside, with nothing of it: an empty directory or the scratch directory takes the
    /// place of one above it. What a command makes there does not reach the path outside.
    pub fn leaves_out(&self, path: &Path) -> bool {
        let all =
            self.private.iter().filter(|private| private.from.is_none() || private.at == Path::new(TMP));
        all.filter(|private| is_below(path, &private.at)).any(|private| {
            let mut kept = private.keep.iter().map(|kept| &kept.path);
            !kept.any(|kept| is_within(path, kept) || is_within(kept, path))
        })
    }

    /// The directory that is replaced inside, if that puts a path out of sight.
    pub fn replaces(&self, path: &Path) -> Option<&Path> {
        let systems = self.systems.iter().filter(|system| system.kind != Kind::Proc);
        let systems = systems.map(|system| (&*system.at, &*system.keep));
        let private = self.private.iter().map(|private| (&*private.at, &*private.keep));
        let above = private.chain(systems).filter(|(at, _)| is_below(path, at));
        // A home may lie in another one.
        let (at, keep) = above.max_by_key(|(at, _)| at.components().count())?;
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
