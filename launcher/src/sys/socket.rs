//! A socket of another process, connected on its behalf.

use super::timer::Interruption;
use super::{Failed, checked, descriptor};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
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
    let kind = option(socket.as_raw_fd(), libc::SO_TYPE);
    option(socket.as_raw_fd(), libc::SO_DOMAIN) == Some(libc::AF_UNIX)
        && matches!(kind, Some(libc::SOCK_STREAM | libc::SOCK_SEQPACKET))
}

/// Whether a descriptor of ours is an IPv4 or IPv6 socket.
pub fn is_internet(number: RawFd) -> bool {
    matches!(option(number, libc::SO_DOMAIN), Some(libc::AF_INET | libc::AF_INET6))
}

/// Whether a descriptor of ours is a socket of a kind that belongs to a network: any but a UNIX socket.
pub fn is_of_network(number: RawFd) -> bool {
    option(number, libc::SO_DOMAIN).is_some_and(|family| family != libc::AF_UNIX)
}

/// SIOCGSKNS of linux/sockios.h, which libc does not have.
const GET_NETWORK: libc::c_ulong = 0x894c;

/// The network that a socket was made in, by device and inode. It takes CAP_NET_ADMIN in the user namespace that owns
/// the network. Whoever made that namespace has it from outside, without any capability of his own; of the host's
/// network an ordinary user is told nothing.
pub fn network(socket: &OwnedFd) -> std::io::Result<(u64, u64)> {
    // SAFETY: it takes no further argument, and gives a new descriptor.
    let network = unsafe { libc::ioctl(socket.as_raw_fd(), GET_NETWORK as _) };
    if network < 0 {
        return Err(std::io::Error::last_os_error());
    }
    let found = std::fs::File::from(descriptor::own(network)).metadata()?;
    Ok((found.dev(), found.ino()))
}

fn option(socket: RawFd, name: libc::c_int) -> Option<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: room for one number.
    let result =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, name, (&raw mut value).cast(), &raw mut size) };
    (result == 0).then_some(value)
}

/// A socket file, held so that no renaming changes which one it is.
pub struct SocketFile {
    file: std::fs::File,
    /// Where it really is.
    pub path: PathBuf,
}

impl SocketFile {
    /// The file itself.
    pub fn file(&self) -> &std::fs::File {
        &self.file
    }
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
    // SAFETY: a plain structure, without padding, that lives as long as the slice.
    let bytes = unsafe {
        std::slice::from_raw_parts((&raw const address).cast::<u8>(), size_of::<libc::sockaddr_un>())
    };
    connect_to(socket, bytes).map_err(|errno| match errno {
        // As a full queue does to whoever does not wait.
        libc::EINTR => libc::EAGAIN,
        errno => errno,
    })
}

/// Connects to an address; an error number otherwise. EINTR: it waits for the server still, as after a signal.
pub fn connect_to(socket: &OwnedFd, address: &[u8]) -> Result<(), i32> {
    // The socket's own options and flags could bound the waiting, but its owner can change them meanwhile.
    let _interruption = Interruption::every(PATIENCE).map_err(|failed| failed.errno())?;
    let length = address.len() as libc::socklen_t;
    // SAFETY: so many bytes, which the kernel judges as an address.
    let result = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    if result == 0 { Ok(()) } else { Err(Failed::last("connect").errno()) }
}
