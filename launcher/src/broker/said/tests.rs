use super::*;
use crate::hosts::HostRule;
use crate::testing::Random;

/// An extension with one server name.
pub(in crate::broker) fn server_name(name: &[u8]) -> Vec<u8> {
    extension(0, &long(&[&[0][..], &long(name)].concat()))
}

pub(in crate::broker) fn extension(kind: u16, contents: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &long(contents)].concat()
}

fn long(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

/// The handshake message with these extensions.
pub(in crate::broker) fn hello(extensions: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(long(extensions));
    let length = (body.len() as u32).to_be_bytes();
    [&[1][..], &length[1..], &body].concat()
}

pub(in crate::broker) fn record(contents: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &long(contents)].concat()
}

fn is_host(name: &str) -> Said {
    Said::Host(name.as_bytes().to_vec())
}

#[test]
fn the_server_name_is_found_however_the_hello_is_split() {
    let extensions = [extension(0x10, b"\0\x03\x02h2"), server_name(b"example.org")].concat();
    let hello = hello(&extensions);
    let whole = record(&hello);
    assert_eq!(tls::server_name(&whole), is_host("example.org"));
    assert_eq!(tls::server_name(&[&whole[..], b"more"].concat()), is_host("example.org"));
    for end in 0..whole.len() {
        assert_eq!(tls::server_name(&whole[..end]), Said::Unfinished, "{end}");
    }
    for size in [1, 2, 3, 4, 5, 50] {
        let split: Vec<u8> = hello.chunks(size).flat_map(record).collect();
        assert_eq!(tls::server_name(&split), is_host("example.org"), "{size}");
        for end in 0..split.len() {
            assert_eq!(tls::server_name(&split[..end]), Said::Unfinished, "{size} {end}");
        }
    }
}

#[test]
fn what_is_no_hello_is_wrong() {
    let name = server_name(b"example.org");
    let good = record(&hello(&name));
    for bytes in [
        b"GET / HTTP/1.1\r\n".to_vec(),
        b"SSH-2.0-OpenSSH".to_vec(),
        vec![0x80],
        vec![22, 2],
        // Another record, another message, an empty record, one that is too long.
        [&[23], &good[1..]].concat(),
        record(&[&[2], &hello(&name)[1..]].concat()),
        vec![22, 3, 1, 0, 0],
        vec![22, 3, 1, 0x41, 1],
        record(&[1, 1, 0, 0]),
        // Two names: in two extensions, in one list; none; of another type; with bytes behind.
        record(&hello(&[name.clone(), name.clone()].concat())),
        record(&hello(&extension(0, &long(&[&[0][..], &long(b"a"), &[0], &long(b"b")].concat())))),
        record(&hello(&extension(0, &[]))),
        record(&hello(&extension(0, &long(&[])))),
        record(&hello(&server_name(b""))),
        record(&hello(&extension(0, &long(&[&[1][..], &long(b"a")].concat())))),
        record(&hello(&extension(0, &[&long(&[&[0][..], &long(b"a")].concat())[..], b"x"].concat()))),
        record(&hello(&name[..name.len() - 1])),
    ] {
        assert_eq!(tls::server_name(&bytes), Said::Wrong, "{bytes:?}");
    }
    assert_eq!(tls::server_name(&record(&hello(&[]))), Said::Nothing);
    assert_eq!(tls::server_name(&record(&hello(&extension(10, b"x")))), Said::Nothing);
}

