//! Directories that are others inside: /tmp, where services have their sockets, the home. All of them are taken hold of
//! before the first is replaced, since one may be below another.

use crate::enforce::EnforceError;
use crate::enforce::mounts::{Basic, ViewError, place};
use crate::enforce::steps::EXPLAINER;
use crate::plan::home::{Store, UPPER};
use crate::plan::namespaces::renewed::{Kept, Private};
use crate::sys::ahead::Made;
use crate::sys::mount::{self, Kind, Tree};
use crate::sys::overlay::{Laid, Layers, Marked};
use crate::sys::path::says_missing;
use crate::sys::within::is_within;
use crate::sys::{OfCall, SyscallError, descriptor, file, memory, process};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Component, Path, PathBuf};

const REPLACE: &str = "replace '{}'";
const SOCKET: &str = "allow the socket '{}'";
const ANYWHERE: &str = "replace directories";
const OVERLAY: &str = "lay a directory of the run's own over '{}'";

/// The part of layers that the kernel works with.
const WORK: &str = "work";

/// The name that an entry gets which is in the way of a place for a mount.
const IN_THE_WAY: &str = "sbx-aside-";

/// A file that stays in its place, whatever is mounted above it.
pub struct Taken<'a> {
    path: &'a Path,
    is_directory: bool,
    tree: Tree,
}

/// A store as the run has it, which is not mounted anywhere yet.
struct Part<'a> {
    store: &'a Store,
    tree: Tree,
}

/// The overlays that are in use.
#[derive(Default)]
pub struct Overlays(Vec<Marked>);

impl Overlays {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes their marks.
    pub fn unmark(self) {
        self.0.iter().for_each(Marked::unmark);
    }
}

/// A directory that is replaced, with what takes its place.
struct Replacement<'a> {
    private: &'a Private,
    tree: Option<Tree>,
    overlays: Vec<Overlay<'a>>,
    kept: Vec<Taken<'a>>,
}

/// An overlay, which is not mounted yet.
struct Overlay<'a> {
    /// The stores that are parts of it.
    stores: &'a [Store],
    /// What it is laid over, and in whose place it is mounted.
    at: &'a Path,
    below: File,
    laid: Laid,
}

/// Where places for mounts are looked for and made.
pub struct Ground<'a> {
    at: &'a Path,
    held: File,
    /// Directories that the user was let into.
    open: RefCell<BTreeSet<PathBuf>>,
}

impl<'a> Ground<'a> {
    /// Below a directory by its real path.
    pub fn below(at: &'a Path) -> Result<Ground<'a>, SyscallError> {
        Ok(Ground { at, held: place(at)?, open: RefCell::default() })
    }
}

/// Replaces directories, parents first, and writes the explainer library at its path in one of them. Returns the
/// overlays that were laid for that.
pub fn replace(all: &[Private], library: Option<&Path>, made: Option<&Made>) -> Result<Overlays, ViewError> {
    let mut in_use = Overlays::default();
    let mut held = all.iter().map(|private| hold(private, made)).collect::<Result<Vec<_>, _>>()?;
    let mut laid = Vec::new();
    for Replacement { private, overlays, .. } in &mut held {
        // The one over the whole home is the first, and hides the places of the others.
        let of_one = std::mem::take(overlays).into_iter().rev();
        let stores = of_one.map(|overlay| parts(overlay, &private.at, &mut in_use));
        let mut stores = stores.collect::<Result<Vec<_>, _>>()?;
        stores.reverse();
        laid.push(stores);
    }
    let anywhere = Ground::below(Path::new("/")).basic(ANYWHERE)?;
    for (Replacement { private, tree, kept, .. }, stores) in held.into_iter().zip(laid) {
        let at = &private.at;
        match tree {
            Some(tree) => {
                // Below another one it may be gone.
                let place = make_place(&anywhere, at, true, |_| false).basic_at(REPLACE, at)?;
                tree.cover(place.as_fd()).basic_at(REPLACE, at)?;
            }
            None => mount::new(Kind::Directories, at).basic_at(REPLACE, at)?,
        }
        let ground = Ground::below(at).basic_at(REPLACE, at)?;
        let is_ours = |directory: &Path| is_within(directory, at);
        for (link, text) in &private.links {
            make_link(&ground, link, text, is_ours).basic_at(REPLACE, link)?;
        }
        for Part { store, tree } in stores.into_iter().flatten() {
            let place = make_place(&ground, &store.at, true, is_ours).basic_at(OVERLAY, &store.at)?;
            tree.cover(place.as_fd()).basic_at(OVERLAY, &store.at)?;
        }
        put_back(&ground, kept, REPLACE, at)?;
        for (path, is_directory) in &private.denied {
            // What an earlier run has put there is denied as it is.
            let is_there = place(path).is_ok_and(|held| held.metadata().is_ok_and(|meta| !meta.is_symlink()));
            if !is_there {
                make_place(&ground, path, *is_directory, is_ours).basic_at("make '{}'", path)?;
            }
        }
        if let Some(library) = library.filter(|library| library.parent() == Some(at)) {
            {
                let _umask = process::without_umask();
                std::fs::write(library, EXPLAINER).of("write")
            }
            .basic_at("write '{}'", library)?;
        }
        if private.from.is_none() {
            mount::make_read_only(at).basic_at(REPLACE, at)?;
        }
    }
    Ok(in_use)
}

/// Takes hold of everything before anything is mounted.
fn hold<'a>(private: &'a Private, made: Option<&Made>) -> Result<Replacement<'a>, ViewError> {
    let at = &private.at;
    let tree = |from: &Path| place(from).and_then(|held| Tree::of(held.as_fd()));
    let tree = private.from.as_deref().map(tree).transpose().basic_at(REPLACE, at)?;
    let together = private.stores.chunk_by(|one, next| one.layers == next.layers);
    let overlays = together.filter_map(|stores| lay(stores, made)).collect::<Result<_, _>>()?;
    let kept = take(&private.keep, REPLACE, at)?;
    Ok(Replacement { private, tree, overlays, kept })
}

