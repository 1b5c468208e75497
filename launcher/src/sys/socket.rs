//! A socket of another process, connected on its behalf.

use super::timer::Interruption;
use super::{Failed, checked, descriptor};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::time::Duration;

/// The descriptor of another process, as one of ours (pidfd_getfd(2), Linux 5.6).
pub fn take(process: &OwnedFd, number: i32) -> Result<OwnedFd, Failed> {
    // SAFETY: plain numbers.
    let taken = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) };
    checked("pidfd_getfd", taken).map(|taken| descriptor::own(taken as i32))
}

/// Whether it is a UNIX socket that sends only where it is connected.
pub fn is_unix_stream(socket: &OwnedFd) -> bool {
    let kind = option(socket, libc::SO_TYPE);
    option(socket, libc::SO_DOMAIN) == Some(libc::AF_UNIX)
        && matches!(kind, Some(libc::SOCK_STREAM | libc::SOCK_SEQPACKET))
}

fn option(socket: &OwnedFd, name: libc::c_int) -> Option<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: room for one number.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut size)
    };
    (result == 0).then_some(value)
}

/// A socket file, held so that no renaming changes which one it is.
pub struct SocketFile {
    file: std::fs::File,
    /// Where it really is.
    pub path: PathBuf,
}

/// Takes a place that has to be a socket file.
pub fn hold(file: std::fs::File) -> std::io::Result<SocketFile> {
    if !file.metadata()?.file_type().is_socket() {
        return Err(std::io::Error::from_raw_os_error(libc::ECONNREFUSED));
    }
    let path = descriptor::place(&file)?;
    Ok(SocketFile { file, path })
}

/// How long a server whose queue is full is waited for.
const PATIENCE: Duration = Duration::from_millis(200);

/// Connects to exactly this file; an error number otherwise.
pub fn connect(socket: &OwnedFd, target: &SocketFile) -> Result<(), i32> {
    let text = format!("/proc/self/fd/{}", target.file.as_raw_fd());
    // SAFETY: all zeroes is a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (slot, byte) in address.sun_path.iter_mut().zip(text.bytes()) {
        *slot = byte as libc::c_char;
    }
    // The socket's own options and flags could bound the waiting, but its owner can change them meanwhile.
    let _interruption = Interruption::every(PATIENCE).map_err(|failed| failed.errno())?;
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: a valid address of this length.
    let result = unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result == 0 {
        return Ok(());
    }
    match Failed::last("connect").errno() {
        // As a full queue does to whoever does not wait.
        libc::EINTR => Err(libc::EAGAIN),
        errno => Err(errno),
    }
}
