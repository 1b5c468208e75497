//! Sockets and messages of netlink(7).

use crate::sys::{OfCall, SyscallError};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};
use std::os::fd::OwnedFd;

/// The length of struct nlmsghdr.
pub const HEADER: usize = 16;

/// A socket to a part of the kernel: routes, if none is named.
pub fn open(protocol: Option<Protocol>) -> Result<OwnedFd, SyscallError> {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    rustix::net::socket_with(family, SocketType::RAW, flags, protocol).of("socket")
}

/// A message: struct nlmsghdr, and what it is about.
pub fn message((kind, flags): (u16, i32), body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend((HEADER as u32 + body.len() as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}
