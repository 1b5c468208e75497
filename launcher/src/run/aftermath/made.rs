//! Names that programs outside act on, where nothing was at the start: what has been made there is put aside. Where
//! there are namespaces the reaper does so during the run, and this finds what it has put aside.

use crate::enforce::aside::{is_aside_of, set_aside_below};
use crate::plan::namespaces::placeholder::{Shape, is_free};
use crate::sys::access::{self, Permission};
use crate::sys::beneath::Directory;
use crate::sys::path::is_there;
use crate::sys::within::is_below;
use sbx_client::report::{Finding, FindingKind};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// More are not named: a command can make as many as it likes.
const MOST_NAMED: usize = 8;

/// What was made at these paths since the start. Paths that could not be put aside are appended to `failures`.
pub fn findings(
    paths: &[PathBuf],
    workspace: &Path,
    since: SystemTime,
    failures: &mut Vec<String>,
) -> Vec<Finding> {
    let Ok(root) = Directory::open(Path::new("/")) else { return Vec::new() };
    let mut put_aside = |path: &PathBuf| {
        let made = made_at(path)?;
        match set_aside_below(&root, below_root(made)) {
            Ok(_) => None,
            Err(failed) => Some(format!("cannot put aside '{}': {failed}", crate::text::shown(made))),
        }
    };
    failures.extend(paths.iter().filter_map(&mut put_aside));
    paths.iter().filter_map(|path| finding(&root, path, workspace, since)).collect()
}

/// What stands at a path, or a link above it that the command has made; `None` where nothing or a placeholder is.
fn made_at(path: &Path) -> Option<&Path> {
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    let first = parts.into_iter().find(|part| *part == path || part.is_symlink() || is_closed(part))?;
    (!is_free(first, Shape::Link)).then_some(first)
}

/// Whether nobody can tell what is in a directory.
fn is_closed(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) && !access::allows(path, Permission::EXECUTE)
}

fn below_root(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn finding(root: &Directory, path: &Path, workspace: &Path, since: SystemTime) -> Option<Finding> {
    let parts = path.ancestors().take_while(|part| *part == path || is_below(part, workspace));
    let aside: Vec<PathBuf> = parts.flat_map(|part| asides(root, part, since)).collect();
    let put_aside = aside.iter().map(|aside| aside.as_path().into()).collect();
    let finding = Finding { path: path.into(), kind: FindingKind::FileMade, names: Vec::new(), put_aside };
    (!aside.is_empty() || made_at(path).is_some()).then_some(finding)
}

/// What has been put aside from a path since the start.
fn asides(root: &Directory, path: &Path, since: SystemTime) -> Vec<PathBuf> {
    let Some((above, name)) = path.parent().zip(path.file_name()) else { return Vec::new() };
    let is_new =
        |directory: &Directory, name: &OsString| directory.ages(name).is_ok_and(|ages| ages.changed >= since);
    // Nearly always nothing has changed in the directory.
    let changed = |directory: &Directory| is_new(directory, &OsString::new());
    let Ok(directory) = root.below(below_root(above)) else { return Vec::new() };
    if !changed(&directory) {
        return Vec::new();
    }
    let mut names = directory.names().unwrap_or_default();
    names.retain(|other| is_aside_of(other, name) && is_new(&directory, other));
    names.sort();
    names.truncate(MOST_NAMED);
    names.into_iter().map(|name| above.join(name)).filter(|path| is_there(path)).collect()
}
