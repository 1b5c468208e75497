use super::*;
use crate::broker::events;
use crate::broker::names::MOST;
use crate::hosts::HostRule;
use crate::sys::socket::packet_pair;
use crate::testing::Random;
use std::os::fd::OwnedFd;

struct Asked {
    book: Book,
    rules: HostRules,
    teller: Teller,
    supervisor: OwnedFd,
}

impl Asked {
    fn new(rules: &[&str]) -> Asked {
        let [ours, supervisor] = packet_pair().unwrap();
        let allow = rules.iter().map(|rule| HostRule::parse(rule).unwrap()).collect();
        let rules = HostRules { allow, deny: Vec::new() };
        Asked { book: Book::new(Names::default(), false), rules, teller: Teller::new(ours), supervisor }
    }

    fn send(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        self.book.answer(message, &self.rules, &mut self.teller)
    }

    fn told(&self) -> Option<Event> {
        let mut buffer = [0; events::LONGEST];
        let flags = rustix::net::RecvFlags::DONTWAIT;
        let count = rustix::net::recv(&self.supervisor, &mut buffer, flags).ok()?.1;
        Some(Event::decode(&buffer[..count]).unwrap())
    }

    /// The code and the record of an answer.
    fn ask(&mut self, labels: &[&[u8]], kind: u16) -> (RCODE, Option<RData<'static>>) {
        let bytes = self.send(&question(labels, kind)).unwrap();
        // The library does not read a type that it does not know.
        if QTYPE::try_from(kind).is_err() {
            assert_eq!((bytes[..4].to_vec(), bytes.len()), (vec![0x12, 0x34, 0x81, 0x80], 29));
            return (RCODE::NoError, None);
        }
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!(packet.id(), 0x1234);
        let record = packet.answers.first().map(|record| record.rdata.clone().into_owned());
        (packet.rcode(), record)
    }
}

fn question(labels: &[&[u8]], kind: u16) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in labels {
        message.push(label.len() as u8);
        message.extend(*label);
    }
    message.push(0);
    message.extend(kind.to_be_bytes());
    message.extend([0, 1]);
    message
}

const EXAMPLE: &[&[u8]] = &[b"example", b"org"];

fn is_a(address: &str) -> (RCODE, Option<RData<'static>>) {
    let address = address.parse::<Ipv4Addr>().unwrap().to_bits();
    (RCODE::NoError, Some(RData::A(A { address })))
}

#[test]
fn an_allowed_name_has_an_address_of_its_own() {
    let mut asked = Asked::new(&["example.org", "*.example.com"]);
    let name = HostName::parse("example.org").unwrap();
    assert_eq!(asked.ask(EXAMPLE, 1), is_a("198.18.0.2"));
    assert_eq!(asked.told(), Some(Event::Assigned { name, address: Ipv4Addr::new(198, 18, 0, 2) }));
    assert_eq!(asked.ask(&[b"EXAMPLE", b"Org"], 1), is_a("198.18.0.2"));
    assert_eq!(asked.ask(&[b"a", b"example", b"com"], 1), is_a("198.18.0.3"));
    assert!(matches!(asked.told(), Some(Event::Assigned { .. })));
    // AAAA, MX, TXT, SVCB, HTTPS, ANY, and one that nobody knows.
    for kind in [28, 15, 16, 64, 65, 255, 4711] {
        assert_eq!(asked.ask(EXAMPLE, kind), (RCODE::NoError, None), "{kind}");
    }
    let pointer = asked.ask(&[b"2", b"0", b"18", b"198", b"in-addr", b"arpa"], 12);
    assert_eq!(pointer, (RCODE::NoError, Some(RData::PTR(PTR(Name::new("example.org").unwrap())))));
    assert_eq!(asked.told(), None);
}

