use super::*;
use crate::broker::serving::tests::one_port;
use simple_dns::rdata::{A, AAAA, RData};
use simple_dns::{CLASS, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};
use std::io::{Read, Write};
use std::net::{Ipv6Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How a server answers: messages for a question that arrived over TCP or not.
type Answers = fn(&Packet<'_>, bool) -> Vec<Vec<u8>>;

/// A server over UDP and TCP, and how many questions it got.
fn server(answers: Answers) -> (SocketAddr, Arc<AtomicUsize>) {
    let (listener, socket) = one_port("127.0.0.1");
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let (of_udp, of_tcp) = (Arc::clone(&count), Arc::clone(&count));
    thread::spawn(move || {
        let mut buffer = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            of_udp.fetch_add(1, Ordering::SeqCst);
            for answer in answers(&Packet::parse(&buffer[..length]).unwrap(), false) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut question).unwrap();
            of_tcp.fetch_add(1, Ordering::SeqCst);
            for answer in answers(&Packet::parse(&question).unwrap(), true) {
                // In pieces.
                let message = [&(answer.len() as u16).to_be_bytes()[..], &answer].concat();
                message.chunks(7).for_each(|part| stream.write_all(part).unwrap());
            }
        }
    });
    (address, count)
}

fn reply(question: &Packet<'_>, four: &str, six: &str) -> Vec<u8> {
    let mut packet = question.clone().into_reply();
    let asked = question.questions[0].clone();
    let is_four = asked.qtype == QTYPE::TYPE(TYPE::A);
    let data = match (is_four, four, six) {
        (true, four, _) if !four.is_empty() => {
            Some(RData::A(A { address: four.parse::<std::net::Ipv4Addr>().unwrap().to_bits() }))
        }
        (false, _, six) if !six.is_empty() => {
            Some(RData::AAAA(AAAA { address: six.parse::<Ipv6Addr>().unwrap().to_bits() }))
        }
        _ => None,
    };
    packet.answers.extend(data.map(|data| ResourceRecord::new(asked.qname, CLASS::IN, 5, data)));
    packet.build_bytes_vec().unwrap()
}

fn refusal(question: &Packet<'_>, code: RCODE) -> Vec<u8> {
    let mut packet = question.clone().into_reply();
    *packet.rcode_mut() = code;
    packet.build_bytes_vec().unwrap()
}

fn lookups(servers: &[SocketAddr], timeout: u64) -> Lookups {
    let mut resolver = Resolver::read("", String::new());
    resolver.servers = servers.to_vec();
    resolver.timeout = Duration::from_millis(timeout);
    Lookups::new(resolver)
}

/// Looks a name up for connection 1.
fn outcome(lookups: &mut Lookups, name: &str) -> Outcome {
    let mut poller = Poller::new().unwrap();
    let name = HostName::parse(name).unwrap();
    if let Some(outcome) = lookups.start(&name, 1, &mut poller, Instant::now()) {
        return outcome;
    }
    loop {
        let ready = poller.wait(false).unwrap();
        let now = Instant::now();
        let due = poller.due(now);
        for (token, ready) in ready {
            if let Some(finished) = lookups.on_ready(token.id, ready, &mut poller, now) {
                assert_eq!(finished.waiting, HashSet::from([1]));
                return finished.outcome;
            }
        }
        for token in due {
            if let Some(finished) = lookups.on_time(token.id, &mut poller, now) {
                return finished.outcome;
            }
        }
    }
}

fn is(addresses: &[&str]) -> Outcome {
    Ok(addresses.iter().map(|text| text.parse().unwrap()).collect())
}

