//! Connections that the supervisor makes.
//!
//! UNIX sockets, by their path, where Landlock cannot tell them apart (before ABI 9). connect(2) is refused
//! by the filter then, for otherwise every service of the host that has a socket file would be in reach.
//! The supervisor makes those connections that the path rules allow: it copies the address, opens the
//! socket file, looks where that file really is, and connects a duplicate of the caller's socket to exactly
//! that file.
//!
//! In a network of the run's own: all sockets that are of that network, wherever they are to go. A socket
//! stays in the network that it was made in. One of the host's, handed in by whoever started the run, is of
//! another network and is refused. What is said of such connections is in `own_network`.
//!
//! Where hosts are reached by a proxy: all as well. They are led to the proxy, which is told whom they are for.
//!
//! Where the host's network is open: all sockets but those of UNIX, to the address that was copied. To judge
//! the socket and let the caller go on would not do: another thread can put another socket in its place.

pub(super) mod leads;
mod own_network;
mod under_way;

use crate::enforce::landlock::restrict_connections;
use crate::explain::caller::{self, Caller};
use crate::explain::decode::Address;
use crate::explain::hint::{Host, Outside, Reason};
use crate::explain::infer::{Beyond, Domain};
use crate::explain::servers;
use crate::hosts::{DNS_PORT, reached};
use crate::plan::OnViolation;
use crate::plan::namespaces::Layout;
use crate::plan::rules::{self, PathRule};
use crate::profile::NetworkMode;
use crate::supervise::dispatch::{Flow, Handler, Step};
use crate::supervise::handlers::domains::{Marks, Restricts};
use crate::supervise::hosts::{Hosts, Way, address_in, bytes_of, set_port};
use crate::supervise::judge::{DecidedBy, Judge, Verdict, error};
use crate::supervise::violation::Fate;
use crate::supervise::waiting::{NotifiedCall, Told, Waiting};
use crate::sys::process::Pid;
use crate::sys::seccomp::{self, Answer};
use crate::sys::socket::SocketFile;
use crate::sys::within::is_within;
use crate::sys::{SyscallError, bounded, process, socket};
use leads::{Network, address, is_abstract, is_of_network, is_outside};
use own_network::{Server, Watched, is_loopback};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use under_way::{Client, Target, UnderWay};

/// Where name services listen. libc asks them about users and hosts, and does without.
const NAME_SERVICES: [&str; 9] = [
    "/run/nscd",
    "/var/run/nscd",
    "/run/nslcd",
    "/run/systemd/machine",
    "/run/systemd/resolve",
    "/run/systemd/userdb",
    "/run/avahi-daemon",
    "/run/samba/winbindd",
    "/var/lib/sss/pipes",
];

/// Makes the connections that are allowed.
pub struct Connections {
    /// Path rules with resolved paths: what may be changed may be connected to.
    granted: Rc<[PathRule]>,
    /// Socket files named by `--unix`.
    named: Vec<PathBuf>,
    /// What is mounted for the run alone.
    layout: Option<Rc<Layout>>,
    /// Where connections that are to no socket file lead.
    network: Connected,
    /// The host's servers that have been named.
    named_servers: BTreeSet<Server>,
    /// Where somebody else waited for connections when the command started, in log mode.
    others: Vec<SocketAddr>,
    /// What Landlock restricts of it.
    domain: Domain,
    listener: OnceCell<Option<Arc<OwnedFd>>>,
    under_way: UnderWay,
    /// Who is in a domain that restricts more.
    marks: Rc<Marks>,
    /// The hosts that are reached out of a network of the run's own.
    hosts: Option<Rc<Hosts>>,
}

/// Where connections that are to no socket file lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connected {
    /// Nowhere: they are refused.
    Nowhere,
    /// Into the run's own network, which has this cookie where the kernel has such.
    Inside(Option<u64>),
    /// To the host's network.
    Outside,
    /// There as well, in log mode: what would lead out of a network of the run's own is listed.
    Listed,
}

impl Connected {
    /// By the network of a run. `own`: that the run has one of its own, with its cookie.
    pub fn of(mode: NetworkMode, own: Option<Option<u64>>) -> Connected {
        match (mode, own) {
            (NetworkMode::None | NetworkMode::Loopback, _) => Connected::Nowhere,
            (NetworkMode::Private, Some(cookie)) => Connected::Inside(cookie),
            (NetworkMode::Private, None) => Connected::Listed,
            (NetworkMode::Host | NetworkMode::Ports, _) => Connected::Outside,
        }
    }
}

