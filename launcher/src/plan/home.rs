//! The home directory of a run: the user's own, of which the rules open a part; or a directory of the run's own, into
//! which that part is mounted. What is not there needs no list of secrets that has to be complete.

pub mod inner;
mod programs;

use crate::digest;
use crate::error::Refusal;
use crate::host::{Host, number_of};
use crate::plan::files::tidy;
use crate::plan::listings::Listings;
use crate::plan::namespaces::Choice;
use crate::plan::namespaces::record::Workspaces;
use crate::plan::rules::{PathRights, PathRule};
use crate::plan::writable_roots::WritableRoots;
use crate::plan::{CacheOf, HomeOf, Inputs, state};
use crate::profile::{Given, HomeMode, PathEntry, SettingsCopy, Variables};
use crate::program::Link;
use crate::sys::mount;
use crate::sys::path::{self, canonical};
use crate::sys::within::{is_below, is_same, is_within};
use crate::text::shown;
use programs::Programs;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The part of a home's directory outside that is the home.
pub const HOME: &str = "home";
/// The part of it that has what runs write to stores.
pub const STORES: &str = "stores";
/// The part of layers that has what was changed.
pub const UPPER: &str = "upper";
/// What stands for that directory where a run is only asked about, and none is made.
pub const NO_HOME: &str = "/tmp/.sbx-no-home";
/// Where caches are in a home.
pub const CACHE: &str = ".cache";

/// Directories in which a home is nobody's.
const NO_HOMES: [&str; 5] = ["/dev", "/proc", "/sys", "/run", "/var/run"];

/// A home directory of the run's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateHome {
    /// Where it is inside: the real path of the user's own.
    pub at: PathBuf,
    /// Where it is outside.
    pub directory: PathBuf,
    /// Where what the run writes to the stores is, outside; `None` where they are read-only.
    pub layers: Option<PathBuf>,
    /// Why they are.
    pub no_layers: Option<String>,
    /// Whether later runs find it again.
    pub lasts: bool,
}

/// A directory of packages: what the run writes there is kept apart from what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Where it is inside.
    pub at: PathBuf,
    /// The directory that the overlay is laid over: what is read there is never changed.
    pub below: PathBuf,
    /// The directory in which the run's own part is. Stores with the same one are parts of one overlay.
    pub layers: PathBuf,
    /// Where the store is in both of them.
    pub part: PathBuf,
}

impl Store {
    /// What the run has written to it.
    pub fn written(&self) -> PathBuf {
        self.layers.join(UPPER).join(&self.part)
    }
}

/// Which home a run has, and why it has none of its own where the profile means it to. What is not asked for on the
/// command line is closed where it cannot be had.
pub fn choose(
    inputs: &Inputs<'_>,
    choice: &Choice,
    workspace: Option<&Path>,
) -> Result<(HomeMode, Option<String>), Refusal> {
    let asked = inputs.request.home;
    let mode = asked.or(inputs.profile.home.mode.as_deref().copied()).unwrap_or_default();
    if mode == HomeMode::Closed {
        return Ok((mode, None));
    }
    match (why_not(inputs, choice, workspace), asked) {
        (None, _) => Ok((mode, None)),
        (Some(why), None) => Ok((HomeMode::Closed, Some(why))),
        (Some(why), Some(_)) => {
            Err(Refusal::new(format!("cannot make a home directory of the run's own: {why}")))
        }
    }
}

fn why_not(inputs: &Inputs<'_>, choice: &Choice, workspace: Option<&Path>) -> Option<String> {
    if let Choice::None(why) = choice {
        return Some(why.clone());
    }
    let Some((home, real)) = inputs.host.home().zip(inputs.host.real_home()) else {
        return Some("HOME is not an absolute path".to_string());
    };
    if !path::is_directory(real) || real.parent().is_none() {
        return Some(format!("'{}' is not a directory of its own", shown(home)));
    }
    if NO_HOMES.iter().any(|above| is_within(real, Path::new(above))) {
        return Some(format!("'{}' is where the system keeps other things", shown(home)));
    }
    // Where the command starts, it is to see what is there.
    if workspace.is_none() && is_within(&inputs.directory, real) {
        return Some(format!("the command starts in '{}'", shown(home)));
    }
    named(inputs, workspace, home, real).map(|by| format!("{by} '{}' is meant", shown(home)))
}

