//! Making a run's own view of the file system: the first process in new namespaces does it, before it starts the
//! command. Everything is mounted by descriptors of what was decided about, and no symbolic link is followed to it.

use super::git::{HOOKS, NEW_CONFIG};
use super::layout::{DEVICES, Layout};
use super::renewed::{Kept, Private, System, TERMINALS};
use crate::launch::child::Failure;
use crate::supervise::decode::shown;
use crate::sys::mount::{self, Kind, Tree};
use crate::sys::{Failed, descriptor, file, namespace, path, plain, terminal};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why a run did not get its view.
#[derive(Debug)]
pub enum Stop {
    /// The machine does not give what namespaces need: a run without them is possible.
    Unavailable(String),
    /// What was to be shielded could not be.
    Failed(Failure),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Unavailable(why) => f.write_str(why),
            Stop::Failed(failure) => failure.fmt(f),
        }
    }
}

trait Base<T> {
    fn base(self, what: &str) -> Result<T, Stop>;
}

impl<T> Base<T> for Result<T, Failed> {
    fn base(self, what: &str) -> Result<T, Stop> {
        self.map_err(|failed| match failed.is_passing() {
            true => Stop::Failed(Failure {
                step: what.to_string().into(),
                cause: failed.to_string(),
                exec_errno: None,
            }),
            false => Stop::Unavailable(format!("cannot {what}: {failed}")),
        })
    }
}

/// A view that was made. All of it has to stay open as long as it is used.
#[derive(Default)]
pub struct Entered {
    /// What gives the caller's terminals their names.
    pub terminals: Vec<OwnedFd>,
    /// Where new configurations come in.
    pub doors: Doors,
}

/// The directories of hooks of the repositories whose configurations may be replaced, below what is mounted on them.
#[derive(Default)]
pub struct Doors(Vec<(PathBuf, File)>);

impl Doors {
    /// The descriptors.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.0.iter().map(|(_, door)| door.as_raw_fd())
    }

    fn put(&mut self, hooks: &Path, door: File) {
        self.0.retain(|(path, _)| path != hooks);
        self.0.push((hooks.to_path_buf(), door));
    }

    /// Keeps the new configuration that stands in one of them from being changed, wherever it is renamed to. Returns the
    /// lower half of its inode's number; 0 if there was not exactly one.
    pub fn shield_new(&self) -> u32 {
        let name = Path::new(NEW_CONFIG).file_name().unwrap_or_default();
        let mut shielded = Vec::new();
        for (_, door) in &self.0 {
            let Ok(held) = descriptor::open_entry(door, name.as_bytes()) else { continue };
            if mount::is_root(held.as_fd()) {
                continue;
            }
            let Ok(identity) = file::identity(held.as_fd()) else { return 0 };
            if cover(&held, &held).is_err() {
                return 0;
            }
            shielded.push(identity.low_number());
        }
        if let [number] = shielded[..] { number } else { 0 }
    }
}

/// Makes the view.
pub fn enter(layout: &Layout) -> Result<Entered, Stop> {
    if layout.kinds.user {
        namespace::keep_identity(layout.identity).base("map the user")?;
    }
    mount::separate().base("separate its mounts")?;
    close_devices(layout)?;
    if layout.kinds.network {
        namespace::loopback_up().base("start the loopback interface")?;
        // Not in a container with a read-only /proc/sys. Nothing is less safe for it.
        let _ = namespace::open_low_ports();
    }
    for private in &layout.private {
        replace(private)?;
    }
    let terminals = outside(layout)?;
    for System { kind, at, keep } in &layout.systems {
        let what = format!("mount '{}'", shown(at));
        let kept = take(keep, &what)?;
        mount::new(*kind, at).base(&what)?;
        put_back(kept, &what)?;
    }
    let mut entered = Entered { terminals: name_terminals(terminals)?, doors: Doors::default() };
    shield_all(layout, &mut entered.doors, |_| true)?;
    if layout.shields_something() {
        // Who renews what is taken away has to see what is still there.
        let told = place(Path::new("/")).and_then(|held| mount::holds_root(held.as_fd()));
        told.base("look after what is protected")?;
    }
    if layout.hides(&layout.directory) {
        let directory = &layout.directory;
        make_place(directory, true).base(&format!("make '{}'", shown(directory)))?;
    }
    let moved = std::env::set_current_dir(&layout.directory);
    moved.map_err(|error| failure("enter", &layout.directory, plain(&error)))?;
    Ok(entered)
}

