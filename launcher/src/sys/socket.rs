//! A socket of another process, connected on its behalf.

use crate::sys::descriptor::by_number;
use crate::sys::timer::Interruption;
use crate::sys::{OfCall, SyscallError, checked, descriptor};
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::PidfdGetfdFlags;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;
use std::time::Duration;

/// The descriptor of another process, as one of ours (pidfd_getfd(2), Linux 5.6).
pub fn take(process: &OwnedFd, number: i32) -> Result<OwnedFd, SyscallError> {
    rustix::process::pidfd_getfd(process, number, PidfdGetfdFlags::empty()).of("pidfd_getfd")
}

/// Whether it is a UNIX socket that sends only where it is connected.
pub fn is_unix_stream(socket: &OwnedFd) -> bool {
    socket_domain(socket) == Ok(AddressFamily::UNIX)
        && matches!(socket_type(socket), Ok(SocketType::STREAM | SocketType::SEQPACKET))
}

/// Whether a descriptor of ours is an IPv4 or IPv6 socket.
pub fn is_internet(number: RawFd) -> bool {
    matches!(socket_domain(by_number(number)), Ok(AddressFamily::INET | AddressFamily::INET6))
}

/// Whether a descriptor of ours is a socket of a kind that belongs to a network: any but a UNIX socket.
pub fn is_of_network(number: RawFd) -> bool {
    socket_domain(by_number(number)).is_ok_and(|family| family != AddressFamily::UNIX)
}

/// SIOCGSKNS of linux/sockios.h, which libc does not have.
const GET_NETWORK: libc::c_ulong = 0x894c;

/// The network that a socket was made in, by device and inode. It takes CAP_NET_ADMIN in the user namespace
/// that owns the network. The user who made that namespace has it from outside, without any capability. For
/// the host's network the kernel refuses an ordinary user.
pub fn network(socket: &OwnedFd) -> io::Result<(u64, u64)> {
    // SAFETY: it takes no further argument, and gives a new descriptor.
    let network = unsafe { libc::ioctl(socket.as_raw_fd(), GET_NETWORK as _) };
    let network = checked("ioctl", network).map_err(|failed| failed.cause)?;
    let found = File::from(descriptor::own(network as RawFd)).metadata()?;
    Ok((found.dev(), found.ino()))
}

/// A socket file that is held open: renaming does not change which file it is.
pub struct SocketFile {
    file: File,
    /// Where it really is.
    pub path: PathBuf,
}

impl SocketFile {
    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Takes a place, which must be a socket file.
pub fn hold(file: File) -> io::Result<SocketFile> {
    if !file.metadata()?.file_type().is_socket() {
        return Err(io::Error::from_raw_os_error(libc::ECONNREFUSED));
    }
    let path = descriptor::place(&file)?;
    Ok(SocketFile { file, path })
}

/// How long a connection waits for a server whose queue is full.
const LONGEST_WAIT: Duration = Duration::from_millis(200);

/// Connects to exactly this file; an error number otherwise.
pub fn connect(socket: &OwnedFd, target: &SocketFile) -> Result<(), i32> {
    let family = libc::AF_UNIX as libc::sa_family_t;
    let path = format!("/proc/self/fd/{}\0", target.file.as_raw_fd());
    let address = [&family.to_ne_bytes(), path.as_bytes()].concat();
    connect_to(socket, &address).map_err(|errno| match errno {
        // What a socket that does not wait gets from a full queue.
        libc::EINTR => libc::EAGAIN,
        errno => errno,
    })
}

/// Connects to an address; an error number otherwise. EINTR: the connection still waits for the server, as
/// after a signal.
pub fn connect_to(socket: &OwnedFd, address: &[u8]) -> Result<(), i32> {
    // Not by the socket's own timeout and flags: its owner can change them meanwhile.
    let _interruption = Interruption::every(LONGEST_WAIT).map_err(|failed| failed.errno())?;
    let length = address.len() as libc::socklen_t;
    // SAFETY: so many bytes, which the kernel judges as an address.
    let result = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    checked("connect", result).map(drop).map_err(|failed| failed.errno())
}