/// What says that the user's own home is meant: the workspace, a flag or a rule about it or what is above.
fn named(inputs: &Inputs<'_>, workspace: Option<&Path>, home: &Path, real: &Path) -> Option<&'static str> {
    let Inputs { request, profile, directory, .. } = inputs;
    let covers = |path: &Path| is_within(real, path) || is_within(home, path);
    if workspace.is_some_and(covers) {
        return Some("the workspace holds it, so the user's own");
    }
    let flags = [&request.ro, &request.rox, &request.rw, &request.rwx, &request.deny];
    let mut words = flags.into_iter().flatten().map(|word| tidy(&directory.join(word)));
    if words.any(|word| covers(&word) || covers(&canonical(&word))) {
        return Some("a flag names it, so the user's own");
    }
    let variables = Variables { home: Some(home), ..Variables::default() };
    let paths = &profile.paths;
    let lists = [&paths.read, &paths.execute, &paths.write, &paths.deny];
    let mut entries = lists.into_iter().flat_map(|list| list.iter());
    let is_about = |entry: &PathEntry| {
        let of_system = entry.base.is_none() && entry.origin.built_in;
        entry.expand_path(&variables).is_some_and(|path| match of_system {
            // A rule about /opt is not about the homes that are there.
            true => is_within(&path, real) || covers(&path) && !is_home_below(real, &path),
            false => covers(&path),
        })
    };
    entries.any(is_about).then_some("a rule of the profile is about it, so the user's own")
}

/// Whether a directory of the system that everybody may read has this home in it, as one thing among others. That of a
/// service, as /usr/sbin, is not its own.
pub fn is_home_below(home: &Path, system: &Path) -> bool {
    is_below(home, system) && system.parent().is_some() && state::is_users(home)
}

/// The home of a run, if it is to have one of its own. Without a directory of state it does not last.
pub fn of(mode: HomeMode, host: &Host, owner: impl FnOnce() -> CacheOf) -> Option<HomeOf> {
    let at = host.real_home().filter(|_| mode != HomeMode::Closed)?.to_path_buf();
    let owner = owner();
    let name = name_of(&owner).filter(|_| mode == HomeMode::Private && state::is_own(host));
    let directory = directory(host).zip(name).map(|(all, name)| all.join(name));
    Some(HomeOf { at, directory, owner })
}

/// The words that start a command which only the home has, by a shell inside, as far as it lasts and has it.
pub fn words_for(inputs: &Inputs<'_>, of: &HomeOf) -> Option<Vec<OsString>> {
    const EXEC: [&str; 3] = ["sh", "-c", r#"exec "$0" "$@""#];
    let (base, host) = (inner::of(of.directory.as_ref()?)?.join(HOME), inputs.host);
    let command = Path::new(inputs.command());
    let has = |path: &Path| {
        let path = tidy(&inputs.directory.join(path));
        let below = path.strip_prefix(&of.at).or_else(|_| path.strip_prefix(host.home().unwrap_or(&of.at)));
        below.is_ok_and(|below| path::is_there(&base.join(below)))
    };
    let bytes = command.as_os_str().as_bytes();
    let found = match bytes.contains(&b'/') {
        true => has(command),
        false => std::env::split_paths(host.variable("PATH")?).any(|directory| has(&directory.join(command))),
    };
    let words = EXEC.into_iter().map(OsString::from).chain(inputs.request.command.iter().cloned());
    (found && !bytes.starts_with(b"-")).then(|| words.collect())
}

/// The directory of all homes.
pub fn directory(host: &Host) -> Option<PathBuf> {
    state::directory(host, "homes")
}

/// The name of a home in it. Nobody can find another workspace or profile that gets the same.
pub fn name_of(of: &CacheOf) -> Option<String> {
    let workspace = of.workspace.as_deref()?;
    Some(digest::short(&[workspace.as_os_str().as_bytes(), of.profile.as_bytes()].join(&0)))
}

impl PrivateHome {
    /// One that lasts, with the directory that has all of it outside ([`inner`]).
    pub fn lasting(of: &HomeOf, directory: &Path, layers: Result<PathBuf, String>) -> PrivateHome {
        let (layers, no_layers) = match layers {
            Ok(layers) => (Some(layers), None),
            Err(why) => (None, Some(why)),
        };
        PrivateHome { at: of.at.clone(), directory: directory.join(HOME), layers, no_layers, lasts: true }
    }

    /// One in a directory that is removed with the run. Nobody would find again what is written to its stores.
    pub fn temporary(of: &HomeOf, directory: &Path) -> PrivateHome {
        let no_layers = Some("the home is removed with the run".to_string());
        PrivateHome {
            at: of.at.clone(),
            directory: directory.join(HOME),
            layers: None,
            no_layers,
            lasts: false,
        }
    }

    /// The one that a run would have. `no_layers` tells why its stores could not be written to, if that is known.
    pub fn imagined(of: &HomeOf, no_layers: Option<&str>) -> PrivateHome {
        match &of.directory {
            Some(directory) => {
                let inner = inner::of_next_run(directory);
                let layers = no_layers.map_or_else(|| Ok(inner.join(STORES)), |why| Err(why.to_string()));
                PrivateHome::lasting(of, &inner, layers)
            }
            None => PrivateHome::temporary(of, Path::new(NO_HOME)),
        }
    }

    /// What a home changes of the rules of a profile: what it has copies of, and stores that the run can write to, need
    /// none of their own; programs on PATH do. Returns the links that lead to these.
    pub fn adapt(
        &self,
        inputs: &Inputs<'_>,
        variables: &Variables<'_>,
        listings: &Listings,
        rules: &mut Vec<PathRule>,
    ) -> Vec<PathBuf> {
        let home = &inputs.profile.home;
        let copies = home.copies.iter().filter_map(|copy| copy.path.expand_path(variables));
        let stores = home.stores.iter().filter_map(|entry| entry.expand_path(variables));
        let copies: Vec<PathBuf> = copies.collect();
        let stores: Vec<PathBuf> = stores.collect();
        // Nearly all rules are about other places, or about what is not there, which no rule opens.
        let near =
            variables.home.filter(|home| copies.iter().chain(&stores).all(|path| is_within(path, home)));
        let may_be = |path: &Path| near.is_none_or(|home| is_within(path, home) && !listings.lack(path));
        let in_store =
            |path: &Path| self.layers.is_some() && stores.iter().any(|store| is_within(path, store));
        let is_copy = |path: &Path| copies.iter().any(|copy| is_same(copy, path));
        let own = |rule: &PathRule| may_be(&rule.path) && (is_copy(&rule.path) || in_store(&rule.path));
        rules.retain(|rule| !(rule.built_in && own(rule)));
        if self.layers.is_none() {
            let read = |path: PathBuf| PathRule {
                path,
                rights: PathRights::EXECUTE,
                optional: true,
                built_in: true,
                follows: true,
            };
            let is_there = |path: &PathBuf| listings.has(path, path::is_there);
            rules.extend(stores.into_iter().filter(is_there).map(read));
        }
        let rights = PathRights { execute: true, ..PathRights::WRITE };
        rules.push(PathRule::new(self.directory.clone(), rights));
        let own = shared_directories(variables);
        let mut programs = Programs::new(&self.at, own, rules, inputs.host);
        programs.of_path(inputs.host.variable("PATH").unwrap_or_default());
        let Programs { added, links, .. } = programs;
        rules.extend(added);
        links
    }

    /// Adds rules for the command and what belongs to it, where it is in the home. `rules` are all others: wherever
    /// they let commands write, an earlier one may have decided what a file names.
    pub fn admit(
        &self,
        command: &[Link],
        inputs: &Inputs<'_>,
        variables: &Variables<'_>,
        rules: &mut Vec<PathRule>,
    ) {
        if !command.first().is_some_and(|link| self.has(&link.path, inputs.host)) {
            return;
        }
        let roots = WritableRoots::of(variables, rules);
        let mut programs = Programs::new(&self.at, roots.paths().collect(), rules, inputs.host);
        programs.of_command(command, inputs);
        let added = programs.added;
        rules.extend(added);
    }

    /// Whether a path is below the home, by its name there or inside.
    pub fn has(&self, path: &Path, host: &Host) -> bool {
        is_in_home(path, &self.at, host)
    }

    /// The copies of settings, each with the real path of what it is made of.
    pub fn copies(
        &self,
        entries: &[Given<SettingsCopy>],
        variables: &Variables<'_>,
    ) -> Vec<(PathBuf, PathBuf)> {
        let copy = |entry: &Given<SettingsCopy>| {
            let named = entry.path.expand_path(variables)?;
            let below = named.strip_prefix(variables.home?).ok()?;
            Some((self.at.join(below), canonical(&named)))
        };
        entries.iter().filter_map(copy).collect()
    }

    /// The stores that exist. Those that are in the user's home under their own names are parts of one overlay, laid
    /// over the home: each overlay takes a dozen changes of the disk. They come first.
    pub fn stores(
        &self,
        entries: &[PathEntry],
        variables: &Variables<'_>,
        (listings, host): (&Listings, &Host),
    ) -> Vec<Store> {
        let Some((layers, home)) = self.layers.as_ref().zip(variables.home) else { return Vec::new() };
        let mut mount_of_home = None;
        let others = Workspaces::of(host);
        let mut store = |entry: &PathEntry| {
            let named = entry.expand_path(variables)?;
            let below = match listings.has_directory(&named) {
                true => named.clone(),
                false if listings.lack(&named) || !path::is_directory_or_link(&named) => return None,
                // An earlier command may have put a link into the workspace, over which the user's own link leads.
                false => {
                    let way = path::way(&named);
                    let is_led = others.or_own_lead_out(&way, variables.workspace);
                    Some(way.real).filter(|below| !is_led && path::is_directory(below))?
                }
            };
            let part = named.strip_prefix(home).ok()?;
            let at = self.at.join(part);
            // An overlay shows nothing of what is mounted below its directories.
            let mut is_in_home = || {
                let mount = *mount_of_home.get_or_insert_with(|| mount::number(&self.at));
                mount.is_some() && mount::number(&below) == mount
            };
            Some(if below == at && is_in_home() {
                Store { at, below: self.at.clone(), layers: layers.clone(), part: part.to_path_buf() }
            } else {
                let layers = layers.join(digest::short(named.as_os_str().as_bytes()));
                Store { at, below, layers, part: PathBuf::new() }
            })
        };
        let stores = entries.iter().filter_map(&mut store);
        let (mut stores, others): (Vec<_>, Vec<_>) = stores.partition(|store| store.layers == *layers);
        stores.extend(others);
        stores
    }
}

/// Where every run may write.
fn shared_directories<'a>(variables: &Variables<'a>) -> Vec<&'a Path> {
    [variables.workspace, variables.tmp].into_iter().flatten().collect()
}

