//! What is mounted in a run's own mount namespace: decided from rules and the file system as it is, before there is a
//! child.

use super::git::HOOKS;
use super::places::{Placed, Roots, places};
use super::protect::{Found, Protected, find, links_behind, replaceable};
use super::stubs::{self, Stub};
use crate::launch::landlock::canonical;
use crate::launch::mounts::Mounts;
use crate::launch::policy::{PathRights, PathRule};
use crate::launch::siblings;
use crate::launch::within::{is_below, is_same, is_within};
use crate::supervise::decode::shown;
use crate::sys::descriptor;
use crate::sys::mount::Kind;
use crate::sys::namespace::{self, Identity, Kinds};
use crate::sys::{path, privilege, process};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where the scratch directory is inside.
pub const TMP: &str = "/tmp";
/// And where the caches in it are, if they could be made nowhere else.
pub const CACHE_IN_TMP: &str = "/tmp/cache";
/// Where services of the host have their sockets.
pub const SERVICES: [&str; 2] = ["/run", "/var/run"];
pub const SHARED_MEMORY: &str = "/dev/shm";
/// Where devices are.
pub const DEVICES: &str = "/dev";
/// Where terminals have their names.
pub const TERMINALS: &str = "/dev/pts";

/// What stands for the scratch directory where a run is only asked about, and none is made.
pub const NO_SCRATCH: &str = "/tmp/.sbx-none";

/// For so many repositories a way in is held open.
const MOST_CONFIGS: usize = 64;

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

/// What stays where it is although the directory above is another: with no more rights than its own rules give, for
/// those of what is above hold for it as well (Landlock goes by where things are mounted).
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

/// Where device nodes may lie about that root alone may open: what the user names, and what may be written. The tree of
/// another system has some, and they lead to this machine's disks.
fn without_devices(given: &Given<'_>) -> BTreeSet<PathBuf> {
    if !process::is_root() {
        return BTreeSet::new();
    }
    let rules = given.rules.iter().filter(|rule| rule.rights.write || !rule.optional);
    let all = rules.map(|rule| &*rule.path).chain([given.directory]);
    all.filter(|path| !is_within(path, Path::new(DEVICES))).map(Path::to_path_buf).collect()
}

