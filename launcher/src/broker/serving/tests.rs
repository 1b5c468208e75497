use super::*;
use crate::broker::events;
use crate::broker::relay::reset;
use crate::broker::resolver::Resolver;
use crate::broker::said::tests as hellos;
use crate::broker::{Door, Listener};
use crate::hosts::HostRule;
use crate::sys::socket::packet_pair;
use crate::sys::{privilege, process};
use simple_dns::rdata::{A, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, ResourceRecord, TYPE};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread::{self, JoinHandle};

/// In place of 198.18.0.0/15: of loopback every address is local, as in the run's network all are.
const RANGE: Ipv4Addr = Ipv4Addr::new(127, 18, 0, 0);

/// A broker in a thread, with a nameserver that says 127.0.0.1 for each name of `here`, and 10.0.0.1 for others.
struct Broker {
    supervisor: Option<OwnedFd>,
    dns: SocketAddr,
    listeners: Vec<SocketAddr>,
    thread: Option<JoinHandle<Result<(), SyscallError>>>,
}

struct Made {
    rules: Vec<String>,
    denied: Vec<String>,
    doors: Vec<Door>,
    spoken: Vec<(u16, Protocol)>,
    watches: bool,
    descriptors: u64,
}

impl Made {
    fn new(rules: &[String], doors: &[Door]) -> Made {
        let (rules, doors) = (rules.to_vec(), doors.to_vec());
        Made { rules, denied: Vec::new(), doors, spoken: Vec::new(), watches: false, descriptors: 1000 }
    }

    fn start(self) -> Broker {
        let [channel, supervisor] = packet_pair().unwrap();
        let datagrams = UdpSocket::bind("0.0.0.0:0").unwrap();
        let dns_port = datagrams.local_addr().unwrap().port();
        let questions = TcpListener::bind(("0.0.0.0", dns_port)).unwrap();
        let listeners: Vec<TcpListener> =
            self.doors.iter().map(|_| TcpListener::bind("0.0.0.0:0").unwrap()).collect();
        let ports = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
        questions.set_nonblocking(true).unwrap();
        listeners.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
        let listeners = self.doors.iter().zip(listeners);
        let listeners = listeners.map(|(kind, socket)| Listener { kind: *kind, socket: socket.into() });
        let doors = Doors {
            datagrams: vec![datagrams.into()],
            questions: vec![questions.into()],
            listeners: listeners.collect(),
        };
        let rules = HostRules {
            allow: self.rules.iter().map(|rule| HostRule::parse(rule).unwrap()).collect(),
            deny: self.denied.iter().map(|rule| HostRule::parse_denial(rule).unwrap()).collect(),
        };
        let mut resolver = Resolver::read("", "127.0.0.1 hosts.test\n".to_string());
        resolver.servers = vec![nameserver()];
        let setup = Setup { rules, resolver, watches: self.watches };
        let names = Names::from(RANGE);
        let look_time = Duration::from_millis(300);
        let settings = Settings { names, spoken: self.spoken, look_time, descriptors: self.descriptors };
        // Made by the thread itself, as it holds pointers of epoll's.
        let serve = move || Loop::new(setup, settings, doors, channel)?.run();
        Broker {
            supervisor: Some(supervisor),
            dns: SocketAddr::new(Ipv4Addr::new(127, 9, 9, 9).into(), dns_port),
            listeners: ports,
            thread: Some(thread::spawn(serve)),
        }
    }
}

/// A server of DNS that answers in order: nothing for AAAA.
fn nameserver() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((count, from)) = socket.recv_from(&mut buffer) {
            let mut packet = Packet::parse(&buffer[..count]).unwrap().into_reply();
            let question = packet.questions.first().unwrap().clone();
            let name = question.qname.to_string();
            if question.qtype == TYPE::A.into() {
                let address =
                    if name.contains("here") { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(10, 0, 0, 1) };
                let data = RData::A(A { address: address.to_bits() });
                packet.answers.push(ResourceRecord::new(question.qname, CLASS::IN, 5, data));
            }
            packet.set_flags(PacketFlag::RECURSION_AVAILABLE);
            let _ = socket.send_to(&packet.build_bytes_vec().unwrap(), from);
        }
    });
    address
}

