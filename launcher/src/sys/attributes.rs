//! Mode, owner, times, extended attributes and flags of a file that is held open as a place: changed without looking its name up again.

use super::{Failed, checked};
use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

const NOW: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };

/// Times for [`set_times`].
pub type Times = [libc::timespec; 2];

/// Both times: now.
pub const NOW_BOTH: Times = [NOW; 2];

/// ioctl(2) commands that ask for and set the flags of a file.
pub const GET_FLAGS: u32 = 0x8008_6601;
/// See [`GET_FLAGS`].
pub const SET_FLAGS: u32 = 0x4008_6602;
/// Those that say how a file is stored or dumped, and take nothing away from anybody: FS_COMPR_FL, FS_SYNC_FL, FS_NODUMP_FL,
/// FS_NOATIME_FL, FS_NOCOMP_FL, FS_DIRSYNC_FL, FS_TOPDIR_FL, FS_NOCOW_FL.
const HARMLESS_FLAGS: u32 = 0x4 | 0x8 | 0x40 | 0x80 | 0x400 | 0x1_0000 | 0x2_0000 | 0x80_0000;

/// The name by which system calls that take no descriptor of this kind reach the file.
fn name(file: &File) -> Result<CString, Failed> {
    let text = format!("/proc/self/fd/{}", file.as_raw_fd());
    CString::new(text).map_err(|e| Failed { call: "open", cause: e.into() })
}

/// chmod(2).
pub fn set_mode(file: &File, mode: u32) -> Result<(), Failed> {
    let name = name(file)?;
    // SAFETY: a NUL-terminated path.
    checked("chmod", unsafe { libc::chmod(name.as_ptr(), mode) }.into()).map(drop)
}

/// chown(2), of a symbolic link itself where that is what is held.
pub fn set_owner(file: &File, user: u32, group: u32) -> Result<(), Failed> {
    // SAFETY: an empty path and a descriptor that stays open.
    let result = unsafe { libc::fchownat(file.as_raw_fd(), c"".as_ptr(), user, group, libc::AT_EMPTY_PATH) };
    checked("fchownat", result.into()).map(drop)
}

/// utimensat(2), of a symbolic link itself where that is what is held.
pub fn set_times(file: &File, times: &Times) -> Result<(), Failed> {
    // SAFETY: an empty path, a descriptor that stays open, two times.
    let result =
        unsafe { libc::utimensat(file.as_raw_fd(), c"".as_ptr(), times.as_ptr(), libc::AT_EMPTY_PATH) };
    match checked("utimensat", result.into()) {
        // Linux before 5.8 knows no empty path here.
        Err(failed) if failed.errno() == libc::EINVAL => {
            let name = name(file)?;
            // SAFETY: a NUL-terminated path, two times.
            let result = unsafe { libc::utimensat(libc::AT_FDCWD, name.as_ptr(), times.as_ptr(), 0) };
            checked("utimensat", result.into()).map(drop)
        }
        result => result.map(drop),
    }
}

/// setxattr(2), of a symbolic link itself where that is what is held.
pub fn set_extended(file: &File, key: &CStr, value: &[u8], flags: i32) -> Result<(), Failed> {
    let name = name(file)?;
    // SAFETY: NUL-terminated strings, and a buffer with its length.
    let result =
        unsafe { libc::setxattr(name.as_ptr(), key.as_ptr(), value.as_ptr().cast(), value.len(), flags) };
    checked("setxattr", result.into()).map(drop)
}

/// removexattr(2), of a symbolic link itself where that is what is held.
pub fn remove_extended(file: &File, key: &CStr) -> Result<(), Failed> {
    let name = name(file)?;
    // SAFETY: NUL-terminated strings.
    checked("removexattr", unsafe { libc::removexattr(name.as_ptr(), key.as_ptr()) }.into()).map(drop)
}

/// Changes flags of a regular file or directory, if the change is harmless.
pub fn set_flags(file: &File, flags: u32) -> Result<(), Failed> {
    let failed = |errno| Failed { call: "ioctl", cause: std::io::Error::from_raw_os_error(errno) };
    let kind = file.metadata().map_err(|cause| Failed { call: "fstat", cause })?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(failed(libc::ENOTTY));
    }
    // A place takes no ioctl(2). What is opened is the file that is held; O_NONBLOCK: nobody's lease is waited for.
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .map_err(|cause| Failed { call: "open", cause })?;
    // The kernel reads and writes an int, whatever the commands' numbers say; a file system of a user's own may write the long.
    let mut present: [u32; 2] = [0; 2];
    // SAFETY: a descriptor that stays open, and room for a long.
    checked("ioctl", unsafe { libc::ioctl(open.as_raw_fd(), GET_FLAGS as _, present.as_mut_ptr()) }.into())?;
    if (present[0] ^ flags) & !HARMLESS_FLAGS != 0 {
        return Err(failed(libc::EPERM));
    }
    let wanted: [u32; 2] = [flags, 0];
    // SAFETY: a descriptor that stays open, and a long to be read.
    checked("ioctl", unsafe { libc::ioctl(open.as_raw_fd(), SET_FLAGS as _, wanted.as_ptr()) }.into())
        .map(drop)
}
