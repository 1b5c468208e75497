//! Directories that are others inside: /tmp, where services have their sockets, the home. All of them are taken hold of
//! before the first is replaced, since one may be below another.

use crate::enforce::EnforceError;
use crate::enforce::mounts::{Basic, ViewError, place};
use crate::plan::home::Store;
use crate::plan::namespaces::renewed::{Kept, Private};
use crate::sys::mount::{self, Kind, Tree};
use crate::sys::path::says_missing;
use crate::sys::within::is_within;
use crate::sys::{OfCall, SyscallError, descriptor, file, memory};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

const REPLACE: &str = "replace '{}'";
const OVERLAY: &str = "lay a directory of the run's own over '{}'";

/// The name that an entry gets which is in the way of a place for a mount.
const IN_THE_WAY: &str = "sbx-aside-";

/// The mark of an overlay that did not wait for the disk: the next one is refused while it is there.
const MARK: &str = "work/work/incompat/volatile";

/// A file that stays in its place, whatever is mounted above it.
pub struct Taken<'a> {
    path: &'a Path,
    is_directory: bool,
    tree: Tree,
}

/// The parts of an overlay.
struct Layers<'a> {
    store: &'a Store,
    below: File,
    upper: File,
    work: File,
}

/// A directory that is replaced, with what takes its place.
struct Replacement<'a> {
    private: &'a Private,
    tree: Option<Tree>,
    layers: Vec<Layers<'a>>,
    kept: Vec<Taken<'a>>,
}

/// Replaces directories, parents first.
pub fn replace(all: &[Private]) -> Result<(), ViewError> {
    let held = all.iter().map(hold).collect::<Result<Vec<_>, _>>()?;
    for Replacement { private, tree, layers, kept } in held {
        let at = &private.at;
        match tree {
            Some(tree) => {
                // Below another one it may be gone.
                let place = make_place(at, true, |_| false).basic_at(REPLACE, at)?;
                tree.cover(place.as_fd()).basic_at(REPLACE, at)?;
            }
            None => mount::new(Kind::Directories, at).basic_at(REPLACE, at)?,
        }
        let is_ours = |directory: &Path| is_within(directory, at);
        for (link, text) in &private.links {
            make_link(link, text, is_ours).basic_at(REPLACE, link)?;
        }
        layers.into_iter().try_for_each(|layers| lay_over(layers, at))?;
        put_back(kept, REPLACE, at)?;
        if private.from.is_none() {
            mount::make_read_only(at).basic_at(REPLACE, at)?;
        }
    }
    Ok(())
}

fn hold(private: &Private) -> Result<Replacement<'_>, ViewError> {
    let at = &private.at;
    let tree = |from: &Path| place(from).and_then(|held| Tree::of(held.as_fd()));
    let tree = private.from.as_deref().map(tree).transpose().basic_at(REPLACE, at)?;
    let layers = private.stores.iter().map(hold_layers).collect::<Result<_, _>>()?;
    let kept = take(&private.keep, REPLACE, at)?;
    Ok(Replacement { private, tree, layers, kept })
}

fn hold_layers(store: &Store) -> Result<Layers<'_>, ViewError> {
    let make = |name: &str| {
        let path = store.layers.join(name);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.of("mkdir").and_then(|()| place(&path)).basic_at(OVERLAY, &store.at)
    };
    let below = place(&store.below).basic_at(OVERLAY, &store.at)?;
    // The kernel wants somebody to look at the files first, which may be incomplete after a crash. Their programs did
    // not wait for the disk either.
    let mark = store.layers.join(MARK);
    let _ = std::fs::remove_file(mark.join("dirty")).and_then(|()| std::fs::remove_dir(mark));
    Ok(Layers { store, below, upper: make("upper")?, work: make("work")? })
}

fn lay_over(Layers { store, below, upper, work }: Layers<'_>, home: &Path) -> Result<(), ViewError> {
    let at = &store.at;
    let place = make_place(at, true, |directory| is_within(directory, home)).basic_at(OVERLAY, at)?;
    let laid = mount::overlay(below.as_fd(), upper.as_fd(), work.as_fd(), place.as_fd());
    laid.map_err(|failed| match failed.is_passing() {
        true => ViewError::Failed(EnforceError::at(OVERLAY, at, failed)),
        false => ViewError::NoOverlays(EnforceError::at(OVERLAY, at, failed)),
    })
}

/// Takes hold of what stays, with the rights that it has.
pub fn take<'a>(keep: &'a [Kept], what: &'static str, at: &Path) -> Result<Vec<Taken<'a>>, ViewError> {
    let take = |kept: &'a Kept| {
        let held = place(&kept.path).basic_at(what, at)?;
        let is_directory = held.metadata().is_ok_and(|meta| meta.is_dir());
        let tree = Tree::of(held.as_fd()).and_then(|tree| tree.restricted(!kept.write, !kept.execute));
        Ok(Taken { path: &kept.path, is_directory, tree: tree.basic_at(what, at)? })
    };
    keep.iter().map(take).collect()
}

/// Mounts what stays where it was.
pub fn put_back(taken: Vec<Taken<'_>>, what: &'static str, at: &Path) -> Result<(), ViewError> {
    let mut done: Vec<&Path> = Vec::new();
    for Taken { path, is_directory, tree } in taken {
        let is_ours = |directory: &Path| {
            is_within(directory, at) && !done.iter().any(|kept| is_within(directory, kept))
        };
        let place = make_place(path, is_directory, is_ours).basic_at(what, at)?;
        tree.cover(place.as_fd()).basic_at(what, at)?;
        done.push(path);
    }
    Ok(())
}

/// A file or directory to mount on. Commands of earlier runs may have put other things, and links, where it or a
/// directory above it is to be: no link is followed. What is in the way in a directory of the run's own gets another
/// name.
pub fn make_place(
    path: &Path,
    is_directory: bool,
    is_ours: impl Fn(&Path) -> bool,
) -> Result<File, SyscallError> {
    let ours = path.ancestors().skip(1).filter(|directory| is_ours(directory));
    ours.for_each(let_in);
    // The usual case: it is there.
    if let Ok(held) = descriptor::hold(path)
        && held.metadata().is_ok_and(|meta| !meta.is_symlink() && meta.is_dir() == is_directory)
    {
        return Ok(held);
    }
    let mut above = PathBuf::from("/");
    let mut place = descriptor::hold(Path::new("/")).of("openat2")?;
    let mut parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut next = parts.next();
    while let Some(name) = next {
        next = parts.next();
        place = entry(&place, name, is_directory || next.is_some(), is_ours(&above))?;
        above.push(name);
    }
    Ok(place)
}

/// A symbolic link. What is in its way gets another name.
fn make_link(link: &Path, text: &OsStr, is_ours: impl Fn(&Path) -> bool) -> Result<(), SyscallError> {
    let Some((above, name)) = link.parent().zip(link.file_name()) else { return Ok(()) };
    let directory = make_place(above, true, is_ours)?;
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
    let closed = |meta: Metadata| meta.is_dir() && meta.mode() & 0o700 != 0o700;
    if held.metadata().is_ok_and(closed) {
        let _ = file::open_up(&held);
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
