//! Namespaces of a run's own. They hold what Landlock and seccomp cannot.
//!
//! *Inside* is what processes in the run's mount namespace see at a path, *outside* what everybody else sees.
//! The reaper is the first process inside (`enforce::reaper`). `layout` decides what is mounted there, from the
//! path rules, what is denied and what is protected (`protect`, `git`). `enforce::mounts` mounts it, before
//! Landlock forbids mounting. `choice` decides which namespaces a run has. If the machine does not give some of them,
//! the run is planned again without those: without mounts, deny expansion holds denials, and warnings say what only
//! mounts could hold.

mod choice;
mod denied;
pub mod git;
pub mod git_config;
pub mod layout;
pub mod placeholder;
mod places;
pub mod protect;
mod protected;
pub mod record;
pub mod renewed;

pub use choice::{ADD_LITTLE, Asked, Choice, Choices, Missing, Unavailable, choose};
pub use git::{CONFIG, CONFIG_LOCK, HOOKS, NEW_CONFIG, Repository, outermost as outermost_repository};
pub use git_config::{LONGEST, Malformed, Setting, Settings};
pub use layout::{CACHE_IN_TMP, Given, Layout, NO_SCRATCH, TMP};
pub use places::Roots;
pub use record::{Record, Workspaces};

use crate::error::Refusal;
use crate::host::{Host, Open, number_of};
use crate::plan::files::{self, Directories};
use crate::plan::listings::Listings;
use crate::plan::rules::PathRule;
use crate::plan::{Inputs, deny_expansion};
use crate::profile::{Location, Namespaces, Profile, Variables, WhenMade};
use crate::request::Request;
use crate::sys::access;
use crate::sys::number::FileNumber;
use crate::sys::path::{self, canonical};
use crate::sys::within::{is_below, is_within};
use crate::text::shown;
use placeholder::{Shape, Watched};
use protect::{IfMissing, Protected};
use std::path::{Path, PathBuf};

/// Whether the scratch directory takes the place of /tmp: unless the host's is meant.
pub fn has_own_tmp(request: &Request, profile: &Profile, directories: Directories<'_>) -> bool {
    let tmp = Path::new(TMP);
    path::is_directory(tmp) && !files::names(request, profile, directories, tmp)
}

/// What is protected in a run, with what is `sbx`'s own: the directories of profiles, that of what lasts, and the files
/// of this run's profile.
pub fn protected(
    profile: &Profile,
    variables: &Variables<'_>,
    directory: &Path,
    repository: Option<Repository>,
    own: &[PathBuf],
    state: Option<&Path>,
    listings: &Listings,
) -> Vec<Protected> {
    let mut all = of_others(profile, variables, directory, repository, listings);
    all.extend(own.iter().flat_map(|directory| profiles(directory)));
    all.extend(state.map(|state| Protected { itself: true, ..Protected::new(state.to_path_buf()) }));
    all.extend(profile.files.iter().cloned().map(Protected::existing));
    all
}

/// What something outside would execute or trust. A package of a repository may be opened in an editor by itself.
fn of_others(
    profile: &Profile,
    variables: &Variables<'_>,
    directory: &Path,
    repository: Option<Repository>,
    listings: &Listings,
) -> Vec<Protected> {
    let mut all = named(profile, variables, listings);
    let package = variables.workspace.filter(|workspace| is_below(directory, workspace)).map(|_| directory);
    for workspace in repository.iter().flat_map(Repository::workspaces).chain(package) {
        let more = named(profile, &Variables { workspace: Some(workspace), ..*variables }, listings);
        let is_known = |path: &Path| all.iter().any(|known| known.path == path);
        let more: Vec<Protected> = more.into_iter().filter(|more| !is_known(&more.path)).collect();
        all.extend(more);
    }
    all.extend(repository.into_iter().flat_map(|repository| repository.protected));
    all
}

/// Where profiles are looked for. A command that could write there would decide what later commands may do. The
/// default profile may be a link to a file elsewhere.
fn profiles(directory: &Path) -> [Protected; 2] {
    let default = Protected::existing(directory.join("default.json"));
    [Protected::new(directory.to_path_buf()), default].map(|own| Protected { itself: true, ..own })
}

