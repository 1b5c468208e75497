//! Answers to the command's questions of DNS.
//!
//! No question is asked outside because of one that came in: names and addresses are given out here. So a question
//! carries nothing further than to the supervisor.

use crate::broker::events::{Event, Teller};
use crate::broker::names::{Names, TOO_MANY};
use crate::hosts::{HostName, HostRules};
use simple_dns::rdata::{A, AAAA, PTR, RData};
use simple_dns::{
    CLASS, Label, Name, OPCODE, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, ResourceRecord, TYPE,
};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// For how many seconds an answer may be kept. Addresses stay the same for the whole run; a short time has programs
/// which look at it ask again rather than keep an address for their next run.
const TTL: u32 = 10;

/// Maximum length of a question. One name takes 255 bytes at most, and no option of EDNS is of any use here.
pub const LONGEST: usize = 1232;

/// Maximum number of refused names that are told of.
const MOST_REFUSED: usize = 1024;

const HEADER: usize = 12;

/// What answers are made of.
pub struct Book {
    /// The addresses that were given out.
    pub names: Names,
    refused: HashSet<String>,
    /// How many questions about further ones there were.
    pub untold: u64,
    is_full: bool,
    /// Log mode: every name gets an address.
    watches: bool,
    /// Below which domains a resolver of this machine tries a name first.
    search: Vec<HostName>,
}

impl Book {
    /// Without names.
    pub fn new(names: Names, watches: bool) -> Book {
        Book { names, refused: HashSet::new(), untold: 0, is_full: false, watches, search: Vec::new() }
    }

    /// From now on this is a machine whose resolvers try a name below these domains first.
    pub fn follow(&mut self, search: Vec<HostName>) {
        self.search = search;
    }

    /// The answer to a message; `None` where silence is better: to what is no question at all, and where the
    /// supervisor could not be told of a new name.
    pub fn answer(&mut self, message: &[u8], rules: &HostRules, teller: &mut Teller) -> Option<Vec<u8>> {
        let (id, flags) = (number(message, 0)?, number(message, 2)?);
        if message.len() < HEADER || flags & PacketFlag::RESPONSE.bits() != 0 {
            return None;
        }
        let mut reply = Packet::new_reply(id);
        reply.set_flags(PacketFlag::RECURSION_AVAILABLE);
        let Some((packet, kind)) = read(message) else {
            *reply.rcode_mut() = RCODE::FormatError;
            return reply.build_bytes_vec().ok();
        };
        *reply.opcode_mut() = packet.opcode();
        if packet.has_flags(PacketFlag::RECURSION_DESIRED) {
            reply.set_flags(PacketFlag::RECURSION_DESIRED);
        }
        let question = packet.questions.first()?;
        reply.questions.push(Question::new(question.qname.clone(), kind, question.qclass, false));
        if packet.opcode() != OPCODE::StandardQuery {
            *reply.rcode_mut() = RCODE::NotImplemented;
        } else {
            match self.look_up(question, kind, rules, teller)? {
                Ok(Some(data)) => {
                    let record = ResourceRecord::new(question.qname.clone(), CLASS::IN, TTL, data);
                    reply.answers.push(record);
                }
                Ok(None) => {}
                Err(code) => *reply.rcode_mut() = code,
            }
        }
        reply.build_bytes_vec_compressed().ok()
    }

    /// The record that answers, if any; `None` for silence.
    fn look_up(
        &mut self,
        question: &Question<'_>,
        kind: QTYPE,
        rules: &HostRules,
        teller: &mut Teller,
    ) -> Option<Result<Option<RData<'static>>, RCODE>> {
        if question.qclass != QCLASS::CLASS(CLASS::IN) || is_transfer(kind) {
            return Some(Err(RCODE::Refused));
        }
        let Some(name) = host_name(&question.qname) else {
            return Some(Err(self.refuse(&question.qname.to_string(), kind, teller)));
        };
        if is_local(&name) {
            return Some(Ok(local(kind)));
        }
        if let Some(reversed) = reversed(&name) {
            let known = self.names.name_of(IpAddr::V4(reversed)).filter(|_| kind == QTYPE::TYPE(TYPE::PTR));
            return Some(known.map(pointer).ok_or(RCODE::Refused));
        }
        // IPv6 addresses stand for no name.
        if name.as_str().ends_with(".ip6.arpa") {
            return Some(Err(RCODE::Refused));
        }
        let is_known = rules.know_name(&name);
        if !is_known && self.is_tried_first(&name, rules) {
            return Some(Err(RCODE::NameError));
        }
        if !self.watches && !is_known {
            return Some(Err(self.refuse(name.as_str(), kind, teller)));
        }
        if kind != QTYPE::TYPE(TYPE::A) {
            return Some(Ok(None));
        }
        let address = match self.names.address_of(&name) {
            Some(address) => address,
            None => match self.names.next() {
                // The supervisor knows of every name before the command does.
                Some(address) if teller.tell_now(&Event::Assigned { name: name.clone(), address }) => {
                    self.names.add(name)?
                }
                Some(_) => return None,
                None => return Some(Err(self.is_full(name.as_str(), teller))),
            },
        };
        Some(Ok(Some(RData::A(A { address: address.to_bits() }))))
    }

    /// Whether a resolver makes this name out of one that rules have. Then it is nobody's wish, and that of musl goes
    /// on to the name itself only where there is no such one.
    fn is_tried_first(&self, name: &HostName, rules: &HostRules) -> bool {
        self.search.iter().any(|domain| {
            let front = name.as_str().strip_suffix(domain.as_str()).and_then(|front| front.strip_suffix('.'));
            front.and_then(|front| HostName::parse(front).ok()).is_some_and(|front| rules.know_name(&front))
        })
    }

    fn refuse(&mut self, name: &str, kind: QTYPE, teller: &mut Teller) -> RCODE {
        let name: String = name.chars().take(255).map(|char| char.to_ascii_lowercase()).collect();
        if self.refused.contains(&name) {
            return RCODE::Refused;
        }
        if self.refused.len() < MOST_REFUSED {
            teller.tell(&Event::Refused { name: name.clone(), kind: kind_name(kind) });
            self.refused.insert(name);
        } else {
            self.untold = self.untold.saturating_add(1);
        }
        RCODE::Refused
    }

    fn is_full(&mut self, name: &str, teller: &mut Teller) -> RCODE {
        if !std::mem::replace(&mut self.is_full, true) {
            teller.tell(&Event::Refused { name: name.to_string(), kind: TOO_MANY.to_string() });
        }
        RCODE::ServerFailure
    }
}

