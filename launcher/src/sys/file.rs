//! Files by the descriptor of their directory, so that renaming what leads to them changes nothing.

use super::descriptor::own;
use super::{Failed, checked};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{File, FileTimes, Metadata};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    number: u64,
    mode: libc::mode_t,
}

impl Identity {
    /// Whether it is a regular file.
    pub fn is_regular(self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    /// Whether it is this very file, with whatever mode.
    pub fn is(self, other: Identity) -> bool {
        (self.device, self.number) == (other.device, other.number)
    }

    /// The lower half of its number.
    pub fn low_number(self) -> u32 {
        self.number as u32
    }

    /// Whether it is a symbolic link.
    pub fn is_link(self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFLNK
    }

    /// Whether it is a directory.
    pub fn is_directory(self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFDIR
    }
}

/// Opens a directory as a place (O_PATH).
pub fn open_directory(path: &Path) -> Result<OwnedFd, Failed> {
    open(None, path.as_os_str(), libc::O_PATH | libc::O_DIRECTORY, 0)
}

/// Opens or makes a file that is only ever added to; a symbolic link is not followed, a FIFO not waited for.
pub fn open_to_append(path: &Path, mode: libc::mode_t) -> Result<OwnedFd, Failed> {
    let flags = libc::O_WRONLY
        | libc::O_APPEND
        | libc::O_CREAT
        | libc::O_NOFOLLOW
        | libc::O_NONBLOCK
        | libc::O_NOCTTY;
    open(None, path.as_os_str(), flags, mode)
}

/// Opens a file to be read; a symbolic link is not followed, a FIFO not waited for.
pub fn open_to_read(directory: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Failed> {
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    open(Some(directory), name, flags, 0)
}

/// Opens a file, or makes it; a symbolic link is not followed.
pub fn open_or_create(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    mode: libc::mode_t,
) -> Result<OwnedFd, Failed> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    open(Some(directory), name, flags, mode)
}

/// A new file without a name, which [`link`] can give it one (O_TMPFILE).
pub fn create_unnamed(directory: BorrowedFd<'_>, mode: libc::mode_t) -> Result<OwnedFd, Failed> {
    open(Some(directory), OsStr::new("."), libc::O_WRONLY | libc::O_TMPFILE, mode)
}

/// A new file: an error if there is anything of that name.
pub fn create_new(directory: BorrowedFd<'_>, name: &OsStr, mode: libc::mode_t) -> Result<OwnedFd, Failed> {
    open(Some(directory), name, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW, mode)
}

fn open(
    directory: Option<BorrowedFd<'_>>,
    name: &OsStr,
    flags: libc::c_int,
    mode: libc::mode_t,
) -> Result<OwnedFd, Failed> {
    let name = text("open", name)?;
    let directory = directory.map_or(libc::AT_FDCWD, |directory| directory.as_raw_fd());
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: a NUL-terminated path.
    let number = unsafe { libc::syscall(libc::SYS_openat, directory, name.as_ptr(), flags, mode) };
    checked("open", number).map(|number| own(number as RawFd))
}

fn text(call: &'static str, name: &OsStr) -> Result<CString, Failed> {
    CString::new(name.as_bytes()).map_err(|_| Failed { call, cause: io::ErrorKind::InvalidInput.into() })
}

/// Gives a file made by [`create_unnamed`] a name that nothing has yet.
pub fn link(file: BorrowedFd<'_>, directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), Failed> {
    let name = text("linkat", name)?;
    // The way that needs no privilege on any kernel.
    let own = text("linkat", OsStr::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))?;
    let follow = libc::AT_SYMLINK_FOLLOW;
    // SAFETY: two NUL-terminated paths.
    let result =
        unsafe { libc::linkat(libc::AT_FDCWD, own.as_ptr(), directory.as_raw_fd(), name.as_ptr(), follow) };
    checked("linkat", result.into()).map(drop)
}

/// Puts one name in the place of another of the same directory.
pub fn rename(directory: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Failed> {
    let (from, to) = (text("rename", from)?, text("rename", to)?);
    let directory = directory.as_raw_fd();
    // SAFETY: two NUL-terminated paths.
    let result = unsafe { libc::renameat(directory, from.as_ptr(), directory, to.as_ptr()) };
    checked("rename", result.into()).map(drop)
}

/// Removes a name.
pub fn unlink(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), Failed> {
    let name = text("unlink", name)?;
    // SAFETY: a NUL-terminated path.
    checked("unlink", unsafe { libc::unlinkat(directory.as_raw_fd(), name.as_ptr(), 0) }.into()).map(drop)
}

/// Removes an empty directory.
pub fn remove_directory(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), Failed> {
    let name = text("rmdir", name)?;
    // SAFETY: a NUL-terminated path.
    let result = unsafe { libc::unlinkat(directory.as_raw_fd(), name.as_ptr(), libc::AT_REMOVEDIR) };
    checked("rmdir", result.into()).map(drop)
}

/// What an open file is.
pub fn identity(file: BorrowedFd<'_>) -> Result<Identity, Failed> {
    stat(file, c"", libc::AT_EMPTY_PATH)
}

/// What a name in a directory stands for, a symbolic link for itself or for where it leads.
pub fn identity_of(directory: BorrowedFd<'_>, name: &OsStr, follow: bool) -> Result<Identity, Failed> {
    stat(directory, &text("stat", name)?, if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW })
}

