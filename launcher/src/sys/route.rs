//! Interfaces, addresses and routes of the calling process's network namespace (rtnetlink(7)).

use crate::sys::{OfCall, SyscallError};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

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
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        rustix::net::socket_with(family, SocketType::RAW, flags, None).of("socket").map(Netlink)
    }

    /// `ip route add local default dev lo`.
    fn add_local_route(&self, family: i32) -> Result<(), SyscallError> {
        let mut body = route(family, 0, libc::RT_TABLE_LOCAL, (libc::RT_SCOPE_HOST, libc::RTN_LOCAL));
        body.extend(attribute(libc::RTA_OIF, &LOOPBACK.to_ne_bytes()));
        self.ask("sendto(RTM_NEWROUTE)", libc::RTM_NEWROUTE, &body)
    }

    /// Asks for something to be made: struct nlmsghdr, and what it is about.
    fn ask(&self, call: &'static str, kind: u16, body: &[u8]) -> Result<(), SyscallError> {
        const FLAGS: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE) as u16;
        let mut message = Vec::with_capacity(16 + body.len());
        message.extend((16 + body.len() as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(FLAGS.to_ne_bytes());
        message.extend([0; 8]);
        message.extend(body);
        rustix::net::send(&self.0, &message, SendFlags::empty()).of(call)?;
        let mut answer = [0; 256];
        let (_, length) = rustix::net::recv(&self.0, &mut answer[..], RecvFlags::empty()).of("recv")?;
        // struct nlmsghdr, then the error of struct nlmsgerr: 0 for an acknowledgement.
        let error = answer.get(..length).and_then(|answer| answer.get(16..20)?.try_into().ok());
        match error.map(i32::from_ne_bytes) {
            Some(0) => Ok(()),
            Some(error) => Err(io::Error::from_raw_os_error(-error)).of(call),
            None => Err(io::Error::from_raw_os_error(libc::EPROTO)).of(call),
        }
    }
}

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
