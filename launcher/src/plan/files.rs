//! Which paths a run may use, and the workspace among them.

use crate::error::Refusal;
use crate::host::Host;
use crate::plan::executed::{Executed, check_program, of_command};
use crate::plan::home::{PrivateHome, is_home_below};
use crate::plan::listings::Listings;
use crate::plan::namespaces::record::Workspaces;
use crate::plan::namespaces::{Roots, TMP};
use crate::plan::rules::{PathRights, PathRule};
use crate::plan::{Inputs, deny_expansion, flag_warnings, settings_copy};
use crate::profile::{self, NOT_EXPANDED, Origin, PathEntry, Profile, Variables};
use crate::request::Request;
use crate::sys::path;
use crate::sys::plain;
use crate::sys::within::{is_below, is_same, is_within};
use crate::text::shown;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// What paths are relative to.
#[derive(Clone, Copy)]
pub struct Directories<'a> {
    /// In a profile.
    pub variables: &'a Variables<'a>,
    /// On the command line.
    pub working: &'a Path,
}

/// Whether a flag or the profile has a rule about exactly this path.
pub fn names(request: &Request, profile: &Profile, directories: Directories<'_>, path: &Path) -> bool {
    let flags = [&request.ro, &request.rox, &request.rw, &request.rwx];
    let mut words = flags.into_iter().flatten();
    let lists = [&profile.paths.read, &profile.paths.execute, &profile.paths.write];
    let mut entries = lists.into_iter().flat_map(|list| list.iter());
    words.any(|word| tidy(&directories.working.join(word)) == path)
        || entries
            .any(|entry| entry.expand_path(directories.variables).is_some_and(|named| is_same(&named, path)))
}

/// What the path rules of a run are made from, besides flags and profile.
pub struct Given<'a> {
    /// What the profile's variables stand for.
    pub variables: &'a Variables<'a>,
    /// What is executed.
    pub executed: Executed<'a>,
    /// Socket files that rules have to allow.
    pub sockets: &'a [PathBuf],
    /// What is allowed beyond the profile.
    pub more: &'a [PathRule],
    /// Whether mounts hold what is denied.
    pub masks: bool,
    /// A home of the run's own.
    pub home: Option<&'a PrivateHome>,
    /// The scratch directory, where it takes the place of /tmp.
    pub scratch_inside: Option<&'a Path>,
    /// What is not there.
    pub listings: &'a Listings,
}

/// The path rules of a run.
#[derive(Default)]
pub struct Paths {
    /// What is allowed.
    pub rules: Vec<PathRule>,
    /// What is denied nevertheless.
    pub denied: Vec<PathBuf>,
    /// What flags allow by name.
    pub named: Vec<PathBuf>,
    /// Symbolic links by which built-in rules, and PATH, name what is in the home.
    pub links: Vec<PathBuf>,
}

/// The path rules of a run.
pub fn rules(inputs: &Inputs<'_>, given: Given<'_>, warnings: &mut Vec<String>) -> Result<Paths, Refusal> {
    let Given { variables, executed, .. } = given;
    let mut rules = given.more.to_vec();
    let others = Workspaces::of(inputs.host);
    rules.extend(of_profile(&inputs.profile.paths, variables, &others)?);
    let mut links = Vec::new();
    match given.home {
        Some(home) => links = home.adapt(inputs, variables, given.listings, &mut rules),
        None => rules = but_home(rules, inputs.host, given.masks, warnings)?,
    }
    let mut rules = by_real_paths(rules, &others, &given, (&mut links, warnings));
    let of_flags = of_flags(inputs, variables, &others)?;
    rules.extend(of_flags.iter().map(|(_, rule)| rule.clone()));
    if let Some((home, program)) = given.home.zip(executed.program) {
        home.admit(&program.chain, inputs, variables, &mut rules);
    }
    rules.extend(own_terminals(&rules, inputs.host));
    let reached = of_command(executed, &inputs.directory, variables, &mut rules)?;
    let connect = PathRights { connect: true, ..PathRights::default() };
    rules.extend(given.sockets.iter().map(|path| PathRule::new(path.clone(), connect)));
    let denied = denied(inputs, &given, &rules, warnings)?;
    check_denied(&denied)?;
    check_program(executed.links(), &denied)?;
    warnings.extend(
        of_flags.iter().filter_map(|(word, rule)| flag_warnings::ineffective(word, rule, &rules, &denied)),
    );
    warnings.extend(
        of_flags
            .iter()
            .filter_map(|(word, rule)| flag_warnings::opens_home(word, rule, inputs.host, &denied)),
    );
    if let Some((commands, (roots, files))) = executed.commands.zip(reached) {
        commands.only_allowed(&mut rules, &files, &roots, warnings)?;
    }
    // Wherever what takes the place of /tmp is outside: inside it is /tmp.
    let is_tmp_denied = || denied.iter().any(|denied| is_within(Path::new(TMP), denied));
    if let Some(scratch) = given.scratch_inside.filter(|_| is_tmp_denied()) {
        rules.retain(|rule| !is_within(&rule.path, scratch));
    }
    let rules = hold_denied(PathRule::merged(rules), &denied, given.masks, warnings)?;
    let rules = match executed.commands {
        Some(commands) => commands.but_blocked(rules)?,
        None => rules,
    };
    let mut named: Vec<PathBuf> = of_flags.into_iter().map(|(_, rule)| rule.path).collect();
    let sockets = inputs.request.unix.iter();
    named.extend(sockets.filter_map(|path| inputs.directory.join(path).canonicalize().ok()));
    Ok(Paths { rules, denied, named, links })
}