/// The mounts of these directories hold no devices any more, but for one that /dev is on.
fn close_devices(layout: &Layout) -> Result<(), Stop> {
    const WHAT: &str = "close devices";
    if layout.without_devices.is_empty() {
        return Ok(());
    }
    let mut known = BTreeSet::from([mounted_at(Path::new(DEVICES)).base(WHAT)?]);
    for directory in &layout.without_devices {
        let root = mounted_at(directory).base(WHAT)?;
        if known.insert(root) {
            mount::close_devices(root).base(WHAT)?;
        }
    }
    Ok(())
}

/// Where that is mounted which a path is on, or would be.
fn mounted_at(path: &Path) -> Result<&Path, Failed> {
    for path in path.ancestors() {
        match place(path) {
            Ok(held) if mount::holds_root(held.as_fd())? => return Ok(path),
            Ok(_) => {}
            // What root may not look into, the command may not either.
            Err(failed) if path::says_missing(&failed.cause) || failed.errno() == libc::EACCES => {}
            Err(failed) => return Err(failed),
        }
    }
    Ok(Path::new("/"))
}

/// A terminal of the caller's, by its number.
type Terminal = (u32, Tree);

fn outside(layout: &Layout) -> Result<Vec<Terminal>, Stop> {
    let hold = |number: &u32| {
        let held = place(&Path::new(TERMINALS).join(number.to_string()));
        let tree = held.and_then(|held| Tree::of(held.as_fd()));
        tree.map(|tree| (*number, tree)).base("keep the terminal")
    };
    layout.terminals.iter().map(hold).collect()
}

/// Has the caller's terminals be among the new ones what they are called outside: ttyname(3) goes by that. The name is
/// that of a new terminal, which nobody uses and which is there as long as its other end is open.
fn name_terminals(terminals: Vec<Terminal>) -> Result<Vec<OwnedFd>, Stop> {
    const WHAT: &str = "name the terminal";
    let mut made = Vec::new();
    for (number, tree) in terminals {
        let multiplexer = Path::new(TERMINALS).join("ptmx");
        while made.iter().all(|(_, known)| *known != number) {
            made.push(terminal::open_controller(&multiplexer).base(WHAT)?);
        }
        let named = Path::new(TERMINALS).join(number.to_string());
        place(&named).and_then(|held| tree.cover(held.as_fd())).base(WHAT)?;
    }
    Ok(made.into_iter().map(|(controller, _)| controller).collect())
}

/// Shields what is to be shielded, as far as it is wanted: parents before what is below them.
fn shield_all(layout: &Layout, doors: &mut Doors, wanted: impl Fn(&Path) -> bool) -> Result<(), Stop> {
    for path in layout.pins.iter().filter(|path| wanted(path)) {
        shield(path, "pin", Ok)?;
        // What was found below it is not what is seen from now on.
        doors.0.clear();
    }
    for path in layout.stubbed().filter(|path| wanted(path)) {
        shield(path, "protect", Tree::read_only)?;
    }
    for path in layout.read_only.iter().filter(|path| wanted(path)) {
        let place = shield(path, "protect", Tree::read_only)?;
        if path.file_name().is_some_and(|name| name == HOOKS)
            && layout.configs.iter().any(|repository| path.parent() == Some(repository))
        {
            doors.put(path, place);
        }
    }
    for (link, target) in layout.links.iter().filter(|(link, _)| wanted(link)) {
        cover_link(link, target.as_deref())?;
    }
    for path in layout.denied.iter().filter(|path| wanted(path)) {
        deny(path)?;
    }
    Ok(())
}

/// Shields what somebody outside has put in the place of something shielded: a mount goes with the file that it is
/// on, also where an editor has only written the file anew.
pub fn renew(layout: &Layout, doors: &mut Doors) -> Result<(), Stop> {
    // What is not there any more is nobody's loss.
    shield_all(layout, doors, |path| descriptor::hold(path).is_ok_and(|held| !mount::is_root(held.as_fd())))
}

/// Takes away what stands between a path outside and the same path inside: for who cleans up.
pub fn leave(layout: &Layout) {
    layout.private.iter().for_each(|private| mount::remove(&private.at));
    layout.stubbed().for_each(|path| mount::remove(path));
}

