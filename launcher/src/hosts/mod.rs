//! Hosts in rules: names, addresses and ranges, with TCP ports.
//!
//! One parser reads names wherever they come from: a rule, a question of DNS, the server name of TLS, the head of an
//! HTTP request. So none of them can mean another host to the rule than to whoever connects.

mod name;
mod range;
mod rule;
mod rules;

pub use name::{HostName, NameError};
pub use range::Range;
pub use rule::{DEFAULT_PORT, HostPattern, HostRule, Protocol, RuleError};
pub use rules::{HostRules, is_public};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The port of name servers.
pub const DNS_PORT: u16 = 53;

/// Where a connection to an address leads (ip(7)).
pub fn reached(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// The addresses of which `--host-port` brings a port inside. Others of loopback may have other servers.
pub const HOST_PORT_AT: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// Whether `--host-port` is about a port of this address.
pub fn is_host_port_at(ip: IpAddr) -> bool {
    HOST_PORT_AT.contains(&reached(ip))
}