#[test]
fn a_second_hello_is_found_where_the_server_asks_for_it() {
    let asks = |random: &[u8]| {
        let body = [&[3, 3][..], random, &[0, 0x13, 1, 0]].concat();
        record(&[&[2, 0, 0, body.len() as u8][..], &body].concat())
    };
    // The word that the bytes are made of stands in RFC 8446, 4.1.3.
    let retry = asks(&<sha2::Sha256 as sha2::Digest>::digest("HelloRetryRequest"));
    assert_eq!((tls::asks_again(&retry), tls::asks_again(&asks(&[7; 32]))), (Some(true), Some(false)));
    (0..43).for_each(|end| assert_eq!(tls::asks_again(&retry[..end]), None, "{end}"));
    let alert = [21, 3, 3, 0, 2, 1, 112];
    assert_eq!(tls::asks_again(&[&alert[..], &retry].concat()), Some(true));
    assert_eq!(tls::asks_again(b"HTTP/1.1 400"), Some(false));
    // It may be split, with empty records and others in front of it and between.
    let (message, changes) = (&retry[5..], [20, 3, 3, 0, 1, 1]);
    for length in [1, 2, 20, 37, 38] {
        let split: Vec<u8> =
            message.chunks(length).flat_map(|part| [&changes[..], &record(part)].concat()).collect();
        let split = [&[22, 3, 3, 0, 0][..], &split].concat();
        assert_eq!(tls::asks_again(&split), Some(true), "{length}");
        (0..40).for_each(|end| assert_eq!(tls::asks_again(&split[..end]), None, "{length}: {end}"));
    }
    assert_eq!(tls::asks_again(&[&record(&message[..5])[..], &record(&[3; 34])].concat()), Some(false));
    let second = record(&hello(&server_name(b"example.org")));
    let skipped = [20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 3, 1, 2, 3];
    assert_eq!(tls::second_server_name(&[&skipped[..], &second].concat()), is_host("example.org"));
    assert_eq!(tls::second_server_name(&second), is_host("example.org"));
    (0..14).for_each(|end| assert_eq!(tls::second_server_name(&skipped[..end]), Said::Unfinished, "{end}"));
    assert_eq!(tls::second_server_name(&[&skipped[..], &retry].concat()), Said::Wrong);
    // What is behind a hello comes before the answer to it.
    let both = [hello(&server_name(b"example.org")), hello(&server_name(b"evil.example"))].concat();
    assert_eq!(tls::server_name(&record(&both)), Said::Wrong);
    let longer = record(&both);
    assert_eq!(tls::server_name(&longer[..longer.len() - 10]), Said::Wrong);
    assert_eq!(tls::length(&[&second[..], b"more"].concat()), second.len());
}

#[test]
fn the_host_of_a_request_is_found() {
    for (request, said) in [
        ("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", is_host("example.org")),
        ("GET / HTTP/1.1\r\nA: b\r\nhOST:example.org:80\r\n\r\nbody", is_host("example.org")),
        ("OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", is_host("[::1]")),
        ("GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n", is_host("example.org")),
        ("GET HTTP://EXAMPLE.org:80?x HTTP/1.1\r\nHost: example.org\r\n\r\n", is_host("example.org")),
        ("GET http://example.org HTTP/1.0\r\n\r\n", is_host("example.org")),
        ("GET / HTTP/1.0\r\n\r\n", Said::Nothing),
        ("GET / HTTP/1.1\r\nHost: exam", Said::Unfinished),
        ("", Said::Unfinished),
        ("GET http://evil.example/ HTTP/1.1\r\nHost: example.org\r\n\r\n", Said::Wrong),
        ("GET http://example.org@evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", Said::Wrong),
        ("GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n", Said::Wrong),
        ("GET / HTTP/1.1\r\nHost: example.org\r\nHost: example.org\r\n\r\n", Said::Wrong),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", Said::Wrong),
        ("GET / HTTP/1.1\r\nHost: example.org:x\r\n\r\n", Said::Wrong),
        ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", Said::Wrong),
        ("GET / HTTP/1.1\r\nHost : example.org\r\n\r\n", Said::Wrong),
        ("GET / HTTP/1.1\r\n Host: example.org\r\n\r\n", Said::Wrong),
        ("GET / HTTP/1.1\r\nHost: example.org\r\n x\r\n\r\n", Said::Wrong),
        ("\r\nGET / HTTP/1.1\r\nHost: example.org\r\n\r\n", Said::Wrong),
        ("GET / HTTP/1.1\nHost: example.org\n\n", Said::Wrong),
        ("GET / HTTP/1.1\r\nA: b\nHost: example.org\r\n\r\n", Said::Wrong),
        ("GET / HTTP/1.1\r\nHost: example.org\r\n\n\r\nHost: evil.example\r\n\r\n", Said::Wrong),
        ("GET / HTTP/1.1\r\nHost: example.org\r\n\r\nbody\n", is_host("example.org")),
        ("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n", Said::Wrong),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Said::Wrong),
        ("\u{16}\u{3}\u{1}", Said::Wrong),
    ] {
        assert_eq!(http::host(request.as_bytes()), said, "{request:?}");
    }
    let many = format!("GET / HTTP/1.1\r\n{}Host: example.org\r\n\r\n", "A: b\r\n".repeat(200));
    assert_eq!(http::host(many.as_bytes()), Said::Wrong);
}

