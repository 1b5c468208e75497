//! Namespaces of a run's own: where they can be had, they hold what Landlock and seccomp cannot.
//!
//! The reaper is the first process in them (see `supervise::reaper`). What is mounted there is decided beforehand
//! (`layout`), from the path rules, what is denied and what is protected (`protect`, `git`); `enter` then does it, before
//! Landlock forbids mounting. Where namespaces are not to be had, the run is planned again without them: denials are
//! then held by granting siblings, and what only mounts can hold is said to be missing.

mod enter;
mod git;
mod layout;
mod places;
mod protect;
mod renewed;
pub(crate) mod settings;
mod shielded;
mod stubs;

pub use enter::{Doors, Entered, Stop, enter, leave, renew};
pub use git::{CONFIG, HOOKS, NEW_CONFIG, Repository, outermost as outermost_repository};
pub use layout::{CACHE_IN_TMP, Given, Layout, NO_SCRATCH, TMP};
pub use settings::{LONGEST, Malformed, Setting, Settings};
pub use stubs::{Stubs, share};

use crate::cli::{self, Run};
use crate::launch::files::{self, Directories};
use crate::launch::landlock::{Version, canonical};
use crate::launch::policy::{Mode, Network, PathRule};
use crate::launch::siblings;
use crate::profile::{Level, Location, Namespaces, Profile, Variable, Variables};
use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use crate::sys::{descriptor, path};
use places::Roots;
use protect::Protected;
use std::path::{Path, PathBuf};

/// Whether a run is to have namespaces of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is.
    Made,
    /// It is not, for this reason.
    None(String),
}

/// What the choice depends on besides flags and profile.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// Landlock's version here.
    pub landlock: Version,
    /// Whether an `sbx` confines this process.
    pub nested: bool,
    /// The network.
    pub network: &'a Network,
    /// Why the machine did not give them when they were tried.
    pub failed: Option<&'a str>,
}

/// Whether a run has namespaces of its own; an error where it needs them and cannot have them.
pub fn choose(flags: &Run, profile: &Profile, situation: Situation<'_>) -> Result<Choice, Refusal> {
    let needs = needs(flags, profile, situation.network);
    let by_profile = profile.namespaces.as_deref() == Some(&Namespaces::Auto);
    let wished = match flags.namespaces {
        Some(cli::Namespaces::Auto) => true,
        Some(cli::Namespaces::None) => false,
        None => by_profile,
    };
    let why = if profile.is_unrestricted() {
        Some("the run is unconfined, as wished".to_string())
    } else if flags.namespaces == Some(cli::Namespaces::None) {
        Some("--namespaces none asks for that".to_string())
    } else if !wished && needs.is_none() {
        Some(format!("profile '{}' does without", profile.name))
    } else if flags.exec {
        Some("--exec leaves no process that could be the first in them".to_string())
    } else if flags.keep_background {
        Some("--keep-background leaves processes behind, and these end with their namespace".to_string())
    } else if situation.landlock < Version::FILES {
        Some("without Landlock they would add little".to_string())
    } else if situation.nested {
        Some("a sandbox of sbx around this process refuses them".to_string())
    } else {
        situation.failed.map(str::to_string)
    };
    match (why, needs) {
        (None, _) => Ok(Choice::Made),
        (Some(why), None) => Ok(Choice::None(why)),
        (Some(why), Some(need)) => Err(Refusal::new(format!(
            "cannot make namespaces, which {need} needs: {why}; 'sbx status' tells more"
        ))),
    }
}

/// Why a process that confines itself has none.
pub const ONESELF: &str = "a process that confines itself stays where it is";

/// The same for a process that confines itself.
pub fn choose_for_oneself(profile: &Profile, network: &Network) -> Result<Choice, Refusal> {
    match needs(&Run::default(), profile, network) {
        None => Ok(Choice::None(ONESELF.to_string())),
        Some(need) => Err(Refusal::new(format!("cannot make namespaces, which {need} needs: {ONESELF}"))),
    }
}

/// What cannot do without.
fn needs(flags: &Run, profile: &Profile, network: &Network) -> Option<&'static str> {
    let full = flags.require == Some(cli::Level::Full)
        || (flags.require.is_none() && profile.require.as_deref() == Some(&Level::Full));
    if network.mode == Mode::Private {
        Some("a network of the run's own")
    } else if full {
        Some("level 'full'")
    } else {
        None
    }
}

