//! Directories below another one. They are opened so that no symbolic link leads out of it (openat2(2), Linux 5.6):
//! what lies there may be a command's.

use crate::sys::file_system::FileSystem;
use crate::sys::path::says_missing;
use crate::sys::resolve::openat2;
use crate::sys::{OfCall, SyscallError, descriptor, file, process};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom, StatxFlags};
use rustix::io::Errno;
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A directory that is open for reading.
pub struct Directory {
    held: OwnedFd,
    /// What was closed since then below it is opened to the user.
    opens: Option<SystemTime>,
    /// Whether its listing stands where it began.
    is_fresh: Cell<bool>,
}

/// When something came to be, and when its contents, mode, owner or name last changed.
#[derive(Clone, Copy, Debug)]
pub struct Ages {
    /// Not every file system knows it.
    pub born: Option<SystemTime>,
    /// No program can set it back (`st_ctim`, inode(7)).
    pub changed: SystemTime,
    /// Of its contents (`st_mtim`).
    pub modified: SystemTime,
    /// How many names it has. A directory has two, and one for each directory in it, where its file system counts
    /// them (inode(7)).
    pub names: u32,
    /// Whether something can be kept in it. Sockets and FIFOs are of no use without their programs.
    pub keeps: bool,
}

/// What an entry of a directory is, as far as a search goes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// Anything else.
    Other,
}

/// A time of the kernel's.
pub fn at(seconds: i64, nanoseconds: u32) -> SystemTime {
    let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(nanoseconds.into())
}

/// An absolute path as one below the root.
pub fn from_root(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Most files that are read are shorter.
const USUAL: usize = 4096;

/// How much of a directory is read at once.
pub const LISTING: usize = 32 * 1024;

const FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// openat2(2) refuses flags that mean nothing together.
const PLACE: OFlags = FLAGS.difference(OFlags::NONBLOCK).union(OFlags::PATH);

/// A directory of a name in this one, on the same file system.
const HERE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_XDEV);

impl Directory {
    /// The one that the others are below, as a place only: it need not be readable.
    pub fn open(path: &Path) -> Result<Directory, SyscallError> {
        rustix::fs::openat(CWD, path, FLAGS | OFlags::PATH, Mode::empty()).of("openat").map(Directory::from)
    }

    /// The same directory for who has to see all that is below it. What of the user's cannot be listed or entered, and
    /// has changed since, is opened to the user on the way to a directory below it, and stays so.
    pub fn opening(self, since: SystemTime) -> Directory {
        Directory { opens: Some(since), ..self }
    }

    /// One below it, by a relative path.
    pub fn below(&self, path: &Path) -> Result<Directory, SyscallError> {
        let found = self.below_with(path, FLAGS);
        let Some(since) = self.opens else { return found };
        let found = match found {
            Err(failed) if failed.errno() == libc::EACCES => {
                let way: Vec<&Path> = path.ancestors().collect();
                way.iter().rev().try_for_each(|above| open_to_user(&self.place(above)?, since))?;
                self.below_with(path, FLAGS)?
            }
            found => found?,
        };
        // One that may be listed and not entered tells nothing either.
        open_to_user(&found, since)?;
        Ok(found.opening(since))
    }

    /// Whether a path leads out of it, by links or otherwise. One that leads to nothing yet does not.
    pub fn leads_out(&self, path: &Path) -> bool {
        let found = openat2(&self.held, path, OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::BENEATH);
        found.is_err_and(|errno| !says_missing(&errno.into()))
    }

    /// The same as a place only: it need not be readable.
    pub fn place(&self, path: &Path) -> Result<Directory, SyscallError> {
        self.below_with(path, PLACE)
    }

    /// A directory in it as a place, made where there is nothing of that name. `None` where there is something else, a
    /// directory of another user's, or one of another file system.
    pub fn own_place(&self, name: &OsStr) -> Result<Option<Directory>, SyscallError> {
        let open = || openat2(&self.held, name, PLACE, HERE);
        let found = match open() {
            Err(Errno::NOENT) => match rustix::fs::mkdirat(&self.held, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => open(),
                Err(error) => return Err(error).of("mkdirat"),
            },
            found => found,
        };
        let found = match found {
            Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(None),
            found => found.of("openat2")?,
        };
        let found = Directory::from(found);
        Ok(found.is_own()?.then_some(found))
    }

    /// Changes entries in it. A command may have closed it: if it is the user's, it is opened to the user for that, and
    /// stays so.
    pub fn change<T>(&self, act: impl Fn() -> Result<T, SyscallError>) -> Result<T, SyscallError> {
        match act() {
            Err(failed) if failed.errno() == libc::EACCES && file::let_in(self.as_fd()).is_ok() => act(),
            done => done,
        }
    }

