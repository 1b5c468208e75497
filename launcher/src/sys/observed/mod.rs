//! Which files a piece of code looks at. A copy of this process runs it under a filter (seccomp(2)) that traps each
//! system call with a path: a handler notes the path down, and makes the call. So no look is missed, whatever library
//! takes it.
//!
//! Any call that is neither trapped nor known to look at no file ends the copy, as does one that would write. Then
//! nothing was observed.

#[cfg(test)]
mod tests;

use crate::sys::{OfCall, SyscallError, checked, descriptor, memory, process, seccomp};
use rustix::mm::{MapFlags, ProtFlags};
use sbx_policy::Arch;
use sbx_policy::bpf::{DATA_ARCH, DATA_NR, Insn, JEQ, LD, RET, data_arg, jump, stmt};
use sbx_policy::bpf::{RET_ALLOW, RET_KILL_PROCESS, RET_TRAP};
use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr, c_int, c_long, c_void};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes for what is noted down.
const ROOM: usize = 1 << 18;

/// A look at a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Look {
    /// The path, which is absolute, as it was written otherwise.
    pub path: PathBuf,
    /// What was asked for.
    pub at: Depth,
}

/// What is asked for about a file; each includes the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Which file it is, and whether it is there.
    Identity,
    /// Its attributes: type, permissions, owner, size, times (inode(7)).
    Attributes,
    /// What is in the file or directory.
    Contents,
}

impl Depth {
    const ALL: [Depth; 3] = [Depth::Identity, Depth::Attributes, Depth::Contents];
}

/// A call with a path.
struct Trapped {
    number: c_long,
    /// Which argument is the path. The one before is a directory, unless it is the first.
    path: usize,
    asks: Asks,
}

/// What a call asks for.
enum Asks {
    Always(Depth),
    /// As the flags in this argument say (open(2)).
    ByFlags(usize),
    /// As the structure says to which this argument points (openat2(2)), whose first field has the flags.
    ByStructure(usize),
    /// As the mask in this argument says (statx(2)).
    ByMask(usize),
}

const fn asks(number: c_long, path: usize) -> Trapped {
    Trapped { number, path, asks: Asks::Always(Depth::Attributes) }
}

const TRAPPED: &[Trapped] = &[
    Trapped { number: libc::SYS_openat, path: 1, asks: Asks::ByFlags(2) },
    Trapped { number: libc::SYS_openat2, path: 1, asks: Asks::ByStructure(2) },
    asks(libc::SYS_newfstatat, 1),
    Trapped { number: libc::SYS_statx, path: 1, asks: Asks::ByMask(3) },
    asks(libc::SYS_faccessat, 1),
    asks(libc::SYS_faccessat2, 1),
    asks(libc::SYS_readlinkat, 1),
    #[cfg(target_arch = "x86_64")]
    Trapped { number: libc::SYS_open, path: 0, asks: Asks::ByFlags(1) },
    #[cfg(target_arch = "x86_64")]
    asks(libc::SYS_stat, 0),
    #[cfg(target_arch = "x86_64")]
    asks(libc::SYS_lstat, 0),
    #[cfg(target_arch = "x86_64")]
    asks(libc::SYS_access, 0),
    #[cfg(target_arch = "x86_64")]
    asks(libc::SYS_readlink, 0),
    asks(libc::SYS_statfs, 0),
];

/// Calls that tell of open files, of this process and of the kernel, and change nothing else.
const PLAIN: &[c_long] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_getdents64,
    libc::SYS_fgetxattr,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getcwd,
    libc::SYS_umask,
    libc::SYS_capget,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_sched_getaffinity,
    libc::SYS_uname,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_futex,
    libc::SYS_socket,
    libc::SYS_getsockopt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_exit_group,
];

/// Stands in an argument that none of the trapped calls has, where the handler makes the call.
static KEY: AtomicU64 = AtomicU64::new(0);
/// What both processes share: how many bytes are used, and what is noted down.
static NOTES: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Whether a look is taken of which the observer is told otherwise.
static ASIDE: AtomicBool = AtomicBool::new(false);

