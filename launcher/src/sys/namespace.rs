//! Namespaces of one's own (namespaces(7)).

use crate::sys::privilege::set_dumpable;
use crate::sys::process::{self, Pid};
use crate::sys::{OfCall, SyscallError, checked};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::AsRawFd;

/// The namespaces that are made besides those of mounts, processes, IPC and the host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// A user namespace, which gives the right to the others.
    pub user: bool,
    /// A network namespace.
    pub network: bool,
}

impl Kinds {
    fn flags(self) -> libc::c_int {
        let always = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        let wanted = [(self.user, libc::CLONE_NEWUSER), (self.network, libc::CLONE_NEWNET)];
        wanted.into_iter().filter(|(wanted, _)| *wanted).fold(always, |flags, (_, flag)| flags | flag)
    }
}

/// A copy of this process that shares its descriptors and is the first one in new namespaces. Returns 0 in
/// the copy.
pub fn fork_into(kinds: Kinds) -> Result<Pid, SyscallError> {
    process::fork_sharing_descriptors(kinds.flags())
}

/// The user and the group that files are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    user: u32,
    group: u32,
}

/// The identity of this process. In a user namespace without a map it cannot be found out any more.
pub fn identity() -> Identity {
    Identity { user: process::user(), group: rustix::process::getegid().as_raw() }
}

/// Maps user and group of the new user namespace to the same numbers outside (user_namespaces(7)).
pub fn keep_identity(identity: Identity) -> Result<(), SyscallError> {
    // As long as the process is not dumpable, the superuser owns the files.
    set_dumpable(true)?;
    let (user, group) = (identity.user, identity.group);
    let written = write("/proc/self/uid_map", &format!("{user} {user} 1"))
        .and_then(|()| write("/proc/self/setgroups", "deny"))
        .and_then(|()| write("/proc/self/gid_map", &format!("{group} {group} 1")));
    set_dumpable(false)?;
    written
}

fn write(file: &'static str, text: &str) -> Result<(), SyscallError> {
    OpenOptions::new().write(true).open(file).and_then(|mut open| open.write_all(text.as_bytes())).of(file)
}

/// Starts the loopback interface of the calling process's network namespace (netdevice(7)).
pub fn loopback_up() -> Result<(), SyscallError> {
    let flags = SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None).of("socket")?;
    // SAFETY: all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: a valid structure.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) };
    checked("ioctl(SIOCSIFFLAGS)", result).map(drop)
}

/// Lets any user listen on every port of the calling process's network namespace (ip(7),
/// ip_unprivileged_port_start). The ports below 1024 are reserved for the administrator of a machine, and
/// nobody else uses this network.
pub fn open_low_ports() -> Result<(), SyscallError> {
    write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
}

/// Starts a new session: in a new pid namespace the caller's process group and session have no numbers.
pub fn new_session() -> Result<(), SyscallError> {
    rustix::process::setsid().of("setsid").map(drop)
}
