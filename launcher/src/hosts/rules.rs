//! The rules of a run.

use crate::hosts::name::HostName;
use crate::hosts::rule::{HostPattern, HostRule, Protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where connections may go. What a denial is about is refused whatever else is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRules {
    /// What may be reached.
    pub allow: Vec<HostRule>,
    /// What may not.
    pub deny: Vec<HostRule>,
}

impl HostRules {
    /// Whether a name may be reached at a port.
    pub fn allow_name(&self, name: &HostName, port: u16) -> bool {
        let matches = |rule: &&HostRule| rule.is_about(name) && rule.has_port(port);
        self.allow.iter().any(|rule| matches(&rule)) && !self.deny.iter().any(|rule| matches(&rule))
    }

    /// Whether a name may be reached at all, so that its address may be asked for.
    pub fn know_name(&self, name: &HostName) -> bool {
        self.ports_of(name).next().is_some()
    }

    /// The ports at which a name may be reached.
    pub fn ports_of<'a>(&'a self, name: &'a HostName) -> impl Iterator<Item = u16> + 'a {
        let rules = self.allow.iter().filter(|rule| rule.is_about(name));
        rules.flat_map(|rule| rule.ports.iter().copied()).filter(|port| self.allow_name(name, *port))
    }

    /// Whether a connection that names an address may be made. Addresses that are not public have to be in a range of
    /// a rule.
    pub fn allow_address(&self, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        let by_any = || is_public(address) && self.has_any(port);
        (self.name_address(address, port) || by_any()) && !self.deny_address(address, port)
    }

    /// Whether the address that a name resolved to may be dialled.
    pub fn allow_resolved(&self, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        (is_public(address) || self.name_address(address, port)) && !self.deny_address(address, port)
    }

    /// What may be spoken with a name at a port. Empty: anything. What one rule allows, another does not take away.
    pub fn protocols_of_name(&self, name: &HostName, port: u16) -> Vec<Protocol> {
        self.protocols(port, |rule| rule.is_about(name))
    }

    /// The same of an address that has these names.
    pub fn protocols_of_names(&self, names: &[HostName], port: u16) -> Vec<Protocol> {
        self.protocols(port, |rule| names.iter().any(|name| rule.is_about(name)))
    }

    /// The same of an address that is given instead of a name.
    pub fn protocols_of_address(&self, address: IpAddr, port: u16) -> Vec<Protocol> {
        self.protocols(port, |rule| rule.is_about_address(address))
    }

    fn protocols(&self, port: u16, is_about: impl Fn(&HostRule) -> bool) -> Vec<Protocol> {
        let rules = self.allow.iter().filter(|rule| rule.has_port(port) && is_about(rule));
        let mut protocols: Vec<Protocol> = rules.map(|rule| rule.protocol_at(port)).collect();
        // Log mode lets through what no rule is about.
        if protocols.is_empty() {
            protocols.push(Protocol::usual(port));
        }
        if protocols.contains(&Protocol::Tcp) {
            protocols.clear();
        }
        protocols.sort_unstable();
        protocols.dedup();
        protocols
    }

    /// All ports of rules.
    pub fn ports(&self) -> Vec<u16> {
        let mut ports: Vec<u16> = self.allow.iter().flat_map(|rule| rule.ports.iter().copied()).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// A denial that leaves nothing of a rule.
    pub fn denial_of(&self, rule: &HostRule) -> Option<&HostRule> {
        self.deny.iter().find(|denial| denial.covers(rule))
    }

    fn has_any(&self, port: u16) -> bool {
        self.allow.iter().any(|rule| rule.hosts == HostPattern::Any && rule.has_port(port))
    }

    /// Whether a range of a rule has an address.
    pub fn name_address(&self, address: IpAddr, port: u16) -> bool {
        let is_range = |rule: &&HostRule| matches!(rule.hosts, HostPattern::Range(_));
        let mut ranges = self.allow.iter().filter(is_range);
        ranges.any(|rule| rule.is_about_address(address) && rule.has_port(port))
    }

    fn deny_address(&self, address: IpAddr, port: u16) -> bool {
        self.denial_at(address, port).is_some()
    }

    /// The denial that has an address, or the one of IPv4 that packets to it end up at.
    pub fn denial_at(&self, address: IpAddr, port: u16) -> Option<&HostRule> {
        let embedded = embedded(address).map(IpAddr::V4);
        let is_about = |rule: &HostRule| {
            rule.is_about_address(address) || embedded.is_some_and(|inner| rule.is_about_address(inner))
        };
        self.deny.iter().find(|rule| is_about(rule) && rule.has_port(port))
    }
}

/// The IPv4 address that an IPv6 one leads to: behind a translator (RFC 6052), or by 6to4 (RFC 3056).
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let of = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => of(high, low),
        [0x2002, high, low, ..] => of(high, low),
        _ => None,
    }
}

