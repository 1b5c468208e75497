//! What is tried inside a run with rules about hosts, in words of the network alone: no library resolves names, for
//! each would ask in its own way.

use crate::broker::message::{self, Family, Reply};
use crate::hosts::{DNS_PORT, HostName};
use crate::selftest::hosts::{LISTED, METADATA, NAMELESS, PORTS, REBINDING, SERVERS, UNLISTED};
use crate::sys::selftest::Errno;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// What the outside answers.
pub const HERE: &[u8] = b"here";

/// For how long an answer is waited for.
const LONGEST: Duration = Duration::from_secs(2);

/// What is tried.
type Act = fn() -> Result<(), Errno>;

/// Everything that can be tried.
pub const ACTS: &[(&str, Act)] = &[
    ("reach-listed", || reach(LISTED.0)),
    ("reach-unlisted", || reach(UNLISTED.0)),
    ("reach-address", || web(NAMELESS, LISTED.0)),
    ("reach-address-by-tls", || tls(NAMELESS, LISTED.0)),
    ("ask", || ask(SERVERS[0], "ask.unlisted.test").map(drop)),
    ("ask-elsewhere", || ask(SERVERS[1], "elsewhere.unlisted.test").map(drop)),
    ("ask-by-tcp", || ask_by_tcp("tcp.unlisted.test")),
    ("reach-rebound", || reach(REBINDING.0)),
    ("reach-metadata", || web(METADATA.1, METADATA.0)),
    ("reach-metadata-by-name", || reach(METADATA.0)),
    ("name-listed-by-tls", || tls(ask(SERVERS[0], LISTED.0)?, LISTED.0)),
    ("name-other-by-tls", || tls(ask(SERVERS[0], LISTED.0)?, UNLISTED.0)),
    ("name-other-by-http", || web(ask(SERVERS[0], LISTED.0)?, UNLISTED.0)),
    ("send", || send(ask(SERVERS[0], LISTED.0)?)),
    ("send-elsewhere", || send(NAMELESS)),
];

/// A network refuses in several ways. Whatever has no number of its own is one of them, too.
fn refused(error: &io::Error) -> Errno {
    match error.raw_os_error() {
        Some(libc::ECONNRESET | libc::EPIPE | libc::EHOSTUNREACH | libc::ENETUNREACH) | None => {
            libc::ECONNREFUSED
        }
        Some(errno) => errno,
    }
}

fn named(name: &str) -> Result<HostName, Errno> {
    HostName::parse(name).map_err(|_| libc::EINVAL)
}

/// The address in an answer.
fn read_answer(answer: &[u8], name: &HostName) -> Result<Ipv4Addr, Errno> {
    match message::read(answer, ID, name, Family::V4) {
        Reply::Addresses(addresses) => match addresses.first() {
            Some(IpAddr::V4(address)) => Ok(*address),
            _ => Err(libc::ENOENT),
        },
        _ => Err(libc::ENOENT),
    }
}

const ID: u16 = 7;

/// Asks a name server for an address.
fn ask(server: Ipv4Addr, name: &str) -> Result<Ipv4Addr, Errno> {
    let name = named(name)?;
    let question = message::question(ID, &name, Family::V4).ok_or(libc::EINVAL)?;
    let asked = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_read_timeout(Some(LONGEST))?;
        socket.connect((server, DNS_PORT))?;
        socket.send(&question)?;
        let mut answer = [0; 1024];
        let count = socket.recv(&mut answer)?;
        Ok(answer.get(..count).unwrap_or_default().to_vec())
    };
    read_answer(&asked().map_err(|error| refused(&error))?, &name)
}

fn ask_by_tcp(name: &str) -> Result<(), Errno> {
    let name = named(name)?;
    let question = message::question(ID, &name, Family::V4).ok_or(libc::EINVAL)?;
    let asked = || {
        let mut connection = connect(SERVERS[0], DNS_PORT)?;
        connection.write_all(&[&(question.len() as u16).to_be_bytes()[..], &question].concat())?;
        let mut length = [0; 2];
        connection.read_exact(&mut length)?;
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        connection.read_exact(&mut answer)?;
        Ok(answer)
    };
    read_answer(&asked().map_err(|error| refused(&error))?, &name).map(drop)
}

fn connect(address: Ipv4Addr, port: u16) -> io::Result<TcpStream> {
    let connection = TcpStream::connect(SocketAddr::new(address.into(), port))?;
    connection.set_read_timeout(Some(LONGEST))?;
    Ok(connection)
}

/// Says something, and has the answer of the outside.
fn say(address: Ipv4Addr, port: u16, what: &[u8]) -> Result<(), Errno> {
    let said = || {
        let mut connection = connect(address, port)?;
        connection.write_all(what)?;
        let mut answer = [0; HERE.len()];
        connection.read_exact(&mut answer)
    };
    said().map_err(|error| refused(&error))
}

fn web(address: Ipv4Addr, host: &str) -> Result<(), Errno> {
    say(address, PORTS[0], format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
}

fn reach(name: &str) -> Result<(), Errno> {
    web(ask(SERVERS[0], name)?, name)
}

fn tls(address: Ipv4Addr, host: &str) -> Result<(), Errno> {
    say(address, PORTS[1], &hello(host))
}

/// The beginning of a connection of TLS 1.2 to this host: the least that names it (RFC 5246, RFC 6066).
fn hello(host: &str) -> Vec<u8> {
    let counted = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
    let names = counted(&[&[0][..], &counted(host.as_bytes())].concat());
    let extensions = counted(&[&[0, 0][..], &counted(&names)].concat());
    // Version, random, no session, one cipher suite, no compression.
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &extensions].concat();
    let message = [&[1, 0][..], &counted(&body)].concat();
    [&[22, 3, 1][..], &counted(&message)].concat()
}

/// Sends a datagram, and has one back.
fn send(address: Ipv4Addr) -> Result<(), Errno> {
    let sent = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_read_timeout(Some(LONGEST))?;
        socket.connect((address, PORTS[1]))?;
        socket.send(HERE)?;
        socket.recv(&mut [0; HERE.len()]).map(drop)
    };
    sent().map_err(|error| refused(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::said::{Said, tls};

    #[test]
    fn a_hello_names_its_host() {
        assert_eq!(tls::server_name(&hello("listed.test")), Said::Host(b"listed.test".to_vec()));
    }
}
