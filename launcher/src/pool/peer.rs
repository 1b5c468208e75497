//! Whether another process is what this one is, as far as a run takes that from who starts it.
//!
//! A command inside a run, or in a sandbox of somebody else's, would get rights from a pool that it does not have. Its
//! rules keep it from the socket. Where those let it through, this is what refuses it.

use crate::sys::process::{self, Pid};
use crate::sys::status::Status;
use crate::sys::{SyscallError, descriptor, packet, privilege, probe};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// The lines of proc_pid_status(5) that have to be the same: who it is, what it may do and what it passes on.
const LINES: [&str; 15] = [
    "Umask",
    "Uid",
    "Gid",
    "Groups",
    "SigIgn",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp",
    "Seccomp_filters",
    "Cpus_allowed",
    "Mems_allowed",
];

/// What a process is in.
const PLACES: [&str; 10] = [
    "ns/cgroup",
    "ns/ipc",
    "ns/mnt",
    "ns/net",
    "ns/pid",
    "ns/pid_for_children",
    "ns/time",
    "ns/user",
    "ns/uts",
    "root",
];

/// Ignored signals, without the two that are the C library's own: glibc starts some programs with them ignored.
fn of_programs(ignored: &str) -> String {
    const OWN: u64 = 0b11 << 31;
    u64::from_str_radix(ignored.trim(), 16).map_or_else(|_| ignored.into(), |bits| (bits & !OWN).to_string())
}

/// What a process is.
#[derive(Debug)]
pub struct Standing {
    lines: Vec<String>,
    place: Place,
}

/// Where it is: its namespaces, its root, its control groups.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    groups: String,
    links: Vec<OsString>,
}

impl Place {
    fn of(pid: Pid) -> Option<Place> {
        let links = PLACES.iter().map(|place| {
            let read = std::fs::read_link(format!("/proc/{pid}/{place}"));
            // Nobody has what this kernel does not have.
            read.map(|path| path.into_os_string()).or_else(|error| match error.raw_os_error() {
                Some(libc::ENOENT) => Ok(OsString::new()),
                _ => Err(error),
            })
        });
        let links = links.collect::<Result<Vec<_>, _>>().ok()?;
        Some(Place { groups: process::about(pid, "cgroup").unwrap_or_default(), links })
    }

    fn is_of(&self, pid: Pid) -> bool {
        Place::of(pid).is_some_and(|place| place == *self)
    }
}

impl Standing {
    /// Of this process.
    pub fn own() -> Option<Standing> {
        let this = process::id();
        Some(Standing { lines: lines(this, &LINES)?, place: Place::of(this)? })
    }

    /// Whether nothing confines it that its runs could not tell.
    pub fn is_free(&self) -> bool {
        let line = |name| LINES.iter().zip(&self.lines).find(|(known, _)| **known == name);
        ["NoNewPrivs", "Seccomp"]
            .iter()
            .all(|name| line(*name).is_some_and(|(_, value)| matches!(value.trim(), "" | "0")))
    }

    /// Who connected, if that process is in the same places. What it may do there, [`Peer::is_equal`] says. To be asked
    /// before anything has come: the peer has something to do until it sends.
    pub fn peer(&self, connection: BorrowedFd<'_>) -> Option<Peer<'_>> {
        let (pid, user) = packet::peer(connection).ok()?;
        let held = packet::peer_held(connection).ok()?;
        let is_here = user == process::user() && self.place.is_of(pid);
        is_here.then_some(Peer { standing: self, pid, held })
    }
}

/// Who connected.
pub struct Peer<'s> {
    standing: &'s Standing,
    pid: Pid,
    held: OwnedFd,
}

impl Peer<'_> {
    /// Whether it is the same, and has sent what came itself. `sender` is who has sent it.
    pub fn is_equal(&self, sender: Option<Pid>) -> bool {
        let is_same = sender == Some(self.pid)
            && lines(self.pid, &LINES).is_some_and(|lines| lines == self.standing.lines);
        // Its number is nobody else's as long as it has not ended.
        is_same && !descriptor::readable(self.held.as_raw_fd(), Duration::ZERO)
    }
}

/// These lines of what the kernel tells about a process.
fn lines(pid: Pid, names: &[&str]) -> Option<Vec<String>> {
    let status = Status::of(pid).ok()?;
    let lines = names.iter().map(|name| {
        // Older kernels lack some of them.
        let line = status.field(name).unwrap_or_default();
        if *name == "SigIgn" { of_programs(line) } else { line.to_string() }
    });
    Some(lines.collect())
}

/// Where the pool has the file whose name is the proof.
const PROOF: RawFd = 63;
const PROOF_NAME: &str = "/memfd:sbx-pool-";

/// The name of a file that the pool has open. The kernel shows it to a process that may look at the pool
/// (PTRACE_MODE_READ_FSCREDS, ptrace(2)). Landlock does not let a process look at what is outside of its domain, and no
/// line of /proc tells of such a domain.
pub struct Proof {
    name: OsString,
    _file: Option<OwnedFd>,
}

impl Proof {
    /// A new one, of the calling process.
    pub fn new() -> Result<Proof, SyscallError> {
        let file = descriptor::secret_name("sbx-pool-", PROOF)?;
        let name = name_of(process::id()).unwrap_or_default();
        Ok(Proof { name, _file: Some(file) })
    }

    /// One that is known already.
    #[cfg(test)]
    pub fn known(name: &str) -> Proof {
        Proof { name: name.into(), _file: None }
    }

    /// Whether somebody knows it.
    pub fn is(&self, told: &[u8]) -> bool {
        !self.name.is_empty() && self.name.as_bytes() == told
    }
}

fn name_of(pool: Pid) -> io::Result<OsString> {
    std::fs::read_link(format!("/proc/{pool}/fd/{PROOF}")).map(PathBuf::into_os_string)
}

/// Whether a process is a pool: whatever else this user has at that place is not ended for one.
pub fn is_pool(process: Pid) -> bool {
    name_of(process).is_ok_and(|name| is_proof(&name))
}

fn is_proof(name: &OsStr) -> bool {
    name.as_bytes().starts_with(PROOF_NAME.as_bytes())
}

/// The proof, where who listens is a pool of this user's that is as free as this process; or why it is none.
pub fn proof_of(connection: BorrowedFd<'_>) -> Result<Vec<u8>, &'static str> {
    let none = "who listens there is not a pool of this user's";
    let (pid, user) = packet::peer(connection).map_err(|_| none)?;
    let held = packet::peer_held(connection).map_err(|_| none)?;
    // What this process is, it knows without /proc.
    let (mode, no_new_privs) = probe::confinement();
    let own =
        [u64::from(no_new_privs), mode.map_or(u64::MAX, |mode| mode as u64), privilege::effective().bits()];
    let found = lines(pid, &["NoNewPrivs", "Seccomp", "CapEff"]).unwrap_or_default();
    let found = found.iter().map(|line| u64::from_str_radix(line.trim(), 16).unwrap_or(u64::MAX));
    if user != process::user() || !found.eq(own) {
        return Err(none);
    }
    let name = match name_of(pid) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err("this process may not look at the pool, so something confines it");
        }
        name => name.unwrap_or_default(),
    };
    // Its number is nobody else's as long as it has not ended.
    let lives = !descriptor::readable(held.as_raw_fd(), Duration::ZERO);
    (lives && is_proof(&name)).then(|| name.into_vec()).ok_or(none)
}
