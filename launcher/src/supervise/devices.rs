//! /dev/null, which holds nothing, and which everybody writes to: `-o /dev/null`.
//!
//! A filter sees no paths, so a profile that opens nothing for writing refuses this as well, though its path rules grant
//! it. The supervisor opens the device by itself, and the caller gets a copy of that descriptor: whatever becomes of the
//! path in its memory. No other device is served: mapped from a descriptor for writing, /dev/zero is memory to put code
//! into (zero(4), mremap(2)), which such a profile refuses.

use crate::launch::policy::PathRule;
use crate::launch::siblings;
use crate::launch::within::is_within;
use crate::supervise::decode::Decoded;
use crate::sys::seccomp::Notification;
use std::cell::OnceCell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const NULL: &str = "/dev/null";
/// Its numbers (null(4)).
const NUMBERS: (u32, u32) = (1, 3);

/// A device that the caller gets.
pub struct Device {
    /// Opened as it was asked for.
    pub file: File,
    /// Whether an exec is to close it.
    pub close_on_exec: bool,
}

/// Whether it may be had.
pub struct Null {
    granted: bool,
    denied: Vec<PathBuf>,
    allowed: OnceCell<bool>,
}

impl Null {
    /// By the path rules, without which everything may be written to, and by what is denied whatever they say.
    pub fn new(rules: Option<&[PathRule]>, denied: Vec<PathBuf>) -> Null {
        let writes = |rule: &PathRule| rule.rights.write && is_within(Path::new(NULL), &rule.path);
        let granted = rules.is_none_or(|rules| rules.iter().any(writes));
        Null { granted, denied, allowed: OnceCell::new() }
    }

    /// The device, if a call would open it for writing and may; `None` for anything else.
    pub fn opened(&self, name: &str, call: &Notification, decoded: &Decoded) -> Option<Device> {
        let device = opened(name, call, decoded)?;
        let denies = |path: &PathBuf| is_within(Path::new(NULL), &siblings::resolve(path));
        self.allowed.get_or_init(|| self.granted && !self.denied.iter().any(denies)).then_some(device)
    }
}

fn opened(name: &str, call: &Notification, decoded: &Decoded) -> Option<Device> {
    let flags = match name {
        "open" => call.args[1],
        "openat" => call.args[2],
        "creat" => libc::O_WRONLY as u64,
        _ => return None,
    } as i32;
    if decoded.paths.first()?.path != NULL.as_bytes() {
        return None;
    }
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
    let file = options.read(reads).write(writes).append(append).custom_flags(kept).open(NULL).ok()?;
    let meta = file.metadata().ok()?;
    let is_it = meta.file_type().is_char_device() && meta.rdev() == libc::makedev(NUMBERS.0, NUMBERS.1);
    is_it.then_some(Device { file, close_on_exec: flags & libc::O_CLOEXEC != 0 })
}
