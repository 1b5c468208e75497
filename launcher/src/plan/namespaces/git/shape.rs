//! What makes a directory a repository, or a part of one. The files that say so may have been written by an earlier
//! command, and what an earlier command has left of a repository is still one.

use crate::plan::namespaces::git::{CONFIG, CONFIG_LOCK, NEW_CONFIG};
use crate::plan::namespaces::git_config::{Setting, read, settings};
use crate::plan::namespaces::placeholder::{self, Shape};
use crate::sys::path;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of submodules, linked worktrees and configurations that are examined. A directory with more of the
/// first two is protected as a whole.
pub const MOST: usize = 256;
/// Maximum number of directory entries that are read, files included.
pub const MOST_OF_ALL: usize = 16 * MOST;

/// What a repository says of one working tree alone.
pub const OF_WORKTREE: &str = "config.worktree";

/// Whether git reads that.
pub fn reads_of_worktree(settings: &[Setting]) -> bool {
    settings.iter().any(|setting| setting.is("extensions", "worktreeconfig") && setting.holds())
}

/// Whether git executes no file of this name in a directory of hooks: the samples that it brings along, and what runs
/// have there for a moment, and leave if they are killed.
pub fn is_no_hook(name: &OsStr) -> bool {
    let own = [Path::new(NEW_CONFIG).file_name(), Some(OsStr::new(CONFIG_LOCK))];
    own.contains(&Some(name)) || Path::new(name).extension().is_some_and(|end| end == "sample")
}

/// Where a file like `.git` of a linked worktree leads, or a link in its place, by the path that says so.
pub fn led_to(entry: &Path) -> Option<PathBuf> {
    let path = match read(entry) {
        Some(text) => named_by(&text)?.to_path_buf(),
        None => entry.read_link().ok()?,
    };
    Some(entry.parent()?.join(path))
}

/// The path in the text of such a file. A longer one than the kernel takes (path_resolution(7)) leads nowhere.
pub fn named_by(text: &[u8]) -> Option<&Path> {
    let path = text.strip_prefix(b"gitdir:")?;
    let path = line(path.strip_prefix(b" ").unwrap_or(path));
    (path.as_os_str().len() < libc::PATH_MAX as usize).then_some(path)
}

/// A path that is all there is in a file. git takes nothing off but the ends of lines, and then reads as far as the
/// first NUL.
pub fn line(text: &[u8]) -> &Path {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    let path = text[..end].split(|byte| *byte == 0).next().unwrap_or_default();
    Path::new(OsStr::from_bytes(path))
}

/// The repository that a git directory shares with others, by the path that says so.
pub fn common_named(own: &Path) -> Option<PathBuf> {
    read(&own.join("commondir")).map(|text| own.join(line(&text)))
}

/// The same by its real path; its own if it shares none.
pub fn common_of(own: &Path) -> Option<PathBuf> {
    match common_named(own) {
        Some(named) => named.canonicalize().ok(),
        None => own.join("HEAD").is_file().then(|| own.to_path_buf()),
    }
}

/// The `.git` by which git gets to a linked worktree's directory from where its files are.
pub fn entry_of(own: &Path) -> Option<PathBuf> {
    let entry = own.join(line(&read(&own.join("gitdir"))?));
    Some(entry).filter(|path| path.file_name().is_some_and(|name| name == ".git"))
}

/// Whether the git directory's own files name this worktree: a linked worktree's `gitdir` names the `.git` file, a
/// submodule's configuration names its working tree.
pub fn knows(own: &Path, entry: &Path, workspace: &Path) -> bool {
    if let Some(text) = read(&own.join("gitdir")) {
        return own.join(line(&text)).canonicalize().is_ok_and(|back| back == entry);
    }
    let settings = settings(&own.join(CONFIG)).unwrap_or_default();
    let Some(named) = worktree_in(&settings) else { return false };
    // git writes a relative path for a submodule. Over a link in it, a command could lead git elsewhere later.
    let is_straight = named.is_absolute() || path::joined(own, named).as_deref() == Some(workspace);
    is_straight && files_of(own, &settings).is_some_and(|files| files == workspace)
}