fn number(message: &[u8], place: usize) -> Option<u16> {
    let bytes = message.get(place..)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}

/// A message with one question, and nothing else but what EDNS adds; and the type that is asked for, which the library
/// refuses to read where it does not know it.
fn read(message: &[u8]) -> Option<(Packet<'_>, QTYPE)> {
    let counts = [number(message, 4)?, number(message, 6)?, number(message, 8)?, number(message, 10)?];
    if message.len() > LONGEST || !matches!(counts, [1, 0, 0, 0..=2]) {
        return None;
    }
    let kind = number(message, end_of_name(message)?)?;
    let known = QTYPE::try_from(kind);
    let packet = match known {
        Ok(_) => Packet::parse(message).ok()?,
        // Nothing but its name is of interest then.
        Err(_) => return read_name(message).map(|packet| (packet, QTYPE::TYPE(TYPE::Unknown(kind)))),
    };
    let question = packet.questions.first().filter(|question| !question.unicast_response)?;
    let kind = question.qtype;
    Some((packet, kind))
}

/// The message with a question of a known type instead.
fn read_name(message: &[u8]) -> Option<Packet<'static>> {
    let end = end_of_name(message)?;
    let class = number(message, end + 2)?;
    let mut known = message.get(..end)?.to_vec();
    known.extend(u16::from(QTYPE::TYPE(TYPE::TXT)).to_be_bytes());
    known.extend(class.to_be_bytes());
    // No further records.
    known.get_mut(6..HEADER)?.fill(0);
    let parsed = Packet::parse(&known).ok()?;
    let question = parsed.questions.first().filter(|question| !question.unicast_response)?;
    let mut packet = Packet::new_query(parsed.id());
    *packet.opcode_mut() = parsed.opcode();
    if parsed.has_flags(PacketFlag::RECURSION_DESIRED) {
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
    }
    packet.questions.push(question.clone().into_owned());
    Some(packet)
}

/// Where the name of the first question ends. Nothing is in front of it that a pointer could lead to.
fn end_of_name(message: &[u8]) -> Option<usize> {
    let mut place = HEADER;
    loop {
        match message.get(place)? {
            0 => return Some(place + 1),
            length @ 1..=63 => place += usize::from(*length) + 1,
            _ => return None,
        }
    }
}

/// The name of a host. On the wire a label may have any bytes: what would be two labels as text, or another text to
/// whoever stops at a NUL, is no name.
pub fn host_name(name: &Name<'_>) -> Option<HostName> {
    let mut text = Vec::new();
    for label in name.as_bytes() {
        if label.contains(&b'.') {
            return None;
        }
        if !text.is_empty() {
            text.push(b'.');
        }
        text.extend(label);
    }
    HostName::from_ascii(&text).ok()
}

/// A name as the library writes it.
pub fn wire_name(name: &HostName) -> Name<'static> {
    let labels = name.as_str().split('.').map(|label| Label::new_unchecked(label.as_bytes().to_vec()));
    Name::new_with_labels(&labels.collect::<Vec<_>>())
}

fn is_transfer(kind: QTYPE) -> bool {
    matches!(kind, QTYPE::AXFR | QTYPE::IXFR | QTYPE::MAILA | QTYPE::MAILB)
}

/// Whether a name is of this machine, as every resolver should say (RFC 6761, 6.3).
pub fn is_local(name: &HostName) -> bool {
    name.as_str() == "localhost" || name.as_str().ends_with(".localhost")
}

fn local(kind: QTYPE) -> Option<RData<'static>> {
    match kind {
        QTYPE::TYPE(TYPE::A) => Some(RData::A(A { address: Ipv4Addr::LOCALHOST.to_bits() })),
        QTYPE::TYPE(TYPE::AAAA) => Some(RData::AAAA(AAAA { address: Ipv6Addr::LOCALHOST.to_bits() })),
        _ => None,
    }
}

fn pointer(name: &HostName) -> Option<RData<'static>> {
    Some(RData::PTR(PTR(wire_name(name))))
}

/// The address in a name of in-addr.arpa; 0.0.0.0 for another name of that domain, which stands for no name either.
fn reversed(name: &HostName) -> Option<Ipv4Addr> {
    let digits = name.as_str().strip_suffix(".in-addr.arpa")?;
    let octets: Option<Vec<u8>> = digits.rsplit('.').map(|digits| digits.parse().ok()).collect();
    let octets: Option<[u8; 4]> = octets.and_then(|octets| octets.try_into().ok());
    Some(octets.map_or(Ipv4Addr::UNSPECIFIED, Ipv4Addr::from))
}

fn kind_name(kind: QTYPE) -> String {
    match kind {
        QTYPE::TYPE(TYPE::Unknown(number)) => format!("TYPE{number}"),
        QTYPE::TYPE(kind) => format!("{kind:?}"),
        kind => format!("{kind:?}"),
    }
}

#[cfg(test)]
mod tests;
