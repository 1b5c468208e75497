//! Interfaces, addresses and routes of the calling process's network namespace (rtnetlink(7)).

use crate::sys::netlink::{self, HEADER};
use crate::sys::{OfCall, SyscallError};
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// The loopback interface has this number in every network namespace: it is made first.
const LOOPBACK: u32 = 1;

/// The number of each end of a pair, in its network.
const OF_PAIR: u32 = 100;

/// Makes every IPv4 address an address of this very machine, and every IPv6 address too, where there is IPv6. What is
/// sent anywhere then arrives here, and nothing has to be sent to be refused.
pub fn make_all_local() -> Result<(), SyscallError> {
    let netlink = Netlink::open()?;
    netlink.add_local_route(libc::AF_INET)?;
    match netlink.add_local_route(libc::AF_INET6) {
        // A kernel without IPv6 has no way out over IPv6 either.
        Err(failed) if matches!(failed.errno(), libc::EOPNOTSUPP | libc::EAFNOSUPPORT | libc::EACCES) => {
            Ok(())
        }
        added => added,
    }
}

/// Gives the loopback interface one more address of each family. Where it is the only interface, and has only 127.0.0.1
/// and ::1, glibc finds no address for who asks for those that this machine can use (AI_ADDRCONFIG, getaddrinfo(3)) of
/// one family, `127.0.0.1` itself included. Nothing depends on it. Allocates no memory: the caller may share it.
pub fn add_loopback_addresses() {
    const LINK_LOCAL: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    let mut messages = [0; LONGEST_ADDRESS * 2];
    let (first, second) = messages.split_at_mut(LONGEST_ADDRESS);
    let first = address_message(first, (libc::AF_INET, libc::RT_SCOPE_HOST), &[127, 0, 0, 2]);
    let second = address_message(second, (libc::AF_INET6, libc::RT_SCOPE_LINK), &LINK_LOCAL);
    if let Ok(Netlink(socket)) = Netlink::open() {
        for message in [first, second] {
            let _ = rustix::net::send(&socket, message, SendFlags::empty());
        }
    }
}

/// The length of a message about an IPv6 address.
const LONGEST_ADDRESS: usize = 44;

/// A message that gives the loopback interface an address: struct nlmsghdr, struct ifaddrmsg (family, length of the
/// prefix, flags, scope, interface) and an attribute with the address.
fn address_message<'m>(room: &'m mut [u8], (family, scope): (i32, u8), address: &[u8]) -> &'m [u8] {
    let length = HEADER + 8 + 4 + address.len();
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_CREATE) as u16;
    let parts: [&[u8]; 9] = [
        &(length as u32).to_ne_bytes(),
        &libc::RTM_NEWADDR.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &[0; 8],
        &[family as u8, address.len() as u8 * 8, 0, scope],
        &LOOPBACK.to_ne_bytes(),
        &(4 + address.len() as u16).to_ne_bytes(),
        &libc::IFA_LOCAL.to_ne_bytes(),
        address,
    ];
    let bytes = parts.into_iter().flatten();
    room.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
    room.get(..length).unwrap_or_default()
}

/// Makes a pair of interfaces (veth(4)): one end in this network, the other one in another.
pub fn add_pair(other: BorrowedFd<'_>) -> Result<(), SyscallError> {
    const VETH_INFO_PEER: u16 = 1;
    let network = attribute(libc::IFLA_NET_NS_FD, &other.as_raw_fd().to_ne_bytes());
    let peer = [interface(OF_PAIR, 0), attribute(libc::IFLA_IFNAME, b"out\0"), network].concat();
    let data = attribute(libc::IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &peer));
    let info = [attribute(libc::IFLA_INFO_KIND, b"veth\0"), data].concat();
    let own = [interface(OF_PAIR, 0), attribute(libc::IFLA_IFNAME, b"in\0")].concat();
    let body = [own, attribute(libc::IFLA_LINKINFO, &info)].concat();
    Netlink::open()?.ask("sendto(RTM_NEWLINK)", libc::RTM_NEWLINK, &body)
}

