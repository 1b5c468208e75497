//! Datagrams that are answered from the address they were sent to (IP_PKTINFO of ip(7), IPV6_PKTINFO of ipv6(7)). Not
//! through rustix, which does not have these control messages.

use crate::sys::{SyscallError, checked};
use rustix::net::AddressFamily;
use rustix::net::sockopt::socket_domain;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

/// Room for one control message of either kind, aligned as its header.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Where a datagram came from, and the address that it was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The sender.
    pub from: SocketAddr,
    /// The address of ours.
    pub to: IpAddr,
}

/// Has a UDP socket tell the destination of each datagram, and lets it answer from any such address: of a route to the
/// whole range (`local default`) the kernel knows for IPv4 only that all addresses are its own.
pub fn tell_destinations(socket: &OwnedFd) -> Result<(), SyscallError> {
    if socket_domain(socket) == Ok(AddressFamily::INET6) {
        switch_on(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, "setsockopt(IPV6_RECVPKTINFO)")?;
        return switch_on(socket, libc::IPPROTO_IPV6, libc::IPV6_FREEBIND, "setsockopt(IPV6_FREEBIND)");
    }
    switch_on(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, "setsockopt(IP_PKTINFO)")
}

fn switch_on(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    call: &'static str,
) -> Result<(), SyscallError> {
    let on: libc::c_int = 1;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads one number.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const on).cast(), length) };
    checked(call, result).map(drop)
}

/// Receives a datagram without waiting. `None`: it does not fit, or does not say where it was sent to.
pub fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Option<(usize, Ends)>, SyscallError> {
    // SAFETY: all zeroes is a valid value of both.
    let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    let mut control = MaybeUninit::<Control>::zeroed();
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    // SAFETY: every pointer leads to as much room as its length says.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let count = checked("recvmsg", count as libc::c_long)? as usize;
    if message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
        return Ok(None);
    }
    // SAFETY: the kernel filled the structure, and says how much of it.
    let from = unsafe { address(&name, message.msg_namelen) };
    // SAFETY: the control messages are within the room above.
    let to = unsafe { destination(&message) };
    Ok(from.zip(to).map(|(from, to)| (count, Ends { from, to })))
}

