//! Connections that the supervisor makes.
//!
//! UNIX sockets, by their path, where Landlock cannot tell them apart (before ABI 9). connect(2) is refused
//! by the filter then, for otherwise every service of the host that has a socket file would be in reach.
//! The supervisor makes those connections that the path rules allow: it copies the address, opens the
//! socket file, looks where that file really is, and connects a duplicate of the caller's socket to exactly
//! that file.
//!
//! In a network of the run's own: all sockets that are of that network, wherever they are to go. A socket
//! stays in the network that it was made in. One of the host's, handed in by whoever started the run, is of
//! another network and is refused.

use crate::explain::caller;
use crate::explain::decode::{Address, Memory};
use crate::plan::namespaces::Layout;
use crate::plan::rules::{self, PathRule};
use crate::supervise::dispatch::{Handler, Step};
use crate::supervise::judge::{Judge, Verdict, error};
use crate::supervise::waiting::{NotifiedCall, Waiting};
use crate::sys::seccomp::Answer;
use crate::sys::socket::SocketFile;
use crate::sys::{SyscallError, bounded, process, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// `struct sockaddr_storage`: the kernel takes no more.
const ADDRESS_LIMIT: usize = 128;

/// A network, by device and inode.
type Network = (u64, u64);

/// Makes the connections that are allowed.
pub struct Connections {
    /// Path rules with resolved paths: what may be changed may be connected to.
    pub granted: Rc<[PathRule]>,
    /// Socket files named by `--unix`.
    pub named: Vec<PathBuf>,
    /// What is mounted for the run alone.
    pub layout: Option<Rc<Layout>>,
    /// Whether the run has a network of its own.
    pub own_network: bool,
}

/// A connection that somebody asks for.
pub struct Attempt {
    /// The caller, by a descriptor that stands for no other process, and the number of its socket.
    socket: (Result<OwnedFd, SyscallError>, i32),
    destination: Destination,
}

enum Destination {
    /// A socket file. `is_there`: the caller finds this very file at its place.
    File { file: SocketFile, is_there: bool },
    /// None: the error that the caller meets at the path.
    Missing(i32),
    /// Whatever the network of the caller leads to: the address, or the error that the caller meets.
    Inside { address: Result<Vec<u8>, i32>, network: Option<Network> },
}

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Connected,
    /// It fails as it would without a sandbox.
    Fails(i32),
    /// It is not allowed.
    Refused,
}

impl Handler for Connections {
    type Copy = Attempt;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Attempt> {
        let NotifiedCall { notification: call, verdict, .. } = waiting.call;
        if !matches!(verdict, Verdict::Violation | Verdict::Logged) {
            return None;
        }
        let destination = match &waiting.decoded().address {
            Some(Address::UnixPath(name)) => {
                match caller::hold(call.pid, None, name, true).and_then(socket::hold) {
                    Ok(file) => {
                        let is_there = caller::is_at(call.pid, file.file(), &file.path);
                        Destination::File { file, is_there }
                    }
                    // A missing file is told only where it may be seen, but stat(2) tells as much.
                    Err(error) => Destination::Missing(errno(&error)),
                }
            }
            _ if self.own_network => Destination::Inside {
                address: address(&waiting.memory, call.args),
                network: caller::network(&call.pid.to_string()).ok(),
            },
            _ => return None,
        };
        let socket = (process::open_pid(waiting.caller().process), call.args[0] as i32);
        Some(Attempt { socket, destination })
    }

    fn act(&mut self, attempt: Attempt, _: &NotifiedCall, _: &mut Judge) -> Result<Step, SyscallError> {
        Ok(match self.connect(attempt) {
            Outcome::Connected => Step::Answer(Answer::Done),
            Outcome::Fails(errno) => Step::Answer(error(errno)),
            Outcome::Refused => Step::Next,
        })
    }
}

impl Connections {
    fn connect(&self, attempt: Attempt) -> Outcome {
        match attempt.destination {
            Destination::Missing(errno) => Outcome::Fails(errno),
            Destination::File { file, is_there } => {
                if !self.allow(&file.path) || !is_there {
                    return Outcome::Refused;
                }
                match take(attempt.socket) {
                    Some(socket) if socket::is_unix_stream(&socket) => {
                        outcome(socket::connect(&socket, &file))
                    }
                    _ => Outcome::Refused,
                }
            }
            Destination::Inside { address, network } => inside(take(attempt.socket), address, network),
        }
    }

    /// Whether connections to this socket file are allowed.
    fn allow(&self, path: &Path) -> bool {
        rules::may_connect(&self.granted, &self.named, self.layout.as_deref(), path)
    }
}

/// A duplicate of the caller's socket. An exec of another thread that waits for the memory of others keeps
/// everybody from taking one.
fn take((caller, number): (Result<OwnedFd, SyscallError>, i32)) -> Option<OwnedFd> {
    bounded::within(move || caller.and_then(|caller| socket::take(&caller, number))).and_then(Result::ok)
}

/// Connects a socket of the run's own network. The socket decides, not the address: an internet socket
/// leads to no file, whatever its address says.
fn inside(socket: Option<OwnedFd>, address: Result<Vec<u8>, i32>, network: Option<Network>) -> Outcome {
    let Some(socket) = socket else { return Outcome::Refused };
    let address = match address {
        Ok(address) => address,
        Err(errno) => return Outcome::Fails(errno),
    };
    let reaches_no_file =
        socket::is_internet(socket.as_raw_fd()) || (socket::is_unix_stream(&socket) && is_abstract(&address));
    if !reaches_no_file || !is_of_network(&socket, network) {
        return Outcome::Refused;
    }
    outcome(socket::connect_to(&socket, &address))
}

fn outcome(connected: Result<(), i32>) -> Outcome {
    connected.map_or_else(Outcome::Fails, |()| Outcome::Connected)
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::ECONNREFUSED)
}

/// The bytes of the address, or the error of a call that has none.
fn address(memory: &dyn Memory, args: [u64; 6]) -> Result<Vec<u8>, i32> {
    // The kernel takes the length as an int.
    let length = args[2] as u32 as usize;
    let mut address = vec![0; Some(length).filter(|length| *length <= ADDRESS_LIMIT).ok_or(libc::EINVAL)?];
    if memory.read(args[1], &mut address) < length {
        return Err(libc::EFAULT);
    }
    Ok(address)
}

/// Whether an address is a name of a UNIX socket without a file.
fn is_abstract(address: &[u8]) -> bool {
    address.starts_with(&(libc::AF_UNIX as u16).to_ne_bytes()) && address.get(2) == Some(&0)
}

/// Whether a socket is of this network, and that one is not the supervisor's.
fn is_of_network(socket: &OwnedFd, network: Option<Network>) -> bool {
    let Ok(of_socket) = socket::network(socket) else { return false };
    network == Some(of_socket) && caller::network("self").is_ok_and(|own| own != of_socket)
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
    fn a_socket_of_the_hosts_network_is_never_taken_for_the_runs_own() {
        let socket = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        assert!(socket::is_internet(socket.as_raw_fd()));
        for network in [caller::network("self").ok(), None] {
            assert!(!is_of_network(&socket, network));
        }
    }
}