#[test]
fn both_families_are_asked_and_the_answer_is_kept() {
    let (server, count) = server(|question, _| vec![reply(question, "192.0.2.1", "2001:db8::1")]);
    let mut lookups = lookups(&[server], 5000);
    for _ in 0..2 {
        assert_eq!(outcome(&mut lookups, "a.test"), is(&["2001:db8::1", "192.0.2.1"]));
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert!(lookups.queries.is_empty() && lookups.lookups.is_empty() && lookups.names.is_empty());
    // So is the answer that there is none.
    let (without, count) = self::server(|question, _| vec![reply(question, "", "")]);
    let mut lookups = self::lookups(&[without], 5000);
    for _ in 0..2 {
        assert_eq!(outcome(&mut lookups, "a.test"), Err(libc::ENOENT));
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[test]
fn one_family_does_not_wait_long_for_the_other() {
    let (server, _) = server(|question, _| match question.questions[0].qtype {
        QTYPE::TYPE(TYPE::A) => vec![reply(question, "192.0.2.1", "")],
        _ => vec![],
    });
    let start = Instant::now();
    assert_eq!(outcome(&mut lookups(&[server], 5000), "a.test"), is(&["192.0.2.1"]));
    assert!(start.elapsed() < Duration::from_secs(3));
}

#[test]
fn forged_answers_are_passed_over() {
    let (server, _) = server(|question, _| {
        let mut forged = reply(question, "198.51.100.1", "");
        forged[1] ^= 1;
        let mut other = Packet::parse(&forged).unwrap();
        other.set_id(question.id());
        other.questions[0].qname = simple_dns::Name::new("b.test").unwrap();
        let other = other.build_bytes_vec().unwrap();
        vec![forged, other, b"x".to_vec(), reply(question, "192.0.2.1", "")]
    });
    assert_eq!(outcome(&mut lookups(&[server], 5000), "a.test"), is(&["192.0.2.1"]));
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_over_tcp() {
    let (server, count) = server(|question, over_tcp| {
        let mut answer = reply(question, if over_tcp { "192.0.2.1" } else { "" }, "");
        answer[2] |= if over_tcp { 0 } else { (PacketFlag::TRUNCATION.bits() >> 8) as u8 };
        vec![answer]
    });
    assert_eq!(outcome(&mut lookups(&[server], 5000), "a.test"), is(&["192.0.2.1"]));
    assert_eq!(count.load(Ordering::SeqCst), 4);
    let mut lookups = lookups(&[server], 5000);
    lookups.resolver.only_tcp = true;
    assert_eq!(outcome(&mut lookups, "a.test"), is(&["192.0.2.1"]));
    assert_eq!(count.load(Ordering::SeqCst), 6);
}

#[test]
fn the_next_server_is_asked() {
    let (bad, _) = server(|question, _| vec![refusal(question, RCODE::ServerFailure)]);
    let (silent, count) = server(|_, _| vec![]);
    let (good, _) = server(|question, _| vec![reply(question, "192.0.2.1", "")]);
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(outcome(&mut lookups(&[bad, nobody, silent, good], 200), "a.test"), is(&["192.0.2.1"]));
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert_eq!(outcome(&mut lookups(&[silent], 100), "a.test"), Err(libc::ETIMEDOUT));
    assert_eq!(outcome(&mut lookups(&[bad], 5000), "a.test"), Err(libc::EREMOTEIO));
}

#[test]
fn a_name_that_is_not_there_is_an_error() {
    let (server, _) = server(|question, _| match question.questions[0].qname.to_string().as_str() {
        "empty.test" => vec![reply(question, "", "")],
        _ => vec![refusal(question, RCODE::NameError)],
    });
    assert_eq!(outcome(&mut lookups(&[server], 5000), "a.test"), Err(libc::ENOENT));
    assert_eq!(outcome(&mut lookups(&[server], 5000), "empty.test"), Err(libc::ENOENT));
}

/// The answer for the other kind of address may come later.
#[test]
fn a_server_that_denies_a_name_of_one_kind_is_not_believed() {
    fn of_one_kind(question: &Packet<'_>, kind: TYPE) -> Vec<Vec<u8>> {
        match question.questions[0].qtype {
            QTYPE::TYPE(asked) if asked == kind => {
                thread::sleep(Duration::from_millis(100));
                vec![reply(question, "192.0.2.1", "2001:db8::1")]
            }
            _ => vec![refusal(question, RCODE::NameError)],
        }
    }
    let (four, _) = server(|question, _| of_one_kind(question, TYPE::A));
    assert_eq!(outcome(&mut lookups(&[four], 5000), "a.test"), is(&["192.0.2.1"]));
    let (six, _) = server(|question, _| of_one_kind(question, TYPE::AAAA));
    assert_eq!(outcome(&mut lookups(&[six], 5000), "a.test"), is(&["2001:db8::1"]));
}
