//! What commands have had a hand in: where they may write, and what is found by way of it.
//!
//! The command that is named, the interpreters of scripts and what a list of commands names get rules of their own where no
//! other rule lets them be executed. In the workspace an earlier or a concurrent command decides what a link leads to
//! and which interpreter a script has, also in the middle of a start. What is found that way is executed where it is a
//! file of the workspace itself, or can be read anyway; else any file of the user's that somebody may execute could be
//! had for reading.

use crate::launch::landlock::canonical;
use crate::launch::policy::PathRule;
use crate::launch::within::is_within;
use crate::profile::Variables;
use crate::program::{Kind, Program};
use crate::sys::path;
use std::path::{Path, PathBuf};

/// A file, and what there was to be asked for it.
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

/// A program with what the kernel executes for it: interpreters, and the loader, in the order in which they name each
/// other.
pub fn chain(program: &Program, directory: &Path) -> Vec<Found> {
    let mut files: Vec<Found> = Vec::with_capacity(program.chain.len() + 1);
    let loader = program.last().and_then(|link| match &link.kind {
        Kind::Dynamic { interpreter } | Kind::ForeignLoader { interpreter } => Some(interpreter.as_path()),
        _ => None,
    });
    for path in program.chain.iter().map(|link| link.path.as_path()).chain(loader) {
        let next = match files.last() {
            Some(last) => last.named(path, directory),
            None => Found::at(&directory.join(path)),
        };
        files.push(next);
    }
    files
}

/// Where commands may write, by real paths.
pub struct Ground(Vec<PathBuf>);

impl Ground {
    /// The workspace also where this run may not write there: others may.
    pub fn of(variables: &Variables<'_>, rules: &[PathRule]) -> Ground {
        let Variables { workspace, tmp, cache, .. } = *variables;
        let own = [workspace, tmp, cache].into_iter().flatten().map(Path::to_path_buf);
        let writable = rules.iter().filter(|rule| rule.rights.write && !rule.rights.devices);
        Ground(own.chain(writable.map(|rule| canonical(&rule.path))).collect())
    }

    fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|place| is_within(path, place))
    }

    /// Whether a file may get a rule of its own.
    pub fn lets(&self, file: &Found, rules: &[PathRule]) -> bool {
        let readable =
            || rules.iter().any(|rule| rule.rights.read && is_within(&file.path, &canonical(&rule.path)));
        !file.by.iter().any(|directory| self.has(directory)) || self.has(&file.path) || readable()
    }
}
