//! Which paths a run may use, and the workspace among them.

use crate::cli::Run;
use crate::launch::commands::Commands;
use crate::launch::ground::{self, Found, Ground};
use crate::launch::landlock::canonical;
use crate::launch::mounts::Mounts;
use crate::launch::policy::{PathRights, PathRule};
use crate::launch::siblings;
use crate::launch::within::{is_below, is_same, is_within};
use crate::profile::{NOT_EXPANDED, PathEntry, Profile, Variables};
use crate::program::Program;
use crate::refusal::{NOT_EXECUTABLE, Refusal};
use crate::supervise::decode::shown;
use crate::sys::{descriptor, path, plain};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

const READ: PathRights =
    PathRights { read: true, execute: false, write: false, devices: false, connect: false };
const EXECUTE: PathRights = PathRights { execute: true, ..READ };
const WRITE: PathRights = PathRights { write: true, ..READ };

/// What is executed in a run.
#[derive(Clone, Copy, Default)]
pub struct Executed<'a> {
    /// The command.
    pub program: Option<&'a Program>,
    /// What else may be, where that is restricted.
    pub commands: Option<&'a Commands>,
}

impl Executed<'_> {
    /// The files of the command, by their real paths.
    fn chain(&self, directory: &Path) -> Vec<Found> {
        self.program.map(|program| ground::chain(program, directory)).unwrap_or_default()
    }
}

/// What paths are relative to.
#[derive(Clone, Copy)]
pub struct Directories<'a> {
    /// In a profile.
    pub variables: &'a Variables<'a>,
    /// On the command line.
    pub working: &'a Path,
}

/// Whether a flag or the profile has a rule about exactly this path.
pub fn names(flags: &Run, profile: &Profile, directories: Directories<'_>, path: &Path) -> bool {
    let flags = [&flags.ro, &flags.rox, &flags.rw, &flags.rwx];
    let mut flags =
        flags.iter().flat_map(|list| list.iter()).map(|word| tidy(&directories.working.join(word)));
    let lists = [&profile.paths.read, &profile.paths.execute, &profile.paths.write];
    let mut entries = lists.iter().flat_map(|list| list.iter());
    flags.any(|named| named == path)
        || entries
            .any(|entry| entry.expand_path(directories.variables).is_some_and(|named| is_same(&named, path)))
}

/// What the path rules of a run are made from, besides flags and profile.
pub struct Given<'a> {
    /// What the profile's variables stand for.
    pub variables: &'a Variables<'a>,
    /// What is executed.
    pub executed: Executed<'a>,
    /// What paths are relative to.
    pub directory: &'a Path,
    /// Socket files that rules have to allow.
    pub sockets: &'a [PathBuf],
    /// What is allowed beyond the profile.
    pub more: &'a [PathRule],
    /// Whether mounts hold what is denied.
    pub masks: bool,
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
    /// What is mounted where, if it had to be known.
    pub mounts: Option<Mounts>,
}

