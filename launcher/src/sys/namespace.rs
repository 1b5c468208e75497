//! Namespaces of one's own (namespaces(7)).

use crate::sys::privilege::set_dumpable;
use crate::sys::process::{self, Change, Pid};
use crate::sys::{OfCall, SyscallError, checked, file, memory, route, socket};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::Updater;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::UnshareFlags;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

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
    /// Those that a process can move into once it is in the user namespace.
    pub(crate) fn of_a_process(self) -> libc::c_int {
        let network = if self.network { libc::CLONE_NEWNET } else { 0 };
        network | self.flags() & !(libc::CLONE_NEWUSER | libc::CLONE_NEWPID)
    }

    /// All but that of the network: it takes ten times as long as the others together, in which the caller has
    /// something else to do ([`new_network`]).
    pub(crate) fn flags(self) -> libc::c_int {
        let wanted = [
            (self.user, libc::CLONE_NEWUSER),
            (self.view, libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWUTS),
        ];
        let wanted = wanted.into_iter().filter(|(wanted, _)| *wanted);
        wanted.fold(libc::CLONE_NEWIPC, |flags, (_, flag)| flags | flag)
    }
}

/// The network of the calling process.
const NETWORK: &CStr = c"/proc/self/ns/net";

/// The other namespaces that it can be moved into, but for the user namespace.
const OTHERS: [(libc::c_int, &CStr); 3] = [
    (libc::CLONE_NEWIPC, c"/proc/self/ns/ipc"),
    (libc::CLONE_NEWNS, c"/proc/self/ns/mnt"),
    (libc::CLONE_NEWUTS, c"/proc/self/ns/uts"),
];

/// What tells a namespace from others that are there at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64, u64);

/// The network of the calling process.
pub fn network() -> Result<Mark, SyscallError> {
    mark(NETWORK)
}

fn mark(name: &CStr) -> Result<Mark, SyscallError> {
    let found = rustix::fs::stat(name).of("stat")?;
    Ok(Mark(found.st_dev, found.st_ino))
}

/// Moves the calling process into new namespaces of a process. Returns its network. An error too where a filter around
/// us answers with success and nothing has happened. Nothing is allocated, and no call goes through the C library.
pub fn move_into(kinds: Kinds) -> Result<Mark, SyscallError> {
    const UNSHARE: &str = "unshare";
    let flags = kinds.of_a_process();
    let all =
        || [(libc::CLONE_NEWNET, NETWORK)].into_iter().chain(OTHERS).filter(|(flag, _)| flags & flag != 0);
    let marks = || {
        let mut marks = [None; 1 + OTHERS.len()];
        for (place, (_, name)) in marks.iter_mut().zip(all()) {
            *place = Some(mark(name)?);
        }
        Ok(marks)
    };
    let before = marks()?;
    let flags = UnshareFlags::from_bits_retain(flags as u32);
    // SAFETY: affects the calling process only, which has no other threads.
    unsafe { rustix::thread::unshare_unsafe(flags) }.of(UNSHARE)?;
    let after = marks()?;
    if before.iter().zip(&after).any(|(before, after)| before.is_some() && before == after) {
        return Err(Errno::PERM).of(UNSHARE);
    }
    network()
}

/// A network namespace that is held open.
pub struct OpenNetwork {
    /// The user namespace that gives the right to it, where one is needed.
    pub user: Option<OwnedFd>,
    /// The network namespace.
    pub network: OwnedFd,
}

