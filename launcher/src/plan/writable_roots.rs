//! Files that a command may have planted: those where commands may write, and what is found through such places.
//!
//! The named command, the interpreters of scripts and the entries of a list of commands get rules of their own if
//! no other rule lets them be executed. In the workspace an earlier or a concurrent command decides what a link
//! leads to and which interpreter a script has, even in the middle of a start. What is found through such a link
//! gets a rule only if it is a file of the workspace itself, or can be read anyway. Otherwise a command could have
//! any executable file of the user's opened for reading.

use crate::error::{Outcome, Refusal};
use crate::host::Host;
use crate::plan::namespaces::Workspaces;
use crate::plan::rules::{PathRights, PathRule};
use crate::profile::{Profile, Variables};
use crate::program::Program;
use crate::sys::path;
use crate::sys::within::is_within;
use crate::text::shown;
use std::path::{Path, PathBuf};

/// A file, and the directories in which names were looked up to find it.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Its real path.
    pub path: PathBuf,
    /// In which directories names were looked up: on the way to it, and to the files that name it.
    pub by: Vec<PathBuf>,
}

impl Found {
    /// The file at an absolute path.
    pub fn at(path: &Path) -> Found {
        let way = path::way(path);
        Found { path: way.real, by: way.directories }
    }

    /// A file that this one names in its text; a relative path is meant from `directory`.
    pub fn named(&self, path: &Path, directory: &Path) -> Found {
        let mut named = Found::at(&directory.join(path));
        named.by.extend_from_slice(&self.by);
        named
    }
}

/// The files of a program, as [`Program::files`] lists them.
pub fn chain(program: &Program, directory: &Path) -> Vec<Found> {
    let mut files = program.files();
    let first = files.next().map(|path| Found::at(&directory.join(path)));
    first.map(|first| follow(first, files, directory)).unwrap_or_default()
}

/// A file, and files of which each is named by the one before.
pub fn follow<'p>(first: Found, named: impl Iterator<Item = &'p Path>, directory: &Path) -> Vec<Found> {
    named.fold(vec![first], |mut files, path| {
        let next = files.last().map(|last| last.named(path, directory));
        files.extend(next);
        files
    })
}

/// The first file of a profile, those of its parents among them, of which commands decide what is in it that may write
/// below one of these directories (by their real paths); and that directory. A relative name is meant from `directory`.
pub fn profile_below<'f>(
    profile: &'f Profile,
    directory: &Path,
    roots: &[&'f Path],
) -> Option<(&'f Path, &'f Path)> {
    profile.files.iter().find_map(|file| {
        let way = path::way(&directory.join(file));
        let root = roots.iter().find(|root| way.passes(root) || is_within(&way.real, root))?;
        Some((file.as_path(), *root))
    })
}

/// The first file of a profile, those of its parents among them, that commands of other runs may have written.
pub fn profile_reached<'f>(profile: &'f Profile, directory: &Path, host: &Host) -> Option<&'f Path> {
    let others = Workspaces::of(host);
    profile.files.iter().map(PathBuf::as_path).find(|file| others.reach(&directory.join(file)))
}

/// Where commands may write, by real paths.
pub struct WritableRoots(Vec<PathBuf>);

impl WritableRoots {
    /// The workspace also where this run may not write there: others may.
    pub fn of(variables: &Variables<'_>, rules: &[PathRule]) -> WritableRoots {
        let Variables { workspace, tmp, cache, .. } = *variables;
        let own = [workspace, tmp, cache].into_iter().flatten().map(Path::to_path_buf);
        let writable = rules.iter().filter(|rule| rule.rights.write && !rule.rights.devices);
        WritableRoots(own.chain(writable.map(|rule| rule.place().into_owned())).collect())
    }

    /// Each of them.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }

    fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|place| is_within(path, place))
    }

    /// Whether a file may get a rule of its own.
    pub fn lets(&self, file: &Found, rules: &[PathRule]) -> bool {
        let readable = || rules.iter().any(|rule| rule.rights.read && is_within(&file.path, &rule.place()));
        !file.by.iter().any(|directory| self.has(directory)) || self.has(&file.path) || readable()
    }

    /// The rule of its own for a file that the command needs; none where it is no program. Refused where
    /// commands may have led to it on their own.
    pub fn rule_for(
        &self,
        command: &Path,
        file: &Found,
        rules: &[PathRule],
    ) -> Result<Option<PathRule>, Refusal> {
        if self.lets(file, rules) {
            return Ok(executable(&file.path));
        }
        let (name, place) = (shown(command), shown(&file.path));
        let sentence = format!(
            "cannot execute '{name}': a link or a script where commands may write leads to '{place}', which \
             no rule allows; add --rox '{place}' if it is meant"
        );
        Err(Refusal::with(Outcome::NotExecutable, sentence))
    }
}

/// The rule for a program, by its real path. What is there may not be what it was when it was examined; a file
/// that nobody may execute is no program, and whatever else it may be is not to be read for that.
pub fn executable(program: &Path) -> Option<PathRule> {
    let path = program.to_path_buf();
    path::is_program(&path).then_some(PathRule::new(path, PathRights::EXECUTE))
}
