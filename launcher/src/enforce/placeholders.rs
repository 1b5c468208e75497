//! Placeholders block the creation of a name. Nothing can be mounted where no file is, so an empty
//! directory stands there during the run, and is removed afterwards.
//!
//! Several runs may need the same placeholder. Each holds a shared lock (flock(2)) on the directory that it
//! is in. Only a run that gets an exclusive lock, being the last, removes the placeholder: otherwise
//! another run would lose its mount. A placeholder that a killed run left behind is recognised by its mode
//! and emptiness, and removed with the next.
//!
//! Where a name is watched instead, a placeholder link comes there once something has been put aside
//! ([`crate::enforce::aside`]). It is removed at the end without a lock: a run that loses one watches the name again.

use crate::enforce::EnforceError;
use crate::enforce::error::Named;
use crate::plan::namespaces::Layout;
use crate::plan::namespaces::placeholder::{
    FILE_MODE, MODE, NOWHERE, Placeholder, Shape, looks_like_one, standing,
};
use crate::sys::attributes;
use crate::sys::beneath::{Directory, from_root};
use crate::sys::file::{self, Times};
use crate::sys::path::{self, says_missing};
use crate::sys::{OfCall, SyscallError, descriptor, memory, process};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum wait for the end of another run: on a busy disk it takes seconds to remove a directory.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The placeholders of a run, which are removed on drop.
#[derive(Debug, Default)]
pub struct Placeholders {
    placeholders: Vec<Placeholder>,
    /// Where links may come.
    watched: BTreeSet<PathBuf>,
    locks: RefCell<Vec<File>>,
}

impl Placeholders {
    /// Those of a layout, which are yet to be made.
    pub fn of(layout: &Layout) -> Placeholders {
        let Layout { placeholders, watched, .. } = layout;
        Placeholders {
            placeholders: placeholders
                .iter()
                .map(|(path, shape)| Placeholder { path: path.clone(), shape: *shape })
                .collect(),
            watched: watched
                .iter()
                .flat_map(|watched| watched.places().map(|place| watched.above.join(place)))
                .collect(),
            locks: RefCell::default(),
        }
    }

    /// Whether there are none to be made.
    pub fn is_empty(&self) -> bool {
        self.placeholders.is_empty()
    }

    /// Makes them.
    pub fn make(&self) -> Result<(), EnforceError> {
        let by_directory = by_directory(&self.placeholders);
        let mut locks = self.locks.borrow_mut();
        // A placeholder is recognised by its mode, from its first moment on.
        let _mask = process::without_umask();
        for directory in by_directory.keys() {
            const KEEP: &str = "keep names in '{}' from being made";
            let lock = open(directory).step_at(KEEP, directory)?;
            share(&lock).step_at(KEEP, directory)?;
            locks.push(lock);
        }
        for (own, lock) in by_directory.values().zip(locks.iter()) {
            let times = Times::of(lock);
            let kept = own.iter().try_for_each(|placeholder| placeholder.keep(lock));
            times.restore(lock);
            kept?;
        }
        Ok(())
    }

    /// Removes those that no other run uses. Returns those that are left although no run uses them.
    pub fn end(mut self) -> Vec<PathBuf> {
        self.locks.get_mut().clear();
        let left = self.remove();
        self.placeholders.clear();
        self.watched.clear();
        left
    }

    /// The same, after this process's own locks are released.
    pub fn remove(&self) -> Vec<PathBuf> {
        let all = by_directory(&self.placeholders).into_iter();
        let left = all.flat_map(|(directory, own)| remove(directory, own));
        let left = left.map(|placeholder| placeholder.path.clone());
        let is_gone = |path: &Path| removed(&hold(path.parent().unwrap_or(path)), path, Shape::Link);
        left.chain(self.watched.iter().filter(|path| !is_gone(path)).cloned()).collect()
    }
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        self.locks.get_mut().clear();
        self.remove();
    }
}