/// Whether an address is one of the internet's: not of this machine, of a private network, of a link (as those of
/// metadata services are), of several hosts, or of none (the registries of special-purpose addresses, RFC 6890).
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    let special = match (a, b, c) {
        // This network; loopback; private; link-local; private.
        (0 | 10 | 127, ..) | (169, 254, _) | (192, 168, _) => true,
        // Shared by a provider's customers; private; benchmarks, of which the sandbox takes its own addresses.
        (100, 64..=127, _) | (172, 16..=31, _) | (198, 18 | 19, _) => true,
        // Protocol assignments; relays of 6to4; several hosts, reserved, broadcast.
        (192, 0, 0) | (192, 88, 99) | (224..=255, ..) => true,
        // Each virtual machine of Azure has its host there, which gives out keys. No registry has it.
        (168, 63, 129) => d == 16,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded(address.into()) {
        return is_public_v4(inner);
    }
    let [a, b, ..] = address.segments();
    // What is assigned to the internet, but for Teredo (RFC 4380), which has an IPv4 address in another form.
    a & 0xe000 == 0x2000 && (a, b) != (0x2001, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> HostRules {
        HostRules {
            allow: allow.iter().map(|text| HostRule::parse(text).unwrap()).collect(),
            deny: deny.iter().map(|text| HostRule::parse_denial(text).unwrap()).collect(),
        }
    }

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn names_are_reached_at_their_ports() {
        let rules = rules(&["a.example", "*.b.example:80,443", "*:25"], &["x.b.example", "a.example:25"]);
        assert!(rules.allow_name(&name("a.example"), 443) && rules.allow_name(&name("y.b.example"), 80));
        assert!(rules.allow_name(&name("other.example"), 25) && rules.know_name(&name("other.example")));
        for (host, port) in [
            ("a.example", 80),
            ("b.example", 443),
            ("x.b.example", 443),
            ("x.b.example", 25),
            ("a.example", 25),
        ] {
            assert!(!rules.allow_name(&name(host), port), "{host}:{port}");
        }
        assert!(!rules.know_name(&name("x.b.example")));
        assert_eq!(rules.ports(), [25, 80, 443]);
    }

    #[test]
    fn rules_say_what_is_spoken_and_add_up() {
        let rules = rules(
            &["*.a.example:443,22,80", "ssh.a.example:443/tcp", "x.a.example:80/tls", "10.0.0.0/8:8443/tls"],
            &[],
        );
        let of = |host: &str, port| rules.protocols_of_name(&name(host), port);
        assert_eq!(of("b.a.example", 443), [Protocol::Tls]);
        assert_eq!(of("b.a.example", 80), [Protocol::Http]);
        assert_eq!(of("x.a.example", 80), [Protocol::Tls, Protocol::Http]);
        assert!(of("b.a.example", 22).is_empty() && of("ssh.a.example", 443).is_empty());
        assert_eq!(rules.protocols_of_address("10.0.0.1".parse().unwrap(), 8443), [Protocol::Tls]);
        // What no rule is about, as log mode meets it.
        assert_eq!(of("other.example", 443), [Protocol::Tls]);
    }

    #[test]
    fn addresses_are_reached_where_a_range_says_so() {
        let rules = rules(&["a.example", "203.0.113.0/24:22", "10.1.0.0/16:5432", "*:80"], &["203.0.113.9"]);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(rules.allow_address(address("203.0.113.7"), 22));
        assert!(rules.allow_address(address("::ffff:203.0.113.7"), 22));
        assert!(rules.allow_address(address("10.1.2.3"), 5432));
        assert!(rules.allow_address(address("192.0.2.1"), 80));
        for (text, port) in [
            ("203.0.113.7", 443),
            ("203.0.113.9", 22),
            ("10.2.0.0", 5432),
            ("10.1.2.3", 80),
            ("169.254.169.254", 80),
            ("::ffff:169.254.169.254", 80),
        ] {
            assert!(!rules.allow_address(address(text), port), "{text}:{port}");
        }
        // An allowed name that leads to a private address.
        assert!(rules.allow_resolved(address("192.0.2.1"), 443));
        assert!(rules.allow_resolved(address("10.1.2.3"), 5432));
        assert!(!rules.allow_resolved(address("10.1.2.3"), 443));
        assert!(!rules.allow_resolved(address("127.0.0.1"), 443));
    }

    /// A name whose owner wants to reach what is denied may lead there by another kind of address.
    #[test]
    fn a_denied_range_has_its_addresses_in_ipv6_too() {
        let rules = rules(&["*:80", "a.example:80"], &["192.0.2.0/24"]);
        for (text, is_allowed) in [
            ("64:ff9b::192.0.2.1", false),
            ("2002:c000:0201::1", false),
            ("::ffff:192.0.2.1", false),
            ("64:ff9b::198.51.100.1", true),
            ("2002:c633:6401::1", true),
        ] {
            let address = text.parse().unwrap();
            let found = (rules.allow_address(address, 80), rules.allow_resolved(address, 80));
            assert_eq!(found, (is_allowed, is_allowed), "{text}");
        }
    }

    #[test]
    fn special_addresses_are_not_public() {
        for text in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.192",
            "198.18.0.1",
            "198.19.255.255",
            "168.63.129.16",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "fec0::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:1::1",
            "::127.0.0.1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.2.1",
            "2606:4700::1",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_rule_that_is_denied_as_a_whole_is_found() {
        let rules = rules(&["a.example", "*.b.example"], &["*.example", "c.b.example"]);
        assert!(rules.denial_of(&rules.allow[0]).is_some() && rules.denial_of(&rules.allow[1]).is_some());
        let rules = self::rules(&["*.b.example"], &["c.b.example"]);
        assert!(rules.denial_of(&rules.allow[0]).is_none());
    }
}
