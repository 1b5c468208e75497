//! Namespaces of one's own (namespaces(7)).

use crate::sys::privilege::set_dumpable;
use crate::sys::process::{self, Change, Pid};
use crate::sys::{OfCall, SyscallError, checked, probe, socket};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// The namespaces that are made together. One for IPC is among them always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// A user namespace, which gives the right to the others.
    pub user: bool,
    /// Namespaces of mounts, processes and the host name: a view of the run's own.
    pub view: bool,
    /// A network namespace.
    pub network: bool,
}

impl Kinds {
    /// All but that of the network: it takes ten times as long as the others together, in which the caller has
    /// something else to do ([`new_network`]).
    fn flags(self) -> libc::c_int {
        let wanted = [
            (self.user, libc::CLONE_NEWUSER),
            (self.view, libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWUTS),
        ];
        let wanted = wanted.into_iter().filter(|(wanted, _)| *wanted);
        wanted.fold(libc::CLONE_NEWIPC, |flags, (_, flag)| flags | flag)
    }
}

/// Whether the machine gives these namespaces to this process: a process is started in them, and ends.
pub fn can_make(kinds: Kinds) -> bool {
    match fork_into(kinds) {
        Ok(0) => process::exit_now(i32::from(kinds.network && new_network().is_err())),
        Ok(child) => matches!(process::wait(Some(child), true, false), Some((_, Change::Exited(0)))),
        Err(_) => false,
    }
}

/// Moves the calling process into a new network namespace. An error too where a filter around us answers with success
/// and nothing has happened: what is done to the new network would be done to the host's.
pub fn new_network() -> Result<(), SyscallError> {
    let before = mark_of_network()?;
    probe::unshare(libc::CLONE_NEWNET)?;
    if mark_of_network()? == before {
        return Err(io::Error::other("it was answered with success, and nothing has happened")).of("unshare");
    }
    Ok(())
}

/// What tells the calling process's network from any other.
#[derive(PartialEq, Eq)]
enum Mark {
    Cookie(u64),
    /// Device and inode, before Linux 5.14.
    File(u64, u64),
}

fn mark_of_network() -> Result<Mark, SyscallError> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).of("socket")?;
    if let Ok(cookie) = socket::cookie(&socket) {
        return Ok(Mark::Cookie(cookie));
    }
    let meta = fs::metadata("/proc/self/ns/net").of("stat")?;
    Ok(Mark::File(meta.dev(), meta.ino()))
}

/// A copy of this process that shares its descriptors and is the first one in new namespaces, but for that of
/// the network. Returns 0 in the copy.
pub fn fork_into(kinds: Kinds) -> Result<Pid, SyscallError> {
    process::fork_sharing_descriptors(kinds.flags())
}

/// The user and the group that files are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    user: u32,
    group: u32,
}

/// Namespaces of a run's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// Which.
    pub kinds: Kinds,
    /// Who the command is in them.
    pub identity: Identity,
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

/// Starts the loopback interface of the calling process's network namespace (netdevice(7)). Returns the cookie of
/// that network, where the kernel has such.
pub fn loopback_up() -> Result<Option<u64>, SyscallError> {
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
    checked("ioctl(SIOCSIFFLAGS)", result).map(|_| socket::cookie(&socket).ok())
}

/// Lets any user listen on every port of the calling process's network namespace (ip(7),
/// ip_unprivileged_port_start). The ports below 1024 are reserved for the administrator of a machine, and
/// nobody else uses this network.
pub fn open_low_ports() -> Result<(), SyscallError> {
    write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
}

/// One more than the largest process number of the calling process's pid namespace (proc(5)), whosever /proc is there.
pub fn number_limit() -> Option<String> {
    fs::read_to_string(NUMBER_LIMIT).ok()
}

/// Gives the calling process's pid namespace this limit, unless it has it. Namespaces have one each since Linux 6.14,
/// the largest there can be. Programs that show process numbers go by it (ps(1) makes its column as wide).
pub fn keep_number_limit(limit: Option<&str>) {
    if let Some(limit) = limit.filter(|limit| number_limit().is_some_and(|own| own != *limit)) {
        // Nothing depends on it.
        let _ = write(NUMBER_LIMIT, limit);
    }
}

const NUMBER_LIMIT: &str = "/proc/sys/kernel/pid_max";

/// Starts a new session: in a new pid namespace the caller's process group and session have no numbers.
pub fn new_session() -> Result<(), SyscallError> {
    rustix::process::setsid().of("setsid").map(drop)
}
