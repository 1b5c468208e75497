//! Which directory the command works in.

use crate::error::Refusal;
use crate::host::Host;
use crate::plan::directories::{absolute, real_directory};
use crate::plan::files::is_device;
use crate::plan::rules::PathRule;
use crate::sys::access::{self, Permission};
use crate::sys::path::{self, canonical};
use crate::sys::process;
use crate::sys::within::is_within;
use crate::text::shown;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories that are nobody's workspace by accident.
const SYSTEM: [&str; 22] = [
    "/", "/bin", "/boot", "/dev", "/dev/shm", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt",
    "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/tmp",
];

/// The workspace: what the user names, or the git work tree that the working directory is in, or that directory itself,
/// unless that would open the whole home or system to the command. `working` is a real path.
pub fn find(
    named: Option<&Path>,
    working: &Path,
    host: &Host,
    warnings: &mut Vec<String>,
) -> Result<Option<PathBuf>, Refusal> {
    let other = || host.variable("HOME").map(PathBuf::from).or_else(|| host.account_home.get().clone());
    let home = host.real_home().map(Path::to_path_buf).or_else(|| other().map(|home| canonical(&home)));
    let holds_home = |path: &Path| home.as_ref().is_some_and(|home| home.starts_with(path));
    if let Some(named) = named {
        let path = real_directory(&absolute(named, host)?, host)
            .map_err(|why| Refusal::new(format!("cannot use '{}' as workspace: {why}", shown(named))))?;
        if holds_home(&path) {
            warnings.push(format!(
                "warning: the workspace '{}' holds your home directory, and so its keys and \
                passwords, all open to the command",
                shown(&path)
            ));
        }
        return Ok(Some(path));
    }
    let path = working.to_path_buf();
    // Also homes of which HOME does not tell, and what is no file system for files.
    let of_kernel =
        is_device(&path) || ["/proc", "/sys"].iter().any(|system| is_within(&path, Path::new(system)));
    let is_shared = |path: &Path| {
        let is_home = holds_home(path) || path.parent() == Some(Path::new("/home"));
        is_home || SYSTEM.iter().any(|system| path == Path::new(system))
    };
    if is_shared(&path) || of_kernel {
        let why = if of_kernel {
            "the files there are the kernel's"
        } else if home.as_ref().is_some_and(|home| *home == path) {
            "it is your home directory"
        } else if holds_home(&path) {
            "your home directory is in it"
        } else {
            "it is a directory of many users, or of the system"
        };
        let path = shown(&path);
        warnings.push(format!(
            "'{path}' is not opened to the command as its workspace, because {why}; change to a project's directory, \
             or name one with --workspace"
        ));
        return Ok(None);
    }
    if let Some(hidden) = home.as_ref().and_then(|home| settings_above(&path, home)) {
        let (path, hidden) = (shown(&path), shown(&hidden));
        warnings.push(format!(
            "'{path}' is not opened to the command as its workspace, because programs keep settings and keys in \
             '{hidden}'; change to a project's directory, or name one with --workspace"
        ));
        return Ok(None);
    }
    let top = work_tree(&path).filter(|top| !is_shared(top)).map(Path::to_path_buf);
    Ok(Some(top.unwrap_or(path)))
}

/// The top of the git work tree that a directory is in, if that and all above the directory belong to the user, and
/// nobody else may write there. A submodule is a work tree of its own.
fn work_tree(directory: &Path) -> Option<&Path> {
    let is_own = |meta: &Metadata| meta.uid() == process::user() && meta.mode() & libc::S_IWOTH == 0;
    for above in directory.ancestors() {
        above.symlink_metadata().ok().filter(is_own)?;
        let entry = above.join(".git");
        // A `.git` may be a link, to a file or a directory.
        if entry.symlink_metadata().is_ok_and(|meta| meta.uid() == process::user()) && entry.exists() {
            return Some(above);
        }
    }
    None
}

/// The hidden directory of a home, such as `~/.ssh`, that a path is or lies in, unless a repository below it does.
fn settings_above(path: &Path, home: &Path) -> Option<PathBuf> {
    let first = path.strip_prefix(home).ok()?.iter().next()?;
    let hidden = home.join(first);
    let below = path.ancestors().take_while(|above| *above != hidden);
    let in_repository = below.into_iter().any(|above| path::is_there(&above.join(".git")));
    (first.as_bytes().starts_with(b".") && !in_repository).then_some(hidden)
}

/// Nothing can be protected, and nothing mounted, in a workspace that this user cannot look into.
pub fn can_be_searched(workspace: &Path) -> Result<(), Refusal> {
    if access::allows(workspace, Permission::EXECUTE) {
        return Ok(());
    }
    let path = shown(workspace);
    Err(Refusal::new(format!(
        "cannot use '{path}' as workspace: it may not be searched; 'chmod u+x' may help, or name another one \
         with --workspace"
    )))
}

/// What to say where root is to write in another user's directory, which takes a capability: the command has none.
pub fn of_another_user(workspace: &Path, host: &Host, rules: &[PathRule]) -> Option<String> {
    let user = (*host.root.get()).then(|| access::others_directory(workspace)).flatten()?;
    if !rules.iter().any(|rule| rule.rights.write && rule.path == workspace) {
        return None;
    }
    let path = shown(workspace);
    Some(format!(
        "warning: the workspace '{path}' belongs to user {user}, and the command cannot write there, because it \
         has none of root's capabilities; start sbx as that user (setpriv --reuid {user} ...)"
    ))
}
