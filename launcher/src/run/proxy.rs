//! Takes the ports of a proxy on this machine's loopback. The broker serves them later.

use crate::broker::{Door, Listener};
use crate::error::{Refusal, cannot};
use crate::plan::by_proxy::{At, Ports};
use crate::sys::{OfCall, SyscallError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::fd::OwnedFd;

/// The sockets, listening.
pub struct Sockets {
    /// For connections.
    pub listeners: Vec<Listener>,
    /// For questions of DNS.
    pub questions: Vec<OwnedFd>,
}

impl Sockets {
    /// All of them.
    pub fn all(self) -> Vec<OwnedFd> {
        self.listeners.into_iter().map(|listener| listener.socket).chain(self.questions).collect()
    }
}

/// Takes ports of the kernel's choice.
pub fn take() -> Result<(Sockets, At), Refusal> {
    let (listeners, proxy) = both().map_err(cannot("take a port of loopback for the proxy"))?;
    let (questions, of_questions) = both().map_err(cannot("take a port of loopback for questions of DNS"))?;
    let listeners = listeners.into_iter().map(|socket| Listener { kind: Door::Proxy, socket }).collect();
    Ok((Sockets { listeners, questions }, At { proxy, questions: of_questions }))
}

fn both() -> Result<(Vec<OwnedFd>, Ports), SyscallError> {
    let (socket, ipv4) = listening(Ipv4Addr::LOCALHOST.into(), 0)?;
    // A machine without IPv6 has IPv4 alone.
    let (other, ipv6) = listening(Ipv6Addr::LOCALHOST.into(), 0).ok().unzip();
    Ok(([socket].into_iter().chain(other).collect(), Ports { ipv4, ipv6 }))
}

/// Listens on a port, or on a free one for 0; tells which.
pub fn listening(address: IpAddr, port: u16) -> Result<(OwnedFd, u16), SyscallError> {
    let made = TcpListener::bind((address, port)).of("bind")?;
    let port = made.local_addr().of("getsockname")?.port();
    made.set_nonblocking(true).of("ioctl")?;
    Ok((made.into(), port))
}