/// What a profile names for a workspace.
fn named(profile: &Profile, variables: &Variables<'_>, listings: &Listings) -> Vec<Protected> {
    // Nearly all places are below the home directory, to which a link may lead.
    let home = variables.home.map(canonical);
    let below = Variables { home: home.as_deref(), ..*variables };
    let mut looked_for = Vec::new();
    let mut all = Vec::with_capacity(profile.paths.protect.len() + 1);
    all.extend(
        variables
            .home
            .filter(|named| home.as_deref() != Some(*named))
            .map(Path::to_path_buf)
            .map(Protected::way),
    );
    for entry in profile.paths.protect.iter() {
        let Some(path) = entry.path.expand_path(&below) else { continue };
        let mut readers = entry.readers.iter();
        let mut is_there = |of| is_there(of, variables, listings, &mut looked_for);
        let read = entry.readers.is_empty() || readers.any(&mut is_there);
        let missing = match entry.when_made {
            _ if !read => IfMissing::MadeFreely,
            WhenMade::Refuse => IfMissing::Placeholder(Shape::Directory),
            WhenMade::SetAside => IfMissing::SetAside,
        };
        all.push(Protected { missing, ..Protected::new(path) });
    }
    all
}

/// Whether there is something at a place. The same tools read several files, so answers are kept.
fn is_there<'a>(
    place: &'a Location,
    variables: &Variables<'_>,
    listings: &Listings,
    looked_for: &mut Vec<(&'a Location, bool)>,
) -> bool {
    if let Some((_, there)) = looked_for.iter().find(|(known, _)| *known == place) {
        return *there;
    }
    // Where nobody knows what the variable stands for, nobody knows that nothing reads it either.
    let is_there = |path: PathBuf| listings.has(&path, path::is_there);
    let there = place.expand_path(variables).is_none_or(is_there) || place.elsewhere(variables).any(is_there);
    looked_for.push((place, there));
    there
}

/// Without namespaces nothing can be protected: a warning for entries of built-in profiles, a refusal for entries of
/// the user's own.
fn check_own_wishes(request: &Request, profile: &Profile, why: &str) -> Result<(), Refusal> {
    let own = profile.paths.protect.iter().find(|entry| !entry.origin.built_in);
    match own.filter(|_| request.namespaces != Some(Namespaces::None)) {
        Some(entry) => Err(Refusal::new(format!(
            "cannot protect '{}' ({}): it takes namespaces, and {why}; take the entry out, or add \
             '--namespaces none' if it may be changed",
            entry.value, entry.origin
        ))),
        None => Ok(()),
    }
}

/// A warning: the command can change the file of its own profile, or where profiles are looked for.
fn own_profile_exposed(
    profile: &Profile,
    directories: &[PathBuf],
    rules: &[PathRule],
    why: &str,
) -> Option<String> {
    let roots = Roots::of(rules);
    let is_exposed = |path: &&PathBuf| roots.above(&deny_expansion::resolve(path)).is_some();
    let places = directories.iter().flat_map(|directory| [directory.clone(), directory.join("default.json")]);
    let places: Vec<PathBuf> = places.collect();
    let file = profile.files.iter().find(is_exposed).map(|file| format!("its profile '{}'", shown(file)));
    let place =
        || places.iter().find(is_exposed).map(|place| format!("'{}', where profiles are", shown(place)));
    Some(format!(
        "warning: the command can change {}, and with it what later runs may do, because the run has no \
         namespaces: {why}",
        file.or_else(place)?
    ))
}

