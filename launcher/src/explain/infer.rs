//! Infers which calls Landlock denies. The kernel does not report Landlock denials.
//!
//! So a call is examined before the kernel gets it: what rights does it need, do the rules grant them, and
//! would the call succeed without the rules? A rule is to blame only if it does not grant the right and the
//! call would succeed. A call that fails anyway (a missing file, permissions, a read-only mount) is never
//! blamed on a rule. This process has the same user and no capabilities, so faccessat(2) answers for the
//! command's permissions.

use crate::explain::caller::{self, Caller};
use crate::explain::decode::{Access, Address, Decoded};
use crate::explain::hint::{CHANGES, capability};
use crate::explain::walk::{Entry, Viewer};
use crate::host::landlock::Version;
use crate::plan::limits::LimitKey;
use crate::plan::namespaces::Layout;
use crate::plan::rules::{self, Network, PathRights, PathRule};
use crate::profile::NetworkMode;
use crate::program;
use crate::sys::access::{self, Permission};
use crate::sys::path;
use crate::sys::process::{self, Pid};
use crate::sys::seccomp::Notification;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
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
    /// The program's file would give it rights, and in a sandbox no program gains any.
    Gain,
    /// A capability that the user has outside, for this path if it is for one.
    Capability(Option<PathBuf>),
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
    let said = process::status(process, "VmData:");
    let kilobytes = said.and_then(|said| said.strip_suffix(" kB")?.parse::<u64>().ok());
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

const READS: fn(PathRights) -> bool = |rights| rights.read;
const WRITES: fn(PathRights) -> bool = |rights| rights.write;
const EXECUTES: fn(PathRights) -> bool = |rights| rights.execute;

/// The first path that the rules deny to a call that would succeed without them.
pub fn refused(
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
    if decoded.paths.iter().any(|argument| capability::is_kept_log(&argument.path)) {
        return None;
    }
    let new = makes_a_new_name(name, call, decoded);
    if let Some(denied) = viewer.layout.and_then(|layout| denied_by_mount(layout, decoded, &viewer, new)) {
        return Some(denied);
    }
    if let Some(missing) = viewer.layout.and_then(|layout| out_of_sight(layout, decoded, &viewer, has_failed))
    {
        return Some(missing);
    }
    let needs = match (name, &decoded.address) {
        ("bind", Some(Address::UnixPath(path))) => made(&viewer.follow(None, path, true)?, Access::CREATE)?,
        _ => of_paths(granted, version, name, call, decoded, &viewer)?,
    };
    let need = needs.into_iter().find(|need| !granted(&need.at, need.right))?;
    let (path, access) = need.named;
    Some((viewer.inside(&path), access))
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

/// The first path that is there outside and not inside, because a directory above it is the run's own. Links on the way
/// are followed as outside. Of a call that has not failed yet, only what it opens below a directory with files counts:
/// programs look for many things, and do without. Where one is to be made, its directory counts.
fn out_of_sight(
    layout: &Layout,
    decoded: &Decoded,
    viewer: &Viewer<'_>,
    has_failed: bool,
) -> Option<DeniedPath> {
    let opens = Access::READ | Access::WRITE | Access::EXECUTE | Access::LIST | Access::REMOVE;
    let uses = if has_failed { opens | Access::METADATA } else { opens };
    let makes = |access: Access| access.intersects(Access::CREATE);
    let used = |access: Access| if makes(access) { has_failed } else { access.intersects(uses) };
    let is_hidden = |path: &Path| match has_failed {
        true => layout.replaces(path).is_some() || path::is_of_process(path),
        false => layout.hides(path),
    };
    let outside = Viewer { layout: None, ..*viewer };
    decoded.paths.iter().filter(|argument| used(argument.access)).find_map(|argument| {
        let there = outside.follow(argument.dirfd, &argument.path, argument.follow)?;
        let makes = makes(argument.access);
        let path = Some(there.path).filter(|path| (makes || there.meta.is_some()) && is_hidden(path))?;
        let here = viewer.follow(argument.dirfd, &argument.path, argument.follow);
        let is_missing = here.is_none_or(|entry| !makes && entry.meta.is_none());
        is_missing.then(|| {
            (path, if is_target(decoded, there.meta.as_ref()) { Access::WRITE } else { argument.access })
        })
    })
}

/// Whether a call opens a directory to name things in it, and not to list it (O_PATH). cp(1), mv(1), ln(1) and
/// install(1) open the directory in this way that they make something in.
fn is_target(decoded: &Decoded, meta: Option<&Metadata>) -> bool {
    let opens = ["O_PATH", "O_DIRECTORY"].iter().all(|flag| decoded.text.contains(flag));
    opens && meta.is_some_and(|meta| meta.is_dir() && meta.uid() == process::user())
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
        if argument.path.is_empty() && !argument.empty_path_ok {
            return None;
        }
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

fn need(at: &Path, right: fn(PathRights) -> bool, path: &Path, access: Access) -> Need {
    Need { at: at.to_path_buf(), right, named: (path.to_path_buf(), access) }
}

fn opened(entry: &Entry, access: Access, exclusive: bool, version: Version) -> Option<Vec<Need>> {
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
fn made(entry: &Entry, access: Access) -> Option<Vec<Need>> {
    let possible = entry.meta.is_none() && !entry.nameless && changeable(entry.parent());
    possible.then(|| vec![need(entry.parent(), WRITES, &entry.path, access)])
}

fn removed(entry: &Entry, access: Access, directory: bool) -> Option<Vec<Need>> {
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

fn changeable(directory: &Path) -> bool {
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

fn linked(granted: Grants<'_>, from: &Entry, to: &Entry) -> Option<Vec<Need>> {
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
        needs.push(need(from.parent(), WRITES, &from.path, Access::REFER));
        needs.extend(gained(granted, from, to));
    }
    Some(needs)
}

fn renamed(granted: Grants<'_>, from: &Entry, to: &Entry, flags: u32) -> Option<Vec<Need>> {
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
    let mut needs = vec![
        need(from.parent(), WRITES, &from.path, Access::REMOVE),
        need(to.parent(), WRITES, &to.path, Access::CREATE),
    ];
    if moves {
        needs.extend(gained(granted, from, to));
        if exchanges {
            needs.extend(gained(granted, to, from));
        }
    }
    Some(needs)
}

/// The right that the file would gain in its new place: Landlock denies that.
fn gained(granted: Grants<'_>, from: &Entry, to: &Entry) -> Option<Need> {
    granted(to.parent(), EXECUTES).then(|| need(&from.path, EXECUTES, &from.path, Access::EXECUTE))
}

fn device(path: &Path) -> Option<u64> {
    path.symlink_metadata().ok().map(|meta| meta.dev())
}

/// The rights to execute a file and the interpreters that the kernel starts for it.
fn executed(entry: &Entry, access: Access) -> Option<Vec<Need>> {
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
        let identity = |path: &Path| path.symlink_metadata().ok().map(|meta| (meta.dev(), meta.ino()));
        let above: Vec<_> = path.ancestors().filter_map(identity).collect();
        having().filter_map(|rule| identity(&rule.path)).any(|rule| above.contains(&rule))
    }
}
