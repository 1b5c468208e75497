//! What /proc says about the process that made a call. It is hostile, and may be gone at any moment.

use crate::sys::process::Pid;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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
    let file = fs::File::open(format!("/proc/{thread}/status"));
    if let Ok(file) = file {
        let _ = file.take(1024).read_to_end(&mut status);
    }
    let field = |name: &[u8]| status.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(name));
    let process =
        field(b"Tgid:\t").and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(thread);
    Caller { name: field(b"Name:\t").unwrap_or(b"?").to_vec(), process }
}

/// The file that a path argument names, seen from the thread: absolute, with every symbolic link on the way
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

/// Whether a path has no component that could not be printed as it is.
pub fn is_plain(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().all(|b| b.is_ascii_graphic())
}
