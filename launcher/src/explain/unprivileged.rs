//! What fails for want of a capability that the user has outside: the command has none of root's.
//!
//! No rule of a profile refuses such a call, so what is known of it is the call, its error, and what permissions say to
//! this process, which has the same user and no capabilities either.

use crate::explain::decode::{Access, Address, Decoded, PathArgument};
use crate::explain::walk::Viewer;
use crate::sys::access::{self, Permission};
use crate::sys::privilege::CapabilitySet as Set;
use crate::sys::{account, process};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a call lacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The path that permissions close, if it is one.
    pub path: Option<PathBuf>,
    /// One of these would have opened it.
    pub any_of: Set,
}

/// The user that stands for all that a user namespace does not know (`overflowuid`).
const NOBODY: u32 = 65534;

/// What a call lacked that has failed with EPERM or EACCES, and that no rule refuses.
pub fn refused(name: &str, decoded: &Decoded, viewer: &Viewer<'_>) -> Option<Closed> {
    let any_of = match name {
        "setresuid" => Set::SETUID,
        "setresgid" | "setgroups" => Set::SETGID,
        "capset" => Set::SETPCAP,
        "setpriority" | "sched_setscheduler" | "sched_setattr" | "ioprio_set" => Set::SYS_NICE,
        "prlimit64" => Set::SYS_RESOURCE,
        "bind" => match decoded.address {
            Some(Address::Inet { port, .. }) if !access::may_bind(port) => Set::NET_BIND_SERVICE,
            _ => return None,
        },
        "fchmodat" => return of_owner(viewer, decoded.paths.first()?, Set::FOWNER),
        "fchownat" => return of_file(viewer, decoded.paths.first()?, Set::CHOWN),
        "setxattr" | "lsetxattr" => {
            // Of the attributes that take one, programs set this.
            let of_program = decoded.text.contains("security.capability");
            return of_program.then(|| of_file(viewer, decoded.paths.first()?, Set::SETFCAP)).flatten();
        }
        _ => return decoded.paths.iter().find_map(|argument| closed(viewer, argument)),
    };
    Some(Closed { path: None, any_of })
}

/// A file of another user, whose mode only its owner changes.
fn of_owner(viewer: &Viewer<'_>, argument: &PathArgument, any_of: Set) -> Option<Closed> {
    let entry = viewer.follow(argument.dirfd, &argument.path, argument.follow)?;
    let others = entry.meta.as_ref().is_some_and(|meta| meta.uid() != process::user());
    (others && is_known(&entry.path)).then(|| Closed { path: Some(viewer.inside(&entry.path)), any_of })
}

/// What a file's owner has to have as well: no permission of the file gives it.
fn of_file(viewer: &Viewer<'_>, argument: &PathArgument, any_of: Set) -> Option<Closed> {
    let entry = viewer.follow(argument.dirfd, &argument.path, argument.follow)?;
    entry.meta.as_ref()?;
    is_known(&entry.path).then_some(Closed { path: None, any_of })
}

/// The first file or directory on the way that permissions close.
fn closed(viewer: &Viewer<'_>, argument: &PathArgument) -> Option<Closed> {
    let reading = Set::DAC_OVERRIDE | Set::DAC_READ_SEARCH;
    let closed = |path: PathBuf, wanted, any_of| {
        (access::closes(&path, wanted) && is_known(&path))
            .then(|| Closed { path: Some(viewer.inside(&path)), any_of })
    };
    let whole = viewer.named(argument.dirfd, &argument.path)?;
    let mut above: Vec<_> = whole.ancestors().skip(1).collect();
    above.reverse();
    let search = |directory: &Path| closed(viewer.outside(directory), Permission::EXECUTE, reading);
    if let Some(directory) = above.into_iter().find_map(search) {
        return Some(directory);
    }
    let entry = viewer.follow(argument.dirfd, &argument.path, argument.follow)?;
    let access = argument.access;
    let is_new = entry.meta.is_none() && access.intersects(Access::CREATE);
    if is_new || access.intersects(Access::REMOVE | Access::REFER) {
        return closed(entry.parent().to_path_buf(), Permission::CHANGE, Set::DAC_OVERRIDE);
    }
    entry.meta.as_ref()?;
    let reads = access.intersects(Access::READ | Access::LIST);
    let writes = access.intersects(Access::WRITE | Access::TRUNCATE);
    let read = || reads.then(|| closed(entry.path.clone(), Permission::READ, reading)).flatten();
    let write = || writes.then(|| closed(entry.path.clone(), Permission::WRITE, Set::DAC_OVERRIDE)).flatten();
    read().or_else(write)
}

/// Whether the user namespace knows the owner of a file: over files of others its root has no power.
fn is_known(path: &Path) -> bool {
    let owner = || path.symlink_metadata().map(|meta| meta.uid());
    account::knows_all_users() || owner().is_ok_and(|owner| owner != NOBODY)
}
