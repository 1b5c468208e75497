//! Removing a directory with whatever an untrusted command left in it.
//!
//! The tree may be deeper than the stack or the table of descriptors allows, have paths that are longer
//! than the kernel takes, and lack permissions. So this descends a few levels only. What lies deeper, or
//! cannot be removed where it is, is moved up into the directory itself, until everything is within reach.
//! Everything is reached through descriptors, and no link is followed: other processes of the command's
//! user cannot lead us out.

use crate::sys::{descriptor, file, memory};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of levels: each takes two descriptors.
const DEEPEST: usize = 16;

/// Removes a directory and everything below it.
pub fn remove(path: &Path) -> io::Result<()> {
    // The usual case: it is empty.
    if fs::remove_dir(path).is_ok() {
        return Ok(());
    }
    let (parent, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    let top = descriptor::open_entry(&descriptor::open_path(parent)?, name.as_bytes())?;
    Removal::of(&top)?.run();
    fs::remove_dir(path)
}

struct Removal<'a> {
    top: &'a File,
    /// Files that are moved up are named by this number, which the command cannot know, and another one.
    prefix: u64,
    moved: u64,
}

impl<'a> Removal<'a> {
    fn of(top: &'a File) -> io::Result<Removal<'a>> {
        let prefix = memory::random().map_err(|failed| failed.cause)?;
        Ok(Removal { top, prefix, moved: 0 })
    }

    /// Clears the directory again and again, as long as that changes something.
    fn run(&mut self) {
        let_in(self.top);
        let top = self.top;
        while self.clear(top, 0).is_ok_and(|changed| changed) {}
    }

    /// Removes what it can from a directory. Returns whether anything has changed.
    fn clear(&mut self, directory: &File, depth: usize) -> io::Result<bool> {
        let mut changed = false;
        for entry in fs::read_dir(inside(directory))? {
            let entry = entry?;
            let (name, is_directory) = (entry.file_name(), entry.file_type().is_ok_and(|kind| kind.is_dir()));
            changed |= unlink(directory, &name, is_directory)
                || self.descend(directory, &name, depth)
                || (depth > 0 && self.move_up(directory, &name));
        }
        Ok(changed)
    }

    /// Empties a directory in another, and removes it. Returns whether the other has changed.
    fn descend(&mut self, directory: &File, name: &OsStr, depth: usize) -> bool {
        if depth == DEEPEST {
            return false;
        }
        let Ok(below) = hold(directory, name) else { return false };
        let changed = self.clear(&below, depth + 1).is_ok_and(|changed| changed);
        unlink(directory, name, true) || (depth == 0 && changed)
    }

    fn move_up(&mut self, directory: &File, name: &OsStr) -> bool {
        // Moving a directory changes the `..` in it, so it must be writable.
        let Ok(_held) = hold(directory, name) else { return false };
        self.moved += 1;
        let target = inside(self.top).join(format!("{:016x}.{}", self.prefix, self.moved));
        fs::rename(inside(directory).join(name), target).is_ok()
    }
}

/// A directory in another, held and opened up.
fn hold(directory: &File, name: &OsStr) -> io::Result<File> {
    let held = descriptor::open_entry(directory, name.as_bytes())?;
    if !held.metadata()?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let_in(&held);
    Ok(held)
}

/// Gives the user access to a directory again. If that fails, so does removing.
fn let_in(directory: &File) {
    let _ = file::let_in(directory.as_fd());
}

/// Removes a file, a link or an empty directory.
fn unlink(directory: &File, name: &OsStr, is_directory: bool) -> bool {
    let directory = directory.as_fd();
    if is_directory {
        file::remove_directory(directory, name).is_ok()
    } else {
        file::unlink(directory, name).is_ok() || file::remove_directory(directory, name).is_ok()
    }
}

/// A held directory as the beginning of a path.
fn inside(directory: &File) -> PathBuf {
    PathBuf::from(descriptor::own_name(directory.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn trees_of_any_depth_go_and_what_links_lead_to_stays() {
        let outside = Scratch::create(None).unwrap();
        let kept = outside.path().join("kept");
        fs::write(&kept, "x").unwrap();
        let scratch = Scratch::create(None).unwrap();
        symlink(outside.path(), scratch.path().join("link")).unwrap();
        // Deeper than any path is long, and than there are descriptors.
        let mut directory = File::open(scratch.path()).unwrap();
        for _ in 0..5000 {
            fs::write(inside(&directory).join("file"), "x").unwrap();
            fs::create_dir(inside(&directory).join("empty")).unwrap();
            fs::create_dir(inside(&directory).join("d")).unwrap();
            directory = File::open(inside(&directory).join("d")).unwrap();
        }
        remove(scratch.path()).unwrap();
        assert!(!scratch.path().exists() && kept.exists());
    }

    #[test]
    fn closed_directories_go() {
        let scratch = Scratch::create(None).unwrap();
        let deep = scratch.path().join("a/b/c/d");
        fs::create_dir_all(&deep).unwrap();
        for directory in deep.ancestors().take(5) {
            fs::write(directory.join("file"), "x").unwrap();
            fs::set_permissions(directory, fs::Permissions::from_mode(0o0)).unwrap();
        }
        remove(scratch.path()).unwrap();
        assert!(!scratch.path().exists());
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let outside = Scratch::create(None).unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let scratch = Scratch::create(None).unwrap();
        let link = scratch.path().join("link");
        symlink(outside.path(), &link).unwrap();
        assert!(remove(&link).is_err());
        assert!(outside.path().join("kept").exists());
    }
}
