//! What a socket that is to be connected, and its address, lead to.

use crate::explain::caller;
use crate::explain::decode::Memory;
use crate::sys::number::FileNumber;
use crate::sys::socket;
use std::os::fd::{AsRawFd, OwnedFd};

/// A network, by device and inode.
pub type Network = FileNumber;

/// Whether a socket leads to no file, and to no UNIX socket without one. Here too the socket decides. One of UNIX
/// may go on with an address of another family: the kernel has the right error.
pub fn is_outside(socket: &OwnedFd, address: &[u8]) -> bool {
    socket::is_of_network(socket.as_raw_fd()) || !is_of_unix(address)
}

/// Whether an address is one of UNIX sockets, or too short to say.
fn is_of_unix(address: &[u8]) -> bool {
    address.get(..2).is_none_or(|family| family == (libc::AF_UNIX as u16).to_ne_bytes())
}

/// Whether an address is a name of a UNIX socket without a file.
pub fn is_abstract(address: &[u8]) -> bool {
    address.starts_with(&(libc::AF_UNIX as u16).to_ne_bytes()) && address.get(2) == Some(&0)
}

/// Whether a socket is of the run's network, by its cookie; or of this network, which is not the supervisor's.
pub fn is_of_network(socket: &OwnedFd, (cookie, network): (Option<u64>, Option<Network>)) -> bool {
    if cookie.is_some() && socket::cookie(socket).ok() == cookie {
        return true;
    }
    let Ok(of_socket) = socket::network(socket) else { return false };
    network == Some(of_socket) && caller::network("self").is_ok_and(|own| own != of_socket)
}

/// `struct sockaddr_storage`: the kernel takes no more.
const ADDRESS_LIMIT: usize = 128;

/// The bytes of the address, or the error of a call that has none.
pub fn address(memory: &dyn Memory, args: [u64; 6]) -> Result<Vec<u8>, i32> {
    // The kernel takes the length as an int.
    let length = args[2] as u32 as usize;
    let mut address = vec![0; Some(length).filter(|length| *length <= ADDRESS_LIMIT).ok_or(libc::EINVAL)?];
    if memory.read(args[1], &mut address) < length {
        return Err(libc::EFAULT);
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn only_names_without_a_file_count_as_such() {
        assert!(is_abstract(b"\x01\0\0name"));
        for other in [&b"\x01\0/file"[..], b"\x01\0", b"\x02\0\0name", b"\x01", b""] {
            assert!(!is_abstract(other), "{other:?}");
        }
    }

    #[test]
    fn where_the_network_is_open_a_unix_socket_connects_to_nothing() {
        let unix = OwnedFd::from(std::os::unix::net::UnixStream::pair().unwrap().0);
        let internet = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        for address in [&b"\x01\0/file"[..], b"\x01\0\0name", b"\x01\0", b"\x01", b""] {
            assert!(!is_outside(&unix, address) && is_outside(&internet, address), "{address:?}");
        }
        // No family at all: an internet socket is disconnected by it.
        assert!(is_outside(&unix, b"\0\0") && is_outside(&internet, b"\0\0"));
        let file = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        assert!(!is_outside(&file, b"\x01\0/file"));
    }

    #[test]
    fn a_socket_of_the_hosts_network_is_never_taken_for_the_runs_own() {
        let socket = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        assert!(socket::is_internet(socket.as_raw_fd()));
        for network in [caller::network("self").ok(), None] {
            for cookie in [None, Some(socket::cookie(&socket).unwrap() + 1)] {
                assert!(!is_of_network(&socket, (cookie, network)));
            }
        }
    }
}
