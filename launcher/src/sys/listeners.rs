//! Who waits for TCP connections in this process's network (sock_diag(7), Linux 3.3). A table in /proc tells it as well
//! (proc_pid_net(5)), but to read it the kernel goes over every place where a connection may be: 5 ms and more.

use crate::sys::netlink::{self, HEADER};
use crate::sys::{OfCall, SyscallError};
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// `TCP_LISTEN` (linux/tcp_states.h).
const LISTENS: u8 = 10;
/// `SOCK_DIAG_BY_FAMILY` (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
/// The length of struct inet_diag_req_v2.
const REQUEST: usize = 56;
const ROOM: usize = 32 * 1024;

/// The addresses of one family at which somebody waits: at this port, or at any (0).
pub fn at(port: u16, ipv6: bool) -> Result<Vec<SocketAddr>, SyscallError> {
    let socket = netlink::open(Some(SOCK_DIAG))?;
    rustix::net::send(&socket, &request(port, ipv6), SendFlags::empty()).of("sendto(SOCK_DIAG_BY_FAMILY)")?;
    let (mut room, mut found) = (vec![0; ROOM], Vec::new());
    loop {
        let (length, _) = rustix::net::recv(&socket, &mut room[..], RecvFlags::empty()).of("recvfrom")?;
        let mut rest = room.get(..length).unwrap_or_default();
        while let Some((kind, body, next)) = message(rest) {
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(found),
                libc::NLMSG_ERROR => return Err(io::Error::from(io::ErrorKind::Unsupported)).of("recvfrom"),
                _ => found.extend(address(body)),
            }
            rest = next;
        }
        if length == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof)).of("recvfrom");
        }
    }
}

/// A dump of those that listen, as struct inet_diag_req_v2: family, protocol, two bytes more, states, port.
fn request(port: u16, ipv6: bool) -> Vec<u8> {
    let family = if ipv6 { libc::AF_INET6 } else { libc::AF_INET };
    let mut body = vec![family as u8, libc::IPPROTO_TCP as u8, 0, 0];
    body.extend((1_u32 << LISTENS).to_ne_bytes());
    body.extend(port.to_be_bytes());
    body.resize(REQUEST, 0);
    netlink::message((BY_FAMILY, libc::NLM_F_REQUEST | libc::NLM_F_DUMP), &body)
}

/// The first of several messages: its kind, its body, and those after it.
fn message(all: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(all.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(all.get(4..6)?.try_into().ok()?);
    let body = all.get(HEADER..length)?;
    Some((kind, body, all.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The own address in a struct inet_diag_msg: family, state, two bytes more, then the port, that of the other side, and
/// the address.
fn address(body: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes(body.get(4..6)?.try_into().ok()?);
    let ip = match i32::from(*body.first()?) {
        libc::AF_INET => IpAddr::from(<[u8; 4]>::try_from(body.get(8..12)?).ok()?),
        libc::AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(body.get(8..24)?).ok()?),
        _ => return None,
    };
    (*body.get(1)? == LISTENS).then_some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn who_listens_is_told_and_who_is_connected_is_not() {
        for (host, ipv6) in [("127.0.0.1", false), ("::1", true)] {
            let Ok(listener) = TcpListener::bind((host, 0)) else { continue };
            let own = listener.local_addr().unwrap();
            let client = TcpStream::connect(own).unwrap();
            // A kernel without it is served by the tables.
            let Ok(found) = at(own.port(), ipv6) else { return };
            assert_eq!(found, [own]);
            assert!(at(0, ipv6).unwrap().contains(&own));
            assert!(!at(own.port(), !ipv6).unwrap().contains(&own));
            let client = client.local_addr().unwrap();
            assert_eq!(at(client.port(), ipv6).unwrap(), []);
            drop(listener);
            assert_eq!(at(own.port(), ipv6).unwrap(), []);
        }
    }
}
