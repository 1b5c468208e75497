//! Directories of objects that git reads besides a repository's own (`objects/info/alternates`). By those of another
//! repository git outside would show the next run, and push, what no run may read. Users have such ones, too.

use super::links::LONGEST_TABLE;
use super::recorded::MOST_LOOKED_AT;
use super::{Aftermath, Look, Opened};
use crate::plan::namespaces::Record;
use crate::sys::SyscallError;
use crate::sys::beneath::Directory;
use crate::sys::path::{joined, says_missing, way};
use crate::sys::within::is_within;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const OBJECTS: &str = "objects";
/// Where they are in a repository.
const INFO: &str = "objects/info";
const ALTERNATES: &str = "alternates";
/// So many alternates of alternates git follows, one after the other.
const MOST_NESTED: usize = 5;

impl Aftermath {
    /// Puts aside alternates of the command's that lead to another repository than those of the workspace, and those
    /// that do over a link.
    pub(super) fn look_at_alternates(&self, &Opened { own, place, path, .. }: &Opened<'_>, look: &mut Look) {
        // One that cannot be opened is told of elsewhere.
        let Ok(info) = own.below(Path::new(INFO)) else { return };
        let leads_away = match read(&info) {
            Ok(None) => false,
            Ok(Some(text)) => {
                let are_new = self.are_new(place, path, &info, &text);
                self.leads_away(&path.join(OBJECTS), &text, are_new, MOST_NESTED)
            }
            Err(_) => true,
        };
        if leads_away {
            let name = Path::new(INFO).join(ALTERNATES);
            let aside = look.put_aside(own, &name, &path.join(&name));
            look.found_states(path, &[name], &aside.into_iter().collect::<Vec<_>>());
        }
    }

    /// Whether a command of this run has made or changed alternates.
    fn are_new(&self, place: &Path, path: &Path, info: &Directory, text: &[u8]) -> bool {
        match self.alternates.get(path) {
            Some(before) => before != text,
            // The user may have made the repository since the run before.
            None => self.is_made(place) || self.has_other_alternates(info),
        }
    }

    /// Whether alternates have changed in this run. A directory in the place of another counts, too.
    fn has_other_alternates(&self, info: &Directory) -> bool {
        [ALTERNATES, ""].into_iter().any(|name| info.has_changed(name.as_ref(), self.since))
    }

    /// Whether one of the lines leads out of the workspace, from these objects, or one of the alternates of alternates.
    fn leads_away(&self, objects: &Path, text: &[u8], are_new: bool, depth: usize) -> bool {
        let is_below = |path: &Path| is_within(path, &self.workspace);
        let mut lines =
            text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        lines.any(|line| {
            let named = objects.join(OsStr::from_bytes(line));
            // Nobody knows where it leads by its words alone, where these go up behind a name.
            let is_inside = joined(objects, &named).map(|named| is_below(&named));
            let real = way(&named).real;
            // git takes away quotes. What leads away by its words, and is old, is the user's. What is new may lead away
            // when a link on its way is another one.
            match are_new {
                true => {
                    line.starts_with(b"\"")
                        || is_inside != Some(true)
                        || !is_below(&real)
                        || self.passes_on(&real, true, depth)
                }
                false if is_below(&real) => self.passes_on(&real, false, depth),
                false => is_inside != Some(false),
            }
        })
    }

    /// Whether objects in the workspace have alternates that lead out of it. git follows few, one after the other.
    fn passes_on(&self, objects: &Path, is_new: bool, depth: usize) -> bool {
        let Ok(place) = objects.strip_prefix(&self.workspace) else { return false };
        let info = match self.root.below(&place.join("info")) {
            Ok(info) => info,
            Err(failed) => return !says_missing(&failed.cause),
        };
        match read(&info) {
            Ok(None) => false,
            Ok(Some(_)) if depth == 0 => true,
            Ok(Some(text)) => {
                self.leads_away(objects, &text, is_new || self.has_other_alternates(&info), depth - 1)
            }
            Err(_) => true,
        }
    }
}

fn read(info: &Directory) -> Result<Option<Vec<u8>>, SyscallError> {
    info.read(ALTERNATES.as_ref(), LONGEST_TABLE)
}

/// The alternates of the repositories that every look sees, as they are now.
pub fn known(root: &Directory, workspace: &Path, record: &Record) -> BTreeMap<PathBuf, Vec<u8>> {
    let own = [workspace.to_path_buf(), workspace.join(".git")];
    let all = own.into_iter().chain(record.repositories.iter().take(MOST_LOOKED_AT).cloned());
    let known = |path: PathBuf| {
        let text = match root.below(&path.strip_prefix(workspace).ok()?.join(INFO)) {
            Ok(info) => read(&info).ok().flatten().unwrap_or_default(),
            Err(failed) if says_missing(&failed.cause) => Vec::new(),
            Err(_) => return None,
        };
        Some((path, text))
    };
    all.filter_map(known).collect()
}
