//! Patterns for names (glob(7)). A shell that finds no name for one hands it on as it is written, and the program says
//! that there is no such file.

use crate::explain::decode::{Access, PathArgument};
use crate::explain::infer::{DeniedPath, Grants, READS};
use crate::explain::walk::Viewer;
use crate::sys::access::{self, Permission};
use crate::sys::path;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of names that are compared with a pattern: the command chooses both.
const NAMES: usize = 10_000;

/// Maximum number of `*` in a pattern: each multiplies what it takes to compare a name.
const STARS: usize = 4;

/// What a pattern stands for outside: the directory that a shell could not list, or, where it has another one in that
/// place, the first of the files.
pub fn unexpanded(granted: Grants<'_>, argument: &PathArgument, viewer: &Viewer<'_>) -> Option<DeniedPath> {
    let path = viewer.named(argument.dirfd, &argument.path)?;
    let pattern = path.file_name().filter(|name| is_pattern(name))?;
    let directory = path.parent().filter(|_| !path::is_there(&path))?;
    let replaces = |path: &Path| viewer.layout.is_some_and(|layout| layout.replaces(path).is_some());
    let is_closed = !granted(directory, READS) || replaces(directory) && is_missing(directory, viewer);
    let first =
        Some(directory).filter(|_| is_closed || viewer.layout.is_some()).and_then(|at| first(at, pattern))?;
    if is_closed {
        return access::allows(directory, Permission::READ).then(|| (directory.to_path_buf(), Access::LIST));
    }
    replaces(&first).then_some((first, Access::READ))
}

fn is_pattern(name: &OsStr) -> bool {
    let count = |wanted: &[u8]| name.as_bytes().iter().filter(|byte| wanted.contains(byte)).count();
    count(b"*?[") > 0 && count(b"*") <= STARS
}

fn is_missing(directory: &Path, viewer: &Viewer<'_>) -> bool {
    let there = viewer.follow(None, directory.as_os_str().as_bytes(), true);
    there.is_none_or(|entry| entry.meta.is_none())
}

/// The first file outside that a pattern stands for, in the order of a shell.
fn first(directory: &Path, pattern: &OsStr) -> Option<PathBuf> {
    let names =
        std::fs::read_dir(directory).ok()?.take(NAMES).filter_map(|entry| Some(entry.ok()?.file_name()));
    names.filter(|name| path::matches(pattern, name)).min().map(|name| directory.join(name))
}
