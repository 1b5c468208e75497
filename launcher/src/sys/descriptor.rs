//! File descriptors.

use crate::sys::file;
use crate::sys::number::FileNumber;
use crate::sys::resolve::openat2;
use crate::sys::{OfCall, SyscallError, checked};
use rustix::event::EventfdFlags;
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, ResolveFlags, SealFlags};
use rustix::io::{Errno, FdFlags};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most bytes that are read of a pipe until its end.
const LONGEST: usize = 1 << 20;

/// Takes ownership of a descriptor that the kernel just made for us.
pub fn own(number: RawFd) -> OwnedFd {
    // SAFETY: callers pass a number that a system call returned to them as new.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// A descriptor by its number, for one system call. Where the number is not open, that call fails with EBADF.
pub(crate) fn by_number<'a>(number: RawFd) -> BorrowedFd<'a> {
    // SAFETY: callers pass a number that is not negative, and use the result for one call.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// Opens /dev/null for each of 0, 1 and 2 that is closed: whatever we open later must not land there and be
/// taken for the command's standard input or output. Returns those that were closed.
pub fn fill_standard() -> Result<Vec<RawFd>, SyscallError> {
    let mut closed = Vec::new();
    for number in 0..3 {
        match rustix::io::fcntl_getfd(by_number(number)) {
            Ok(_) => continue,
            Err(Errno::BADF) => {}
            Err(error) => return Err(error).of("fcntl(F_GETFD)"),
        }
        // The lowest free number is this one, as those below are open by now.
        let null = rustix::fs::open(c"/dev/null", OFlags::RDWR, Mode::empty()).of("open(/dev/null)")?;
        let _stays_open = null.into_raw_fd();
        closed.push(number);
    }
    Ok(closed)
}

/// Opens a file as a place only (O_PATH): nothing is read, no device or FIFO is woken.
///
/// Not through std: musl counts O_PATH to the access mode, and std takes the access mode out of custom flags.
pub fn open_path(path: &Path) -> io::Result<File> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// As [`open_path`], an entry of a directory. A symbolic link itself is held.
pub fn open_entry(directory: &File, name: &[u8]) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?.into())
}

/// As [`open_path`], with a directory as the root, also for absolute paths and links, and never through a
/// magic link of /proc (openat2(2), Linux 5.6): such a link leads where the opening process may go, and we
/// open on behalf of another one. A symbolic link at the end is followed, or held itself.
pub fn open_below(root: &File, path: &[u8], follow: bool) -> io::Result<File> {
    place_in(root, path, follow, ResolveFlags::NO_MAGICLINKS | ResolveFlags::IN_ROOT)
}

fn place_in(
    directory: impl std::os::fd::AsFd,
    path: &[u8],
    follow: bool,
    resolve: ResolveFlags,
) -> io::Result<File> {
    let last = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::PATH | OFlags::CLOEXEC | last;
    Ok(openat2(directory, path, flags, resolve)?.into())
}

/// What is at a relative path below a directory, on the same mount and without following any symbolic link. By an empty
/// path the directory itself.
pub fn hold_beneath(directory: &File, path: &Path) -> io::Result<File> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    place_in(directory, path.as_os_str().as_bytes(), false, resolve)
}

/// As [`open_path`], without following any symbolic link. If the last name is one, the link itself is held.
pub fn hold(path: &Path) -> io::Result<File> {
    place_in(CWD, path.as_os_str().as_bytes(), false, ResolveFlags::NO_SYMLINKS)
}

/// Whether a descriptor is a terminal.
pub fn is_terminal(number: RawFd) -> bool {
    rustix::termios::isatty(by_number(number))
}

/// Whether a number is an open descriptor.
pub fn is_open(number: RawFd) -> bool {
    number >= 0 && rustix::io::fcntl_getfd(by_number(number)).is_ok()
}

/// Whether a number is an open descriptor that an exec leaves open, as the caller's are and none of ours.
pub fn is_of_caller(number: RawFd) -> bool {
    let flags = rustix::io::fcntl_getfd(by_number(number));
    flags.is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC))
}

/// An open file.
pub struct OpenFile {
    /// Its type, as the bits of `S_IFMT` (inode(7)).
    pub kind: libc::mode_t,
    /// Its device and inode number.
    pub number: FileNumber,
}

/// The file of a descriptor; `None` for a closed one.
pub fn file_of(number: RawFd) -> Result<Option<OpenFile>, SyscallError> {
    match rustix::fs::fstat(by_number(number)) {
        Ok(stat) => Ok(Some(OpenFile { kind: stat.st_mode & libc::S_IFMT, number: FileNumber::from(&stat) })),
        Err(Errno::BADF) => Ok(None),
        Err(errno) => Err(SyscallError { call: "fstat", cause: errno.into() }),
    }
}