/// The layers of the overlay over a directory, in the directory that has the run's own part.
pub fn layers(below: &Path, own: &Path) -> Result<Layers, SyscallError> {
    Layers::new(below, &own.join(UPPER), &own.join(WORK))
}

/// Lays the overlay that these stores are parts of, unless it was laid ahead.
fn lay<'a>(stores: &'a [Store], made: Option<&Made>) -> Option<Result<Overlay<'a>, ViewError>> {
    let Store { below: at, layers: own, .. } = stores.first()?;
    let overlay = || {
        let below = place(at).basic_at(OVERLAY, at)?;
        let layers = layers(at, own).basic_at(OVERLAY, at)?;
        let held = || layers.hold().or_else(|_| make_directories(own).and_then(|()| layers.hold()));
        let laid = match made.and_then(|made| made.laid(&layers)) {
            Some(laid) => laid,
            None => held().basic_at(OVERLAY, at)?.lay().map_err(|failed| no_overlays(at, failed))?,
        };
        Ok(Overlay { stores, at, below, laid })
    };
    Some(overlay())
}

/// Makes the directories for the layers of an overlay.
fn make_directories(own: &Path) -> Result<(), SyscallError> {
    let make = |name| DirBuilder::new().recursive(true).mode(0o700).create(own.join(name)).of("mkdir");
    [UPPER, WORK].into_iter().try_for_each(make)
}

fn no_overlays(at: &Path, failed: SyscallError) -> ViewError {
    match failed.is_passing() {
        true => ViewError::Failed(EnforceError::at(OVERLAY, at, failed)),
        false => ViewError::NoOverlays(EnforceError::at(OVERLAY, at, failed)),
    }
}

/// Copies the stores that are parts of an overlay. It is mounted in the place of what it is laid over for that. The
/// rest of it is nobody's business: where that is the directory that is `replaced` afterwards, it is out of sight then,
/// else it is unmounted. The kernel takes its time for that.
fn parts<'a>(
    Overlay { stores, at, below, laid }: Overlay<'a>,
    replaced: &Path,
    in_use: &mut Overlays,
) -> Result<Vec<Part<'a>>, ViewError> {
    in_use.0.push(laid.cover(below.as_fd()).map_err(|failed| no_overlays(at, failed))?);
    let top = place(at).basic_at(OVERLAY, at)?;
    let lay = |store: &'a Store| {
        let part = descriptor::hold_beneath(&top, &store.part).of("openat2");
        let tree = part.and_then(|part| Tree::of(part.as_fd())).basic_at(OVERLAY, &store.at)?;
        Ok(Part { store, tree })
    };
    let parts = stores.iter().map(lay).collect::<Result<_, ViewError>>()?;
    if at != replaced {
        mount::detach(top.as_fd()).basic_at(OVERLAY, at)?;
    }
    Ok(parts)
}

/// Takes hold of what stays, with the rights that it has.
pub fn take<'a>(keep: &'a [Kept], what: &'static str, at: &Path) -> Result<Vec<Taken<'a>>, ViewError> {
    let take = |kept: &'a Kept| {
        let held = place(&kept.path).basic_at(what, at)?;
        let kind = held.metadata().of("fstat").basic_at(what, at)?.file_type();
        if kept.is_socket && !kind.is_socket() {
            return Err(ViewError::Failed(EnforceError::at(SOCKET, &kept.path, no_socket())));
        }
        let is_directory = kind.is_dir();
        let tree = Tree::of(held.as_fd()).and_then(|tree| tree.restricted(!kept.write, !kept.execute));
        Ok(Taken { path: &kept.path, is_directory, tree: tree.basic_at(what, at)? })
    };
    keep.iter().map(take).collect()
}

