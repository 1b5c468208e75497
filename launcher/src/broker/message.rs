//! Questions of ours, and the answers to them.

use crate::broker::dns::{host_name, wire_name};
use crate::broker::lookup::MOST_ADDRESSES;
use crate::hosts::HostName;
use simple_dns::rdata::RData;
use simple_dns::{CLASS, OPCODE, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of an answer that is read.
pub const LONGEST: usize = 16 * 1024;

/// Maximum number of names in a chain of aliases.
const LONGEST_CHAIN: usize = 16;

/// Minimum length of a record: the root, and ten bytes.
const SHORTEST_RECORD: usize = 11;

/// The addresses of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A.
    V4,
    /// AAAA.
    V6,
}

impl Family {
    fn kind(self) -> QTYPE {
        QTYPE::TYPE(if self == Family::V4 { TYPE::A } else { TYPE::AAAA })
    }
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is no answer to this question: somebody else's, or a forged one.
    Foreign,
    /// The server does not answer; another one may.
    Failed,
    /// The answer did not fit.
    Truncated,
    /// These addresses, none if the name has none.
    Addresses(Vec<IpAddr>),
    /// There is no such name.
    NoName,
}

/// A question.
pub fn question(id: u16, name: &HostName, family: Family) -> Option<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet.questions.push(Question::new(wire_name(name), family.kind(), QCLASS::CLASS(CLASS::IN), false));
    packet.build_bytes_vec().ok()
}

/// Reads what has arrived from the server that was asked.
pub fn read(message: &[u8], id: u16, name: &HostName, family: Family) -> Reply {
    if message.len() > LONGEST || message.first_chunk() != Some(&id.to_be_bytes()) {
        return Reply::Foreign;
    }
    // The library makes room for as many records as the header promises.
    let count = |place: usize| {
        message.get(place..).and_then(|rest| rest.first_chunk()).map_or(0, |two| u16::from_be_bytes(*two))
    };
    let promised: usize = [6, 8, 10].map(|place| usize::from(count(place))).iter().sum();
    if count(4) != 1 || promised > message.len() / SHORTEST_RECORD {
        return Reply::Foreign;
    }
    let is_truncated = count(2) & PacketFlag::TRUNCATION.bits() != 0;
    let Ok(packet) = Packet::parse(message) else {
        return if is_truncated { Reply::Truncated } else { Reply::Failed };
    };
    let is_asked = packet.questions.first().is_some_and(|question| {
        host_name(&question.qname).as_ref() == Some(name)
            && question.qtype == family.kind()
            && question.qclass == QCLASS::CLASS(CLASS::IN)
    });
    let is_answer = packet.has_flags(PacketFlag::RESPONSE) && packet.opcode() == OPCODE::StandardQuery;
    if !is_asked || !is_answer {
        return Reply::Foreign;
    }
    match packet.rcode() {
        _ if is_truncated => Reply::Truncated,
        RCODE::NoError => Reply::Addresses(addresses(&packet, name, family)),
        RCODE::NameError => Reply::NoName,
        _ => Reply::Failed,
    }
}

/// The addresses at the end of the chain of aliases that begins with a name. Other records mean nothing.
fn addresses(packet: &Packet<'_>, name: &HostName, family: Family) -> Vec<IpAddr> {
    let mut name = name.clone();
    for _ in 0..LONGEST_CHAIN {
        let of_name = packet
            .answers
            .iter()
            .filter(|record| record.class == CLASS::IN && host_name(&record.name).as_ref() == Some(&name));
        let mut next = None;
        let mut found = Vec::new();
        for record in of_name {
            match (&record.rdata, family) {
                (RData::A(record), Family::V4) => found.push(Ipv4Addr::from_bits(record.address).into()),
                (RData::AAAA(record), Family::V6) => found.push(Ipv6Addr::from_bits(record.address).into()),
                (RData::CNAME(alias), _) => next = next.or_else(|| host_name(&alias.0)),
                _ => {}
            }
        }
        match next {
            Some(alias) if found.is_empty() => name = alias,
            _ => {
                found.truncate(MOST_ADDRESSES);
                return found;
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, CNAME};

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    fn answer(records: &[(&str, &str)]) -> Vec<u8> {
        let mut packet = Packet::new_reply(7);
        let question = Question::new(wire_name(&name("a.example")), TYPE::A.into(), CLASS::IN.into(), false);
        packet.questions.push(question);
        for (owner, value) in records {
            let data = match value.parse::<Ipv4Addr>() {
                Ok(address) => RData::A(A { address: address.to_bits() }),
                Err(_) => RData::CNAME(CNAME(wire_name(&name(value)))),
            };
            packet.answers.push(ResourceRecord::new(wire_name(&name(owner)), CLASS::IN, 60, data));
        }
        packet.build_bytes_vec_compressed().unwrap()
    }

    fn read_it(message: &[u8]) -> Reply {
        read(message, 7, &name("a.example"), Family::V4)
    }

    fn is(addresses: &[&str]) -> Reply {
        Reply::Addresses(addresses.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn aliases_are_followed_inside_the_answer() {
        let direct =
            answer(&[("a.example", "192.0.2.1"), ("A.example", "192.0.2.2"), ("x.example", "192.0.2.3")]);
        assert_eq!(read_it(&direct), is(&["192.0.2.1", "192.0.2.2"]));
        let chain = [("c.example", "192.0.2.1"), ("a.example", "b.example"), ("b.example", "c.example")];
        assert_eq!(read_it(&answer(&chain)), is(&["192.0.2.1"]));
        assert_eq!(read_it(&answer(&[("a.example", "b.example")])), is(&[]));
        let circle = [("a.example", "b.example"), ("b.example", "a.example")];
        assert_eq!(read_it(&answer(&circle)), is(&[]));
        assert_eq!(read_it(&answer(&[])), is(&[]));
    }

    #[test]
    fn what_answers_another_question_is_foreign() {
        let good = answer(&[("a.example", "192.0.2.1")]);
        let other = |id, text: &str, family| read(&good, id, &name(text), family);
        assert_eq!(other(8, "a.example", Family::V4), Reply::Foreign);
        assert_eq!(other(7, "b.example", Family::V4), Reply::Foreign);
        assert_eq!(other(7, "a.example", Family::V6), Reply::Foreign);
        assert_eq!(read_it(&question(7, &name("a.example"), Family::V4).unwrap()), Reply::Foreign);
        assert_eq!(read_it(&[]), Reply::Foreign);
        let mut promising = good.clone();
        promising[6..12].fill(0xff);
        assert_eq!(read_it(&promising), Reply::Foreign);
    }

    #[test]
    fn codes_are_told_apart() {
        let changed = |place: usize, bits: u8| {
            let mut message = answer(&[]);
            message[place] |= bits;
            read_it(&message)
        };
        assert_eq!(
            (changed(3, 2), changed(3, 3), changed(3, 5)),
            (Reply::Failed, Reply::NoName, Reply::Failed)
        );
        assert_eq!(changed(2, 2), Reply::Truncated);
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let good = answer(&[("a.example", "b.example"), ("b.example", "192.0.2.1")]);
        let mut random = Random(5);
        for _ in 0..20_000 {
            let mut message = good.clone();
            for _ in 0..=random.below(4) {
                let place = 2 + random.below(message.len() - 2);
                message[place] = random.next() as u8;
            }
            read_it(&message);
        }
    }
}