/// Whether a regular file is open for reading, and for writing. `None` for everything else. Who has it can write
/// anywhere in it, also if it was opened to add to the end (F_SETFL).
pub fn uses_of_file(number: RawFd) -> Option<(bool, bool)> {
    let is_regular = file_of(number).ok().flatten().is_some_and(|file| file.kind == libc::S_IFREG);
    let flags = is_regular.then(|| rustix::fs::fcntl_getfl(by_number(number)).ok()).flatten()?;
    let access = flags & OFlags::RWMODE;
    (!flags.contains(OFlags::PATH)).then_some((access != OFlags::WRONLY, access != OFlags::RDONLY))
}

/// The name of a descriptor in /proc, which leads to its file whatever happens to names.
pub fn own_name(number: RawFd) -> String {
    format!("/proc/self/fd/{number}")
}

/// The path by which a descriptor was opened, as /proc tells it.
pub fn path_of(number: RawFd) -> Option<PathBuf> {
    std::fs::read_link(own_name(number)).ok()
}

/// Where a file that is held open really is by now.
pub fn place(file: &File) -> io::Result<PathBuf> {
    std::fs::read_link(own_name(file.as_raw_fd()))
}

/// Marks every descriptor from 3 up as close-on-exec.
pub fn close_all_on_exec() -> Result<(), SyscallError> {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    // SAFETY: changes flags only; nothing is closed before an exec.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, CLOSE_RANGE_CLOEXEC) };
    if result != 0 {
        // Linux before 5.11. A number that is not open is no error.
        // SAFETY: asks for a limit.
        let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
        let limit = RawFd::try_from(limit).unwrap_or(65_536).clamp(3, 1 << 20);
        (3..limit).for_each(|number| drop(close_on_exec(number)));
    }
    Ok(())
}

/// Lets a descriptor pass through an exec.
pub fn keep_on_exec(number: RawFd) -> Result<(), SyscallError> {
    rustix::io::fcntl_setfd(by_number(number), FdFlags::empty()).of("fcntl(F_SETFD)")
}

/// Has an exec close a descriptor.
pub fn close_on_exec(number: RawFd) -> Result<(), SyscallError> {
    rustix::io::fcntl_setfd(by_number(number), FdFlags::CLOEXEC).of("fcntl(F_SETFD)")
}

/// Puts /dev/null in the place of standard input and output: they belong to the command, and the process at
/// their other end should see it close them, not us.
pub fn release_standard() -> Result<(), SyscallError> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let null = rustix::fs::open(c"/dev/null", flags, Mode::empty()).of("open(/dev/null)")?;
    rustix::stdio::dup2_stdin(&null).and_then(|()| rustix::stdio::dup2_stdout(&null)).of("dup2")
}

/// Puts /dev/null in the place of standard error too.
pub fn release_all_standard() -> Result<(), SyscallError> {
    release_standard()?;
    rustix::stdio::dup2_stderr(by_number(0)).of("dup2")
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

/// Closes files by as few calls as their numbers allow.
pub fn close_all(files: Vec<File>) {
    let mut numbers: Vec<RawFd> = files.into_iter().map(IntoRawFd::into_raw_fd).collect();
    numbers.sort_unstable();
    for run in numbers.chunk_by(|one, next| one + 1 == *next) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        // SAFETY: all of these numbers were owned by the files.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, *first, *last, 0) };
        if closed != 0 {
            // Linux before 5.9.
            run.iter().for_each(|number| drop(own(*number)));
        }
    }
}

/// A file in memory with these contents, that nothing can change any more; passes through an exec.
pub fn sealed_memory_file(name: &CStr, contents: &[u8]) -> Result<OwnedFd, SyscallError> {
    let flags = MemfdFlags::ALLOW_SEALING;
    let file = match rustix::fs::memfd_create(name, flags | MemfdFlags::EXEC) {
        // Linux before 6.3 does not know MFD_EXEC.
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags),
        made => made,
    };
    let file = file.of("memfd_create")?;
    write_all(file.as_raw_fd(), contents)?;
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals).of("fcntl(F_ADD_SEALS)")?;
    Ok(file)
}