#[test]
fn another_name_is_refused_and_told_once() {
    let mut asked = Asked::new(&["example.org"]);
    for labels in [&[b"evil", b"www1"], &[b"EVIL", b"www1"]] {
        let labels: Vec<&[u8]> = labels.iter().map(|label| &label[..]).collect();
        assert_eq!(asked.ask(&labels, 28), (RCODE::Refused, None));
    }
    assert_eq!(asked.told(), Some(Event::Refused { name: "evil.www1".into(), kind: "AAAA".into() }));
    assert_eq!(asked.told(), None);
    // Reverse questions of everybody else, zones, and other classes.
    for digits in ["1.0.0.10", "9.0.18.198", "x", "256.0.18.198"] {
        let labels: Vec<&[u8]> = digits.split('.').chain(["in-addr", "arpa"]).map(str::as_bytes).collect();
        assert_eq!(asked.ask(&labels, 12), (RCODE::Refused, None));
    }
    assert_eq!(asked.ask(&[b"1", b"ip6", b"arpa"], 12), (RCODE::Refused, None));
    assert_eq!(asked.ask(EXAMPLE, 252), (RCODE::Refused, None));
    assert_eq!(asked.told(), None);
}

#[test]
fn labels_that_texts_would_read_differently_are_no_name() {
    let mut asked = Asked::new(&["example.org", "*.example.org"]);
    for labels in [
        &[&b"example.org"[..]][..],
        &[b"evil\0", b"example", b"org"],
        &[b"a.b", b"example", b"org"],
        &[b"a\\.b", b"example", b"org"],
        &[b"a b", b"example", b"org"],
        &[b"\xff", b"example", b"org"],
        &[b"-a", b"example", b"org"],
        &[b"127", b"1"],
        &[],
    ] {
        assert_eq!(asked.ask(labels, 1), (RCODE::Refused, None), "{labels:?}");
        assert!(matches!(asked.told(), Some(Event::Refused { .. })), "{labels:?}");
    }
}

#[test]
fn what_is_no_question_is_not_answered_as_one() {
    let mut asked = Asked::new(&["example.org"]);
    let code = |asked: &mut Asked, message: &[u8]| {
        asked.send(message).map(|bytes| Packet::parse(&bytes).unwrap().rcode())
    };
    let good = question(EXAMPLE, 1);
    let changed = |place: usize, value: u8| {
        let mut message = good.clone();
        message[place] = value;
        message
    };
    // An answer, and what is too short to have a header.
    assert_eq!(code(&mut asked, &changed(2, 0x81)), None);
    for end in 0..HEADER {
        assert_eq!(asked.send(&good[..end]), None);
    }
    for message in [
        // No question, two, an answer.
        changed(5, 0),
        changed(5, 2),
        changed(7, 1),
        changed(9, 1),
        changed(11, 3),
        // A pointer to itself, forward, and a label that is too long.
        changed(12, 0xc0),
        changed(12, 64),
        changed(12, 0x80),
        good[..good.len() - 1].to_vec(),
        [&good[..12], &[0xc0, 12, 0, 1, 0, 1]].concat(),
        [&good[..12], &[1, b'a', 0xc0, 12, 0, 1, 0, 1]].concat(),
        question(&[&[b'a'; 63][..]; 5], 1),
        [&good[..], &[0; LONGEST]].concat(),
    ] {
        // What is only too long for one message.
        assert_eq!(code(&mut asked, &message), Some(RCODE::FormatError), "{message:?}");
    }
    assert_eq!(code(&mut asked, &changed(2, 0x21)), Some(RCODE::NotImplemented));
    assert_eq!(asked.told(), None);
}

#[test]
fn edns_is_accepted() {
    let mut asked = Asked::new(&["example.org"]);
    let mut message = question(EXAMPLE, 1);
    message[11] = 1;
    // The root, OPT, 1,232 bytes, flags, a cookie of 8 bytes.
    message.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
    let bytes = asked.send(&message).unwrap();
    let packet = Packet::parse(&bytes).unwrap();
    assert!(packet.opt().is_none() && packet.answers.len() == 1);
}