fn place(path: &Path) -> Result<File, Failed> {
    descriptor::hold(path).map_err(|cause| Failed { call: "openat2", cause })
}

/// Something that stays where it is, whatever is mounted above it.
struct Taken<'a> {
    path: &'a Path,
    is_directory: bool,
    tree: Tree,
}

fn take<'a>(keep: &'a [Kept], what: &str) -> Result<Vec<Taken<'a>>, Stop> {
    let take = |kept: &'a Kept| {
        let held = place(&kept.path).base(what)?;
        let is_directory = held.metadata().is_ok_and(|meta| meta.is_dir());
        let tree = Tree::of(held.as_fd()).and_then(|tree| tree.restricted(!kept.write, !kept.execute));
        Ok(Taken { path: &kept.path, is_directory, tree: tree.base(what)? })
    };
    keep.iter().map(take).collect()
}

fn put_back(taken: Vec<Taken<'_>>, what: &str) -> Result<(), Stop> {
    for Taken { path, is_directory, tree } in taken {
        // Below another one that was kept it is there, and that one may be read-only.
        if path.symlink_metadata().is_err() {
            make_place(path, is_directory).base(what)?;
        }
        place(path).and_then(|held| tree.cover(held.as_fd())).base(what)?;
    }
    Ok(())
}

fn replace(private: &Private) -> Result<(), Stop> {
    let at = &private.at;
    let what = format!("replace '{}'", shown(at));
    let kept = take(&private.keep, &what)?;
    match &private.from {
        Some(from) => {
            let tree = place(from).and_then(|held| Tree::of(held.as_fd())).base(&what)?;
            place(at).and_then(|held| tree.cover(held.as_fd())).base(&what)?;
        }
        None => mount::new(Kind::Directories, at).base(&what)?,
    }
    put_back(kept, &what)?;
    match private.from {
        Some(_) => Ok(()),
        None => mount::make_read_only(at).base(&what),
    }
}

/// Something of the same kind to mount on.
fn make_place(path: &Path, directory: bool) -> Result<(), Failed> {
    let failed = |cause| Failed { call: "mkdir", cause };
    let directories = if directory { Some(path) } else { path.parent() };
    directories.map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    if directory { Ok(()) } else { File::create(path).map(drop).map_err(failed) }
}

fn failure(verb: &str, path: &Path, cause: String) -> Stop {
    Stop::Failed(Failure { step: format!("{verb} '{}'", shown(path)).into(), cause, exec_errno: None })
}

fn hold(verb: &str, path: &Path) -> Result<File, Stop> {
    descriptor::hold(path).map_err(|error| failure(verb, path, plain(&error)))
}

/// Mounts a place on itself, and returns what is below that mount.
fn shield(path: &Path, verb: &str, how: fn(Tree) -> Result<Tree, Failed>) -> Result<File, Stop> {
    let held = hold(verb, path)?;
    let covered = Tree::of(held.as_fd()).and_then(how).and_then(|tree| tree.cover(held.as_fd()));
    covered.map(|()| held).map_err(|failed| failure(verb, path, failed.to_string()))
}

/// Has a symbolic link be a file, or nothing.
fn cover_link(link: &Path, target: Option<&Path>) -> Result<(), Stop> {
    const VERB: &str = "protect";
    let place = hold(VERB, link)?;
    let target = hold(VERB, target.unwrap_or(Path::new(NOTHING)))?;
    cover(&place, &target).map_err(|failed| failure(VERB, link, failed.to_string()))
}

/// Has a file be seen in the place of another, and not be changed there.
fn cover(place: &File, file: &File) -> Result<(), Failed> {
    Tree::of(file.as_fd()).and_then(Tree::read_only).and_then(|tree| tree.cover(place.as_fd()))
}

/// A device on a mount that gives no access to devices: it cannot be opened at all.
const NOTHING: &str = "/dev/null";

fn deny(path: &Path) -> Result<(), Stop> {
    const VERB: &str = "deny";
    let place = hold(VERB, path)?;
    let is_directory = place.metadata().is_ok_and(|meta| meta.is_dir());
    let covered = if is_directory {
        mount::new_on(Kind::Nothing, place.as_fd())
    } else {
        cover(&place, &hold(VERB, Path::new(NOTHING))?)
    };
    covered.map_err(|failed| failure(VERB, path, failed.to_string()))
}
