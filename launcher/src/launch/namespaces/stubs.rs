//! What keeps a name from being made: nothing can be mounted where nothing is, so an empty directory stands there
//! during the run, and is removed afterwards.
//!
//! Several runs may be about the same names. Each holds a shared lock (flock(2)) on the directory that they are in,
//! and only who gets an exclusive one, being the last, removes them: removing what another run has mounted on would
//! take its mount away. A stub that a killed run left behind is known by its mode, and goes with the next.

use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use crate::sys::file::{self, Times};
use crate::sys::path::{self, says_missing};
use crate::sys::{Failed, access, memory, plain, process};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Of an empty directory that is one of ours: nobody else sets the sticky bit (S_ISVTX) where nobody can write.
const MODE: u32 = 0o1555;
const FILE_MODE: u32 = 0o444;
const STICKY: u32 = 0o1000;
const WRITABLE: u32 = 0o222;
/// How long the end of another run is waited for: on a busy disk it takes seconds to remove a directory.
const PATIENCE: Duration = Duration::from_secs(10);

/// A name that is kept from being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    /// Where.
    pub path: PathBuf,
    /// A file with these contents, where a directory would not do.
    pub contents: Option<&'static str>,
}

/// Whether nothing stands at a path, or a stub that a run made: another run's goes when that one ends.
pub fn is_free(path: &Path, contents: Option<&str>) -> bool {
    match path.symlink_metadata() {
        Ok(meta) => is_one(path, &meta, contents),
        Err(error) => says_missing(&error),
    }
}

/// Whether what stands at a path is a stub. It is asked about once: what one look has found, the next may not.
fn is_one(path: &Path, meta: &Metadata, contents: Option<&str>) -> bool {
    // Not by its mode alone: a command can give any of the user's directories that, and have what is denied taken
    // for a name to be kept.
    let is_empty = || contents.is_some() || holds_nothing(path, meta);
    looks_like_one(path, meta, contents).unwrap_or(false) && is_empty()
}

/// The same of a directory, whatever it holds.
fn looks_like_one(path: &Path, meta: &Metadata, contents: Option<&str>) -> io::Result<bool> {
    // The umask may have taken more.
    let own = meta.uid() == process::user() && meta.mode() & WRITABLE == 0;
    match contents {
        None => Ok(own && meta.is_dir() && meta.mode() & STICKY != 0),
        Some(contents) if own && meta.is_file() => holds(path, contents),
        Some(_) => Ok(false),
    }
}

/// Whether a directory is empty, or lets nobody in at all.
fn holds_nothing(path: &Path, meta: &Metadata) -> bool {
    const ANY_RIGHT: u32 = 0o777;
    meta.mode() & ANY_RIGHT == 0 || path.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}

fn holds(path: &Path, contents: &str) -> io::Result<bool> {
    let mut text = Vec::new();
    File::open(path)?.take(64).read_to_end(&mut text)?;
    Ok(text == contents.as_bytes())
}

/// Whether the command could make something at a path, and so a stub is of use. It has no capabilities: in another user's
/// directory root can do no more than others, and by the same token the supervisor could not remove the stub. Nor is
/// anything made on a read-only file system, by either of them.
pub fn can_be_made(path: &Path) -> bool {
    let Some(parent) = path.parent() else { return false };
    parent.metadata().is_ok_and(|meta| access::may_change(&meta)) && !access::is_read_only(parent)
}

/// The stubs of a run: dropped, they are gone.
#[derive(Debug, Default)]
pub struct Stubs {
    stubs: Vec<Stub>,
    locks: Vec<File>,
}

impl Stubs {
    /// Makes them.
    pub fn make(stubs: &[Stub]) -> Result<Stubs, Refusal> {
        let mut made = Stubs { stubs: stubs.to_vec(), locks: Vec::new() };
        let by_directory = by_directory(stubs);
        for directory in by_directory.keys() {
            let failed = |cause: &str| {
                let path = shown(directory);
                Refusal::new(format!("cannot keep names in '{path}' from being made: {cause}"))
            };
            let lock = File::open(directory).map_err(|e| failed(&plain(&e)))?;
            share(&lock).map_err(|e| failed(&e))?;
            made.locks.push(lock);
        }
        for (own, lock) in by_directory.values().zip(&made.locks) {
            let times = Times::of(lock);
            let kept = own.iter().try_for_each(|stub| stub.keep(lock));
            times.restore(lock);
            kept?;
        }
        Ok(made)
    }

    /// Removes those that no other run uses, and tells which are left although nobody does.
    pub fn end(mut self) -> Vec<PathBuf> {
        self.locks.clear();
        let left = self.remove();
        self.stubs.clear();
        left
    }

