//! What file permissions let this process do, asked of the kernel.

use super::process;
use std::ffi::CString;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission(libc::c_int);

impl Permission {
    /// Read a file, list a directory.
    pub const READ: Permission = Permission(libc::R_OK);
    /// Write a file.
    pub const WRITE: Permission = Permission(libc::W_OK);
    /// Both.
    pub const READ_WRITE: Permission = Permission(libc::R_OK | libc::W_OK);
    /// Execute a file.
    pub const EXECUTE: Permission = Permission(libc::X_OK);
    /// Make and remove names in a directory.
    pub const CHANGE: Permission = Permission(libc::W_OK | libc::X_OK);
}

/// Whether the file system itself allows it: permissions, access lists, read-only and noexec mounts. By the effective
/// user (faccessat2(2), Linux 5.8); true where that can't be asked.
pub fn allows(path: &Path, wanted: Permission) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let flags = libc::AT_EACCESS | libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: a NUL-terminated path and plain numbers.
    let result =
        unsafe { libc::syscall(libc::SYS_faccessat2, libc::AT_FDCWD, path.as_ptr(), wanted.0, flags) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS)
}

/// Whether who has no capabilities can make something in a directory: as its owner, or where others may write.
pub fn may_change(directory: &Metadata) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    directory.uid() == process::user() || directory.mode() & OTHERS_WRITE != 0
}

/// Whose directory it is, where root can make something in it by a capability alone.
pub fn others_directory(directory: &Path) -> Option<u32> {
    let meta = process::is_root().then(|| directory.metadata().ok()).flatten()?;
    (!may_change(&meta)).then(|| meta.uid())
}

/// Whether a path is on a file system that is mounted read-only (access(2) says that before it looks at permissions).
pub fn is_read_only(path: &Path) -> bool {
    let Ok(text) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a NUL-terminated string and a plain number.
    let refused = unsafe { libc::access(text.as_ptr(), libc::W_OK) } != 0;
    refused && std::io::Error::last_os_error().raw_os_error() == Some(libc::EROFS)
}

/// Whether an ordinary user may listen on a port.
pub fn may_bind(port: u16) -> bool {
    let first = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let first = first.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024);
    port == 0 || u32::from(port) >= first
}
