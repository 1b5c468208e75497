//! What the arguments of each call are.

mod files;
mod kernel;
mod processes;
mod sockets;

use super::Access;
use super::flags::{FlagSet, Names};

/// What one argument is, and so how it is shown.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Says nothing to a reader: buffers to fill, lengths.
    Skip,
    /// A bare number.
    Hex,
    /// A C `int`.
    Int,
    /// A size or offset.
    Size,
    /// An address, not looked into.
    Pointer,
    /// A descriptor.
    Fd,
    /// Where the path in the next argument starts.
    DirFd,
    /// A path that the call acts on.
    Path(PathRule),
    /// Some other string.
    Text,
    /// `open`'s flags.
    Open,
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
    /// One of these 64-bit numbers.
    WideChoice(Names),
    /// A set of these.
    Flags(&'static FlagSet),
    /// A socket's type and flags.
    SocketType,
    /// A socket's protocol; the family is the first argument.
    Protocol,
    /// A socket address, its length in the given argument.
    SocketAddress(usize),
    /// `struct msghdr` with an address to send to. An array of `struct mmsghdr` begins like one.
    MessageHeader,
    /// A signal.
    Signal,
    /// `mmap`'s flags.
    Map,
    /// `clone`'s flags.
    Clone,
    /// `struct clone_args`, its size in the given argument.
    Clone3(usize),
}

/// Where a flag changes what a path means: argument and bit.
pub type Bit = (usize, u64);

/// What a call does with a path.
#[derive(Clone, Copy)]
pub struct PathRule {
    pub access: Access,
    pub last: Last,
    /// An empty path is allowed by this.
    pub empty: Empty,
    /// More access, wanted if this flag is set.
    pub more: Option<(Bit, Access)>,
}

/// Whether a symbolic link at the path's end is followed.
#[derive(Clone, Copy)]
pub enum Last {
    Follow,
    Keep,
    KeepIf(Bit),
    FollowIf(Bit),
    /// As `open`'s flags in this argument say, and the access too.
    Open(usize),
    /// As `struct open_how` says, and the access too.
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

/// A path whose last link is followed.
const fn path(access: Access) -> Kind {
    Kind::Path(PathRule { access, last: Last::Follow, empty: Empty::Never, more: None })
}

/// A path whose last link is not followed.
const fn entry(access: Access) -> Kind {
    Kind::Path(PathRule { access, last: Last::Keep, empty: Empty::Never, more: None })
}

/// A path with `AT_SYMLINK_NOFOLLOW` and `AT_EMPTY_PATH` in the argument `flags`.
const fn path_at(access: Access, flags: usize) -> Kind {
    let last = Last::KeepIf((flags, AT_SYMLINK_NOFOLLOW));
    Kind::Path(PathRule { access, last, empty: Empty::If((flags, AT_EMPTY_PATH)), more: None })
}

/// A path with `AT_SYMLINK_FOLLOW` and `AT_EMPTY_PATH` in the argument `flags`.
const fn entry_at(access: Access, flags: usize) -> Kind {
    let last = Last::FollowIf((flags, AT_SYMLINK_FOLLOW));
    Kind::Path(PathRule { access, last, empty: Empty::If((flags, AT_EMPTY_PATH)), more: None })
}

/// A call and its arguments; those left out at the end are not shown.
type Signature = (&'static str, &'static [Kind]);

fn all() -> impl Iterator<Item = &'static Signature> {
    [files::PATHS, files::DESCRIPTORS, sockets::CALLS, processes::CALLS, kernel::CALLS].into_iter().flatten()
}

/// The arguments of a call, if it is known.
pub fn kinds(name: &str) -> Option<&'static [Kind]> {
    all().find(|(known, _)| *known == name).map(|(_, kinds)| *kinds)
}

/// Every known call.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    all().map(|(name, _)| *name)
}