#[test]
fn what_is_said_has_to_be_the_host() {
    let allow = ["example.org", "a.example:443", "192.0.2.0/24:443", "192.0.2.0/24:80"];
    let rules =
        HostRules { allow: allow.map(|rule| HostRule::parse(rule).unwrap()).into(), deny: Vec::new() };
    let name = Host::Name(HostName::parse("example.org").unwrap());
    let address = Host::Address("192.0.2.1".parse().unwrap());
    let tls = |said: &[u8], host: &Host| {
        let extensions = if said.is_empty() { Vec::new() } else { server_name(said) };
        judge(Part::First(Protocol::Tls), &record(&hello(&extensions)), host, 443, &rules)
    };
    let mismatch = |said: &str| Verdict::Mismatch(Some(said.to_string()));
    assert_eq!(tls(b"EXAMPLE.org.", &name), Verdict::Matches);
    assert_eq!(tls(b"a.example", &name), mismatch("a.example"));
    assert_eq!(tls(b"evil.example\0.example.org", &name), mismatch("evil.example?.example.org"));
    assert_eq!(tls(b"", &name), Verdict::Mismatch(None));
    assert_eq!(tls(b"", &address), Verdict::Matches);
    assert_eq!(tls(b"a.example", &address), Verdict::Matches);
    assert_eq!(tls(b"evil.example", &address), mismatch("evil.example"));
    assert_eq!(tls(b"192.0.2.1", &address), Verdict::Matches);
    let http =
        |text: &str, host: &Host| judge(Part::First(Protocol::Http), text.as_bytes(), host, 80, &rules);
    assert_eq!(http("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", &name), Verdict::Matches);
    assert_eq!(http("GET / HTTP/1.0\r\n\r\n", &name), Verdict::Mismatch(None));
    assert_eq!(http("GET / HTTP/1.0\r\n\r\n", &address), Verdict::Matches);
    assert_eq!(http("GET / HTTP/1.1\r\nHost: 192.0.2.1:80\r\n\r\n", &address), Verdict::Matches);
    assert_eq!(http("GET / HTTP/1.1\r\nHost: 192.0.2.2\r\n\r\n", &address), mismatch("192.0.2.2"));
    assert_eq!(http("GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", &name), mismatch("192.0.2.1"));
}

#[test]
fn looking_ends_at_some_length() {
    let name = Host::Name(HostName::parse("example.org").unwrap());
    let rules = HostRules::default();
    let judge = |part, bytes: &[u8]| judge(part, bytes, &name, 443, &rules);
    let head = format!("GET / HTTP/1.1\r\nA: {}", "b".repeat(LONGEST));
    assert_eq!(judge(Part::First(Protocol::Http), &head.as_bytes()[..LONGEST - 1]), Verdict::Unfinished);
    assert_eq!(judge(Part::First(Protocol::Http), &head.as_bytes()[..LONGEST]), Verdict::Mismatch(None));
    let long = hello(&[extension(21, &vec![0; 15_000]), server_name(b"example.org")].concat());
    let records: Vec<u8> = long.chunks(2).flat_map(record).collect();
    assert_eq!(judge(Part::First(Protocol::Tls), &records[..LONGEST]), Verdict::Mismatch(None));
    let one = hello(&[extension(21, &vec![0; 20_000]), server_name(b"example.org")].concat());
    assert_eq!(judge(Part::First(Protocol::Tls), &record(&one[..1000])), Verdict::Mismatch(None));
}

#[test]
fn any_bytes_are_read_without_harm() {
    let mut random = Random(11);
    let head = b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n".to_vec();
    for good in [record(&hello(&server_name(b"example.org"))), head] {
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..=random.below(4) {
                let place = random.below(bytes.len());
                bytes[place] = random.next() as u8;
            }
            tls::server_name(&bytes);
            http::host(&bytes);
        }
    }
}