    /// Gives it another mode, if it has this one.
    pub fn change_mode(&self, from: u32, to: u32) -> Result<(), SyscallError> {
        match self.mode()? == Mode::from_bits_retain(from) {
            true => self.set_mode(Mode::from_bits_retain(to)),
            false => Ok(()),
        }
    }

    fn mode(&self) -> Result<Mode, SyscallError> {
        rustix::fs::fstat(&self.held).of("fstat").map(|stat| Mode::from_raw_mode(stat.st_mode))
    }

    fn set_mode(&self, mode: Mode) -> Result<(), SyscallError> {
        rustix::fs::chmod(descriptor::own_name(self.held.as_raw_fd()), mode).of("chmod")
    }

    /// Whether its files are in memory (tmpfs(5), ramfs). It may be that nobody can tell.
    pub fn is_in_memory(&self) -> bool {
        FileSystem::of_open(&self.held).is_ok_and(FileSystem::is_in_memory)
    }

    /// Whether it is the user's.
    pub fn is_own(&self) -> Result<bool, SyscallError> {
        Ok(rustix::fs::fstat(&self.held).of("fstat")?.st_uid == process::user())
    }

    /// A directory in it, of the same file system.
    pub fn beside(&self, name: &OsStr) -> Result<Directory, SyscallError> {
        openat2(&self.held, name, FLAGS, HERE).of("openat2").map(Directory::from)
    }

    fn below_with(&self, path: &Path, flags: OFlags) -> Result<Directory, SyscallError> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        openat2(&self.held, path, flags, resolve).of("openat2").map(Directory::from)
    }

    /// Whether no link is on the way to a directory below it, or in its place, as far as there is anything.
    pub fn is_straight(&self, path: &Path) -> bool {
        for above in path.ancestors() {
            match self.place(above) {
                Ok(_) => return true,
                Err(failed) if failed.errno() == libc::ENOENT => {}
                Err(_) => return false,
            }
        }
        false
    }

    /// Whether there is anything of a name in it.
    pub fn has(&self, name: &str) -> bool {
        file::identity_of(self.held.as_fd(), name.as_ref(), false).is_ok()
    }

    /// The same; true too if nobody can tell.
    pub fn may_have(&self, name: &OsStr) -> bool {
        let found = file::identity_of(self.held.as_fd(), name, false);
        found.map_or_else(|failed| !says_missing(&failed.cause), |_| true)
    }

    /// Calls `each` with every name in it, and what that is.
    pub fn each_entry(
        &self,
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(&OsStr, Entry),
    ) -> Result<(), SyscallError> {
        self.each_entry_at(0, buffer, |name, entry, _| {
            each(name, entry);
            ControlFlow::Continue(())
        })
    }

    /// The same from a place in the listing on, until it says to stop. It is told where the next entry is.
    pub fn each_entry_at(
        &self,
        place: u64,
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(&OsStr, Entry, u64) -> ControlFlow<()>,
    ) -> Result<(), SyscallError> {
        if !self.is_fresh.replace(false) || place != 0 {
            rustix::fs::seek(&self.held, SeekFrom::Start(place)).of("lseek")?;
        }
        let mut listing = RawDir::new(&self.held, buffer.spare_capacity_mut());
        while let Some(entry) = listing.next() {
            let entry = entry.of("getdents64")?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let is_own = name != "." && name != "..";
            let kind = |name| self.kind(name, entry.file_type());
            if is_own && each(name, kind(name), entry.next_entry_cookie()).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The names in it that are wanted, but so many at most; and whether there are more.
    pub fn names_like(
        &self,
        most: usize,
        mut wanted: impl FnMut(&OsStr) -> bool,
    ) -> Result<(Vec<OsString>, bool), SyscallError> {
        let (mut names, mut has_more) = (Vec::new(), false);
        self.each_entry_at(0, &mut Vec::with_capacity(LISTING), |name, _, _| {
            if wanted(name) {
                has_more = names.len() == most;
                names.extend((!has_more).then(|| name.to_os_string()));
            }
            if has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok((names, has_more))
    }

    /// The names in it.
    pub fn names(&self) -> Result<Vec<OsString>, SyscallError> {
        let mut names = Vec::new();
        self.each_entry(&mut Vec::with_capacity(LISTING), |name, _| names.push(name.to_os_string()))?;
        Ok(names)
    }

    /// Not every file system tells in its listings what an entry is.
    fn kind(&self, name: &OsStr, listed: FileType) -> Entry {
        let found = || file::identity_of(self.held.as_fd(), name, false).ok();
        match listed {
            FileType::Directory => Entry::Directory,
            FileType::Symlink => Entry::Link,
            FileType::Unknown => match found() {
                Some(found) if found.is_directory() => Entry::Directory,
                Some(found) if found.is_link() => Entry::Link,
                _ => Entry::Other,
            },
            _ => Entry::Other,
        }
    }

    /// The text of a regular file in it; `None` if there is nothing of that name, an error if it is longer.
    pub fn read(&self, name: &OsStr, longest: u64) -> Result<Option<Vec<u8>>, SyscallError> {
        let text = self.beginning(name, longest + 1)?;
        if text.as_ref().is_some_and(|text| text.len() as u64 > longest) {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge)).of("read");
        }
        Ok(text)
    }

    /// The first bytes of one.
    pub fn beginning(&self, name: &OsStr, most: u64) -> Result<Option<Vec<u8>>, SyscallError> {
        let Some(file) = self.regular(name)? else { return Ok(None) };
        let mut text = Vec::with_capacity(usize::try_from(most).unwrap_or(USUAL).min(USUAL));
        file.take(most).read_to_end(&mut text).of("read")?;
        Ok(Some(text))
    }

    /// A regular file in it, open for reading; `None` if there is nothing of that name.
    pub fn regular(&self, name: &OsStr) -> Result<Option<File>, SyscallError> {
        let file = match file::open_to_read(self.held.as_fd(), name) {
            Ok(file) => File::from(file),
            Err(failed) if failed.errno() == Errno::NOENT.raw_os_error() => return Ok(None),
            Err(failed) => return Err(failed),
        };
        if !file.metadata().of("fstat")?.is_file() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput)).of("read");
        }
        Ok(Some(file))
    }

    /// Whether an entry, or the directory itself by an empty name, has changed since a time.
    pub fn has_changed(&self, name: &OsStr, since: SystemTime) -> bool {
        self.ages(name).is_ok_and(|ages| ages.changed >= since)
    }

    /// The ages of an entry, or of the directory itself by an empty name.
    pub fn ages(&self, name: &OsStr) -> Result<Ages, SyscallError> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        let wanted =
            StatxFlags::BTIME | StatxFlags::CTIME | StatxFlags::MTIME | StatxFlags::NLINK | StatxFlags::TYPE;
        let found = rustix::fs::statx(&self.held, name, flags, wanted).of("statx")?;
        let kind = FileType::from_raw_mode(found.stx_mode.into());
        let knows_birth = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        Ok(Ages {
            born: knows_birth.then(|| at(found.stx_btime.tv_sec, found.stx_btime.tv_nsec)),
            changed: at(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
            modified: at(found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec),
            names: found.stx_nlink,
            keeps: !matches!(kind, FileType::Socket | FileType::Fifo),
        })
    }
}

