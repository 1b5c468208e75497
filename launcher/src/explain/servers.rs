//! Who waits at an address, as the tables in /proc tell (proc_pid_net(5)). Nothing is sent there.

use crate::explain::caller;
use crate::sys::listeners;
use crate::sys::number::FileNumber;
use crate::sys::process::Pid;
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Most of a table that is read. Those that wait for TCP connections stand first in theirs.
const MOST: u64 = 1 << 20;

/// What is sent to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP connections.
    Tcp,
    /// UDP datagrams.
    Udp,
}

impl Protocol {
    /// The tables of its sockets, and the state of those that wait.
    fn tables(self) -> ([&'static str; 2], &'static str) {
        match self {
            Protocol::Tcp => (["tcp", "tcp6"], "0A"),
            Protocol::Udp => (["udp", "udp6"], "07"),
        }
    }
}

/// Whether a socket waits at this address in the network of a process. `self` is this process.
pub fn waits(process: &str, protocol: Protocol, address: SocketAddr) -> bool {
    // A socket for IPv6 takes IPv4 as well, and never the other way round.
    let families = [false, true].into_iter().skip(usize::from(address.ip().to_canonical().is_ipv6()));
    families.into_iter().any(|ipv6| has(&listed(process, protocol, address.port(), ipv6), address))
}

/// Of these ports, those at which TCP connections are waited for in a network that is not this process's, as far as it
/// may see.
pub fn listens_elsewhere(ports: &BTreeSet<u16>) -> BTreeSet<u16> {
    if ports.is_empty() {
        return BTreeSet::new();
    }
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let processes = entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_number);
    let mut seen: HashSet<FileNumber> = caller::network("self").into_iter().collect();
    let others = processes.filter(|process| caller::network(process).is_ok_and(|own| seen.insert(own)));
    let tables = others.flat_map(|process| [(process.clone(), false), (process, true)]);
    let all = tables.flat_map(|(process, ipv6)| listed(&process, Protocol::Tcp, 0, ipv6));
    all.map(|local| local.port()).filter(|port| ports.contains(port)).collect()
}

/// Where TCP connections are waited for in this process's network.
pub fn all() -> Vec<SocketAddr> {
    [false, true].into_iter().flat_map(|ipv6| listed("self", Protocol::Tcp, 0, ipv6)).collect()
}

/// Where sockets of one family wait: those of a port at least, or of all (0).
fn listed(process: &str, protocol: Protocol, port: u16, ipv6: bool) -> Vec<SocketAddr> {
    let is_asked = process == "self" && protocol == Protocol::Tcp;
    if let Some(found) = is_asked.then(|| listeners::at(port, ipv6).ok()).flatten() {
        return found;
    }
    let (tables, state) = protocol.tables();
    let table = table_of(process, tables[usize::from(ipv6)]);
    table.into_iter().flat_map(|table| waiting(table, protocol, state)).collect()
}

/// Whether one of these takes what is sent to an address.
pub fn has(all: &[SocketAddr], address: SocketAddr) -> bool {
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    all.iter().any(|local| takes(*local, address))
}

fn table_of(process: &str, table: &str) -> Option<impl BufRead> {
    let file = File::open(format!("/proc/{process}/net/{table}")).ok()?;
    Some(BufReader::new(file.take(MOST)))
}

/// Whether this network has a UNIX socket of this name, which is no file's.
pub fn has_name(name: &[u8]) -> bool {
    let shown = [b"@", name].concat();
    // The table shows the bytes that are NUL like the first one.
    let shown: Vec<u8> = shown.iter().map(|byte| if *byte == 0 { b'@' } else { *byte }).collect();
    let file = File::open("/proc/self/net/unix");
    let mut rows = file.map(|file| BufReader::new(file.take(MOST)).split(b'\n')).into_iter().flatten();
    rows.any(|row| row.is_ok_and(|row| row.rsplit(|byte| *byte == b' ').next() == Some(&shown[..])))
}

/// Whether a descriptor of a thread is a UNIX socket, by the table of those of its network. It needs no right to the
/// descriptor itself.
pub fn is_unix(thread: Pid, number: i32) -> bool {
    const INODE: usize = 6;
    let number =
        caller::descriptor_of(thread, number).and_then(|file| Ok(file.metadata()?.ino().to_string()));
    let thread = thread.to_string();
    let (Ok(number), Some(table)) = (number, table_of(&thread, "unix")) else { return false };
    table.lines().map_while(Result::ok).any(|row| row.split_ascii_whitespace().nth(INODE) == Some(&*number))
}

