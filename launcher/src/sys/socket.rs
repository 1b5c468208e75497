//! A socket of another process, connected on its behalf.

use crate::sys::number::FileNumber;
use crate::sys::{OfCall, SyscallError, checked, descriptor, setting};
use descriptor::by_number;
use rustix::net::sockopt::{Timeout, socket_domain, socket_timeout, socket_type};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::PidfdGetfdFlags;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// The descriptor of another process, as one of ours (pidfd_getfd(2), Linux 5.6).
pub fn take(process: &OwnedFd, number: i32) -> Result<OwnedFd, SyscallError> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF)).of("pidfd_getfd");
    }
    rustix::process::pidfd_getfd(process, number, PidfdGetfdFlags::empty()).of("pidfd_getfd")
}

/// Whether descendants let descriptors be taken at all. A filter around us may answer in the kernel's place (Docker's
/// default one does), and Yama may keep everybody without capabilities from it.
pub fn can_take() -> bool {
    // SAFETY: plain numbers, none of which is a descriptor: the kernel says so itself.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_getfd, -1, -1, 0) };
    let asked = result < 0 && SyscallError::last("pidfd_getfd").errno() == libc::EBADF;
    asked && !matches!(setting::number("kernel/yama/ptrace_scope"), Some(2 | 3))
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

/// The cookie of the network that a socket was made in: a number that no other network has until the machine is started
/// anew (SO_NETNS_COOKIE, Linux 5.14). It takes no capability.
pub fn cookie(socket: &OwnedFd) -> io::Result<u64> {
    const NETWORK_COOKIE: libc::c_int = 71;
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: room for the answer, and its length.
    let result = unsafe {
        let (value, length) = ((&raw mut cookie).cast(), &raw mut length);
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, NETWORK_COOKIE, value, length)
    };
    checked("getsockopt", result).map(|_| cookie).map_err(|failed| failed.cause)
}

/// Whether this kernel tells networks apart by [`cookie`].
pub fn has_cookies() -> bool {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
    socket.is_ok_and(|socket| cookie(&socket).is_ok())
}

/// SIOCGSKNS of linux/sockios.h, which libc does not have.
const GET_NETWORK: libc::c_ulong = 0x894c;

/// The network that a socket was made in. It takes CAP_NET_ADMIN in the user namespace
/// that owns the network. The user who made that namespace has it from outside, without any capability. For
/// the host's network the kernel refuses an ordinary user.
pub fn network(socket: &OwnedFd) -> io::Result<FileNumber> {
    // SAFETY: it takes no further argument, and gives a new descriptor.
    let network = unsafe { libc::ioctl(socket.as_raw_fd(), GET_NETWORK as _) };
    let network = checked("ioctl", network).map_err(|failed| failed.cause)?;
    File::from(descriptor::own(network as RawFd)).metadata().map(|network| FileNumber::of(&network))
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

/// The address that leads to exactly this file, as long as it is held.
pub fn address_of(target: &SocketFile) -> Vec<u8> {
    let family = libc::AF_UNIX as libc::sa_family_t;
    let path = format!("/proc/self/fd/{}\0", target.file.as_raw_fd());
    [&family.to_ne_bytes(), path.as_bytes()].concat()
}

/// Connects to an address as long as that takes, by the socket's own flags and timeout; an error number otherwise.
/// After EINTR the connection of an internet socket goes on being made.
pub fn connect(socket: &OwnedFd, address: &[u8]) -> Result<(), i32> {
    let length = address.len() as libc::socklen_t;
    // SAFETY: so many bytes, which the kernel judges as an address.
    let result = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    checked("connect", result).map(drop).map_err(|failed| failed.errno())
}

/// The addresses of a connection: of the end that was connected, and of the one that was connected to. IPv4 addresses
/// are such ones.
pub type Ends = (SocketAddr, SocketAddr);

/// The address of this end of a connection.
pub fn local_address(socket: &OwnedFd) -> Option<SocketAddr> {
    let address: SocketAddr = rustix::net::getsockname(socket).ok()?.try_into().ok()?;
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

/// The address of the other end.
pub fn peer_address(socket: &OwnedFd) -> Option<SocketAddr> {
    let address: SocketAddr = rustix::net::getpeername(socket).ok()??.try_into().ok()?;
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

/// Has a TCP socket be connected to nothing, as before it was connected (connect(2)).
pub fn disconnect(socket: &OwnedFd) {
    // AF_UNSPEC is 0.
    let _ = connect(socket, &[0; 16]);
}

/// Has a socket wait for connections; an error number otherwise.
pub fn listen(socket: &OwnedFd, backlog: i32) -> Result<(), i32> {
    rustix::net::listen(socket, backlog).map_err(|errno| errno.raw_os_error())
}

/// Has a TCP socket take so many bytes that nobody has read yet, from the start. The kernel goes on making room as it
/// is of use, which it would not after SO_RCVBUF. A socket that is only readable with so many bytes gets that room, and
/// keeps it.
pub fn make_room(socket: &OwnedFd, bytes: u32) {
    // Where the kernel does not do it, it begins with less.
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, 1);
}

/// Has a TCP socket take no more to send while it has so many bytes that the other end has no room for.
pub fn hold_little(socket: &OwnedFd, bytes: u32) {
    let _ = set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes);
}

fn set(socket: &OwnedFd, level: i32, option: i32, value: u32) -> Result<(), SyscallError> {
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel reads one number.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    checked("setsockopt", result).map(drop)
}

/// Whether a call on the socket waits for so long only, which its owner has set: such a call is never restarted.
pub fn has_timeout(socket: &OwnedFd) -> bool {
    !matches!(socket_timeout(socket, Timeout::Send), Ok(None))
}

/// Whether calls on the socket wait (O_NONBLOCK), as of now: its owner can change that.
pub fn waits(socket: &OwnedFd) -> bool {
    !rustix::fs::fcntl_getfl(socket).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::NONBLOCK))
}

