//! Mode, owner and times of a file that is held open as a place: changed without looking its name up again.

use super::{Failed, checked};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;

const NOW: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };

/// Times for [`set_times`].
pub type Times = [libc::timespec; 2];

/// Both times: now.
pub const NOW_BOTH: Times = [NOW; 2];

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