/// Where a repository's files are, in its own words: git goes by the last ones.
pub fn files_of(own: &Path, settings: &[Setting]) -> Option<PathBuf> {
    own.join(worktree_in(settings)?).canonicalize().ok()
}

/// The same by the path that says so, where that leads over links or goes up behind a name, or nothing is there.
pub fn files_named(own: &Path, settings: &[Setting]) -> Option<PathBuf> {
    let named = worktree_in(settings)?;
    let is_straight = files_of(own, settings).is_some_and(|files| path::joined(own, named) == Some(files));
    (!is_straight).then(|| own.join(named))
}

fn worktree_in(settings: &[Setting]) -> Option<&Path> {
    settings.iter().rfind(|setting| setting.is("core", "worktree")).map(Setting::path)
}

/// Whether a path is that of a `.git`, or below it.
pub fn is_within_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}

/// Whether a repository keeps the parts of others in a directory of this name: of submodules, or of linked worktrees.
pub fn has_others(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "modules" || name == "worktrees")
}

/// Whether a git directory is a repository, or one of those that this one has for its linked worktrees. What
/// `commondir` says counts for nothing by itself: it could name any directory, and make it the command's.
pub fn belongs(own: &Path, common: &Path) -> bool {
    let is_its = own == common || own.parent().is_some_and(|parent| parent == common.join("worktrees"));
    is_its
        && is_whole(common)
        // A directory with a `.git` in it is a working tree, not itself a repository.
        && placeholder::is_free(&common.join(".git"), Shape::Directory)
}

/// Whether a directory has all parts by which git takes it for a repository.
pub fn is_whole(at: &Path) -> bool {
    path::is_there(&at.join("HEAD")) && ["objects", "refs"].iter().all(|name| at.join(name).is_dir())
}

/// Whether a directory is a bare repository, or what an earlier command has left of one: its configuration says so.
pub fn is_bare(at: &Path) -> bool {
    let config = at.join(CONFIG);
    let of_git =
        |setting: &Setting| setting.is("core", "bare") || setting.is("core", "repositoryformatversion");
    belongs(at, at)
        || (config.symlink_metadata().is_ok_and(|meta| meta.is_file())
            && settings(&config).map_or(true, |settings| settings.iter().any(of_git)))
}

/// The repository that a directory is the top of, where that is above the workspace: it is out of the
/// command's reach, but what it executes may lie in the workspace.
pub fn around(top: &Path) -> Option<(PathBuf, &Path)> {
    let entry = top.join(".git");
    let own = match entry.symlink_metadata() {
        Ok(meta) if meta.is_dir() => entry,
        Ok(_) => led_to(&entry)?.canonicalize().ok()?,
        Err(_) => return None,
    };
    Some((common_of(&own)?, top))
}

/// Whether this is a git directory, or what an earlier command has left of one.
pub fn is_repository(at: &Path) -> bool {
    // One that cannot be looked into may be one.
    let is_file = |name| match at.join(name).symlink_metadata() {
        Ok(meta) => !meta.is_dir(),
        Err(error) => !path::says_missing(&error),
    };
    is_file("HEAD") || is_file("config")
}

/// The directories in one; nothing if there are too many.
pub fn entries(at: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let mut directories = Vec::new();
    let found = match at.read_dir() {
        Ok(found) => found,
        Err(error) if path::says_missing(&error) => return Ok(Some(directories)),
        Err(error) => return Err(error),
    };
    for (number, entry) in found.enumerate() {
        let entry = entry?;
        if number >= MOST_OF_ALL || directories.len() > MOST {
            return Ok(None);
        }
        if entry.file_type()?.is_dir() {
            directories.push(entry.path());
        }
    }
    Ok(Some(directories))
}