/// The symbolic links by which flags name paths, the command its files below the home, and the user the directories in
/// which the run works. They open nothing: what they lead to is there inside only where a rule opens it.
pub fn named_links(inputs: &Inputs<'_>, workspace: Option<&Path>, home: &Path) -> Vec<PathBuf> {
    let Inputs { request, program, directory, .. } = inputs;
    let lists = [&request.ro, &request.rox, &request.rw, &request.rwx, &request.unix];
    let words = lists.into_iter().flatten().map(PathBuf::as_path);
    let below = |path: &&Path| is_in_home(path, home, inputs.host);
    let files = program.chain.iter().map(|link| &*link.path).filter(below);
    let named = words.chain(files).flat_map(|path| path::way(&directory.join(path)).links);
    named.chain(links_of_directories(inputs, workspace)).collect()
}

/// The symbolic links by which the user names the workspace and the working directory. A shell has them in PWD, and
/// build trees keep the paths. Those that the command of another run may have made are not the user's.
fn links_of_directories(inputs: &Inputs<'_>, workspace: Option<&Path>) -> Vec<PathBuf> {
    let Inputs { request, host, directory, .. } = inputs;
    let Ok(here) = host.directory() else { return Vec::new() };
    let given = [&request.workspace, &request.cwd].into_iter().flatten().map(|path| here.join(path));
    let current = host.variable("PWD").map(PathBuf::from).filter(|named| {
        let is_other = named.is_absolute() && named != here;
        is_other && number_of(named).is_some_and(|named| number_of(here) == Some(named))
    });
    let works = |path: &Path| is_within(path, directory) || workspace.is_some_and(|top| is_within(path, top));
    let others = Workspaces::of(host);
    let ways = given.chain(current).map(|path| path::way(&path)).filter(|way| works(&way.real));
    let own = ways.filter(|way| way.links.iter().all(|link| others.holding(link).is_none()));
    own.flat_map(|way| way.links).collect()
}

/// Whether a path begins with the home, by its real name or the one that the user has for it.
fn is_in_home(path: &Path, home: &Path, host: &Host) -> bool {
    is_below(path, home) || host.home().is_some_and(|named| is_below(path, named))
}
