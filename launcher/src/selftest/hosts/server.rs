//! The outside: its name server and web servers, and what arrived there. It is a process of its own.

use crate::broker::dns::host_name;
use crate::broker::said::{Said, http, tls};
use crate::hosts::{DNS_PORT, HostName};
use crate::selftest::hosts::acts::HERE;
use crate::selftest::hosts::{EVIDENCE, LISTED, METADATA, NAMELESS, PORTS, REBINDING, UNLISTED};
use crate::sys::datagram;
use crate::sys::descriptor::{self, Interest};
use simple_dns::rdata::{A, RData};
use simple_dns::{CLASS, Packet, QTYPE, RCODE, ResourceRecord, TYPE};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// What has arrived: a bit for each kind.
#[derive(Default)]
pub struct Arrived(AtomicU32);

impl Arrived {
    fn note(&self, what: &str) {
        if let Some(place) = EVIDENCE.iter().position(|name| *name == what) {
            self.0.fetch_or(1 << place, Ordering::SeqCst);
        }
    }

    /// All of it since the last time.
    pub fn take(&self) -> u32 {
        self.0.swap(0, Ordering::SeqCst)
    }

    /// The names of these bits.
    pub fn names(bits: u32) -> impl Iterator<Item = &'static str> {
        EVIDENCE
            .into_iter()
            .enumerate()
            .filter(move |(place, _)| bits & (1 << place) != 0)
            .map(|(_, name)| name)
    }
}

/// The sockets of the outside, or of the machine.
pub struct Sockets {
    connections: Vec<TcpListener>,
    datagrams: Vec<(UdpSocket, bool)>,
}

impl Sockets {
    /// Those of the outside: at all addresses, which are local there.
    pub fn of_outside() -> io::Result<Sockets> {
        let any = Ipv4Addr::UNSPECIFIED;
        let ports = [PORTS[0], PORTS[1], DNS_PORT];
        let connections = ports.map(|port| TcpListener::bind((any, port)));
        let datagrams = [(DNS_PORT, true), (PORTS[1], false)]
            .map(|(port, answers)| UdpSocket::bind((any, port)).map(|socket| (socket, answers)));
        Ok(Sockets {
            connections: connections.into_iter().collect::<io::Result<_>>()?,
            datagrams: datagrams.into_iter().collect::<io::Result<_>>()?,
        })
    }

    /// Those of the machine: at its loopback.
    pub fn of_machine() -> io::Result<Sockets> {
        let connections = vec![TcpListener::bind((Ipv4Addr::LOCALHOST, PORTS[0]))?];
        Ok(Sockets { connections, datagrams: Vec::new() })
    }

    /// Serves them, in threads that end with the process.
    pub fn serve(self, arrived: &Arc<Arrived>) {
        for listener in self.connections {
            let arrived = arrived.clone();
            thread::spawn(move || {
                for connection in listener.incoming().flatten() {
                    let arrived = arrived.clone();
                    thread::spawn(move || talk(connection, &arrived));
                }
            });
        }
        for (socket, is_of_names) in self.datagrams {
            let arrived = arrived.clone();
            thread::spawn(move || answer_datagrams(&socket.into(), is_of_names, &arrived));
        }
    }
}

/// Where a connection has arrived.
fn reached(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) if address == LISTED.1 => Some("listed-host-reached"),
        IpAddr::V4(address) if address == UNLISTED.1 => Some("unlisted-host-reached"),
        IpAddr::V4(address) if address == NAMELESS => Some("address-reached"),
        IpAddr::V4(address) if address == METADATA.1 => Some("metadata-service-reached"),
        address if address.is_loopback() || address == REBINDING.1 => Some("private-address-reached"),
        _ => None,
    }
}

fn talk(mut connection: TcpStream, arrived: &Arrived) -> Option<()> {
    let local = connection.local_addr().ok()?;
    if local.port() == DNS_PORT {
        let mut length = [0; 2];
        connection.read_exact(&mut length).ok()?;
        let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
        connection.read_exact(&mut question).ok()?;
        let answer = resolve(&question, arrived)?;
        let answer = [&(answer.len() as u16).to_be_bytes()[..], &answer].concat();
        return connection.write_all(&answer).ok();
    }
    reached(local.ip()).into_iter().for_each(|what| arrived.note(what));
    let mut buffer = [0; 2048];
    let count = connection.read(&mut buffer).ok().filter(|count| *count > 0)?;
    let bytes = buffer.get(..count)?;
    let said = if local.port() == PORTS[1] { tls::server_name(bytes) } else { http::host(bytes) };
    if matches!(&said, Said::Host(host) if local.ip() == LISTED.1 && host != LISTED.0.as_bytes()) {
        arrived.note("other-host-named");
    }
    connection.write_all(HERE).ok()
}

fn answer_datagrams(socket: &OwnedFd, is_of_names: bool, arrived: &Arrived) {
    let mut buffer = [0; 2048];
    if datagram::tell_destinations(socket).is_err() {
        return;
    }
    loop {
        if descriptor::poll([Interest::read(Some(socket.as_raw_fd()))], None).is_err() {
            return;
        }
        let Ok(Some((count, ends))) = datagram::receive(socket, &mut buffer) else { continue };
        let received = buffer.get(..count).unwrap_or_default();
        let answer = match is_of_names {
            true => resolve(received, arrived),
            false => {
                arrived.note("datagram-arrived");
                Some(received.to_vec())
            }
        };
        // Whoever gets none fails, which shows.
        answer.iter().for_each(|answer| drop(datagram::answer(socket, answer, &ends)));
    }
}

/// The answer to a question.
fn resolve(message: &[u8], arrived: &Arrived) -> Option<Vec<u8>> {
    let asked = Packet::parse(message).ok()?;
    let question = asked.questions.first()?;
    let mut reply = Packet::new_reply(asked.id());
    reply.questions.push(question.clone());
    // The broker asks for addresses of IPv6, too. There are none, and that question is none of those that are counted.
    if question.qtype == QTYPE::TYPE(TYPE::A) {
        match address_of(&host_name(&question.qname)?, arrived) {
            None => *reply.rcode_mut() = RCODE::NameError,
            Some(address) => {
                let data = RData::A(A { address: address.to_bits() });
                reply.answers.push(ResourceRecord::new(question.qname.clone(), CLASS::IN, 0, data));
            }
        }
    }
    reply.build_bytes_vec().ok()
}

fn address_of(name: &HostName, arrived: &Arrived) -> Option<Ipv4Addr> {
    let text = name.as_str();
    let is_unlisted =
        text.strip_suffix(UNLISTED.0).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if is_unlisted {
        arrived.note("question-about-an-unlisted-name");
        return Some(UNLISTED.1);
    }
    [LISTED, METADATA, REBINDING].into_iter().find(|(known, _)| *known == text).map(|(_, address)| address)
}
