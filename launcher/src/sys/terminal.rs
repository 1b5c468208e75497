//! Terminals: their modes, and whose turn it is.

use super::process::Pid;
use super::{Failed, checked, descriptor};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How a terminal treats what is typed and shown (termios(3)).
#[derive(Clone, Copy)]
pub struct Modes(libc::termios);

/// The modes; `None` where it is no terminal.
pub fn modes(number: RawFd) -> Option<Modes> {
    // SAFETY: all zeroes is a valid value.
    let mut modes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: room for one structure.
    (unsafe { libc::tcgetattr(number, &raw mut modes) } == 0).then_some(Modes(modes))
}

/// Sets the modes. What fails here leaves the terminal as it is.
pub fn set_modes(terminal: BorrowedFd<'_>, modes: &Modes) {
    // SAFETY: an open descriptor and a valid structure.
    unsafe { libc::tcsetattr(terminal.as_raw_fd(), libc::TCSANOW, &raw const modes.0) };
}

/// The process group whose turn it is; `None` where that is not to be known: not our terminal.
pub fn foreground(number: RawFd) -> Option<Pid> {
    // SAFETY: asks about a number.
    let group = unsafe { libc::tcgetpgrp(number) };
    (group > 0).then_some(group)
}

/// Makes it another process group's turn.
pub fn set_foreground(terminal: BorrowedFd<'_>, group: Pid) {
    // SAFETY: plain numbers.
    unsafe { libc::tcsetpgrp(terminal.as_raw_fd(), group) };
}

/// Our process group.
pub fn own_group() -> Pid {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getpgrp() }
}

/// Whether nobody is in a process group any more.
pub fn is_empty_group(group: Pid) -> bool {
    // SAFETY: plain numbers; 0 sends nothing.
    let sent = unsafe { libc::kill(-group, 0) };
    sent < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// The controlling end of a new pseudo-terminal of the instance that this file stands for, and its number (pts(4)).
pub fn open_controller(multiplexer: &Path) -> Result<(OwnedFd, u32), Failed> {
    let path = CString::new(multiplexer.as_os_str().as_bytes())
        .map_err(|_| Failed { call: "open", cause: io::ErrorKind::InvalidInput.into() })?;
    // SAFETY: a NUL-terminated path.
    let opened = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC) };
    let controller = descriptor::own(checked("open(ptmx)", opened.into())? as i32);
    let mut number: libc::c_uint = 0;
    // SAFETY: room for one number.
    let result = unsafe { libc::ioctl(controller.as_raw_fd(), libc::TIOCGPTN as _, &raw mut number) };
    checked("ioctl(TIOCGPTN)", result.into()).map(|_| (controller, number))
}