/// Opens a directory of the user's that was closed since then.
fn open_to_user(directory: &Directory, since: SystemTime) -> Result<(), SyscallError> {
    let is_closed = !directory.mode()?.contains(Mode::RUSR | Mode::XUSR);
    match is_closed && directory.is_own()? && directory.has_changed("".as_ref(), since) {
        true => file::let_in(directory.as_fd()),
        false => Ok(()),
    }
}

impl From<OwnedFd> for Directory {
    fn from(held: OwnedFd) -> Directory {
        Directory { held, opens: None, is_fresh: Cell::new(true) }
    }
}

impl From<Directory> for File {
    fn from(directory: Directory) -> File {
        File::from(directory.held)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;
    use std::fs;

    #[test]
    fn no_link_leads_out_and_nothing_is_read_half() {
        let scratch = Scratch::create(None).unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir_all(at("top/real/deep")).unwrap();
        fs::create_dir_all(at("other/deep")).unwrap();
        std::os::unix::fs::symlink("../other", at("top/link")).unwrap();
        fs::write(at("top/text"), "four").unwrap();
        let top = Directory::open(&at("top")).unwrap();
        let below = |path: &str| top.below(Path::new(path)).map(drop).map_err(|failed| failed.errno());
        assert_eq!((below(""), below("real/deep")), (Ok(()), Ok(())));
        assert_eq!((below("link"), below("link/deep")), (Err(libc::ENOTDIR), Err(libc::ELOOP)));
        assert_eq!(below("real/../../other"), Err(libc::EXDEV));
        assert_eq!(top.read("text".as_ref(), 4).unwrap().unwrap(), b"four");
        assert!(top.read("text".as_ref(), 3).is_err() && top.read("link".as_ref(), 9).is_err());
        assert!(top.read("real".as_ref(), 9).is_err() && top.read("none".as_ref(), 9).unwrap().is_none());
        assert!(
            top.place(Path::new("real")).unwrap().has("deep")
                && !top.place(Path::new("")).unwrap().has("none")
        );
        let whole = top.below(Path::new("")).unwrap();
        // Each listing begins anew.
        assert_eq!(whole.names().unwrap(), whole.names().unwrap());
        let mut names = whole.names().unwrap();
        names.sort();
        assert_eq!(names, ["link", "real", "text"]);
    }
}