/// A connection that somebody asks for.
pub struct Attempt {
    socket: Asked,
    process: Pid,
    listener: Arc<OwnedFd>,
    destination: Destination,
    told: Told,
    /// What Landlock is going to refuse of it.
    beyond: Option<Beyond>,
    /// What the caller's own domain restricts.
    restricts: Restricts,
}

enum Destination {
    /// A socket file. `is_there`: the caller finds this very file at its place.
    File { file: SocketFile, is_there: bool },
    /// None: the error that the caller meets.
    Missing(i32),
    /// Whatever the network of the caller leads to.
    Inside { address: Vec<u8>, network: Option<Network> },
    /// Whatever the host's network leads to.
    Outside { address: Vec<u8> },
    /// The same: the kernel may go on, and what would lead out of a network of the run's own is listed.
    Listed,
}

/// What becomes of an attempt.
enum Outcome {
    /// The kernel makes it, and it is listed.
    Listed,
    /// It is made.
    Goes(OwnedFd, Target),
    /// It fails as it would without a sandbox.
    Fails(i32),
    /// It is to a host that no rule names.
    NoHost(Host),
    /// It is not allowed.
    Refused,
    /// It is not allowed, and nobody needs to know.
    Ignored,
}

impl Handler for Connections {
    type Copy = Attempt;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Attempt> {
        let NotifiedCall { notification: call, verdict, .. } = waiting.call;
        if !matches!(verdict, Verdict::Violation | Verdict::Logged) {
            return None;
        }
        let destination = match &waiting.decoded().address {
            Some(Address::UnixPath(name)) => {
                match caller::hold(call.pid, None, name, true).and_then(socket::hold) {
                    Ok(file) => {
                        let is_there = caller::is_at(call.pid, file.file(), &file.path);
                        Destination::File { file, is_there }
                    }
                    // A missing file is told only where it may be seen, but stat(2) tells as much.
                    Err(error) => Destination::Missing(errno(&error)),
                }
            }
            Some(Address::Inet { .. }) if self.network == Connected::Listed => Destination::Listed,
            _ => match (self.network, address(&waiting.memory, call.args)) {
                (Connected::Nowhere | Connected::Listed, _) => return None,
                (_, Err(errno)) => Destination::Missing(errno),
                (Connected::Inside(_), Ok(address)) => {
                    Destination::Inside { address, network: caller::network(&call.pid.to_string()).ok() }
                }
                (Connected::Outside, Ok(address)) => Destination::Outside { address },
            },
        };
        let process = waiting.caller().process;
        let socket = asked(waiting);
        let beyond = self.domain.refused("connect", call, waiting.decoded());
        // One duplicate for all: the run has one listener.
        let own = || waiting.listener().try_clone_to_owned().ok().map(Arc::new);
        let listener = self.listener.get_or_init(own).clone()?;
        let restricts = self.marks.of(call.pid).unwrap_or_default();
        Some(Attempt { socket, process, listener, destination, told: waiting.told(), beyond, restricts })
    }

    fn act(
        &mut self,
        attempt: Attempt,
        call: &NotifiedCall,
        judge: &mut Judge,
    ) -> Result<Step, SyscallError> {
        let Attempt { socket, process, listener, destination, told, beyond, restricts } = attempt;
        let is_inside = matches!(destination, Destination::Inside { .. });
        let is_internet = is_inside || matches!(destination, Destination::Outside { .. });
        if let Some(hosts) = self.hosts.clone().filter(|_| is_internet) {
            // An address that was just given to a name is known before it is connected to.
            hosts.read(judge);
            if let Some(Address::Inet { ip, port }) = told.decoded.address
                && (port == DNS_PORT || is_loopback(ip) && !is_inside)
            {
                hosts.asks(&told.caller.name, process);
            }
        }
        let outcome = match self.judge(socket, destination, &told.caller) {
            // The kernel would judge it in the caller's domain, and the supervisor is not in that.
            Outcome::Goes(socket, target) if restricts.has(target.kind(&socket)) => {
                Outcome::Fails(libc::EACCES)
            }
            outcome => outcome,
        };
        Ok(match outcome {
            Outcome::Goes(socket, target) => {
                let is_led = self.hosts.is_some() || !socket::is_internet(socket.as_raw_fd());
                if let Some(beyond) = beyond.filter(|_| !is_led) {
                    let reason = judge.explainer.beyond_reason(beyond);
                    judge.say(Fate::Blocked, call, &told, reason, DecidedBy::Domain);
                }
                let (id, thread) = (call.notification.id, call.notification.pid);
                let watched =
                    is_inside.then(|| Watched::of(&socket, call, told, &self.named_servers)).flatten();
                self.under_way.begin(Client { listener, id, thread, process }, socket, target, watched)
            }
            Outcome::Listed => {
                if let Some(Address::Inet { ip, port }) = told.decoded.address
                    && let Some((to, is_tcp)) = self.leads_out(ip, port)
                {
                    let reason = judge.explainer.connection_reason(to, port, is_tcp);
                    judge.say(Fate::WouldBlock, call, &told, reason, DecidedBy::Filter);
                }
                Step::Answer(Answer::Continue)
            }
            Outcome::NoHost(host) => {
                let reason = judge.explainer.host_reason(&host);
                let (fate, step) = match judge.refusal(libc::ECONNREFUSED) {
                    // Nobody would take it, in log mode either.
                    (Fate::WouldBlock, _) => (Fate::Blocked, Step::Answer(error(libc::ECONNREFUSED))),
                    refusal => refusal,
                };
                judge.say(fate, call, &told, reason, DecidedBy::Filter);
                self.hosts.iter().for_each(|hosts| hosts.refused(&host));
                step
            }
            Outcome::Fails(errno) => {
                if let Some((path, reason)) = self.hidden(&told, errno, judge) {
                    judge.say(Fate::Blocked, call, &told, reason, DecidedBy::Place(path));
                }
                Step::Answer(error(errno))
            }
            Outcome::Ignored if judge.on_violation != OnViolation::Log => {
                Step::Answer(error(libc::ECONNREFUSED))
            }
            Outcome::Refused | Outcome::Ignored => Step::Next,
        })
    }

