//! Which programs may be executed: `commands` of a profile, `--allow-command` and `--block-command`.
//!
//! Names are looked up once, before the start, and become files. Landlock's right to execute then holds for the
//! allowed files only, or for everything beside the blocked ones. It is about the file, so all its names count.

mod names;

use crate::error::{Outcome, Refusal};
use crate::host::landlock::Version;
use crate::plan::rules::{PathRights, PathRule};
use crate::plan::writable_roots::executable;
use crate::plan::writable_roots::{self, Found, WritableRoots};
use crate::plan::{Inputs, deny_expansion};
use crate::profile::{self, Given, Profile, Text, Variables};
use crate::program::{self, Program};
use crate::request::Request;
use crate::sys::number::FileNumber;
use crate::sys::path::canonical;
use crate::sys::within::is_below;
use crate::text::shown;
use names::Lookup;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file, or a directory with all that is below it.
#[derive(Clone, Debug)]
pub struct Place {
    /// What it is.
    pub file: Found,
    /// The rule that names it.
    pub rule: String,
    directory: bool,
    number: FileNumber,
}

/// The programs of one run, as files.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Nothing else may be executed, if there is a list.
    pub allow: Option<Vec<Place>>,
    /// These may not.
    pub block: Vec<Place>,
}

/// Why a program may not be executed.
#[derive(Clone, Copy, Debug)]
pub enum Obstacle<'a> {
    /// It is blocked, by this rule.
    Blocked(&'a Place),
    /// There is a list, and it is not in it.
    NotAllowed,
}

/// An entry of a list, with the words for its rule.
struct Entry<'a> {
    text: &'a OsStr,
    rule: String,
    flag: bool,
}

/// Whether anything is said about commands.
pub fn restricts(request: &Request, profile: &Profile) -> bool {
    !(request.allow_command.is_empty()
        && request.block_command.is_empty()
        && profile.commands.allow.is_empty()
        && profile.commands.block.is_empty())
}

/// The files that the lists stand for; `None` where nothing is said. `environment` is the command's.
pub fn resolve(
    inputs: &Inputs<'_>,
    variables: &Variables<'_>,
    environment: &[OsString],
    landlock: Version,
    warnings: &mut Vec<String>,
) -> Result<Option<Commands>, Refusal> {
    let Inputs { request, profile, host, directory, .. } = inputs;
    if !restricts(request, profile) {
        return Ok(None);
    }
    if landlock < Version::FILES || profile.is_unrestricted() {
        return Err(Refusal::new(format!(
            "cannot restrict which commands are executed: {}; take the rule out",
            match profile.is_unrestricted() {
                true => "the profile confines nothing",
                false => "that needs Landlock (Linux 5.13), which is not to be had here",
            }
        )));
    }
    let lookup = Lookup::new(variables, directory, environment, host);
    let allow = entries(&profile.commands.allow, "--allow-command", &request.allow_command);
    let block = entries(&profile.commands.block, "--block-command", &request.block_command);
    for entry in allow.iter().chain(&block) {
        let text = entry.text.as_bytes();
        if text.is_empty() || text.contains(&b'?') {
            // It would fit nothing, and so block nothing.
            let why = if text.is_empty() { "it is empty" } else { profile::ONLY_STAR };
            return Err(Refusal::new(format!("cannot read '{}': {why}", entry.rule)));
        }
    }
    let mut commands = Commands::default();
    for entry in &block {
        let found = lookup.every(entry)?;
        // A profile's list is for many machines. What is typed is meant for this one.
        if found.is_empty() && entry.flag {
            warnings.push(format!("not found, and so it blocks nothing: {}", entry.rule));
        }
        commands.block.extend(found);
    }
    // Anything, as if there were no list.
    if !allow.is_empty() && !allow.iter().any(|entry| entry.text == "*") {
        let (mut places, mut missing) = (Vec::new(), Vec::new());
        for entry in &allow {
            let found = lookup.first(entry)?;
            if found.is_empty() {
                missing.push(format!("'{}' ({})", shown(Path::new(entry.text)), entry.rule));
            }
            places.extend(found);
        }
        if !missing.is_empty() {
            warnings.push(format!("not found, and so not allowed: {}", missing.join(", ")));
        }
        let needed: Vec<Place> = places.iter().flat_map(|place| needs_of(place, directory)).collect();
        commands.allow = Some(places.into_iter().chain(needed).collect());
    }
    Ok(Some(commands))
}

fn entries<'a>(listed: &'a [Given<Text>], flag: &'static str, named: &'a [OsString]) -> Vec<Entry<'a>> {
    let listed = listed.iter().map(|given| Entry {
        text: OsStr::new(&*given.value),
        rule: given.origin.to_string(),
        flag: false,
    });
    let named = named.iter().map(|text| Entry {
        text,
        rule: format!("{flag} {}", shown(Path::new(text))),
        flag: true,
    });
    listed.chain(named).collect()
}

