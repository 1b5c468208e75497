//! What the arguments of each call are.

mod files;
mod processes;
mod sockets;

use crate::explain::decode::Access;
use crate::explain::decode::flags::{FlagSet, Names};

/// What one argument is, and so how it is shown.
#[derive(Clone, Copy)]
pub enum Argument {
    /// Of no use to a reader: buffers to fill, lengths.
    Skip,
    /// A bare number.
    Hex,
    /// A C `int`: a number of anything, a descriptor, a process.
    Int,
    /// A process, by its number.
    Process,
    /// The same, if the given argument has this value.
    ProcessIf(usize, u64),
    /// A size or offset.
    Size,
    /// An address, not looked into.
    Pointer,
    /// The directory where the path in the next argument starts.
    DirFd,
    /// A path that the call acts on.
    Path(PathRule),
    /// Some other string.
    Text,
    /// The permissions of what is made.
    Mode,
    /// Permissions, which count only if `open`'s flags in the given argument make a file.
    OpenMode(usize),
    /// Permissions and the type of file.
    FileMode,
    /// A device number, which counts only if the mode in the given argument makes a device.
    Device(usize),
    /// `struct open_how`, its size in the given argument.
    OpenHow(usize),
    /// One of these 32-bit numbers.
    Choice(Names),
    /// A set of these.
    Flags(&'static FlagSet),
    /// A socket's protocol; the family is the first argument.
    Protocol,
    /// A socket address, its length in the given argument.
    SocketAddress(usize),
    /// `struct msghdr` with an address to send to. An array of `struct mmsghdr` begins like one.
    MessageHeader,
    /// A signal.
    Signal,
    /// `clone`'s flags.
    Clone,
    /// `struct clone_args`, its size in the given argument.
    Clone3(usize),
}

/// A flag that changes what a path means: argument and bit.
pub type Bit = (usize, u64);

/// What a call does with a path.
#[derive(Clone, Copy)]
pub struct PathRule {
    pub access: Access,
    pub last: Last,
    pub empty: Empty,
    /// More access, wanted if this flag is set.
    pub more: Option<(Bit, Access)>,
}

/// Whether the call follows a symbolic link at the path's end.
#[derive(Clone, Copy)]
pub enum Last {
    Follow,
    Keep,
    KeepIf(Bit),
    FollowIf(Bit),
    /// `open`'s flags in this argument tell, and the access too.
    Open(usize),
    /// `struct open_how` tells, and the access too.
    OpenHow,
}

/// Whether an empty path is allowed.
#[derive(Clone, Copy)]
pub enum Empty {
    Never,
    Always,
    If(Bit),
}

const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const AT_EMPTY_PATH: u64 = 0x1000;

const fn rule(access: Access, last: Last, empty: Empty) -> Argument {
    Argument::Path(PathRule { access, last, empty, more: None })
}

/// A path whose last link is followed.
const fn path(access: Access) -> Argument {
    rule(access, Last::Follow, Empty::Never)
}

/// A path whose last link is not followed.
const fn entry(access: Access) -> Argument {
    rule(access, Last::Keep, Empty::Never)
}

/// A path with `AT_SYMLINK_NOFOLLOW` and `AT_EMPTY_PATH` in the argument `flags`.
const fn path_at(access: Access, flags: usize) -> Argument {
    rule(access, Last::KeepIf((flags, AT_SYMLINK_NOFOLLOW)), Empty::If((flags, AT_EMPTY_PATH)))
}

/// A path with `AT_SYMLINK_FOLLOW` and `AT_EMPTY_PATH` in the argument `flags`.
const fn entry_at(access: Access, flags: usize) -> Argument {
    rule(access, Last::FollowIf((flags, AT_SYMLINK_FOLLOW)), Empty::If((flags, AT_EMPTY_PATH)))
}

/// Calls that take the same arguments. Arguments left out at the end are not shown.
type Signature = (&'static str, &'static [Argument]);

fn all() -> impl Iterator<Item = &'static Signature> {
    [files::PATHS, files::DESCRIPTORS, sockets::CALLS, processes::CALLS].into_iter().flatten()
}

/// The arguments of a call, if it is known.
pub fn arguments(name: &str) -> Option<&'static [Argument]> {
    let takes = |(calls, _): &&Signature| calls.split_ascii_whitespace().any(|call| call == name);
    all().find(takes).map(|(_, arguments)| *arguments)
}

/// What a call does with the paths that its arguments name.
pub fn path_rules(name: &str) -> impl Iterator<Item = &'static PathRule> {
    arguments(name).into_iter().flatten().filter_map(|argument| match argument {
        Argument::Path(rule) => Some(rule),
        _ => None,
    })
}

/// Every known call.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    all().flat_map(|(calls, _)| calls.split_ascii_whitespace())
}
