//! chmod, chown, utime, setxattr and the like, which no Landlock right covers: without more, a command could change them of
//! every file that its user owns, wherever it is.
//!
//! So these calls are notified. The supervisor holds the file as a place (O_PATH), looks where it really is,
//! and changes it there if the path rules let the command write; by then no renaming matters any more. It has
//! no capabilities itself at that time, so the kernel judges it as it would have judged the command.

mod extended;

use self::extended::Extended;
use crate::launch::namespaces::{CONFIG, Layout};
use crate::launch::policy::{self, PathRule};
use crate::supervise::decode::{Decoded, Memory, PathArgument, array};
use crate::supervise::{facts, patience, repository};
use crate::sys::attributes::{self, GET_FLAGS, NOW_BOTH, SET_FLAGS, Times};
use crate::sys::seccomp::Notification;
use crate::sys::{Failed, descriptor};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The calls that change modes, owners and times.
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
/// Those that change extended attributes and access lists. What is not the command's to change, and everything where
/// no supervisor listens, is answered as by a file system without them: programs that copy them go on.
pub const XATTRS: [&str; 8] = [
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "setxattrat",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "removexattrat",
];
/// Always answered so.
pub const UNSUPPORTED: [&str; 1] = ["file_setattr"];
/// Set-user-ID: never set in the command's name.
const SET_USER: u64 = 0o4000;
/// Set-group-ID: on a directory it has what is made there belong to the directory's group, and has nothing run. Never set on
/// anything else.
const SET_GROUP: u64 = 0o2000;

/// What became of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is done.
    Done,
    /// It fails as it would without a sandbox.
    Fails(i32),
    /// The path rules refuse it.
    Refused(PathBuf),
    /// It would make a program that runs as its owner or group, which nothing allows.
    Never,
}

/// What a call is about, as far as its caller had a say in it. Found out before the kernel is asked whether the caller still
/// waits: from then on nothing of it is looked at.
pub struct Wanted(Result<Wish, Changed>);

struct Wish {
    change: Change,
    file: File,
    place: PathBuf,
    /// The caller finds this file at this place. A descriptor from outside may have a name that is another file's inside.
    is_there: bool,
}

enum Change {
    Mode(u32),
    Owner(u32, u32),
    Times(Times),
    Extended(Extended),
    Flags(u32),
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static str> {
    CALLS.into_iter().chain(XATTRS).chain(UNSUPPORTED)
}

/// Whether calls of this name are the supervisor's to answer.
pub fn concerns(name: &str) -> bool {
    CALLS.contains(&name) || XATTRS.contains(&name)
}

/// Whether a call sets flags of a file, as chattr(1) does. The kernel takes the command as an unsigned int.
fn sets_flags(name: &str, args: &[u64; 6]) -> bool {
    name == "ioctl" && args[1] as u32 == SET_FLAGS
}

/// Looks at what a call is about, if it is the supervisor's to answer.
pub fn look(name: &str, call: &Notification, decoded: &Decoded, memory: &dyn Memory) -> Option<Wanted> {
    if !concerns(name) && !sets_flags(name, &call.args) {
        return None;
    }
    let failed = |error: io::Error| Changed::Fails(error.raw_os_error().unwrap_or(libc::EIO));
    let wish = || {
        let change = read(name, &call.args, memory)?;
        let (file, place) = hold(name, call, decoded).map_err(failed)?;
        if matches!(change, Change::Mode(mode) if u64::from(mode) & SET_GROUP != 0) && !is_directory(&file) {
            return Err(Changed::Never);
        }
        let is_there = !place.is_absolute() || facts::is_at(call.pid, &file, &place);
        Ok(Wish { change, file, place, is_there })
    };
    Some(Wanted(wish()))
}

impl Wanted {
    /// What a profile has to allow for a call whose arguments a filter refuses, since it does not see which file they are for:
    /// the same without the bit that a directory may get, and asking for flags.
    pub fn stands_for(&self, name: &str, call: &Notification) -> Option<Notification> {
        let Ok(wish) = &self.0 else { return None };
        let mut other = *call;
        match wish.change {
            Change::Mode(mode) if u64::from(mode) & SET_GROUP != 0 => {
                *other.args.get_mut(mode_at(name))? &= !SET_GROUP;
            }
            Change::Flags(_) => other.args[1] = GET_FLAGS.into(),
            _ => return None,
        }
        Some(other)
    }