/// The rules of a profile. What it names inside the workspace may be a link of a command: it must not lead out.
fn of_profile(
    paths: &profile::Paths,
    variables: &Variables<'_>,
    others: &Workspaces<'_>,
) -> Result<Vec<PathRule>, Refusal> {
    let lists = [
        (&paths.read, PathRights::READ),
        (&paths.execute, PathRights::EXECUTE),
        (&paths.write, PathRights::WRITE),
    ];
    let mut rules = Vec::new();
    for (list, rights) in lists {
        for entry in list.iter() {
            let Some(mut rule) = of_entry(entry, rights, variables) else { continue };
            there(&rule, &entry.origin)?;
            if entry.origin.unless_credentials && settings_copy::may_hold_credentials(&rule.path) {
                continue;
            }
            let below = variables.workspace.is_some_and(|workspace| is_below(&rule.path, workspace));
            if (below || !rule.built_in) && rule.path.exists() {
                let real = inside(&rule.path, variables, others)?;
                // Elsewhere the path keeps the name by which it is there inside.
                rule.path = if below { real } else { rule.path };
            }
            rules.push(rule);
        }
    }
    Ok(rules)
}

/// The built-in rules about the home by real paths, which are not looked up again. Where commands of other runs write,
/// one of them may have put the link there that leads out of it: that opens nothing.
fn by_real_paths(
    rules: Vec<PathRule>,
    others: &Workspaces<'_>,
    given: &Given<'_>,
    (links, warnings): (&mut Vec<PathBuf>, &mut Vec<String>),
) -> Vec<PathRule> {
    let Some(home) = given.variables.home else { return rules };
    let by_real_path = |rule: PathRule| {
        if !rule.built_in || !is_below(&rule.path, home) || given.listings.is_straight(&rule.path) {
            return Some(rule);
        }
        let way = path::way(&rule.path);
        if others.lead_out(&way.links, &way.real) {
            warnings.push(format!(
                "warning: '{}' is not opened: a link in a directory where commands of other runs write leads from \
                 there to '{}'; if that is meant, name it with --ro or --rox",
                shown(&rule.path),
                shown(&way.real)
            ));
            return None;
        }
        links.extend(way.links);
        Some(PathRule { path: way.real, follows: false, ..rule })
    };
    rules.into_iter().filter_map(by_real_path).collect()
}

