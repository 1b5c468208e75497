//! Addresses of internet sockets as connect(2) has them (ip(7), ipv6(7)).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address of an internet socket in the bytes of a call.
pub fn address_in(bytes: &[u8]) -> Option<SocketAddr> {
    let word = |at: usize| -> Option<[u8; 2]> { bytes.get(at..at + 2)?.try_into().ok() };
    let (family, port) = (u16::from_ne_bytes(word(0)?), u16::from_be_bytes(word(2)?));
    match i32::from(family) {
        libc::AF_INET => {
            let ip: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::new(Ipv4Addr::from(ip).into(), port))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some(SocketAddr::new(Ipv6Addr::from(ip).into(), port))
        }
        _ => None,
    }
}

/// The bytes of a call for an address.
pub fn bytes_of(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    let family = |family: i32| (family as u16).to_ne_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&family(libc::AF_INET)[..], &port, &ip.octets(), &[0; 8]].concat(),
        IpAddr::V6(ip) => [&family(libc::AF_INET6)[..], &port, &[0; 4], &ip.octets(), &[0; 4]].concat(),
    }
}

/// Puts another port into such bytes.
pub fn set_port(bytes: &mut [u8], port: u16) {
    if let Some(place) = bytes.get_mut(2..4) {
        place.copy_from_slice(&port.to_be_bytes());
    }
}
