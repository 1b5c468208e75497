//! System calls, as small safe functions. Most of them go through rustix. `unsafe` is allowed only in the
//! modules that make a call which no library has. An error carries the name of the system call that failed.

pub mod access;
pub mod account;
#[allow(unsafe_code)] // clone(2).
pub mod ahead;
#[allow(unsafe_code)] // An allocator.
pub mod allocator;
#[allow(unsafe_code)] // ioctl(2) for the flags of a file.
pub mod attributes;
pub mod awake;
pub mod beneath;
pub mod bounded;
#[allow(unsafe_code)] // memcpy(3) and memcmp(3) as assembly.
pub mod copying;
#[allow(unsafe_code)] // pthread_kill(3), and a handler for its signal.
pub mod crew;
#[allow(unsafe_code)] // recvmsg(2) and sendmsg(2) with control messages.
pub mod datagram;
#[allow(unsafe_code)] // Descriptors by number, close_range(2), poll(2) with holes.
pub mod descriptor;
pub mod executable;
pub mod file;
pub mod file_system;
#[allow(unsafe_code)] // getrlimit(2), getpriority(2), personality(2) and others.
pub mod inherited;
pub mod listeners;
pub mod listing;
#[allow(unsafe_code)] // mmap(2), madvise(2).
pub mod memory;
#[allow(unsafe_code)] // mount_setattr(2).
pub mod mount;
#[allow(unsafe_code)] // listmount(2), statmount(2).
pub mod mounted;
#[allow(unsafe_code)] // ioctl(2) for a network interface.
pub mod namespace;
pub mod netlink;
#[allow(unsafe_code)] // fcntl(2) with F_NOTIFY.
pub mod new_names;
pub mod number;
#[allow(unsafe_code)] // sigaction(2), and a handler that makes calls of others.
pub mod observed;
pub mod overlay;
#[allow(unsafe_code)] // getsockopt(2) for the descriptor of a peer.
pub mod packet;
#[allow(unsafe_code)] // realpath(3).
pub mod path;
pub mod pending;
#[allow(unsafe_code)] // keyctl(2), getrlimit(2), prlimit(2).
pub mod privilege;
#[allow(unsafe_code)] // fork(2), unshare(2).
pub mod probe;
#[allow(unsafe_code)] // clone(2), execve(2), waitid(2), kill(2) and others.
pub mod process;
pub mod processor;
pub mod resolve;
pub mod route;
#[allow(unsafe_code)] // seccomp(2) and its ioctls, the version of Landlock.
pub mod seccomp;
#[allow(unsafe_code)] // System calls that a filter should refuse.
pub mod selftest;
pub mod setting;
#[allow(unsafe_code)] // Signal masks and dispositions.
pub mod signal;
#[allow(unsafe_code)] // fcntl(2) with F_GETOWN_EX.
pub mod signalling;
#[allow(unsafe_code)] // connect(2) to a copied address, ioctl(2) for a socket's network.
pub mod socket;
#[allow(unsafe_code)] // mmap(2).
pub mod stack;
pub mod status;
pub mod stream;
pub mod terminal;
#[allow(unsafe_code)] // What a child does before its exec.
pub mod tied;
#[allow(unsafe_code)] // timer_create(2).
pub mod timer;
pub mod tree;
pub mod unchanged;
#[allow(unsafe_code)] // getrusage(2).
pub mod usage;
pub mod within;

use std::ffi::{CStr, OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// A system call that failed.
#[derive(Debug)]
pub struct SyscallError {
    /// The call, as in man-pages.
    pub call: &'static str,
    /// Why.
    pub cause: io::Error,
}

impl SyscallError {
    /// From `errno`.
    #[cold]
    pub fn last(call: &'static str) -> SyscallError {
        SyscallError { call, cause: io::Error::last_os_error() }
    }

    /// The error number.
    pub fn errno(&self) -> i32 {
        self.cause.raw_os_error().unwrap_or(0)
    }

    /// Whether a resource was used up, or a call interrupted, just then. Such an error says nothing about
    /// what the machine can do.
    pub fn is_passing(&self) -> bool {
        matches!(
            self.errno(),
            libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::EIO | libc::EINTR
        )
    }
}

impl std::error::Error for SyscallError {}

impl fmt::Display for SyscallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, plain(&self.cause))
    }
}

/// Names the system call whose result this is.
pub trait OfCall<T> {
    /// The result, whose error names `call`.
    fn of(self, call: &'static str) -> Result<T, SyscallError>;
}

impl<T, E: Into<io::Error>> OfCall<T> for Result<T, E> {
    fn of(self, call: &'static str) -> Result<T, SyscallError> {
        self.map_err(|cause| SyscallError { call, cause: cause.into() })
    }
}

/// An error in the words of the C library, without the number that std adds and without a capital letter.
/// Only "too many open files" has words of our own: C libraries differ there, and something can be done
/// about it.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let sentence = text.split(" (os error").next().unwrap_or(&text);
    match error.raw_os_error() {
        None => return sentence.to_string(),
        Some(libc::EMFILE) => return "too many open files; allow more with 'ulimit -n'".to_string(),
        Some(_) => {}
    }
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The result of a call that returns -1 and sets `errno`.
pub(crate) fn checked(
    call: &'static str,
    result: impl Into<libc::c_long>,
) -> Result<libc::c_long, SyscallError> {
    let result = result.into();
    if result < 0 { Err(SyscallError::last(call)) } else { Ok(result) }
}

/// The program's arguments, as the C library hands them to `main`.
///
/// # Safety
///
/// `argv` is an array of `argc` pointers to NUL-terminated strings.
#[allow(unsafe_code)]
pub unsafe fn arguments(argc: libc::c_int, argv: *const *const libc::c_char) -> Vec<OsString> {
    let argument = |index| {
        // SAFETY: the index is below `argc`, and the caller promises a string there.
        let text = unsafe { CStr::from_ptr(*argv.add(index)) };
        OsStr::from_bytes(text.to_bytes()).to_os_string()
    };
    (0..usize::try_from(argc).unwrap_or(0)).map(argument).collect()
}