/// The directories that are others inside, with what stays of them.
fn changed<'l>(
    private: &'l [Private],
    systems: &'l [System],
) -> impl DoubleEndedIterator<Item = (&'l Path, &'l [Kept])> {
    let of_private = private.iter().map(|private| (&*private.at, &*private.keep));
    of_private.chain(systems.iter().map(|system| (&*system.at, &*system.keep)))
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
            private: private(&given, &places),
            terminals: BTreeSet::new(),
            systems: systems(&given, &places),
            without_devices: without_devices(&given),
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
            layout.terminals = (0..3).filter_map(number_of_terminal).collect();
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

    /// What is granted below is taken away by mounts; where nothing is granted, there is nothing to take.
    fn deny(&mut self, path: &Path, roots: &Roots, rules: &[PathRule]) {
        let path = siblings::resolve(path);
        let granted = rules.iter().any(|rule| is_below(&path, &canonical(&rule.path)));
        if !granted {
            return;
        }
        if !stubs::is_free(&path, None) {
            self.pin(&path, roots);
            self.denied.insert(path);
        } else if roots.above(&path).is_some() {
            self.stub(&path, None, roots);
        }
    }

    fn protect(
        &mut self,
        protected: Protected,
        roots: &Roots,
        rules: &[PathRule],
        remarks: &mut Vec<String>,
    ) {
        if roots.above(&protected.path).is_none() {
            if protected.itself && roots.are(&protected.path) {
                self.read_only.insert(protected.path);
                return;
            }
            // A file elsewhere may be a link to one that can be changed: ~/.bashrc to that of a project.
            let leads_elsewhere = match protected.path.symlink_metadata() {
                Ok(meta) => meta.is_symlink(),
                Err(error) => !path::says_missing(&error),
            };
            let target = leads_elsewhere.then(|| protected.path.canonicalize().ok()).flatten();
            if let Some(target) = target.filter(|target| roots.above(target).is_some()) {
                self.pin(&target, roots);
                self.read_only.insert(target);
            }
            return;
        }
        let Some((protected, found)) = find(protected, roots, remarks) else { return };
        if let Found::Unseen(why) = &found {
            let path = shown(&protected.path);
            remarks.push(format!(
                "warning: '{path}' cannot be looked at, and is protected as if it were there: {why}"
            ));
        }
        match found {
            Found::Nothing if protected.made_freely => {}
            Found::Nothing => self.stub(&protected.path, protected.stub, roots),
            Found::There | Found::Unseen(_) => {
                self.pin(&protected.path, roots);
                let repository = protected.path.parent().filter(|_| protected.replaced);
                self.configs.extend(repository.map(Path::to_path_buf));
                self.read_only.insert(protected.path);
            }
            Found::Link(target) => self.hold_link(protected.path, target, roots, rules, remarks),
            Found::Behind(_) => {}
        }
    }

    /// A protected link, and what it leads over and to, as far as the command could change that.
    fn hold_link(
        &mut self,
        path: PathBuf,
        target: Option<PathBuf>,
        roots: &Roots,
        rules: &[PathRule],
        remarks: &mut Vec<String>,
    ) {
        self.pin(&path, roots);
        // A link that an earlier command has made leads where it wants.
        let seen = target.clone().filter(|target| self.can_be_read(target, rules));
        for link in links_behind(&path).into_iter().filter(|link| roots.above(link).is_some()) {
            if link.is_dir() {
                remarks.push(replaceable(&path, &link));
            } else {
                self.pin(&link, roots);
                self.links.insert(link, seen.clone());
            }
        }
        self.links.insert(path, seen);
        if let Some(target) = target.filter(|target| roots.above(target).is_some()) {
            self.pin(&target, roots);
            self.read_only.insert(target);
        }
    }

    /// Whether something is a file that the command can read, and the same inside as outside.
    fn can_be_read(&self, path: &Path, rules: &[PathRule]) -> bool {
        let renewed = self.systems.iter().any(|system| path.starts_with(&system.at));
        let mut reads = rules.iter().filter(|rule| rule.rights.read);
        path.is_file() && !renewed && reads.any(|rule| path.starts_with(canonical(&rule.path)))
    }

    /// What is kept below a directory that is another inside is reached through directories made for that, which the
    /// command could rename: it would be elsewhere then than rules and mounts are about.
    fn pin_kept(&mut self) {
        for (at, keep) in changed(&self.private, &self.systems) {
            for kept in keep {
                let above = kept.path.ancestors().skip(1).take_while(|above| is_below(above, at));
                let made = above.filter(|above| !keep.iter().any(|other| is_within(above, &other.path)));
                self.pins.extend(made.map(Path::to_path_buf));
            }
        }
    }

    /// New configurations come through the directory of hooks, which has to be there and shielded; and no other name of
    /// theirs may lead past the mount that they bring along.
    fn keep_shielded_configs(&mut self, mounts: &Mounts) {
        let Layout { configs, read_only, .. } = self;
        configs.retain(|repository| {
            let hooks = repository.join(HOOKS);
            read_only.contains(&hooks)
                && is_plain_directory(&hooks)
                && mounts.other_names(repository).is_empty()
        });
        configs.truncate(MOST_CONFIGS);
    }

    /// Shields by each of its names what is shielded by one: a mount covers one of them, while rules, which go by files,
    /// hold for all. (What is held in its place is held by every name: the kernel looks whether anything is mounted on
    /// it.)
    fn shield_elsewhere(&mut self, mounts: &Mounts) {
        let names = |of: &PathBuf| {
            let names = mounts.other_names(of);
            names.into_iter().filter(|name| self.replaces(name).is_none()).collect::<Vec<_>>()
        };
        let read_only: Vec<_> = self.read_only.iter().flat_map(names).collect();
        let denied: Vec<_> = self.denied.iter().flat_map(names).collect();
        let stubs: Vec<_> = self.stubs.iter().flat_map(|stub| names(&stub.path)).collect();
        let links = self.links.iter();
        let links: Vec<_> =
            links.flat_map(|(link, seen)| names(link).into_iter().map(|name| (name, seen.clone()))).collect();
        self.read_only.extend(read_only);
        self.denied.extend(denied);
        self.stubs_elsewhere.extend(stubs);
        self.links.extend(links);
    }

    /// Has the first name of a path that is not there yet never be.
    fn stub(&mut self, path: &Path, contents: Option<&'static str>, roots: &Roots) {
        // Those of other runs go when they end.
        let is_free = |part: &&Path| stubs::is_free(part, contents.filter(|_| *part == path));
        // Where something has come there meanwhile, making the stub fails.
        let missing = path.ancestors().take_while(is_free).last().unwrap_or(path);
        let contents = contents.filter(|_| missing == path);
        let above = missing.parent().and_then(|above| above.symlink_metadata().ok());
        if above.is_some_and(|above| !above.is_dir()) {
            // Below a file nothing can be made, as long as it stays where it is.
            self.pin(missing, roots);
            return;
        }
        if self.stubs.iter().all(|stub| stub.path != missing) && stubs::can_be_made(missing) {
            self.pin(missing, roots);
            self.stubs.push(Stub { path: missing.to_path_buf(), contents });
        }
    }

    /// Has no directory above a path be renamed or removed, so that the path stays what it is.
    fn pin(&mut self, path: &Path, roots: &Roots) {
        let Some(root) = roots.above(path) else { return };
        let above = path.ancestors().skip(1).take_while(|above| !is_same(above, root));
        self.pins.extend(above.map(Path::to_path_buf));
    }
}

