//! What the broker tells the supervisor.
//!
//! The supervisor does not trust the broker: a message is bounded, and what is not well-formed is no event.

use crate::hosts::{HostName, Protocol};
use crate::sys::socket::Ends;
use crate::sys::{OfCall, SyscallError};
use rustix::net::SendFlags;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// Maximum length of a text in an event: a name in full, with some room for an address in brackets.
const LONGEST_TEXT: usize = 255;

/// Maximum length of an event.
pub const LONGEST: usize = 600;

/// Maximum number of bytes of events that wait for the supervisor.
const MOST_WAITING: usize = 256 * 1024;

/// What happened. Hosts are names or addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A name has got its address of this run.
    Assigned {
        /// The name.
        name: HostName,
        /// The address, which stands for this name only.
        address: Ipv4Addr,
    },
    /// A question about a name that no rule allows.
    Refused {
        /// The name as it was asked for: any printable ASCII.
        name: String,
        /// The type of the question, or why there is no answer.
        kind: String,
    },
    /// A connection was made.
    Opened {
        /// Whom the command asked for.
        host: String,
        /// The port.
        port: u16,
        /// Where the connection leads.
        address: SocketAddr,
        /// The ends of the command's own connection.
        ends: Option<Ends>,
    },
    /// A connection could not be made. EACCES: no rule allows it, or no address of the name. ENOENT: the name has no
    /// address. EREMOTEIO: the nameservers fail. EADDRNOTAVAIL: an address of ours that stands for no name. Others are
    /// those of connect(2).
    Failed {
        /// Whom the command asked for.
        host: String,
        /// The port.
        port: u16,
        /// The error number.
        errno: i32,
        /// The ends of the command's own connection.
        ends: Option<Ends>,
    },
    /// The first bytes of a connection do not name the host that it was made to.
    Mismatch {
        /// Whom the command asked for.
        host: String,
        /// The port.
        port: u16,
        /// The host that the bytes name, if they name one.
        said: Option<String>,
        /// What they were read as.
        protocol: Protocol,
    },
    /// A connection has ended.
    Closed {
        /// Whom the command asked for.
        host: String,
        /// The port.
        port: u16,
        /// Bytes of the command's.
        sent: u64,
        /// Bytes for the command.
        received: u64,
        /// The ends of the command's own connection.
        ends: Option<Ends>,
    },
    /// The run has ended, and what it had sent last on a connection could not be passed on.
    Cut {
        /// Whom the command asked for.
        host: String,
        /// The port.
        port: u16,
        /// The ends of the command's own connection.
        ends: Option<Ends>,
    },
    /// Questions about names that no rule allows, of which no other event tells.
    Untold {
        /// How many.
        count: u64,
    },
    /// So many connections are open, and more wait until one has ended. It is told once.
    Full {
        /// How many.
        count: u64,
    },
    /// Events before this one that were not told: the supervisor did not read fast enough.
    Lost {
        /// How many.
        count: u64,
    },
}

