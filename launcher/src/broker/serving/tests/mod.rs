use super::*;
use crate::broker::events;
use crate::broker::relay::reset;
use crate::broker::resolver::Resolver;
use crate::broker::said::tests as hellos;
use crate::broker::{Door, Listener};
use crate::hosts::{HostRule, Range};
use crate::sys::socket::packet_pair;
use crate::sys::{privilege, process};
use simple_dns::rdata::{A, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, ResourceRecord, TYPE};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread::{self, JoinHandle};

/// In place of 198.18.0.0/15: of loopback every address is local, as in the run's network all are.
const RANGE: &str = "127.18.0.0/15";

/// For how long the first bytes are waited for.
const LOOK_TIME: Duration = Duration::from_millis(300);

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
    watches: bool,
    descriptors: u64,
}

impl Made {
    fn new(rules: &[String], doors: &[Door]) -> Made {
        let (rules, doors) = (rules.to_vec(), doors.to_vec());
        Made { rules, denied: Vec::new(), doors, watches: false, descriptors: 1000 }
    }

    fn start(self) -> Broker {
        let [channel, supervisor] = packet_pair().unwrap();
        let (questions, datagrams) = one_port("0.0.0.0");
        let dns_port = datagrams.local_addr().unwrap().port();
        let listeners: Vec<TcpListener> =
            self.doors.iter().map(|_| TcpListener::bind("0.0.0.0:0").unwrap()).collect();
        let ports = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
        questions.set_nonblocking(true).unwrap();
        listeners.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
        let listeners = self.doors.iter().zip(listeners);
        let listeners = listeners.map(|(kind, socket)| Listener { kind: *kind, socket: socket.into() });
        let datagrams = OwnedFd::from(datagrams);
        datagram::tell_destinations(&datagrams).unwrap();
        let doors = Doors {
            datagrams: vec![datagrams],
            questions: vec![questions.into()],
            listeners: listeners.collect(),
        };
        let rules = HostRules {
            allow: self.rules.iter().map(|rule| HostRule::parse(rule).unwrap()).collect(),
            deny: self.denied.iter().map(|rule| HostRule::parse_denial(rule).unwrap()).collect(),
        };
        let mut resolver = Resolver::read("", "127.0.0.1 hosts.test\n".to_string());
        resolver.servers = vec![nameserver()];
        let setup = Setup { rules, resolver, watches: self.watches, run: RunsEnd::Inside, routes: None };
        let names = Names::from(Range::parse(RANGE).unwrap());
        let look_time = LOOK_TIME;
        let descriptors = self.descriptors;
        let settings = Settings { names, look_time, descriptors, reaches_loopback: true };
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

/// A TCP and a UDP socket of one port.
pub fn one_port(host: &str) -> (TcpListener, UdpSocket) {
    let pair = || {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        // Another program may have this one.
        UdpSocket::bind((host, port)).ok().map(|datagrams| (listener, datagrams))
    };
    (0..100).find_map(|_| pair()).unwrap()
}

/// A server of DNS that answers in order: nothing for AAAA. A name with `late` takes longer than bytes are waited for.
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
                thread::sleep(LOOK_TIME * if name.contains("late") { 3 } else { 0 });
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

    /// A connection is reset, and this is told of it.
    fn fails(&self, mut stream: TcpStream, host: &str, port: u16, errno: i32) {
        let near = stream.local_addr().unwrap();
        assert!(is_reset(&mut stream));
        let told = self.next();
        let Event::Failed { ends: ends @ Some((caller, _)), .. } = told else { panic!("{told:?}") };
        assert_eq!((&told, caller), (&Event::Failed { host: host.into(), port, errno, ends }, near));
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

mod bounds;
mod finishing;
mod relaying;
