//! The places in a private home on which something was mounted. They stay when the run has ended: the next run mounts
//! there again. One that it does not use would be an empty file or directory where there is to be nothing, so it is
//! removed before.
//!
//! Which there are is written down beside the home, where no command can write. A place is removed only while no other
//! run uses the home, and only if nothing has been put into it.

use crate::enforce::EnforceError;
use crate::enforce::error::Named;
use crate::enforce::home::Held;
use crate::plan::home::PrivateHome;
use crate::plan::namespaces::Layout;
use crate::sys::beneath::Directory;
use crate::sys::{OfCall, SyscallError, file, process};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file that lists them, each relative to the home and with a NUL behind it.
const LIST: &str = "places";
const SETTLE: &str = "remove what earlier runs mounted on in '{}'";

/// Removes the places that this run does not use, and writes down those that it does.
pub fn settle(home: &PrivateHome, held: &Held, layout: &Layout) -> Result<(), EnforceError> {
    let (used, list) = (used(home, layout), home.directory.with_file_name(LIST));
    let known = parsed(&file::read(&list).unwrap_or_default());
    if known == used {
        return Ok(());
    }
    let unused: Vec<PathBuf> = known.difference(&used).cloned().collect();
    if !unused.is_empty() {
        // Both before another run begins: what it makes is not to be forgotten.
        let clear =
            || remove(&home.directory, &unused).and_then(|()| note(&list, &used, &unused).of("write"));
        if let Some(cleared) = held.alone(clear).step_at(SETTLE, &home.directory)? {
            return cleared.step_at(SETTLE, &home.directory);
        }
    }
    note(&list, &used, &[]).step_at(SETTLE, &list)
}

/// Whether something was mounted at a path in an earlier run, and this one does not use it.
pub fn is_left_over(home: &PrivateHome, layout: &Layout, path: &Path) -> bool {
    let known = || parsed(&file::read(&home.directory.with_file_name(LIST)).unwrap_or_default());
    let below = path.strip_prefix(&home.at).ok();
    below.is_some_and(|below| known().contains(below) && !used(home, layout).contains(below))
}

/// Other runs may be writing to the list as well.
fn note(list: &Path, used: &BTreeSet<PathBuf>, gone: &[PathBuf]) -> io::Result<()> {
    // Whatever mask the caller has, later runs read it.
    let _mask = process::without_umask();
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(list)?;
    let _ = file.lock();
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let mut all = parsed(&text);
    all.retain(|path| !gone.contains(path));
    all.extend(used.iter().cloned());
    let text: Vec<u8> = all.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
    file.set_len(0)?;
    file.write_all_at(&text, 0)
}

fn parsed(text: &[u8]) -> BTreeSet<PathBuf> {
    let names = text.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

/// Where this run mounts something in its home, or makes a link.
pub fn used(home: &PrivateHome, layout: &Layout) -> BTreeSet<PathBuf> {
    let of_home = layout.private.iter().filter(|private| private.at == home.at);
    let paths = of_home.flat_map(|private| {
        let kept = private.keep.iter().map(|kept| &kept.path);
        let stores = private.stores.iter().map(|store| &store.at);
        kept.chain(stores).chain(private.links.keys()).chain(private.denied.keys())
    });
    paths.filter_map(|path| path.strip_prefix(&home.at).ok()).map(Path::to_path_buf).collect()
}

/// Removes what is still empty, and the directories that were made for it.
fn remove(home: &Path, places: &[PathBuf]) -> Result<(), SyscallError> {
    let top = Directory::open(home)?;
    for place in places.iter().rev() {
        let mut next = Some(place.as_path());
        while let Some(path) = next.filter(|path| remove_empty(&top, path)) {
            next = path.parent();
        }
    }
    Ok(())
}

/// Whether there was something, and it is gone.
fn remove_empty(top: &Directory, path: &Path) -> bool {
    let Some((above, name)) = path.parent().zip(path.file_name()) else { return false };
    let Ok(directory) = top.place(above) else { return false };
    let directory = directory.as_fd();
    let removed = match file::identity_of(directory, name, false) {
        Ok(found) if found.is_link() || file::is_empty(directory, name) => file::unlink(directory, name),
        Ok(_) => file::remove_directory(directory, name),
        Err(_) => return false,
    };
    removed.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_empty_goes_and_no_link_is_followed() {
        let scratch = Scratch::create(None).unwrap();
        let (home, outside) = (scratch.path().join("home"), scratch.path().join("outside"));
        for directory in ["a/b/c", "full/x", "empty"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        fs::create_dir_all(outside.join("empty")).unwrap();
        for name in ["a/file", "full/x/y", "outside"] {
            fs::write(home.join(name), "").unwrap();
        }
        fs::write(home.join("written"), "x").unwrap();
        fs::write(outside.join("file"), "").unwrap();
        symlink(&outside, home.join("link")).unwrap();
        symlink(&outside, home.join("way")).unwrap();
        let places = [
            "a/b/c",
            "a/file",
            "full/x",
            "link",
            "missing/x",
            "way/empty",
            "way/file",
            "written",
            "../outside/file",
        ];
        remove(&home, &places.map(PathBuf::from)).unwrap();
        let mut left: Vec<_> = fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, ["empty", "full", "outside", "way", "written"]);
        assert!(
            home.join("full/x/y").exists() && outside.join("file").exists() && outside.join("empty").exists()
        );
    }
}
