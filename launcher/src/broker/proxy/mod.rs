//! The proxy, for a run without a network of its own: its programs do not reach the broker by the addresses of hosts,
//! so they have to say whom they want to reach.
//!
//! They do by HTTP (a request with a whole URL, or CONNECT; RFC 9110, 9112) or by SOCKS 5 (RFC 1928). The supervisor
//! does in a way of its own, on the sockets of programs that know nothing of a proxy. The first byte tells which.

pub mod http;
pub mod plain;
pub mod socks;

use crate::broker::said::Host;
use crate::hosts::HostName;
use std::net::{IpAddr, Ipv6Addr};

/// How a client has said whom it wants to reach, which is how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// CONNECT: it waits for an answer, and then speaks to the host.
    Connect,
    /// A request for the host, which answers it.
    Request,
    /// A request for the host, and for no more than the head of an answer (RFC 9110, 9.3.2).
    Head,
    /// SOCKS: it waits for an answer as well.
    Socks,
    /// As the supervisor says it: there is no answer, and what follows is for the host.
    Plain,
}

impl Form {
    /// Whether it is a request for the host.
    pub fn is_request(self) -> bool {
        matches!(self, Form::Request | Form::Head)
    }
}

/// Whom a client wants to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// How it was said.
    pub form: Form,
    /// What the host gets instead of the bytes that said it.
    pub head: Vec<u8>,
}

/// What the first bytes of a client say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It takes more of them.
    Unfinished,
    /// So many of them have to be answered by this before there are more.
    Greeting(usize, &'static [u8]),
    /// So many of them are a wish.
    Wish(usize, Wish),
    /// They are none. The answer, after which nothing follows.
    Wrong(&'static [u8]),
}

/// Reads the first bytes of a client. `is_greeted`: a greeting of it was answered.
pub fn read(bytes: &[u8], is_greeted: bool) -> Asked {
    match bytes.first() {
        None => Asked::Unfinished,
        Some(&socks::VERSION) => socks::read(bytes, is_greeted),
        Some(&plain::MARK) => plain::read(bytes),
        Some(_) => http::read(bytes),
    }
}

/// The answer to a client whose host is reached (`None`) or is not. A client that gets none learns by a reset.
pub fn answer(form: Form, failed: Option<i32>) -> Option<Vec<u8>> {
    match (form, failed) {
        (Form::Connect, None) => Some(http::CONNECTED.to_vec()),
        (Form::Connect | Form::Request | Form::Head, Some(errno)) => {
            Some(http::failure(errno, form != Form::Head))
        }
        (Form::Socks, failed) => Some(socks::reply(failed).to_vec()),
        (Form::Request | Form::Head, None) | (Form::Plain, _) => None,
    }
}

/// A host as clients name it: a name, or an address of which one of IPv6 may stand in brackets.
fn host(text: &[u8]) -> Option<Host> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(inner) = text.strip_prefix('[') {
        let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(Host::Address(IpAddr::V6(address).to_canonical()));
    }
    match text.parse::<IpAddr>() {
        Ok(address) => Some(Host::Address(address.to_canonical())),
        Err(_) => HostName::from_ascii(text.as_bytes()).ok().map(Host::Name),
    }
}

#[cfg(test)]
mod tests;
