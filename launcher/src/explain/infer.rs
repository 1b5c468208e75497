//! Infers which calls Landlock denies. The kernel does not report Landlock denials.
//!
//! So a call is examined before the kernel gets it: what rights does it need, do the rules grant them, and
//! would the call succeed without the rules? A rule is to blame only if it does not grant the right and the
//! call would succeed. A call that fails anyway (a missing file, permissions, a read-only mount) is never
//! blamed on a rule. This process has the same user and no capabilities, so faccessat(2) answers for the
//! command's permissions.

mod acts;
mod pattern;
mod sight;
#[cfg(test)]
mod tests;

use crate::explain::caller::{self, Caller};
use crate::explain::decode::{Access, Address, Decoded, PathArgument};
use crate::explain::hint::{CHANGES, capability, is_opened_alone, repository_at};
use crate::explain::unprivileged::Closed;
use crate::explain::walk::Viewer;
use crate::host::landlock::Version;
use crate::plan::limits::LimitKey;
use crate::plan::namespaces::Layout;
use crate::plan::rules::{self, Network, PathRights, PathRule};
use crate::profile::NetworkMode;
use crate::sys::access::{self, Permission};
use crate::sys::number::FileNumber;
use crate::sys::path;
use crate::sys::process::{self, Pid};
use crate::sys::seccomp::Notification;
use crate::sys::status::Status;
pub use acts::cannot_move;
use acts::{changeable, executed, given_up, linked, made, opened, removed, renamed};
use pattern::unexpanded;
use std::path::{Path, PathBuf};

/// A path that the rules deny, with what was wanted of it.
pub type DeniedPath = (PathBuf, Access);

/// The Landlock rules in force besides those on paths, and the kernel's limits.
#[derive(Clone)]
pub struct Domain {
    /// Its version.
    pub version: Version,
    /// The TCP ports that are allowed.
    pub network: Network,
    /// How many bytes of private memory a process may have.
    pub memory: Option<u64>,
    /// How many open files a process may have.
    pub files: Option<u64>,
    /// Whether signals stay in the sandbox though processes outside have numbers inside.
    pub scoped: bool,
}

/// A denial of Landlock that is not about a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Connecting to a TCP port.
    Connect(u16),
    /// Listening on a TCP port.
    Bind(u16),
    /// A signal to a process outside.
    Signal(Pid),
    /// A process outside, of which nothing is seen.
    Process(Pid),
    /// A limit of the run is reached.
    Limit(LimitKey),
    /// The limit of core files, which is 0.
    Cores,
    /// The program's file would give it rights, and in a sandbox no program gains any.
    Gain {
        /// Whether it is one that other programs start for themselves.
        by_helper: bool,
    },
    /// A capability that the user has outside.
    Capability(Closed),
    /// A datagram that is lost in a network of the run's own.
    Datagram {
        /// Whether it was meant for a server of the host, on a loopback that is not the run's.
        hosts: bool,
        /// The port.
        port: u16,
    },
}

impl Domain {
    /// What the domain denies of a call that would succeed otherwise.
    pub fn refused(&self, name: &str, call: &Notification, decoded: &Decoded) -> Option<Beyond> {
        match (name, &decoded.address) {
            ("connect", Some(Address::Inet { port, .. })) => {
                (self.restricts() && !self.network.connect.contains(port)).then_some(Beyond::Connect(*port))
            }
            ("bind", Some(Address::Inet { port, .. })) => {
                let denied = self.restricts() && !self.network.bind.contains(port) && access::may_bind(*port);
                denied.then_some(Beyond::Bind(*port))
            }
            ("kill" | "tkill" | "tgkill", _) => {
                let target = call.args[0] as Pid;
                let denied = self.scoped && process::can_signal(target) && !caller::is_ours(target);
                denied.then_some(Beyond::Signal(target))
            }
            ("mmap" | "mremap", _) => {
                let more =
                    if name == "mmap" { call.args[1] } else { call.args[2].saturating_sub(call.args[1]) };
                let is_over =
                    self.memory.is_some_and(|most| private_memory(call.pid).saturating_add(more) > most);
                is_over.then_some(Beyond::Limit(LimitKey::Memory))
            }
            ("open" | "openat" | "openat2" | "creat", _) => {
                let is_full = self.files.is_some_and(|most| process::open_files(call.pid, most) >= most);
                is_full.then_some(Beyond::Limit(LimitKey::OpenFiles))
            }
            _ => None,
        }
    }

