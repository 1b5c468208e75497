//! Socket addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::explain::decode::{Address, flags, names};
use crate::text::escape;

/// Size of `struct sockaddr_storage`: the kernel takes no more.
pub const LIMIT: usize = 128;

/// Size of `struct sockaddr_un`.
const UNIX_LIMIT: usize = 110;

/// Longest name of a UNIX socket as text, in bytes.
const NAME_LIMIT: usize = 160;

/// An address as the kernel takes it, and as text; `None` if it is too short to have a family.
pub fn parse(bytes: &[u8]) -> Option<(Address, String)> {
    let family = u16::from_ne_bytes(field(bytes, 0)?);
    let known = match i32::from(family) {
        libc::AF_INET => inet(bytes),
        libc::AF_INET6 => inet6(bytes),
        libc::AF_UNIX => unix(bytes),
        libc::AF_NETLINK => netlink(bytes),
        _ => None,
    };
    let (address, detail) = known.unwrap_or_else(|| (Address::Other { family }, other(family, bytes)));
    let family = flags::choice(names::FAMILIES, family.into());
    Some((address, if detail.is_empty() { family } else { format!("{family} {detail}") }))
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn inet(bytes: &[u8]) -> Option<(Address, String)> {
    // The kernel wants all 16 bytes, though it uses only 8.
    let _: [u8; 16] = field(bytes, 0)?;
    let port = u16::from_be_bytes(field(bytes, 2)?);
    let ip = Ipv4Addr::from(field::<4>(bytes, 4)?);
    Some((Address::Inet { ip: IpAddr::V4(ip), port }, format!("{ip}:{port}")))
}

fn inet6(bytes: &[u8]) -> Option<(Address, String)> {
    let port = u16::from_be_bytes(field(bytes, 2)?);
    let ip = Ipv6Addr::from(field::<16>(bytes, 8)?);
    // Old callers leave out the scope.
    let scope = field(bytes, 24).map_or(0, u32::from_ne_bytes);
    let zone = if scope == 0 { String::new() } else { format!("%{scope}") };
    Some((Address::Inet { ip: IpAddr::V6(ip), port }, format!("[{ip}{zone}]:{port}")))
}

fn unix(bytes: &[u8]) -> Option<(Address, String)> {
    if bytes.len() > UNIX_LIMIT {
        return None;
    }
    match bytes.get(2..)? {
        [] => Some((Address::UnixUnnamed, "unnamed".into())),
        [0, name @ ..] => {
            let text = format!("@\"{}\"", escape(name, NAME_LIMIT));
            Some((Address::UnixAbstract(name.to_vec()), text))
        }
        path => {
            let path = path.split(|&byte| byte == 0).next().unwrap_or_default();
            let text = format!("\"{}\"", escape(path, NAME_LIMIT));
            Some((Address::UnixPath(path.to_vec()), text))
        }
    }
}

fn netlink(bytes: &[u8]) -> Option<(Address, String)> {
    let pid = u32::from_ne_bytes(field(bytes, 4)?);
    let groups = u32::from_ne_bytes(field(bytes, 8)?);
    Some((Address::Netlink { pid, groups }, format!("pid {pid} groups {groups:#x}")))
}

/// The text of an address that is none of the [`Address`] variants: of another family, or of a wrong length.
fn other(family: u16, bytes: &[u8]) -> String {
    let wrong_length = || format!("with a wrong length of {}", bytes.len());
    match i32::from(family) {
        libc::AF_VSOCK => vsock(bytes).unwrap_or_else(wrong_length),
        libc::AF_INET | libc::AF_INET6 | libc::AF_UNIX | libc::AF_NETLINK => wrong_length(),
        _ => String::new(),
    }
}

fn vsock(bytes: &[u8]) -> Option<String> {
    let port = u32::from_ne_bytes(field(bytes, 4)?);
    let cid = u32::from_ne_bytes(field(bytes, 8)?);
    Some(format!("{cid}:{port}"))
}
