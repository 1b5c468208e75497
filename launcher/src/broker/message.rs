//! Questions of ours, and the answers to them.

use crate::broker::dns::wire_name;
use crate::broker::lookup::MOST_ADDRESSES;
use crate::hosts::HostName;
use simple_dns::{CLASS, Packet, PacketFlag, QCLASS, QTYPE, Question, TYPE};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of an answer that is read.
pub const LONGEST: usize = 16 * 1024;

/// Maximum number of names in a chain of aliases.
const LONGEST_CHAIN: usize = 16;

/// Minimum length of a record: the root, and ten bytes.
const SHORTEST_RECORD: usize = 11;

/// Maximum length of a name with the lengths of its labels, but for the last byte.
const LONGEST_NAME: usize = 254;

/// The bits of an opcode and of a code, and codes (RFC 1035, 4.1.1).
const OPCODE: u16 = 0x7800;
const RCODE: u16 = 0xf;
const NO_ERROR: u16 = 0;
const NAME_ERROR: u16 = 3;

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

/// Reads what has arrived from the server that was asked. Of its records, only those count that lead to addresses: an
/// alias may have labels that no host has, and what else there is may be malformed.
pub fn read(message: &[u8], id: u16, name: &HostName, family: Family) -> Reply {
    if message.len() > LONGEST || message.first_chunk() != Some(&id.to_be_bytes()) {
        return Reply::Foreign;
    }
    let mut reader = Reader { message, place: 2 };
    let (Some(flags), Some(counts)) = (reader.number(), reader.numbers::<4>()) else { return Reply::Foreign };
    let [questions, answers, others, more] = counts.map(usize::from);
    // No message has more records than that.
    if questions != 1 || answers + others + more > message.len() / SHORTEST_RECORD {
        return Reply::Foreign;
    }
    let wanted = [u16::from(family.kind()), u16::from(CLASS::IN)];
    let is_asked = reader.name() == Some(labels(name)) && reader.numbers() == Some(wanted);
    let is_answer = flags & PacketFlag::RESPONSE.bits() != 0 && flags & OPCODE == 0;
    if !is_asked || !is_answer {
        return Reply::Foreign;
    }
    if flags & PacketFlag::TRUNCATION.bits() != 0 {
        return Reply::Truncated;
    }
    match flags & RCODE {
        NO_ERROR => {
            let records: Option<Vec<Record>> = (0..answers).map(|_| reader.record()).collect();
            records.map_or(Reply::Failed, |records| Reply::Addresses(addresses(&records, name, family)))
        }
        NAME_ERROR => Reply::NoName,
        _ => Reply::Failed,
    }
}

/// The addresses at the end of the chain of aliases that begins with a name.
fn addresses(records: &[Record], name: &HostName, family: Family) -> Vec<IpAddr> {
    let mut owner = &labels(name);
    for _ in 0..LONGEST_CHAIN {
        let mut next = None;
        let mut found = Vec::new();
        for record in records.iter().filter(|record| record.owner == *owner) {
            match (&record.data, family) {
                (Data::Address(address), Family::V4) if address.is_ipv4() => found.push(*address),
                (Data::Address(address), Family::V6) if address.is_ipv6() => found.push(*address),
                (Data::Alias(alias), _) => next = next.or(Some(alias)),
                _ => {}
            }
        }
        match next {
            Some(alias) if found.is_empty() => owner = alias,
            _ => {
                found.truncate(MOST_ADDRESSES);
                return found;
            }
        }
    }
    Vec::new()
}

/// The labels of a name in small letters, each behind its length. Any bytes are a label.
type Labels = Vec<u8>;

/// Those of a host.
fn labels(name: &HostName) -> Labels {
    let label = |label: &str| [&[label.len() as u8], label.as_bytes()].concat();
    let mut labels: Labels = name.as_str().split('.').flat_map(label).collect();
    labels.make_ascii_lowercase();
    labels
}

struct Record {
    owner: Labels,
    data: Data,
}

enum Data {
    Address(IpAddr),
    Alias(Labels),
    /// Another type or class, or malformed.
    Other,
}

