//! UNIX sockets by their path, where Landlock cannot tell them apart (before ABI 9).
//!
//! connect(2) is refused by the filter then, for otherwise every service of the host that has a socket
//! file would be in reach. The supervisor makes those connections itself that the path rules allow: it
//! copies the address, opens the socket file, looks where that file really is, and connects a duplicate
//! of the caller's socket to exactly that file. Nothing is decided by memory that the caller can change.

use crate::launch::policy::PathRule;
use crate::supervise::decode::{Address, Decoded};
use crate::supervise::facts;
use crate::sys::process::{self, Pid};
use crate::sys::seccomp::Notification;
use crate::sys::socket;
use std::path::{Path, PathBuf};

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
}

impl Broker {
    /// Connects on behalf of the caller, if it may.
    pub fn connect(&self, call: &Notification, decoded: &Decoded, process: Pid) -> Brokered {
        let Some(Address::UnixPath(name)) = &decoded.address else { return Brokered::Refused };
        let held = facts::hold(call.pid, None, name, true).and_then(socket::hold);
        let target = match held {
            Ok(target) => target,
            // Also what is missing is told only where it may be seen; but that much stat(2) tells as well.
            Err(error) => return Brokered::Fails(error.raw_os_error().unwrap_or(libc::ECONNREFUSED)),
        };
        if !self.allows(&target.path) {
            return Brokered::Refused;
        }
        let taken = process::open_pid(process).and_then(|pidfd| socket::take(&pidfd, call.args[0] as i32));
        match taken {
            Ok(socket) if socket::is_unix_stream(&socket) => {
                socket::connect(&socket, &target).map_or_else(Brokered::Fails, |()| Brokered::Done)
            }
            _ => Brokered::Refused,
        }
    }

    /// Whether connections to this socket file are allowed.
    pub fn allows(&self, path: &Path) -> bool {
        let changes = |rule: &&PathRule| rule.rights.write && !rule.rights.devices;
        self.named.iter().any(|named| path == named)
            || self.granted.iter().filter(changes).any(|rule| path.starts_with(&rule.path))
    }
}
