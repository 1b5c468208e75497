//! The system calls of the program check that the standard library has no name for.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The attribute that holds a file's capabilities.
const CAPABILITY: &std::ffi::CStr = c"security.capability";

/// Asks the kernel whether this process may execute `path`; knows about mounts with `noexec`, too.
pub(super) fn may_execute(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: `path` is a NUL-terminated string that outlives the call, which only reads it.
    match unsafe { libc::access(path.as_ptr(), libc::X_OK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the open file carries capabilities that an exec would add.
pub(super) fn has_capabilities(file: &File) -> io::Result<bool> {
    // SAFETY: both pointers are valid for the call: the name is NUL-terminated, and a null buffer of size 0
    // asks for the attribute's length alone, so nothing is written.
    let length = unsafe { libc::fgetxattr(file.as_raw_fd(), CAPABILITY.as_ptr(), std::ptr::null_mut(), 0) };
    attribute_present(length)
}

/// As [`has_capabilities`], for a file that may be executed but not opened.
pub(super) fn path_has_capabilities(path: &Path) -> io::Result<bool> {
    let path = c_path(path)?;
    // SAFETY: both strings are NUL-terminated and outlive the call; a null buffer of size 0 asks for the
    // attribute's length alone, so nothing is written.
    let length = unsafe { libc::getxattr(path.as_ptr(), CAPABILITY.as_ptr(), std::ptr::null_mut(), 0) };
    attribute_present(length)
}

/// Turns the answer of a length query into "is there such an attribute".
///
/// The kernel lets anyone ask, so EPERM and ENOSYS come from a system-call filter. Under one, no exec gains
/// capabilities any more, so there are none that count.
fn attribute_present(length: libc::ssize_t) -> io::Result<bool> {
    if length >= 0 {
        return Ok(length > 0);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENODATA | libc::EOPNOTSUPP | libc::EPERM | libc::ENOSYS) => Ok(false),
        // They are there, for the root of a user namespace that this one cannot name.
        Some(libc::EOVERFLOW) => Ok(true),
        _ => Err(error),
    }
}

/// `path` as the kernel wants it; a NUL byte inside is an error, never a shortened path.
fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// What only tests need: files of every sort, and eyes of another user.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// Makes a FIFO.
    pub fn make_fifo(path: &Path) {
        let path = c_path(path).unwrap();
        // SAFETY: `path` is a NUL-terminated string that outlives the call.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o755) }, 0, "{}", io::Error::last_os_error());
    }

    /// Gives a file the capability to bind low ports; false where this process or file system cannot.
    pub fn give_capability(path: &Path) -> bool {
        let path = c_path(path).unwrap();
        let mut value = [0_u8; 20];
        value[3] = 0x02;
        value[5] = 0x04;
        // SAFETY: the strings are NUL-terminated, and `value` is valid for reads of its whole length.
        let result = unsafe {
            libc::setxattr(path.as_ptr(), CAPABILITY.as_ptr(), value.as_ptr().cast(), value.len(), 0)
        };
        result == 0
    }

    /// Runs `look` with the rights of an ordinary user on files, whoever runs the tests.
    pub fn as_ordinary_user<T: Send>(look: impl FnOnce() -> T + Send) -> T {
        let switched = move || {
            if crate::sys::process::is_root() {
                // SAFETY: changes the identity of this thread alone, which ends after `look`; takes no pointer.
                unsafe { libc::setfsuid(65534) };
            }
            look()
        };
        std::thread::scope(|scope| scope.spawn(switched).join().unwrap())
    }
}
