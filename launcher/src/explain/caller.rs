//! What /proc says about the process that made a call. The process is hostile, and may be gone at any moment.

use crate::sys::number::FileNumber;
use crate::sys::process::{self, Pid};
use crate::sys::status::{self, Status};
use crate::sys::within::is_within;
use crate::sys::{descriptor, executable, path};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Who made a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of its process, as in `/proc/PID/comm`: threads have names of their own, which say little. May hold
    /// anything.
    pub name: Vec<u8>,
    /// The process, not the thread.
    pub process: Pid,
    /// The numbers of the process and the thread in their own pid namespace.
    pub inside: (Pid, Pid),
}

/// The caller that a thread belongs to.
pub fn caller(thread: Pid) -> Caller {
    let status = Status::beginning(thread).unwrap_or_else(|_| Status::from_text(""));
    // The last number belongs to the innermost namespace.
    let number = |name: &str| status.field(name)?.split_whitespace().last()?.parse().ok();
    let process = number("Tgid").unwrap_or(thread);
    let inside = (number("NStgid").unwrap_or(process), number("NSpid").unwrap_or(thread));
    let of_process = (process != thread).then(|| fs::read(format!("/proc/{process}/comm")).ok()).flatten();
    let of_process = of_process.map(|name| name.strip_suffix(b"\n").unwrap_or(&name).to_vec());
    let name = of_process.unwrap_or_else(|| status.bytes("Name").unwrap_or(b"?").to_vec());
    Caller { name, process, inside }
}

/// Whether a thread has any capability in its user namespace.
pub fn has_capabilities(thread: Pid) -> bool {
    Status::of(thread).is_ok_and(|status| status.set("CapEff") != 0)
}

/// Whether the file of a process would give it rights outside a sandbox (execve(2)): those of a user, or capabilities.
pub fn would_gain(process: Pid) -> bool {
    let program = PathBuf::from(format!("/proc/{process}/exe"));
    let is_set_id = program.metadata().is_ok_and(|meta| meta.mode() & libc::S_ISUID != 0);
    is_set_id || executable::path_has_capabilities(&program).is_ok_and(|has| has)
}

/// Whether it would give it a group there that this user is not in.
pub fn would_join(process: Pid) -> bool {
    let program = PathBuf::from(format!("/proc/{process}/exe")).metadata();
    let (Ok(program), Ok(own)) = (program, Status::own()) else { return false };
    let group = program.gid().to_string();
    let has_group = |list: &str| list.split_whitespace().any(|number| number == group);
    let is_in = ["Gid", "Groups"].iter().any(|name| own.field(name).is_some_and(has_group));
    program.mode() & libc::S_ISGID != 0 && !is_in
}

/// Whether a process runs a program that others start for themselves, and nobody by its name (hier(7)).
pub fn is_helper(process: Pid) -> bool {
    const INTERNAL: [&str; 2] = ["/usr/lib", "/usr/libexec"];
    let program = fs::read_link(format!("/proc/{process}/exe"));
    program.is_ok_and(|program| INTERNAL.iter().any(|place| is_within(&program, Path::new(place))))
}

/// Whether a file of this name is mapped into a process, as a library that it has loaded.
pub fn maps(process: Pid, name: &str) -> bool {
    // Room for some two thousand lines.
    const ENOUGH: u64 = 1 << 18;
    let mut maps = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{process}/maps")) {
        let _ = file.take(ENOUGH).read_to_end(&mut maps);
    }
    let end = [b"/", name.as_bytes()].concat();
    maps.split(|byte| *byte == b'\n').any(|line| line.ends_with(&end))
}

/// Whether the file of a process is set-user-ID for root: whatever else it is refused, it fails without these rights.
pub fn counts_on_root(process: Pid) -> bool {
    let program = PathBuf::from(format!("/proc/{process}/exe")).metadata();
    program.is_ok_and(|meta| meta.mode() & libc::S_ISUID != 0 && meta.uid() == 0)
}

/// The network namespace of a process. `self` is this process.
pub fn network(process: &str) -> io::Result<FileNumber> {
    fs::metadata(format!("/proc/{process}/ns/net")).map(|network| FileNumber::of(&network))
}

/// How many generations are looked at.
const DEEPEST: usize = 4096;

/// Whether a process belongs to the run, as all descendants of the supervisor do: no orphan moves further up.
pub fn is_ours(process: Pid) -> bool {
    let parent = |child: &Pid| status::stat_number(*child, 4);
    let own = process::id();
    std::iter::successors(Some(process), parent).take(DEEPEST).any(|above| above == own)
}