/// Whether the scratch directory takes the place of /tmp: unless the host's is meant.
pub fn has_own_tmp(flags: &Run, profile: &Profile, directories: Directories<'_>) -> bool {
    let tmp = Path::new(TMP);
    path::is_directory(tmp) && !files::names(flags, profile, directories, tmp)
}

/// What is protected in a run, with the directories of profiles and the files of this one, which are `sbx`'s own.
pub fn protected(
    profile: &Profile,
    variables: &Variables<'_>,
    repository: Option<Repository>,
    own: &[PathBuf],
) -> Vec<Protected> {
    let mut all = of_others(profile, variables, repository);
    all.extend(own.iter().flat_map(|directory| profiles(directory)));
    all.extend(profile.files.iter().cloned().map(Protected::existing));
    all
}

/// What something outside would execute or trust.
fn of_others(profile: &Profile, variables: &Variables<'_>, repository: Option<Repository>) -> Vec<Protected> {
    let mut all = named(profile, variables);
    for workspace in repository.iter().flat_map(Repository::workspaces) {
        let more = named(profile, &Variables { workspace: Some(workspace), ..*variables });
        let is_known = |path: &Path| all.iter().any(|known| known.path == path);
        let more: Vec<Protected> = more.into_iter().filter(|more| !is_known(&more.path)).collect();
        all.extend(more);
    }
    all.extend(repository.into_iter().flat_map(|repository| repository.protected));
    all
}

/// Where profiles are looked for: what a command may do is not for the command of an earlier run to say. The default one
/// may be a link to a file elsewhere.
fn profiles(directory: &Path) -> [Protected; 2] {
    let parent = directory.parent().map(siblings::resolve).unwrap_or_default();
    let directory = parent.join(directory.file_name().unwrap_or_default());
    let default = directory.join("default.json");
    [Protected::new(directory), Protected::existing(default)].map(|own| Protected { itself: true, ..own })
}

/// What a profile names for a workspace.
fn named(profile: &Profile, variables: &Variables<'_>) -> Vec<Protected> {
    let mut paths = RealPaths { variables, known: Vec::new() };
    let mut looked_for = Vec::new();
    let mut all = Vec::with_capacity(profile.paths.protect.len());
    for entry in profile.paths.protect.iter() {
        let Some(path) = paths.place(&entry.path) else { continue };
        let mut readers = entry.readers.iter();
        let read = entry.readers.is_empty() || readers.any(|of| is_there(of, variables, &mut looked_for));
        all.push(if read { Protected::new(path) } else { Protected::existing(path) });
    }
    all
}

/// Whether there is something at a place. The same tools read several files, so answers are kept.
fn is_there<'a>(
    place: &'a Location,
    variables: &Variables<'_>,
    looked_for: &mut Vec<(&'a Location, bool)>,
) -> bool {
    if let Some((_, there)) = looked_for.iter().find(|(known, _)| *known == place) {
        return *there;
    }
    // Where nobody knows what the variable stands for, nobody knows that nothing reads it either.
    let there = place.expand_path(variables).is_none_or(|path| path::is_there(&path));
    looked_for.push((place, there));
    there
}

/// The directories that a profile's places are in, by variable and name, and their real paths.
struct RealPaths<'p> {
    variables: &'p Variables<'p>,
    known: Vec<(Option<Variable>, &'p str, Option<PathBuf>)>,
}

impl<'p> RealPaths<'p> {
    /// A place with the directory that it is in under its real name, as far as no command can change that. `None` where its
    /// variable stands for nothing.
    fn place(&mut self, place: &'p Location) -> Option<PathBuf> {
        let parts = place.rest.rsplit_once('/').filter(|(_, name)| !name.is_empty());
        let in_workspace = place.base == Some(Variable::Workspace);
        if let Some((above, name)) = parts.filter(|_| !in_workspace) {
            return Some(self.real(place.base, above)?.join(name));
        }
        let path = place.expand_path(self.variables)?;
        let Some((above, name)) = path.parent().zip(path.file_name()) else { return Some(path) };
        // The workspace is a real path, and links in it are not passed over: a command can replace them.
        Some(if in_workspace { above.join(name) } else { canonical(above).join(name) })
    }

