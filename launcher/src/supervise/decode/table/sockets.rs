//! Calls on sockets.

use super::Kind::{Choice, Fd, Flags, Int, MessageHeader, Protocol, Size, Skip, SocketAddress, SocketType};
use super::Signature;
use crate::supervise::decode::names;

// Where a call goes says more than through which descriptor; but a send may have no address.
pub static CALLS: &[Signature] = &[
    ("socket", &[Choice(names::FAMILIES), SocketType, Protocol]),
    ("socketpair", &[Choice(names::FAMILIES), SocketType, Protocol]),
    ("connect", &[Skip, SocketAddress(2)]),
    ("bind", &[Skip, SocketAddress(2)]),
    ("listen", &[Fd, Int]),
    ("accept", &[Fd]),
    ("accept4", &[Fd, Skip, Skip, Flags(&names::SOCKET_FLAGS)]),
    ("sendto", &[Fd, Skip, Skip, Flags(&names::MSG), SocketAddress(5)]),
    ("sendmsg", &[Fd, MessageHeader, Flags(&names::MSG)]),
    ("sendmmsg", &[Fd, MessageHeader, Skip, Flags(&names::MSG)]),
    ("recvfrom", &[Fd, Skip, Size, Flags(&names::MSG)]),
    ("recvmsg", &[Fd, Skip, Flags(&names::MSG)]),
    ("recvmmsg", &[Fd, Skip, Int, Flags(&names::MSG)]),
    ("shutdown", &[Fd, Choice(names::SHUTDOWN)]),
    ("getsockname", &[Fd]),
    ("getpeername", &[Fd]),
    ("setsockopt", &[Fd, Choice(names::SOCKET_LEVELS), Int]),
    ("getsockopt", &[Fd, Choice(names::SOCKET_LEVELS), Int]),
];
