//! Makes the run's own view of the file system. The first process in new namespaces does that before it
//! starts the command. Everything is mounted by descriptors of the files that the plan is about, and no
//! symbolic link is followed to them.

use crate::enforce::EnforceError;
use crate::enforce::doors::{self, Door};
use crate::enforce::error::Named;
use crate::enforce::replaced::{self, Ground, Overlays};
use crate::plan::namespaces::Missing;
use crate::plan::namespaces::git::{HOOKS, NEW_CONFIG};
use crate::plan::namespaces::layout::{DEVICES, Layout, OnLink};
use crate::plan::namespaces::placeholder::is_link;
use crate::plan::namespaces::renewed::{System, TERMINALS};
use crate::plan::network::Doors;
use crate::sys::ahead::Made;
use crate::sys::mount::{self, Kind, Mounted, Tree};
use crate::sys::namespace::Own;
use crate::sys::{OfCall, SyscallError, descriptor, file, namespace, path, terminal};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why a run did not get its view.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The machine does not support what some namespaces need: a run without those is possible.
    #[error("{1}")]
    Unsupported(Missing, EnforceError),
    /// The machine does not support overlays: a run without them is possible.
    #[error("{0}")]
    NoOverlays(EnforceError),
    /// A step failed without which the run would be less protected.
    #[error("{0}")]
    Failed(#[from] EnforceError),
}

