//! /dev/null, which holds nothing, and which everybody writes to: `-o /dev/null`.
//!
//! A filter sees no paths, so a profile that opens nothing for writing refuses this as well, though its
//! path rules grant it. The supervisor opens the device itself, and the caller gets a copy of that
//! descriptor, whatever becomes of the path in its memory. No other device is served: mapped from a
//! descriptor for writing, /dev/zero is memory to put code into (zero(4), mremap(2)), which such a profile
//! refuses.
//!
//! A process without a terminal is told that of /dev/tty, as by the kernel (tty(4)): shells ask at their start.

use crate::plan::deny_expansion;
use crate::plan::rules::PathRule;
use crate::supervise::dispatch::{Handler, Step};
use crate::supervise::judge::{Judge, Verdict, error};
use crate::supervise::waiting::{NotifiedCall, Waiting};
use crate::sys::SyscallError;
use crate::sys::process::Pid;
use crate::sys::status;
use crate::sys::within::is_within;
use std::cell::OnceCell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const NULL: &str = "/dev/null";
const TERMINAL: &str = "/dev/tty";
/// Its numbers (null(4)).
const NUMBERS: (u32, u32) = (1, 3);

/// Opens the device for the command.
#[derive(Clone)]
pub struct NullDevice {
    granted: bool,
    denied: Vec<PathBuf>,
    allowed: OnceCell<bool>,
}

/// The device that is opened.
pub enum Device {
    /// /dev/null, with these flags.
    Null(i32),
    /// The terminal of a process that has none.
    NoTerminal,
}

impl Handler for NullDevice {
    type Copy = Device;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Device> {
        let args = waiting.call.notification.args;
        let flags = match &*waiting.call.name {
            _ if waiting.call.verdict != Verdict::Violation => return None,
            "open" => args[1],
            "openat" => args[2],
            "creat" => libc::O_WRONLY as u64,
            _ => return None,
        } as i32;
        let path = &waiting.decoded().paths.first()?.path;
        if path == NULL.as_bytes() {
            return Some(Device::Null(flags));
        }
        let asks = path == TERMINAL.as_bytes() && !has_terminal(waiting.call.notification.pid);
        asks.then_some(Device::NoTerminal)
    }

    fn act(&mut self, device: Device, _: &NotifiedCall, _: &mut Judge) -> Result<Step, SyscallError> {
        let flags = match device {
            Device::Null(flags) => flags,
            Device::NoTerminal => return Ok(Step::Answer(error(libc::ENXIO))),
        };
        let close_on_exec = flags & libc::O_CLOEXEC != 0;
        let file = open(flags).filter(|_| self.is_allowed());
        Ok(file.map_or(Step::Next, |file| Step::HandOver { file, close_on_exec }))
    }
}

impl NullDevice {
    /// By the path rules, without which everything may be written to, and by what is denied whatever they
    /// say.
    pub fn new(rules: Option<&[PathRule]>, denied: Vec<PathBuf>) -> NullDevice {
        let writes = |rule: &PathRule| rule.rights.write && is_within(Path::new(NULL), &rule.path);
        let granted = rules.is_none_or(|rules| rules.iter().any(writes));
        NullDevice { granted, denied, allowed: OnceCell::new() }
    }

    fn is_allowed(&self) -> bool {
        let denies = |path: &PathBuf| is_within(Path::new(NULL), &deny_expansion::resolve(path));
        *self.allowed.get_or_init(|| self.granted && !self.denied.iter().any(denies))
    }
}

/// Whether a process has a controlling terminal (`tty_nr` in proc_pid_stat(5)). Where nobody can tell, it has.
fn has_terminal(process: Pid) -> bool {
    status::stat_number(process, 7) != Some(0)
}

/// The device, where it is opened for writing as it can be.
fn open(flags: i32) -> Option<File> {
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
    is_it.then_some(file)
}