/// Room that a copy of this process shares.
struct Notes(NonNull<u8>);

impl Notes {
    /// The number of used bytes comes first.
    const START: usize = size_of::<u64>();
    /// Before each path: what was asked for, and the length.
    const HEAD: usize = 5;

    fn new() -> Result<Notes, SyscallError> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping, wherever the kernel likes.
        let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), ROOM, access, flags) }.of("mmap")?;
        NonNull::new(start.cast()).map(Notes).ok_or_else(|| SyscallError::last("mmap"))
    }

    /// What the copy has noted down; nothing if there was no room for all.
    fn looks(&self) -> Option<BTreeSet<Look>> {
        // SAFETY: mapped as long as this is there, and the copy that wrote there has ended.
        let all = unsafe { std::slice::from_raw_parts(self.0.as_ptr(), ROOM) };
        let (used, notes) = all.split_first_chunk::<{ Notes::START }>()?;
        let mut rest = notes.get(..usize::try_from(u64::from_ne_bytes(*used)).ok()?)?;
        let mut looks = BTreeSet::new();
        while let Some(([depth, length @ ..], text)) = rest.split_first_chunk::<{ Notes::HEAD }>() {
            let (path, others) = text.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
            let at = *Depth::ALL.get(usize::from(*depth))?;
            looks.insert(Look { path: PathBuf::from(OsStr::from_bytes(path)), at });
            rest = others;
        }
        Some(looks)
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `new` has mapped.
        let _ = unsafe { rustix::mm::munmap(self.0.as_ptr().cast(), ROOM) };
    }
}

/// The looks that `body` takes, in a copy of this process. Nothing if it returns false, makes a call that is not known
/// to leave files as they are, or takes too long.
///
/// For programs with a single thread, as this one is.
pub fn observe(body: impl FnOnce() -> bool, limit: Duration) -> Option<BTreeSet<Look>> {
    let notes = Notes::new().ok()?;
    let copy = process::fork().ok()?;
    if copy == 0 {
        let is_told = process::die_with_parent(libc::SIGKILL).is_ok() && trap(&notes).is_ok() && body();
        process::exit_now(i32::from(!is_told));
    }
    let ends = process::open_pid(copy).is_ok_and(|held| descriptor::readable(held.as_raw_fd(), limit));
    if !ends {
        process::signal(copy, libc::SIGKILL);
    }
    let end = process::wait(Some(copy), true, false).map(|(_, end)| end);
    (end == Some(process::Change::Exited(0))).then(|| notes.looks()).flatten()
}

/// Takes a look of which the observer is told by [`tell`] what was asked for. Nobody has asked for the whole directory.
pub fn aside<T>(look: impl FnOnce() -> T) -> T {
    let before = ASIDE.swap(true, Ordering::Relaxed);
    let found = look();
    ASIDE.store(before, Ordering::Relaxed);
    found
}

/// Tells the observer, if there is one, what was asked for about a name in a directory.
pub fn tell(directory: &Path, name: &[u8], at: Depth) {
    let is_observed = !NOTES.load(Ordering::Relaxed).is_null();
    if is_observed && write_down(at, directory.as_os_str().as_bytes(), name).is_none() {
        process::exit_now(1);
    }
}

/// From here on the calls of this process are trapped.
fn trap(notes: &Notes) -> Result<(), SyscallError> {
    KEY.store(memory::random()? | 1, Ordering::Relaxed);
    NOTES.store(notes.0.as_ptr(), Ordering::Relaxed);
    handle()?;
    rustix::thread::set_no_new_privs(true).of("prctl(PR_SET_NO_NEW_PRIVS)")?;
    seccomp::install(&program(KEY.load(Ordering::Relaxed)))
}