    /// The same, when this process's own locks are gone.
    pub fn remove(&self) -> Vec<PathBuf> {
        let all = by_directory(&self.stubs).into_iter();
        let left = all.flat_map(|(directory, own)| remove(directory, own));
        left.map(|stub| stub.path.clone()).collect()
    }
}

impl Drop for Stubs {
    fn drop(&mut self) {
        self.locks.clear();
        self.remove();
    }
}

fn by_directory(stubs: &[Stub]) -> BTreeMap<&Path, Vec<&Stub>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for stub in stubs {
        all.entry(stub.path.parent().unwrap_or(&stub.path)).or_default().push(stub);
    }
    all
}

/// Removes those of a directory if no other run uses it, and gives those that are left although none does.
fn remove<'s>(directory: &Path, mut stubs: Vec<&'s Stub>) -> Vec<&'s Stub> {
    let lock = File::open(directory).map_err(fs::TryLockError::Error);
    match lock.and_then(|lock| lock.try_lock().map(|()| lock)) {
        Ok(lock) => {
            let times = Times::of(&lock);
            stubs.retain(|stub| !stub.remove());
            times.restore(&lock);
        }
        Err(fs::TryLockError::WouldBlock) => stubs.clear(),
        Err(fs::TryLockError::Error(_)) => stubs.retain(|stub| path::is_there(&stub.path)),
    }
    stubs
}

/// Locks a directory with others, and waits for who has it alone: another run that removes its own. File systems without
/// locks are left as they are.
pub fn share(directory: &File) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match directory.try_lock_shared() {
            Ok(()) => return Ok(()),
            Err(fs::TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(fs::TryLockError::WouldBlock) => return Err("another process holds a lock on it".to_string()),
            Err(fs::TryLockError::Error(_)) => return Ok(()),
        }
    }
}

/// Makes a file that has these contents before it has the name, which has to be free.
fn place(directory: &File, name: &OsStr, contents: &str) -> Result<(), Failed> {
    let directory = directory.as_fd();
    let (file, temporary) = match file::create_unnamed(directory, FILE_MODE) {
        Ok(file) => (file, None),
        Err(_) => {
            let temporary = OsString::from(memory::random_name(".sbx-")?);
            (file::create_new(directory, &temporary, FILE_MODE)?, Some(temporary))
        }
    };
    let written = file::write_all(file.as_fd(), contents.as_bytes());
    let placed = written.and_then(|()| file::link(file.as_fd(), directory, name));
    if let Some(temporary) = temporary {
        file::unlink(directory, &temporary)?;
    }
    placed
}

impl Stub {
    fn keep(&self, directory: &File) -> Result<(), Refusal> {
        self.make(directory).map_err(|error| {
            let path = shown(&self.path);
            Refusal::new(format!("cannot keep '{path}' from being made: {}", plain(&error)))
        })
    }

    fn make(&self, directory: &File) -> io::Result<()> {
        let made = match self.contents {
            None => DirBuilder::new().mode(MODE).create(&self.path),
            Some(contents) => self.make_file(directory, contents),
        };
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.stands() => Ok(()),
            made => made,
        }
    }

    /// With its contents from the first moment on: git refuses a repository with an empty one, and who is killed before
    /// writing leaves that.
    fn make_file(&self, directory: &File, contents: &str) -> io::Result<()> {
        let name = self.path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        match place(directory, name, contents) {
            Ok(()) => Ok(()),
            Err(failed) if failed.errno() == libc::EEXIST => Err(failed.cause),
            // A file system without links, or no /proc.
            Err(_) => {
                let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&self.path);
                file.and_then(|mut file| {
                    // Half of it would not be known for one of ours.
                    let written = file.write_all(contents.as_bytes());
                    written.inspect_err(|_| drop(fs::remove_file(&self.path)))
                })
            }
        }
    }

    fn stands(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|meta| is_one(&self.path, &meta, self.contents))
    }

    /// Never what holds something, or is another's. Whether none of ours stands there then.
    fn remove(&self) -> bool {
        let look = |meta: Metadata| looks_like_one(&self.path, &meta, self.contents);
        let removed = match self.path.symlink_metadata().and_then(look) {
            Ok(false) => return true,
            Ok(true) if self.contents.is_some() => fs::remove_file(&self.path),
            Ok(true) => fs::remove_dir(&self.path),
            Err(error) => Err(error),
        };
        let is_anothers =
            |error: io::Error| error.kind() == io::ErrorKind::DirectoryNotEmpty || says_missing(&error);
        removed.map_or_else(is_anothers, |()| true)
    }
}
