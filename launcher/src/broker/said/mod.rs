//! What the first bytes of a connection say about the host that it is meant for.
//!
//! Several hosts share an address, so the address alone does not tell which one is talked to: the server looks at
//! what the client says. In TLS this is the server name in the ClientHello, in HTTP the host of the first request. It
//! has to be the host that the connection was made to. What is not of the protocol at all does not match either: on
//! port 443 something else than TLS is a mismatch, unless a rule says what is spoken there. On ports without a protocol
//! nothing is looked at. Nothing is decrypted, and nothing is changed: the bytes that were looked at are forwarded, and
//! all that follow. A server of TLS 1.3 may ask for a second ClientHello, and goes by the name in that
//! one: it is looked at as well.
//!
//! What this does not show: the host that is named inside of an encrypted connection, or by a later request.

pub mod http;
pub mod tls;

use crate::hosts::{HostName, HostRules, Protocol};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

/// Maximum number of bytes that are looked at.
pub const LONGEST: usize = 16 * 1024;

/// Maximum time from the first of them until they have to be there.
pub const TIME: Duration = Duration::from_secs(10);

/// What bytes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It takes more of them.
    Unfinished,
    /// They name this host.
    Host(Vec<u8>),
    /// They are well-formed, and name no host.
    Nothing,
    /// They are not of the protocol, or name several hosts.
    Wrong,
}

/// The host that a connection was made to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// By its name.
    Name(HostName),
    /// By its address.
    Address(IpAddr),
    /// By an address that hosts(5) gives to these names of rules, of which there is one at least.
    ByFile(IpAddr, Rc<[HostName]>),
    /// This machine, at a port that was brought inside.
    Loopback,
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Host::Name(name) => name.fmt(f),
            Host::ByFile(_, names) if let Some(name) = names.first() => name.fmt(f),
            Host::Address(address) | Host::ByFile(address, _) => address.fmt(f),
            Host::Loopback => f.write_str("localhost"),
        }
    }
}

/// What becomes of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More bytes have to come.
    Unfinished,
    /// It goes on.
    Matches,
    /// It does not, with the name that was said.
    Mismatch(Option<String>),
}

/// The first byte of a record with a ClientHello (RFC 8446, 5.1). No request of HTTP begins with it.
const HANDSHAKE: u8 = 22;

/// Which of several protocols the first bytes are of.
pub fn spoken(protocols: &[Protocol], bytes: &[u8]) -> Protocol {
    match protocols {
        [protocol] => *protocol,
        _ if bytes.first() == Some(&HANDSHAKE) => Protocol::Tls,
        _ => Protocol::Http,
    }
}

/// Which bytes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The first of a connection.
    First(Protocol),
    /// What follows a server's wish for another ClientHello.
    SecondHello,
}

impl Part {
    /// What they are read as.
    pub fn protocol(self) -> Protocol {
        match self {
            Part::First(protocol) => protocol,
            Part::SecondHello => Protocol::Tls,
        }
    }
}

/// Judges bytes of a connection.
pub fn judge(part: Part, bytes: &[u8], host: &Host, port: u16, rules: &HostRules) -> Verdict {
    let said = match part {
        Part::First(Protocol::Tls) => tls::server_name(bytes),
        Part::First(Protocol::Http) => http::host(bytes),
        Part::First(Protocol::Tcp) => return Verdict::Matches,
        Part::SecondHello => tls::second_server_name(bytes),
    };
    let text = match said {
        Said::Unfinished if bytes.len() < LONGEST => return Verdict::Unfinished,
        Said::Unfinished | Said::Wrong => return Verdict::Mismatch(None),
        // Who asks for an address has no name to say.
        Said::Nothing => match host {
            Host::Name(_) | Host::ByFile(..) => return Verdict::Mismatch(None),
            Host::Address(_) | Host::Loopback => return Verdict::Matches,
        },
        Said::Host(text) => text,
    };
    if matches(&text, host, port, rules) {
        return Verdict::Matches;
    }
    let shown =
        text.iter().take(255).map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' });
    Verdict::Mismatch(Some(shown.collect()))
}

fn matches(text: &[u8], host: &Host, port: u16, rules: &HostRules) -> bool {
    match (host, HostName::from_ascii(text)) {
        (Host::Name(name), Ok(said)) => said == *name,
        (Host::ByFile(_, names), Ok(said)) => names.contains(&said),
        (Host::Name(_) | Host::ByFile(..), Err(_)) => false,
        (Host::Address(_), Ok(said)) => rules.allow_name(&said, port),
        (Host::Address(address), Err(_)) => {
            address_in(text).is_some_and(|said| said == address.to_canonical())
        }
        (Host::Loopback, _) => true,
    }
}

/// An address as it stands in a Host header.
fn address_in(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
pub(super) mod tests;