fn handle() -> Result<(), SyscallError> {
    // SAFETY: all zeroes is a valid value: no other signal is blocked.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_trap;
    (action.sa_sigaction, action.sa_flags) = (handler as libc::sighandler_t, libc::SA_SIGINFO);
    // SAFETY: the handler has the signature that SA_SIGINFO asks for.
    let set = unsafe { libc::sigaction(libc::SIGSYS, &raw const action, ptr::null_mut()) };
    checked("sigaction", set).map(drop)
}

/// The filter.
fn program(key: u64) -> Vec<Insn> {
    const UNUSED: u8 = 5;
    let [low, high] = [key as u32, (key >> 32) as u32];
    let mut insns = vec![
        stmt(LD, DATA_ARCH),
        jump(JEQ, Arch::HOST.audit(), 1, 0),
        stmt(RET, RET_KILL_PROCESS),
        stmt(LD, DATA_NR),
    ];
    for number in PLAIN {
        insns.extend([jump(JEQ, *number as u32, 0, 1), stmt(RET, RET_ALLOW)]);
    }
    for (place, Trapped { number, .. }) in TRAPPED.iter().enumerate() {
        // Over the others, and the end of those that are none.
        let left = (TRAPPED.len() - 1 - place + 1) as u8;
        insns.push(jump(JEQ, *number as u32, left, 0));
    }
    insns.extend([
        stmt(RET, RET_KILL_PROCESS),
        stmt(LD, data_arg(UNUSED)),
        jump(JEQ, low, 0, 3),
        stmt(LD, data_arg(UNUSED) + 4),
        jump(JEQ, high, 0, 1),
        stmt(RET, RET_ALLOW),
        stmt(RET, RET_TRAP),
    ]);
    insns
}

/// The registers of the interrupted call.
struct Registers<'c>(&'c mut libc::ucontext_t);

#[cfg(target_arch = "x86_64")]
impl Registers<'_> {
    fn call(&self) -> (c_long, [usize; 5]) {
        use libc::{REG_R8, REG_R10, REG_RAX, REG_RDI, REG_RDX, REG_RSI};
        let registers = &self.0.uc_mcontext.gregs;
        let arguments = [REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8];
        (registers[REG_RAX as usize] as c_long, arguments.map(|number| registers[number as usize] as usize))
    }

    fn answer(&mut self, result: c_long) {
        self.0.uc_mcontext.gregs[libc::REG_RAX as usize] = result as _;
    }
}

#[cfg(target_arch = "aarch64")]
impl Registers<'_> {
    fn call(&self) -> (c_long, [usize; 5]) {
        let registers = &self.0.uc_mcontext.regs;
        (registers[8] as c_long, [0, 1, 2, 3, 4].map(|number: usize| registers[number] as usize))
    }

    fn answer(&mut self, result: c_long) {
        self.0.uc_mcontext.regs[0] = result as _;
    }
}

/// Makes a call that would be trapped. Returns what the kernel returns.
fn make(number: c_long, [a, b, c, d, e]: [usize; 5]) -> c_long {
    // SAFETY: who made the call answers for its arguments.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, KEY.load(Ordering::Relaxed)) };
    // SAFETY: the address is valid in this thread.
    if result == -1 { -c_long::from(unsafe { *libc::__errno_location() }) } else { result }
}