    fn restricts(&self) -> bool {
        self.network.mode == NetworkMode::Ports
    }
}

/// The memory that RLIMIT_DATA counts, in bytes.
fn private_memory(process: Pid) -> u64 {
    let status = Status::of(process).ok();
    let kilobytes = status.and_then(|own| own.field("VmData")?.strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.map_or(0, |kilobytes| kilobytes.saturating_mul(1024))
}

/// Whether the rules grant a right at a path as we find it.
type Grants<'g> = &'g dyn Fn(&Path, fn(PathRights) -> bool) -> bool;

/// A right that a call needs.
struct Need {
    /// The path that it needs the right at.
    at: PathBuf,
    right: fn(PathRights) -> bool,
    /// The path to name if the rules do not grant it.
    named: DeniedPath,
}

impl Need {
    /// Whether it is about a name that a mount of the run holds in its place, whatever the rules grant (EBUSY).
    fn is_held(&self, viewer: &Viewer<'_>) -> bool {
        let (path, access) = &self.named;
        let of_name =
            access.intersects(Access::CREATE | Access::REMOVE) && path.parent() == Some(self.at.as_path());
        of_name && viewer.layout.is_some_and(|layout| is_opened_alone(layout, &viewer.inside(path)))
    }
}

const READS: fn(PathRights) -> bool = |rights| rights.read;
const WRITES: fn(PathRights) -> bool = |rights| rights.write;
const EXECUTES: fn(PathRights) -> bool = |rights| rights.execute;

/// The first path that the rules deny to a call that would succeed without them, and what its program wants of it.
pub fn refused(
    granted: InForce<'_>,
    name: &str,
    call: &Notification,
    decoded: &Decoded,
    caller: &Caller,
) -> Option<DeniedPath> {
    let denied = denied(granted, name, call, decoded, caller)?;
    let line = || process::about(caller.process, "cmdline").unwrap_or_default();
    let is_of_push = caller.name.starts_with(b"git") && is_push(&line());
    Some(if is_of_push { pushed_to(denied) } else { denied })
}

/// Whether a command line is that of an end of git-push(1).
fn is_push(line: &str) -> bool {
    let mut words = line.split('\0');
    words.any(|word| matches!(word, "push" | "receive-pack") || word.ends_with("git-receive-pack"))
}

/// What a push is after that reads a repository: to write there.
fn pushed_to((path, access): DeniedPath) -> DeniedPath {
    let repository = if access.intersects(CHANGES) { None } else { repository_at(&path) };
    match repository.filter(|repository| permitted(repository, Access::WRITE)) {
        Some(repository) => (repository.to_path_buf(), Access::WRITE),
        None => (path, access),
    }
}

fn denied(
    granted: InForce<'_>,
    name: &str,
    call: &Notification,
    decoded: &Decoded,
    caller: &Caller,
) -> Option<DeniedPath> {
    let viewer = Viewer { thread: call.pid, caller, layout: granted.layout };
    let (version, has_failed) = (granted.version, granted.has_failed);
    let granted: Grants<'_> =
        &|path: &Path, right: fn(PathRights) -> bool| granted.grants(&viewer.inside(path), right);
    let is_unblamed =
        |argument: &PathArgument| argument.names_nothing() || capability::is_kept_log(&argument.path);
    if decoded.paths.iter().any(is_unblamed) {
        return None;
    }
    let new = makes_a_new_name(name, call, decoded);
    if let Some(denied) = viewer.layout.and_then(|layout| denied_by_mount(layout, decoded, &viewer, new)) {
        return Some(denied);
    }
    let missing = |layout| sight::missing(layout, name, decoded, &viewer, has_failed);
    if let Some(missing) = viewer.layout.and_then(missing) {
        return Some(missing);
    }
    if has_failed && let Some(meant) = decoded.paths.iter().find_map(|it| unexpanded(granted, it, &viewer)) {
        return Some(meant);
    }
    let needs = match (name, &decoded.address) {
        ("bind", Some(Address::UnixPath(path))) => made(&viewer.follow(None, path, true)?, Access::CREATE),
        _ => of_paths(granted, version, name, call, decoded, &viewer),
    };
    let needs = needs.or_else(|| has_failed.then(|| given_up(name, decoded, &viewer)).flatten())?;
    let is_lacking = |need: &Need| !granted(&need.at, need.right) || need.is_held(&viewer);
    let is_stream = |need: &Need| is_standard_stream(call.pid, &viewer.inside(&need.at));
    let need = needs.into_iter().find(|need| is_lacking(need) && !is_stream(need))?;
    let (path, access) = need.named;
    Some((viewer.inside(&path), access))
}

/// Whether a file is a standard stream of a process, which rules let it open again (`/dev/stdout`).
fn is_standard_stream(thread: Pid, path: &Path) -> bool {
    (0..3).any(|number| caller::named(thread, Some(number)).is_ok_and(|name| name == path))
}

/// The first path whose mount makes the call fail. A call that makes a `new` name fails in any case where the
/// name is taken, unless only the run put something there.
fn denied_by_mount(layout: &Layout, decoded: &Decoded, viewer: &Viewer<'_>, new: bool) -> Option<DeniedPath> {
    decoded.paths.iter().find_map(|argument| {
        let path = viewer.named(argument.dirfd, &argument.path)?;
        let changes = argument.access.intersects(CHANGES);
        let taken = || {
            let entry = viewer.follow(argument.dirfd, &argument.path, false);
            entry.is_some_and(|entry| entry.meta.is_some()) && !layout.stands_in(&path)
        };
        let fails = new && argument.access.intersects(Access::CREATE) && !layout.denies(&path) && taken();
        let stands_in = |path: &Path| path.ancestors().any(|above| layout.stands_in(above));
        let is_permitted = || stands_in(&path) || permitted(&path, argument.access);
        let denied = layout.refuses(&path, changes) && !fails && is_permitted();
        denied.then_some((path, argument.access))
    })
}

/// Whether permissions allow this access outside the sandbox.
pub fn permitted(path: &Path, access: Access) -> bool {
    let there = path::is_there(path);
    let of_name = access.intersects(Access::REMOVE | Access::REFER);
    let makes = !there && access.intersects(Access::CREATE);
    let has = |wanted: Access, permission| !access.intersects(wanted) || access::allows(path, permission);
    if of_name || makes {
        return path.parent().is_none_or(changeable);
    }
    !there
        || (has(Access::READ | Access::LIST, Permission::READ)
            && has(Access::WRITE | Access::TRUNCATE, Permission::WRITE)
            && has(Access::EXECUTE, Permission::EXECUTE))
}

/// Whether the call fails where its name is taken.
fn makes_a_new_name(name: &str, call: &Notification, decoded: &Decoded) -> bool {
    match name {
        "mkdir" | "mkdirat" | "mknod" | "mknodat" | "symlink" | "symlinkat" | "link" | "linkat" => true,
        "renameat2" => call.args[4] & u64::from(libc::RENAME_NOREPLACE) != 0,
        _ => exclusive(name, call, decoded),
    }
}

/// The file at a path, where permissions let it be read and no rule does.
pub fn closed(in_force: InForce<'_>, path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    (access::allows(&real, Permission::READ) && !in_force.grants(&real, READS)).then_some(real)
}

/// The rights that a call on paths needs; `None` where it would fail anyway.
fn of_paths(
    granted: Grants<'_>,
    version: Version,
    name: &str,
    call: &Notification,
    decoded: &Decoded,
    viewer: &Viewer<'_>,
) -> Option<Vec<Need>> {
    // The walk does not know these ways to resolve a path.
    (name != "openat2" || !decoded.text.contains("RESOLVE_")).then_some(())?;
    let mut entries = Vec::with_capacity(2);
    for argument in &decoded.paths {
        entries.push((viewer.follow(argument.dirfd, &argument.path, argument.follow)?, argument.access));
    }
    match (name, &entries[..]) {
        ("open" | "openat" | "openat2" | "creat", [(entry, access)]) => {
            opened(entry, *access, exclusive(name, call, decoded), version)
        }
        ("truncate", [(entry, access)]) => opened(entry, *access, false, version),
        ("mkdir" | "mkdirat", [(entry, access)]) => made(entry, *access),
        ("mknod" | "mknodat", [(entry, access)]) if !entry.slash => {
            let mode = if name == "mknod" { call.args[1] } else { call.args[2] };
            // A device takes a capability, and the command has none.
            let device = matches!(mode as u32 & libc::S_IFMT, libc::S_IFCHR | libc::S_IFBLK);
            if device { None } else { made(entry, *access) }
        }
        ("symlink" | "symlinkat", [(entry, access)]) if !entry.slash => made(entry, *access),
        ("unlink", [(entry, access)]) => removed(entry, *access, false),
        ("rmdir", [(entry, access)]) => removed(entry, *access, true),
        ("unlinkat", [(entry, access)]) => {
            removed(entry, *access, call.args[2] & libc::AT_REMOVEDIR as u64 != 0)
        }
        ("link" | "linkat", [(from, _), (to, _)]) => linked(granted, from, to),
        ("rename" | "renameat", [(from, _), (to, _)]) => renamed(granted, from, to, 0),
        ("renameat2", [(from, _), (to, _)]) => renamed(granted, from, to, call.args[4] as u32),
        ("execve" | "execveat", [(entry, access)]) => executed(entry, *access),
        _ => None,
    }
}

fn exclusive(name: &str, call: &Notification, decoded: &Decoded) -> bool {
    let flags = match name {
        "open" => call.args[1],
        "openat" => call.args[2],
        // Its flags are in memory, which is read only once.
        _ => return name == "openat2" && decoded.text.contains("O_EXCL"),
    };
    flags & libc::O_EXCL as u64 != 0
}

/// The path rules in force.
#[derive(Clone, Copy)]
pub struct InForce<'r> {
    /// Landlock's version, which says whether truncation has a right of its own.
    pub version: Version,
    /// The rules.
    pub rules: &'r [PathRule],
    /// The mounts of the run.
    pub layout: Option<&'r Layout>,
    /// Whether the call is looked at after it has failed.
    pub has_failed: bool,
}

impl InForce<'_> {
    /// Whether a rule grants a right at a path: by the names, and then by the directories themselves, since
    /// the same one may be mounted in several places.
    pub fn grants(&self, path: &Path, right: fn(PathRights) -> bool) -> bool {
        let having = || self.rules.iter().filter(|rule| right(rule.rights));
        if having().any(|rule| rules::holds(rule, self.layout, path)) {
            return true;
        }
        if self.layout.is_some() {
            // Our directories need not be those that the command sees.
            return false;
        }
        let identity = |path: &Path| path.symlink_metadata().ok().map(|meta| FileNumber::of(&meta));
        let above: Vec<_> = path.ancestors().filter_map(identity).collect();
        having().filter_map(|rule| identity(&rule.path)).any(|rule| above.contains(&rule))
    }
}