impl Broker {
    fn question(name: &str) -> Vec<u8> {
        let mut packet = Packet::new_query(9);
        let name = Name::new_unchecked(name);
        packet.questions.push(simple_dns::Question::new(name, TYPE::A.into(), CLASS::IN.into(), false));
        packet.build_bytes_vec().unwrap()
    }

    /// The address that stands for a name.
    fn ask(&self, name: &str) -> Option<Ipv4Addr> {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect(self.dns).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket.send(&Broker::question(name)).unwrap();
        let mut buffer = [0; 512];
        let count = socket.recv(&mut buffer).unwrap();
        first_address(&buffer[..count])
    }

    /// A connection to a name through a door.
    fn connect(&self, name: &str, door: usize) -> TcpStream {
        let address = self.ask(name).unwrap();
        self.connect_to(address, door)
    }

    fn connect_to(&self, address: Ipv4Addr, door: usize) -> TcpStream {
        let stream = TcpStream::connect((address, self.listeners[door].port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn told(&self) -> Event {
        let mut buffer = [0; events::LONGEST];
        let supervisor = self.supervisor.as_ref().unwrap();
        let count = rustix::io::read(supervisor, &mut buffer).unwrap();
        Event::decode(&buffer[..count]).unwrap()
    }

    /// The next event that is not about names.
    fn next(&self) -> Event {
        loop {
            match self.told() {
                Event::Assigned { .. } => {}
                event => return event,
            }
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        drop(self.supervisor.take());
        let ended = self.thread.take().unwrap().join();
        assert!(thread::panicking() || ended.unwrap().is_ok());
    }
}

fn first_address(message: &[u8]) -> Option<Ipv4Addr> {
    let packet = Packet::parse(message).unwrap();
    let record = packet.answers.first()?;
    match &record.rdata {
        RData::A(record) => Some(Ipv4Addr::from_bits(record.address)),
        _ => None,
    }
}

/// A server outside that handles one connection after the other.
fn server(serve: impl Fn(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().for_each(|stream| serve(stream.unwrap())));
    port
}

/// Sends back what it gets, and ends when that ends.
fn echo() -> u16 {
    server(|mut stream| {
        thread::spawn(move || {
            let mut other = stream.try_clone().unwrap();
            let _ = std::io::copy(&mut stream, &mut other);
            let _ = other.shutdown(Shutdown::Write);
        });
    })
}

/// Rules for names whose addresses are this machine's.
fn here(port: u16) -> Vec<String> {
    vec![format!("*.here.test:{port}"), format!("127.0.0.1:{port}"), format!("private.test:{port}")]
}

fn is_reset(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
}

#[test]
fn a_connection_to_a_name_reaches_its_host() {
    let port = echo();
    let broker = Made::new(&here(port), &[Door::Rule(port)]).start();
    let mut stream = broker.connect("a.here.test", 0);
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| (number * 7) as u8).collect();
    let mut other = stream.try_clone().unwrap();
    let sent = bytes.clone();
    let sender = thread::spawn(move || {
        other.write_all(&sent).unwrap();
        other.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    assert!(received == bytes, "{} bytes", received.len());
    let host = "a.here.test".to_string();
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    assert_eq!(broker.next(), Event::Opened { host: host.clone(), port, address });
    let (sent, received) = (bytes.len() as u64, bytes.len() as u64);
    assert_eq!(broker.next(), Event::Closed { host, port, sent, received });
}

#[test]
fn questions_are_answered_over_tcp_too() {
    let broker = Made::new(&here(1), &[]).start();
    let mut stream = TcpStream::connect(broker.dns).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answers = Vec::new();
    // Two at once, then one in pieces.
    let question = Broker::question("a.here.test");
    let message = [&(question.len() as u16).to_be_bytes()[..], &question].concat();
    stream.write_all(&[&message[..], &message].concat()).unwrap();
    for byte in &message {
        stream.write_all(&[*byte]).unwrap();
    }
    for _ in 0..3 {
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut answer).unwrap();
        answers.push(first_address(&answer).unwrap());
    }
    assert_eq!(answers, [broker.ask("a.here.test").unwrap(); 3]);
    // One that is too long, and one that is none.
    for message in [&[0xff, 0xff][..], &[0, 1, 7]] {
        let mut stream = TcpStream::connect(broker.dns).unwrap();
        stream.write_all(message).unwrap();
        assert!(matches!(stream.read(&mut [0; 9]), Ok(0) | Err(_)));
    }
    let many: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(broker.dns).unwrap()).collect();
    assert!(broker.ask("b.here.test").is_some());
    drop(many);
}

#[test]
fn what_no_rule_allows_is_reset() {
    let port = echo();
    let made = Made { denied: vec!["no.here.test".into()], ..Made::new(&here(port), &[Door::Rule(port)]) };
    let broker = made.start();
    assert_eq!(broker.ask("evil.test"), None);
    assert_eq!(broker.ask("no.here.test"), None);
    for name in ["evil.test", "no.here.test"] {
        assert_eq!(broker.told(), Event::Refused { name: name.into(), kind: "A".into() });
    }
    // An address that stands for nothing, a private one behind an allowed name, and one of another machine's.
    assert!(is_reset(&mut broker.connect_to(Ipv4Addr::new(127, 18, 7, 7), 0)));
    let (host, errno) = ("127.18.7.7".to_string(), libc::EADDRNOTAVAIL);
    assert_eq!(broker.next(), Event::Failed { host, port, errno });
    assert!(is_reset(&mut broker.connect("private.test", 0)));
    let (host, errno) = ("private.test".to_string(), libc::EACCES);
    assert_eq!(broker.next(), Event::Failed { host, port, errno });
    assert!(is_reset(&mut broker.connect_to(Ipv4Addr::new(127, 0, 0, 2), 0)));
    let host = "127.0.0.2".to_string();
    assert_eq!(broker.next(), Event::Failed { host, port, errno });
    // An address that a rule names.
    let mut stream = broker.connect_to(Ipv4Addr::LOCALHOST, 0);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    assert!(matches!(broker.next(), Event::Opened { host, .. } if host == "127.0.0.1"));
}

#[test]
fn a_port_without_a_server_is_told_and_reset() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let broker = Made::new(&here(port), &[Door::Rule(port), Door::HostPort(port)]).start();
    assert!(is_reset(&mut broker.connect("a.here.test", 0)));
    let errno = libc::ECONNREFUSED;
    assert_eq!(broker.next(), Event::Failed { host: "a.here.test".into(), port, errno });
    assert!(is_reset(&mut broker.connect_to(Ipv4Addr::LOCALHOST, 1)));
    assert_eq!(broker.next(), Event::Failed { host: "localhost".into(), port, errno });
}

#[test]
fn a_port_of_this_machine_is_brought_inside() {
    let port = echo();
    let broker = Made::new(&[], &[Door::HostPort(port)]).start();
    let mut stream = broker.connect_to(Ipv4Addr::LOCALHOST, 0);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    assert!(matches!(broker.next(), Event::Opened { host, .. } if host == "localhost"));
}

#[test]
fn names_of_the_file_of_hosts_come_first() {
    let port = echo();
    let rules = [format!("hosts.test:{port}"), format!("127.0.0.0/8:{port}")];
    let broker = Made::new(&rules, &[Door::Rule(port)]).start();
    let mut stream = broker.connect("hosts.test", 0);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
}

#[test]
fn half_an_end_is_passed_on_and_so_is_a_reset() {
    // The first server answers after the end; the second ends first; the third breaks off.
    let late = server(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    });
    let first = server(|mut stream| {
        stream.write_all(b"bye").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"hello");
    });
    let breaks = server(|mut stream| {
        stream.read_exact(&mut [0; 5]).unwrap();
        reset(&stream.into());
    });
    let (tell, told) = std::sync::mpsc::channel();
    let waits = server(move |mut stream| {
        stream.read_exact(&mut [0; 5]).unwrap();
        tell.send(is_reset(&mut stream)).unwrap();
    });
    let rules: Vec<String> = [late, first, breaks, waits].into_iter().flat_map(here).collect();
    let broker = Made::new(&rules, &[late, first, breaks, waits].map(Door::Rule)).start();
    let connect = |door| {
        let mut stream = broker.connect("a.here.test", door);
        stream.write_all(b"hello").unwrap();
        stream
    };
    let mut stream = connect(0);
    stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"hello");
    let mut stream = connect(1);
    stream.read_to_end(&mut all).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(all, b"hellobye");
    assert!(is_reset(&mut connect(2)));
    let stream = connect(3);
    while !matches!(broker.next(), Event::Opened { port, .. } if port == waits) {}
    reset(&stream.into());
    assert!(told.recv_timeout(Duration::from_secs(10)).unwrap());
}

