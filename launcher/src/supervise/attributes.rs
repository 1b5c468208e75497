//! chmod, chown and utime, which no Landlock right covers: without more, a command could change them of every
//! file that its user owns, wherever it is.
//!
//! So these calls are notified. The supervisor holds the file as a place (O_PATH), looks where it really is,
//! and changes it there if the path rules let the command write; by then no renaming matters any more. It has
//! no capabilities itself at that time, so the kernel judges it as it would have judged the command.

use crate::launch::namespaces::Layout;
use crate::launch::policy::{self, PathRule};
use crate::supervise::decode::{Decoded, Memory, PathArgument};
use crate::supervise::facts;
use crate::sys::attributes::{self, NOW_BOTH, Times};
use crate::sys::seccomp::Notification;
use crate::sys::{Failed, descriptor};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The calls, by what they change. Extended attributes are not among them: see [`XATTRS`].
pub const CALLS: [&str; 12] = [
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "lchown",
    "fchown",
    "fchownat",
    "utime",
    "utimes",
    "futimesat",
    "utimensat",
];
/// Answered as by a file system without extended attributes: programs that copy them go on without.
pub const XATTRS: [&str; 9] = [
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "setxattrat",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "removexattrat",
    "file_setattr",
];
/// Set-user-ID and set-group-ID: never set in the command's name.
const SET_ID: u64 = 0o6000;

/// What became of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is done.
    Done,
    /// It fails as it would without a sandbox.
    Fails(i32),
    /// The path rules refuse it.
    Refused(Option<PathBuf>),
}

enum Change {
    Mode(u32),
    Owner(u32, u32),
    Times(Times),
}

/// Makes the change, if the command may.
pub fn change(
    name: &str,
    call: &Notification,
    decoded: &Decoded,
    memory: &dyn Memory,
    granted: &[PathRule],
    layout: Option<&Layout>,
) -> Changed {
    let change = match read(name, &call.args, memory) {
        Ok(Some(change)) => change,
        Ok(None) => return Changed::Refused(None),
        Err(errno) => return Changed::Fails(errno),
    };
    let (file, place) = match hold(name, call, decoded) {
        Ok(held) => held,
        Err(error) => return Changed::Fails(error.raw_os_error().unwrap_or(libc::EIO)),
    };
    // A descriptor from outside may have a name that is another file's inside.
    if !writable(granted, layout, &place) || (place.is_absolute() && !facts::is_at(call.pid, &file, &place)) {
        return Changed::Refused(Some(place));
    }
    match apply(&file, &change) {
        Ok(()) => Changed::Done,
        Err(failed) => Changed::Fails(failed.errno()),
    }
}

/// The change that a call asks for; `None` for one that nobody may make.
fn read(name: &str, args: &[u64; 6], memory: &dyn Memory) -> Result<Option<Change>, i32> {
    let owner = |at: usize| Change::Owner(args[at] as u32, args[at + 1] as u32);
    let change = match name {
        "chmod" | "fchmod" | "fchmodat" | "fchmodat2" => {
            let mode = if matches!(name, "chmod" | "fchmod") { args[1] } else { args[2] };
            if mode & SET_ID != 0 {
                return Ok(None);
            }
            Change::Mode(mode as u32 & 0o7777)
        }
        "chown" | "lchown" | "fchown" => owner(1),
        "fchownat" => owner(2),
        "utime" => Change::Times(times(memory, args[1], Unit::Seconds)?),
        "utimes" => Change::Times(times(memory, args[1], Unit::Microseconds)?),
        "futimesat" => Change::Times(times(memory, args[2], Unit::Microseconds)?),
        "utimensat" => Change::Times(times(memory, args[2], Unit::Nanoseconds)?),
        _ => return Ok(None),
    };
    Ok(Some(change))
}

enum Unit {
    /// `struct utimbuf`: two numbers.
    Seconds,
    /// `struct timeval[2]`.
    Microseconds,
    /// `struct timespec[2]`.
    Nanoseconds,
}

fn times(memory: &dyn Memory, address: u64, unit: Unit) -> Result<Times, i32> {
    if address == 0 {
        return Ok(NOW_BOTH);
    }
    let words = if matches!(unit, Unit::Seconds) { 2 } else { 4 };
    let mut bytes = [0; 32];
    let wanted = bytes.get_mut(..words * 8).ok_or(libc::EFAULT)?;
    if memory.read(address, wanted) != wanted.len() {
        return Err(libc::EFAULT);
    }
    let word = |index: usize| {
        let word = bytes.get(index * 8..index * 8 + 8).and_then(|word| word.try_into().ok());
        word.map_or(0, i64::from_ne_bytes)
    };
    let time = |seconds: i64, nanoseconds: i64| libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let micro =
        |value: i64| if (0..1_000_000).contains(&value) { Ok(value * 1000) } else { Err(libc::EINVAL) };
    Ok(match unit {
        Unit::Seconds => [time(word(0), 0), time(word(1), 0)],
        Unit::Microseconds => [time(word(0), micro(word(1))?), time(word(2), micro(word(3))?)],
        Unit::Nanoseconds => [time(word(0), word(1)), time(word(2), word(3))],
    })
}

/// The file that the call means, and where it is.
fn hold(name: &str, call: &Notification, decoded: &Decoded) -> io::Result<(File, PathBuf)> {
    // utimensat with a null path means the descriptor.
    let by_descriptor = matches!(name, "fchmod" | "fchown") || (name == "utimensat" && call.args[1] == 0);
    let file = match decoded.paths.first() {
        Some(argument) if !by_descriptor => open(call, argument)?,
        None if !by_descriptor => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
        _ => of_caller(call, call.args[0] as i32)?,
    };
    let place = descriptor::place(&file)?;
    Ok((file, place))
}

fn open(call: &Notification, argument: &PathArgument) -> io::Result<File> {
    if argument.path.is_empty() {
        return match argument.dirfd.filter(|_| argument.empty_path_ok) {
            Some(number) => of_caller(call, number),
            None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        };
    }
    facts::hold(call.pid, argument.dirfd, &argument.path, argument.follow)
}

/// A descriptor of the caller.
fn of_caller(call: &Notification, number: i32) -> io::Result<File> {
    facts::descriptor_of(call.pid, number)
}

/// What may be written may have its attributes changed; so may what is no file with a name at all.
fn writable(granted: &[PathRule], layout: Option<&Layout>, place: &Path) -> bool {
    !place.is_absolute() || policy::may_change(granted, layout, place)
}

fn apply(file: &File, change: &Change) -> Result<(), Failed> {
    match change {
        Change::Mode(mode) => attributes::set_mode(file, *mode),
        Change::Owner(user, group) => attributes::set_owner(file, *user, *group),
        Change::Times(times) => attributes::set_times(file, times),
    }
}