/// The rules without the user's home directory, where a built-in one is about a directory of the system that has it:
/// what is beside it is allowed. Where there are mounts, a directory that may be written, /dev/shm, is the run's own.
fn but_home(
    rules: Vec<PathRule>,
    host: &Host,
    masks: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<PathRule>, Refusal> {
    let Some(home) = host.real_home() else { return Ok(rules) };
    let is_own = |rule: &PathRule| masks && rule.rights.changes_files();
    let has_it = |rule: &PathRule| rule.built_in && !is_own(rule) && is_home_below(home, &rule.path);
    let (above, mut others): (Vec<_>, Vec<_>) = rules.into_iter().partition(has_it);
    let (beside, opened) = deny_expansion::without(above, &[home.to_path_buf()])?;
    warnings.extend(not_listed(&opened, "your home directory"));
    others.extend(beside);
    Ok(others)
}

/// That these directories are allowed by what is in them, all but `what`.
fn not_listed(opened: &[PathBuf], what: &str) -> Option<String> {
    let names: Vec<String> = opened.iter().map(|path| format!("'{}'", shown(path))).collect();
    let (names, them) = match names.as_slice() {
        [] => return None,
        [name] => (format!("{name} itself"), "it"),
        names => (names.join(", "), "them"),
    };
    Some(format!(
        "{names} cannot be listed, and nothing new can be made directly in {them}: {what} below {them} stays closed"
    ))
}

/// Refuses a rule of a user's profile about what is not there: the entry tells which file to mend.
fn there(rule: &PathRule, origin: &Origin) -> Result<(), Refusal> {
    let failed = if rule.optional { None } else { rule.path.metadata().err() };
    let missing = failed.filter(path::says_missing);
    missing.map_or(Ok(()), |error| {
        Err(Refusal::new(format!("cannot allow '{}' ({origin}): {}", shown(&rule.path), plain(&error))))
    })
}

/// The rules of `--ro`, `--rox`, `--rw` and `--rwx`, with the words of the flags for warnings about them.
fn of_flags<'a>(
    inputs: &Inputs<'a>,
    variables: &Variables<'_>,
    others: &Workspaces<'_>,
) -> Result<Vec<(&'a PathBuf, PathRule)>, Refusal> {
    let Inputs { request, directory, .. } = inputs;
    let lists = [
        (&request.ro, PathRights::READ),
        (&request.rox, PathRights::EXECUTE),
        (&request.rw, PathRights::WRITE),
        (&request.rwx, PathRights { execute: true, ..PathRights::WRITE }),
    ];
    let mut rules = Vec::new();
    for (list, rights) in lists {
        for word in list {
            existing(word, directory)?;
            let path = inside(&directory.join(word), variables, others)?;
            let rights = PathRights { devices: is_device(&path), ..rights };
            rules.push((word, PathRule::new(path, rights)));
        }
    }
    Ok(rules)
}

/// What the profile and `--deny` deny, by each of its names.
fn denied(
    inputs: &Inputs<'_>,
    given: &Given<'_>,
    rules: &[PathRule],
    warnings: &mut Vec<String>,
) -> Result<Vec<PathBuf>, Refusal> {
    let Inputs { request, profile, host, directory, .. } = inputs;
    let variables = given.variables;
    // What is below the current directory is meant also where that is nobody's workspace, but flags open it.
    let meant = Variables { workspace: variables.workspace.or(Some(directory)), ..*variables };
    let mut denied: Vec<PathBuf> =
        profile.paths.deny.iter().filter_map(|entry| entry.expand_path(&meant)).collect();
    for path in &request.deny {
        // What does not exist yet can be kept from being made by a mount only.
        let missing = given.masks && !path::is_there(&directory.join(path));
        if missing {
            if path.as_os_str().as_bytes().contains(&b'*') {
                return Err(Refusal::new(format!(
                    "cannot deny '{}': nothing has that name, and {NOT_EXPANDED}",
                    shown(path)
                )));
            }
            no_link_on_the_way(path, directory, rules)?;
            warnings.push(format!("'{}' does not exist, and cannot be made by the command", shown(path)));
        }
        denied.push(if missing { tidy(&directory.join(path)) } else { existing(path, directory)? });
        // Links on the way are denied by their own names too: another file could take their place.
        let links = path::way(&directory.join(path)).links;
        let (to_directories, to_files): (Vec<_>, Vec<_>) = links.into_iter().partition(|link| link.is_dir());
        denied.extend(to_files.into_iter().filter(|_| given.masks));
        let replaceable = to_directories.iter().find(|link| Roots::of(rules).above(link).is_some());
        warnings.extend(replaceable.map(|link| {
            format!(
                "warning: '{}' is denied where it is now: '{}' is a symbolic link, which the command could replace",
                shown(path),
                shown(link)
            )
        }));
    }
    add_other_names(&mut denied, host)?;
    Ok(denied)
}

/// Refuses to deny a missing path that is reached through a link which the command could replace: it would make the
/// path where the new link leads.
fn no_link_on_the_way(path: &Path, directory: &Path, rules: &[PathRule]) -> Result<(), Refusal> {
    let (way, roots) = (path::way(&directory.join(path)), Roots::of(rules));
    match way.links.iter().find(|link| roots.above(link).is_some()) {
        None => Ok(()),
        Some(link) => Err(Refusal::new(format!(
            "cannot deny '{}': nothing has that name, and '{}' is a symbolic link, which the command could replace; \
             deny '{}', where it leads",
            shown(path),
            shown(link),
            shown(&way.real)
        ))),
    }
}

