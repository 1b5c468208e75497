//! Files by the descriptor of their directory, so that renaming what leads to them changes nothing.

use crate::sys::descriptor::{self, by_number, poll_entries};
use crate::sys::number::FileNumber;
use crate::sys::resolve::openat2;
use crate::sys::{OfCall, SyscallError, memory};
use rustix::buffer::spare_capacity;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Stat, StatxFlags,
};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::{OsStr, OsString};
use std::fs::{File, FileTimes, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The file that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    number: FileNumber,
    kind: FileType,
    mode: u32,
}

impl Identity {
    fn of(stat: Stat) -> Identity {
        let kind = FileType::from_raw_mode(stat.st_mode);
        Identity { number: FileNumber::from(&stat), kind, mode: stat.st_mode }
    }

    /// Whether it is a regular file.
    pub fn is_regular(self) -> bool {
        self.kind == FileType::RegularFile
    }

    /// Whether it is this very file, with whatever mode.
    pub fn is(self, other: Identity) -> bool {
        self.number == other.number
    }

    /// The lower half of its inode number.
    pub fn low_number(self) -> u32 {
        self.number.low_inode()
    }

    /// The bits of its mode that chmod(2) sets.
    pub fn permissions(self) -> u32 {
        self.mode & 0o7777
    }

    /// Whether it is a symbolic link.
    pub fn is_link(self) -> bool {
        self.kind == FileType::Symlink
    }

    /// Whether it is a directory.
    pub fn is_directory(self) -> bool {
        self.kind == FileType::Directory
    }
}

/// What a name takes on the disk.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// In allocated blocks.
    pub bytes: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Its number, where it is a file with several names.
    pub shared: Option<u64>,
}

/// What a name in a directory takes on the disk; a symbolic link itself.
pub fn space_of(directory: BorrowedFd<'_>, name: &OsStr) -> Result<Space, SyscallError> {
    const BLOCK: u64 = 512;
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).of("stat")?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let shared = (!is_directory && stat.st_nlink > 1).then_some(stat.st_ino);
    let blocks = u64::try_from(stat.st_blocks).unwrap_or_default();
    Ok(Space { bytes: blocks.saturating_mul(BLOCK), is_directory, shared })
}

/// Opens a directory as a place (O_PATH).
pub fn open_directory(path: &Path) -> Result<OwnedFd, SyscallError> {
    open(CWD, path.as_os_str(), OFlags::PATH | OFlags::DIRECTORY, 0)
}

/// Whether a path leads to a directory that was opened by it: others may have moved it away, and put another one there.
pub fn leads_to(path: &Path, directory: BorrowedFd<'_>) -> bool {
    let there = open_directory(path).and_then(|there| identity(there.as_fd()));
    identity(directory).is_ok_and(|held| there.is_ok_and(|there| there.is(held)))
}

/// Neither follows a symbolic link, nor waits for a FIFO, nor takes a terminal.
const CAREFULLY: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens or makes a file that is only ever added to; a symbolic link is not followed, a FIFO not waited for.
pub fn open_to_append(directory: BorrowedFd<'_>, name: &OsStr, mode: u32) -> Result<OwnedFd, SyscallError> {
    open(directory, name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | CAREFULLY, mode)
}

/// Opens a file to be read; a symbolic link is not followed, a FIFO not waited for.
pub fn open_to_read(directory: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, SyscallError> {
    open(directory, name, OFlags::RDONLY | CAREFULLY, 0)
}

/// The same by a path in which no link at all is followed (openat2(2), Linux 5.6).
pub fn open_without_links(path: &Path) -> Result<OwnedFd, SyscallError> {
    let flags = OFlags::RDONLY | CAREFULLY | OFlags::CLOEXEC;
    openat2(CWD, path, flags, ResolveFlags::NO_SYMLINKS).of("openat2")
}

/// All of a file that is mostly short, as [`std::fs::read`] with half of its calls.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(read_most(&file, u64::MAX)?.unwrap_or_default())
}

/// All of a file that others may have put there. It is an error of kind `InvalidInput` where it is no regular file, and
/// of kind `FileTooLarge` where it is longer. A FIFO is not waited for, a device not opened.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let is_regular = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let no_file = || io::Error::from(io::ErrorKind::InvalidInput);
    if !is_regular(&rustix::fs::stat(path)?) {
        return Err(no_file());
    }
    // It may be another one by now.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    if !is_regular(&rustix::fs::fstat(&file)?) {
        return Err(no_file());
    }
    read_most(&file, most)?.ok_or_else(|| io::ErrorKind::FileTooLarge.into())
}

