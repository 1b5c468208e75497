//! File descriptors.

use super::{Failed, checked};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Opens /dev/null for each of 0, 1 and 2 that is closed: whatever we open later must not land there and be
/// taken for the command's standard input or output. Tells which were closed.
pub fn fill_standard() -> Result<Vec<RawFd>, Failed> {
    let mut closed = Vec::new();
    for number in 0..3 {
        // SAFETY: asks about a number.
        match checked("fcntl(F_GETFD)", unsafe { libc::fcntl(number, libc::F_GETFD) }.into()) {
            Ok(_) => continue,
            Err(failed) if failed.errno() != libc::EBADF => return Err(failed),
            Err(_) => {}
        }
        // SAFETY: a constant path. The lowest free number is this one, as those below are open by now.
        checked("open(/dev/null)", unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) }.into())?;
        closed.push(number);
    }
    Ok(closed)
}

/// Opens a file as a place only (O_PATH): nothing is read, no device or FIFO is waked.
///
/// Not through std: musl counts O_PATH to the access mode, and std takes the access mode out of custom flags.
pub fn open_path(path: &Path) -> io::Result<File> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: a NUL-terminated path. The bare call: musl's open sets close-on-exec a second time.
    opened(unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) })
}

/// As [`open_path`], an entry of a directory, itself even where it is a link.
pub fn open_entry(directory: &File, name: &[u8]) -> io::Result<File> {
    let name = CString::new(name)?;
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: a NUL-terminated name.
    opened(unsafe { libc::syscall(libc::SYS_openat, directory.as_raw_fd(), name.as_ptr(), flags) })
}

/// As [`open_path`], with a directory as the root, also for absolute paths and links, and never through a magic link of
/// /proc (openat2(2), Linux 5.6): those lead where the one who asks may go, and that is not the one on whose behalf we ask. A
/// symbolic link at the end is followed or held itself.
pub fn open_below(root: &File, path: &[u8], follow: bool) -> io::Result<File> {
    place_in(Some(root), path, follow, libc::RESOLVE_NO_MAGICLINKS | libc::RESOLVE_IN_ROOT)
}

fn place_in(directory: Option<&File>, path: &[u8], follow: bool, resolve: u64) -> io::Result<File> {
    let path = CString::new(path)?;
    // SAFETY: all zeroes is a valid value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC | if follow { 0 } else { libc::O_NOFOLLOW }) as u64;
    how.resolve = resolve;
    let directory = directory.map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
    let size = size_of::<libc::open_how>();
    // SAFETY: a NUL-terminated path, and a structure of this size.
    opened(unsafe { libc::syscall(libc::SYS_openat2, directory, path.as_ptr(), &raw const how, size) })
}

/// As [`open_path`], without following any symbolic link, the last one among them: it is held itself.
pub fn hold(path: &Path) -> io::Result<File> {
    place_in(None, path.as_os_str().as_bytes(), false, libc::RESOLVE_NO_SYMLINKS)
}

fn opened(result: libc::c_long) -> io::Result<File> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(own(result as RawFd).into()) }
}

/// Has a command get a descriptor under its own number, and nobody else: it stays close-on-exec here. The command keeps
/// it open until it is dropped.
pub fn pass_to(command: &mut Command, descriptor: OwnedFd) {
    let keep = move || {
        // SAFETY: plain numbers; the descriptor is open as long as this closure is there.
        checked("fcntl", unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, 0) }.into())
            .map(drop)
            .map_err(|failed| failed.cause)
    };
    // SAFETY: it makes one system call, and allocates nothing.
    unsafe { command.pre_exec(keep) };
}

/// Whether a descriptor is a terminal.
pub fn is_terminal(number: RawFd) -> bool {
    // SAFETY: asks about a number.
    unsafe { libc::isatty(number) == 1 }
}

/// Whether a number is an open descriptor.
pub fn is_open(number: RawFd) -> bool {
    // SAFETY: asks about a number.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

/// The path of an open directory; nothing for another descriptor.
pub fn directory(number: RawFd) -> Option<PathBuf> {
    of_kind(number, libc::S_IFDIR)
}

/// The path of an open regular file; nothing for another descriptor.
pub fn regular_file(number: RawFd) -> Option<PathBuf> {
    of_kind(number, libc::S_IFREG)
}

fn of_kind(number: RawFd, kind: libc::mode_t) -> Option<PathBuf> {
    // SAFETY: all zeroes is a valid value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: room for the answer.
    if unsafe { libc::fstat(number, &raw mut stat) } != 0 || stat.st_mode & libc::S_IFMT != kind {
        return None;
    }
    std::fs::read_link(format!("/proc/self/fd/{number}")).ok()
}

/// Marks every descriptor from 3 up as close-on-exec.
pub fn close_all_on_exec() -> Result<(), Failed> {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: changes flags only; nothing is closed before an exec.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, CLOSE_RANGE_CLOEXEC) };
    if result == 0 {
        return Ok(());
    }
    // Linux before 5.11.
    let limit = limit_of_numbers();
    for number in 3..limit {
        // SAFETY: a number that is not open is no error here.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

fn limit_of_numbers() -> RawFd {
    // SAFETY: asks for a limit.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    RawFd::try_from(limit).unwrap_or(65_536).clamp(3, 1 << 20)
}

/// Lets a descriptor pass through an exec.
pub fn keep_on_exec(number: RawFd) -> Result<(), Failed> {
    // SAFETY: changes a flag of a descriptor.
    checked("fcntl(F_SETFD)", unsafe { libc::fcntl(number, libc::F_SETFD, 0) }.into()).map(drop)
}

/// Where a file that is held open really is, by now.
pub fn place(file: &File) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Has an exec close a descriptor.
pub fn close_on_exec(number: RawFd) -> Result<(), Failed> {
    // SAFETY: changes a flag of a descriptor.
    checked("fcntl(F_SETFD)", unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) }.into())
        .map(drop)
}