/// Two UNIX sockets that send packets to each other and nowhere else.
pub fn packet_pair() -> Result<[OwnedFd; 2], SyscallError> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let pair = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None).of("socketpair")?;
    Ok([pair.0, pair.1])
}

/// The next message, if there is one: its length, 0 at the end.
pub fn receive_at_once(from: &OwnedFd, buffer: &mut [u8]) -> Result<Option<usize>, SyscallError> {
    match rustix::net::recv(from, buffer, RecvFlags::DONTWAIT) {
        Ok((_, length)) => Ok(Some(length)),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
        Err(failed) => Err(failed).of("recv"),
    }
}

/// Sends something short over a connection that nothing was sent over yet. Whether all of it went.
pub fn send_at_once(socket: &OwnedFd, bytes: &[u8]) -> bool {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::send(socket, bytes, flags).is_ok_and(|count| count == bytes.len())
}

/// Tells the other end that nothing more will be sent.
pub fn send_no_more(socket: &OwnedFd) -> Result<(), SyscallError> {
    rustix::net::shutdown(socket, rustix::net::Shutdown::Write).of("shutdown")
}

/// Whether it is an internet socket that has to be connected before it sends.
pub fn is_internet_stream(socket: &OwnedFd) -> bool {
    is_internet(socket.as_raw_fd()) && socket_type(socket) == Ok(SocketType::STREAM)
}

/// Whether a socket is of TCP itself. One of multipath TCP is a stream too, and Landlock does not look at those.
pub fn is_tcp(socket: &OwnedFd) -> bool {
    is_internet_stream(socket)
        && rustix::net::sockopt::socket_protocol(socket) == Ok(Some(rustix::net::ipproto::TCP))
}

/// Sends copies of descriptors over a UNIX socket, with one byte. Waits for nobody.
pub fn send_descriptors(over: BorrowedFd<'_>, descriptors: &[BorrowedFd<'_>; 2]) -> Result<(), SyscallError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(descriptors));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::sendmsg(over, &[IoSlice::new(b"x")], &mut control, flags).of("sendmsg").map(drop)
}

/// Receives what [`send_descriptors`] has sent. Waits for nobody.
pub fn receive_descriptors(over: BorrowedFd<'_>) -> Result<Option<[OwnedFd; 2]>, SyscallError> {
    Ok(receive_with_descriptors(over, &mut [0])?.1)
}

