//! Mode, owner, times, extended attributes and flags of a file that is held open as a place (O_PATH). They
//! are changed without looking the name up again.

use crate::sys::descriptor::own_name;
use crate::sys::{OfCall, SyscallError, checked};
use rustix::fs::{AtFlags, CWD, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// The attribute with the access list that new files in a directory get.
pub const DEFAULT_LIST: &CStr = c"system.posix_acl_default";

const NOW: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };

/// Times for [`set_times`].
pub type Times = [libc::timespec; 2];

/// Both times: now.
pub const NOW_BOTH: Times = [NOW; 2];

/// ioctl(2) commands that ask for and set the flags of a file.
pub const GET_FLAGS: u32 = 0x8008_6601;
/// See [`GET_FLAGS`].
pub const SET_FLAGS: u32 = 0x4008_6602;
/// The flags that say how a file is stored or dumped, and take nothing away from anybody: FS_COMPR_FL,
/// FS_SYNC_FL, FS_NODUMP_FL, FS_NOATIME_FL, FS_NOCOMP_FL, FS_DIRSYNC_FL, FS_TOPDIR_FL, FS_NOCOW_FL.
const HARMLESS_FLAGS: u32 = 0x4 | 0x8 | 0x40 | 0x80 | 0x400 | 0x1_0000 | 0x2_0000 | 0x80_0000;

/// chmod(2).
pub fn set_mode(file: &File, mode: u32) -> Result<(), SyscallError> {
    rustix::fs::chmod(own_name(file.as_raw_fd()), Mode::from_bits_retain(mode)).of("chmod")
}

/// Whether what is made in a directory gets other permissions than who makes it says: an access list for new files is
/// on it (acl(5)).
pub fn decides_about_new_files(directory: &File) -> bool {
    rustix::fs::fgetxattr(directory, DEFAULT_LIST, &mut [0_u8; 0]).is_ok()
}

/// chown(2), of a symbolic link itself where that is held. `u32::MAX` leaves a number as it is.
pub fn set_owner(file: &File, user: u32, group: u32) -> Result<(), SyscallError> {
    let user = (user != u32::MAX).then(|| Uid::from_raw(user));
    let group = (group != u32::MAX).then(|| Gid::from_raw(group));
    rustix::fs::chownat(file, c"", user, group, AtFlags::EMPTY_PATH).of("fchownat")
}

/// utimensat(2), of a symbolic link itself where that is held.
pub fn set_times(file: &File, times: &Times) -> Result<(), SyscallError> {
    let [accessed, modified] = times.map(|time| Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec });
    let times = Timestamps { last_access: accessed, last_modification: modified };
    let set = match rustix::fs::utimensat(file, c"", &times, AtFlags::EMPTY_PATH) {
        // Linux before 5.8 knows no empty path here.
        Err(Errno::INVAL) => rustix::fs::utimensat(CWD, own_name(file.as_raw_fd()), &times, AtFlags::empty()),
        result => result,
    };
    set.of("utimensat")
}

/// setxattr(2), of a symbolic link itself where that is held.
pub fn set_extended(file: &File, key: &CStr, value: &[u8], flags: i32) -> Result<(), SyscallError> {
    let flags = XattrFlags::from_bits_retain(flags.cast_unsigned());
    rustix::fs::setxattr(own_name(file.as_raw_fd()), key, value, flags).of("setxattr")
}

/// removexattr(2), of a symbolic link itself where that is held.
pub fn remove_extended(file: &File, key: &CStr) -> Result<(), SyscallError> {
    rustix::fs::removexattr(own_name(file.as_raw_fd()), key).of("removexattr")
}

/// Changes flags of a regular file or directory, if the change is harmless.
pub fn set_flags(file: &File, flags: u32) -> Result<(), SyscallError> {
    let kind = file.metadata().of("fstat")?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(Errno::NOTTY).of("ioctl");
    }
    // A place takes no ioctl(2), so the file that is held is opened. O_NONBLOCK: no lease is waited for.
    let options = libc::O_NONBLOCK | libc::O_NOCTTY;
    let open =
        OpenOptions::new().read(true).custom_flags(options).open(own_name(file.as_raw_fd())).of("open")?;
    // The kernel reads and writes an int, whatever the commands' numbers say. A file system of a user's own
    // may write the long, for which rustix has no room.
    let mut present: [u32; 2] = [0; 2];
    // SAFETY: a descriptor that stays open, and room for a long.
    checked("ioctl", unsafe { libc::ioctl(open.as_raw_fd(), GET_FLAGS as _, present.as_mut_ptr()) })?;
    if (present[0] ^ flags) & !HARMLESS_FLAGS != 0 {
        return Err(Errno::PERM).of("ioctl");
    }
    let wanted: [u32; 2] = [flags, 0];
    // SAFETY: a descriptor that stays open, and a long to be read.
    checked("ioctl", unsafe { libc::ioctl(open.as_raw_fd(), SET_FLAGS as _, wanted.as_ptr()) }).map(drop)
}
