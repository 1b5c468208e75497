//! Namespaces of one's own (namespaces(7)).

use crate::sys::privilege::set_dumpable;
use crate::sys::process::{self, Change, Pid};
use crate::sys::{OfCall, SyscallError, checked, descriptor, probe, socket};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

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

/// A helper that makes a network namespace, and the user namespace that gives the right to it, while this process has
/// something else to do. If anything fails, there is none, and the first process of the run tries it and tells why.
pub struct Ahead {
    own: Own,
    helper: Pid,
    answer: OwnedFd,
}

impl Ahead {
    /// How long the helper may take; on an idle machine it is half a millisecond.
    const LONGEST: Duration = Duration::from_secs(1);

    /// Starts the helper.
    pub fn begin(own: Own) -> Option<Ahead> {
        let [answer, sender] = socket::packet_pair().ok()?;
        let helper = probe::fork().ok()?;
        if helper == 0 {
            let told = process::die_with_parent(libc::SIGKILL).and_then(|()| make_ahead(own, sender.as_fd()));
            process::exit_now(i32::from(told.is_err()));
        }
        Some(Ahead { own, helper, answer })
    }

    /// What it has made, if that is what is wanted.
    pub fn made(self, own: Option<&Own>) -> Option<Made> {
        if own != Some(&self.own) {
            return None;
        }
        let interest = descriptor::Interest::read(Some(self.answer.as_raw_fd()));
        let [ready] = descriptor::poll([interest], Some(Ahead::LONGEST)).ok()?;
        let received = if ready.now { socket::receive_descriptors(self.answer.as_fd()).ok()? } else { None };
        received.map(|[user, network]| Made { user: self.own.kinds.user.then_some(user), network })
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        process::signal(self.helper, libc::SIGKILL);
        process::wait(Some(self.helper), true, false);
    }
}

fn make_ahead(own: Own, answer: BorrowedFd<'_>) -> Result<(), SyscallError> {
    if own.kinds.user {
        probe::unshare(libc::CLONE_NEWUSER)?;
        keep_identity(own.identity)?;
    }
    new_network()?;
    loopback_up()?;
    // A container with a read-only /proc/sys refuses it, which makes nothing less safe.
    let _ = open_low_ports();
    let open = |path: &'static str| File::open(path).of(path);
    let (user, network) = (open("/proc/self/ns/user")?, open(NETWORK)?);
    socket::send_descriptors(answer, &[user.as_fd(), network.as_fd()])
}

/// The network of the calling process.
const NETWORK: &str = "/proc/self/ns/net";

/// A network namespace that was made before.
pub struct Made {
    /// The user namespace that gives the right to it, where one is needed.
    pub user: Option<OwnedFd>,
    /// The network namespace.
    pub network: OwnedFd,
}

impl Made {
    /// Moves the calling process into them.
    pub fn enter(&self) -> Result<(), SyscallError> {
        if let Some(user) = &self.user {
            probe::enter(user.as_fd(), libc::CLONE_NEWUSER)?;
        }
        probe::enter(self.network.as_fd(), libc::CLONE_NEWNET)
    }

    /// Has `body` run as the first process of further namespaces, a child of this one. It ends with the status that
    /// `body` returns. Namespaces of a user's can only be made by a process that is in that user's: one that shares
    /// this one's memory enters it and starts the first process in its parent's place.
    pub fn fork_into(&self, kinds: Kinds, body: &mut dyn FnMut() -> i32) -> Result<Pid, SyscallError> {
        let mut started = Err(io::Error::from(io::ErrorKind::Other)).of("clone");
        let between = process::spawn_sharing(&mut || {
            let flags = Kinds { user: false, ..kinds }.flags();
            started = self.enter().and_then(|()| process::fork_beside(flags));
            if matches!(started, Ok(0)) {
                process::exit_now(body());
            }
            process::exit_now(0)
        })?;
        process::wait(Some(between), true, false);
        started
    }

    /// Settles in it: the first process that [`Made::fork_into`] has started is there already. Returns the cookie of
    /// the network, where the kernel has such. An error if the calling process is not in it: a filter around us may
    /// answer with success, and nothing has happened.
    pub fn settle(&self) -> Result<Option<u64>, SyscallError> {
        if self.user.is_none() {
            self.enter()?;
        }
        let here = fs::metadata(NETWORK).of("stat")?;
        let made = rustix::fs::fstat(&self.network).of("fstat")?;
        if (here.dev(), here.ino()) != (made.st_dev, made.st_ino) {
            return Err(io::Error::other("it was answered with success, and nothing has happened"))
                .of("setns");
        }
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).of("socket")?;
        Ok(socket::cookie(&socket).ok())
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
    let meta = fs::metadata(NETWORK).of("stat")?;
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