#[test]
fn who_does_not_read_is_not_read_for() {
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    let port = server(move |mut stream| {
        told.lock().unwrap().recv().unwrap();
        let count = std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
        stream.write_all(&count.to_be_bytes()).unwrap();
    });
    let broker = Made::new(&here(port), &[Door::Rule(port)]).start();
    let mut stream = broker.connect("a.here.test", 0);
    stream.set_nonblocking(true).unwrap();
    let (mut sent, part) = (0_u64, vec![7; 65_536]);
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_millis(500) {
        match stream.write(&part) {
            Ok(count) => {
                sent += count as u64;
                last = Instant::now();
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
    // Both sockets have buffers, and so has the pipe.
    assert!(sent < 40_000_000, "{sent}");
    // Others are served meanwhile.
    assert!(broker.ask("b.here.test").is_some());
    tell.send(()).unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut count = [0; 8];
    stream.read_exact(&mut count).unwrap();
    assert_eq!(u64::from_be_bytes(count), sent);
}

#[test]
fn what_is_said_has_to_match() {
    let (tls, http) = (echo(), echo());
    let rules: Vec<String> = [tls, http].into_iter().flat_map(here).collect();
    let spoken = vec![(tls, Protocol::Tls), (http, Protocol::Http)];
    let made = Made { spoken, ..Made::new(&rules, &[Door::Rule(tls), Door::Rule(http)]) };
    let broker = made.start();
    let hello = |name: &[u8]| hellos::record(&hellos::hello(&hellos::server_name(name)));
    let good = hello(b"a.here.test");
    let mut stream = broker.connect("a.here.test", 0);
    stream.write_all(&good).unwrap();
    let mut back = vec![0; good.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, good);
    // Slowly, in small records.
    let mut stream = broker.connect("a.here.test", 0);
    let split: Vec<u8> = good[5..].chunks(9).flat_map(hellos::record).collect();
    for bytes in split.chunks(3) {
        stream.write_all(bytes).unwrap();
        thread::sleep(Duration::from_micros(100));
    }
    let mut back = vec![0; split.len()];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(back, split);
    let head = b"GET / HTTP/1.1\r\nHost: a.here.test\r\n\r\n";
    let mut stream = broker.connect("a.here.test", 1);
    stream.write_all(head).unwrap();
    stream.read_exact(&mut [0; 20]).unwrap();
    drop(stream);
    let mut mismatches = 0;
    let mut mismatch = |bytes: &[u8], door: usize| {
        let mut stream = broker.connect("a.here.test", door);
        stream.write_all(bytes).unwrap();
        assert!(is_reset(&mut stream), "{bytes:?}");
        loop {
            match broker.next() {
                Event::Mismatch { host, said, protocol, .. } => {
                    assert_eq!((host.as_str(), protocol == Protocol::Http), ("a.here.test", door == 1));
                    mismatches += 1;
                    return said;
                }
                Event::Opened { .. } | Event::Closed { .. } => {}
                event => panic!("{event:?}"),
            }
        }
    };
    assert_eq!(mismatch(&hello(b"b.here.test"), 0).as_deref(), Some("b.here.test"));
    assert_eq!(mismatch(&hellos::record(&hellos::hello(&[])), 0), None);
    assert_eq!(mismatch(b"SSH-2.0-x\r\n", 0), None);
    assert_eq!(mismatch(b"GET / HTTP/1.1\r\nHost: b.here.test\r\n\r\n", 1).as_deref(), Some("b.here.test"));
    assert_eq!(mismatches, 4);
    // It says nothing, or not enough in time.
    for begun in [0, 30] {
        let mut stream = broker.connect("a.here.test", 0);
        stream.write_all(&good[..begun]).unwrap();
        let start = Instant::now();
        assert!(is_reset(&mut stream) && start.elapsed() > Duration::from_millis(200));
    }
    // It ends in the middle.
    let mut stream = broker.connect("a.here.test", 0);
    stream.write_all(&good[..30]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(is_reset(&mut stream));
}

#[test]
fn in_log_mode_all_is_let_through_and_told() {
    let port = echo();
    let made =
        Made { watches: true, spoken: vec![(port, Protocol::Tls)], ..Made::new(&[], &[Door::Rule(port)]) };
    let broker = made.start();
    let mut stream = broker.connect("any.here.test", 0);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    let mut told = [broker.next(), broker.next()];
    told.sort_by_key(|event| matches!(event, Event::Mismatch { .. }));
    assert!(matches!(&told[0], Event::Opened { host, .. } if host == "any.here.test"));
    assert!(matches!(&told[1], Event::Mismatch { said: None, .. }));
}

#[test]
fn without_room_connections_wait_their_turn() {
    let port = echo();
    // Room for four at a time.
    let made = Made { descriptors: RESERVED + 16, ..Made::new(&here(port), &[Door::Rule(port)]) };
    let broker = made.start();
    let address = broker.ask("a.here.test").unwrap();
    let mut streams: Vec<TcpStream> = (0..20).map(|_| broker.connect_to(address, 0)).collect();
    for stream in &mut streams {
        stream.write_all(b"hello").unwrap();
    }
    for mut stream in streams {
        stream.read_exact(&mut [0; 5]).unwrap();
    }
}

#[test]
fn without_descriptors_it_goes_on_later() {
    let port = echo();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let [channel, supervisor] = packet_pair().unwrap();
    let mut parts = Some((listener, channel));
    let child = crate::sys::probe::fork().unwrap();
    if child == 0 {
        let Some((listener, channel)) = parts.take() else { process::exit_now(9) };
        let listener = Listener { kind: Door::HostPort(port), socket: listener.into() };
        let (datagrams, questions) = (Vec::new(), Vec::new());
        let doors = Doors { datagrams, questions, listeners: vec![listener] };
        crate::sys::descriptor::close_all_but(&mut vec![
            channel.as_raw_fd(),
            doors.listeners[0].socket.as_raw_fd(),
        ]);
        let _ = privilege::limit(privilege::Limit::OpenFiles, 300, 300);
        let _ = crate::sys::signal::dispose(libc::SIGPIPE, crate::sys::signal::Disposition::Ignore);
        let setup = Setup {
            rules: HostRules::default(),
            resolver: Resolver::read("", String::new()),
            watches: false,
        };
        // It believes that there are more than the kernel gives.
        let ended = Loop::new(setup, Settings::new(100_000), doors, channel).and_then(|mut new| new.run());
        process::exit_now(i32::from(ended.is_err()));
    }
    drop(parts);
    let connect = || {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    };
    // More than have room, and fewer than the queue of the listener takes besides.
    let mut streams: Vec<TcpStream> = (0..240).map(|_| connect()).collect();
    let served =
        |stream: &mut TcpStream| stream.write_all(b"hello").is_ok() && stream.read_exact(&mut [0; 5]).is_ok();
    let count = streams.iter_mut().take(50).filter_map(|stream| served(stream).then_some(())).count();
    assert!(count > 0, "{count}");
    drop(streams);
    let again = (0..50).any(|_| {
        thread::sleep(Duration::from_millis(100));
        served(&mut connect())
    });
    assert!(again);
    drop(supervisor);
    assert_eq!(process::wait(Some(child), true, false), Some((child, process::Change::Exited(0))));
}

#[test]
fn many_connections_are_served_at_once() {
    let port = echo();
    let made = Made { descriptors: 100_000, ..Made::new(&here(port), &[Door::Rule(port)]) };
    let broker = made.start();
    let address = broker.ask("a.here.test").unwrap();
    let mut streams: Vec<TcpStream> = (0..300).map(|_| broker.connect_to(address, 0)).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        stream.write_all(&[number as u8; 1000]).unwrap();
    }
    for (number, stream) in streams.iter_mut().enumerate() {
        let mut back = [0; 1000];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(back, [number as u8; 1000]);
    }
}

#[test]
fn the_end_of_the_supervisor_is_the_end() {
    let port = echo();
    let broker = Made::new(&here(port), &[Door::Rule(port)]).start();
    let mut stream = broker.connect("a.here.test", 0);
    stream.write_all(b"hello").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    // What has happened so far is told when only its sending side is closed.
    rustix::net::shutdown(broker.supervisor.as_ref().unwrap(), rustix::net::Shutdown::Write).unwrap();
    assert!(matches!(broker.next(), Event::Opened { .. }));
    assert!(matches!(broker.next(), Event::Closed { sent: 5, received: 5, .. }));
    drop(broker);
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
}