/// What to say where something is to be protected, and cannot be.
fn unprotected(
    profile: &Profile,
    variables: &Variables<'_>,
    directory: &Path,
    rules: &[PathRule],
    nested: bool,
    why: &str,
) -> Option<String> {
    if profile.paths.protect.is_empty() {
        return None;
    }
    let roots = Roots::of(rules);
    let repository = variables.workspace.map(|workspace| Repository::of(workspace, variables.home));
    // First what is sure to be there.
    let listings = Listings::below(variables.home.into_iter().map(Path::to_path_buf));
    let mut all = of_others(profile, variables, directory, repository, &listings);
    all.iter_mut().for_each(|protected| protected.path = path::way(&protected.path).real);
    all.retain(|protected| !protected.only_way);
    all.sort_by_key(|protected| !path::is_there(&protected.path));
    let at_stake = |protected: &&Protected| {
        let there = path::is_there(&protected.path);
        // An sbx around this one has mounted what it protects read-only.
        let mut existing = protected.path.ancestors().filter(|path| path::is_there(path));
        let held = nested && existing.next().is_some_and(access::is_mounted_read_only);
        (there || protected.missing != IfMissing::MadeFreely)
            && !held
            && roots.above(&protected.path).is_some()
    };
    let path = shown(&all.iter().find(at_stake)?.path);
    Some(format!(
        "warning: '{path}', and what else something outside may execute later, can be changed by the command, \
         for the run has no namespaces: {why}"
    ))
}

/// What is to be protected and does not exist, where a run has no namespaces: what is made there is put aside when it
/// has ended.
pub fn missing(
    profile: &Profile,
    variables: &Variables<'_>,
    directory: &Path,
    rules: &[PathRule],
    listings: &Listings,
) -> Vec<Watched> {
    let roots = Roots::of(rules);
    let all = of_others(profile, variables, directory, None, listings)
        .into_iter()
        .filter(|protected| protected.missing != IfMissing::MadeFreely);
    let real = all.map(|protected| path::way(&protected.path).real);
    let real = real.filter(|path| roots.above(path).is_some());
    real.filter_map(|path| Some(Watched::of(&path, placeholder::first_missing(&path, Shape::Link)?)))
        .collect()
}

/// What to say, or to refuse, where a run has no namespaces.
pub fn without(
    inputs: &Inputs<'_>,
    variables: &Variables<'_>,
    rules: &[PathRule],
    nested: bool,
    why: &str,
) -> Result<Vec<String>, Refusal> {
    let profile = &inputs.profile;
    check_own_wishes(inputs.request, profile, why)?;
    let exposed = || own_profile_exposed(profile, &inputs.host.search().dirs, rules, why);
    let warnings = [
        unprotected(profile, variables, &inputs.directory, rules, nested, why),
        // An sbx around this one has protected the profile, or said that it could not.
        (!nested).then(exposed).flatten(),
    ];
    Ok(warnings.into_iter().flatten().collect())
}

/// Refuses descriptors that lead around the mounts of the run: an open directory, which was opened outside, and an open
/// file that is protected or denied, which could be opened anew by its descriptor's name, for writing too.
pub fn check_passed(passed: &[i32], host: &Host, layout: &Layout, denied: &[PathBuf]) -> Result<(), Refusal> {
    let mounts = host.mounts()?;
    // It may have been opened by a name at another mount, or by none that leads there any more; and what is out of
    // sight inside is in need of no mount.
    let is_kept = |path: &Path, file: FileNumber| {
        let names = mounts.other_names(path);
        let is_name_of =
            |kept: &Path| is_within(path, kept) || names.iter().any(|name| is_within(name, kept));
        let is_it = |kept: &Path| is_name_of(kept) || number_of(kept) == Some(file);
        let mut held = layout.read_only.iter().chain(&layout.denied);
        held.any(|kept| is_it(kept)) || denied.iter().any(|path| is_it(&deny_expansion::resolve(path)))
    };
    for number in (0..3).chain(passed.iter().copied()) {
        let why = match host.passed(number) {
            Open::Directory(path) => format!(
                "it is the directory '{}', opened outside the namespaces of the run; leave it out, or run \
                 with '--namespaces none'",
                shown(&path)
            ),
            Open::File(path, file) if is_kept(&path, file) => format!(
                "'{}' is kept from being changed or read in this run, and could be opened anew through it; \
                 hand its contents over through a pipe",
                shown(&path)
            ),
            Open::Unseen(why) => format!("it cannot be looked at: {why}; leave it out"),
            _ => continue,
        };
        return Err(Refusal::new(format!("cannot pass descriptor {number} on: {why}")));
    }
    Ok(())
}
