//! Every `unsafe` block of the launch and supervision code, as small safe functions. An error carries the
//! name of the system call that failed.

pub mod access;
pub mod attributes;
pub mod canary;
pub mod descriptor;
pub mod file;
pub mod memory;
pub mod mount;
pub mod namespace;
pub mod path;
pub mod privilege;
pub mod probe;
pub mod process;
pub mod seccomp;
pub mod signal;
pub mod socket;
pub mod stream;
pub mod terminal;
pub mod timer;
pub mod usage;

use std::ffi::{CStr, OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// A system call that failed.
#[derive(Debug)]
pub struct Failed {
    /// The call, as in man-pages.
    pub call: &'static str,
    /// Why.
    pub cause: io::Error,
}

impl Failed {
    /// From `errno`.
    #[cold]
    pub fn last(call: &'static str) -> Failed {
        Failed { call, cause: io::Error::last_os_error() }
    }

    /// The error number.
    pub fn errno(&self) -> i32 {
        self.cause.raw_os_error().unwrap_or(0)
    }

    /// Whether something was used up or broken just then, which says nothing about what the machine can do.
    pub fn is_passing(&self) -> bool {
        matches!(
            self.errno(),
            libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::EIO | libc::EINTR
        )
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, plain(&self.cause))
    }
}

/// An error in the C library's words, without std's number and without a capital letter. What can be done about it is said
/// here, and not by each who meets it; C libraries have different words for that one.
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
pub(crate) fn checked(call: &'static str, result: libc::c_long) -> Result<libc::c_long, Failed> {
    if result < 0 { Err(Failed::last(call)) } else { Ok(result) }
}

/// The program's arguments, as the C library hands them to `main`.
///
/// # Safety
///
/// `argv` is an array of `argc` pointers to NUL-terminated strings.
pub unsafe fn arguments(argc: libc::c_int, argv: *const *const libc::c_char) -> Vec<OsString> {
    let argument = |index| {
        // SAFETY: below `argc`, so inside the array.
        let pointer = unsafe { argv.add(index) };
        // SAFETY: as above.
        let text = unsafe { *pointer };
        // SAFETY: the caller's promise.
        let text = unsafe { CStr::from_ptr(text) };
        OsStr::from_bytes(text.to_bytes()).to_os_string()
    };
    (0..usize::try_from(argc).unwrap_or(0)).map(argument).collect()
}