/// # Safety
/// `name` has `length` bytes of an address.
unsafe fn address(name: &libc::sockaddr_storage, length: libc::socklen_t) -> Option<SocketAddr> {
    let start: *const libc::sockaddr_storage = name;
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET if length as usize >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: the family and the length are those of this structure.
            let found = unsafe { start.cast::<libc::sockaddr_in>().read() };
            let address = Ipv4Addr::from_bits(u32::from_be(found.sin_addr.s_addr));
            Some(SocketAddrV4::new(address, u16::from_be(found.sin_port)).into())
        }
        libc::AF_INET6 if length as usize >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: the family and the length are those of this structure.
            let found = unsafe { start.cast::<libc::sockaddr_in6>().read() };
            let address = Ipv6Addr::from(found.sin6_addr.s6_addr);
            let port = u16::from_be(found.sin6_port);
            Some(SocketAddrV6::new(address, port, found.sin6_flowinfo, found.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// # Safety
/// `message` was filled by recvmsg(2), and its room for control messages is still there.
unsafe fn destination(message: &libc::msghdr) -> Option<IpAddr> {
    // SAFETY: by the caller's word.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return headers that are within the room.
        let (level, kind, data) =
            unsafe { ((*header).cmsg_level, (*header).cmsg_type, libc::CMSG_DATA(header)) };
        if (level, kind) == (libc::IPPROTO_IP, libc::IP_PKTINFO) {
            // SAFETY: this kind of message has this structure.
            let info = unsafe { data.cast::<libc::in_pktinfo>().read_unaligned() };
            return Some(Ipv4Addr::from_bits(u32::from_be(info.ipi_addr.s_addr)).into());
        }
        if (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) {
            // SAFETY: this kind of message has this structure.
            let info = unsafe { data.cast::<libc::in6_pktinfo>().read_unaligned() };
            return Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
        }
        // SAFETY: as above.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}

/// Sends an answer to where a datagram came from, from the address that it was sent to. Waits for nobody.
pub fn answer(socket: &OwnedFd, bytes: &[u8], ends: &Ends) -> Result<(), SyscallError> {
    // SAFETY: all zeroes is a valid value of each of these.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let (mut v4, mut v6): (libc::sockaddr_in, libc::sockaddr_in6) = unsafe { std::mem::zeroed() };
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    match ends.from {
        SocketAddr::V4(to) => {
            v4.sin_family = libc::AF_INET as libc::sa_family_t;
            v4.sin_port = to.port().to_be();
            v4.sin_addr.s_addr = to.ip().to_bits().to_be();
            message.msg_name = (&raw mut v4).cast();
            message.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        }
        SocketAddr::V6(to) => {
            v6.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            v6.sin6_port = to.port().to_be();
            v6.sin6_addr.s6_addr = to.ip().octets();
            v6.sin6_scope_id = to.scope_id();
            message.msg_name = (&raw mut v6).cast();
            message.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
        }
    }
    match ends.to {
        IpAddr::V4(from) => {
            let own = libc::in_addr { s_addr: from.to_bits().to_be() };
            let any = libc::in_addr { s_addr: 0 };
            let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: own, ipi_addr: any };
            // SAFETY: the room for control messages is set, and large enough for this one.
            unsafe { put(&mut message, libc::IPPROTO_IP, libc::IP_PKTINFO, info) };
        }
        IpAddr::V6(from) => {
            let own = libc::in6_addr { s6_addr: from.octets() };
            let info = libc::in6_pktinfo { ipi6_addr: own, ipi6_ifindex: 0 };
            // SAFETY: the room for control messages is set, and large enough for this one.
            unsafe { put(&mut message, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info) };
        }
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: every pointer leads to as many bytes as its length says.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    match checked("sendmsg", sent as libc::c_long)? {
        count if count as usize == bytes.len() => Ok(()),
        _ => Err(SyscallError { call: "sendmsg", cause: io::ErrorKind::WriteZero.into() }),
    }
}

/// Makes the only control message.
///
/// # Safety
/// The message has room for it.
unsafe fn put<T>(message: &mut libc::msghdr, level: libc::c_int, kind: libc::c_int, value: T) {
    let size = size_of::<T>() as libc::c_uint;
    // SAFETY: the room is large enough by the caller's word, so there is a first header, and data behind it.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = libc::CMSG_LEN(size) as _;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        message.msg_controllen = libc::CMSG_SPACE(size) as _;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn the_answer_comes_from_the_address_that_was_asked() {
        for (any, own) in [("0.0.0.0:0", "127.0.3.4"), ("[::]:0", "::1")] {
            let Ok(server) = UdpSocket::bind(any) else { continue };
            let port = server.local_addr().unwrap().port();
            let server = OwnedFd::from(server);
            tell_destinations(&server).unwrap();
            let client = UdpSocket::bind(any).unwrap();
            client.connect((own.parse::<IpAddr>().unwrap(), port)).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            client.send(b"question").unwrap();
            let mut buffer = [0; 64];
            let (count, ends) = receive(&server, &mut buffer).unwrap().unwrap();
            assert_eq!((&buffer[..count], ends.to), (&b"question"[..], own.parse().unwrap()));
            answer(&server, b"answer", &ends).unwrap();
            assert_eq!(client.recv(&mut buffer).unwrap(), 6);
            client.send(&[0; 65]).unwrap();
            assert_eq!(receive(&server, &mut buffer).unwrap(), None);
            assert_eq!(receive(&server, &mut buffer).unwrap_err().errno(), libc::EAGAIN);
        }
    }
}