fn private(given: &Given<'_>, places: &[Placed]) -> Vec<Private> {
    let tmp = given.scratch.map(|scratch| (PathBuf::from(TMP), Some(scratch.to_path_buf())));
    let services: BTreeSet<PathBuf> = SERVICES.iter().map(|path| canonical(Path::new(path))).collect();
    let all = tmp.into_iter().chain(services.into_iter().map(|path| (path, None)));
    let private = all.filter(|(at, _)| is_plain_directory(at) && !is_meant(at, given));
    private.map(|(at, from)| Private { keep: keep(&at, given, places), at, from }).collect()
}

/// A directory under its own name, and not the root.
fn is_plain_directory(path: &Path) -> bool {
    path::is_directory(path) && path.parent().is_some()
}

/// Whether a flag or a rule is about the host's, or about all that is above it.
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
fn number_of_terminal(opened: i32) -> Option<u32> {
    const LAST: u32 = 63;
    if !descriptor::is_terminal(opened) {
        return None;
    }
    let name = std::fs::read_link(format!("/proc/self/fd/{opened}")).ok()?;
    let number = name.strip_prefix(TERMINALS).ok()?.to_str()?.parse().ok()?;
    Some(number).filter(|number| *number <= LAST)
}

/// The host's terminals are named one by one, and are not for others.
fn kept_in(kind: Kind, at: &Path, given: &Given<'_>, places: &[Placed]) -> Vec<Kept> {
    if kind == Kind::Memory { keep(at, given, places) } else { Vec::new() }
}

fn systems(given: &Given<'_>, places: &[Placed]) -> Vec<System> {
    let has_rule = |path: &Path| given.rules.iter().any(|rule| is_same(&rule.path, path));
    let named = |path: &Path| given.named.iter().any(|named| is_within(named, path));
    let mut systems = vec![System { kind: Kind::Proc, at: PathBuf::from("/proc"), keep: Vec::new() }];
    for (kind, path) in [(Kind::Memory, SHARED_MEMORY), (Kind::Terminals, TERMINALS)] {
        let path = Path::new(path);
        if has_rule(path) && !named(path) && is_plain_directory(path) {
            systems.push(System { kind, at: path.to_path_buf(), keep: kept_in(kind, path, given, places) });
        }
    }
    systems
}
