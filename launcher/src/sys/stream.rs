//! Standard output and error, when they are led through us.

use crate::sys::descriptor::by_number;
use crate::sys::file::{self, Identity};
use crate::sys::{OfCall, SyscallError, descriptor, process, seccomp};
use rustix::fs::OFlags;
use rustix::io::ReadWriteFlags;
use rustix::net::SendFlags;
use std::fs::File;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

/// A duplicate of a descriptor, above the standard ones and close-on-exec.
pub fn duplicate(number: RawFd) -> Result<OwnedFd, SyscallError> {
    rustix::io::fcntl_dupfd_cloexec(by_number(number), 3).of("fcntl(F_DUPFD_CLOEXEC)")
}

/// A terminal or pipe opened once more, for writing that never waits: the flag belongs to the open file,
/// and this one is ours alone.
pub fn reopen(number: RawFd) -> std::io::Result<OwnedFd> {
    let path = descriptor::own_name(number);
    let kind = std::fs::metadata(&path)?.file_type();
    if !kind.is_fifo() && !descriptor::is_terminal(number) {
        return Err(std::io::ErrorKind::Unsupported.into());
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().write(true).custom_flags(flags).open(path).map(OwnedFd::from)
}

/// Puts another descriptor in the place of a standard one.
pub fn replace(number: RawFd, by: BorrowedFd<'_>) -> Result<(), SyscallError> {
    let replaced = match number {
        0 => rustix::stdio::dup2_stdin(by),
        1 => rustix::stdio::dup2_stdout(by),
        _ => rustix::stdio::dup2_stderr(by),
    };
    replaced.of("dup2")
}

/// Puts these in the places of standard input, output and error.
pub fn replace_standard(by: &[OwnedFd; 3]) -> Result<(), SyscallError> {
    (0..3).zip(by).try_for_each(|(number, by)| replace(number, by.as_fd()))
}

/// The status flags of standard input, output and error (O_NONBLOCK, O_APPEND). They belong to the open files, and so
/// to whoever uses these next.
pub struct StatusFlags(Vec<(Holder, OFlags)>);

/// By which descriptor an open file is known.
enum Holder {
    /// Standard error, which stays open.
    Error(Identity),
    Own(OwnedFd),
}

impl StatusFlags {
    /// As they are. Not those of pipes and sockets on standard input and output: who is at their other end waits for
    /// the last one that has them open.
    pub fn of_standard() -> StatusFlags {
        let lasts = |number: RawFd| {
            let is_regular = || file::identity(by_number(number)).is_ok_and(Identity::is_regular);
            descriptor::is_terminal(number) || is_regular()
        };
        let is = |number, other| same_open_file(number, other) == Some(true);
        let own = |number| duplicate(number).ok().map(Holder::Own);
        let input = if lasts(0) && !is(0, 2) { own(0) } else { None };
        let output = if lasts(1) && !is(1, 2) && !is(1, 0) { own(1) } else { None };
        let error = file::identity(by_number(2)).ok().map(Holder::Error);
        let flags = |number| rustix::fs::fcntl_getfl(by_number(number)).ok();
        let all = [(0, input), (1, output), (2, error)].into_iter();
        StatusFlags(all.filter_map(|(number, holder)| holder.zip(flags(number))).collect())
    }

    /// Puts back what the command has changed.
    pub fn restore(&self) {
        for (holder, flags) in &self.0 {
            let file = match holder {
                Holder::Error(own) if file::identity(by_number(2)).is_ok_and(|now| now.is(*own)) => {
                    by_number(2)
                }
                Holder::Error(_) => continue,
                Holder::Own(file) => file.as_fd(),
            };
            if rustix::fs::fcntl_getfl(file).is_ok_and(|now| now != *flags) {
                let _ = rustix::fs::fcntl_setfl(file, *flags);
            }
        }
    }
}

/// Makes reading from a descriptor of ours return at once. Not for one that others share: the flag belongs
/// to the open file.
pub fn never_wait(own: &OwnedFd) -> Result<(), SyscallError> {
    rustix::fs::fcntl_setfl(own, OFlags::NONBLOCK).of("fcntl(F_SETFL)")
}

/// How much a pipe holds at most; where the kernel does not tell, as much as any can (pipe(7)).
pub fn room(pipe: &OwnedFd) -> u64 {
    const MOST: u64 = 1 << 20;
    rustix::pipe::fcntl_getpipe_size(pipe).map_or(MOST, |room| room as u64)
}

/// Whether two descriptors are one open file; `None` where nobody tells. Inside another `sbx` kcmp(2) is refused, with
/// a line.
pub fn same_open_file(a: RawFd, b: RawFd) -> Option<bool> {
    const KCMP_FILE: libc::c_int = 0;
    if seccomp::is_confined() {
        return None;
    }
    let own = process::id();
    process::are_same(KCMP_FILE, (own, a), (own, b))
}

/// Most bytes of a write that cannot be told not to wait: as many as fit when poll(2) says that something
/// does.
pub const SURE: usize = libc::PIPE_BUF;

/// Writes as much as fits at once, with `RWF_NOWAIT`: others share the open file, so it must not be made
/// non-blocking. EAGAIN where nothing fits, EOPNOTSUPP where the file does not support it.
pub fn write_at_once(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, SyscallError> {
    const HERE: u64 = u64::MAX;
    rustix::io::pwritev2(to, &[IoSlice::new(bytes)], HERE, ReadWriteFlags::NOWAIT).of("write")
}

/// As [`write_at_once`], for a socket: on every kernel, and without a signal where its other end is gone.
pub fn send_at_once(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, SyscallError> {
    rustix::net::send(to, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).of("send")
}
