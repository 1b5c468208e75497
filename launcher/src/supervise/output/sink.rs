//! The destination of a stream: the caller's pipe, socket or file, which the supervisor shares with others.
//!
//! The supervisor answers notified calls on the same thread, so a slow reader must not block it. To make
//! the file non-blocking would do that for everybody who has it, the caller among them; so each write asks
//! not to wait. Where the kernel does not know how (pipes before Linux 6.5), a write is no longer than
//! poll(2) promises to fit, and waits only if another process writes into the same pipe in between. Regular
//! files never wait for a reader.

use crate::sys::descriptor::{self, Interest};
use crate::sys::{SyscallError, file, stream};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

/// How a write keeps from waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    AtOnce,
    Sent,
    Small,
    Plain,
}

/// The outcome of a write.
#[derive(Debug)]
pub enum Written {
    /// So many bytes were written.
    Some(usize),
    /// Nothing could be written yet.
    Later,
    /// The reader is gone.
    ReaderGone,
    /// It failed.
    Failed(SyscallError),
}

/// One end of a stream.
pub struct Sink {
    file: File,
    way: Way,
}

impl Sink {
    /// For a duplicate of the caller's descriptor.
    pub fn new(file: OwnedFd) -> Sink {
        let file = File::from(file);
        let kind = file.metadata().map(|meta| meta.file_type());
        let way = match kind {
            // A message goes whole or not at all; in small parts it would be several.
            Ok(kind) if kind.is_socket() => Way::Sent,
            Ok(kind) if kind.is_fifo() || kind.is_char_device() => Way::AtOnce,
            _ => Way::Plain,
        };
        Sink { file, way }
    }

    /// The descriptor, to wait for.
    pub fn number(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Whether the reader is gone.
    pub fn is_abandoned(&self) -> bool {
        let ready = descriptor::poll([Interest::write(Some(self.number()))], Some(Duration::ZERO));
        self.way != Way::Plain && ready.is_ok_and(|[sink]| sink.gone)
    }

    /// Whether a write returns at once, whatever poll(2) says.
    pub fn is_quick(&self) -> bool {
        matches!(self.way, Way::Sent | Way::Plain)
    }

    /// Writes what can be written at once. To be called when poll(2) says that something can be.
    pub fn write(&mut self, bytes: &[u8]) -> Written {
        loop {
            let result = match self.way {
                Way::AtOnce => stream::write_at_once(self.file.as_fd(), bytes),
                Way::Sent => stream::send_at_once(self.file.as_fd(), bytes),
                Way::Small => file::write(self.file.as_fd(), &bytes[..bytes.len().min(stream::SURE)]),
                Way::Plain => file::write(self.file.as_fd(), bytes),
            };
            let failed = match result {
                Ok(count) => return Written::Some(count),
                Err(failed) => failed,
            };
            match failed.errno() {
                libc::EINTR => {}
                libc::EAGAIN => return Written::Later,
                libc::EPIPE | libc::ECONNRESET => return Written::ReaderGone,
                // ENOSYS: Linux before 4.6. EINVAL, EPERM: a filter around us, or an odd file system.
                libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::EPERM
                    if matches!(self.way, Way::AtOnce | Way::Sent) =>
                {
                    self.way = Way::Small;
                }
                _ => return Written::Failed(failed),
            }
        }
    }
}