/// The rest of a file that may be long: nothing if there is more.
pub fn read_most(file: impl AsFd, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::with_capacity(4096);
    while retry_on_intr(|| rustix::io::read(&file, spare_capacity(&mut text)))? > 0 {
        if text.len() as u64 > most {
            return Ok(None);
        }
        text.reserve(1024);
    }
    Ok(Some(text))
}

/// Opens a file, or makes it; a symbolic link is not followed.
pub fn open_or_create(directory: BorrowedFd<'_>, name: &OsStr, mode: u32) -> Result<OwnedFd, SyscallError> {
    open(directory, name, OFlags::RDWR | OFlags::CREATE | CAREFULLY, mode)
}

/// A new file without a name (O_TMPFILE), which [`link`] can give it one.
pub fn create_unnamed(directory: BorrowedFd<'_>, mode: u32) -> Result<OwnedFd, SyscallError> {
    open(directory, OsStr::new("."), OFlags::WRONLY | OFlags::TMPFILE, mode)
}

/// A new file: an error if there is anything of that name.
pub fn create_new(directory: BorrowedFd<'_>, name: &OsStr, mode: u32) -> Result<OwnedFd, SyscallError> {
    open(directory, name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode)
}

fn open(directory: BorrowedFd<'_>, name: &OsStr, flags: OFlags, mode: u32) -> Result<OwnedFd, SyscallError> {
    rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, Mode::from_bits_retain(mode)).of("open")
}

/// Gives a file made by [`create_unnamed`] a name that nothing has yet.
pub fn link(file: BorrowedFd<'_>, directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), SyscallError> {
    // The way that needs no privilege on any kernel.
    let own = descriptor::own_name(file.as_raw_fd());
    rustix::fs::linkat(CWD, own, directory, name, AtFlags::SYMLINK_FOLLOW).of("linkat")
}

/// Puts one name in the place of another of the same directory.
pub fn rename(directory: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), SyscallError> {
    rename_to(directory, from, directory, to)
}

/// The same into another directory.
pub fn rename_to(
    directory: BorrowedFd<'_>,
    from: &OsStr,
    other: BorrowedFd<'_>,
    to: &OsStr,
) -> Result<(), SyscallError> {
    rustix::fs::renameat(directory, from, other, to).of("rename")
}

/// Has two names of a directory stand for each other's file (RENAME_EXCHANGE, rename(2)). Not every file system can.
pub fn exchange(directory: BorrowedFd<'_>, one: &OsStr, other: &OsStr) -> Result<(), SyscallError> {
    rustix::fs::renameat_with(directory, one, directory, other, RenameFlags::EXCHANGE).of("renameat2")
}

/// Lets the user into a directory, which a command may have closed. It may be held open as a place.
pub fn let_in(directory: BorrowedFd<'_>) -> Result<(), SyscallError> {
    let mode = Mode::from_raw_mode(rustix::fs::fstat(directory).of("fstat")?.st_mode);
    if mode.contains(Mode::RWXU) {
        return Ok(());
    }
    rustix::fs::chmod(descriptor::own_name(directory.as_raw_fd()), mode | Mode::RWXU).of("chmod")
}

/// Makes a symbolic link.
pub fn make_link(to: &OsStr, directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), SyscallError> {
    rustix::fs::symlinkat(to, directory, name).of("symlink")
}

/// Removes a name.
pub fn unlink(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), SyscallError> {
    rustix::fs::unlinkat(directory, name, AtFlags::empty()).of("unlink")
}

/// Makes a directory.
pub fn make_directory(directory: BorrowedFd<'_>, name: &OsStr, mode: u32) -> Result<(), SyscallError> {
    rustix::fs::mkdirat(directory, name, Mode::from_bits_retain(mode)).of("mkdir")
}

/// Removes an empty directory.
pub fn remove_directory(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), SyscallError> {
    rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR).of("rmdir")
}

/// What an open file is.
pub fn identity(file: BorrowedFd<'_>) -> Result<Identity, SyscallError> {
    rustix::fs::fstat(file).map(Identity::of).of("stat")
}

/// What a name in a directory stands for: a symbolic link for itself, or for where it leads.
pub fn identity_of(directory: BorrowedFd<'_>, name: &OsStr, follow: bool) -> Result<Identity, SyscallError> {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    rustix::fs::statat(directory, name, flags).map(Identity::of).of("stat")
}

/// Whether a name in a directory stands for a file without contents.
pub fn is_empty(directory: BorrowedFd<'_>, name: &OsStr) -> bool {
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    found
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_size == 0)
}

