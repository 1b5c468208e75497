//! Calls that take a capability. A run starts with none, so it would be of no use to allow them.

use sbx_policy::interpret::Data;
use std::path::Path;

/// Where the capability has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// In the first user namespace.
    OfTheMachine,
    /// In the user namespace that the mounts belong to.
    ForMounts,
    /// In the user namespace that other things belong to.
    InNamespace,
}

/// The capability that a call takes with these arguments, if it always takes one.
pub fn wanted(name: &str, data: &Data) -> Option<Wanted> {
    match name {
        "acct" | "clock_settime" | "delete_module" | "finit_module" | "init_module" | "iopl"
        | "kexec_file_load" | "kexec_load" | "open_by_handle_at" | "quotactl" | "settimeofday"
        | "swapoff" | "swapon" | "vhangup" => Some(Wanted::OfTheMachine),
        _ if is_closed(name, data) => Some(Wanted::OfTheMachine),
        "mknod" => device(data.args[1]),
        "mknodat" => device(data.args[2]),
        "mount" | "move_mount" | "pivot_root" | "umount2" => Some(Wanted::ForMounts),
        "chroot" | "fsmount" | "fsopen" | "mount_setattr" | "reboot" | "setdomainname" | "sethostname" => {
            Some(Wanted::InNamespace)
        }
        "setns" | "setgroups" => Some(Wanted::InNamespace),
        "unshare" => namespaces(data.args[0], TIME),
        "clone" => namespaces(data.args[0], 0),
        "socket" => socket(data.args[0] as i32, data.args[1] as i32),
        _ => None,
    }
}

/// Whether this machine keeps a call to administrators (sysctl(8), Documentation/admin-guide/sysctl). Where nobody can
/// tell, it does not.
fn is_closed(name: &str, data: &Data) -> bool {
    const READ_ALL: u64 = 3;
    const SIZE_BUFFER: u64 = 10;
    const UFFD_USER_MODE_ONLY: u64 = 1;
    let at_least = |file: &str, closed: i32| {
        let text = std::fs::read_to_string(Path::new("/proc/sys").join(file));
        text.ok().and_then(|text| text.trim().parse::<i32>().ok()).is_some_and(|value| value >= closed)
    };
    match name {
        "bpf" => at_least("kernel/unprivileged_bpf_disabled", 1),
        "io_uring_setup" => at_least("kernel/io_uring_disabled", 1),
        "perf_event_open" => at_least("kernel/perf_event_paranoid", 3),
        "syslog" if matches!(data.args[0], READ_ALL | SIZE_BUFFER) => at_least("kernel/dmesg_restrict", 1),
        "syslog" => true,
        "userfaultfd" => {
            data.args[0] & UFFD_USER_MODE_ONLY == 0 && !at_least("vm/unprivileged_userfaultfd", 1)
        }
        _ => false,
    }
}

/// CLONE_NEWTIME, which clone(2) takes for a part of the signal.
const TIME: u64 = 0x80;

/// Namespaces; a user namespace takes no capability, and gives those for the others.
fn namespaces(flags: u64, more: u64) -> Option<Wanted> {
    const OTHERS: u64 = 0x6e02_0000;
    const USER: u64 = 0x1000_0000;
    (flags & (OTHERS | more) != 0 && flags & USER == 0).then_some(Wanted::InNamespace)
}

/// Devices; others are files like any.
fn device(mode: u64) -> Option<Wanted> {
    matches!(mode as u32 & libc::S_IFMT, libc::S_IFBLK | libc::S_IFCHR).then_some(Wanted::OfTheMachine)
}

fn socket(family: i32, kind: i32) -> Option<Wanted> {
    const TYPE: i32 = 0xf;
    let raw = match family {
        libc::AF_INET | libc::AF_INET6 => kind & TYPE == libc::SOCK_RAW,
        libc::AF_PACKET => true,
        _ => false,
    };
    raw.then_some(Wanted::InNamespace)
}
