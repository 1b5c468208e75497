//! Seccomp filters as OCI's runtime specification and Docker write them.

mod cubes;
mod draft;
mod names;
mod read;
mod write;

use read::Dialect;
pub use write::{Asked, Extent, is_covered, of_first, write};

use crate::profile::error::{Fault, Place, ProfileCause};
use crate::profile::foreign::languages::Exported;
use crate::profile::foreign::meaning::Meaning;
use crate::profile::foreign::{Losses, rest};
use crate::profile::json::{self, Node};
use crate::text::json_document;

/// Reads a document.
pub(super) fn read(text: &[u8], losses: &mut Losses) -> Result<Meaning, ProfileCause> {
    Ok(read::read(json::parse(text)?, &Place::Top, Dialect::Oci, losses)?)
}

/// Reads a document of Docker's.
pub(super) fn read_docker(text: &[u8], losses: &mut Losses) -> Result<Meaning, ProfileCause> {
    Ok(read::read(json::parse(text)?, &Place::Top, Dialect::Docker, losses)?)
}

/// Reads the filter in a resource of the Security Profiles Operator.
pub(super) fn filter(node: Node, place: &Place, losses: &mut Losses) -> Result<Meaning, Fault> {
    read::read(node, place, Dialect::Spo, losses)
}

/// Writes a document.
pub(super) fn export(exported: &Exported<'_>, losses: &mut Losses) -> Vec<u8> {
    rest::lose(exported.profile, &[], rest::CALLS_ONLY, losses);
    json_document(&write(exported.calls, exported.default, losses)).into_bytes()
}

/// What a rule does. The words that mean the same to a process are one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Allow,
    Log,
    Errno(u16),
    KillProcess,
    /// It has no counterpart in a profile: its word.
    Other(&'static str),
}

const ACTIONS: [(&str, Action); 9] = [
    ("SCMP_ACT_ALLOW", Action::Allow),
    ("SCMP_ACT_LOG", Action::Log),
    ("SCMP_ACT_ERRNO", Action::Errno(sbx_policy::errno::EPERM)),
    ("SCMP_ACT_KILL_PROCESS", Action::KillProcess),
    ("SCMP_ACT_KILL", Action::Other("SCMP_ACT_KILL")),
    ("SCMP_ACT_KILL_THREAD", Action::Other("SCMP_ACT_KILL_THREAD")),
    ("SCMP_ACT_TRAP", Action::Other("SCMP_ACT_TRAP")),
    ("SCMP_ACT_TRACE", Action::Other("SCMP_ACT_TRACE")),
    ("SCMP_ACT_NOTIFY", Action::Other("SCMP_ACT_NOTIFY")),
];

/// Calls that x86_64 and aarch64 do not have. Lists name them for 32-bit x86 and Arm, MIPS, POWER, RISC-V and s390.
const ELSEWHERE: &str = "\
    _llseek _newselect arm_fadvise64_64 arm_sync_file_range bdflush break breakpoint cachectl cacheflush \
    chown32 clock_adjtime64 clock_getres_time64 clock_gettime64 clock_nanosleep_time64 clock_settime64 \
    fadvise64_64 fchown32 fcntl64 fstat64 fstatat64 fstatfs64 ftime ftruncate64 futex_time64 get_tls \
    getegid32 geteuid32 getgid32 getgroups32 getresgid32 getresuid32 getuid32 gtty idle \
    io_pgetevents_time64 ipc lchown32 lock lstat64 mmap2 mpx mq_timedreceive_time64 mq_timedsend_time64 \
    multiplexer nice oldfstat oldlstat oldolduname oldstat olduname pciconfig_iobase pciconfig_read \
    pciconfig_write ppoll_time64 prof profil pselect6_time64 readdir recv recvmmsg_time64 \
    riscv_flush_icache riscv_hwprobe rt_sigtimedwait_time64 rtas s390_guarded_storage s390_pci_mmio_read \
    s390_pci_mmio_write s390_runtime_instr s390_sthyi sched_rr_get_interval_time64 semtimedop_time64 \
    send sendfile64 set_tls setfsgid32 setfsuid32 setgid32 setgroups32 setregid32 setresgid32 \
    setresuid32 setreuid32 setuid32 sgetmask sigaction signal sigpending sigprocmask sigreturn \
    sigsuspend socketcall spu_create spu_run ssetmask stat64 statfs64 stime stty subpage_prot \
    swapcontext switch_endian sync_file_range2 sys_debug_setcontext syscall sysmips timer_gettime64 \
    timer_settime64 timerfd timerfd_gettime64 timerfd_settime64 truncate64 ugetrlimit ulimit umount \
    usr26 usr32 utimensat_time64 vm86 vm86old waitpid";

/// Whether a call exists on some architecture that a run cannot have.
pub(super) fn is_elsewhere(name: &str) -> bool {
    ELSEWHERE.split_ascii_whitespace().any(|known| known == name)
}