impl Event {
    /// As a message.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(64);
        match self {
            Event::Assigned { name, address } => {
                to.push(1);
                text(&mut to, name.as_str());
                to.extend(address.octets());
            }
            Event::Refused { name, kind } => {
                to.push(2);
                text(&mut to, name);
                text(&mut to, kind);
            }
            Event::Opened { host, port, address, ends } => {
                begin(&mut to, 3, host, *port);
                encode_address(&mut to, *address);
                encode_ends(&mut to, *ends);
            }
            Event::Failed { host, port, errno, ends } => {
                begin(&mut to, 4, host, *port);
                to.extend(errno.to_be_bytes());
                encode_ends(&mut to, *ends);
            }
            Event::Mismatch { host, port, said, protocol } => {
                begin(&mut to, 5, host, *port);
                to.push(match protocol {
                    Protocol::Tls => 0,
                    Protocol::Http => 1,
                    Protocol::Tcp => 2,
                });
                to.push(u8::from(said.is_some()));
                text(&mut to, said.as_deref().unwrap_or_default());
            }
            Event::Closed { host, port, sent, received, ends } => {
                begin(&mut to, 6, host, *port);
                to.extend(sent.to_be_bytes());
                to.extend(received.to_be_bytes());
                encode_ends(&mut to, *ends);
            }
            Event::Lost { count } => {
                to.push(7);
                to.extend(count.to_be_bytes());
            }
            Event::Cut { host, port, ends } => {
                begin(&mut to, 8, host, *port);
                encode_ends(&mut to, *ends);
            }
            Event::Untold { count } => {
                to.push(9);
                to.extend(count.to_be_bytes());
            }
            Event::Full { count } => {
                to.push(10);
                to.extend(count.to_be_bytes());
            }
        }
        to
    }

    /// Reads a message. Texts are printable ASCII: nothing in them moves a cursor.
    pub fn decode(bytes: &[u8]) -> Option<Event> {
        let mut from = Reader(bytes);
        let event = match from.byte()? {
            1 => {
                let name = HostName::from_ascii(from.text()?.as_bytes()).ok()?;
                Event::Assigned { name, address: Ipv4Addr::from(from.array()?) }
            }
            2 => Event::Refused { name: from.text()?, kind: from.text()? },
            3 => {
                let (host, port) = from.host()?;
                Event::Opened { host, port, address: from.address()?, ends: from.ends()? }
            }
            4 => {
                let (host, port) = from.host()?;
                let errno = i32::from_be_bytes(from.array()?);
                Event::Failed { host, port, errno, ends: from.ends()? }
            }
            5 => {
                let (host, port) = from.host()?;
                let protocol = match from.byte()? {
                    0 => Protocol::Tls,
                    1 => Protocol::Http,
                    2 => Protocol::Tcp,
                    _ => return None,
                };
                let (is_said, said) = (from.flag()?, from.text()?);
                let said = match (is_said, said.is_empty()) {
                    (true, _) => Some(said),
                    (false, true) => None,
                    (false, false) => return None,
                };
                Event::Mismatch { host, port, said, protocol }
            }
            6 => {
                let (host, port) = from.host()?;
                let (sent, received) = (from.array()?, from.array()?);
                let (sent, received) = (u64::from_be_bytes(sent), u64::from_be_bytes(received));
                Event::Closed { host, port, sent, received, ends: from.ends()? }
            }
            7 => Event::Lost { count: u64::from_be_bytes(from.array()?) },
            8 => {
                let (host, port) = from.host()?;
                Event::Cut { host, port, ends: from.ends()? }
            }
            9 => Event::Untold { count: u64::from_be_bytes(from.array()?) },
            10 => Event::Full { count: u64::from_be_bytes(from.array()?) },
            _ => return None,
        };
        from.0.is_empty().then_some(event)
    }
}

fn begin(to: &mut Vec<u8>, kind: u8, host: &str, port: u16) {
    to.push(kind);
    text(to, host);
    to.extend(port.to_be_bytes());
}

fn encode_address(to: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(address) => to.extend(address.to_ipv6_mapped().octets()),
        IpAddr::V6(address) => to.extend(address.octets()),
    }
    to.extend(address.port().to_be_bytes());
}

fn encode_ends(to: &mut Vec<u8>, ends: Option<Ends>) {
    to.push(u8::from(ends.is_some()));
    for address in ends.into_iter().flat_map(|(near, far)| [near, far]) {
        encode_address(to, address);
    }
}

/// A text with its length. What is not printable ASCII becomes `?`, and what is too long is cut.
fn text(to: &mut Vec<u8>, text: &str) {
    let printable = text.chars().map(|char| if is_printable(char) { char as u8 } else { b'?' });
    let start = to.len();
    to.push(0);
    to.extend(printable.take(LONGEST_TEXT));
    let length = u8::try_from(to.len() - start - 1).unwrap_or(u8::MAX);
    if let Some(place) = to.get_mut(start) {
        *place = length;
    }
}

fn is_printable(char: char) -> bool {
    char == ' ' || char.is_ascii_graphic()
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn address(&mut self) -> Option<SocketAddr> {
        let ip = IpAddr::V6(Ipv6Addr::from(self.array::<16>()?)).to_canonical();
        Some(SocketAddr::new(ip, u16::from_be_bytes(self.array()?)))
    }

    fn ends(&mut self) -> Option<Option<Ends>> {
        Some(if self.flag()? { Some((self.address()?, self.address()?)) } else { None })
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::from(self.byte()?);
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let text = std::str::from_utf8(text).ok()?;
        text.chars().all(is_printable).then(|| text.to_string())
    }

    fn host(&mut self) -> Option<(String, u16)> {
        let host = self.text().filter(|host| !host.is_empty())?;
        Some((host, u16::from_be_bytes(self.array()?)))
    }
}

/// The way to the supervisor. Events wait while it does not read, and are counted where too many wait.
pub struct Teller {
    channel: OwnedFd,
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    lost: u64,
}

impl Teller {
    /// Over a socket of packets.
    pub fn new(channel: OwnedFd) -> Teller {
        Teller { channel, waiting: VecDeque::new(), bytes: 0, lost: 0 }
    }

    /// The socket.
    pub fn channel(&self) -> &OwnedFd {
        &self.channel
    }