fn stat(directory: BorrowedFd<'_>, name: &CStr, flags: libc::c_int) -> Result<Identity, Failed> {
    // SAFETY: all zeroes is a valid value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a NUL-terminated path, and room for the answer.
    let result = unsafe { libc::fstatat(directory.as_raw_fd(), name.as_ptr(), &raw mut stat, flags) };
    checked("stat", result.into())?;
    Ok(Identity { device: stat.st_dev, number: stat.st_ino, mode: stat.st_mode })
}

/// Where a symbolic link leads, as it is written.
pub fn read_link(directory: BorrowedFd<'_>, name: &OsStr) -> Result<OsString, Failed> {
    let name = text("readlink", name)?;
    let mut buffer = vec![0_u8; libc::PATH_MAX as usize];
    // SAFETY: a NUL-terminated path, and a buffer of this length.
    let length = unsafe {
        libc::readlinkat(directory.as_raw_fd(), name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
    };
    buffer.truncate(checked("readlink", length as libc::c_long)? as usize);
    Ok(OsString::from_vec(buffer))
}

/// Tries to lock a file against others who lock it; the lock goes with the descriptor.
pub fn try_lock(file: BorrowedFd<'_>) -> Result<bool, Failed> {
    // SAFETY: an open descriptor.
    let result = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    match checked("flock", result.into()) {
        Ok(_) => Ok(true),
        Err(failed) if matches!(failed.errno(), libc::EWOULDBLOCK | libc::EINTR) => Ok(false),
        Err(failed) => Err(failed),
    }
}

/// How long a file is.
pub fn length(file: BorrowedFd<'_>) -> Result<libc::c_long, Failed> {
    // SAFETY: an open descriptor. Where it stands does not matter to one that appends.
    checked("lseek", unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END) })
}

/// Cuts a file off.
pub fn truncate(file: BorrowedFd<'_>, length: libc::c_long) -> Result<(), Failed> {
    // SAFETY: an open descriptor.
    checked("ftruncate", unsafe { libc::ftruncate(file.as_raw_fd(), length) }.into()).map(drop)
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
    // SAFETY: asks about a number.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
    if flags < 0 {
        return Usable::Closed;
    }
    if flags & libc::O_ACCMODE == libc::O_RDONLY || flags & libc::O_PATH != 0 {
        return Usable::ReadOnly;
    }
    let gone = poll(number, 0, 0) & (libc::POLLERR | libc::POLLHUP) != 0;
    if gone { Usable::Unread } else { Usable::Yes }
}

/// What is true of a descriptor, after waiting for that long (-1: for ever) for one of `events`.
fn poll(number: RawFd, events: libc::c_short, milliseconds: libc::c_int) -> libc::c_short {
    let mut entry = libc::pollfd { fd: number, events, revents: 0 };
    // SAFETY: one entry.
    unsafe { libc::poll(&raw mut entry, 1, milliseconds) };
    entry.revents
}

/// Writes everything to a descriptor that may be one of those which do not wait, or tells why not.
pub fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Failed> {
    while !bytes.is_empty() {
        match write(file, bytes) {
            Ok(0) => return Err(Failed { call: "write", cause: io::ErrorKind::WriteZero.into() }),
            Ok(count) => bytes = bytes.get(count..).unwrap_or(&[]),
            Err(failed) if failed.errno() == libc::EINTR => {}
            Err(failed) if failed.errno() == libc::EAGAIN => drop(poll(file.as_raw_fd(), libc::POLLOUT, -1)),
            Err(failed) => return Err(failed),
        }
    }
    Ok(())
}

/// Writes once, waiting if need be, and tells how much.
pub fn write(file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Failed> {
    // SAFETY: the buffer is valid for its length.
    let written = unsafe { libc::write(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    checked("write", written as libc::c_long).map(|count| count as usize)
}

/// The times of a directory, which it is to have again after something was made or removed in it: builds go by them.
#[derive(Debug)]
pub struct Times(Option<FileTimes>);

impl Times {
    /// As they are now.
    pub fn of(directory: &File) -> Times {
        let times = |meta: Metadata| -> io::Result<FileTimes> {
            Ok(FileTimes::new().set_accessed(meta.accessed()?).set_modified(meta.modified()?))
        };
        Times(directory.metadata().and_then(times).ok())
    }

    /// Puts them back, as far as that may be.
    pub fn restore(&self, directory: &File) {
        let _ = self.0.map(|times| directory.set_times(times));
    }
}