fn by_directory(placeholders: &[Placeholder]) -> BTreeMap<&Path, Vec<&Placeholder>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for placeholder in placeholders {
        all.entry(placeholder.path.parent().unwrap_or(&placeholder.path)).or_default().push(placeholder);
    }
    all
}

/// Opens a directory to lock it. Something else may have come into its place: that is not to be waited for, nor to get
/// other times. No link is followed to it: a command of another run may put one there.
fn open(directory: &Path) -> io::Result<File> {
    let opened = Directory::open(Path::new("/")).and_then(|root| root.below(from_root(directory)));
    opened.map(File::from).map_err(|failed| failed.cause)
}

/// Removes those of a directory if no other run uses it. Returns those that are left although none does.
fn remove<'s>(directory: &Path, mut placeholders: Vec<&'s Placeholder>) -> Vec<&'s Placeholder> {
    let lock = open(directory).map_err(fs::TryLockError::Error);
    match lock.and_then(|lock| lock.try_lock().map(|()| lock)) {
        Ok(lock) => {
            let (times, all) = (Times::of(&lock), placeholders.len());
            let held = hold(directory);
            placeholders.retain(|placeholder| !removed(&held, &placeholder.path, placeholder.shape));
            if placeholders.len() < all {
                times.restore(&lock);
            }
        }
        Err(fs::TryLockError::WouldBlock) => placeholders.clear(),
        Err(fs::TryLockError::Error(_)) => {
            placeholders.retain(|placeholder| path::is_there(&placeholder.path))
        }
    }
    placeholders
}

/// Takes a shared lock on a directory. If another run holds the exclusive lock, to remove its placeholders, waits for
/// that run. A file system without locks is no error.
pub fn share(directory: &File) -> Result<(), &'static str> {
    let start = Instant::now();
    loop {
        match directory.try_lock_shared() {
            Ok(()) => return Ok(()),
            Err(fs::TryLockError::WouldBlock) if start.elapsed() < LONGEST_WAIT => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(fs::TryLockError::WouldBlock) => return Err("another process holds a lock on it"),
            Err(fs::TryLockError::Error(_)) => return Ok(()),
        }
    }
}

/// Makes a file that has these contents before it has the name, which must be free.
fn place(held: &File, name: &OsStr, contents: &str) -> Result<(), SyscallError> {
    let directory = held.as_fd();
    let (file, temporary) = match file::create_unnamed(directory, FILE_MODE) {
        Ok(file) => (file, None),
        Err(_) => {
            let temporary = OsString::from(memory::random_name(".sbx-")?);
            (file::create_new(directory, &temporary, FILE_MODE)?, Some(temporary))
        }
    };
    let written = file::write_all(file.as_fd(), contents.as_bytes());
    let file = File::from(file);
    let decided = attributes::decides_about_new_files(held);
    let written =
        written.and_then(|()| if decided { attributes::set_mode(&file, FILE_MODE) } else { Ok(()) });
    let placed = written.and_then(|()| file::link(file.as_fd(), directory, name));
    if let Some(temporary) = temporary {
        file::unlink(directory, &temporary)?;
    }
    placed
}

impl Placeholder {
    fn keep(&self, directory: &File) -> Result<(), EnforceError> {
        self.make(directory).step_at("keep '{}' from being made", &self.path)
    }

    fn make(&self, directory: &File) -> io::Result<()> {
        let name = self.path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let made = match self.shape {
            Shape::Directory => make_directory(directory, name),
            Shape::File(contents) => make_file(directory, name, contents),
            Shape::Link => file::make_link(OsStr::new(NOWHERE), directory.as_fd(), name),
        };
        let stands = || standing(&held(directory, name), self.shape).is_ok_and(|standing| standing.is_some());
        match made {
            Err(failed) if failed.errno() == libc::EEXIST && stands() => Ok(()),
            made => made.map_err(|failed| failed.cause),
        }
    }
}

