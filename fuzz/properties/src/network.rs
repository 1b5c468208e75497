//! What the broker reads: messages of DNS, the first bytes of connections, and rules about hosts.

use sbx::broker::dns::Book;
use sbx::broker::message::{self, Family, Reply};
use sbx::broker::names::Names;
use sbx::broker::proxy::{self, Asked, Form, Wish, plain};
use sbx::broker::said::{Host, LONGEST, Said, http, tls};
use sbx::broker::{Event, Teller};
use sbx::hosts::{HostName, HostPattern, HostRule, HostRules, Protocol};
use sbx::sys::socket::packet_pair;
use sbx::text::tame;

use super::assert_line;
use std::net::{IpAddr, Ipv4Addr};

/// Input: a message. As a question it is answered with its own number, and has an address only if it asks for a name
/// that a rule allows. As an answer it gives no address that is not in it, and as an event one that is written as it
/// was read.
pub fn dns(message: &[u8]) {
    let [ours, theirs] = packet_pair().unwrap();
    let mut teller = Teller::new(ours);
    let allow = vec![HostRule::parse("*.example.org:443").unwrap()];
    let rules = HostRules { allow, deny: Vec::new() };
    let mut book = Book::new(Names::default(), false);
    if let Some(answer) = book.answer(message, &rules, &mut teller) {
        assert!(answer.len() >= 12 && answer[..2] == message[..2] && answer[2] & 0x80 != 0);
        let given = book.names.name_of(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2)));
        assert!(given.is_none_or(|name| name.as_str().ends_with(".example.org")));
        let has_answer = answer[6..8] != [0, 0];
        let is_local = names_of(message).is_some_and(|text| text.ends_with("localhost"));
        assert_eq!(has_answer, given.is_some() || is_local && answer[6..8] != [0, 0], "{message:?}");
    }
    drop(theirs);
    let name = HostName::parse("a.example.org").unwrap();
    for family in [Family::V4, Family::V6] {
        let id = message.first_chunk().map_or(0, |two| u16::from_be_bytes(*two));
        if let Reply::Addresses(addresses) = message::read(message, id, &name, family) {
            for address in addresses {
                let bytes = match address {
                    IpAddr::V4(address) => address.octets().to_vec(),
                    IpAddr::V6(address) => address.octets().to_vec(),
                };
                assert!(address.is_ipv4() == (family == Family::V4));
                assert!(message.windows(bytes.len()).any(|part| part == bytes), "{address}");
            }
        }
    }
    if let Some(event) = Event::decode(message) {
        assert_eq!(Event::decode(&event.encode()), Some(event));
    }
}

/// The labels of the question, in lower case and with dots between them.
fn names_of(message: &[u8]) -> Option<String> {
    let mut labels: Vec<String> = Vec::new();
    let mut rest = message.get(12..)?;
    loop {
        let (length, after) = rest.split_first()?;
        if *length == 0 {
            return Some(labels.join("."));
        }
        let (label, after) = after.split_at_checked(usize::from(*length))?;
        labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        rest = after;
    }
}

/// Input: the beginning of a connection. What it says stays the same whatever follows, and is not said before it is
/// there. The name of a ClientHello is found as it was put in, in records of any size.
pub fn hello(bytes: &[u8]) {
    stays(tls::server_name, bytes);
    let name = &bytes[..bytes.len().min(200)];
    let hello = hello_for(name);
    let expected = if name.is_empty() { Said::Wrong } else { Said::Host(name.to_vec()) };
    let size = 1 + usize::from(bytes.first().copied().unwrap_or(40));
    let records = |size: usize| hello.chunks(size).flat_map(record).collect::<Vec<u8>>();
    assert_eq!(tls::server_name(&records(hello.len())), expected);
    assert_eq!(tls::server_name(&records(size)), expected);
}

fn hello_for(name: &[u8]) -> Vec<u8> {
    let long = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
    let names = long(&[&[0][..], &long(name)].concat());
    let extensions = long(&[&[0, 0][..], &long(&names)].concat());
    let body = [&[3, 3][..], &[9; 32], &[0, 0, 2, 0x13, 1, 1, 0], &extensions].concat();
    [&[1, 0][..], &(body.len() as u16).to_be_bytes(), &body].concat()
}

fn record(contents: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &(contents.len() as u16).to_be_bytes(), contents].concat()
}

