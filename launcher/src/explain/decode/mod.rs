//! The arguments of a system call as text, and the paths and addresses in them.
//!
//! The caller of a denied call has chosen every byte that is read here, and can change it meanwhile. So the
//! result tells a person what was tried; it never decides what to let through. Reads are bounded, a read that
//! fails leaves the bare number, and the text is short and printable whatever the memory holds.
//!
//! `table` says what the arguments of each call are, `flags` how numbers are named, `names` holds the names.

mod arguments;
mod flags;
mod memory;
mod names;
mod path;
mod process_memory;
mod sockaddr;
mod table;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::ops::BitOr;

pub use flags::signal_name;
pub use memory::{CString, array, bytes, c_string};
pub use process_memory::ProcessMemory;

/// Longest [`Decoded::text`], in bytes.
pub const TEXT_LIMIT: usize = 400;

/// Reads the memory of the process that made the call.
pub trait Memory {
    /// Copies from `address` on and returns how many bytes: fewer than asked for only where the next byte
    /// cannot be read.
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize;
}

/// A system call as it was made.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The name, as in the manual pages.
    pub name: &'a str,
    /// The six argument registers. Those that the call does not use hold garbage.
    pub args: [u64; 6],
    /// Whether it came through another architecture's entry (i386, x32), which has other structures: its
    /// arguments are shown as bare numbers.
    pub foreign: bool,
}

/// What the arguments say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The text between the parentheses: printable, at most [`TEXT_LIMIT`] bytes.
    pub text: String,
    /// The paths that the call acts on, at most two. Paths that the kernel could not read either, or finds
    /// too long, are not here.
    pub paths: Vec<PathArgument>,
    /// Where `connect`, `bind`, `sendto`, `sendmsg` or the first message of `sendmmsg` goes.
    pub address: Option<Address>,
    /// The process that the call is about, by its number.
    pub process: Option<i32>,
    /// Whether some memory could not be read, so that a path or the address of the call may be missing here.
    pub unreadable: bool,
}

/// A path, and what the call wants with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathArgument {
    /// The directory where a relative path starts, as given; `None` is the working directory. `openat2` may use it for
    /// absolute paths too.
    pub dirfd: Option<i32>,
    /// The whole path, up to the kernel's 4,095 bytes. May be empty.
    pub path: Vec<u8>,
    /// What the call wants with it.
    pub access: Access,
    /// Whether the call follows a symbolic link at the path's end.
    pub follow: bool,
    /// Whether an empty path means `dirfd` itself.
    pub empty_path_ok: bool,
}

impl PathArgument {
    /// Whether no call succeeds with it, in no sandbox and outside of any: it is empty (ENOENT).
    pub fn names_nothing(&self) -> bool {
        self.path.is_empty() && !self.empty_path_ok
    }
}

/// What a call wants with a path: a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access(u16);

impl Access {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Read the contents.
    pub const READ: Self = Self(1);
    /// Write the contents.
    pub const WRITE: Self = Self(1 << 1);
    /// Run it.
    pub const EXECUTE: Self = Self(1 << 2);
    /// Make an entry of this name. Where one exists, `open` only uses it and `rename` removes it.
    pub const CREATE: Self = Self(1 << 3);
    /// Remove the entry of this name.
    pub const REMOVE: Self = Self(1 << 4);
    /// Look at it, refer to it or step into it without its contents (stat, readlink, chdir, O_PATH). Landlock
    /// does not cover this.
    pub const METADATA: Self = Self(1 << 5);
    /// Cut off the contents.
    pub const TRUNCATE: Self = Self(1 << 6);
    /// Read a directory.
    pub const LIST: Self = Self(1 << 7);
    /// Change mode, owner, times or extended attributes. Landlock does not cover this.
    pub const ATTRIBUTES: Self = Self(1 << 8);
    /// Link or move between directories, if the two paths of the call lie in different directories.
    pub const REFER: Self = Self(1 << 9);
    /// Everything.
    pub const ALL: Self = Self((1 << 10) - 1);

    /// Whether it has everything that `other` has.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it has something that `other` has.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it has nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What either of them has.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What the flags of `open` ask for, one thing after another.
pub const OPENS: [u64; 6] = [
    libc::O_RDONLY as u64,
    (libc::O_RDONLY | libc::O_DIRECTORY) as u64,
    libc::O_WRONLY as u64,
    libc::O_RDWR as u64,
    (libc::O_WRONLY | libc::O_CREAT) as u64,
    (libc::O_WRONLY | libc::O_TRUNC) as u64,
];

/// The argument that holds `open`'s flags, of the calls that have them.
pub fn open_flags_at(name: &str) -> Option<usize> {
    table::path_rules(name).find_map(|rule| match rule.last {
        table::Last::Open(argument) => Some(argument),
        _ => None,
    })
}

/// What a call with these arguments can want with its paths, whatever they are. Flags in memory may be any.
pub fn wanted(name: &str, args: &[u64; 6]) -> Access {
    let hows = || OPENS.into_iter().map(|flags| path::OpenHow { flags, mode: 0, resolve: 0 });
    let of_rule =
        |rule| hows().filter_map(move |how| path::argument(None, Vec::new(), rule, args, Some(how)));
    table::path_rules(name).flat_map(of_rule).fold(Access::NONE, |all, argument| all | argument.access)
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

/// A socket address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// IPv4 or IPv6.
    Inet {
        /// The address as given: an IPv4 address inside IPv6 stays one.
        ip: IpAddr,
        /// The port, in host order.
        port: u16,
    },
    /// A socket file. Relative paths start at the working directory.
    UnixPath(Vec<u8>),
    /// A name without a file, less its leading NUL. May hold NULs.
    UnixAbstract(Vec<u8>),
    /// No name at all: `bind` then picks an abstract one.
    UnixUnnamed,
    /// Netlink.
    Netlink {
        /// The port number, 0 for the kernel.
        pid: u32,
        /// Multicast groups.
        groups: u32,
    },
    /// Any other family, or an address too short or too long for its family.
    Other {
        /// `AF_...`
        family: u16,
    },
}

/// The path at an address; `None` for one that the kernel could not read either, or finds too long.
#[must_use]
pub fn read_path(memory: &dyn Memory, address: u64) -> Option<Vec<u8>> {
    match c_string(memory, address, memory::PATH_MAX) {
        CString::Whole(path) => Some(path),
        _ => None,
    }
}

/// Decodes the arguments of a call.
pub fn decode(call: &Call<'_>, memory: &dyn Memory) -> Decoded {
    match table::arguments(call.name).filter(|_| !call.foreign) {
        Some(kinds) => arguments::decode(kinds, &call.args, memory),
        None => Decoded { text: call.args.map(flags::hex).join(", "), ..Decoded::default() },
    }
}
