//! Giving privileges up: capabilities, no_new_privs, keyrings, limits.

use super::{Failed, checked};

/// `_LINUX_CAPABILITY_VERSION_3`.
const VERSION_3: u32 = 0x2008_0522;

/// With it a process may take capabilities out of its bounding set.
const CAP_SETPCAP: u32 = 8;
/// Every kernel since Linux 3.16 has the capabilities up to this one.
const CAP_AUDIT_READ: i32 = 37;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops every capability from the bounding, ambient, permitted, effective and inheritable sets of the
/// calling thread (capabilities(7)).
pub fn drop_capabilities() -> Result<(), Failed> {
    bound_capabilities().and_then(|()| drop_own_capabilities())
}

/// The first half of that, for who still needs what it has: the bounding set, from which nothing more is acquired.
pub fn bound_capabilities() -> Result<(), Failed> {
    let held = capabilities()?;
    if is_empty(&held) {
        // The bounding set of a process without capabilities is of no use to it under no_new_privs.
        return Ok(());
    }
    let may_shrink = held[0].effective & (1 << CAP_SETPCAP) != 0;
    for capability in 0..64 {
        // SAFETY: plain numbers.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if result < 0 {
            let failed = Failed::last("prctl(PR_CAPBSET_DROP)");
            match failed.errno() {
                // Past the last capability of this kernel.
                libc::EINVAL if capability > CAP_AUDIT_READ => break,
                // The bounding set can't shrink; it grants nothing by itself either.
                libc::EPERM if !may_shrink => break,
                _ => return Err(failed),
            }
        }
    }
    Ok(())
}

/// And the second half: all other sets.
pub fn drop_own_capabilities() -> Result<(), Failed> {
    if is_empty(&capabilities()?) {
        return Ok(());
    }
    // SAFETY: plain numbers.
    let cleared = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    checked("prctl(PR_CAP_AMBIENT)", cleared.into())?;
    let header = Header { version: VERSION_3, pid: 0 };
    let data = [Data::default(); 2];
    // SAFETY: the structures that version 3 of the call takes.
    checked("capset", unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) }).map(drop)
}

/// Whether the calling thread may administrate the system: make namespaces without a user namespace.
pub fn is_administrator() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    capabilities().is_ok_and(|data| data[0].effective & (1 << CAP_SYS_ADMIN) != 0)
}

fn is_empty(sets: &[Data; 2]) -> bool {
    sets.iter().all(|data| data.effective | data.permitted | data.inheritable == 0)
}

fn capabilities() -> Result<[Data; 2], Failed> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: the structures that version 3 of the call fills.
    checked("capget", unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) })?;
    Ok(data)
}

/// prctl(PR_SET_NO_NEW_PRIVS): no exec ever grants a privilege again.
pub fn no_new_privs() -> Result<(), Failed> {
    // SAFETY: plain numbers.
    checked(
        "prctl(PR_SET_NO_NEW_PRIVS)",
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into(),
    )
    .map(drop)
}

/// Joins a new, empty session keyring, so that the keys of the one inherited are out of reach.
pub fn new_session_keyring() -> Result<(), Failed> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    let none: *const libc::c_char = std::ptr::null();
    // SAFETY: a null name asks for an anonymous keyring.
    let result = unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, none) };
    match checked("keyctl(KEYCTL_JOIN_SESSION_KEYRING)", result) {
        // A kernel without keyrings has no keys; under an outer filter that refuses keyctl, the command's own
        // filter refuses it too.
        Err(failed) if !matches!(failed.errno(), libc::ENOSYS | libc::EPERM | libc::EACCES) => Err(failed),
        _ => Ok(()),
    }
}

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

/// Lowers a limit: the soft and the hard one. What is lower already stays.
pub fn limit(limit: Limit, soft: u64, hard: u64) -> Result<(), Failed> {
    let resource = match limit {
        Limit::Core => libc::RLIMIT_CORE,
        Limit::OpenFiles => libc::RLIMIT_NOFILE,
        Limit::FileSize => libc::RLIMIT_FSIZE,
        Limit::Cpu => libc::RLIMIT_CPU,
        Limit::Data => libc::RLIMIT_DATA,
        Limit::UserTasks => libc::RLIMIT_NPROC,
    };
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for the answer.
    checked("getrlimit", unsafe { libc::getrlimit(resource, &raw mut now) }.into())?;
    let hard = hard.min(now.rlim_max);
    let new = libc::rlimit { rlim_cur: soft.min(hard), rlim_max: hard };
    // SAFETY: a valid structure.
    checked("setrlimit", unsafe { libc::setrlimit(resource, &raw const new) }.into()).map(drop)
}

/// Makes the caller's memory and /proc entries unreadable for other processes of the same user.
pub fn undumpable() -> Result<(), Failed> {
    set_dumpable(false)
}

/// Whether they are readable.
pub fn set_dumpable(readable: bool) -> Result<(), Failed> {
    // SAFETY: plain numbers.
    let result = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, libc::c_int::from(readable), 0, 0, 0) };
    checked("prctl(PR_SET_DUMPABLE)", result.into()).map(drop)
}
