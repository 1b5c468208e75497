//! What can be seen from outside: files, visits, and the state of the victim.

use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};

use super::place::{Place, number};
use crate::tree::{self, Tree};

/// Sockets on loopback and of this machine, which count connections.
pub struct Listeners {
    /// The name of the abstract one.
    pub abstract_name: String,
    tcp: [TcpListener; 2],
    udp: [UdpSocket; 2],
    streams: [UnixListener; 2],
    datagrams: [UnixDatagram; 2],
}

impl Listeners {
    /// Starts to listen; sockets with a path are in this directory.
    pub fn start(dir: &Path) -> Listeners {
        let abstract_name = format!("sbx-escape-{}", number());
        let unnamed =
            |suffix: &str| SocketAddr::from_abstract_name(format!("{abstract_name}{suffix}")).unwrap();
        let listeners = Listeners {
            tcp: ["127.0.0.1:0", "[::1]:0"].map(|at| TcpListener::bind(at).unwrap()),
            udp: ["127.0.0.1:0", "[::1]:0"].map(|at| UdpSocket::bind(at).unwrap()),
            streams: [
                UnixListener::bind(dir.join("socket")).unwrap(),
                UnixListener::bind_addr(&unnamed("")).unwrap(),
            ],
            datagrams: [
                UnixDatagram::bind(dir.join("datagrams")).unwrap(),
                UnixDatagram::bind_addr(&unnamed("-dgram")).unwrap(),
            ],
            abstract_name,
        };
        for name in ["socket", "datagrams"] {
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o777)).unwrap();
        }
        listeners.tcp.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        listeners.udp.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        listeners.streams.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        listeners.datagrams.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        listeners
    }

    /// TCP over IPv4 and IPv6, then UDP.
    pub fn ports(&self) -> Vec<u16> {
        let tcp = self.tcp.iter().map(|socket| socket.local_addr().unwrap().port());
        tcp.chain(self.udp.iter().map(|socket| socket.local_addr().unwrap().port())).collect()
    }

    /// Whether there was a connection.
    fn visited(&self) -> bool {
        let came = |result: io::Result<()>| result.is_ok();
        let mut byte = [0];
        self.tcp.iter().any(|socket| came(socket.accept().map(drop)))
            || self.streams.iter().any(|socket| came(socket.accept().map(drop)))
            || self.udp.iter().any(|socket| came(socket.recv_from(&mut byte).map(drop)))
            || self.datagrams.iter().any(|socket| came(socket.recv_from(&mut byte).map(drop)))
    }
}

/// The state before an attempt.
pub struct Before {
    files: Tree,
    victim: Vec<String>,
}

impl Before {
    /// Records the state.
    pub fn look(place: &Place) -> Before {
        Before { files: files(place), victim: victim(place) }
    }

    /// The difference now, in a few words.
    pub fn change(&self, place: &Place) -> Option<String> {
        if place.listeners.visited() {
            return Some("a listener was reached".into());
        }
        let now = files(place);
        if let Some((path, ..)) = tree::differences(&self.files, &now).first() {
            return Some(format!("{} is not what it was", path.display()));
        }
        let state = victim(place);
        let differs = self.victim.iter().zip(&state).find(|(one, other)| one != other);
        differs.map(|(one, other)| format!("the victim: '{one}' is '{other}'"))
    }
}

/// Everything outside the workspace.
fn files(place: &Place) -> Tree {
    let mut all = Tree::new();
    for (name, root) in [("outside", &place.world.outside), ("home", &place.world.home)] {
        // The workspace, and what is sbx's own: the cache and the records.
        let own = ["project", ".cache", ".local/state"];
        let inside = |path: &Path| name == "home" && own.iter().any(|own| path.starts_with(own));
        let found = tree::snapshot_but(root, &inside).into_iter();
        all.extend(found.map(|(path, entry)| (Path::new(name).join(path), entry)));
    }
    all
}

/// The lines of /proc that an attack would change.
fn victim(place: &Place) -> Vec<String> {
    let own = PathBuf::from(format!("/proc/{}", place.victim.pid()));
    let text = |name: &str| fs::read_to_string(own.join(name)).unwrap_or_default();
    let starting = |text: String, starts: &[&str]| -> Vec<String> {
        text.lines()
            .filter(|line| starts.iter().any(|start| line.starts_with(start)))
            .map(str::to_owned)
            .collect()
    };
    let mut lines = starting(text("status"), &["SigPnd", "ShdPnd", "TracerPid", "Cpus_allowed:"]);
    lines.extend(starting(text("limits"), &["Max open files"]));
    // Group, session, priority and nice value, real-time priority and policy.
    let stat = text("stat");
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    lines.push([2, 3, 15, 16, 37, 38].map(|at| *fields.get(at).unwrap_or(&"?")).join(" "));
    let mut memory = [0; 16];
    let read = File::open(own.join("mem")).and_then(|file| file.read_at(&mut memory, place.victim.address()));
    lines.push(format!("{:?}", read.map(|_| memory).ok()));
    lines
}
