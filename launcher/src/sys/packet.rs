//! UNIX sockets that keep packets apart, with descriptors beside the bytes.

use crate::sys::mount::Changes;
use crate::sys::process::Pid;
use crate::sys::{OfCall, SyscallError, checked, descriptor};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fs::Timespec;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// Maximum number of descriptors beside one packet.
pub const MOST_DESCRIPTORS: usize = 8;

fn new_socket() -> Result<OwnedFd, SyscallError> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(family, kind, flags, None).of("socket")
}

/// A socket that listens at a path where nothing is.
pub fn listen(path: &Path, backlog: i32) -> Result<OwnedFd, SyscallError> {
    let socket = new_socket()?;
    // Whoever connects is asked who it is; the credentials of each packet say who has sent that.
    sockopt::set_socket_passcred(&socket, true).of("setsockopt(SO_PASSCRED)")?;
    let address = SocketAddrUnix::new(path).of("bind")?;
    rustix::net::bind(&socket, &address).of("bind")?;
    rustix::net::listen(&socket, backlog).of("listen")?;
    Ok(socket)
}

/// A connection to such a socket. Where as many wait already as have room, it is an error (EAGAIN): whoever listens may
/// be stopped, or nobody.
pub fn connect(path: &Path) -> Result<OwnedFd, SyscallError> {
    let socket = new_socket()?;
    let address = SocketAddrUnix::new(path).of("connect")?;
    retry_on_intr(|| rustix::net::connect(&socket, &address)).of("connect")?;
    Ok(socket)
}

/// What came first.
pub enum Came {
    /// A connection.
    Connection(OwnedFd),
    /// Something can be read elsewhere, or something that was mounted is gone.
    Other,
    /// Nothing in time.
    Nothing,
}

/// Waits for a connection, until there is something to read elsewhere, until mounts change, which those are told, or
/// until the time is up. Of the processes that wait, the kernel wakes one for each connection (EPOLLEXCLUSIVE,
/// epoll_ctl(2)). An error if the socket was shut down.
pub fn next(
    listener: BorrowedFd<'_>,
    elsewhere: Option<BorrowedFd<'_>>,
    mounts: Option<&Changes>,
    limit: Option<Duration>,
) -> Result<Came, SyscallError> {
    const LISTENER: u64 = 0;
    const MOUNTS: u64 = 2;
    let waits = epoll::create(CreateFlags::CLOEXEC).of("epoll_create1")?;
    let (readable, add) = (EventFlags::IN, "epoll_ctl");
    epoll::add(&waits, listener, EventData::new_u64(LISTENER), readable | EventFlags::EXCLUSIVE).of(add)?;
    if let Some(elsewhere) = elsewhere {
        epoll::add(&waits, elsewhere, EventData::new_u64(LISTENER + 1), readable).of(add)?;
    }
    if let Some(mounts) = mounts {
        epoll::add(&waits, mounts.as_fd(), EventData::new_u64(MOUNTS), EventFlags::PRI).of(add)?;
        // What changed before that, nobody is woken for.
        if mounts.is_news() {
            return Ok(Came::Other);
        }
    }
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    loop {
        let mut ready = Vec::with_capacity(3);
        retry_on_intr(|| epoll::wait(&waits, spare_capacity(&mut ready), limit.as_ref())).of("epoll_wait")?;
        if ready.is_empty() {
            return Ok(Came::Nothing);
        }
        // The kernel tells it once.
        if let Some(mounts) = mounts.filter(|_| ready.iter().any(|event| event.data.u64() == MOUNTS)) {
            mounts.tell();
        }
        let Some(event) = ready.iter().find(|event| event.data.u64() == LISTENER) else {
            return Ok(Came::Other);
        };
        if { event.flags }.contains(EventFlags::HUP) {
            return Err(Errno::SHUTDOWN).of("accept4");
        }
        let flags = SocketFlags::CLOEXEC;
        match retry_on_intr(|| rustix::net::accept_with(listener, flags)) {
            // Another process has taken it.
            Err(Errno::AGAIN | Errno::CONNABORTED) => {}
            taken => return taken.map(Came::Connection).of("accept4"),
        }
    }
}

/// The process at the other end, and its user: who connected, or who listened. A process without a number in this
/// process's pid namespace has 0, for which rustix has no room.
pub fn peer(socket: BorrowedFd<'_>) -> Result<(Pid, u32), SyscallError> {
    let room = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let found = option(socket, libc::SO_PEERCRED, "getsockopt(SO_PEERCRED)", room)?;
    Ok((found.pid, found.uid))
}