/// A file in memory whose name ends in 128 random bits, at a number that is not in use.
pub fn secret_name(prefix: &str, number: RawFd) -> Result<OwnedFd, SyscallError> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).of("getrandom")?;
    let name = format!("{prefix}{:032x}", u128::from_ne_bytes(random));
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC).of("memfd_create")?;
    let placed = rustix::io::fcntl_dupfd_cloexec(file, number).of("fcntl(F_DUPFD_CLOEXEC)")?;
    // The kernel takes the next free one.
    let is_there = placed.as_raw_fd() == number;
    is_there.then_some(placed).ok_or(Errno::BUSY).of("fcntl(F_DUPFD_CLOEXEC)")
}

/// Writes everything, or tells why not.
pub fn write_all(number: RawFd, bytes: &[u8]) -> Result<(), SyscallError> {
    file::write_all(by_number(number), bytes)
}

/// Reads once.
pub fn read(number: RawFd, buffer: &mut [u8]) -> Result<usize, SyscallError> {
    rustix::io::retry_on_intr(|| rustix::io::read(by_number(number), &mut *buffer)).of("read")
}

/// Everything up to the end of a pipe; `None` when that does not come in time.
pub fn read_until(reader: RawFd, deadline: Instant) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut chunk = [0; 4096];
    while readable(reader, deadline.saturating_duration_since(Instant::now())) {
        match read(reader, &mut chunk) {
            Ok(count @ 1..) if all.len() < LONGEST => all.extend(chunk.get(..count).unwrap_or(&[])),
            _ => return Some(all),
        }
    }
    None
}

/// Whether there is something to read, or the other end is closed, before the time is up.
pub fn readable(number: RawFd, limit: Duration) -> bool {
    let mut entry = [libc::pollfd { fd: number, events: libc::POLLIN, revents: 0 }];
    poll_on(&mut entry, Some(limit)).is_ok_and(|count| count > 0)
}

/// A pipe whose ends are close-on-exec: read end, write end.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), SyscallError> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).of("pipe2")
}

/// A number in the kernel that is read once it is not 0 (eventfd(2)); close-on-exec.
pub fn event() -> Result<OwnedFd, SyscallError> {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC).of("eventfd")
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

/// Waits until something is ready or the time is over. A signal, a stop among them, ends the waiting with
/// nothing ready, so that the caller looks at the clock.
pub fn poll<const N: usize>(
    interests: [Interest; N],
    time: Option<Duration>,
) -> Result<[Ready; N], SyscallError> {
    let mut entries = interests.map(|interest| libc::pollfd {
        fd: interest.number.unwrap_or(-1),
        events: if interest.writes { libc::POLLOUT } else { libc::POLLIN },
        revents: 0,
    });
    match poll_entries(&mut entries, milliseconds(time)) {
        Err(failed) if failed.errno() == libc::EINTR => return Ok([Ready::default(); N]),
        polled => polled?,
    };
    let gone = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    Ok(entries.map(|entry| Ready { now: entry.revents & entry.events != 0, gone: entry.revents & gone != 0 }))
}

/// Waits until some of these can be read, or have ended; returns their places. None: the time is over.
pub fn poll_all(
    numbers: impl Iterator<Item = RawFd>,
    time: Option<Duration>,
) -> Result<Vec<usize>, SyscallError> {
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<libc::pollfd> = numbers.map(entry).collect();
    poll_on(&mut entries, time)?;
    Ok(entries.iter().enumerate().filter(|(_, entry)| entry.revents != 0).map(|(place, _)| place).collect())
}

/// poll(2) until something is ready or the time is over, whatever signals arrive. Returns how many are ready.
pub(crate) fn poll_on(
    entries: &mut [libc::pollfd],
    time: Option<Duration>,
) -> Result<libc::c_long, SyscallError> {
    let until = time.and_then(|time| Instant::now().checked_add(time));
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        match poll_entries(entries, milliseconds(left)) {
            Err(failed) if failed.errno() == libc::EINTR => {}
            polled => return polled,
        }
    }
}

/// Rounded up: waking too early would mean waiting again. None: for ever.
fn milliseconds(time: Option<Duration>) -> libc::c_int {
    time.map_or(-1, |time| i32::try_from(time.as_micros().div_ceil(1000)).unwrap_or(i32::MAX))
}

/// poll(2), whose entries may lack a descriptor (-1), which those of rustix may not. Returns how many are
/// ready.
pub(crate) fn poll_entries(
    entries: &mut [libc::pollfd],
    milliseconds: libc::c_int,
) -> Result<libc::c_long, SyscallError> {
    let count = entries.len() as libc::nfds_t;
    // SAFETY: an array of so many entries.
    checked("poll", unsafe { libc::poll(entries.as_mut_ptr(), count, milliseconds) })
}
