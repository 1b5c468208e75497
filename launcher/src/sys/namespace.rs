//! Namespaces of one's own (namespaces(7)).

use super::process::Pid;
use super::{Failed, checked, descriptor, process};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::AsRawFd;

/// What is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// A user namespace, which gives the right to the others.
    pub user: bool,
    /// A network namespace.
    pub network: bool,
}

impl Kinds {
    fn flags(self) -> libc::c_int {
        let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        for (wanted, flag) in [(self.user, libc::CLONE_NEWUSER), (self.network, libc::CLONE_NEWNET)] {
            if wanted {
                flags |= flag;
            }
        }
        flags
    }
}

/// A copy of this process that shares its descriptors and is the first one in new namespaces. Returns 0 in the copy.
pub fn fork_into(kinds: Kinds) -> Result<Pid, Failed> {
    process::fork_sharing_descriptors(kinds.flags())
}

/// The user and the group that files are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    user: u32,
    group: u32,
}

/// Who this process is: to be asked before it is in a user namespace without a map.
pub fn identity() -> Identity {
    // SAFETY: asks for a number.
    let group = unsafe { libc::getegid() };
    Identity { user: process::user(), group }
}

/// Has user and group be in the new user namespace what they were outside (user_namespaces(7)).
pub fn keep_identity(identity: Identity) -> Result<(), Failed> {
    // The files belong to the superuser as long as the process may not be looked into.
    super::privilege::set_dumpable(true)?;
    let (user, group) = (identity.user, identity.group);
    let written = write("/proc/self/uid_map", &format!("{user} {user} 1"))
        .and_then(|()| write("/proc/self/setgroups", "deny"))
        .and_then(|()| write("/proc/self/gid_map", &format!("{group} {group} 1")));
    super::privilege::set_dumpable(false)?;
    written
}

fn write(file: &'static str, text: &str) -> Result<(), Failed> {
    let opened = OpenOptions::new().write(true).open(file);
    opened.and_then(|mut open| open.write_all(text.as_bytes())).map_err(|cause| Failed { call: file, cause })
}

/// Has the loopback interface of the calling process's network namespace go up (netdevice(7)).
pub fn loopback_up() -> Result<(), Failed> {
    // SAFETY: plain numbers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    let socket = descriptor::own(checked("socket", socket.into())? as i32);
    // SAFETY: all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: a valid structure.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) };
    checked("ioctl(SIOCSIFFLAGS)", result.into()).map(drop)
}

/// Has anybody listen on every port of the calling process's network namespace (ip(7), ip_unprivileged_port_start): the
/// ports below 1024 are kept for who runs a machine, and this network is nobody else's.
pub fn open_low_ports() -> Result<(), Failed> {
    write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
}

/// Starts a session of its own: process groups and session of the caller have no numbers in a new pid namespace.
pub fn new_session() -> Result<(), Failed> {
    // SAFETY: needs nothing.
    checked("setsid", unsafe { libc::setsid() }.into()).map(drop)
}