/// With the mode by which it is recognised, whatever an access list for new files makes of it.
fn make_directory(directory: &File, name: &OsStr) -> Result<(), SyscallError> {
    file::make_directory(directory.as_fd(), name, MODE)?;
    if !attributes::decides_about_new_files(directory) {
        return Ok(());
    }
    let made = descriptor::hold_beneath(directory, Path::new(name)).of("openat2")?;
    attributes::set_mode(&made, MODE)
}

/// The file has its contents from the first moment on: a process that is killed before writing would leave an empty
/// file, and git refuses a repository with that.
fn make_file(directory: &File, name: &OsStr, contents: &str) -> Result<(), SyscallError> {
    match place(directory, name, contents) {
        Err(failed) if failed.errno() != libc::EEXIST => {}
        placed => return placed,
    }
    // A file system without links, or no /proc.
    let file = file::create_new(directory.as_fd(), name, FILE_MODE)?;
    let written = file::write_all(file.as_fd(), contents.as_bytes());
    // A file with half of its contents would not be recognised as a placeholder.
    written.inspect_err(|_| drop(file::unlink(directory.as_fd(), name)))
}

/// The path of a name in a directory that is open, whatever leads to that by now.
fn held(directory: impl AsFd, name: &OsStr) -> PathBuf {
    PathBuf::from(descriptor::own_name(directory.as_fd().as_raw_fd())).join(name)
}

/// Holds a directory from which placeholders are removed. No link is followed to it: a command of another run may put
/// one there.
fn hold(directory: &Path) -> Result<Directory, SyscallError> {
    Directory::open(Path::new("/")).and_then(|root| root.place(from_root(directory)))
}

/// Removes a placeholder from its directory. Returns true if none of ours is left: it was removed, is gone, or is now
/// something else.
fn removed(directory: &Result<Directory, SyscallError>, path: &Path, wanted: Shape) -> bool {
    let is_anothers = |failed: &SyscallError| {
        let kind = failed.cause.kind();
        matches!(kind, io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory)
            || says_missing(&failed.cause)
    };
    let Some(name) = path.file_name() else { return true };
    match directory.as_ref().map(|directory| remove_from(directory, name, wanted)) {
        Ok(Ok(())) => true,
        Ok(Err(failed)) => is_anothers(&failed),
        Err(failed) => is_anothers(failed),
    }
}

fn remove_from(directory: &Directory, name: &OsStr, wanted: Shape) -> Result<(), SyscallError> {
    let held = held(directory.as_fd(), name);
    let look = |meta: Metadata| looks_like_one(&held, &meta, wanted);
    match held.symlink_metadata().and_then(look).of("stat")? {
        None => Ok(()),
        Some(Shape::Directory) => {
            let removed = directory.change(|| file::remove_directory(directory.as_fd(), name));
            removed.inspect_err(|failed| {
                // Somebody outside has put something there, and it is an ordinary directory from now on.
                if failed.errno() == libc::ENOTEMPTY {
                    let _ = directory.below(Path::new(name)).and_then(|own| own.change_mode(MODE, 0o755));
                }
            })
        }
        Some(_) => directory.change(|| file::unlink(directory.as_fd(), name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;

    /// A command of another run may put it there between the plan and this.
    #[test]
    fn no_link_is_followed_to_where_they_are_made() {
        let scratch = Scratch::create(None).unwrap();
        let [real, link] = ["real", "link"].map(|name| scratch.path().join(name));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        for shape in [Shape::Directory, Shape::File("./\n"), Shape::Link] {
            let of = |directory: &Path| {
                let mut all = Placeholders::default();
                all.placeholders.push(Placeholder { path: directory.join("name"), shape });
                all
            };
            let (through, own) = (of(&link), of(&real));
            assert!(through.make().is_err());
            assert_eq!(fs::read_dir(&real).unwrap().count(), 0, "{shape:?}");
            own.make().unwrap();
            assert_eq!(fs::read_dir(&real).unwrap().count(), 1, "{shape:?}");
            assert!(own.end().is_empty() && fs::read_dir(&real).unwrap().count() == 0, "{shape:?}");
        }
    }
}
