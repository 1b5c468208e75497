//! The rights that an act on a path needs; none where it would fail anyway.

use super::{EXECUTES, Grants, Need, READS, WRITES};
use crate::explain::decode::{Access, Decoded, PathArgument};
use crate::explain::walk::{Entry, Viewer};
use crate::host::landlock::Version;
use crate::plan::rules::PathRights;
use crate::program;
use crate::sys::access::{self, Permission};
use crate::sys::process;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

fn need(at: &Path, right: fn(PathRights) -> bool, path: &Path, access: Access) -> Need {
    Need { at: at.to_path_buf(), right, named: (path.to_path_buf(), access) }
}

pub fn opened(entry: &Entry, access: Access, exclusive: bool, version: Version) -> Option<Vec<Need>> {
    let creates = access.intersects(Access::CREATE);
    let Some(meta) = &entry.meta else {
        return if creates && !entry.slash { made(entry, access) } else { None };
    };
    let writes = access.intersects(Access::WRITE | Access::TRUNCATE);
    let kind = meta.file_type();
    let fails = (creates && exclusive)
        || (kind.is_dir() && (writes || creates) && !is_temporary(access, entry))
        || (!kind.is_dir() && (access.intersects(Access::LIST) || entry.slash))
        || kind.is_symlink()
        || kind.is_socket()
        || (creates && is_protected(entry, meta));
    let reads = access.intersects(Access::READ | Access::LIST);
    if fails
        || (reads && !access::allows(&entry.path, Permission::READ))
        || (writes && !access::allows(&entry.path, Permission::WRITE))
    {
        return None;
    }
    let mut needs = Vec::new();
    if reads {
        // What opens it for both is no use to the caller with one of them.
        let named = if writes { access } else { Access::READ };
        needs.push(need(&entry.path, READS, &entry.path, named));
    }
    if access.intersects(Access::WRITE) || (writes && version >= Version::TRUNCATE) {
        needs.push(need(&entry.path, WRITES, &entry.path, access));
    }
    Some(needs)
}

/// Whether it is O_TMPFILE, which names a directory but writes a file without a name in it.
fn is_temporary(access: Access, entry: &Entry) -> bool {
    entry.is_dir() && !access.intersects(Access::CREATE | Access::TRUNCATE)
}

/// Whether O_CREAT fails because the file is somebody else's in a shared directory (fs.protected_regular).
fn is_protected(entry: &Entry, meta: &Metadata) -> bool {
    let Ok(parent) = entry.parent().symlink_metadata() else { return true };
    let shared = parent.mode() & libc::S_ISVTX != 0 && parent.mode() & 0o022 != 0;
    shared && meta.uid() != process::user() && meta.uid() != parent.uid()
}

/// The right to make a name in a directory.
pub fn made(entry: &Entry, access: Access) -> Option<Vec<Need>> {
    let possible = entry.meta.is_none() && !entry.nameless && changeable(entry.parent());
    possible.then(|| vec![need(entry.parent(), WRITES, &entry.path, access)])
}

pub fn removed(entry: &Entry, access: Access, directory: bool) -> Option<Vec<Need>> {
    let possible =
        is_removable(entry) && entry.is_dir() == directory && (!directory || is_empty(&entry.path));
    possible.then(|| vec![need(entry.parent(), WRITES, &entry.path, access)])
}

/// Whether permissions allow to remove a name.
fn is_removable(entry: &Entry) -> bool {
    let Some(meta) = &entry.meta else { return false };
    let (parent, user) = (entry.parent(), process::user());
    let sticky = parent.symlink_metadata().is_ok_and(|p| p.mode() & libc::S_ISVTX != 0 && p.uid() != user);
    let wrong_slash = entry.slash && !meta.is_dir();
    let others = sticky && meta.uid() != user;
    !entry.nameless && !wrong_slash && !others && changeable(parent)
}

pub fn changeable(directory: &Path) -> bool {
    // The root of another process is a link, which the slash leads through.
    directory.is_dir() && access::allows(&directory.join(""), Permission::CHANGE)
}

/// Whether a call moves a file that permissions keep in its place. With EXDEV programs copy it; outside they do not.
pub fn cannot_move(name: &str, decoded: &Decoded, viewer: &Viewer<'_>) -> bool {
    let Some(from) = decoded.paths.first().filter(|_| name.starts_with("rename")) else { return false };
    let entry = viewer.follow(from.dirfd, &from.path, from.follow);
    entry.is_some_and(|entry| entry.meta.is_some() && !is_removable(&entry))
}

