//! What the permissions of files let this user change at a path, and below it: a rule about a directory gives all that
//! is in it, whoever owns the directory itself.

use crate::error::Refusal;
use crate::sys::access::{self, Permission};
use crate::sys::file_system::FileSystem;
use crate::sys::path::{is_of_process, is_there};
use std::collections::VecDeque;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

/// Maximum number of entries of directories that are looked at.
const MOST_ENTRIES: usize = 100_000;
/// Maximum number of places that the policy is asked about.
const MOST_QUESTIONS: usize = 32;

/// What can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The path itself.
    Here,
    /// Something below it.
    Below(PathBuf),
    /// Nothing was found, and there is more than could be looked at.
    Unknown,
    /// Nothing.
    Closed,
}

/// What counts as being changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// A file that is written to, or a directory in which names are made.
    Anything,
    /// A directory in which names are made.
    Directory,
}

impl Sought {
    /// Whether permissions open something of a kind.
    fn is_open(self, path: &Path, kind: FileType) -> bool {
        match self {
            _ if kind.is_dir() => takes_names(path),
            Sought::Anything if kind.is_file() => access::allows(path, Permission::WRITE),
            Sought::Anything | Sought::Directory => false,
        }
    }
}

/// Whether names can be made in a directory. In those of /proc and /sys the kernel makes all, whatever their modes are.
fn takes_names(directory: &Path) -> bool {
    let is_of_kernel = || FileSystem::of(directory).is_ok_and(FileSystem::is_of_processes_or_devices);
    access::allows(directory, Permission::CHANGE) && !is_of_kernel()
}

/// Looks for what can be changed. `is_granted`: whether rules give a path to the run, for its name to be changed;
/// `is_given`: whether the policy does in the end, asked of what is found below.
pub fn of(
    path: &Path,
    sought: Sought,
    is_granted: impl Fn(&Path) -> bool,
    is_given: impl Fn(&Path) -> Result<bool, Refusal>,
) -> Result<Opening, Refusal> {
    let Ok(meta) = path.symlink_metadata() else {
        // It is made in the nearest directory that is there.
        let nearest = path.ancestors().skip(1).find(|above| is_there(above));
        let can = nearest.is_some_and(takes_names);
        return Ok(if can { Opening::Here } else { Opening::Closed });
    };
    if sought.is_open(path, meta.file_type()) || is_replaced(path, is_granted) {
        return Ok(Opening::Here);
    }
    if !meta.is_dir() {
        return Ok(Opening::Closed);
    }
    below(path, sought, is_given)
}

/// Whether it can be renamed, or a directory above it, and another one made in its place.
fn is_replaced(path: &Path, is_granted: impl Fn(&Path) -> bool) -> bool {
    let renames = |path: &Path| {
        let Some(parent) = path.parent().filter(|parent| is_granted(parent)) else { return false };
        takes_names(parent) && !access::keeps_names_of_others(parent, path)
    };
    path.ancestors().any(renames)
}

/// The nearest thing below a directory. Links are not followed: rules do not follow them either. What /proc has of
/// single processes is theirs.
fn below(
    path: &Path,
    sought: Sought,
    is_given: impl Fn(&Path) -> Result<bool, Refusal>,
) -> Result<Opening, Refusal> {
    let (mut entries, mut questions) = (MOST_ENTRIES, MOST_QUESTIONS);
    let (mut waiting, mut is_whole) = (VecDeque::from([path.to_path_buf()]), true);
    while let Some(directory) = waiting.pop_front() {
        let Ok(list) = fs::read_dir(&directory) else {
            // Names that are known lead further.
            is_whole &= !access::allows(&directory, Permission::EXECUTE);
            continue;
        };
        for entry in list.flatten() {
            let Some(left) = entries.checked_sub(1) else { return Ok(Opening::Unknown) };
            entries = left;
            let (at, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if is_of_process(&at) {
                continue;
            }
            if sought.is_open(&at, kind) {
                let Some(left) = questions.checked_sub(1) else { return Ok(Opening::Unknown) };
                questions = left;
                if is_given(&at)? {
                    return Ok(Opening::Below(at));
                }
            }
            if kind.is_dir() {
                waiting.push_back(at);
            }
        }
    }
    Ok(if is_whole { Opening::Closed } else { Opening::Unknown })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn look(path: &Path, sought: Sought, denied: &Path) -> Opening {
        of(path, sought, |_| false, |at| Ok(at != denied)).unwrap()
    }

    /// Root's capabilities open every mode, so this looks at kinds alone.
    #[test]
    fn the_nearest_thing_that_is_given_is_found() {
        let scratch = Scratch::create(None).unwrap();
        let base = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("file"), "").unwrap();
        let nowhere = Path::new("/no/such");
        assert_eq!(look(&base, Sought::Anything, nowhere), Opening::Here);
        assert_eq!(look(&base.join("file"), Sought::Directory, nowhere), Opening::Closed);
        let found = below(&base, Sought::Directory, |at| Ok(at != base.join("a"))).unwrap();
        assert_eq!(found, Opening::Below(base.join("a/b")));
        assert_eq!(below(&base.join("a/b"), Sought::Anything, |_| Ok(true)).unwrap(), Opening::Closed);
        fs::set_permissions(&base, Permissions::from_mode(0o1777)).unwrap();
        assert!(!access::keeps_names_of_others(&base, &base.join("file")));
    }
}
