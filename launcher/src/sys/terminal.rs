//! Terminals: their modes, and their foreground process group.

use crate::sys::descriptor::by_number;
use crate::sys::process::{self, Pid};
use crate::sys::{OfCall, SyscallError, descriptor, stream};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, OutputModes, Termios};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

/// How a terminal treats what is typed and shown (termios(3)).
#[derive(Clone)]
pub struct Modes(Termios);

/// The modes; `None` where it is no terminal.
pub fn modes(number: RawFd) -> Option<Modes> {
    rustix::termios::tcgetattr(by_number(number)).ok().map(Modes)
}

/// Whether it is a terminal on which a newline does not go back to the beginning of a line, as programs set it that
/// fill the whole screen.
pub fn keeps_column(number: RawFd) -> bool {
    let returns = OutputModes::OPOST | OutputModes::ONLCR;
    modes(number).is_some_and(|modes| !modes.0.output_modes.contains(returns))
}

/// Sets the modes. If that fails, the terminal stays as it is.
pub fn set_modes(terminal: BorrowedFd<'_>, modes: &Modes) {
    let _ = rustix::termios::tcsetattr(terminal, OptionalActions::Now, &modes.0);
}

/// The foreground process group; `None` where it is not our terminal.
pub fn foreground(number: RawFd) -> Option<Pid> {
    rustix::termios::tcgetpgrp(by_number(number)).ok().map(|group| group.as_raw_nonzero().get())
}

/// Whether a standard descriptor is the terminal of this session, and another process group has its foreground.
pub fn is_in_background() -> bool {
    (0..3).any(is_for_others)
}

fn is_for_others(number: RawFd) -> bool {
    foreground(number).is_some_and(|group| group != process::group())
}

/// Gives up what reads from the terminal, where this process group is in its background: what is typed there is for
/// others, and the kernel keeps only processes of the terminal's own session from reading it.
pub fn leave_input() -> Result<(), SyscallError> {
    for number in (0..3).filter(|number| is_for_others(*number)) {
        let (path, flags) = match number {
            0 => ("/dev/null".to_string(), OFlags::RDONLY),
            _ => (descriptor::own_name(number), OFlags::WRONLY | OFlags::NOCTTY),
        };
        match rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()) {
            Ok(opened) => stream::replace(number, opened.as_fd())?,
            // It is another user's, as after su(1).
            Err(Errno::ACCESS) => {}
            Err(error) => return Err(error).of("open"),
        }
    }
    Ok(())
}

/// Whether a standard descriptor still reads from it there.
pub fn overhears() -> bool {
    let reads = |number| {
        let flags = rustix::fs::fcntl_getfl(by_number(number));
        flags.is_ok_and(|flags| flags & OFlags::ACCMODE != OFlags::WRONLY)
    };
    (0..3).any(|number| is_for_others(number) && reads(number))
}

/// The number of a standard descriptor that is a terminal whose foreground is a group that this process leads. A shell
/// with jobs makes one for a command, and so does whoever opens a terminal for it. A pipe or a socket among them may
/// lead to another process of the group, which would lose the terminal with this one.
pub fn of_own_group() -> Option<RawFd> {
    let group = process::group();
    let is_shared = |number: RawFd| {
        let kind = rustix::fs::fstat(by_number(number)).map(|stat| FileType::from_raw_mode(stat.st_mode));
        matches!(kind, Ok(FileType::Fifo | FileType::Socket))
    };
    if group != process::id() || (0..3).any(is_shared) {
        return None;
    }
    let own = rustix::process::getpid();
    // A sandbox around this one may refuse that.
    let can_lend = |number: &RawFd| rustix::termios::tcsetpgrp(by_number(*number), own).is_ok();
    (0..3).find(|number| foreground(*number) == Some(group)).filter(can_lend)
}

/// Makes this process the first of a process group, and that the foreground one. To be called with SIGTTOU blocked.
pub fn lead_foreground(number: RawFd) -> Result<(), SyscallError> {
    rustix::process::setpgid(None, None).of("setpgid")?;
    rustix::termios::tcsetpgrp(by_number(number), rustix::process::getpid()).of("tcsetpgrp")
}

/// Makes another process group the foreground one.
pub fn set_foreground(terminal: BorrowedFd<'_>, group: Pid) {
    let group = rustix::process::Pid::from_raw(group.max(0));
    let _ = group.map(|group| rustix::termios::tcsetpgrp(terminal, group));
}

/// Whether a process group has no process any more.
pub fn is_empty_group(group: Pid) -> bool {
    let group = rustix::process::Pid::from_raw(group.max(0));
    group.is_some_and(|group| rustix::process::test_kill_process_group(group) == Err(Errno::SRCH))
}

/// The controlling end of a new pseudo-terminal of the instance that this file stands for, and its number
/// (pts(4)).
pub fn open_controller(multiplexer: &Path) -> Result<(OwnedFd, u32), SyscallError> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let controller = rustix::fs::open(multiplexer, flags, Mode::empty()).of("open(ptmx)")?;
    let name = rustix::pty::ptsname(&controller, Vec::new()).of("ioctl(TIOCGPTN)")?;
    let number = name.to_str().ok().and_then(|name| name.rsplit_once('/')?.1.parse().ok());
    let number = number.ok_or(io::Error::from(io::ErrorKind::InvalidData)).of("ioctl(TIOCGPTN)")?;
    Ok((controller, number))
}