/// Gives this end of the pair its address, and starts it.
pub fn start_end(address: Ipv4Addr) -> Result<(), SyscallError> {
    const WHOLE: u8 = 32;
    let netlink = Netlink::open()?;
    netlink.ask("sendto(RTM_NEWLINK)", libc::RTM_NEWLINK, &interface(OF_PAIR, libc::IFF_UP as u32))?;
    // Family, length of the prefix, flags, scope, interface.
    let mut body = vec![libc::AF_INET as u8, WHOLE, 0, libc::RT_SCOPE_UNIVERSE];
    body.extend(OF_PAIR.to_ne_bytes());
    body.extend(attribute(libc::IFA_LOCAL, &address.octets()));
    netlink.ask("sendto(RTM_NEWADDR)", libc::RTM_NEWADDR, &body)
}

/// Has packets to an address, or to all that no other route is about, go out by this end. It outranks what is local.
pub fn lead_out(to: Option<Ipv4Addr>) -> Result<(), SyscallError> {
    let (bits, table) = if to.is_some() { (32, libc::RT_TABLE_LOCAL) } else { (0, libc::RT_TABLE_MAIN) };
    let mut body = route(libc::AF_INET, bits, table, (libc::RT_SCOPE_LINK, libc::RTN_UNICAST));
    body.extend(to.into_iter().flat_map(|to| attribute(libc::RTA_DST, &to.octets())));
    body.extend(attribute(libc::RTA_OIF, &OF_PAIR.to_ne_bytes()));
    Netlink::open()?.ask("sendto(RTM_NEWROUTE)", libc::RTM_NEWROUTE, &body)
}

struct Netlink(OwnedFd);

impl Netlink {
    fn open() -> Result<Netlink, SyscallError> {
        netlink::open(None).map(Netlink)
    }

    /// `ip route add local default dev lo`.
    fn add_local_route(&self, family: i32) -> Result<(), SyscallError> {
        let mut body = route(family, 0, libc::RT_TABLE_LOCAL, (libc::RT_SCOPE_HOST, libc::RTN_LOCAL));
        body.extend(attribute(libc::RTA_OIF, &LOOPBACK.to_ne_bytes()));
        self.ask("sendto(RTM_NEWROUTE)", libc::RTM_NEWROUTE, &body)
    }

    /// Asks for something to be made.
    fn ask(&self, call: &'static str, kind: u16, body: &[u8]) -> Result<(), SyscallError> {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE;
        match self.exchange(call, (kind, flags), body)? {
            Reply::Done => Ok(()),
            Reply::Failed(error) => Err(io::Error::from_raw_os_error(error)).of(call),
            Reply::Other(..) => Err(io::Error::from_raw_os_error(libc::EPROTO)).of(call),
        }
    }

    /// Sends a message, and takes the reply to it.
    fn exchange(&self, call: &'static str, kind: (u16, i32), body: &[u8]) -> Result<Reply, SyscallError> {
        rustix::net::send(&self.0, &netlink::message(kind, body), SendFlags::empty()).of(call)?;
        let mut answer = [0; 512];
        let (_, length) = rustix::net::recv(&self.0, &mut answer[..], RecvFlags::empty()).of("recv")?;
        Reply::parse(answer.get(..length).unwrap_or_default())
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EPROTO))
            .of(call)
    }
}

/// What the kernel says to a message.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Done,
    /// With this error.
    Failed(i32),
    /// A message of this kind, without its header.
    Other(u16, Vec<u8>),
}

impl Reply {
    fn parse(message: &[u8]) -> Option<Reply> {
        let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
        let body = message.get(HEADER..)?;
        if i32::from(kind) != libc::NLMSG_ERROR {
            return Some(Reply::Other(kind, body.to_vec()));
        }
        // struct nlmsgerr begins with the error: 0 for an acknowledgement.
        Some(match i32::from_ne_bytes(body.get(..4)?.try_into().ok()?) {
            0 => Reply::Done,
            error => Reply::Failed(error.saturating_neg()),
        })
    }
}

/// Tells which way packets go, as `ip route get` does.
pub struct Routes(Netlink);

impl Routes {
    /// Those of the calling process's network, for the calling user.
    pub fn open() -> Result<Routes, SyscallError> {
        Netlink::open().map(Routes)
    }

    /// The descriptor.
    pub fn number(&self) -> RawFd {
        self.0.0.as_raw_fd()
    }