/// That something else has come into the place of a socket since that was looked at.
fn no_socket() -> SyscallError {
    SyscallError { call: "fstat", cause: io::Error::from_raw_os_error(libc::ENOTSOCK) }
}

/// Mounts what stays where it was.
pub fn put_back(
    ground: &Ground<'_>,
    taken: Vec<Taken<'_>>,
    what: &'static str,
    at: &Path,
) -> Result<(), ViewError> {
    let mut done: Vec<&Path> = Vec::new();
    for Taken { path, is_directory, tree } in taken {
        let is_ours = |directory: &Path| {
            is_within(directory, at) && !done.iter().any(|kept| is_within(directory, kept))
        };
        let place = make_place(ground, path, is_directory, is_ours).basic_at(what, at)?;
        tree.cover(place.as_fd()).basic_at(what, at)?;
        done.push(path);
    }
    Ok(())
}

/// A file or directory to mount on. Commands of earlier runs may have put other things, and links, where it or a
/// directory above it is to be: no link is followed. What is in the way in a directory of the run's own gets another
/// name.
pub fn make_place(
    ground: &Ground<'_>,
    path: &Path,
    is_directory: bool,
    is_ours: impl Fn(&Path) -> bool,
) -> Result<File, SyscallError> {
    let ours = path.ancestors().skip(1).filter(|directory| is_ours(directory));
    for directory in ours {
        // One that was let into, all above it were too.
        if !ground.open.borrow_mut().insert(directory.to_path_buf()) {
            break;
        }
        let_in(directory);
    }
    // The usual case: it is there.
    if let Ok(held) = descriptor::hold(path)
        && held.metadata().is_ok_and(|meta| !meta.is_symlink() && meta.is_dir() == is_directory)
    {
        return Ok(held);
    }
    let below = path.strip_prefix(ground.at).map_err(io::Error::other).of("openat2")?;
    let mut above = ground.at.to_path_buf();
    let mut place = None;
    let mut parts = below.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut next = parts.next();
    while let Some(name) = next {
        next = parts.next();
        let directory = place.as_ref().unwrap_or(&ground.held);
        place = Some(entry(directory, name, is_directory || next.is_some(), is_ours(&above))?);
        above.push(name);
    }
    place.map_or_else(|| ground.held.try_clone().of("fcntl"), Ok)
}

/// A symbolic link. What is in its way gets another name.
fn make_link(
    ground: &Ground<'_>,
    link: &Path,
    text: &OsStr,
    is_ours: impl Fn(&Path) -> bool,
) -> Result<(), SyscallError> {
    let Some((above, name)) = link.parent().zip(link.file_name()) else { return Ok(()) };
    let directory = make_place(ground, above, true, is_ours)?;
    match file::make_link(text, directory.as_fd(), name) {
        Err(failed) if failed.errno() == libc::EEXIST => {}
        made => return made,
    }
    if file::read_link(directory.as_fd(), name).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let aside = memory::random_name(IN_THE_WAY)?;
    file::rename(directory.as_fd(), name, OsStr::new(&aside))?;
    file::make_link(text, directory.as_fd(), name)
}

/// Lets the user into a directory of the run's own, which an earlier command may have closed. A link is followed to no
/// other: the change is made to what was looked at.
fn let_in(directory: &Path) {
    let Ok(held) = descriptor::hold(directory) else { return };
    if held.metadata().is_ok_and(|meta| meta.is_dir()) {
        let _ = file::let_in(held.as_fd());
    }
}

/// An entry of a directory, made where it is missing.
fn entry(directory: &File, name: &OsStr, is_directory: bool, is_ours: bool) -> Result<File, SyscallError> {
    // Once for each: what is in the way, what is missing.
    for _ in 0..3 {
        match descriptor::open_entry(directory, name.as_bytes()) {
            Ok(found) => {
                let meta = found.metadata().of("fstat")?;
                if !meta.is_symlink() && meta.is_dir() == is_directory {
                    return Ok(found);
                }
                if !is_ours {
                    break;
                }
                let aside = memory::random_name(IN_THE_WAY)?;
                file::rename(directory.as_fd(), name, OsStr::new(&aside))?;
            }
            Err(error) if says_missing(&error) => {
                let made = match is_directory {
                    true => file::make_directory(directory.as_fd(), name, 0o700),
                    false => file::create_new(directory.as_fd(), name, 0o600).map(drop),
                };
                // Another run in the same home may have been faster.
                made.or_else(|failed| if failed.errno() == libc::EEXIST { Ok(()) } else { Err(failed) })?;
            }
            Err(error) => return Err(error).of("openat"),
        }
    }
    Err(io::Error::from(io::ErrorKind::ResourceBusy)).of("mkdirat")
}