/// Notes a call down, and makes it.
extern "C" fn on_trap(_signal: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands the handler of such a signal a context of this type.
    let mut registers = Registers(unsafe { &mut *context.cast() });
    // SAFETY: the address is valid in this thread.
    let errno = unsafe { *libc::__errno_location() };
    let (number, arguments) = registers.call();
    if let Some(trapped) = TRAPPED.iter().find(|trapped| trapped.number == number)
        && note(trapped, &arguments).is_none()
    {
        process::exit_now(1);
    }
    let result = make(number, arguments);
    // The kernel tells nobody when a file system becomes writable.
    if result == -c_long::from(libc::EROFS) {
        process::exit_now(1);
    }
    registers.answer(result);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// What a call asks for. Nothing if it would write a file or make one.
fn depth(asks: &Asks, arguments: &[usize; 5]) -> Option<Depth> {
    const WRITES: c_int = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    const IDENTITY: usize = (libc::STATX_INO | libc::STATX_BTIME) as usize;
    let flags = match asks {
        Asks::Always(depth) => return Some(*depth),
        Asks::ByMask(place) => {
            let is_more = arguments.get(*place)? & !IDENTITY != 0;
            return Some(if is_more { Depth::Attributes } else { Depth::Identity });
        }
        Asks::ByFlags(place) => *arguments.get(*place)? as c_int,
        // SAFETY: the structure of openat2(2), which begins with 64 bits of flags.
        Asks::ByStructure(place) => unsafe { *(*arguments.get(*place)? as *const u64) as c_int },
    };
    match flags & libc::O_PATH {
        0 => (flags & WRITES == 0).then_some(Depth::Contents),
        // The descriptor tells them (fstat(2)).
        _ => Some(Depth::Attributes),
    }
}

/// Nothing is noted down where only a descriptor is meant. `None` if it cannot be.
fn note(Trapped { path, asks, .. }: &Trapped, arguments: &[usize; 5]) -> Option<()> {
    let address = *arguments.get(*path)? as *const std::ffi::c_char;
    if address.is_null() {
        return Some(());
    }
    // SAFETY: the caller hands the kernel a string, which ends.
    let name = unsafe { CStr::from_ptr(address) }.to_bytes();
    let at = depth(asks, arguments)?;
    let at = if ASIDE.load(Ordering::Relaxed) { at.min(Depth::Attributes) } else { at };
    let mut buffer = [0; libc::PATH_MAX as usize];
    let above: &[u8] = match path.checked_sub(1).and_then(|place| arguments.get(place)) {
        _ if name.starts_with(b"/") => b"",
        _ if name.is_empty() => return Some(()),
        Some(directory) if *directory as c_int != libc::AT_FDCWD => named(*directory as c_int, &mut buffer)?,
        _ => here(&mut buffer)?,
    };
    write_down(at, above, name)
}

/// The path of an open directory.
fn named(directory: c_int, buffer: &mut [u8]) -> Option<&[u8]> {
    use std::io::Write;
    let mut link = [0; 32];
    let room = link.len();
    let mut rest = &mut link[..room - 1];
    write!(rest, "/proc/self/fd/{directory}").ok()?;
    let at = libc::AT_FDCWD as usize;
    let (start, room) = (link.as_ptr().addr(), buffer.len());
    let length = make(libc::SYS_readlinkat, [at, start, buffer.as_mut_ptr().addr(), room, 0]);
    buffer.get(..usize::try_from(length).ok().filter(|length| *length < room)?)
}

/// The working directory.
fn here(buffer: &mut [u8]) -> Option<&[u8]> {
    let length = make(libc::SYS_getcwd, [buffer.as_mut_ptr().addr(), buffer.len(), 0, 0, 0]);
    buffer.get(..usize::try_from(length).ok()?.checked_sub(1)?)
}

fn write_down(at: Depth, above: &[u8], name: &[u8]) -> Option<()> {
    let separator: &[u8] = if name.starts_with(b"/") { b"" } else { b"/" };
    let length = u32::try_from(above.len() + separator.len() + name.len()).ok()?.to_ne_bytes();
    // SAFETY: `observe` has mapped that much, and nothing else in this process uses it.
    let all = unsafe { std::slice::from_raw_parts_mut(NOTES.load(Ordering::Relaxed), ROOM) };
    let (used, notes) = all.split_first_chunk_mut::<{ Notes::START }>()?;
    let mut end = usize::try_from(u64::from_ne_bytes(*used)).ok()?;
    for part in [&[at as u8], &length[..], above, separator, name] {
        notes.get_mut(end..end + part.len())?.copy_from_slice(part);
        end += part.len();
    }
    *used = (end as u64).to_ne_bytes();
    Some(())
}
