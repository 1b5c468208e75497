//! What /proc says about the process that made a call. It is hostile, and may be gone at any moment.

use crate::sys::descriptor;
use crate::sys::process::{self, Pid};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Who made a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its name, as in comm; may hold anything.
    pub name: Vec<u8>,
    /// The process (not the thread).
    pub process: Pid,
}

/// Name and process of a thread.
pub fn caller(thread: Pid) -> Caller {
    // One kibibyte holds the first lines, which are Name, Umask, State and Tgid.
    let mut status = Vec::new();
    let file = File::open(format!("/proc/{thread}/status"));
    if let Ok(file) = file {
        let _ = file.take(1024).read_to_end(&mut status);
    }
    let field = |name: &[u8]| status.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(name));
    let process =
        field(b"Tgid:\t").and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(thread);
    Caller { name: field(b"Name:\t").unwrap_or(b"?").to_vec(), process }
}

/// Whether a process belongs to the run: the supervisor's descendants do, for no orphan moves further up.
pub fn is_ours(process: Pid) -> bool {
    const DEEPEST: usize = 4096;
    let parent = |child: &Pid| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        // The name before it may hold anything.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let own = process::id();
    std::iter::successors(Some(process), parent).take(DEEPEST).any(|above| above == own)
}

/// Holds the file that a path argument names, seen from the thread, as a place. Its own descriptors are reached
/// by the names that /proc has for them; no other magic link is followed.
pub fn hold(thread: Pid, dirfd: Option<i32>, path: &[u8], follow: bool) -> io::Result<File> {
    if let Some(number) = own_descriptor(thread, path) {
        return descriptor_of(thread, number);
    }
    if path.starts_with(b"/") {
        return descriptor::open_place(None, path, follow);
    }
    let directory = match dirfd {
        None => descriptor::open_path(Path::new(&format!("/proc/{thread}/cwd")))?,
        Some(number) => descriptor_of(thread, number)?,
    };
    descriptor::open_place(Some(&directory), path, follow)
}

/// A descriptor of the thread: the very file, not its name.
pub fn descriptor_of(thread: Pid, number: i32) -> io::Result<File> {
    let held = descriptor::open_path(Path::new(&format!("/proc/{thread}/fd/{number}")));
    held.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::from_raw_os_error(libc::EBADF),
        _ => error,
    })
}

/// The number in `/proc/self/fd/N` and its other names.
fn own_descriptor(thread: Pid, path: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(path).ok()?;
    let own = format!("/proc/{thread}/fd/");
    let prefixes = ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/", own.as_str()];
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))?.parse().ok()
}

/// The file that a path argument names, for a message: absolute, with every symbolic link on the way
/// resolved (the last one only if it is to be followed). `None` where that cannot be found out.
pub fn resolve(thread: Pid, dirfd: Option<i32>, path: &[u8], follow: bool) -> Option<PathBuf> {
    let path = Path::new(OsString::from_vec(path.to_vec()).as_os_str()).to_path_buf();
    let absolute = if path.is_absolute() {
        path
    } else {
        let link = match dirfd {
            None => format!("/proc/{thread}/cwd"),
            Some(number) => format!("/proc/{thread}/fd/{number}"),
        };
        let directory = fs::read_link(link).ok().filter(|target| target.is_absolute())?;
        directory.join(path)
    };
    let absolute = own_entries(thread, &absolute);
    if follow && let Ok(target) = absolute.canonicalize() {
        return Some(target);
    }
    // What does not exist yet is judged by the directory that it would be in.
    let (parent, name) = (absolute.parent()?, absolute.file_name()?);
    Some(parent.canonicalize().ok()?.join(name))
}

/// `/proc/self` is another process for the one who asks.
fn own_entries(thread: Pid, path: &Path) -> PathBuf {
    for name in ["/proc/self", "/proc/thread-self"] {
        if let Ok(rest) = path.strip_prefix(name) {
            return PathBuf::from(format!("/proc/{thread}")).join(rest);
        }
    }
    path.to_path_buf()
}
