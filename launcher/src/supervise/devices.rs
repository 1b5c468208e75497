//! Devices that hold nothing, and that everybody writes to: `-o /dev/null`.
//!
//! A filter sees no paths, so a profile that opens nothing for writing refuses these as well. The supervisor opens the
//! device by itself, and the caller gets a copy of that descriptor: whatever becomes of the path in its memory.

use crate::supervise::decode::Decoded;
use crate::sys::seccomp::Notification;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Their names, and their numbers (null(4), full(4)).
const DEVICES: [(&str, u32, u32); 3] = [("/dev/null", 1, 3), ("/dev/zero", 1, 5), ("/dev/full", 1, 7)];

/// A device that the caller gets.
pub struct Device {
    /// Opened as it was asked for.
    pub file: File,
    /// Whether an exec is to close it.
    pub close_on_exec: bool,
}

/// The device that a call would open for writing; `None` for anything else.
pub fn opened(name: &str, call: &Notification, decoded: &Decoded) -> Option<Device> {
    let flags = match name {
        "open" => call.args[1],
        "openat" => call.args[2],
        "creat" => libc::O_WRONLY as u64,
        _ => return None,
    } as i32;
    let path = &decoded.paths.first()?.path;
    let (device, major, minor) = DEVICES.iter().find(|(device, ..)| device.as_bytes() == path)?;
    let (reads, writes) = match flags & libc::O_ACCMODE {
        libc::O_WRONLY => (false, true),
        libc::O_RDWR => (true, true),
        _ => return None,
    };
    let exclusive = libc::O_CREAT | libc::O_EXCL;
    if flags & (libc::O_PATH | libc::O_DIRECTORY) != 0 || flags & exclusive == exclusive {
        return None;
    }
    let kept = libc::O_NOFOLLOW | libc::O_NOCTTY | flags & libc::O_NONBLOCK;
    let append = flags & libc::O_APPEND != 0;
    let mut options = OpenOptions::new();
    let file =
        options.read(reads).write(writes).append(append).custom_flags(kept).open(Path::new(device)).ok()?;
    let meta = file.metadata().ok()?;
    let is_it = meta.file_type().is_char_device() && meta.rdev() == libc::makedev(*major, *minor);
    is_it.then_some(Device { file, close_on_exec: flags & libc::O_CLOEXEC != 0 })
}
