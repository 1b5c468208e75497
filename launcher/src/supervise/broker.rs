//! Connections that the supervisor makes: UNIX sockets by their path, where Landlock cannot tell them apart (before ABI 9).
//!
//! connect(2) is refused by the filter then, for otherwise every service of the host that has a socket
//! file would be in reach. The supervisor makes those connections itself that the path rules allow: it
//! copies the address, opens the socket file, looks where that file really is, and connects a duplicate
//! of the caller's socket to exactly that file. Nothing is decided by memory that the caller can change.
//!
//! In a network of the run's own it connects the sockets that are of that network, wherever they are to go: a
//! socket stays in the network that it was made in. One of the host's, handed in by whoever started the run, is of
//! another and is refused.

use crate::launch::namespaces::Layout;
use crate::launch::policy::{self, PathRule};
use crate::supervise::decode::{Address, Decoded, Memory};
use crate::supervise::{facts, patience};
use crate::sys::process::Pid;
use crate::sys::seccomp::Notification;
use crate::sys::{Failed, socket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What a connection attempt comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brokered {
    /// It is connected.
    Done,
    /// It fails as it would without a sandbox.
    Fails(i32),
    /// It is not allowed.
    Refused,
}

/// Which socket files may be connected to.
pub struct Broker {
    /// Path rules with resolved paths: what may be changed may be connected to.
    pub granted: Vec<PathRule>,
    /// Socket files named by `--unix`.
    pub named: Vec<PathBuf>,
    /// What is mounted for the run alone.
    pub layout: Option<Rc<Layout>>,
    /// Whether the run has a network of its own.
    pub own_network: bool,
}

/// `struct sockaddr_storage`: the kernel takes no more.
const ADDRESS_LIMIT: usize = 128;

impl Broker {
    /// Connects on behalf of the caller, which is held, if it may.
    pub fn connect(
        &self,
        call: &Notification,
        decoded: &Decoded,
        memory: &dyn Memory,
        caller: Result<OwnedFd, Failed>,
    ) -> Brokered {
        let number = call.args[0] as i32;
        // An exec of another thread that waits for the memory of others keeps everybody from taking one.
        let taken = || {
            patience::within(move || caller.and_then(|caller| socket::take(&caller, number)))
                .and_then(Result::ok)
        };
        let Some(Address::UnixPath(name)) = &decoded.address else {
            return if self.own_network { inside(call, memory, taken()) } else { Brokered::Refused };
        };
        let held = facts::hold(call.pid, None, name, true).and_then(socket::hold);
        let target = match held {
            Ok(target) => target,
            // Also what is missing is told only where it may be seen; but that much stat(2) tells as well.
            Err(error) => return Brokered::Fails(error.raw_os_error().unwrap_or(libc::ECONNREFUSED)),
        };
        if !self.allows(&target.path) || !facts::is_at(call.pid, target.file(), &target.path) {
            return Brokered::Refused;
        }
        match taken() {
            Some(socket) if socket::is_unix_stream(&socket) => {
                socket::connect(&socket, &target).map_or_else(Brokered::Fails, |()| Brokered::Done)
            }
            _ => Brokered::Refused,
        }
    }

    /// Whether connections to this socket file are allowed.
    pub fn allows(&self, path: &Path) -> bool {
        self.named.iter().any(|named| path == named)
            || policy::may_change(&self.granted, self.layout.as_deref(), path)
    }
}

/// Connects a socket of the run's own network. Which one it is decides, not the address: an internet socket leads to no
/// file, whatever its address says.
fn inside(call: &Notification, memory: &dyn Memory, taken: Option<OwnedFd>) -> Brokered {
    let Some(socket) = taken else { return Brokered::Refused };
    // The kernel takes the length as an int.
    let length = call.args[2] as u32 as usize;
    let mut room = [0; ADDRESS_LIMIT];
    let Some(address) = room.get_mut(..length) else { return Brokered::Fails(libc::EINVAL) };
    if memory.read(call.args[1], address) < length {
        return Brokered::Fails(libc::EFAULT);
    }
    let reaches_no_file =
        socket::is_internet(socket.as_raw_fd()) || (socket::is_unix_stream(&socket) && is_abstract(address));
    if !reaches_no_file || !is_of_own_network(&socket, call.pid) {
        return Brokered::Refused;
    }
    socket::connect_to(&socket, address).map_or_else(Brokered::Fails, |()| Brokered::Done)
}

/// Whether an address is a name of a UNIX socket without a file.
fn is_abstract(address: &[u8]) -> bool {
    address.starts_with(&(libc::AF_UNIX as u16).to_ne_bytes()) && address.get(2) == Some(&0)
}

/// Whether a socket is of the network that the caller is in, and that one not the supervisor's.
fn is_of_own_network(socket: &OwnedFd, thread: Pid) -> bool {
    let Ok(network) = socket::network(socket) else { return false };
    let (inside, outside) = (facts::network(&thread.to_string()), facts::network("self"));
    inside.is_ok_and(|inside| inside == network) && outside.is_ok_and(|outside| outside != network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process;
    use std::net::UdpSocket;

    #[test]
    fn only_names_without_a_file_count_as_such() {
        assert!(is_abstract(b"\x01\0\0name"));
        for other in [&b"\x01\0/file"[..], b"\x01\0", b"\x02\0\0name", b"\x01", b""] {
            assert!(!is_abstract(other), "{other:?}");
        }
    }

    #[test]
    fn a_socket_of_the_hosts_network_is_never_taken_for_the_runs_own() {
        let socket = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        assert!(socket::is_internet(socket.as_raw_fd()));
        assert!(!is_of_own_network(&socket, process::id()));
    }
}
