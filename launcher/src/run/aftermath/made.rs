//! Names that programs outside act on, where nothing was at the start: what has been made there is put aside. Where
//! there are namespaces the reaper does so during the run, and this finds what it has put aside.

use crate::enforce::aside::{is_aside, is_aside_of, set_aside_below};
use crate::plan::namespaces::placeholder::{Shape, Watched, is_free};
use crate::sys::access::{self, Permission};
use crate::sys::beneath::{Directory, from_root};
use crate::text::shown;
use sbx_client::report::{Finding, FindingKind};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// More are not named: a command can make as many as it likes.
const MOST_NAMED: usize = 8;
const MOST_LISTED: usize = 4096;

/// What was made at these paths since the start. Paths that could not be put aside are appended to `failures`.
pub fn findings(missing: &[Watched], since: SystemTime, failures: &mut Vec<String>) -> Vec<Finding> {
    let Ok(root) = Directory::open(Path::new("/")) else { return Vec::new() };
    for made in missing.iter().filter_map(made_at) {
        if let Err(failed) = set_aside_below(&root, from_root(&made)) {
            failures.push(format!("cannot put aside '{}': {failed}", shown(&made)));
        }
    }
    let mut asides = Asides { root, since, listed: BTreeMap::new() };
    missing.iter().filter_map(|watched| asides.finding(watched)).collect()
}

/// What stands at a path, or a link or closed directory above it that was not there at the start; `None` where nothing
/// or a placeholder is.
fn made_at(watched: &Watched) -> Option<PathBuf> {
    for place in watched.places() {
        let path = watched.above.join(place);
        let meta = path.symlink_metadata().ok()?;
        if place == watched.below || meta.is_symlink() || is_closed(&path, &meta) {
            return (!is_free(&path, Shape::Link)).then_some(path);
        }
        if !meta.is_dir() {
            return None;
        }
    }
    None
}

/// Whether nobody can tell what is in a directory.
fn is_closed(path: &Path, meta: &Metadata) -> bool {
    meta.is_dir() && !access::allows(path, Permission::EXECUTE)
}

/// What has been put aside since the start. Each directory is listed once, and only if it has changed.
struct Asides {
    root: Directory,
    since: SystemTime,
    listed: BTreeMap<PathBuf, Vec<OsString>>,
}

impl Asides {
    fn finding(&mut self, watched: &Watched) -> Option<Finding> {
        let aside: Vec<PathBuf> =
            watched.places().flat_map(|place| self.of(&watched.above.join(place))).collect();
        let put_aside = aside.iter().map(|aside| aside.as_path().into()).collect();
        let path = watched.path().as_path().into();
        let finding = Finding { path, kind: FindingKind::FileMade, names: Vec::new(), put_aside };
        (!aside.is_empty() || made_at(watched).is_some()).then_some(finding)
    }

    /// From one path.
    fn of(&mut self, path: &Path) -> Vec<PathBuf> {
        let Some((above, name)) = path.parent().zip(path.file_name()) else { return Vec::new() };
        let Asides { root, since, listed } = self;
        let all = listed.entry(above.to_path_buf()).or_insert_with(|| new_asides(root, above, *since));
        let own = all.iter().filter(|other| is_aside_of(other, name)).take(MOST_NAMED);
        own.map(|name| above.join(name)).collect()
    }
}

/// The names of what has been put aside in a directory.
fn new_asides(root: &Directory, path: &Path, since: SystemTime) -> Vec<OsString> {
    let Ok(directory) = root.below(from_root(path)) else { return Vec::new() };
    // Nearly always nothing has changed in it.
    if !directory.has_changed(OsStr::new(""), since) {
        return Vec::new();
    }
    let wanted = |name: &OsStr| is_aside(name) && directory.has_changed(name, since);
    let (mut names, _) = directory.names_like(MOST_LISTED, wanted).unwrap_or_default();
    names.sort();
    names
}