fn needs_of(place: &Place, directory: &Path) -> Vec<Place> {
    // What is no program cannot be executed, and needs nothing.
    let Some(program) = program::examine_from(&place.file.path, directory).ok().filter(|_| !place.directory)
    else {
        return Vec::new();
    };
    let rule = || format!("{}, which needs it", place.rule);
    let files = writable_roots::follow(place.file.clone(), program.files().skip(1), directory);
    files.into_iter().skip(1).filter_map(|file| Place::of_found(file, rule()).ok()).collect()
}

impl Place {
    /// What is at an absolute path.
    fn of(path: &Path, rule: String) -> std::io::Result<Place> {
        // Most names are looked for in more directories than have them.
        path.metadata()?;
        Place::of_found(Found::at(path), rule)
    }

    fn of_found(file: Found, rule: String) -> std::io::Result<Place> {
        let meta = file.path.metadata()?;
        Ok(Place { file, rule, directory: meta.is_dir(), number: FileNumber::of(&meta) })
    }

    /// Whether a file is it, or below it.
    fn covers(&self, path: &Path, number: Option<FileNumber>) -> bool {
        number == Some(self.number)
            || path == self.file.path
            || (self.directory && is_below(path, &self.file.path))
    }
}

impl Commands {
    /// What keeps a file, by its real path, from being executed.
    pub fn obstacle(&self, path: &Path) -> Option<Obstacle<'_>> {
        let number = path.metadata().ok().map(|meta| FileNumber::of(&meta));
        if let Some(place) = self.block.iter().find(|place| place.covers(path, number)) {
            return Some(Obstacle::Blocked(place));
        }
        let allow = self.allow.as_ref()?;
        let allowed = allow.iter().any(|place| place.covers(path, number));
        (!allowed).then_some(Obstacle::NotAllowed)
    }

    /// Refuses a command that may not be executed. `own` is this very program: a sandbox in a sandbox gains
    /// nothing, and needs no permission.
    pub fn check(&self, program: &Program, own: bool) -> Result<(), Refusal> {
        for path in program.files() {
            let real = canonical(path);
            let what = match path == program.path {
                true => String::new(),
                false => format!("it needs '{}', and ", shown(&real)),
            };
            let why = match self.obstacle(&real) {
                Some(Obstacle::Blocked(place)) => {
                    format!("{what}{} blocks '{}'", place.rule, shown(&place.file.path))
                }
                Some(Obstacle::NotAllowed) if !own && path == program.path => format!(
                    "it is not among the commands that are allowed; allow it with --allow-command {}",
                    shown(path)
                ),
                _ => continue,
            };
            let name = shown(&program.path);
            return Err(Refusal::with(Outcome::ExecutionRefused, format!("refused to run '{name}': {why}")));
        }
        Ok(())
    }

    /// Path rules with the right to execute for the allowed files alone, if there is a list. `own` are the command's.
    pub fn only_allowed(
        &self,
        rules: &mut Vec<PathRule>,
        own: &[Found],
        roots: &WritableRoots,
        warnings: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        let Some(allow) = &self.allow else { return Ok(()) };
        rules.iter_mut().for_each(|rule| rule.rights.execute = false);
        let mut more = Vec::new();
        for place in allow {
            // To execute a file is to read it. One that is no program, or that commands have led to on their
            // own, is not to be read.
            let file = &place.file;
            let allowed = roots.lets(file, rules);
            if allowed && place.directory {
                let path = file.path.clone();
                more.push(PathRule {
                    optional: true,
                    built_in: true,
                    ..PathRule::new(path, PathRights::EXECUTE)
                });
            } else if allowed {
                more.extend(executable(&file.path));
            } else {
                warnings.push(format!(
                    "'{}' ({}) is not allowed: a link or a script where commands may write leads to it, and \
                     no rule lets it be read",
                    shown(&file.path),
                    place.rule
                ));
            }
        }
        for file in own {
            let command = own.first().map_or(&file.path, |command| &command.path);
            more.extend(roots.rule_for(command, file, rules)?);
        }
        rules.extend(more);
        Ok(())
    }

    /// Path rules without the right to execute the blocked files.
    pub fn but_blocked(&self, rules: Vec<PathRule>) -> Result<Vec<PathRule>, Refusal> {
        if self.block.is_empty() {
            return Ok(rules);
        }
        let rules = uncovered(rules);
        let mut blocked: Vec<PathBuf> = self.block.iter().map(|place| place.file.path.clone()).collect();
        blocked.extend(names::other_names(&self.block, &rules)?);
        deny_expansion::without_executing(rules, &blocked)
    }
}

/// By real paths, and without those that another one includes: `/bin` beside `/usr`.
fn uncovered(rules: Vec<PathRule>) -> Vec<PathRule> {
    let mut real: Vec<PathRule> = rules.into_iter().map(deny_expansion::real).collect();
    real.sort_by(|a, b| a.path.cmp(&b.path));
    let mut kept: Vec<PathRule> = Vec::with_capacity(real.len());
    for rule in real {
        let includes = |other: &PathRule| {
            rule.path.starts_with(&other.path) && rule.rights.without(other.rights) == PathRights::default()
        };
        if !kept.iter().any(includes) {
            kept.push(rule);
        }
    }
    kept
}
