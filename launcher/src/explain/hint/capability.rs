//! Calls that take a capability. A run starts with none, so it would be of no use to allow them.

use crate::explain::decode::Memory;
use crate::explain::hint::{Reason, place};
use crate::explain::unprivileged::Closed;
use crate::sys::privilege::CapabilitySet as Set;
use crate::sys::setting;
use sbx_policy::interpret::Data;

/// What a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// One of these is enough.
    pub any_of: Set,
    /// Where it has to be held.
    pub whose: Whose,
}

/// Where a capability has to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// In the first user namespace.
    Machine,
    /// In the user namespace that the mounts belong to.
    Mounts,
    /// In the user namespace that other things belong to.
    Namespace,
}

/// Who has none of the capabilities that a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// The command. Its user has one outside.
    Inside,
    /// The user has none outside either.
    OutsideToo,
}

impl Lacking {
    /// The end of the sentence.
    pub fn who(self) -> &'static str {
        match self {
            Lacking::Inside => "the command has none",
            Lacking::OutsideToo => "this user has none, so it fails outside as well",
        }
    }
}

/// The capability that a call takes with these arguments, if it always takes one.
pub fn wanted(name: &str, data: &Data) -> Option<Wanted> {
    let machine = |any_of| Some(Wanted { any_of, whose: Whose::Machine });
    let namespace = |any_of| Some(Wanted { any_of, whose: Whose::Namespace });
    match name {
        "acct" => machine(Set::SYS_PACCT),
        "clock_settime" | "settimeofday" => machine(Set::SYS_TIME),
        "delete_module" | "finit_module" | "init_module" => machine(Set::SYS_MODULE),
        "iopl" => machine(Set::SYS_RAWIO),
        "fanotify_init" if data.args[0] & FAN_REPORT_FID == 0 => machine(Set::SYS_ADMIN),
        "kexec_file_load" | "kexec_load" => machine(Set::SYS_BOOT),
        "open_by_handle_at" => machine(Set::DAC_READ_SEARCH),
        "quotactl" | "swapoff" | "swapon" => machine(Set::SYS_ADMIN),
        "vhangup" => machine(Set::SYS_TTY_CONFIG),
        "mknod" if is_device(data.args[1]) => machine(Set::MKNOD),
        "mknodat" if is_device(data.args[2]) => machine(Set::MKNOD),
        "mount" | "move_mount" | "pivot_root" | "umount2" => {
            Some(Wanted { any_of: Set::SYS_ADMIN, whose: Whose::Mounts })
        }
        "chroot" => namespace(Set::SYS_CHROOT),
        "reboot" => namespace(Set::SYS_BOOT),
        "setgroups" => namespace(Set::SETGID),
        "fsmount" | "fsopen" | "mount_setattr" | "setdomainname" | "sethostname" | "setns" => {
            namespace(Set::SYS_ADMIN)
        }
        "unshare" if makes_namespaces(data.args[0], TIME) => namespace(Set::SYS_ADMIN),
        "clone" if makes_namespaces(data.args[0], 0) => namespace(Set::SYS_ADMIN),
        "socket" if is_raw(data.args[0] as i32, data.args[1] as i32) => namespace(Set::NET_RAW),
        _ => machine(closed(name, data)?),
    }
}

/// What there is to know of performance events that are let through (perf_event_open(2)). An event of the kernel takes
/// a capability. Its attributes are in memory, and perf(1) tries again without the kernel where it is refused that.
pub fn note_of_events(name: &str) -> Option<&'static str> {
    let is_closed = name == "perf_event_open" && at_least("kernel/perf_event_paranoid", 2);
    is_closed.then_some("for events of the program's own code alone")
}

/// Memory that nobody can read.
pub struct Nowhere;

impl Memory for Nowhere {
    fn read(&self, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

/// Whether a setting of the kernel has this value or a higher one. Where nobody can tell, it has not.
fn at_least(name: &str, closed: i64) -> bool {
    setting::number(name).is_some_and(|value| value >= closed)
}

/// What opens a call that this machine keeps to administrators (sysctl(8), Documentation/admin-guide/sysctl). Where
/// nobody can tell, it does not.
fn closed(name: &str, data: &Data) -> Option<Set> {
    const READ_ALL: u64 = 3;
    const SIZE_BUFFER: u64 = 10;
    const UFFD_USER_MODE_ONLY: u64 = 1;
    let (is_closed, opens) = match name {
        "bpf" => (at_least("kernel/unprivileged_bpf_disabled", 1), Set::BPF),
        "io_uring_setup" => (at_least("kernel/io_uring_disabled", 1), Set::SYS_ADMIN),
        "perf_event_open" => (at_least("kernel/perf_event_paranoid", 3), Set::PERFMON),
        "syslog" if matches!(data.args[0], READ_ALL | SIZE_BUFFER) => {
            (at_least("kernel/dmesg_restrict", 1), Set::SYSLOG)
        }
        "syslog" => (true, Set::SYSLOG),
        "userfaultfd" => {
            let is_for_all = at_least("vm/unprivileged_userfaultfd", 1);
            (data.args[0] & UFFD_USER_MODE_ONLY == 0 && !is_for_all, Set::SYS_PTRACE)
        }
        _ => return None,
    };
    is_closed.then_some(opens | Set::SYS_ADMIN)
}

/// That a call takes a capability which no rule refuses and no flag gives.
pub fn reason(closed: &Closed) -> Reason {
    const NONE: &str = "and the command has none of its user's";
    let names = || {
        let names: Vec<String> = closed.any_of.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
        names.join(" or ")
    };
    Reason::always(&match &closed.path {
        Some(path) => format!("permissions close {} to this user, {NONE} capabilities", place::quoted(path)),
        None => format!("it takes a capability ({}), {NONE}", names()),
    })
}

/// Whether it is the kernel's log, where this machine keeps that to administrators, whatever its permissions are.
pub fn is_kept_log(path: &[u8]) -> bool {
    path == b"/dev/kmsg" && at_least("kernel/dmesg_restrict", 1)
}

/// Watches that name files by handles: those are for every user.
const FAN_REPORT_FID: u64 = 0x200;

/// CLONE_NEWTIME, which clone(2) takes for a part of the signal.
const TIME: u64 = 0x80;

/// Whether namespaces are made. A user namespace takes no capability, and gives those for the others.
fn makes_namespaces(flags: u64, more: u64) -> bool {
    const OTHERS: u64 = 0x6e02_0000;
    const USER: u64 = 0x1000_0000;
    flags & (OTHERS | more) != 0 && flags & USER == 0
}

/// Whether a mode is that of a device; others are files like any.
fn is_device(mode: u64) -> bool {
    matches!(mode as u32 & libc::S_IFMT, libc::S_IFBLK | libc::S_IFCHR)
}

fn is_raw(family: i32, kind: i32) -> bool {
    const TYPE: i32 = 0xf;
    match family {
        libc::AF_INET | libc::AF_INET6 => kind & TYPE == libc::SOCK_RAW,
        libc::AF_PACKET => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_the_users_own_code_take_no_capability() {
        let data = Data { nr: 0, arch: 0, args: [0; 6] };
        let [own_code, nobodys] = [2, 3].map(|level| at_least("kernel/perf_event_paranoid", level));
        assert_eq!(note_of_events("perf_event_open").is_some(), own_code);
        assert_eq!(wanted("perf_event_open", &data).is_some(), nobodys);
        assert_eq!(note_of_events("bpf"), None);
    }
}