/// The path rules of a run.
pub fn rules(
    flags: &Run,
    profile: &Profile,
    given: Given<'_>,
    remarks: &mut Vec<String>,
) -> Result<Paths, Refusal> {
    let Given { variables, executed, directory, sockets, .. } = given;
    let mut rules = given.more.to_vec();
    let paths = &profile.paths;
    for (list, rights) in [(&paths.read, READ), (&paths.execute, EXECUTE), (&paths.write, WRITE)] {
        for mut rule in list.iter().filter_map(|entry| of_profile(entry, rights, variables)) {
            let below = variables.workspace.is_some_and(|workspace| is_below(&rule.path, workspace));
            if below && rule.path.exists() {
                rule.path = inside(&rule.path, variables)?;
            }
            rules.push(rule);
        }
    }
    let named = [
        (&flags.ro, READ),
        (&flags.rox, EXECUTE),
        (&flags.rw, WRITE),
        (&flags.rwx, PathRights { execute: true, ..WRITE }),
    ];
    // With the words of the flags, for what there may be to say about them.
    let mut of_flags = Vec::new();
    for (list, rights) in named {
        for word in list {
            existing(word, directory)?;
            let path = inside(&directory.join(word), variables)?;
            let rights = PathRights { devices: is_device(&path), ..rights };
            of_flags.push((word, PathRule { path, rights, optional: false, follows: false }));
        }
    }
    rules.extend(of_flags.iter().map(|(_, rule)| rule.clone()));
    rules.extend(own_terminals(&rules));
    // The command itself, and what the kernel starts for it.
    let covers = |rules: &[PathRule], path: &Path| {
        rules.iter().any(|rule| rule.rights.execute && is_within(path, &rule.path))
    };
    // By its name alone, the usual case. In the workspace it may be a link.
    let by_name = |rules: &[PathRule], path: &Path| {
        let plain = !path.components().any(|part| part == Component::ParentDir);
        let own = variables.workspace.is_some_and(|workspace| is_within(path, workspace));
        plain && !own && covers(rules, path)
    };
    let links = executed.program.map_or(&[][..], |program| &program.chain);
    let plainly = links.iter().all(|link| by_name(&rules, &link.path));
    let found = (!plainly || executed.commands.is_some())
        .then(|| (Ground::of(variables, &rules), executed.chain(directory)));
    if let Some((ground, files)) = &found {
        for (link, file) in links.iter().zip(files) {
            if !by_name(&rules, &link.path) && !covers(&rules, &file.path) {
                let command = links.first().map_or(&link.path, |command| &command.path);
                let rule = ground.rule_for(command, file, &rules)?;
                rules.extend(rule);
            }
        }
    }
    let connect = PathRights { connect: true, ..PathRights::default() };
    rules.extend(sockets.iter().map(|path| PathRule {
        path: path.clone(),
        rights: connect,
        optional: false,
        follows: false,
    }));
    // What is below the current directory is meant also where that is nobody's workspace, but flags open it.
    let meant = Variables { workspace: variables.workspace.or(Some(directory)), ..*variables };
    let mut denied: Vec<PathBuf> = paths.deny.iter().filter_map(|entry| entry.expand_path(&meant)).collect();
    for path in &flags.deny {
        // What does not exist yet can be kept from being made by a mount only.
        let missing = given.masks && !path::is_there(&directory.join(path));
        if missing {
            if path.as_os_str().as_bytes().contains(&b'*') {
                return Err(Refusal::new(format!(
                    "cannot deny '{}': nothing has that name, and {NOT_EXPANDED}",
                    shown(path)
                )));
            }
            remarks.push(format!("'{}' does not exist, and cannot be made by the command", shown(path)));
        }
        denied.push(if missing { tidy(&directory.join(path)) } else { existing(path, directory)? });
    }
    let mounts = add_other_names(&mut denied)?;
    check_denied(&denied)?;
    check_program(executed.program, &denied)?;
    remarks.extend(of_flags.iter().filter_map(|(word, rule)| ineffective(word, rule, &rules, &denied)));
    if let Some((commands, (ground, files))) = executed.commands.zip(found) {
        commands.only_allowed(&mut rules, &files, &ground, remarks)?;
    }
    let rules = hold_denied(merge(rules), &denied, given.masks, remarks)?;
    let rules = match executed.commands {
        Some(commands) => commands.but_blocked(rules)?,
        None => rules,
    };
    let mut named: Vec<PathBuf> = of_flags.into_iter().map(|(_, rule)| rule.path).collect();
    named.extend(flags.unix.iter().filter_map(|path| directory.join(path).canonicalize().ok()));
    Ok(Paths { rules, denied, named, mounts })
}