    fn pause(&self) -> Option<Duration> {
        self.under_way.pause()
    }

    fn retry(&mut self, listener: BorrowedFd<'_>, judge: &mut Judge) -> Result<Flow, SyscallError> {
        for (id, watched, answer) in self.under_way.held_back() {
            if watched.tell(&mut self.named_servers, judge) == Flow::EndRun {
                return Ok(Flow::EndRun);
            }
            seccomp::answer(listener, id, answer)?;
        }
        self.under_way.look(listener)?;
        Ok(Flow::GoOn)
    }

    fn end(&mut self, judge: &mut Judge) {
        judge.unanswered = self.under_way.unanswered();
    }
}

impl Connections {
    /// Where a connection leads that log mode lets through, unless it may be to the run itself.
    fn leads_out(&self, ip: IpAddr, port: u16) -> Option<(Outside<'static>, bool)> {
        if !is_loopback(ip) {
            // Nobody has looked of which kind the socket is.
            return Some((Outside::Address(ip), false));
        }
        servers::has(&self.others, SocketAddr::new(reached(ip), port)).then_some((Outside::ThisMachine, true))
    }

    /// Makes connections by these path rules, and by these rules about the network.
    pub fn new(
        (granted, named): (Rc<[PathRule]>, Vec<PathBuf>),
        layout: Option<Rc<Layout>>,
        (network, others): (Connected, Vec<SocketAddr>),
        (domain, marks): (Domain, Rc<Marks>),
        hosts: Option<Rc<Hosts>>,
    ) -> Connections {
        let ports = (domain.network.mode == NetworkMode::Ports).then(|| domain.network.connect.clone());
        let prepare = move || ports.as_ref().is_none_or(|ports| restrict_connections(ports).is_ok());
        let under_way = UnderWay::new(Arc::new(prepare));
        let (named_servers, listener) = (BTreeSet::new(), OnceCell::new());
        Connections {
            granted,
            named,
            layout,
            network,
            others,
            named_servers,
            domain,
            listener,
            under_way,
            marks,
            hosts,
        }
    }

    fn judge(&self, socket: Asked, destination: Destination, caller: &Caller) -> Outcome {
        let destination = match destination {
            Destination::Missing(errno) => return Outcome::Fails(errno),
            Destination::Listed => return Outcome::Listed,
            // In the place of a denied socket something else is mounted, which nobody connects to.
            Destination::File { file, .. }
                if self.layout.as_deref().is_some_and(|layout| layout.denies(&file.path)) =>
            {
                return Outcome::Fails(libc::ECONNREFUSED);
            }
            Destination::File { file, is_there } => {
                if !self.allow(&file.path) || !is_there {
                    return if self.is_name_service(&file.path) {
                        Outcome::Ignored
                    } else {
                        Outcome::Refused
                    };
                }
                Destination::File { file, is_there }
            }
            other => other,
        };
        let socket = match take(socket) {
            Some(Ok(socket)) => socket,
            Some(Err(failed)) if failed.errno() == libc::EBADF => return Outcome::Fails(libc::EBADF),
            Some(Err(_)) | None => return Outcome::Refused,
        };
        match destination {
            Destination::File { file, .. } if socket::is_unix_stream(&socket) => {
                Outcome::Goes(socket, Target::File(file))
            }
            Destination::Inside { address, network } if self.is_inside(&socket, &address, network) => {
                self.to_host(socket, address, caller)
            }
            Destination::Outside { address } if is_outside(&socket, &address) => {
                // What is no stream reaches somebody without saying whom, and Landlock holds ports of TCP alone.
                let is_judged = match self.domain.network.mode {
                    NetworkMode::Ports => {
                        socket::is_tcp(&socket) || !socket::is_of_network(socket.as_raw_fd())
                    }
                    _ => self.hosts.is_none() || socket::is_internet_stream(&socket),
                };
                if is_judged { self.to_host(socket, address, caller) } else { Outcome::Refused }
            }
            _ => Outcome::Refused,
        }
    }

