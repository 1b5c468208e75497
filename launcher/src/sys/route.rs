//! Routes of the calling process's network namespace (rtnetlink(7)).

use crate::sys::{OfCall, SyscallError};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::os::fd::OwnedFd;

/// The loopback interface has this number in every network namespace: it is made first.
const LOOPBACK: u32 = 1;

/// Makes every IPv4 address an address of this very machine, and every IPv6 address too, where there is IPv6. What is
/// sent anywhere then arrives here, and nothing has to be sent to be refused.
pub fn make_all_local() -> Result<(), SyscallError> {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(family, SocketType::RAW, flags, None).of("socket")?;
    add_local_route(&socket, libc::AF_INET)?;
    match add_local_route(&socket, libc::AF_INET6) {
        // A kernel without IPv6 has no way out over IPv6 either.
        Err(failed) if matches!(failed.errno(), libc::EOPNOTSUPP | libc::EAFNOSUPPORT | libc::EACCES) => {
            Ok(())
        }
        added => added,
    }
}

fn add_local_route(socket: &OwnedFd, family: i32) -> Result<(), SyscallError> {
    const CALL: &str = "sendto(RTM_NEWROUTE)";
    rustix::net::send(socket, &local_route(family), SendFlags::empty()).of(CALL)?;
    let mut answer = [0; 256];
    let (_, length) = rustix::net::recv(socket, &mut answer[..], RecvFlags::empty()).of("recv")?;
    // struct nlmsghdr, then the error of struct nlmsgerr: 0 for an acknowledgement.
    let error = answer.get(..length).and_then(|answer| answer.get(16..20)?.try_into().ok());
    match error.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)).of(CALL),
        None => Err(io::Error::from_raw_os_error(libc::EPROTO)).of(CALL),
    }
}

/// `ip route add local default dev lo`: struct nlmsghdr, struct rtmsg, and the number of the interface.
fn local_route(family: i32) -> Vec<u8> {
    const FLAGS: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE) as u16;
    const LENGTH: u32 = 16 + 12 + 8;
    let mut message = Vec::with_capacity(LENGTH as usize);
    message.extend(LENGTH.to_ne_bytes());
    message.extend(libc::RTM_NEWROUTE.to_ne_bytes());
    message.extend(FLAGS.to_ne_bytes());
    message.extend([0; 8]);
    // Family; lengths of destination and source; type of service; table; who made it; scope; type.
    let (table, by) = (libc::RT_TABLE_LOCAL, libc::RTPROT_BOOT);
    message.extend([family as u8, 0, 0, 0, table, by, libc::RT_SCOPE_HOST, libc::RTN_LOCAL]);
    message.extend([0; 4]);
    message.extend(8_u16.to_ne_bytes());
    message.extend(libc::RTA_OIF.to_ne_bytes());
    message.extend(LOOPBACK.to_ne_bytes());
    message
}
