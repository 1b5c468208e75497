//! What a refused call is about.

use crate::explain::decode::{Address, Decoded};
use crate::explain::hint::matches;
use crate::plan::notified;
use sbx_policy::calls::{Call, Group};
use sbx_policy::interpret::Data;
use sbx_policy::restrictions;

/// `CLONE_NEW*`, as unshare(2) takes them; bit 7 (`CLONE_NEWTIME`) is part of the signal for clone(2).
const NAMESPACES: u64 = 0x7e02_0000;
const TIME_NAMESPACE: u64 = 0x80;
const THREAD: u64 = 0x0001_0000;

/// What a call is about, as far as it matters for the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// New namespaces, or entering others.
    Namespaces,
    /// Mounts and the root directory.
    Mounts,
    /// Programs and processes.
    Processes,
    /// Threads.
    Threads,
    /// What only administrators and debuggers need.
    Kernel,
    /// A UNIX socket that has a path.
    UnixConnection,
    /// A UNIX socket that has a name without a file.
    UnixAbstract,
    /// Making UNIX sockets.
    UnixSocket,
    /// IPv4 and IPv6.
    Internet,
    /// Sockets for ICMP and for whole packets, as ping makes them.
    Packets,
    /// Netlink.
    Netlink,
    /// Sockets of other families.
    OtherFamily,
    /// Sockets, of which this call does not tell the family.
    Socket,
    /// The set-user-ID and set-group-ID bits of what there is.
    SetId,
    /// What acts on a terminal beyond the run, such as typing into it.
    Terminal,
    /// Signals that the kernel sends when something happens to a descriptor (fcntl(2)).
    DescriptorSignals,
    /// Anything else.
    Other,
}

/// What this call is about.
pub fn of(call: Call, data: &Data, decoded: &Decoded) -> Topic {
    let among = |group: &str| Group::named(group.as_bytes()).is_some_and(|group| group.contains(call));
    match call.name() {
        "setns" => Topic::Namespaces,
        "unshare" if data.args[0] & (NAMESPACES | TIME_NAMESPACE) != 0 => Topic::Namespaces,
        "clone" if data.args[0] & NAMESPACES != 0 => Topic::Namespaces,
        "clone" if data.args[0] & THREAD != 0 => Topic::Threads,
        // Its flags lie in the caller's memory; the decoder has named them.
        "clone3" if decoded.text.contains("CLONE_NEW") => Topic::Namespaces,
        "clone3" if decoded.text.contains("CLONE_THREAD") => Topic::Threads,
        "execve" | "execveat" | "fork" | "vfork" | "clone" | "clone3" => Topic::Processes,
        "socket" if is_for_packets(&data.args) => Topic::Packets,
        "socket" | "socketpair" => family(i32::try_from(data.args[0] & 0xffff_ffff).unwrap_or(-1)),
        "fcntl" | "ioctl" if has_signals_sent(call.name(), &data.args) => Topic::DescriptorSignals,
        "ioctl" if acts_on_terminal(call, data) => Topic::Terminal,
        name if notified::asks_for_id(name, &data.args) => Topic::SetId,
        _ if among("@network-io") => addressed(decoded.address.as_ref()),
        _ if among("@mount") => Topic::Mounts,
        _ if ["@debug", "@module", "@reboot", "@swap", "@clock", "@raw-io", "@keyring"]
            .into_iter()
            .any(among) =>
        {
            Topic::Kernel
        }
        _ => Topic::Other,
    }
}

/// Whether a call has a descriptor send signals. The kernel takes the command as an unsigned int.
fn has_signals_sent(name: &str, args: &[u64; 6]) -> bool {
    const F_SETFL: u32 = 4;
    /// F_SETOWN, F_SETSIG, F_SETOWN_EX, F_NOTIFY.
    const OF_FCNTL: [u32; 4] = [8, 10, 15, 1026];
    /// FIOASYNC, FIOSETOWN, SIOCSPGRP.
    const OF_IOCTL: [u32; 3] = [0x5452, 0x8901, 0x8902];
    let command = args[1] as u32;
    match name {
        "fcntl" => OF_FCNTL.contains(&command) || command == F_SETFL && args[2] & libc::O_ASYNC as u64 != 0,
        _ => OF_IOCTL.contains(&command),
    }
}

/// Whether a call is of those that the restriction leaves out which is made for that.
fn acts_on_terminal(call: Call, data: &Data) -> bool {
    const SAFE: &str = "tty-safe";
    let mut safe = restrictions::of_call(call).filter(|place| restrictions::name(*place) == SAFE);
    safe.any(|place| !matches(place, data))
}

/// Whether a socket of IPv4 or IPv6 is for ICMP or for whole packets. The type has flags beside it.
fn is_for_packets(args: &[u64; 6]) -> bool {
    let [family, protocol] = [args[0] as i32, args[2] as i32];
    let is_icmp = matches!(
        (family, protocol),
        (libc::AF_INET, libc::IPPROTO_ICMP) | (libc::AF_INET6, libc::IPPROTO_ICMPV6)
    );
    matches!(family, libc::AF_INET | libc::AF_INET6) && (is_raw(args) || is_icmp)
}

/// Whether it is for whole packets. That takes a capability (raw(7)).
pub fn is_raw(args: &[u64; 6]) -> bool {
    const TYPE: i32 = 0xf;
    args[1] as i32 & TYPE == libc::SOCK_RAW
}

fn family(family: i32) -> Topic {
    match family {
        libc::AF_UNIX => Topic::UnixSocket,
        libc::AF_INET | libc::AF_INET6 => Topic::Internet,
        libc::AF_NETLINK => Topic::Netlink,
        _ => Topic::OtherFamily,
    }
}

fn addressed(address: Option<&Address>) -> Topic {
    match address {
        Some(Address::UnixPath(_)) => Topic::UnixConnection,
        Some(Address::UnixAbstract(_)) => Topic::UnixAbstract,
        Some(Address::Inet { .. }) => Topic::Internet,
        Some(Address::Netlink { .. }) => Topic::Netlink,
        Some(Address::UnixUnnamed | Address::Other { .. }) | None => Topic::Socket,
    }
}