    /// Whether the channel should be waited for until it takes more.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty() || self.lost > 0
    }

    /// Tells an event, now or later.
    pub fn tell(&mut self, event: &Event) {
        let bytes = event.encode();
        if !self.waits() && self.send(&bytes).is_ok() {
            return;
        }
        // After a gap comes the number of those that are missing, so nothing may be put behind it before.
        if self.lost > 0 || self.bytes + bytes.len() > MOST_WAITING {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        self.bytes += bytes.len();
        self.waiting.push_back(bytes);
    }

    /// Tells an event if the channel takes it at once.
    pub fn tell_now(&mut self, event: &Event) -> bool {
        self.flush();
        !self.waits() && self.send(&event.encode()).is_ok()
    }

    /// Sends what waits, as far as the channel takes it.
    pub fn flush(&mut self) {
        while let Some(first) = self.waiting.front() {
            if self.send(first).is_err() {
                return;
            }
            self.bytes = self.bytes.saturating_sub(first.len());
            self.waiting.pop_front();
        }
        if self.lost > 0 && self.send(&Event::Lost { count: self.lost }.encode()).is_ok() {
            self.lost = 0;
        }
    }

    fn send(&self, bytes: &[u8]) -> Result<(), SyscallError> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        rustix::net::send(&self.channel, bytes, flags).of("send").map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::socket::packet_pair;
    use crate::testing::Random;

    fn events() -> Vec<Event> {
        let (host, port) = ("example.org".to_string(), 443);
        let name = HostName::parse("example.org").unwrap();
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let ends = Some((address("198.18.0.1:40000"), address("[2001:db8::2]:50000")));
        vec![
            Event::Assigned { name, address: Ipv4Addr::new(198, 18, 0, 2) },
            Event::Refused { name: "evil.example".into(), kind: "AAAA".into() },
            Event::Opened { host: host.clone(), port, address: address("192.0.2.1:443"), ends: None },
            Event::Opened { host: host.clone(), port, address: address("[2001:db8::1]:443"), ends },
            Event::Failed { host: host.clone(), port, errno: libc::ECONNREFUSED, ends },
            Event::Failed { host: host.clone(), port, errno: libc::ETIMEDOUT, ends: None },
            Event::Mismatch { host: host.clone(), port, said: None, protocol: Protocol::Tls },
            Event::Mismatch { host: host.clone(), port, said: Some("a".into()), protocol: Protocol::Http },
            Event::Closed { host: host.clone(), port, sent: 1, received: u64::MAX, ends },
            Event::Closed { host, port, sent: 0, received: 1, ends: None },
            Event::Lost { count: 3 },
            Event::Full { count: 4 },
        ]
    }

    #[test]
    fn what_is_told_is_read() {
        for event in events() {
            let bytes = event.encode();
            assert!(bytes.len() <= LONGEST);
            assert_eq!(Event::decode(&bytes), Some(event));
            for end in 0..bytes.len() {
                assert_eq!(Event::decode(&bytes[..end]), None);
            }
            assert_eq!(Event::decode(&[&bytes[..], b"x"].concat()), None);
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let mut random = Random(7);
        for event in events() {
            for _ in 0..2000 {
                let mut bytes = event.encode();
                let place = random.below(bytes.len());
                bytes[place] = random.next() as u8;
                if let Some(read) = Event::decode(&bytes) {
                    assert_eq!(Event::decode(&read.encode()), Some(read));
                }
            }
        }
    }

    #[test]
    fn foreign_texts_are_tamed_and_cut() {
        let event = Event::Refused { name: format!("\x1b[2J\u{202e}{}", "a".repeat(300)), kind: "A".into() };
        let Some(Event::Refused { name, .. }) = Event::decode(&event.encode()) else { panic!("no event") };
        assert!(name.starts_with("?[2J?aaa") && name.len() == LONGEST_TEXT);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let [ours, theirs] = packet_pair().unwrap();
        let mut teller = Teller::new(ours);
        let event = Event::Refused { name: "a".repeat(200), kind: "A".into() };
        let told = 5000;
        (0..told).for_each(|_| teller.tell(&event));
        assert!(teller.waits() && !teller.tell_now(&event));
        let (mut read, mut lost) = (0, 0);
        let mut buffer = [0; LONGEST];
        while lost == 0 {
            let count = rustix::io::read(&theirs, &mut buffer).unwrap();
            match Event::decode(&buffer[..count]).unwrap() {
                Event::Lost { count } => lost = count,
                _ => read += 1,
            }
            teller.flush();
        }
        assert_eq!(read + lost, told);
        assert!(teller.tell_now(&event) && teller.bytes == 0);
    }
}