/// A step that some machines do not support.
pub trait Basic<T> {
    /// With what was tried.
    fn basic(self, what: &'static str) -> Result<T, ViewError>;
    /// The same, with a path.
    fn basic_at(self, what: &'static str, path: &Path) -> Result<T, ViewError>;
}

impl<T> Basic<T> for Result<T, SyscallError> {
    fn basic(self, what: &'static str) -> Result<T, ViewError> {
        self.map_err(|failed| by_kind(failed.is_passing(), EnforceError::new(what, failed)))
    }

    fn basic_at(self, what: &'static str, path: &Path) -> Result<T, ViewError> {
        self.map_err(|failed| by_kind(failed.is_passing(), EnforceError::at(what, path, failed)))
    }
}

fn by_kind(is_passing: bool, error: EnforceError) -> ViewError {
    if is_passing { ViewError::Failed(error) } else { ViewError::Unsupported(Missing::View, error) }
}

/// A view that was made. All of it must stay open as long as the view is used.
#[derive(Default)]
pub struct Entered {
    /// The terminals whose names the caller's terminals have inside.
    pub terminals: Vec<OwnedFd>,
    /// The directories in which new configurations are made.
    pub hooks: HookDirectories,
    /// The overlays in it.
    pub overlays: Overlays,
}

/// The directories of hooks below their mounts, of the repositories whose configurations may be replaced.
#[derive(Default)]
pub struct HookDirectories(BTreeMap<PathBuf, File>);

impl HookDirectories {
    /// The descriptors.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.0.values().map(AsRawFd::as_raw_fd)
    }

    fn put(&mut self, hooks: &Path, directory: File) {
        self.0.insert(hooks.to_path_buf(), directory);
    }

    /// Protects the new configuration in one of them, wherever it is renamed to. Returns the lower half of
    /// its inode number; 0 if there was not exactly one.
    pub fn protect_new_config(&self) -> u32 {
        let name = Path::new(NEW_CONFIG).file_name().unwrap_or_default();
        let mut protected = Vec::new();
        for directory in self.0.values() {
            let Ok(held) = descriptor::open_entry(directory, name.as_bytes()) else { continue };
            if mount::is_root(held.as_fd()) {
                continue;
            }
            let Ok(identity) = file::identity(held.as_fd()) else { return 0 };
            if cover(&held, &held).is_err() {
                return 0;
            }
            protected.push(identity.low_number());
        }
        if let [number] = protected[..] { number } else { 0 }
    }
}

/// Settles in the new namespaces: as the same user, in a network whose loopback interface is up. Returns the network's
/// cookie, and the sockets that lead out of it.
pub fn settle(
    own: &Own,
    made: Option<&Made>,
    doors: Option<&Doors>,
) -> Result<(Option<u64>, Vec<Door>), ViewError> {
    let cookie = match made {
        Some(made) => {
            made.settle().map_err(|error| failed(Missing::Network, "enter the network namespace", error))?
        }
        None => make_network(own)?,
    };
    let doors = doors.filter(|_| own.kinds.network).map(doors::open).transpose()?.unwrap_or_default();
    Ok((cookie, doors))
}

/// Becomes the same user in the new user namespace, and makes the network. Returns its cookie.
fn make_network(own: &Own) -> Result<Option<u64>, ViewError> {
    if own.kinds.user {
        let mapped = namespace::keep_identity(own.identity);
        mapped.map_err(|error| failed(Missing::Both, "map the user", error))?;
    }
    if !own.kinds.network {
        return Ok(None);
    }
    let made = namespace::new_network();
    made.map_err(|error| failed(Missing::Network, "make a network namespace", error))?;
    let cookie = namespace::loopback_up();
    let cookie = cookie.map_err(|error| failed(Missing::Network, "start the loopback interface", error))?;
    // A container with a read-only /proc/sys refuses it, which makes nothing less safe.
    let _ = namespace::open_low_ports();
    Ok(cookie)
}

fn failed(missing: Missing, what: &'static str, failed: SyscallError) -> ViewError {
    match failed.is_passing() {
        true => ViewError::Failed(EnforceError::new(what, failed)),
        false => ViewError::Unsupported(missing, EnforceError::new(what, failed)),
    }
}

/// Makes the view, with the explainer library at this path. An overlay may have been laid ahead.
pub fn enter(layout: &Layout, library: Option<&Path>, made: Option<&Made>) -> Result<Entered, ViewError> {
    mount::separate().basic("separate its mounts")?;
    close_devices(layout)?;
    let overlays = replaced::replace(&layout.private, library, made)?;
    let terminals = callers_terminals(layout)?;
    for System { kind, at, keep, closed } in &layout.systems {
        const MOUNT: &str = "mount '{}'";
        let kept = replaced::take(keep, MOUNT, at)?;
        mount::new(*kind, at).basic_at(MOUNT, at)?;
        if !kept.is_empty() {
            let ground = Ground::below(at).basic_at(MOUNT, at)?;
            replaced::put_back(&ground, kept, MOUNT, at)?;
        }
        closed.iter().try_for_each(|path| deny(path))?;
    }
    let mut entered =
        Entered { terminals: name_terminals(terminals)?, hooks: HookDirectories::default(), overlays };
    protect(layout, &mut entered.hooks, |_| true)?;
    if layout.shields_something() {
        // To renew lost mounts, the kernel must tell what is mounted.
        let told = place(Path::new("/")).and_then(|held| mount::holds_root(held.as_fd()));
        told.basic("look after what is protected")?;
    }
    let directory = &layout.directory;
    if layout.hides(directory) {
        let made = Ground::below(Path::new("/"))
            .and_then(|anywhere| replaced::make_place(&anywhere, directory, true, |_| false));
        made.basic_at("make '{}'", directory)?;
    }
    std::env::set_current_dir(directory).step_at("enter '{}'", directory)?;
    Ok(entered)
}

/// Remounts the mounts of these directories with nodev, except one that /dev is on.
fn close_devices(layout: &Layout) -> Result<(), ViewError> {
    const WHAT: &str = "close devices";
    if layout.without_devices.is_empty() {
        return Ok(());
    }
    let root = Path::new("/");
    let (_, whole) = mounted_at(root).basic(WHAT)?;
    let mut known = BTreeSet::from([mounted_at(Path::new(DEVICES)).basic(WHAT)?.1.number]);
    for directory in &layout.without_devices {
        let (place, mounted) = mounted_at(directory).basic(WHAT)?;
        if !known.insert(mounted.number) {
            continue;
        }
        let point = if mounted.number == whole.number { Ok(root) } else { mount_point(place) };
        mount::close_devices(point.basic(WHAT)?).basic(WHAT)?;
    }
    Ok(())
}

/// The mount that a path is on, or would be on, and the part of the path that is there.
fn mounted_at(path: &Path) -> Result<(&Path, Mounted), SyscallError> {
    match (place(path), path.parent()) {
        (Ok(held), _) => Ok((path, mount::of(held.as_fd())?)),
        // Where root may not look, the command may not either.
        (Err(failed), Some(above)) if path::says_missing(&failed.cause) || failed.errno() == libc::EACCES => {
            mounted_at(above)
        }
        (Err(failed), _) => Err(failed),
    }
}

/// Where the mount is mounted that a path is on.
fn mount_point(path: &Path) -> Result<&Path, SyscallError> {
    let (place, mounted) = mounted_at(path)?;
    match place.parent() {
        Some(above) if !mounted.is_point => mount_point(above),
        _ => Ok(place),
    }
}

/// A terminal of the caller's, by its number.
type Terminal = (u32, Tree);

fn callers_terminals(layout: &Layout) -> Result<Vec<Terminal>, ViewError> {
    let hold = |number: &u32| {
        let held = place(&Path::new(TERMINALS).join(number.to_string()));
        let tree = held.and_then(|held| Tree::of(held.as_fd()));
        tree.map(|tree| (*number, tree)).basic("keep the terminal")
    };
    layout.terminals.iter().map(hold).collect()
}

/// Gives the caller's terminals the names that they have outside: ttyname(3) looks for those. Each is
/// mounted on a new terminal of that name, which nobody uses and which exists as long as its other end is
/// open.
fn name_terminals(terminals: Vec<Terminal>) -> Result<Vec<OwnedFd>, ViewError> {
    const WHAT: &str = "name the terminal";
    let mut made = Vec::new();
    for (number, tree) in terminals {
        let multiplexer = Path::new(TERMINALS).join("ptmx");
        while made.iter().all(|(_, known)| *known != number) {
            made.push(terminal::open_controller(&multiplexer).basic(WHAT)?);
        }
        let named = Path::new(TERMINALS).join(number.to_string());
        place(&named).and_then(|held| tree.cover(held.as_fd())).basic(WHAT)?;
    }
    Ok(made.into_iter().map(|(controller, _)| controller).collect())
}

const PROTECT: &str = "protect '{}'";

/// Protects the paths of the layout that are wanted: parents before what is below them.
fn protect(
    layout: &Layout,
    hooks: &mut HookDirectories,
    wanted: impl Fn(&Path) -> bool,
) -> Result<(), EnforceError> {
    for path in layout.pins.iter().filter(|path| wanted(path)) {
        mount_on_itself(path, "pin '{}'", Ok)?;
        // The mount hides what was held below it.
        hooks.0.clear();
    }
    for path in layout.held_free().filter(|path| wanted(path)) {
        if path.is_symlink() {
            cover_link(path, OnLink::Nothing)?;
        } else {
            mount_on_itself(path, PROTECT, Tree::read_only)?;
        }
    }
    for path in layout.read_only.iter().filter(|path| wanted(path)) {
        let place = mount_on_itself(path, PROTECT, Tree::read_only)?;
        if path.file_name().is_some_and(|name| name == HOOKS)
            && layout.configs.iter().any(|repository| path.parent() == Some(repository))
        {
            hooks.put(path, place);
        }
    }
    for (link, over) in layout.links.iter().filter(|(link, _)| wanted(link)) {
        cover_link(link, *over)?;
    }
    for path in layout.denied.iter().filter(|path| wanted(path)) {
        deny(path)?;
    }
    Ok(())
}

/// Protects the files that a process outside has put in the place of protected ones: a mount goes with its
/// file, also if an editor has only written the file anew.
pub fn renew(layout: &Layout, hooks: &mut HookDirectories) -> Result<(), EnforceError> {
    // A path that is gone needs no protection.
    protect(layout, hooks, |path| descriptor::hold(path).is_ok_and(|held| !mount::is_root(held.as_fd())))
}

/// Removes the mounts that hide paths outside, so that a cleanup by path reaches them.
pub fn leave(layout: &Layout) {
    for private in &layout.private {
        mount::remove(&private.at);
        // Below it is the overlay that it has parts of.
        if private.stores.iter().any(|store| store.below == private.at) {
            mount::remove(&private.at);
        }
    }
    layout.held_free().for_each(|path| mount::remove(path));
    for watched in &layout.watched {
        watched.places().for_each(|place| mount::remove(&watched.above.join(place)));
    }
}

/// Keeps a directory that the command has made from being renamed or removed, with what is watched below it.
pub fn pin(path: &Path) -> Result<(), SyscallError> {
    let held = descriptor::hold(path).of("openat2")?;
    if mount::is_root(held.as_fd()) {
        return Ok(());
    }
    Tree::of(held.as_fd())?.cover(held.as_fd())
}

/// Whether a placeholder link is held at a path; one that is not yet is held now.
pub fn holds_link(path: &Path) -> Result<bool, SyscallError> {
    let Ok(held) = descriptor::hold(path) else { return Ok(false) };
    if mount::is_root(held.as_fd()) {
        // A directory is only pinned.
        return Ok(held.metadata().is_ok_and(|meta| !meta.is_dir()));
    }
    if !is_link(held.as_fd(), OsStr::new("")) {
        return Ok(false);
    }
    let nothing = descriptor::hold(Path::new(NOTHING)).of("openat2")?;
    cover(&held, &nothing).map(|()| true)
}

/// What is at a path without symbolic links, held open.
pub fn place(path: &Path) -> Result<File, SyscallError> {
    descriptor::hold(path).of("openat2")
}

/// Mounts a file or directory on itself, and returns what is below that mount.
fn mount_on_itself(
    path: &Path,
    what: &'static str,
    how: fn(Tree) -> Result<Tree, SyscallError>,
) -> Result<File, EnforceError> {
    let held = descriptor::hold(path).step_at(what, path)?;
    let covered = Tree::of(held.as_fd()).and_then(how).and_then(|tree| tree.cover(held.as_fd()));
    covered.map(|()| held).step_at(what, path)
}

/// Mounts a symbolic link on itself, or nothing on it.
fn cover_link(link: &Path, over: OnLink) -> Result<(), EnforceError> {
    let place = descriptor::hold(link).step_at(PROTECT, link)?;
    let nothing = Path::new(NOTHING);
    match over {
        OnLink::Itself => cover(&place, &place).step_at(PROTECT, link),
        OnLink::Nothing => {
            cover(&place, &descriptor::hold(nothing).step_at(PROTECT, nothing)?).step_at(PROTECT, link)
        }
    }
}

/// Mounts a file read-only on another.
fn cover(place: &File, file: &File) -> Result<(), SyscallError> {
    Tree::of(file.as_fd()).and_then(Tree::read_only).and_then(|tree| tree.cover(place.as_fd()))
}

/// A device on a mount with nodev: it cannot be opened at all.
const NOTHING: &str = "/dev/null";

fn deny(path: &Path) -> Result<(), EnforceError> {
    const DENY: &str = "deny '{}'";
    let place = descriptor::hold(path).step_at(DENY, path)?;
    let is_directory = place.metadata().is_ok_and(|meta| meta.is_dir());
    let covered = if is_directory {
        mount::new_on(Kind::Nothing, place.as_fd())
    } else {
        let nothing = Path::new(NOTHING);
        cover(&place, &descriptor::hold(nothing).step_at(DENY, nothing)?)
    };
    covered.step_at(DENY, path)
}
