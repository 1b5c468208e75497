//! Reasons and hints about hosts that rules name, and others.

use crate::explain::hint::{Explainer, Hint, Reason};
use crate::hosts::{DNS_PORT, HostName, HostRule, is_host_port_at, reached};
use crate::plan::network;
use crate::text::host_name;
use std::net::IpAddr;

/// A host outside, as a connection names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name that its address stands for.
    pub name: Option<HostName>,
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

impl Host {
    /// The name, or the address.
    pub fn shown(&self) -> String {
        self.name.as_ref().map_or_else(|| self.address.to_string(), HostName::to_string)
    }
}

/// The host of a service (`_https._tcp.example.org`, RFC 2782): connections are made to that.
fn without_service(name: &str) -> &str {
    let mut host = name;
    while let Some((_, rest)) = host.split_once('.').filter(|(first, _)| first.starts_with('_')) {
        host = rest;
    }
    host
}

/// A host before a port, as rules write it.
pub fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_string() }
}

/// Where a connection out of a network of the run's own was to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside<'a> {
    /// To a server of this machine, on a loopback that is not the run's.
    ThisMachine,
    /// To an address.
    Address(IpAddr),
    /// To a host by its name.
    Name(&'a HostName),
    /// Nobody knows.
    Unknown,
}

impl Explainer {
    /// Why a connection from a network of the run's own comes to nothing, and what would allow it.
    pub fn connection_reason(&self, to: Outside<'_>, port: u16, is_tcp: bool) -> Reason {
        let what = match (port, to) {
            (DNS_PORT, _) => "has a network of its own, and looks up only the hosts that --connect names",
            (_, Outside::ThisMachine) => {
                "has a loopback of its own, and the server on this port is the host's"
            }
            _ => "has a network of its own, and nothing else is in it",
        };
        Reason::of(self.rule(what, "network.mode"), self.connecting(to, port, is_tcp))
    }

    /// The flag that lets a connection out, if one does. Rules about hosts are about TCP.
    pub fn connecting(&self, to: Outside<'_>, port: u16, is_tcp: bool) -> Option<Hint> {
        // What is denied holds in no open network.
        let whole = || self.denied_hosts.deny.is_empty().then(|| Hint::of(["--net", "host"]));
        let to_host = |host: &str| {
            let rule = HostRule::parse(&format!("{host}:{port}")).ok();
            rule.map_or_else(whole, |rule| self.to_connect(&rule))
        };
        match to {
            _ if !is_tcp && port == DNS_PORT => whole()
                .map(|hint| hint.noting(Some("or one host alone: --connect HOST; 'sbx learn' finds which"))),
            _ if !is_tcp => whole(),
            Outside::ThisMachine => Some(Hint::of(["--host-port", &port.to_string()])),
            Outside::Address(address) => to_host(&bracketed(&address.to_canonical().to_string())),
            Outside::Name(name) => to_host(name.as_str()),
            Outside::Unknown => whole(),
        }
    }

    /// The flag that adds a rule, unless a run would refuse that.
    fn to_connect(&self, rule: &HostRule) -> Option<Hint> {
        let applies = network::applies(rule, &self.denied_hosts).is_ok();
        applies.then(|| Hint::of(["--connect", &rule.to_string()]))
    }

    /// Why a connection to a host is refused that no rule names.
    pub fn host_reason(&self, host: &Host) -> Reason {
        let shown = host.shown();
        let what = match &host.name {
            Some(_) => format!("does not reach {shown}:{}", host.port),
            None => format!("does not reach {shown}"),
        };
        if host.name.is_none()
            && let Some(denial) = self.denied_hosts.denial_at(host.address, host.port)
        {
            return self.denied_by(denial);
        }
        if host.name.is_none() && reached(host.address).is_loopback() {
            let hint = self.connecting(Outside::ThisMachine, host.port, true);
            let hint = hint.filter(|_| is_host_port_at(host.address));
            return Reason::of(self.rule(&what, "network.connect"), hint);
        }
        self.host_rule(&what, Some(format!("{}:{}", bracketed(&shown), host.port)))
    }

    /// Why a question about a name is refused. Nobody knows yet which port is meant.
    pub fn host_name_reason(&self, name: &str) -> Reason {
        // The command chooses the text. What is no name could be read as a rule about more than one host.
        let host = HostName::from_ascii(name.as_bytes()).ok();
        let what = format!("does not reach {}", host_name(name));
        let reason = self.host_rule(&what, host.map(|host| without_service(host.as_str()).to_string()));
        let hint = reason.hint.map(|hint| hint.noting(Some("for another port, name it: NAME:PORT")));
        Reason { hint, ..reason }
    }

    /// Why a connection is not let through that says another host than the one it goes to. One that says none may be
    /// of another protocol, which a rule can allow. One to an address may say any name that a rule has.
    pub fn mismatch_reason(&self, protocol: &str, host: &str, port: u16, said: Option<&str>) -> Reason {
        let shown = host_name(host);
        let what = format!("reaches {shown}, and what is said in {protocol} has to name the same host");
        let is_address = host.parse::<IpAddr>().is_ok();
        let rule = match said {
            None => Some(format!("{}:{port}/tcp", bracketed(host))),
            Some(said) if is_address && HostName::from_ascii(said.as_bytes()).is_ok() => {
                Some(format!("{said}:{port}"))
            }
            Some(_) => None,
        };
        let rule = rule.and_then(|rule| HostRule::parse(&rule).ok());
        let hint = rule.and_then(|rule| self.to_connect(&rule));
        Reason::of(self.rule(&what, "network.connect"), hint)
    }

    /// Why a connection to a name of a rule is not made: its addresses are none of other machines of the internet.
    pub fn address_of_name_reason(&self, host: &str, port: u16) -> Reason {
        let shown = host_name(host);
        let denied = if self.denied_hosts.deny.is_empty() { "" } else { " that is not denied" };
        let what = format!(
            "reaches {shown} only at public addresses of other machines, and it has none{denied}; a rule with its \
             address allows it, such as --connect 10.0.0.5:{port} (--host-port {port} for the loopback of this machine)"
        );
        Reason::of(self.rule(&what, "network.connect"), None)
    }

    fn denied_by(&self, denial: &HostRule) -> Reason {
        Reason::of(self.rule(&format!("denies '{denial}'"), "network.deny"), None)
    }

    fn host_rule(&self, what: &str, rule: Option<String>) -> Reason {
        let rule = rule.and_then(|rule| HostRule::parse(&rule).ok());
        if let Some(denial) = rule.as_ref().and_then(|rule| self.denied_hosts.denial_of(rule)) {
            return self.denied_by(denial);
        }
        let hint = rule.and_then(|rule| self.to_connect(&rule));
        Reason::of(self.rule(what, "network.connect"), hint)
    }
}