/// Which file it is, and when it was made, as far as its file system knows: a number alone may be used again.
pub type Born = ([u32; 2], u64, Option<(i64, u32)>);

/// The file at a path, which no other one will be.
pub fn born(path: &Path, follow: bool) -> Result<Born, SyscallError> {
    let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = rustix::fs::statx(CWD, path, flags, wanted).of("statx")?;
    let is_known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let made = is_known.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec));
    Ok(([found.stx_dev_major, found.stx_dev_minor], found.stx_ino, made))
}

/// What a path stands for, a symbolic link at its end for itself.
pub fn identity_at(path: &Path) -> Result<Identity, SyscallError> {
    identity_of(CWD, path.as_os_str(), false)
}

/// Where a symbolic link leads, as it is written.
pub fn read_link(directory: BorrowedFd<'_>, name: &OsStr) -> Result<OsString, SyscallError> {
    let target = rustix::fs::readlinkat(directory, name, Vec::new()).of("readlink")?;
    Ok(OsString::from_vec(target.into_bytes()))
}

/// Tries to lock a file against others who lock it; the lock goes with the descriptor.
pub fn try_lock(file: BorrowedFd<'_>) -> Result<bool, SyscallError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(error) => Err(error).of("flock"),
    }
}

/// How long a file is. Its position moves, which does not matter to one that appends.
pub fn length(file: BorrowedFd<'_>) -> Result<u64, SyscallError> {
    rustix::fs::seek(file, rustix::fs::SeekFrom::End(0)).of("lseek")
}

/// Cuts a file off.
pub fn truncate(file: BorrowedFd<'_>, length: u64) -> Result<(), SyscallError> {
    rustix::fs::ftruncate(file, length).of("ftruncate")
}

/// What can be done with a descriptor that the caller left open for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usable {
    /// It can be written to.
    Yes,
    /// It is not open.
    Closed,
    /// It was not opened for writing.
    ReadOnly,
    /// A pipe or socket whose other end is gone.
    Unread,
}

/// Whether a number is a descriptor that can be written to.
pub fn usable(number: RawFd) -> Usable {
    let Ok(flags) = rustix::fs::fcntl_getfl(by_number(number)) else { return Usable::Closed };
    if flags & OFlags::RWMODE == OFlags::RDONLY || flags.contains(OFlags::PATH) {
        return Usable::ReadOnly;
    }
    let gone = poll(number, 0, 0) & (libc::POLLERR | libc::POLLHUP) != 0;
    if gone { Usable::Unread } else { Usable::Yes }
}

/// The state of a descriptor, after waiting for that long (-1: for ever) for one of `events`.
fn poll(number: RawFd, events: libc::c_short, milliseconds: libc::c_int) -> libc::c_short {
    let mut entry = [libc::pollfd { fd: number, events, revents: 0 }];
    let _ = poll_entries(&mut entry, milliseconds);
    entry[0].revents
}

/// Puts a file of this text in the place of another, so that no reader sees half of it. What has the name is replaced,
/// and not followed.
pub fn replace(directory: BorrowedFd<'_>, name: &OsStr, text: &[u8], mode: u32) -> Result<(), SyscallError> {
    let new = OsString::from(memory::random_name(".sbx-")?);
    let file = create_new(directory, &new, mode)?;
    let replaced = write_all(file.as_fd(), text).and_then(|()| rename(directory, &new, name));
    if replaced.is_err() {
        let _ = unlink(directory, &new);
    }
    replaced
}

/// Writes everything to a descriptor, which may be a non-blocking one, or tells why not.
pub fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), SyscallError> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)).of("write"),
            Ok(count) => bytes = bytes.get(count..).unwrap_or(&[]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => drop(poll(file.as_raw_fd(), libc::POLLOUT, -1)),
            Err(error) => return Err(error).of("write"),
        }
    }
    Ok(())
}

/// Writes once, waiting if need be, and tells how much.
pub fn write(file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, SyscallError> {
    rustix::io::write(file, bytes).of("write")
}

/// The times of a directory, to be restored after something was made or removed in it: build tools go by
/// them.
#[derive(Debug)]
pub struct Times(Option<FileTimes>);

impl Times {
    /// The times of now.
    pub fn of(directory: &File) -> Times {
        let times = |meta: Metadata| -> io::Result<FileTimes> {
            Ok(FileTimes::new().set_accessed(meta.accessed()?).set_modified(meta.modified()?))
        };
        Times(directory.metadata().and_then(times).ok())
    }

    /// Puts them back, as far as that is allowed.
    pub fn restore(&self, directory: &File) {
        let _ = self.0.map(|times| directory.set_times(times));
    }
}