/// A file is denied by each of its names, where its file system is mounted at several places: a rule about any of them
/// would open it.
fn add_other_names(denied: &mut Vec<PathBuf>, host: &Host) -> Result<(), Refusal> {
    if denied.is_empty() {
        return Ok(());
    }
    let mounts = host.mounts()?;
    let others = denied.iter().flat_map(|path| mounts.ways_around(&deny_expansion::resolve(path)));
    let others: Vec<PathBuf> = others.collect();
    denied.extend(others);
    Ok(())
}

/// A process has another number in a /proc of the run's own, where that of the first one belongs to `sbx`.
fn check_denied(denied: &[PathBuf]) -> Result<(), Refusal> {
    match denied.iter().find(|path| path::is_of_process(path)) {
        Some(path) => Err(Refusal::new(format!(
            "cannot deny '{}': which process that is differs inside the run; deny '/proc', or nothing of it",
            shown(path)
        ))),
        None => Ok(()),
    }
}

/// The rules without what is denied: where mounts hold that, also the rest of what is above it stays allowed.
fn hold_denied(
    rules: Vec<PathRule>,
    denied: &[PathBuf],
    masks: bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<PathRule>, Refusal> {
    if masks {
        return Ok(deny_expansion::without_denied(rules, denied));
    }
    let (rules, opened) = deny_expansion::without(rules, denied)?;
    warnings.extend(not_listed(&opened, "what is denied"));
    Ok(rules)
}

fn of_entry(entry: &PathEntry, rights: PathRights, variables: &Variables<'_>) -> Option<PathRule> {
    let path = entry.expand_path(variables)?;
    let devices = is_device(&path);
    // These paths are real ones. Scratch and cache may lie where another run's command writes.
    let Variables { workspace, tmp, cache, .. } = *variables;
    let follows = ![workspace, tmp, cache].into_iter().flatten().any(|real| is_within(&path, real));
    let rights = PathRights { devices, ..rights };
    Some(PathRule { path, rights, optional: entry.origin.optional, built_in: entry.origin.built_in, follows })
}

/// The real path of what is named, which no link in the workspace may lead out of it, nor one where commands of other
/// runs write: an earlier command may have put that there. It is walked once, since a concurrent one may do so now.
pub fn inside(named: &Path, variables: &Variables<'_>, others: &Workspaces<'_>) -> Result<PathBuf, Refusal> {
    let way = path::way(named);
    let place = if variables.workspace.is_some_and(|workspace| way.leads_out_of(workspace)) {
        "the workspace"
    } else if others.lead_out(&way.links, &way.real) {
        "a directory where commands of other runs write"
    } else {
        return Ok(way.real);
    };
    Err(Refusal::new(format!(
        "cannot use '{}' in a path rule: it leads out of {place}, to '{}'; name that path itself if it is meant",
        shown(named),
        shown(&way.real)
    )))
}

/// Without `.` and `..`, by the names alone: `../x` is not inside.
pub fn tidy(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut tidy, component| {
        match component {
            Component::ParentDir => drop(tidy.pop()),
            Component::CurDir => {}
            other => tidy.push(other),
        }
        tidy
    })
}

/// A path that the user named has to be there.
pub fn existing(path: &Path, directory: &Path) -> Result<PathBuf, Refusal> {
    let cannot = |error: io::Error| {
        let is_for_shell = path.starts_with("~");
        let hint = if is_for_shell { "; no shell has read the '~': write \"$HOME\" for it" } else { "" };
        Refusal::new(format!("cannot use '{}' in a path rule: {}{hint}", shown(path), plain(&error)))
    };
    directory.join(path).canonicalize().map_err(cannot)
}

/// Below /dev, but for the directory of shared memory, which holds files.
pub fn is_device(path: &Path) -> bool {
    is_within(path, Path::new("/dev")) && !is_within(path, Path::new("/dev/shm"))
}

/// The terminals that the command is given as standard input, output and error, by their own names: where a
/// profile lets it use its terminal, the other ones in /dev/pts are still none of its business.
fn own_terminals(rules: &[PathRule], host: &Host) -> Vec<PathRule> {
    let uses_terminal =
        rules.iter().any(|rule| rule.rights.write && is_same(&rule.path, Path::new("/dev/tty")));
    if !uses_terminal {
        return Vec::new();
    }
    let rights = PathRights { devices: true, ..PathRights::WRITE };
    let rule = |path: &PathBuf| PathRule {
        path: path.clone(),
        rights,
        optional: true,
        built_in: true,
        follows: true,
    };
    host.terminals.get().iter().map(rule).collect()
}