    /// Whether a socket of the run's own network may be connected. The socket decides, not the address: an
    /// internet socket leads to no file, whatever its address says.
    fn is_inside(&self, socket: &OwnedFd, address: &[u8], network: Option<Network>) -> bool {
        let Connected::Inside(cookie) = self.network else { return false };
        let reaches_no_file = socket::is_internet(socket.as_raw_fd())
            || (socket::is_unix_stream(socket) && is_abstract(address));
        reaches_no_file && is_of_network(socket, (cookie, network))
    }

    /// A connection that the broker takes where it leads to a host outside.
    fn to_host(&self, socket: OwnedFd, mut address: Vec<u8>, caller: &Caller) -> Outcome {
        let hosts = self.hosts.as_ref().filter(|_| socket::is_internet_stream(&socket));
        let Some((hosts, to)) = hosts.zip(address_in(&address)) else {
            return Outcome::Goes(socket, Target::Address(address));
        };
        let (address, told) = match hosts.way(to) {
            Way::AsSaid => return Outcome::Goes(socket, Target::Address(address)),
            Way::Questions(place) => return Outcome::Goes(socket, Target::Address(bytes_of(place))),
            Way::Refused(host) => return Outcome::NoHost(host),
            Way::Over => return Outcome::Fails(libc::ECONNREFUSED),
            Way::ToThisMachine => (address, Vec::new()),
            Way::Out(host, port) => {
                set_port(&mut address, port);
                hosts.connects(&host, &caller.name, caller.process);
                (address, Vec::new())
            }
            Way::ByProxy(host, place, told) => {
                hosts.connects(&host, &caller.name, caller.process);
                (bytes_of(place), told)
            }
        };
        Outcome::Goes(socket, Target::Host { address, dials: hosts.dials.clone(), told })
    }

    /// The socket that a call has not found, because it is out of sight, with the reason. A name service is not missed.
    fn hidden(&self, told: &Told, errno: i32, judge: &Judge) -> Option<(PathBuf, Reason)> {
        let Some(Address::UnixPath(name)) = &told.decoded.address else { return None };
        let path = Path::new(OsStr::from_bytes(name));
        let is_service = NAME_SERVICES.iter().any(|place| is_within(path, Path::new(place)));
        let is_socket = || path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
        let fails = matches!(errno, libc::ENOENT | libc::EACCES | libc::ECONNREFUSED);
        let is_missed = fails && path.is_absolute() && !is_service && is_socket() && servers::has_file(path);
        let reason = is_missed.then(|| judge.explainer.hidden_socket(path)).flatten()?;
        Some((path.to_path_buf(), reason))
    }

    /// Whether connections to this socket file are allowed.
    fn allow(&self, path: &Path) -> bool {
        rules::may_connect(&self.granted, &self.named, self.layout.as_deref(), path)
    }

    /// Whether every look-up of a name that needs the network would be reported.
    fn is_name_service(&self, path: &Path) -> bool {
        self.network == Connected::Outside
            && NAME_SERVICES.iter().any(|place| is_within(path, Path::new(place)))
    }
}

/// The socket that a call is about: the caller, by a descriptor that stands for no other process, and the number there.
pub type Asked = (Result<OwnedFd, SyscallError>, i32);

/// That of the first argument.
pub fn asked(waiting: &Waiting<'_>) -> Asked {
    let call = &waiting.call.notification;
    (process::open_thread(call.pid, waiting.caller().process), call.args[0] as i32)
}

/// A duplicate of it. An exec of another thread that waits for the memory of others keeps everybody from taking one.
pub fn take((caller, number): Asked) -> Option<Result<OwnedFd, SyscallError>> {
    bounded::within(move || caller.and_then(|caller| socket::take(&caller, number)))
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::ECONNREFUSED)
}