/// A descriptor that stands for the process that connected, whatever its number is by now (SO_PEERPIDFD, Linux 6.5).
/// An older kernel has none but of the process that has the number.
pub fn peer_held(socket: BorrowedFd<'_>) -> Result<OwnedFd, SyscallError> {
    const PEER_PIDFD: libc::c_int = 77;
    match option(socket, PEER_PIDFD, "getsockopt(SO_PEERPIDFD)", -1) {
        Ok(number) => Ok(descriptor::own(number)),
        Err(failed) if failed.errno() == libc::ENOPROTOOPT => crate::sys::process::open_pid(peer(socket)?.0),
        Err(failed) => Err(failed),
    }
}

/// An option of a socket, which is plain numbers. `room`: what it is written over.
fn option<T: Copy>(
    socket: BorrowedFd<'_>,
    option: libc::c_int,
    call: &'static str,
    mut room: T,
) -> Result<T, SyscallError> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: room for the answer, and its length.
    let result = unsafe {
        let (value, length) = ((&raw mut room).cast(), &raw mut length);
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, length)
    };
    checked(call, result).map(|_| room)
}

/// Sends one packet, without waiting for room.
pub fn send(
    over: BorrowedFd<'_>,
    parts: &[&[u8]],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), SyscallError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let parts: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    retry_on_intr(|| rustix::net::sendmsg(over, &parts, &mut control, flags)).of("sendmsg").map(drop)
}

/// What came with a packet.
#[derive(Debug, Default)]
pub struct Received {
    /// The bytes; none at the end.
    pub bytes: Vec<u8>,
    /// Whether there were more, which are lost.
    pub is_cut: bool,
    /// The descriptors.
    pub descriptors: Vec<OwnedFd>,
    /// The process that has sent it, where the socket asks for that.
    pub sender: Option<Pid>,
}

/// Receives one packet of at most so many bytes, waiting for it.
pub fn receive(over: BorrowedFd<'_>, most: usize) -> Result<Received, SyscallError> {
    // Room for the packet, and not for the longest there may be: each page of that takes time.
    let ask = RecvFlags::PEEK | RecvFlags::TRUNC;
    let (_, length) = retry_on_intr(|| rustix::net::recv(over, &mut [0_u8; 0], ask)).of("recv")?;
    let mut bytes = vec![0; length.min(most)];
    const ROOM: usize = rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS), ScmCredentials(1));
    let mut space = [MaybeUninit::uninit(); ROOM];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let message =
        retry_on_intr(|| rustix::net::recvmsg(over, &mut parts, &mut control, flags)).of("recvmsg")?;
    let cut = rustix::net::ReturnFlags::TRUNC | rustix::net::ReturnFlags::CTRUNC;
    let is_cut = message.flags.intersects(cut);
    bytes.truncate(message.bytes);
    let mut received = Received { bytes, is_cut, ..Received::default() };
    for ancillary in control.drain() {
        match ancillary {
            RecvAncillaryMessage::ScmRights(descriptors) => received.descriptors.extend(descriptors),
            RecvAncillaryMessage::ScmCredentials(sender) => {
                received.sender = Some(sender.pid.as_raw_nonzero().get());
            }
            _ => {}
        }
    }
    Ok(received)
}

/// Receives the bytes of the next packet, if there is one: their number, 0 at the end.
pub fn receive_now(over: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Option<usize>, SyscallError> {
    match rustix::net::recv(over, buffer, RecvFlags::DONTWAIT) {
        Ok((_, length)) => Ok(Some(length)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(failed) => Err(failed).of("recv"),
    }
}

/// Has nothing more be sent to this end, which can still send, and gives up what has arrived.
pub fn hear_no_more(socket: BorrowedFd<'_>) -> Result<(), SyscallError> {
    rustix::net::shutdown(socket, rustix::net::Shutdown::Read).of("shutdown")?;
    // Of what is received without room for them, the kernel closes the descriptors.
    while receive_now(socket, &mut [0])?.is_some_and(|length| length > 0) {}
    Ok(())
}

/// Has nothing more be sent to this end: from then on whoever tries learns that nobody listens. What has arrived can
/// still be received.
pub fn close_to_others(socket: BorrowedFd<'_>) -> Result<(), SyscallError> {
    rustix::net::shutdown(socket, rustix::net::Shutdown::Both).of("shutdown")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::scratch::Scratch;

    #[test]
    fn nobody_waits_in_a_queue_that_is_full() {
        let scratch = Scratch::create(None).unwrap();
        let path = scratch.path().join("socket");
        let listener = listen(&path, 1).unwrap();
        let callers: Vec<_> = std::iter::from_fn(|| connect(&path).ok()).take(10).collect();
        assert!((1..10).contains(&callers.len()));
        assert_eq!(connect(&path).unwrap_err().errno(), libc::EAGAIN);
        drop(listener);
        assert_eq!(connect(&path).unwrap_err().errno(), libc::ECONNREFUSED);
    }
}