/// A file is denied by each of its names, where its file system is mounted at several places: a rule about any of them
/// would open it.
fn add_other_names(denied: &mut Vec<PathBuf>) -> Result<Option<Mounts>, Refusal> {
    if denied.is_empty() {
        return Ok(None);
    }
    let mounts = Mounts::now()?;
    let others = denied.iter().flat_map(|path| mounts.ways_around(&siblings::resolve(path)));
    let others: Vec<PathBuf> = others.collect();
    denied.extend(others);
    Ok(Some(mounts))
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

/// What is denied cannot be executed either.
fn check_program(program: Option<&Program>, denied: &[PathBuf]) -> Result<(), Refusal> {
    let files = program.filter(|_| !denied.is_empty()).into_iter().flat_map(|program| &program.chain);
    for file in files {
        let place = canonical(&file.path);
        if let Some(above) = denied.iter().find(|denied| is_within(&place, denied)) {
            let (file, above) = (shown(&file.path), shown(above));
            let sentence = format!("cannot execute '{file}': '{above}' is denied, and a denial always wins");
            return Err(Refusal::with_code(NOT_EXECUTABLE, sentence));
        }
    }
    Ok(())
}

/// The rules without what is denied: where mounts hold that, also the rest of what is above it stays allowed.
fn hold_denied(
    rules: Vec<PathRule>,
    denied: &[PathBuf],
    masks: bool,
    remarks: &mut Vec<String>,
) -> Result<Vec<PathRule>, Refusal> {
    if masks {
        return Ok(siblings::without_denied(rules, denied));
    }
    let (rules, opened) = siblings::without(rules, denied)?;
    for path in opened {
        remarks.push(format!("'{}' itself cannot be listed, and nothing new be made directly in it, so that what is denied below it stays out", shown(&path)));
    }
    Ok(rules)
}

/// What a flag says about a path, and something else undoes: rights add up, and a denial wins.
fn ineffective(word: &Path, own: &PathRule, rules: &[PathRule], denied: &[PathBuf]) -> Option<String> {
    let path = shown(word);
    if let Some(above) = denied.iter().find(|denied| own.path.starts_with(denied)) {
        let above = shown(above);
        return Some(format!("'{path}' stays denied, for '{above}' is, and a denial always wins"));
    }
    let mut writable = rules.iter().filter(|rule| rule.rights.write && is_within(&own.path, &rule.path));
    let above = shown(&writable.next().filter(|_| !own.rights.write)?.path);
    Some(format!(
        "'{path}' can be changed although a flag names it for reading, for '{above}' can be, and rights add up; '--profile read-only' with --rw for the rest protects it"
    ))
}

/// The socket files that `--unix` and the profile name, as they are found when the command starts.
pub fn sockets(
    flags: &Run,
    profile: &Profile,
    variables: &Variables<'_>,
    directory: &Path,
) -> Result<Vec<PathBuf>, Refusal> {
    let mut sockets = Vec::with_capacity(flags.unix.len() + profile.network.unix.len());
    for path in &flags.unix {
        existing(path, directory)?;
        sockets.push(inside(&directory.join(path), variables)?);
    }
    for entry in profile.network.unix.iter() {
        let cannot = |cause: String| {
            let named = entry.value.to_string();
            let named = shown(Path::new(&named));
            Refusal::new(format!("cannot allow the socket '{named}' ({}): {cause}", *entry.origin))
        };
        let path = entry
            .expand_path(variables)
            .ok_or_else(|| cannot("its variable stands for nothing in this run".into()))?;
        path.metadata().map_err(|e| cannot(plain(&e)))?;
        sockets.push(inside(&path, variables)?);
    }
    Ok(sockets)
}

/// Without those that are denied: who connects in the command's place goes by the names that are allowed.
pub fn but_denied(mut sockets: Vec<PathBuf>, denied: &[PathBuf], remarks: &mut Vec<String>) -> Vec<PathBuf> {
    for above in denied {
        let place = canonical(above);
        for socket in sockets.extract_if(.., |socket| is_within(socket, &place)) {
            let (socket, above) = (shown(&socket), shown(above));
            remarks.push(format!(
                "the socket '{socket}' stays denied, for '{above}' is, and a denial always wins"
            ));
        }
    }
    sockets
}

/// One rule a path.
fn merge(rules: Vec<PathRule>) -> Vec<PathRule> {
    let mut merged: Vec<PathRule> = Vec::with_capacity(rules.len());
    for rule in rules {
        match merged.iter_mut().find(|known| known.path.as_os_str() == rule.path.as_os_str()) {
            Some(known) => {
                known.rights = PathRights::union(known.rights, rule.rights);
                known.optional &= rule.optional;
                known.follows &= rule.follows;
            }
            None => merged.push(rule),
        }
    }
    merged
}

fn of_profile(entry: &PathEntry, rights: PathRights, variables: &Variables<'_>) -> Option<PathRule> {
    let path = entry.expand_path(variables)?;
    let devices = is_device(&path);
    // These paths are real ones. Scratch and cache may lie where another run's command writes.
    let Variables { workspace, tmp, cache, .. } = *variables;
    let follows = ![workspace, tmp, cache].into_iter().flatten().any(|real| is_within(&path, real));
    let rights = PathRights { devices, ..rights };
    Some(PathRule { path, rights, optional: entry.origin.built_in, follows })
}

/// The real path of what is named, which no link in the workspace may lead out of it: an earlier command may have put that
/// there. It is walked once, since a concurrent one may do so now.
pub fn inside(named: &Path, variables: &Variables<'_>) -> Result<PathBuf, Refusal> {
    let way = path::way(named);
    let workspace = variables.workspace.filter(|workspace| !is_within(&way.real, workspace));
    match workspace {
        Some(workspace) if way.links.iter().any(|link| is_within(link, workspace)) => {
            Err(Refusal::new(format!(
                "cannot use '{}' in a path rule: it leads out of the workspace, to '{}'; name that path itself if it is meant",
                shown(named),
                shown(&way.real)
            )))
        }
        _ => Ok(way.real),
    }
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
    let absolute = directory.join(path);
    absolute
        .canonicalize()
        .map_err(|e| Refusal::new(format!("cannot use '{}' in a path rule: {}", shown(path), plain(&e))))
}

/// The rule for a program, by its real path. What is there may not be what it was when it was examined; a file
/// that nobody may execute is no program, and whatever else it may be is not to be read for that.
pub fn executable(program: &Path) -> Option<PathRule> {
    let path = program.to_path_buf();
    path::is_program(&path).then_some(PathRule { path, rights: EXECUTE, optional: false, follows: false })
}

/// Below /dev, but for the directory of shared memory, which holds files.
pub fn is_device(path: &Path) -> bool {
    is_within(path, Path::new("/dev")) && !is_within(path, Path::new("/dev/shm"))
}

/// The terminals that the command is given as standard input, output and error, by their own names: where a
/// profile lets it use its terminal, the other ones in /dev/pts are still none of its business.
fn own_terminals(rules: &[PathRule]) -> Vec<PathRule> {
    let uses_terminal =
        rules.iter().any(|rule| rule.rights.write && is_same(&rule.path, Path::new("/dev/tty")));
    let rights = PathRights { devices: true, ..WRITE };
    let names = (0..3).filter(|number| uses_terminal && descriptor::is_terminal(*number));
    let paths = names.filter_map(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).ok());
    paths.map(|path| PathRule { path, rights, optional: true, follows: true }).collect()
}
