//! One rule: hosts and ports.

use crate::hosts::name::{HostName, NameError};
use crate::hosts::range::Range;
use std::fmt;
use std::net::IpAddr;
use thiserror::Error;

/// The port of a rule that names none.
pub const DEFAULT_PORT: u16 = 443;

/// Maximum number of ports of one rule.
const MOST_PORTS: usize = 32;

/// Maximum length of a rule. With it, an error may quote any part.
const LONGEST: usize = 1024;

/// Which hosts a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Every host.
    Any,
    /// One name.
    Name(HostName),
    /// All names below one (`*.example.org`), and not that one.
    Below(HostName),
    /// Addresses.
    Range(Range),
}

/// What is spoken on a connection: how its first bytes name the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TLS: the server name in the ClientHello.
    Tls,
    /// HTTP: the host of the first request.
    Http,
    /// Anything: the bytes are not looked at.
    Tcp,
}

impl Protocol {
    /// The protocols by their words.
    const WORDS: [(&'static str, Protocol); 3] =
        [("tls", Protocol::Tls), ("http", Protocol::Http), ("tcp", Protocol::Tcp)];

    /// What is spoken at a port of which no rule says it.
    pub fn usual(port: u16) -> Protocol {
        match port {
            443 => Protocol::Tls,
            80 => Protocol::Http,
            _ => Protocol::Tcp,
        }
    }

    fn parse(text: &str) -> Result<Protocol, RuleError> {
        let known = Protocol::WORDS.iter().find(|(word, _)| *word == text);
        known.map(|(_, protocol)| *protocol).ok_or_else(|| RuleError::Protocol(text.to_string()))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Protocol::WORDS.iter().find(|(_, protocol)| protocol == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

/// Hosts and TCP ports: `example.org`, `*.example.org:443,8443`, `203.0.113.0/24:22`, `[2001:db8::]/32:443`, `*:8080`,
/// `example.org:8443/tls`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostRule {
    /// The hosts.
    pub hosts: HostPattern,
    /// The ports, sorted. Empty for all, which only a denial may mean.
    pub ports: Vec<u16>,
    /// What is spoken there, if the rule says it.
    pub speaks: Option<Protocol>,
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    /// Not HOST or HOST:PORT.
    #[error(
        "expected HOST[:PORT[,PORT...][/PROTOCOL]]; the host is a name, '*.NAME', an address, a range or '*'"
    )]
    Form,
    /// No rule is as long.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    /// The host is no name.
    #[error("'{0}' is not the name of a host: {1}")]
    Name(String, NameError),
    /// The host is no range of addresses.
    #[error("'{0}' is not a range of addresses: {1}")]
    Range(String, &'static str),
    /// An address of IPv6 without brackets: a colon could begin the port.
    #[error("an IPv6 address needs brackets, as in {0}")]
    Brackets(String),
    /// A protocol without a port.
    #[error("a protocol stands behind a port, as in '{0}'")]
    ProtocolOfHost(String),
    /// A port that is none.
    #[error("'{0}' is not a port; expected 1 to 65535")]
    Port(String),
    /// More ports than a rule may have.
    #[error("it has more than {MOST_PORTS} ports")]
    ManyPorts,
    /// A pattern in the middle of a name.
    #[error("'{0}' has a '*' where none may be; expected '*.NAME', or '*' for every host")]
    Pattern(String),
    /// A URL.
    #[error("it is a URL; write the host and its port, as in '{0}'")]
    Url(String),
    /// A protocol that is none.
    #[error("'{0}' is not a protocol; expected 'tls', 'http' or 'tcp'")]
    Protocol(String),
    /// A denial with a protocol.
    #[error("what is denied is denied whatever is spoken there; leave the protocol out")]
    ProtocolOfDenial,
    /// Every host without a port.
    #[error("'*' needs a port, as in '*:8080'")]
    AnyWithoutPort,
}

impl HostRule {
    /// Reads a rule. Without a port it is about 443.
    pub fn parse(text: &str) -> Result<HostRule, RuleError> {
        let (hosts, ports) = parts(text)?;
        let (ports, speaks) = match ports {
            Some(ports) => read_ports(ports)?,
            None if hosts == HostPattern::Any => return Err(RuleError::AnyWithoutPort),
            None => (vec![DEFAULT_PORT], None),
        };
        Ok(HostRule { hosts, ports, speaks })
    }

    /// Reads a denial. Without a port it is about all.
    pub fn parse_denial(text: &str) -> Result<HostRule, RuleError> {
        let (hosts, ports) = parts(text)?;
        let (ports, speaks) = ports.map_or(Ok((Vec::new(), None)), read_ports)?;
        if speaks.is_some() {
            return Err(RuleError::ProtocolOfDenial);
        }
        Ok(HostRule { hosts, ports, speaks })
    }

    /// What is spoken at one of its ports.
    pub fn protocol_at(&self, port: u16) -> Protocol {
        self.speaks.unwrap_or_else(|| Protocol::usual(port))
    }

    /// Whether it is about a name.
    pub fn is_about(&self, name: &HostName) -> bool {
        match &self.hosts {
            HostPattern::Any => true,
            HostPattern::Name(own) => own == name,
            HostPattern::Below(top) => name.is_below(top),
            HostPattern::Range(_) => false,
        }
    }

    /// Whether it is about an address that is given instead of a name.
    pub fn is_about_address(&self, address: IpAddr) -> bool {
        match &self.hosts {
            HostPattern::Any => true,
            HostPattern::Range(range) => range.has(address),
            HostPattern::Name(_) | HostPattern::Below(_) => false,
        }
    }

    /// Whether it is about a port.
    pub fn has_port(&self, port: u16) -> bool {
        self.ports.is_empty() || self.ports.contains(&port)
    }

    /// Whether it is about everything that another rule is about.
    pub fn covers(&self, other: &HostRule) -> bool {
        let hosts = match (&self.hosts, &other.hosts) {
            (HostPattern::Any, _) => true,
            (_, HostPattern::Any) => false,
            (HostPattern::Range(own), HostPattern::Range(other)) => other.is_within(own),
            (_, HostPattern::Name(name)) => self.is_about(name),
            (HostPattern::Below(own), HostPattern::Below(other)) => own == other || other.is_below(own),
            _ => false,
        };
        let ports = || !other.ports.is_empty() && other.ports.iter().all(|port| self.ports.contains(port));
        hosts && (self.ports.is_empty() || ports())
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            HostPattern::Any => f.write_str("*")?,
            HostPattern::Name(name) => write!(f, "{name}")?,
            HostPattern::Below(name) => write!(f, "*.{name}")?,
            HostPattern::Range(range) => write!(f, "{range}")?,
        }
        for (index, port) in self.ports.iter().enumerate() {
            write!(f, "{}{port}", if index == 0 { ':' } else { ',' })?;
        }
        self.speaks.map_or(Ok(()), |protocol| write!(f, "/{protocol}"))
    }
}

/// How an address of IPv6 is to be written. Its last part may be meant as a port.
fn in_brackets(address: &str) -> String {
    let is_address = |text: &str| text.parse::<std::net::Ipv6Addr>().is_ok();
    let with_port = address.rsplit_once(':').filter(|(above, last)| is_address(above) && port(last).is_ok());
    let whole = format!("'[{address}]:443'");
    with_port.map(|(above, port)| format!("'[{above}]:{port}' or {whole}")).unwrap_or(whole)
}

/// The hosts of a rule, and the text of its ports.
fn parts(text: &str) -> Result<(HostPattern, Option<&str>), RuleError> {
    if text.len() > LONGEST {
        return Err(RuleError::TooLong);
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        let port = if scheme == "http" && !host.contains(':') { ":80" } else { "" };
        return Err(RuleError::Url(format!("{host}{port}")));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']').ok_or(RuleError::Form)?;
        let (prefix, ports) = match rest.split_once(':') {
            Some((prefix, ports)) => (prefix, Some(ports)),
            None => (rest, None),
        };
        let whole = format!("{address}{prefix}");
        let wrong = |why| RuleError::Range(whole.clone(), why);
        if !address.contains(':') {
            return Err(wrong("only an IPv6 address has brackets"));
        }
        let range = Range::parse(&whole).map_err(wrong)?;
        return Ok((HostPattern::Range(range), ports));
    }
    if text.matches(':').count() > 1 {
        let address = text.split('/').next().unwrap_or_default();
        let is_address = address.parse::<std::net::Ipv6Addr>().is_ok();
        return Err(if is_address { RuleError::Brackets(in_brackets(address)) } else { RuleError::Form });
    }
    let (host, ports) = match text.split_once(':') {
        Some((host, ports)) => (host, Some(ports)),
        None => (text, None),
    };
    Ok((pattern(host)?, ports))
}

fn pattern(host: &str) -> Result<HostPattern, RuleError> {
    if host == "*" {
        return Ok(HostPattern::Any);
    }
    if let Some((host, protocol)) = host.split_once('/')
        && Protocol::parse(protocol).is_ok()
    {
        let port = if protocol == "http" { 80 } else { DEFAULT_PORT };
        return Err(RuleError::ProtocolOfHost(format!("{host}:{port}/{protocol}")));
    }
    let name = |text: &str| HostName::parse(text).map_err(|error| RuleError::Name(text.to_string(), error));
    if let Some(top) = host.strip_prefix("*.").filter(|top| !top.contains('*')) {
        return name(top).map(HostPattern::Below);
    }
    if host.contains('*') {
        return Err(RuleError::Pattern(host.to_string()));
    }
    let digits_and_dots = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if host.contains('/') || (!host.is_empty() && digits_and_dots(host)) {
        return Range::parse(host)
            .map(HostPattern::Range)
            .map_err(|why| RuleError::Range(host.to_string(), why));
    }
    name(host).map(HostPattern::Name)
}

fn read_ports(text: &str) -> Result<(Vec<u16>, Option<Protocol>), RuleError> {
    let (ports, protocol) = match text.split_once('/') {
        Some((ports, protocol)) => (ports, Some(Protocol::parse(protocol)?)),
        None => (text, None),
    };
    let mut ports = ports.split(',').map(port).collect::<Result<Vec<_>, _>>()?;
    if ports.len() > MOST_PORTS {
        return Err(RuleError::ManyPorts);
    }
    ports.sort_unstable();
    ports.dedup();
    Ok((ports, protocol))
}

fn port(text: &str) -> Result<u16, RuleError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|port| digits && *port != 0);
    number.ok_or_else(|| RuleError::Port(text.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_shown() {
        for (text, shown) in [
            ("example.org", "example.org:443"),
            ("Example.ORG.:80", "example.org:80"),
            ("*.example.org:8443,443,443", "*.example.org:443,8443"),
            ("203.0.113.7", "203.0.113.7:443"),
            ("203.0.113.7/32:22", "203.0.113.7:22"),
            ("203.0.113.0/24:22", "203.0.113.0/24:22"),
            ("[2001:db8::]/32:443", "[2001:db8::]/32:443"),
            ("[2001:db8::1]", "[2001:db8::1]:443"),
            ("*:8080", "*:8080"),
            ("example.org:8443,22/tls", "example.org:22,8443/tls"),
            ("203.0.113.0/24:443/tcp", "203.0.113.0/24:443/tcp"),
            ("[2001:db8::]/32:8080/http", "[2001:db8::]/32:8080/http"),
        ] {
            let rule = HostRule::parse(text).unwrap();
            assert_eq!(rule.to_string(), shown);
            assert_eq!(HostRule::parse(shown).unwrap(), rule);
        }
        assert_eq!(HostRule::parse_denial("example.org").unwrap().to_string(), "example.org");
        assert_eq!(HostRule::parse_denial("*").unwrap().to_string(), "*");
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        let error = |text: &str| HostRule::parse(text).unwrap_err().to_string();
        for (text, part) in [
            ("", "it is empty"),
            ("*", "'*' needs a port"),
            ("example.org:", "'' is not a port"),
            ("example.org:0", "'0' is not a port"),
            ("example.org:+1", "'+1' is not a port"),
            ("example.org:65536", "is not a port"),
            ("example.org:80,", "'' is not a port"),
            ("2001:db8::1", "needs brackets, as in '[2001:db8::1]:443'"),
            ("::1:80", "needs brackets, as in '[::1]:80' or '[::1:80]:443'"),
            ("example.org/http", "behind a port, as in 'example.org:80/http'"),
            ("*.example.org/tls", "behind a port, as in '*.example.org:443/tls'"),
            ("a:b:c", "expected HOST"),
            ("[2001:db8::1", "expected HOST"),
            ("[1.2.3.4]:80", "only an IPv6 address"),
            ("1.2.3.4.5", "is not a range"),
            ("127.1", "is not a range"),
            ("0x7f.1", "is a number"),
            ("https://example.org", "write the host and its port, as in 'example.org'"),
            ("http://example.org/x", "as in 'example.org:80'"),
            ("http://example.org:8080/x", "as in 'example.org:8080'"),
            ("exam*le.org", "has a '*'"),
            ("*.*.org", "has a '*'"),
            ("**", "has a '*'"),
            ("example.org/x", "is not a range"),
            ("evil.example\0.example.org", "letters, digits"),
            ("example.org:443/", "'' is not a protocol; expected 'tls', 'http' or 'tcp'"),
            ("example.org:443/TLS", "'TLS' is not a protocol"),
            ("example.org:443/tls/tcp", "'tls/tcp' is not a protocol"),
            ("example.org:/tls", "'' is not a port"),
            (&"a.".repeat(1000), "longer than 1024 bytes"),
        ] {
            assert!(error(text).contains(part), "{text:?}: {}", error(text));
        }
    }

    #[test]
    fn a_denial_says_nothing_of_protocols() {
        let denied = HostRule::parse_denial("example.org:8443/tls");
        assert_eq!(denied, Err(RuleError::ProtocolOfDenial));
    }

    #[test]
    fn a_rule_covers_what_it_is_about() {
        let covers = |one: &str, other: &str| {
            HostRule::parse_denial(one).unwrap().covers(&HostRule::parse_denial(other).unwrap())
        };
        for (one, other) in [
            ("*", "example.org"),
            ("*.example.org", "a.example.org:80"),
            ("*.example.org", "*.a.example.org"),
            ("10.0.0.0/8", "10.1.0.0/16:22"),
            ("example.org", "example.org:443"),
            ("example.org:80,443", "example.org:443"),
        ] {
            assert!(covers(one, other) && !covers(other, one), "{one} {other}");
        }
        for (one, other) in [("*.example.org", "example.org"), ("example.org:80", "example.org")] {
            assert!(!covers(one, other), "{one} {other}");
        }
    }
}
