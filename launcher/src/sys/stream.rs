//! Standard output and error, when they are led through us.

use super::{Failed, checked, descriptor, process};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

/// A duplicate of a descriptor, above the standard ones and close-on-exec.
pub fn duplicate(number: RawFd) -> Result<OwnedFd, Failed> {
    // SAFETY: asks for a new number.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    checked("fcntl(F_DUPFD_CLOEXEC)", copy.into()).map(|copy| descriptor::own(copy as RawFd))
}

/// A terminal or pipe opened once more, for writing that never waits: the flag belongs to the open file, and this one is
/// ours alone.
pub fn reopen(number: RawFd) -> std::io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    let kind = std::fs::metadata(&path)?.file_type();
    if !kind.is_fifo() && !descriptor::is_terminal(number) {
        return Err(std::io::ErrorKind::Unsupported.into());
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().write(true).custom_flags(flags).open(path).map(OwnedFd::from)
}

/// Puts another descriptor in the place of a standard one.
pub fn replace(number: RawFd, by: BorrowedFd<'_>) -> Result<(), Failed> {
    // SAFETY: two open descriptors; a standard one is nobody's `OwnedFd`.
    checked("dup2", unsafe { libc::dup2(by.as_raw_fd(), number) }.into()).map(drop)
}

/// Has reading from a descriptor of our own return at once. Not for one that others have too: the flag belongs to
/// the open file.
pub fn never_wait(own: &OwnedFd) -> Result<(), Failed> {
    // SAFETY: changes a flag of an open file.
    checked("fcntl(F_SETFL)", unsafe { libc::fcntl(own.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }.into())
        .map(drop)
}

/// How much a pipe holds at most; where that is not told, as much as any can (pipe(7)).
pub fn room(pipe: &OwnedFd) -> u64 {
    const MOST: u64 = 1 << 20;
    // SAFETY: asks about an open file.
    let room = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ) };
    u64::try_from(room).unwrap_or(MOST)
}

/// Whether two descriptors are one open file; `None` where the kernel does not tell.
pub fn same_open_file(a: RawFd, b: RawFd) -> Option<bool> {
    const KCMP_FILE: libc::c_int = 0;
    let own = process::id();
    process::are_same(KCMP_FILE, (own, a), (own, b))
}

/// What one write may carry where it cannot be told not to wait: as much as fits when poll(2) says that something
/// does.
pub const SURE: usize = libc::PIPE_BUF;

/// Writes as much as goes at once, with `RWF_NOWAIT`: the open file is not ours alone, so it must not be made
/// non-blocking. EAGAIN where nothing fits, EOPNOTSUPP where the file does not know how to say so.
pub fn write_at_once(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Failed> {
    const RWF_NOWAIT: libc::c_int = 8;
    const HERE: libc::c_long = -1;
    let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let (fd, part) = (to.as_raw_fd(), &raw const part);
    // SAFETY: one part, valid for its length, that the kernel only reads.
    let count = unsafe { libc::syscall(libc::SYS_pwritev2, fd, part, 1, HERE, HERE, RWF_NOWAIT) };
    checked("write", count).map(|count| count as usize)
}

/// As [`write_at_once`], for a socket: on every kernel, and without a signal where its other end is gone.
pub fn send_at_once(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Failed> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the buffer is valid for its length.
    let count = unsafe { libc::send(to.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    checked("send", count as libc::c_long).map(|count| count as usize)
}
