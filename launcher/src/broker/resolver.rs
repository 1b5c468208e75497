//! The host's resolver, as its configuration says.

use crate::hosts::{DNS_PORT, HostName};
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::Duration;

/// The file of hosts(5).
const HOSTS: &str = "/etc/hosts";

/// The files that say it.
const FILES: [&str; 2] = ["/etc/resolv.conf", HOSTS];

/// Maximum number of servers that are asked, as in resolv.conf(5).
const MOST_SERVERS: usize = 3;

/// Maximum length of a file that is read.
const LONGEST_FILE: u64 = 1024 * 1024;

/// Whom names are asked of, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolver {
    pub(super) servers: Vec<SocketAddr>,
    /// For how long one server is waited for.
    pub(super) timeout: Duration,
    /// How often all servers are asked.
    pub(super) attempts: u32,
    /// Questions are sent over TCP only.
    pub(super) only_tcp: bool,
    /// Below which domains a resolver of this machine tries a name first.
    pub(super) search: Vec<HostName>,
    /// The text of hosts(5). It is read through for each name: most runs ask for a few.
    pub(super) hosts: String,
}

impl Resolver {
    /// Reads the files. What is not there, or not readable, counts as empty.
    pub fn of_host() -> Resolver {
        Resolver::of_files(FILES.map(open))
    }

    /// Of both files.
    pub fn of_files(files: [Option<File>; 2]) -> Resolver {
        let [configuration, hosts] = files.map(text_of);
        Resolver::read(&configuration, hosts)
    }

    /// Where nobody asks for a name.
    pub fn none() -> Resolver {
        Resolver::read("", String::new())
    }

    /// Of the texts of both files.
    pub(super) fn read(configuration: &str, hosts: String) -> Resolver {
        let (mut servers, mut search) = (Vec::new(), Vec::new());
        let (mut timeout, mut attempts, mut only_tcp) = (5, 2, false);
        for line in configuration.lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    servers.extend(address.map(|address| SocketAddr::new(address, DNS_PORT)));
                }
                // The last such line counts.
                Some("search" | "domain") => {
                    search = words.filter_map(|word| HostName::parse(word).ok()).collect();
                }
                Some("options") => {
                    for word in words {
                        match word.split_once(':') {
                            Some(("timeout", number)) => timeout = number.parse().unwrap_or(timeout),
                            Some(("attempts", number)) => attempts = number.parse().unwrap_or(attempts),
                            _ => only_tcp |= word == "use-vc",
                        }
                    }
                }
                _ => {}
            }
        }
        if servers.is_empty() {
            servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), DNS_PORT));
        }
        servers.truncate(MOST_SERVERS);
        let timeout = Duration::from_secs(u64::clamp(timeout, 1, 30));
        Resolver { servers, timeout, attempts: u32::clamp(attempts, 1, 5), only_tcp, search, hosts }
    }

    /// The addresses that hosts(5) has for a name.
    pub(super) fn of_hosts(&self, name: &HostName) -> Vec<IpAddr> {
        let is_name = |word: &str| {
            let word = word.strip_suffix('.').unwrap_or(word);
            word.eq_ignore_ascii_case(name.as_str())
        };
        let found = entries(&self.hosts).filter(|(_, names)| names.split_ascii_whitespace().any(is_name));
        found.map(|(address, _)| address).take(super::lookup::MOST_ADDRESSES).collect()
    }

    /// The names that hosts(5) has for an address. Programs read the file themselves, and connect to the address.
    pub(super) fn names_at(&self, address: IpAddr) -> impl Iterator<Item = HostName> {
        names_at(&self.hosts, address)
    }
}

/// The names that this machine's hosts(5) has for an address.
pub fn names_of_host(address: IpAddr) -> Vec<HostName> {
    names_at(&text_of(open(HOSTS)), address).collect()
}

/// Loopback has none: inside it is the run's own.
fn names_at(hosts: &str, address: IpAddr) -> impl Iterator<Item = HostName> {
    let is_it =
        move |own: IpAddr| own == address.to_canonical() && !own.is_loopback() && !own.is_unspecified();
    let of_it = entries(hosts).filter(move |(own, _)| is_it(own.to_canonical()));
    of_it.flat_map(|(_, names)| names.split_ascii_whitespace()).filter_map(|name| HostName::parse(name).ok())
}