/// Whether a program may still have the socket of this file. A datagram socket asks: one that is waited at refuses it
/// for its type, or is none the wiser (unix(7)).
pub fn has_file(path: &Path) -> bool {
    let asked = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    !asked.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// The addresses of the sockets of a table that are in this state.
fn waiting(table: impl BufRead, protocol: Protocol, state: &str) -> impl Iterator<Item = SocketAddr> {
    let rows = table.lines().map_while(Result::ok).skip(1);
    let rows = rows.map(move |row| {
        let mut fields = row.split_ascii_whitespace().skip(1);
        let (local, of_row) = (fields.next().and_then(address), fields.nth(1).unwrap_or_default() == state);
        (local, of_row)
    });
    let rows = rows.take_while(move |(_, in_state)| *in_state || protocol == Protocol::Udp);
    rows.filter_map(|(local, in_state)| local.filter(|_| in_state))
}

fn takes(local: SocketAddr, wanted: SocketAddr) -> bool {
    let ip = local.ip().to_canonical();
    let everywhere = ip.is_unspecified() && (local.is_ipv6() || wanted.is_ipv4());
    local.port() == wanted.port() && (everywhere || ip == wanted.ip())
}

/// An address as the tables have it: words of 32 bits as this machine reads them, and the port.
fn address(field: &str) -> Option<SocketAddr> {
    let (ip, port) = field.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut words = ip.as_bytes().chunks(8).map(|word| {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        Some(word.to_ne_bytes())
    });
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(words.next()??)),
        32 => {
            let bytes: Vec<u8> = words.collect::<Option<Vec<_>>>()?.concat();
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn a_socket_that_waits_is_found_and_one_that_does_not_is_not() {
        for host in ["127.0.0.1", "::1", "0.0.0.0", "::"] {
            let listener = TcpListener::bind((host, 0)).unwrap();
            let datagrams = UdpSocket::bind((host, 0)).unwrap();
            let target = if host.contains(':') { "[::1]" } else { "127.0.0.1" };
            let at = |port: u16| format!("{target}:{port}").parse().unwrap();
            let tcp = at(listener.local_addr().unwrap().port());
            let udp = at(datagrams.local_addr().unwrap().port());
            assert!(waits("self", Protocol::Tcp, tcp) && waits("self", Protocol::Udp, udp), "{host}");
            drop((listener, datagrams));
            assert!(!waits("self", Protocol::Tcp, tcp) && !waits("self", Protocol::Udp, udp), "{host}");
        }
    }

    #[test]
    fn a_name_without_a_file_is_found_and_another_is_not() {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("sbx-test-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
        assert!(has_name(name.as_bytes()) && !has_name(b"sbx-test") && !has_name(b""));
        drop(listener);
        assert!(!has_name(name.as_bytes()));
    }

    #[test]
    fn a_socket_file_is_of_use_while_a_program_has_the_socket() {
        let path = std::env::temp_dir().join(format!("sbx-test-{}.socket", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert!(has_file(&path) && listener.accept().is_err());
        drop(listener);
        assert!(!has_file(&path));
        fs::remove_file(&path).unwrap();
        let datagrams = UnixDatagram::bind(&path).unwrap();
        assert!(has_file(&path));
        drop(datagrams);
        assert!(!has_file(&path));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_connection_is_no_server_and_another_address_is_another() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let client = TcpStream::connect(at).unwrap();
        assert!(!waits("self", Protocol::Tcp, client.local_addr().unwrap()));
        for other in ["127.0.0.2", "::1"] {
            assert!(!waits("self", Protocol::Tcp, SocketAddr::new(other.parse().unwrap(), at.port())));
        }
        // A server for IPv6 that takes everything takes IPv4 too, by either way to write it.
        let both = TcpListener::bind("[::]:0").unwrap().local_addr().unwrap().port();
        for ip in ["127.0.0.1", "::ffff:127.0.0.1", "::1"] {
            let listener = TcpListener::bind("[::]:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            assert!(waits("self", Protocol::Tcp, SocketAddr::new(ip.parse().unwrap(), port)), "{ip}");
        }
        assert!(!waits("self", Protocol::Tcp, SocketAddr::new("127.0.0.1".parse().unwrap(), both)));
    }

    #[test]
    fn what_is_no_table_holds_nothing() {
        let at = "127.0.0.1:80".parse().unwrap();
        for text in
            ["", "head\n", "head\n 0: 0100007F\n", "head\n 0: zz:50 0:0 0A\n", "head\n 0: 0100:0050 0:0 0A\n"]
        {
            assert_eq!(waiting(text.as_bytes(), Protocol::Tcp, "0A").next(), None, "{text:?}");
        }
        let table = &b"head\n 0: 0100007F:0050 00000000:0000 0A\n"[..];
        assert!(has(&waiting(table, Protocol::Tcp, "0A").collect::<Vec<_>>(), at));
    }
}