    /// The real path of a directory, from the top down: nearly all places are below one of two.
    fn real(&mut self, base: Option<Variable>, rest: &'p str) -> Option<PathBuf> {
        let is_known = |(of, directory, _): &&(_, &str, _)| *of == base && *directory == rest;
        if let Some((_, _, real)) = self.known.iter().find(is_known) {
            return real.clone();
        }
        let real = match rest.rsplit_once('/') {
            Some((above, name)) => self.real(base, above).map(|above| below(above, name)),
            None => base.map_or(Some(Path::new("/")), |base| self.variables.get(base)).map(canonical),
        };
        self.known.push((base, rest, real.clone()));
        real
    }
}

fn below(directory: PathBuf, name: &str) -> PathBuf {
    if name.is_empty() {
        return directory;
    }
    let path = directory.join(name);
    if path.is_symlink() { canonical(&path) } else { path }
}

/// What a built-in profile protects is given up with a warning where it has to be; what a user's own does, is not.
pub fn check_own_wishes(flags: &Run, profile: &Profile, why: &str) -> Result<(), Refusal> {
    let own = profile.paths.protect.iter().find(|entry| !entry.origin.built_in);
    match own.filter(|_| flags.namespaces != Some(cli::Namespaces::None)) {
        Some(entry) => Err(Refusal::new(format!(
            "cannot protect '{}' ({}): it takes namespaces, and {why}; take the entry out, or add '--namespaces none' if it may be changed",
            entry.value, entry.origin
        ))),
        None => Ok(()),
    }
}

/// What to say where the command may change what says what it may do.
pub fn own_profile_exposed(profile: &Profile, rules: &[PathRule], why: &str) -> Option<String> {
    if profile.files.is_empty() {
        return None;
    }
    let roots = Roots::of(rules);
    let file = profile.files.iter().find(|file| roots.above(file).is_some())?;
    Some(format!(
        "warning: the command can change its profile '{}', and with it what later runs may do, for the run has no namespaces: {why}",
        shown(file)
    ))
}

/// What to say where something is to be protected, and cannot be.
pub fn unprotected(
    profile: &Profile,
    variables: &Variables<'_>,
    rules: &[PathRule],
    why: &str,
) -> Option<String> {
    if profile.paths.protect.is_empty() {
        return None;
    }
    let roots = Roots::of(rules);
    let repository = variables.workspace.map(|workspace| Repository::of(workspace, variables.home));
    // First what is sure to be there.
    let mut all = of_others(profile, variables, repository);
    all.sort_by_key(|protected| !path::is_there(&protected.path));
    let at_stake = |protected: &&Protected| {
        let there = path::is_there(&protected.path);
        (there || !protected.made_freely) && roots.above(&protected.path).is_some()
    };
    let path = shown(&all.iter().find(at_stake)?.path);
    Some(format!(
        "warning: '{path}', and what else something outside may execute later, can be changed by the command, for the run has no namespaces: {why}"
    ))
}

/// A directory that the command is handed open was opened outside its namespaces: through it, everything could be
/// reached as it is there.
pub fn check_descriptors(passed: &[i32]) -> Result<(), Refusal> {
    for number in (0..3).chain(passed.iter().copied()) {
        if let Some(path) = descriptor::directory(number) {
            return Err(Refusal::new(format!(
                "cannot pass descriptor {number} on: it is the directory '{}', opened outside the namespaces of the run; leave it out, or run with '--namespaces none'",
                shown(&path)
            )));
        }
    }
    Ok(())
}

/// A file that is protected or denied, and handed over open, could be opened once more by its descriptor's name,
/// for writing too.
pub fn check_files(passed: &[i32], layout: &Layout) -> Result<(), Refusal> {
    if !layout.shields_something() {
        return Ok(());
    }
    let held = |path: &PathBuf| layout.shields(path);
    for number in (0..3).chain(passed.iter().copied()) {
        if let Some(path) = descriptor::regular_file(number).filter(held) {
            return Err(Refusal::new(format!(
                "cannot pass descriptor {number} on: '{}' is kept from being changed or read in this run, and could be opened anew through it; hand its contents over through a pipe",
                shown(&path)
            )));
        }
    }
    Ok(())
}