/// Whether a directory is empty. One that cannot be listed counts as empty.
fn is_empty(directory: &Path) -> bool {
    directory.read_dir().map_or(true, |mut entries| entries.next().is_none())
}

pub fn linked(granted: Grants<'_>, from: &Entry, to: &Entry) -> Option<Vec<Need>> {
    let meta = from.meta.as_ref().filter(|meta| !meta.is_dir() && !from.slash)?;
    let user = process::user();
    let harmless = meta.is_file() && meta.mode() & (libc::S_ISUID | libc::S_ISGID) == 0;
    // As fs.protected_hardlinks asks.
    let own = meta.uid() == user || (harmless && access::allows(&from.path, Permission::READ_WRITE));
    if !own || device(to.parent()) != Some(meta.dev()) || to.slash {
        return None;
    }
    let mut needs = made(to, Access::CREATE)?;
    if from.parent() != to.parent() {
        needs.extend(gained(granted, from, to));
        needs.push(need(from.parent(), WRITES, &from.path, Access::REFER));
    }
    Some(needs)
}

pub fn renamed(granted: Grants<'_>, from: &Entry, to: &Entry, flags: u32) -> Option<Vec<Need>> {
    let meta = from.meta.as_ref()?;
    let moves = from.parent() != to.parent();
    let exchanges = flags & libc::RENAME_EXCHANGE != 0;
    let onto = match &to.meta {
        None => !exchanges && !to.nameless && changeable(to.parent()) && (!to.slash || meta.is_dir()),
        Some(_) if flags & libc::RENAME_NOREPLACE != 0 => false,
        Some(_) if exchanges => is_removable(to),
        Some(other) => {
            is_removable(to) && other.is_dir() == meta.is_dir() && (!other.is_dir() || is_empty(&to.path))
        }
    };
    let movable = !(moves && meta.is_dir()) || access::allows(&from.path, Permission::WRITE);
    let possible = is_removable(from) && onto && movable && !to.path.starts_with(&from.path);
    if !possible || device(to.parent()) != device(from.parent()) {
        return None;
    }
    let mut needs = Vec::with_capacity(3);
    if moves {
        needs.extend(gained(granted, from, to));
        if exchanges {
            needs.extend(gained(granted, to, from));
        }
    }
    needs.push(need(from.parent(), WRITES, &from.path, Access::REMOVE));
    needs.push(need(to.parent(), WRITES, &to.path, Access::CREATE));
    Some(needs)
}

/// The right that the file would gain in its new place: Landlock denies that. It is of use only with the right to
/// change the directory, by a rule that holds for both: one for the file alone mounts it by itself.
fn gained(granted: Grants<'_>, from: &Entry, to: &Entry) -> Option<Need> {
    let access = Access::REFER | Access::EXECUTE;
    granted(to.parent(), EXECUTES).then(|| need(&from.path, EXECUTES, &from.path, access))
}

/// What it takes to give another file's name to one that is gone by now: a program removes what it could not rename.
/// Only where a mount holds that name, for there may have been none to rename.
pub fn given_up(name: &str, decoded: &Decoded, viewer: &Viewer<'_>) -> Option<Vec<Need>> {
    let [from, to] = &decoded.paths[..] else { return None };
    let follow = |argument: &PathArgument| viewer.follow(argument.dirfd, &argument.path, argument.follow);
    let (from, to) = (follow(from)?, follow(to)?);
    let is_beside = viewer.inside(from.parent()) == viewer.inside(to.parent());
    let is_gone = name.starts_with("rename") && from.meta.is_none() && is_beside;
    let need = need(to.parent(), WRITES, &to.path, Access::CREATE);
    (is_gone && is_removable(&to) && need.is_held(viewer)).then(|| vec![need])
}

fn device(path: &Path) -> Option<u64> {
    path.symlink_metadata().ok().map(|meta| meta.dev())
}

/// The rights to execute a file and the interpreters that the kernel starts for it.
pub fn executed(entry: &Entry, access: Access) -> Option<Vec<Need>> {
    if !entry.meta.as_ref()?.is_file() || entry.slash || !access::allows(&entry.path, Permission::EXECUTE) {
        return None;
    }
    let program = program::examine(&entry.path).ok()?;
    let mut needs = vec![need(&entry.path, EXECUTES, &entry.path, access)];
    for link in program.chain.iter().skip(1) {
        let real = link.path.canonicalize().ok()?;
        if !access::allows(&real, Permission::EXECUTE) {
            return None;
        }
        needs.push(need(&real, EXECUTES, &real, Access::EXECUTE));
    }
    Some(needs)
}