struct Reader<'a> {
    message: &'a [u8],
    place: usize,
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = self.message.get(self.place..)?.first_chunk()?;
        self.place += N;
        Some(*array)
    }

    fn number(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn numbers<const N: usize>(&mut self) -> Option<[u16; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Some(numbers)
    }

    /// A name. Each pointer leads further to the front, so there is an end.
    fn name(&mut self) -> Option<Labels> {
        let (mut labels, mut place, mut front) = (Vec::new(), self.place, self.place);
        let mut end = None;
        loop {
            match *self.message.get(place)? {
                0 => break,
                length @ 1..=63 => {
                    let next = place + 1 + usize::from(length);
                    labels.extend(self.message.get(place..next)?);
                    place = next;
                }
                0xc0.. => {
                    let pointer = u16::from_be_bytes(*self.message.get(place..)?.first_chunk()?);
                    let target = usize::from(pointer & 0x3fff);
                    if target >= front {
                        return None;
                    }
                    end = end.or(Some(place + 2));
                    (place, front) = (target, target);
                }
                _ => return None,
            }
            if labels.len() > LONGEST_NAME {
                return None;
            }
        }
        self.place = end.unwrap_or(place + 1);
        labels.make_ascii_lowercase();
        Some(labels)
    }

    fn record(&mut self) -> Option<Record> {
        let owner = self.name()?;
        let [kind, class, _, _, length] = self.numbers()?;
        let end = self.place + usize::from(length);
        let message = self.message.get(..end)?;
        let mut own = Reader { message, place: self.place };
        self.place = end;
        let is = |wanted: TYPE| kind == u16::from(wanted) && class == u16::from(CLASS::IN);
        let data = if is(TYPE::A) {
            own.array::<4>().map(|bytes| Data::Address(Ipv4Addr::from(bytes).into()))
        } else if is(TYPE::AAAA) {
            own.array::<16>().map(|bytes| Data::Address(Ipv6Addr::from(bytes).into()))
        } else if is(TYPE::CNAME) {
            own.name().map(Data::Alias)
        } else {
            None
        };
        Some(Record { owner, data: data.filter(|_| own.place == end).unwrap_or(Data::Other) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, CNAME, RData};

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

    fn raw(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
        let (kind, length) = (kind.to_be_bytes(), (data.len() as u16).to_be_bytes());
        [owner, &kind, &[0, 1, 0, 0, 0, 60], &length, data].concat()
    }

    /// The same with records as they are written here.
    fn answer_of(records: &[Vec<u8>]) -> Vec<u8> {
        let mut message = answer(&[]);
        message[7] = records.len() as u8;
        [&message[..], &records.concat()].concat()
    }

    #[test]
    fn an_alias_may_have_any_labels_and_other_records_any_bytes() {
        // The name of the question is at 12.
        let asked: &[u8] = &[0xc0, 12];
        for alias in
            [&b"\x06cdn_x-\x07Example\0"[..], b"\x03a*b\x01x\0", b"\x04-a.b\xc0\x0c", b"\x02\xff\0\0"]
        {
            let owner = alias.to_ascii_lowercase();
            let records = [raw(asked, 5, alias), raw(&owner, 1, &[192, 0, 2, 1])];
            assert_eq!(read_it(&answer_of(&records)), is(&["192.0.2.1"]), "{alias:?}");
            // Another one is not meant.
            let records = [raw(asked, 5, alias), raw(b"\x01y\0", 1, &[192, 0, 2, 1])];
            assert_eq!(read_it(&answer_of(&records)), is(&[]), "{alias:?}");
        }
        // A text whose length is wrong, addresses of other lengths, and an alias that leads to itself.
        let good = raw(asked, 1, &[192, 0, 2, 1]);
        for other in [raw(asked, 16, b"\xff\0"), raw(asked, 1, &[1; 5]), raw(asked, 5, b"\xc0\xff")] {
            assert_eq!(read_it(&answer_of(&[other, good.clone()])), is(&["192.0.2.1"]));
        }
        // What ends before its end.
        let whole = answer_of(&[good]);
        assert_eq!(read_it(&whole[..whole.len() - 1]), Reply::Failed);
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
