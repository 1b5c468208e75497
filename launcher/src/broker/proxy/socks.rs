//! SOCKS 5 (RFC 1928): no authentication, CONNECT alone.

use crate::broker::proxy::{Asked, Form, Wish, host};
use crate::broker::said::Host;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The first byte of everything that a client says.
pub const VERSION: u8 = 5;

/// Replies without an address: nothing is bound that a client could use.
const fn reply_of(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

const UNKNOWN_COMMAND: [u8; 10] = reply_of(7);
const UNKNOWN_ADDRESS: [u8; 10] = reply_of(8);
const NO_HOST: [u8; 10] = reply_of(4);

/// Reads what a client says.
pub fn read(bytes: &[u8], is_greeted: bool) -> Asked {
    if is_greeted { request(bytes) } else { greeting(bytes) }
}

/// The methods of authentication that a client offers.
fn greeting(bytes: &[u8]) -> Asked {
    const NONE: u8 = 0;
    let Some(count) = bytes.get(1).map(|count| usize::from(*count)) else { return Asked::Unfinished };
    match bytes.get(2..2 + count) {
        None => Asked::Unfinished,
        Some(methods) if methods.contains(&NONE) => Asked::Greeting(2 + count, &[VERSION, NONE]),
        Some(_) => Asked::Wrong(&[VERSION, 0xff]),
    }
}

fn request(bytes: &[u8]) -> Asked {
    const CONNECT: u8 = 1;
    let Some([_, command, reserved, kind]) = bytes.first_chunk() else { return Asked::Unfinished };
    if *command != CONNECT || *reserved != 0 {
        return Asked::Wrong(&UNKNOWN_COMMAND);
    }
    let rest = bytes.get(4..).unwrap_or_default();
    let (host, length) = match kind {
        1 => match rest.first_chunk::<4>() {
            Some(octets) => (Some(Host::Address(IpAddr::V4(Ipv4Addr::from(*octets)))), 4),
            None => return Asked::Unfinished,
        },
        3 => {
            let Some(length) = rest.first().map(|length| usize::from(*length)) else {
                return Asked::Unfinished;
            };
            match rest.get(1..1 + length) {
                Some(text) => (host(text), 1 + length),
                None => return Asked::Unfinished,
            }
        }
        4 => match rest.first_chunk::<16>() {
            Some(octets) => (Some(Host::Address(IpAddr::V6(Ipv6Addr::from(*octets)).to_canonical())), 16),
            None => return Asked::Unfinished,
        },
        _ => return Asked::Wrong(&UNKNOWN_ADDRESS),
    };
    let Some(port) = rest.get(length..).and_then(<[u8]>::first_chunk) else { return Asked::Unfinished };
    let port = u16::from_be_bytes(*port);
    match host {
        Some(host) => Asked::Wish(6 + length, Wish { host, port, form: Form::Socks, head: Vec::new() }),
        None => Asked::Wrong(&NO_HOST),
    }
}

/// The reply when the host is reached, or is not.
pub fn reply(failed: Option<i32>) -> [u8; 10] {
    reply_of(match failed {
        None => 0,
        Some(libc::EACCES | libc::EADDRNOTAVAIL) => 2,
        Some(libc::ENETUNREACH) => 3,
        Some(libc::EHOSTUNREACH | libc::ENOENT | libc::ETIMEDOUT) => 4,
        Some(libc::ECONNREFUSED) => 5,
        Some(_) => 1,
    })
}
