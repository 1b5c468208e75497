//! The sockets through which a run reaches hosts outside.
//!
//! The run's network has no way out, and every address is local in it. The first process makes these sockets there;
//! the broker serves them, and dials outside. A socket stays in the network that it was made in.

use crate::enforce::EnforceError;
use crate::enforce::error::Named;
use crate::hosts::DNS_PORT;
use crate::plan::network::Doors;
use crate::sys::{OfCall, SyscallError, datagram, descriptor, namespace, route};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Questions of DNS in datagrams.
    Datagrams,
    /// Questions of DNS in connections.
    Questions,
    /// Connections to this port of a host. The socket has another port, so that the command's servers can have it.
    Port(u16),
    /// Connections to this port of the host's own loopback.
    HostPort(u16),
    /// No socket: the run's network itself, for who shows its ports outside.
    Network,
    /// The user namespace that gives the right to enter it.
    User,
}

impl Purpose {
    /// As two numbers.
    pub fn encode(self) -> (u16, u16) {
        match self {
            Purpose::Datagrams => (0, 0),
            Purpose::Questions => (1, 0),
            Purpose::Port(port) => (2, port),
            Purpose::HostPort(port) => (3, port),
            Purpose::Network => (4, 0),
            Purpose::User => (5, 0),
        }
    }

    /// What [`Purpose::encode`] has made two numbers of.
    pub fn decode(kind: u16, port: u16) -> Option<Purpose> {
        Some(match kind {
            0 => Purpose::Datagrams,
            1 => Purpose::Questions,
            2 => Purpose::Port(port),
            3 => Purpose::HostPort(port),
            4 => Purpose::Network,
            5 => Purpose::User,
            _ => return None,
        })
    }
}

/// A descriptor that was made, by its number in the table of descriptors that the supervisor shares.
pub type Door = (Purpose, RawFd);

/// Makes the sockets, in the network namespace of the calling process.
pub fn open(doors: &Doors) -> Result<Vec<Door>, EnforceError> {
    route::make_all_local().step("make all addresses local to the run")?;
    // A container with a read-only /proc/sys refuses it, which makes connections slower and nothing less safe.
    let _ = namespace::send_unpaced();
    let mut made = Vec::new();
    for family in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        let wildcard = |port| SocketAddr::new(family, port);
        let Some(datagrams) = datagrams(wildcard(DNS_PORT)).step("answer questions about names")? else {
            continue;
        };
        made.push((Purpose::Datagrams, datagrams));
        let mut listening = |purpose, address| -> Result<(), EnforceError> {
            let socket = listening(address).step("make a socket for connections out")?;
            made.extend(socket.map(|socket| (purpose, socket)));
            Ok(())
        };
        listening(Purpose::Questions, wildcard(DNS_PORT))?;
        for port in &doors.ports {
            // Port 0: one of the kernel's choice.
            listening(Purpose::Port(*port), wildcard(0))?;
        }
        let loopback = match family {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        for port in &doors.host_ports {
            listening(Purpose::HostPort(*port), SocketAddr::new(loopback, *port))?;
        }
    }
    Ok(made.into_iter().map(|(purpose, socket)| (purpose, socket.into_raw_fd())).collect())
}

/// Opens the network of the calling process, for a process that enters it.
pub fn show_network() -> Result<[Door; 2], EnforceError> {
    let open = |purpose, path: &str| -> Result<Door, EnforceError> {
        let opened = File::open(path).of("open").step("show the run's network to who shows its ports")?;
        Ok((purpose, OwnedFd::from(opened).into_raw_fd()))
    };
    Ok([open(Purpose::Network, "/proc/self/ns/net")?, open(Purpose::User, "/proc/self/ns/user")?])
}

/// The address that a socket has.
pub fn address_of(number: RawFd) -> Option<SocketAddr> {
    let address = rustix::net::getsockname(descriptor::by_number(number)).ok()?;
    SocketAddr::try_from(address).ok()
}

/// A datagram socket that tells where each datagram was sent; `None` without IPv6.
fn datagrams(address: SocketAddr) -> Result<Option<OwnedFd>, SyscallError> {
    let Some(socket) = new(address, SocketType::DGRAM)? else { return Ok(None) };
    datagram::tell_destinations(&socket)?;
    bind(&socket, &address).of("bind")?;
    Ok(Some(socket))
}

fn listening(address: SocketAddr) -> Result<Option<OwnedFd>, SyscallError> {
    let Some(socket) = new(address, SocketType::STREAM)? else { return Ok(None) };
    bind(&socket, &address).of("bind")?;
    listen(&socket, BACKLOG).of("listen")?;
    Ok(Some(socket))
}

fn new(address: SocketAddr, kind: SocketType) -> Result<Option<OwnedFd>, SyscallError> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = match socket_with(family, kind, flags, None) {
        Err(rustix::io::Errno::AFNOSUPPORT) if address.is_ipv6() => return Ok(None),
        made => made.of("socket")?,
    };
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true).of("setsockopt")?;
    }
    Ok(Some(socket))
}