/// Each address in the text of hosts(5), and the names that follow it.
fn entries(hosts: &str) -> impl Iterator<Item = (IpAddr, &str)> {
    hosts.lines().filter_map(|line| {
        let line = line.split('#').next().unwrap_or_default().trim_ascii_start();
        let (address, names) = line.split_once(|c: char| c.is_ascii_whitespace())?;
        Some((address.parse().ok()?, names))
    })
}

/// Opens a file. What is none is not waited for: a command that may write there can put anything in its place.
fn open(path: &str) -> Option<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    file.metadata().is_ok_and(|meta| meta.is_file()).then_some(file)
}

fn text_of(file: Option<File>) -> String {
    let mut text = Vec::new();
    let read = file.map(|file| file.take(LONGEST_FILE).read_to_end(&mut text));
    read.map(|_| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}

/// Which file it is, and when it was changed.
type Stamp = Option<(u64, u64, i64, i64)>;

/// The files as they were last read. A machine that moves to another network has other name servers.
pub struct Files {
    seen: [Stamp; 2],
}

impl Files {
    /// As they are now.
    pub fn of_host() -> Files {
        Files { seen: FILES.map(stamp) }
    }

    /// Passes them on if they have changed. `pass` returns whether it could: if not, they are passed on next time.
    pub fn follow(&mut self, pass: impl FnOnce(&[File; 2]) -> bool) {
        // A change after this one is seen next time.
        let now = FILES.map(stamp);
        if now == self.seen {
            return;
        }
        let open = |path| open(path).or_else(|| File::open("/dev/null").ok());
        let [configuration, hosts] = FILES.map(open);
        if let (Some(configuration), Some(hosts)) = (configuration, hosts)
            && pass(&[configuration, hosts])
        {
            self.seen = now;
        }
    }
}

fn stamp(path: &str) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_read() {
        let text = "# a comment\nnameserver 192.0.2.1\nsearch example.org\nnameserver 2001:db8::1\nnameserver x\n\
                    options timeout:2 attempts:99 use-vc ndots:3\nnameserver 192.0.2.3\nnameserver 192.0.2.4";
        let read = Resolver::read(text, String::new());
        let servers: Vec<SocketAddr> =
            ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"].map(|text| text.parse().unwrap()).into();
        let timeout = Duration::from_secs(2);
        let search = vec![HostName::parse("example.org").unwrap()];
        let hosts = String::new();
        assert_eq!(read, Resolver { servers, timeout, attempts: 5, only_tcp: true, search, hosts });
        let read = Resolver::read("options timeout:0 attempts:-1", String::new());
        assert_eq!(read.servers, ["127.0.0.1:53".parse().unwrap()]);
        assert_eq!((read.timeout, read.attempts, read.only_tcp), (Duration::from_secs(1), 2, false));
    }

    #[test]
    fn hosts_are_found() {
        let text = "127.0.0.1 localhost\n10.0.0.1\tdb.example DB2.example. # x.example\nfe80::x bad.example\n\
                    2001:db8::1 db2.example\n";
        let read = Resolver::read("", text.to_string());
        let of = |name: &str| read.of_hosts(&HostName::parse(name).unwrap());
        let (four, six): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        assert_eq!((of("db.example"), of("db2.example")), (vec![four], vec![four, six]));
        assert_eq!((of("x.example"), of("bad.example")), (vec![], vec![]));
        let at = |address: &str| -> Vec<String> {
            read.names_at(address.parse().unwrap()).map(|name| name.to_string()).collect()
        };
        assert_eq!(
            (at("::ffff:10.0.0.1"), at("2001:db8::1")),
            (vec!["db.example".into(), "db2.example".into()], vec!["db2.example".to_string()])
        );
        assert_eq!((at("10.0.0.2"), at("127.0.0.1")), (vec![], vec![]));
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let path = std::env::temp_dir().join(format!("sbx-resolver-{}", std::process::id()));
        let text = path.to_str().unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(open(text).is_none());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "127.0.0.1 localhost\n").unwrap();
        assert!(open(text).is_some());
        std::fs::remove_file(&path).unwrap();
    }
}