    /// Whether TCP connections to an address leave this machine. Where no route leads there, none arrives at this
    /// machine either. False if the kernel does not tell.
    pub fn lead_out(&self, to: SocketAddr) -> bool {
        const KIND: usize = 7;
        match self.0.exchange(
            "sendto(RTM_GETROUTE)",
            (libc::RTM_GETROUTE, libc::NLM_F_REQUEST),
            &question(to),
        ) {
            Ok(Reply::Other(libc::RTM_NEWROUTE, found)) => {
                let by = find(&found, libc::RTA_OIF);
                found.get(KIND) == Some(&libc::RTN_UNICAST) && by != Some(&LOOPBACK.to_ne_bytes())
            }
            Ok(Reply::Failed(error)) => {
                matches!(error, libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EINVAL)
            }
            Ok(Reply::Done | Reply::Other(..)) | Err(_) => false,
        }
    }
}

/// What RTM_GETROUTE is asked with. Rules about protocols and ports count (Linux 4.19).
fn question(to: SocketAddr) -> Vec<u8> {
    const IP_PROTO: u16 = 27;
    const DESTINATION_PORT: u16 = 29;
    let (family, address) = match to.ip() {
        IpAddr::V4(ip) => (libc::AF_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (libc::AF_INET6, ip.octets().to_vec()),
    };
    let mut body = vec![family as u8, address.len() as u8 * 8];
    body.resize(ROUTE, 0);
    body.extend(attribute(libc::RTA_DST, &address));
    body.extend(attribute(IP_PROTO, &[libc::IPPROTO_TCP as u8]));
    body.extend(attribute(DESTINATION_PORT, &to.port().to_be_bytes()));
    body
}

/// The data of an attribute behind struct rtmsg.
fn find(route: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut rest = route.get(ROUTE..)?;
    loop {
        let word = |at: usize| Some(u16::from_ne_bytes(rest.get(at..at + 2)?.try_into().ok()?));
        let (length, kind) = (usize::from(word(0)?), word(2)?);
        if kind == wanted {
            return rest.get(4..length);
        }
        rest = rest.get(length.max(4).next_multiple_of(4)..)?;
    }
}

/// The length of struct rtmsg.
const ROUTE: usize = 12;

/// struct rtmsg: family; lengths of destination and source; type of service; table; who made it; scope; type; flags.
fn route(family: i32, bits: u8, table: u8, (scope, kind): (u8, u8)) -> Vec<u8> {
    vec![family as u8, bits, 0, 0, table, libc::RTPROT_BOOT, scope, kind, 0, 0, 0, 0]
}

/// struct ifinfomsg: family, type, number, flags, and which of them change.
fn interface(number: u32, flags: u32) -> Vec<u8> {
    [0, number, flags, flags].into_iter().flat_map(u32::to_ne_bytes).collect()
}

/// struct rtattr: length and kind, and the data up to a multiple of four bytes.
fn attribute(kind: u16, data: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(4 + data.len() + 3);
    all.extend((4 + data.len() as u16).to_ne_bytes());
    all.extend(kind.to_ne_bytes());
    all.extend(data);
    all.resize(all.len().next_multiple_of(4), 0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_does_not_lead_out_and_replies_are_told_apart() {
        let routes = Routes::open().unwrap();
        for own in ["127.0.0.1:80", "127.1.2.3:443", "[::1]:80", "0.0.0.0:1", "255.255.255.255:1"] {
            assert!(!routes.lead_out(own.parse().unwrap()), "{own}");
        }
        let message = |kind: u16, body: &[u8]| [&[0; 4], &kind.to_ne_bytes()[..], &[0; 10], body].concat();
        let failed = message(libc::NLMSG_ERROR as u16, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(Reply::parse(&failed), Some(Reply::Failed(libc::EPERM)));
        assert_eq!(Reply::parse(&message(2, &[0; 4])), Some(Reply::Done));
        assert_eq!(Reply::parse(&message(2, &[0; 3])), None);
        assert_eq!(Reply::parse(&[0; 15]), None);
        let route = [vec![0; ROUTE], attribute(1, b"abcde"), attribute(4, &[9, 0, 0, 0])].concat();
        assert_eq!((find(&route, 4), find(&route, 5)), (Some(&[9, 0, 0, 0][..]), None));
        // A length of nothing ends.
        assert_eq!(find(&[0; 64], 4), None);
    }
}
