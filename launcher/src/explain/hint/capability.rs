//! Calls that take a capability. A run starts with none, so it would be of no use to allow them.

use sbx_policy::interpret::Data;

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
        | "kexec_file_load" | "kexec_load" | "settimeofday" | "swapoff" | "swapon" | "vhangup" => {
            Some(Wanted::OfTheMachine)
        }
        "mknod" => device(data.args[1]),
        "mknodat" => device(data.args[2]),
        "mount" | "move_mount" | "pivot_root" | "umount2" => Some(Wanted::ForMounts),
        "chroot" | "fsmount" | "fsopen" | "mount_setattr" | "reboot" | "setdomainname" | "sethostname" => {
            Some(Wanted::InNamespace)
        }
        "socket" => socket(data.args[0] as i32, data.args[1] as i32),
        _ => None,
    }
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
