//! Calls on sockets.

use crate::explain::decode::names;
use crate::explain::decode::table::Argument::{
    Choice, Flags, Int, MessageHeader, Protocol, Size, Skip, SocketAddress,
};
use crate::explain::decode::table::Signature;

// The address says more than the descriptor, which `connect` and `bind` leave out. A send may have no address.
pub static CALLS: &[Signature] = &[
    ("socket socketpair", &[Choice(names::FAMILIES), Flags(&names::SOCKET_TYPE), Protocol]),
    ("connect bind", &[Skip, SocketAddress(2)]),
    ("listen", &[Int, Int]),
    ("accept getsockname getpeername", &[Int]),
    ("accept4", &[Int, Skip, Skip, Flags(&names::SOCKET_FLAGS)]),
    ("sendto", &[Int, Skip, Skip, Flags(&names::MSG), SocketAddress(5)]),
    ("sendmsg", &[Int, MessageHeader, Flags(&names::MSG)]),
    ("sendmmsg", &[Int, MessageHeader, Skip, Flags(&names::MSG)]),
    ("recvfrom", &[Int, Skip, Size, Flags(&names::MSG)]),
    ("recvmsg", &[Int, Skip, Flags(&names::MSG)]),
    ("recvmmsg", &[Int, Skip, Int, Flags(&names::MSG)]),
    ("shutdown", &[Int, Choice(names::SHUTDOWN)]),
    ("setsockopt getsockopt", &[Int, Choice(names::SOCKET_LEVELS), Int]),
];
