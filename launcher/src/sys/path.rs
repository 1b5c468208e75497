//! The real path of a file.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// realpath(3), which [`Path::canonicalize`] asks to allocate the result: with some C libraries that takes several
/// system calls each time.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    let text = CString::new(path.as_os_str().as_bytes())?;
    let mut buffer = [0_u8; libc::PATH_MAX as usize];
    // SAFETY: a NUL-terminated string, and a buffer of the size that realpath(3) asks for.
    let found = unsafe { libc::realpath(text.as_ptr(), buffer.as_mut_ptr().cast()) };
    if found.is_null() {
        return Err(io::Error::last_os_error());
    }
    let length = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    Ok(PathBuf::from(OsStr::from_bytes(buffer.get(..length).unwrap_or(&[]))))
}