/// Receives a message, and the descriptors that came with it. Returns its length. Waits for nobody.
pub fn receive_with_descriptors(
    over: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> Result<(usize, Option<[OwnedFd; 2]>), SyscallError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let message =
        rustix::net::recvmsg(over, &mut [IoSliceMut::new(buffer)], &mut control, flags).of("recvmsg")?;
    let received = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors.collect::<Vec<OwnedFd>>()),
        _ => None,
    });
    Ok((message.bytes, received.and_then(|descriptors| descriptors.try_into().ok())))
}

/// How an internet socket sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// Over a connection.
    Stream,
    /// One datagram after the other.
    Datagrams,
}

/// How an internet socket of ours sends, if it is one.
pub fn sends(socket: &OwnedFd) -> Option<Sends> {
    if !is_internet(socket.as_raw_fd()) {
        return None;
    }
    match socket_type(socket) {
        Ok(SocketType::STREAM) => Some(Sends::Stream),
        Ok(SocketType::DGRAM) => Some(Sends::Datagrams),
        _ => None,
    }
}

/// Whether a TCP socket is closed: the connection that it was to make has failed already, though connect(2) said that
/// it was on its way. Its error is left for its owner.
pub fn is_closed(socket: &OwnedFd) -> bool {
    const TCP_CLOSE: u8 = 7;
    tcp_state(socket) == Some(TCP_CLOSE)
}

/// Whether a TCP socket is still being connected. Where connect(2) has succeeded, the first bytes that are sent begin
/// it (TCP_FASTOPEN_CONNECT).
pub fn is_being_connected(socket: &OwnedFd) -> bool {
    const TCP_SYN_SENT: u8 = 2;
    tcp_state(socket) == Some(TCP_SYN_SENT)
}

/// Whether its owner has shut a TCP socket down for sending (shutdown(2)).
pub fn is_shut(socket: &OwnedFd) -> bool {
    // TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_LAST_ACK and TCP_CLOSING of linux/tcp_states.h.
    matches!(tcp_state(socket), Some(4 | 5 | 9 | 11))
}

/// The state of a TCP socket.
fn tcp_state(socket: &OwnedFd) -> Option<u8> {
    let mut state = 0_u8;
    let mut length = 1 as libc::socklen_t;
    // SAFETY: room for the first byte of the answer, `tcpi_state`, and its length.
    let result = unsafe {
        let (value, length) = ((&raw mut state).cast(), &raw mut length);
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, value, length)
    };
    (result == 0).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::socket_recv_buffer_size;
    use std::io::{ErrorKind, Write};
    use std::net::{TcpListener, TcpStream};

    /// How many bytes a socket takes whose other end does not read.
    fn taken(prepare: impl Fn(&OwnedFd)) -> usize {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = OwnedFd::from(TcpStream::connect(server.local_addr().unwrap()).unwrap());
        let _other = server.accept().unwrap();
        prepare(&socket);
        let mut stream = TcpStream::from(socket);
        stream.set_nonblocking(true).unwrap();
        let mut all = 0;
        for _ in 0..20 {
            match stream.write(&vec![0; 1 << 20]) {
                Ok(count) => all += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                Err(error) => panic!("{error}"),
            }
        }
        all
    }

    #[test]
    fn what_is_to_hold_little_does() {
        let (much, little) = (taken(|_| ()), taken(|socket| hold_little(socket, 128 * 1024)));
        assert!(little < much / 2 && little < 1 << 20, "{little} of {much}");
    }

    #[test]
    fn room_is_made_and_nothing_else() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        let before = socket_recv_buffer_size(&socket).unwrap();
        make_room(&socket, 1 << 20);
        assert!(socket_recv_buffer_size(&socket).unwrap() > before.max(1 << 19));
        // One byte is enough to be read.
        rustix::net::connect(&socket, &server.local_addr().unwrap()).unwrap();
        server.accept().unwrap().0.write_all(b"x").unwrap();
        let interest = descriptor::Interest::read(Some(socket.as_raw_fd()));
        let [ready] = descriptor::poll([interest], Some(std::time::Duration::from_secs(5))).unwrap();
        assert!(ready.now);
    }
}