impl OpenNetwork {
    /// Moves the calling process into them.
    pub fn enter(&self) -> Result<(), SyscallError> {
        if let Some(user) = &self.user {
            enter(user.as_fd(), libc::CLONE_NEWUSER)?;
        }
        enter(self.network.as_fd(), libc::CLONE_NEWNET)
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

/// Moves the calling process into new namespaces (unshare(2)).
pub fn unshare(flags: libc::c_int) -> Result<(), SyscallError> {
    // SAFETY: affects the calling process only.
    checked("unshare", unsafe { libc::unshare(flags) }).map(drop)
}

/// Moves the calling process into a namespace (setns(2)).
pub fn enter(namespace: BorrowedFd<'_>, kind: libc::c_int) -> Result<(), SyscallError> {
    // SAFETY: affects the calling process only.
    checked("setns", unsafe { libc::setns(namespace.as_raw_fd(), kind) }).map(drop)
}

/// Moves the calling process into a new network namespace. An error too where a filter around us answers with success
/// and nothing has happened: what is done to the new network would be done to the host's.
pub fn new_network() -> Result<(), SyscallError> {
    let before = network()?;
    unshare(libc::CLONE_NEWNET)?;
    if network()? == before {
        return Err(io::Error::other("it was answered with success, and nothing has happened")).of("unshare");
    }
    Ok(())
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
    UserMap::of(identity).keep()
}

/// A map of user and group to the same numbers.
pub struct UserMap {
    user: String,
    group: String,
}

impl UserMap {
    /// Of this identity.
    pub fn of(identity: Identity) -> UserMap {
        let Identity { user, group } = identity;
        UserMap { user: format!("{user} {user} 1"), group: format!("{group} {group} 1") }
    }

    /// Gives it to the new user namespace of the calling process.
    pub fn keep(&self) -> Result<(), SyscallError> {
        // As long as the process is not dumpable, the superuser owns the files.
        set_dumpable(true)?;
        let written = write(c"/proc/self/uid_map", &self.user)
            .and_then(|()| write(c"/proc/self/setgroups", "deny"))
            .and_then(|()| write(c"/proc/self/gid_map", &self.group));
        set_dumpable(false)?;
        written
    }
}

/// Not through std, which would allocate for a long path, and write errno.
fn write(file: &'static CStr, text: &str) -> Result<(), SyscallError> {
    let name = file.to_str().unwrap_or_default();
    let opened = rustix::fs::open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).of(name)?;
    match rustix::io::write(&opened, text.as_bytes()).of(name)? {
        written if written == text.len() => Ok(()),
        _ => Err(io::Error::from(io::ErrorKind::WriteZero)).of(name),
    }
}

/// Starts the loopback interface of the calling process's network namespace (netdevice(7)), with all addresses that
/// libc wants to see there. Returns the cookie of that network, where the kernel has such.
pub fn loopback_up() -> Result<Option<u64>, SyscallError> {
    start_loopback().map(|socket| socket::cookie(&socket).ok())
}

/// The same. Returns the socket by which it was done.
pub fn start_loopback() -> Result<OwnedFd, SyscallError> {
    const SET_FLAGS: rustix::ioctl::Opcode = libc::SIOCSIFFLAGS as rustix::ioctl::Opcode;
    let flags = SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None).of("socket")?;
    // SAFETY: all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request takes such a structure.
    let result = unsafe { rustix::ioctl::ioctl(&socket, Updater::<SET_FLAGS, _>::new(&mut request)) };
    result.of("ioctl(SIOCSIFFLAGS)")?;
    route::add_loopback_addresses();
    Ok(socket)
}

/// Lets any user listen on every port of the calling process's network namespace (ip(7),
/// ip_unprivileged_port_start). The ports below 1024 are reserved for the administrator of a machine, and
/// nobody else uses this network.
pub fn open_low_ports() -> Result<(), SyscallError> {
    write(c"/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
}

/// Has TCP in the calling process's network namespace send as fast as the receiver takes it (tcp(7),
/// tcp_congestion_control). What the machine is set to may hold back by a clock (bbr), which is of use between
/// machines: a stream that stays on this one then takes up to twice as long.
pub fn send_unpaced() -> Result<(), SyscallError> {
    write(c"/proc/sys/net/ipv4/tcp_congestion_control", "reno")
}

/// Has the numbers of processes in the calling process's new pid namespace go on from somewhere (pid_namespaces(7)).
/// They would go on from 2: a number that a command has written to a file would be another process's in the next run.
pub fn begin_numbers_anywhere() {
    const LEAST: u64 = 1000;
    const MOST: u64 = 31_000;
    if let Ok(random) = memory::random() {
        let last = LEAST + random % (MOST - LEAST);
        // Nothing depends on it.
        let _ = write(c"/proc/sys/kernel/ns_last_pid", &last.to_string());
    }
}

/// One more than the largest process number of the calling process's pid namespace (proc(5)), whosever /proc is there.
pub fn number_limit() -> Option<String> {
    String::from_utf8(file::read(Path::new("/proc/sys/kernel/pid_max")).ok()?).ok()
}

/// Gives the calling process's pid namespace this limit, unless it has it. Namespaces have one each since Linux 6.14,
/// the largest there can be. Programs that show process numbers go by it (ps(1) makes its column as wide).
pub fn keep_number_limit(limit: Option<&str>) {
    if let Some(limit) = limit.filter(|limit| number_limit().is_some_and(|own| own != *limit)) {
        // Nothing depends on it.
        let _ = write(c"/proc/sys/kernel/pid_max", limit);
    }
}

/// Starts a new session: in a new pid namespace the caller's process group and session have no numbers.
pub fn new_session() -> Result<(), SyscallError> {
    rustix::process::setsid().of("setsid").map(drop)
}

/// Has the kernel take the mounts of this process's namespace apart a moment after its end, and not while it ends: the
/// kernel waits for all processors then, and whoever waits for the end of this process would wait too.
///
/// The namespace is sent to a socket in a message of which that socket itself is a part. Nobody can receive it when
/// both ends are closed. The kernel looks for such messages, and closes what is in them, in a process of its own (since
/// Linux 6.9; before, it does so at once). Where this is refused, the mounts are taken apart as ever.
pub fn part_with_mounts() -> Result<(), SyscallError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mounts = rustix::fs::open(c"/proc/self/ns/mnt", flags, Mode::empty()).of("open")?;
    let [kept, other] = socket::packet_pair()?;
    socket::send_descriptors(other.as_fd(), &[kept.as_fd(), mounts.as_fd()])?;
    // In this order: the end of a socket has the kernel look.
    drop((mounts, kept));
    drop(other);
    Ok(())
}
