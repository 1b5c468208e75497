//! Descriptors that signal their owner when there is something to read or room to write (fcntl(2), F_SETOWN).

use crate::sys::process::Pid;
use crate::sys::{OfCall, SyscallError, checked};
use rustix::fs::{FileType, OFlags};
use std::os::fd::{AsRawFd, OwnedFd};

/// Changes the status flags of a descriptor (fcntl(2)).
pub const F_SETFL: u32 = libc::F_SETFL as u32;
/// Names the owner.
pub const F_SETOWN: u32 = 8;
/// Has a descriptor signal its owner, or no longer (ioctl(2)).
pub const FIOASYNC: u32 = 0x5452;
/// Has calls on a descriptor return at once, or no longer.
pub const FIONBIO: u32 = 0x5421;

/// A kind of owner (F_GETOWN_EX). The others are threads and groups.
const OF_PROCESS: libc::c_int = 1;

/// What is changed of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// All its status flags.
    Flags(i32),
    /// Only whether it signals its owner.
    Signals(bool),
}

/// Whether it is a socket or a pipe.
pub fn is_socket_or_pipe(file: &OwnedFd) -> bool {
    let is = |kind| matches!(kind, FileType::Socket | FileType::Fifo);
    rustix::fs::fstat(file).is_ok_and(|stat| is(FileType::from_raw_mode(stat.st_mode)))
}

/// Makes sure that it signals this process or nobody. False: it belongs to another one. What belongs to a process that
/// cannot be seen from here looks as if it belonged to nobody, and does so afterwards.
pub fn settle_owner(file: &OwnedFd, process: Pid) -> bool {
    match owner(file) {
        Ok((_, 0)) => disown(file).is_ok(),
        Ok(owner) => owner == (OF_PROCESS, process),
        Err(_) => false,
    }
}

/// Takes it from whoever it belongs to.
fn disown(file: &OwnedFd) -> Result<(), SyscallError> {
    // SAFETY: plain numbers, the first of which is an open descriptor.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), F_SETOWN as libc::c_int, 0) };
    checked("fcntl(F_SETOWN)", result).map(drop)
}

/// Changes what it is told to.
pub fn change(file: &OwnedFd, change: Change) -> Result<(), SyscallError> {
    let flags = match change {
        Change::Flags(flags) => OFlags::from_bits_retain(flags as u32),
        Change::Signals(does) => {
            let mut flags = rustix::fs::fcntl_getfl(file).of("fcntl(F_GETFL)")?;
            flags.set(OFlags::from_bits_retain(libc::O_ASYNC as u32), does);
            flags
        }
    };
    rustix::fs::fcntl_setfl(file, flags).of("fcntl(F_SETFL)")
}

/// The kind and the number of what the descriptor signals, if it does. The number is 0 if that is nobody.
fn owner(file: &OwnedFd) -> Result<(libc::c_int, Pid), SyscallError> {
    const F_GETOWN_EX: libc::c_int = 16;
    let mut owner: [libc::c_int; 2] = [0; 2];
    // SAFETY: room for `struct f_owner_ex`, which is a kind and a number.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), F_GETOWN_EX, owner.as_mut_ptr()) };
    checked("fcntl(F_GETOWN_EX)", result)?;
    Ok((owner[0], owner[1]))
}