/// Puts /dev/null in the place of standard input and output: the command has them, and whoever is at their
/// other end should see it close them, not us.
pub fn release_standard() -> Result<(), Failed> {
    // SAFETY: a constant path.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    let null = own(checked("open(/dev/null)", null.into())? as RawFd);
    for number in 0..2 {
        // SAFETY: two open descriptors; what 0 and 1 were is nobody's `OwnedFd`.
        checked("dup2", unsafe { libc::dup2(null.as_raw_fd(), number) }.into())?;
    }
    Ok(())
}

/// Closes every descriptor but these and standard error.
pub fn close_all_but(kept: &mut Vec<RawFd>) {
    kept.push(2);
    kept.sort_unstable();
    let mut first: libc::c_uint = 0;
    for number in kept.iter().map(|number| *number as libc::c_uint).chain([u32::MAX]) {
        let last = if number == u32::MAX { number } else { number.saturating_sub(1) };
        if first <= last && first != number {
            // SAFETY: the process that calls this goes on with raw numbers only.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
        first = number.saturating_add(1);
    }
}

/// Takes ownership of a descriptor that the kernel just made for us.
pub fn own(number: RawFd) -> OwnedFd {
    // SAFETY: callers pass a number that a system call returned to them as new.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// A file in memory with these contents, that nothing can change any more; passes through an exec.
pub fn sealed_memory_file(name: &CStr, contents: &[u8]) -> Result<OwnedFd, Failed> {
    const MFD_EXEC: libc::c_uint = 0x10;
    let flags = libc::MFD_ALLOW_SEALING;
    // SAFETY: a constant name; the result is checked.
    let mut number = unsafe { libc::memfd_create(name.as_ptr(), flags | MFD_EXEC) };
    if number < 0 && Failed::last("memfd_create").errno() == libc::EINVAL {
        // Linux before 6.3 does not know MFD_EXEC.
        // SAFETY: as above.
        number = unsafe { libc::memfd_create(name.as_ptr(), flags) };
    }
    let number = checked("memfd_create", number.into())?;
    let file = own(number as RawFd);
    write_all(file.as_raw_fd(), contents)?;
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: a descriptor that we own.
    checked("fcntl(F_ADD_SEALS)", unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }.into())?;
    Ok(file)
}

/// Writes everything, or tells why not.
pub fn write_all(number: RawFd, mut bytes: &[u8]) -> Result<(), Failed> {
    while !bytes.is_empty() {
        // SAFETY: the buffer is valid for its length.
        let written = unsafe { libc::write(number, bytes.as_ptr().cast(), bytes.len()) };
        match checked("write", written as libc::c_long) {
            Ok(0) => return Err(Failed { call: "write", cause: io::ErrorKind::WriteZero.into() }),
            Ok(count) => bytes = bytes.get(count as usize..).unwrap_or(&[]),
            Err(failed) if failed.errno() == libc::EINTR => {}
            Err(failed) => return Err(failed),
        }
    }
    Ok(())
}

/// A pipe whose ends are close-on-exec: read end, write end.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Failed> {
    let mut ends = [0; 2];
    // SAFETY: room for two numbers.
    checked("pipe2", unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    Ok((own(ends[0]), own(ends[1])))
}

/// A number in the kernel that is read once it is not 0 (eventfd(2)); close-on-exec.
pub fn event() -> Result<OwnedFd, Failed> {
    // SAFETY: plain numbers.
    let number = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    checked("eventfd", number.into()).map(|number| own(number as RawFd))
}

/// Reads once.
pub fn read(number: RawFd, buffer: &mut [u8]) -> Result<usize, Failed> {
    loop {
        // SAFETY: the buffer is valid for its length.
        let count = unsafe { libc::read(number, buffer.as_mut_ptr().cast(), buffer.len()) };
        match checked("read", count as libc::c_long) {
            Err(failed) if failed.errno() == libc::EINTR => {}
            result => return result.map(|count| count as usize),
        }
    }
}

/// What is waited for on a descriptor; without a number, nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interest {
    number: Option<RawFd>,
    writes: bool,
}

impl Interest {
    /// That it can be read.
    pub fn read(number: Option<RawFd>) -> Interest {
        Interest { number, writes: false }
    }

    /// That it can be written to.
    pub fn write(number: Option<RawFd>) -> Interest {
        Interest { number, writes: true }
    }
}

/// What became of an [`Interest`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// It can be read, or written to.
    pub now: bool,
    /// The other end is gone.
    pub gone: bool,
}

/// Waits until something is ready or the time is over. A signal, a stop among them, ends the waiting with nothing
/// ready, so that the caller looks at the clock.
pub fn poll<const N: usize>(interests: [Interest; N], time: Option<Duration>) -> Result<[Ready; N], Failed> {
    let mut entries = interests.map(|interest| libc::pollfd {
        fd: interest.number.unwrap_or(-1),
        events: if interest.writes { libc::POLLOUT } else { libc::POLLIN },
        revents: 0,
    });
    // Rounded up: waking too early would mean waiting again.
    let time = time.map_or(-1, |time| i32::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
    // SAFETY: an array of N entries.
    let result = unsafe { libc::poll(entries.as_mut_ptr(), N as libc::nfds_t, time) };
    match checked("poll", result.into()) {
        Err(failed) if failed.errno() == libc::EINTR => return Ok([Ready::default(); N]),
        Err(failed) => return Err(failed),
        Ok(_) => {}
    }
    let gone = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    Ok(entries.map(|entry| Ready { now: entry.revents & entry.events != 0, gone: entry.revents & gone != 0 }))
}