/// Input: the beginning of a connection, or a host. The same for a request, whose host is found if it is a name.
pub fn request(bytes: &[u8]) {
    stays(http::host, bytes);
    if HostName::from_ascii(bytes).is_ok() {
        let head = [b"GET / HTTP/1.1\r\nA: b\r\nhost: ", bytes, b":80\r\n\r\n"].concat();
        assert_eq!(http::host(&head), Said::Host(bytes.to_vec()));
        let twice = [b"GET / HTTP/1.1\r\nHost: ", bytes, b"\r\nHOST: ", bytes, b"\r\n\r\n"].concat();
        assert_eq!(http::host(&twice), Said::Wrong);
    }
}

/// Input: what a client of the proxy says first. What it asks for stays the same whatever follows, and is not told
/// before it is there. The head for a host is a request that names this host and no other. The supervisor's own way of
/// saying it is read back.
pub fn proxy(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    for is_greeted in [false, true] {
        let asked = proxy::read(bytes, is_greeted);
        if asked != Asked::Unfinished {
            assert_eq!(proxy::read(&[bytes, b"more"].concat(), is_greeted), asked);
        }
        for end in [bytes.len() / 2, bytes.len().saturating_sub(1)] {
            let before = proxy::read(&bytes[..end], is_greeted);
            assert!(before == Asked::Unfinished || before == asked, "{end}: {before:?}, then {asked:?}");
        }
        let Asked::Wish(length, wish) = asked else { continue };
        assert!(length <= bytes.len() && wish.head.is_empty() != wish.form.is_request());
        let told = plain::write(&wish.host, wish.port).unwrap();
        let (host, port) = (wish.host.clone(), wish.port);
        let same = Wish { host, port, form: Form::Plain, head: Vec::new() };
        assert_eq!(proxy::read(&told, false), Asked::Wish(told.len(), same));
        if wish.form.is_request() {
            let Said::Host(text) = http::host(&wish.head) else { panic!("{:?}", wish.head) };
            let text = String::from_utf8(text).unwrap();
            let bare = text.trim_matches(['[', ']']);
            let said = bare.parse::<IpAddr>().map(|address| Host::Address(address.to_canonical()));
            assert_eq!(said.unwrap_or_else(|_| Host::Name(HostName::parse(&text).unwrap())), wish.host);
            let lines = wish.head.windows(2).filter(|two| two == b"\r\n").count();
            assert_eq!(wish.head.iter().filter(|byte| matches!(byte, b'\r' | b'\n')).count(), 2 * lines);
        }
    }
}

fn stays(read: fn(&[u8]) -> Said, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let said = read(bytes);
    // What is wrong is so for good; what is not there yet may come.
    if said != Said::Unfinished {
        assert_eq!(read(&[bytes, b"more"].concat()), said);
    }
    for end in [bytes.len() / 2, bytes.len().saturating_sub(1)] {
        let before = read(&bytes[..end]);
        assert!(before == Said::Unfinished || before == said, "{end}: {before:?}, then {said:?}");
    }
}

/// Input: a rule. A refused one gives a one-line reason. An accepted one reads back from the way it is shown, covers
/// itself, and allows its own host at its ports.
pub fn hosts(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match HostName::parse(text) {
        Ok(name) => {
            assert!(name.as_str().len() <= 253 && !name.as_str().contains(|c: char| !is_of_name(c)));
            assert_eq!(HostName::from_ascii(name.as_str().as_bytes()), Ok(name));
        }
        Err(error) => assert_line(&error.to_string()),
    }
    for parsed in [HostRule::parse(text), HostRule::parse_denial(text)] {
        let rule = match parsed {
            Ok(rule) => rule,
            Err(error) => {
                // What is quoted is tamed where the message is shown.
                assert_line(&error.to_string().chars().map(tame).collect::<String>());
                continue;
            }
        };
        let shown = rule.to_string();
        assert_line(&shown);
        // All ports is what only a denial can mean, and a protocol what only a permission can.
        let read_back = if rule.ports.is_empty() { HostRule::parse_denial } else { HostRule::parse };
        assert_eq!(read_back(&shown).as_ref(), Ok(&rule));
        assert!(rule.covers(&rule));
        let rules = HostRules { allow: vec![rule.clone()], deny: Vec::new() };
        let denied = HostRules { deny: vec![rule.clone()], ..rules.clone() };
        for port in &rule.ports {
            if let HostPattern::Name(name) = &rule.hosts {
                let spoken = rules.protocols_of_name(name, *port);
                assert!(
                    spoken == [rule.protocol_at(*port)] || spoken.is_empty() && !is_looked_at(&rule, *port)
                );
                assert!(rules.allow_name(name, *port) && rules.know_name(name));
                assert!(!denied.allow_name(name, *port) && !denied.know_name(name));
            }
        }
    }
}

/// Whether what is said at a port has to name the host.
fn is_looked_at(rule: &HostRule, port: u16) -> bool {
    rule.protocol_at(port) != Protocol::Tcp
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.')
}
