//! Giving privileges up: capabilities, no_new_privs, keyrings, limits.

use crate::sys::process::Pid;
use crate::sys::{OfCall, SyscallError, checked};
use rustix::io::Errno;
use rustix::process::DumpableBehavior;
pub use rustix::thread::CapabilitySet;
use rustix::thread::CapabilitySets;

/// Every kernel since Linux 3.16 has the capabilities up to CAP_AUDIT_READ.
const ALWAYS_KNOWN: u32 = 37;

/// Drops every capability from the bounding, ambient, permitted, effective and inheritable sets of the
/// calling thread (capabilities(7)).
pub fn drop_capabilities() -> Result<(), SyscallError> {
    bound_capabilities().and_then(|()| drop_own_capabilities())
}

/// The first half of that: empties the bounding set, from which an exec acquires capabilities. The caller
/// keeps those that it has.
pub fn bound_capabilities() -> Result<(), SyscallError> {
    let held = capabilities()?;
    if is_empty(&held) {
        // Under no_new_privs, a process without capabilities gains nothing from its bounding set.
        return Ok(());
    }
    let may_shrink = held.effective.contains(CapabilitySet::SETPCAP);
    let is_out = |capability| rustix::thread::capability_is_in_bounding_set(capability) == Ok(false);
    // Where somebody has done it already, to ask takes less time than to take each away once more.
    let is_emptied = is_out(CapabilitySet::CHOWN);
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if is_emptied && is_out(capability) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // Past the last capability of this kernel.
            Err(Errno::INVAL) if number > ALWAYS_KNOWN => break,
            // The bounding set cannot shrink; it grants nothing by itself either.
            Err(Errno::PERM) if !may_shrink => break,
            result => result.of("prctl(PR_CAPBSET_DROP)")?,
        }
    }
    Ok(())
}

/// The second half: empties all other sets.
pub fn drop_own_capabilities() -> Result<(), SyscallError> {
    if is_empty(&capabilities()?) {
        return Ok(());
    }
    rustix::thread::clear_ambient_capability_set().of("prctl(PR_CAP_AMBIENT)")?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).of("capset")
}

/// Whether the calling thread may administrate the system: make namespaces without a user namespace.
pub fn is_administrator() -> bool {
    effective().contains(CapabilitySet::SYS_ADMIN)
}

/// The capabilities that count for the calling thread; none where the kernel does not tell.
pub fn effective() -> CapabilitySet {
    capabilities().map_or(CapabilitySet::empty(), |sets| sets.effective)
}

fn is_empty(sets: &CapabilitySets) -> bool {
    (sets.effective | sets.permitted | sets.inheritable).is_empty()
}

fn capabilities() -> Result<CapabilitySets, SyscallError> {
    rustix::thread::capabilities(None).of("capget")
}

/// prctl(PR_SET_NO_NEW_PRIVS): no exec ever grants a privilege again.
pub fn no_new_privs() -> Result<(), SyscallError> {
    rustix::thread::set_no_new_privs(true).of("prctl(PR_SET_NO_NEW_PRIVS)")
}

/// Joins a new, empty session keyring: the keys of the inherited one are out of reach then.
pub fn new_session_keyring() -> Result<(), SyscallError> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    let none: *const libc::c_char = std::ptr::null();
    // SAFETY: a null name asks for an anonymous keyring.
    let result = unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, none) };
    match checked("keyctl(KEYCTL_JOIN_SESSION_KEYRING)", result) {
        // A kernel without keyrings has no keys. Where an outer filter refuses keyctl, the command's own
        // filter refuses it too.
        Err(failed) if !matches!(failed.errno(), libc::ENOSYS | libc::EPERM | libc::EACCES) => Err(failed),
        _ => Ok(()),
    }
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// A limit that a run can lower (setrlimit(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Size of a core file, in bytes.
    Core,
    /// Open files.
    OpenFiles,
    /// Size of a written file, in bytes.
    FileSize,
    /// Processor time, in seconds.
    Cpu,
    /// Writable private memory of one process, in bytes.
    Data,
    /// Processes and threads of the user, wherever they are.
    UserTasks,
}

impl Limit {
    fn resource(self) -> Resource {
        match self {
            Limit::Core => libc::RLIMIT_CORE,
            Limit::OpenFiles => libc::RLIMIT_NOFILE,
            Limit::FileSize => libc::RLIMIT_FSIZE,
            Limit::Cpu => libc::RLIMIT_CPU,
            Limit::Data => libc::RLIMIT_DATA,
            Limit::UserTasks => libc::RLIMIT_NPROC,
        }
    }

    // Not through rustix, whose getrlimit(2) cannot fail; under an outer filter it can.
    fn read(self) -> Result<libc::rlimit, SyscallError> {
        let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: room for the answer.
        checked("getrlimit", unsafe { libc::getrlimit(self.resource(), &raw mut now) })?;
        Ok(now)
    }

    /// The soft limit of this process. RLIM_INFINITY is the largest number.
    pub fn soft(self) -> Result<u64, SyscallError> {
        self.read().map(|now| now.rlim_cur)
    }
}

/// Lowers the soft and the hard limit. A limit that is lower already stays.
pub fn limit(limit: Limit, soft: u64, hard: u64) -> Result<(), SyscallError> {
    let hard = hard.min(limit.read()?.rlim_max);
    let new = libc::rlimit { rlim_cur: soft.min(hard), rlim_max: hard };
    // SAFETY: a valid structure.
    checked("setrlimit", unsafe { libc::setrlimit(limit.resource(), &raw const new) }).map(drop)
}

/// Raises the soft limit to the hard one, and returns it.
pub fn raise(limit: Limit) -> Result<u64, SyscallError> {
    let mut now = limit.read()?;
    now.rlim_cur = now.rlim_max;
    // SAFETY: a valid structure.
    checked("setrlimit", unsafe { libc::setrlimit(limit.resource(), &raw const now) })?;
    Ok(now.rlim_cur)
}

/// The hard limit of a process on locks of files (RLIMIT_LOCKS).
pub fn lock_limit(of: Pid) -> Result<u64, SyscallError> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for the answer, and nothing is set.
    checked("prlimit", unsafe { libc::prlimit(of, libc::RLIMIT_LOCKS, std::ptr::null(), &raw mut now) })?;
    Ok(now.rlim_max)
}

/// Sets that limit, and the soft one with it.
pub fn lower_lock_limit(of: Pid, to: u64) -> Result<(), SyscallError> {
    let new = libc::rlimit { rlim_cur: to, rlim_max: to };
    // SAFETY: a valid structure, and no answer is asked for.
    let result = unsafe { libc::prlimit(of, libc::RLIMIT_LOCKS, &raw const new, std::ptr::null_mut()) };
    checked("prlimit", result).map(drop)
}

/// Makes the caller's memory and /proc entries unreadable for other processes of the same user.
pub fn undumpable() -> Result<(), SyscallError> {
    set_dumpable(false)
}

/// Makes them readable or unreadable.
pub fn set_dumpable(readable: bool) -> Result<(), SyscallError> {
    let behavior = if readable { DumpableBehavior::Dumpable } else { DumpableBehavior::NotDumpable };
    rustix::process::set_dumpable_behavior(behavior).of("prctl(PR_SET_DUMPABLE)")
}