    /// Makes the change, if the command may.
    pub fn change(self, granted: &[PathRule], layout: Option<&Layout>) -> Changed {
        let wish = match self.0 {
            Ok(wish) => wish,
            Err(came_to) => return came_to,
        };
        if !writable(granted, layout, &wish.place) || !wish.is_there {
            return Changed::Refused(wish.place);
        }
        if let (Change::Mode(mode), Some(layout)) = (&wish.change, layout)
            && wish.place.ends_with(CONFIG)
            && tried_by_git(layout, &wish.file, *mode)
        {
            return Changed::Done;
        }
        // Who writes to a file can keep it from being changed.
        match patience::within(move || apply(&wish.file, &wish.change)) {
            Some(Ok(())) => Changed::Done,
            Some(Err(failed)) => Changed::Fails(failed.errno()),
            None => Changed::Fails(libc::EINTR),
        }
    }
}

/// Whether git tries, on a configuration, whether the file system knows modes, as `git init` does in a repository that is there
/// already: it adds the owner's bit for executing, looks, and takes it away. Nothing executes a configuration.
fn tried_by_git(layout: &Layout, file: &File, mode: u32) -> bool {
    let Some(own) = repository::configuration(layout, file) else { return false };
    let only_that = own.metadata().is_ok_and(|meta| (meta.mode() ^ mode) & 0o7777 & !libc::S_IXUSR == 0);
    only_that && patience::within(move || attributes::set_mode(&own, mode)).is_some_and(|set| set.is_ok())
}

fn is_directory(file: &File) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_dir())
}

/// Whether a call asks for a bit with which programs run as their owner or group.
pub fn asks_for_id(name: &str, args: &[u64; 6]) -> bool {
    matches!(name, "chmod" | "fchmod" | "fchmodat" | "fchmodat2")
        && args[mode_at(name)] & (SET_USER | SET_GROUP) != 0
}

/// Which argument is the mode.
fn mode_at(name: &str) -> usize {
    if matches!(name, "chmod" | "fchmod") { 1 } else { 2 }
}

/// The change that a call asks for.
fn read(name: &str, args: &[u64; 6], memory: &dyn Memory) -> Result<Change, Changed> {
    let owner = |at: usize| Ok(Change::Owner(args[at] as u32, args[at + 1] as u32));
    let changed = match name {
        "chmod" | "fchmod" | "fchmodat" | "fchmodat2" => {
            let mode = args[mode_at(name)];
            if mode & SET_USER != 0 {
                return Err(Changed::Never);
            }
            Ok(Change::Mode(mode as u32 & 0o7777))
        }
        "chown" | "lchown" | "fchown" => owner(1),
        "fchownat" => owner(2),
        "utime" => times(memory, args[1], Unit::Seconds).map(Change::Times),
        "utimes" => times(memory, args[1], Unit::Microseconds).map(Change::Times),
        "futimesat" => times(memory, args[2], Unit::Microseconds).map(Change::Times),
        "utimensat" => times(memory, args[2], Unit::Nanoseconds).map(Change::Times),
        "ioctl" => array(memory, args[2]).map(u32::from_ne_bytes).map(Change::Flags).ok_or(libc::EFAULT),
        _ => extended::read(name, args, memory).map(Change::Extended),
    };
    changed.map_err(Changed::Fails)
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
    let by_descriptor = matches!(name, "fchmod" | "fchown" | "fsetxattr" | "fremovexattr" | "ioctl")
        || (name == "utimensat" && call.args[1] == 0);
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
        Change::Extended(Extended::Set { name, value, flags }) => {
            attributes::set_extended(file, name, value, *flags)
        }
        Change::Extended(Extended::Removed(name)) => attributes::remove_extended(file, name),
        Change::Flags(flags) => attributes::set_flags(file, *flags),
    }
}