/// The first of the run's processes that a process descends from: its command, if nobody between them has ended.
pub fn eldest(process: Pid) -> Option<Pid> {
    const FIRST_OF_ALL: Pid = 1;
    let parent = |child: &Pid| status::stat_number(*child, 4);
    let line = std::iter::successors(Some(process), parent).take(DEEPEST);
    line.take_while(|above| process::number_inside(*above).is_some_and(|number| number != FIRST_OF_ALL))
        .last()
}

/// Whether the command line of a process has a number, by itself or in a path.
pub fn names_number(process: Pid, number: Pid) -> bool {
    let number = number.to_string();
    let words = process::about(process, "cmdline").unwrap_or_default();
    words.split(|letter: char| !letter.is_ascii_digit()).any(|word| word == number)
}

/// How a thread has come to a file.
pub enum Held {
    /// By names below its root: it sees the file there.
    ByPath(File),
    /// By a descriptor, which may come from elsewhere.
    ByDescriptor(File),
}

/// Opens the file that a path argument names for the thread, without reading or writing it (O_PATH). The thread's own
/// descriptors are reached by their names in /proc; no other magic link is followed.
pub fn reach(thread: Pid, dirfd: Option<i32>, path: &[u8], follow: bool) -> io::Result<Held> {
    match own_descriptor(thread, path) {
        Some(number) => descriptor_of(thread, number).map(Held::ByDescriptor),
        None => look_up(thread, dirfd, path, follow).map(Held::ByPath),
    }
}

/// The same, however it has come there.
pub fn hold(thread: Pid, dirfd: Option<i32>, path: &[u8], follow: bool) -> io::Result<File> {
    reach(thread, dirfd, path, follow).map(|(Held::ByPath(file) | Held::ByDescriptor(file))| file)
}

fn look_up(thread: Pid, dirfd: Option<i32>, path: &[u8], follow: bool) -> io::Result<File> {
    let root = descriptor::open_path(Path::new(&format!("/proc/{thread}/root")))?;
    if path.starts_with(b"/") {
        return descriptor::open_below(&root, path, follow);
    }
    // From the root of the thread, links lead where they lead for it: it may see other mounts than we do.
    let mut whole = named(thread, dirfd).map_err(missing_is_closed)?.into_os_string().into_vec();
    whole.push(b'/');
    whole.extend(path);
    descriptor::open_below(&root, &whole, follow)
}

/// The name of the file behind a descriptor of the thread, or of its working directory: where relative paths start. It
/// may have none, and is then not absolute.
pub fn named(thread: Pid, dirfd: Option<i32>) -> io::Result<PathBuf> {
    fs::read_link(match dirfd {
        None => format!("/proc/{thread}/cwd"),
        Some(number) => format!("/proc/{thread}/fd/{number}"),
    })
}

fn missing_is_closed(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::from_raw_os_error(libc::EBADF),
        _ => error,
    }
}

/// Whether the thread finds this very file at the path. A file without a name counts.
pub fn is_at(thread: Pid, file: &File, path: &Path) -> bool {
    let Ok(own) = file.metadata() else { return false };
    let found = || hold(thread, None, path.as_os_str().as_bytes(), false)?.metadata();
    own.nlink() == 0 || found().is_ok_and(|found| FileNumber::of(&found) == FileNumber::of(&own))
}

/// The file behind a descriptor of the thread, whatever its name leads to now.
pub fn descriptor_of(thread: Pid, number: i32) -> io::Result<File> {
    let held = descriptor::open_path(Path::new(&format!("/proc/{thread}/fd/{number}")));
    held.map_err(missing_is_closed)
}

/// The number in `/proc/self/fd/N` and the other names of that path.
fn own_descriptor(thread: Pid, path: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(path).ok()?;
    let own = format!("/proc/{thread}/fd/");
    let prefixes = ["/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/", own.as_str()];
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))?.parse().ok()
}

/// The file that a path argument names, for a message: absolute, with every symbolic link resolved, the last
/// one only if `follow` says so. `None` where /proc does not tell.
pub fn resolve(thread: Pid, dirfd: Option<i32>, path: &[u8], follow: bool) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    let absolute = if path.is_absolute() {
        path.to_path_buf()
    } else {
        named(thread, dirfd).ok().filter(|directory| directory.is_absolute())?.join(path)
    };
    let absolute = own_entries(thread, &absolute);
    if follow && let Ok(target) = absolute.canonicalize() {
        return Some(target);
    }
    // A file that does not exist yet is named by its directory.
    path::in_real_directory(&absolute)
}

/// The path with `/proc/self` as the thread means it: for us it is another process.
fn own_entries(thread: Pid, path: &Path) -> PathBuf {
    for name in ["/proc/self", "/proc/thread-self"] {
        if let Ok(rest) = path.strip_prefix(name) {
            return PathBuf::from(format!("/proc/{thread}")).join(rest);
        }
    }
    path.to_path_buf()
}