#[test]
fn localhost_is_this_machine() {
    let mut asked = Asked::new(&[]);
    assert_eq!(asked.ask(&[b"localhost"], 1), is_a("127.0.0.1"));
    assert_eq!(asked.ask(&[b"a", b"localhost"], 1), is_a("127.0.0.1"));
    let (code, record) = asked.ask(&[b"localhost"], 28);
    assert_eq!((code, record), (RCODE::NoError, Some(RData::AAAA(AAAA { address: 1 }))));
    assert_eq!(asked.ask(&[b"localhost"], 16), (RCODE::NoError, None));
}

#[test]
fn names_end_and_the_supervisor_is_told_before_the_command() {
    let mut asked = Asked::new(&["*.example"]);
    let mut number = 0;
    let ask = |asked: &mut Asked, number: usize| {
        asked.send(&question(&[format!("n{number}").as_bytes(), b"example"], 1))
    };
    // Nobody reads: without room for the event there is no answer, and no name is lost by that.
    while ask(&mut asked, number).is_some() {
        number += 1;
    }
    assert!(number > 10 && number < MOST);
    while number < MOST {
        while asked.told().is_some() {}
        assert!(ask(&mut asked, number).is_some());
        number += 1;
    }
    while asked.told().is_some() {}
    for number in MOST..MOST + 3 {
        let bytes = ask(&mut asked, number).unwrap();
        assert_eq!(Packet::parse(&bytes).unwrap().rcode(), RCODE::ServerFailure);
    }
    assert!(matches!(asked.told(), Some(Event::Refused { kind, .. }) if kind == "too many names"));
    assert_eq!(asked.told(), None);
    assert!(asked.ask(&[b"n5", b"example"], 1).1.is_some());
}

#[test]
fn what_a_resolver_tries_first_is_not_there() {
    let mut asked = Asked::new(&["example.org", "*.wild.example"]);
    let tried: &[&[u8]] = &[b"example", b"org", b"ns", b"cluster", b"local"];
    assert_eq!(asked.ask(tried, 1).0, RCODE::Refused);
    assert!(matches!(asked.told(), Some(Event::Refused { .. })));
    asked.book.search = ["ns.cluster.local", "example.org"].map(|name| HostName::parse(name).unwrap()).into();
    for kind in [1, 28] {
        assert_eq!(asked.ask(tried, kind).0, RCODE::NameError);
        assert_eq!(asked.ask(&[b"a", b"wild", b"example", b"example", b"org"], kind).0, RCODE::NameError);
    }
    assert_eq!(asked.told(), None);
    // A name that no rule has is refused with any end, and the domain itself is one that a rule has.
    for other in [&[&b"other"[..], b"org", b"ns", b"cluster", b"local"][..], &[b"xns", b"cluster", b"local"]]
    {
        assert_eq!(asked.ask(other, 1).0, RCODE::Refused);
        assert!(matches!(asked.told(), Some(Event::Refused { .. })));
    }
    assert_eq!(asked.ask(EXAMPLE, 1).0, RCODE::NoError);
}

#[test]
fn in_log_mode_every_name_has_an_address() {
    let mut asked = Asked::new(&[]);
    asked.book = Book::new(Names::default(), true);
    assert_eq!(asked.ask(EXAMPLE, 1), is_a("198.18.0.2"));
    assert!(matches!(asked.told(), Some(Event::Assigned { .. })));
}

#[test]
fn any_bytes_are_answered_without_harm() {
    let mut asked = Asked::new(&["*.org"]);
    let mut random = Random(3);
    for _ in 0..20_000 {
        let mut message = question(EXAMPLE, 1);
        for _ in 0..=random.below(4) {
            let place = random.below(message.len());
            message[place] = random.next() as u8;
        }
        message.truncate(random.below(message.len() * 2));
        if let Some(answer) = asked.send(&message) {
            let is_known = number(&message, end_of_name(&message).unwrap_or(0));
            let is_known = is_known.is_some_and(|kind| QTYPE::try_from(kind).is_ok());
            assert!(!is_known || Packet::parse(&answer).is_ok(), "{message:?}");
        }
        while asked.told().is_some() {}
    }
}
