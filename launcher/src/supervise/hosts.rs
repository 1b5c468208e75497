//! The hosts that a run reaches: which names have addresses inside, where a connection may go, and what came of it.
//!
//! The broker answers questions about names, and dials. It tells of both over a channel. The supervisor decides about
//! each connection before it is made, so that a refusal has its error at once, and a line. The broker decides again, by
//! the same rules.

mod address;
mod used;

use crate::broker::proxy::plain;
use crate::broker::{self, Event, names, said};
use crate::enforce::doors::{self, Door, Purpose};
use crate::explain::hint::{Host, Reason, bracketed};
use crate::hosts::{DNS_PORT, HostName, Range, is_host_port_at, reached};
use crate::plan::by_proxy::{At, Proxy};
use crate::plan::network::{self, Route};
use crate::supervise::brokers::Broker;
use crate::supervise::dials::Dials;
use crate::supervise::judge::Judge;
use crate::supervise::violation::{Confidence, Fate, Kind, Violation};
use crate::sys::process::Pid;
use crate::text::{host_name, shown};
pub use address::{address_in, bytes_of, set_port};
use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{OwnedFd, RawFd};
use std::path::Path;
use std::rc::Rc;
pub use used::Used;
use used::{MOST, Program, State};

/// The hosts of a run.
pub struct Hosts {
    plan: Rc<network::Hosts>,
    /// Log mode: what no rule names is reached as well.
    logs: bool,
    /// The port of the socket that connections go to, by whether it is of IPv6, and the port that it stands for.
    ports: HashMap<(bool, u16), u16>,
    broker: Broker,
    /// What the broker's name servers are read from.
    files: RefCell<broker::Files>,
    /// The sockets of the proxy, so that nobody else gets its ports if it ends.
    _taken: Vec<OwnedFd>,
    /// The calls that wait for their hosts.
    pub dials: Dials,
    state: RefCell<State>,
}

/// Where a connection goes.
#[derive(Debug, PartialEq, Eq)]
pub enum Way {
    /// Where its address says: it stays in the run's network, or leads to the proxy, as its program knows.
    AsSaid,
    /// Here, where the broker answers questions of DNS.
    Questions(SocketAddr),
    /// To this host, by the proxy here, which is told so by these bytes.
    ByProxy(Host, SocketAddr, Vec<u8>),
    /// To a port of the host's own loopback that was brought inside.
    ToThisMachine,
    /// To this host, by this port of the address, where the broker takes it.
    Out(Host, u16),
    /// Nowhere.
    Refused(Host),
    /// Nowhere any more: the proxy has ended.
    Over,
}

/// How a program learns that its connection has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Learns {
    /// Its call waits, and gets the error.
    Error,
    /// It has not waited.
    Reset,
    /// The proxy answers it.
    Answer,
}

impl Hosts {
    /// Of a run whose first process has made these sockets, and which has this broker.
    pub fn new(
        plan: Rc<network::Hosts>,
        logs: bool,
        doors: &[Door],
        (broker, files): (Broker, broker::Files),
        taken: Vec<OwnedFd>,
    ) -> Hosts {
        let files = RefCell::new(files);
        let mut ports = HashMap::new();
        for (purpose, number) in doors {
            if let (Purpose::Port(port), Some(address)) = (purpose, doors::address_of(*number)) {
                ports.insert((address.is_ipv6(), *port), address.port());
            }
        }
        let (dials, state) = (Dials::default(), RefCell::default());
        Hosts { plan, logs, ports, broker, files, _taken: taken, dials, state }
    }

    /// Where a connection goes.
    pub fn way(&self, address: SocketAddr) -> Way {
        match &self.plan.route {
            Route::Doors => self.way_by_doors(address),
            Route::Proxy(Proxy { at: Some(at), .. }) => self.way_by_proxy(address, *at),
            Route::Proxy(Proxy { at: None, .. }) => Way::Refused(self.host_at(address)),
        }
    }

    fn way_by_doors(&self, address: SocketAddr) -> Way {
        let host = self.host_at(address);
        let Host { address: ip, port, .. } = host;
        if ip.is_loopback() || ip.is_unspecified() {
            return if self.is_brought(ip, port) { Way::ToThisMachine } else { Way::AsSaid };
        }
        // A socket of IPv6 that goes to an IPv4 address arrives at the socket for that.
        let door = self.ports.get(&(ip.is_ipv6(), port));
        match door.filter(|_| self.logs || self.allows(&host)) {
            Some(door) => Way::Out(host, *door),
            // Whichever name server is asked, the broker answers.
            None if port == DNS_PORT => Way::AsSaid,
            None => Way::Refused(host),
        }
    }

    fn way_by_proxy(&self, address: SocketAddr, At { proxy, questions }: At) -> Way {
        let host = self.host_at(address);
        let port = host.port;
        let ip = reached(host.address);
        let is_brought = ip.is_loopback() && self.is_brought(ip, port);
        if self.broker.is_gone() && !is_brought {
            return Way::Over;
        }
        if ip.is_loopback() {
            return match port {
                _ if is_brought || proxy.are_at(ip, port) => Way::AsSaid,
                DNS_PORT => Way::Questions(questions.address(address.is_ipv6())),
                _ => Way::Refused(host),
            };
        }
        let is_allowed = self.allows(&host) || self.logs && port != DNS_PORT;
        let told = plain::write(&said(&host), port).filter(|_| is_allowed);
        match told {
            Some(told) => Way::ByProxy(host, proxy.address(address.is_ipv6()), told),
            None if port == DNS_PORT => Way::Questions(questions.address(address.is_ipv6())),
            None => Way::Refused(host),
        }
    }

    /// Whether a connection to loopback leads to a port that was brought inside. The run may have servers of its own at
    /// its other addresses.
    fn is_brought(&self, ip: IpAddr, port: u16) -> bool {
        is_host_port_at(ip) && self.plan.doors.host_ports.contains(&port)
    }

    fn host_at(&self, address: SocketAddr) -> Host {
        let ip = address.ip().to_canonical();
        let name = match ip {
            IpAddr::V4(ip) => self.state.borrow().names.get(&ip).cloned(),
            IpAddr::V6(_) => None,
        };
        let host = Host { name, address: ip, port: address.port() };
        if host.name.is_some() || ip.is_loopback() || Range::of_names().has(ip) || self.allows(&host) {
            return host;
        }
        Host { name: self.by_file(ip, host.port), ..host }
    }

    /// The name that hosts(5) gives an address, where it is the name that a rule has, or could have.
    fn by_file(&self, address: IpAddr, port: u16) -> Option<HostName> {
        let rules = &self.plan.rules;
        let mut names = broker::names_of_host(address);
        match names.iter().position(|name| rules.allow_name(name, port)) {
            Some(place) => rules.allow_resolved(address, port).then(|| names.swap_remove(place)),
            None => names.into_iter().next(),
        }
    }

    /// Whether rules name a host. An address that stands for names is none by itself.
    fn allows(&self, Host { name, address, port }: &Host) -> bool {
        let rules = &self.plan.rules;
        match name {
            Some(name) => rules.allow_name(name, *port),
            None => rules.allow_address(*address, *port) && !Range::of_names().has(*address),
        }
    }

    /// Remembers who asks name servers, or the proxy: a refused name is told of that program.
    pub fn asks(&self, program: &[u8], process: Pid) {
        self.state.borrow_mut().asker = Some((program.to_vec(), process));
        self.follow();
    }

    /// Before a name is looked up: the machine may have other name servers by now.
    fn follow(&self) {
        self.files.borrow_mut().follow(|files| self.broker.follow(files));
    }

    /// Remembers who connects to a host: what the broker does not let through is told of that program.
    pub fn connects(&self, host: &Host, program: &[u8], process: Pid) {
        let mut state = self.state.borrow_mut();
        let key = (host.shown(), host.port);
        // It is listed whether or not the broker tells what came of it.
        state.of(&key.0, key.1, |_| {});
        if state.callers.len() < MOST || state.callers.contains_key(&key) {
            state.callers.insert(key, (program.to_vec(), process));
        }
        // An address is looked up nowhere.
        if host.name.is_some() {
            self.follow();
        }
    }

    /// A connection was refused.
    pub fn refused(&self, host: &Host) {
        self.state.borrow_mut().of(&host.shown(), host.port, |used| used.refused += 1);
    }

    /// The descriptor that can be read when the broker has told something.
    pub fn told(&self) -> Option<RawFd> {
        self.broker.told()
    }

    /// Reads what the broker has told.
    pub fn read(&self, judge: &mut Judge) {
        self.broker.events().into_iter().for_each(|event| self.hear(event, judge));
        if !self.broker.is_gone() {
            return;
        }
        self.dials.release(true);
        if !std::mem::replace(&mut self.state.borrow_mut().is_over, true) {
            let line = "the process that connects to hosts has ended: no host is reached any more";
            judge.violations.line(line);
        }
    }

    fn hear(&self, event: Event, judge: &mut Judge) {
        match event {
            Event::Assigned { name, address } => self.hear_assigned(name, address, judge),
            Event::Refused { name, kind } => {
                let asker = self.counted(&name, 0, |used| used.refused += 1).asker();
                let reason = match &*kind == names::TOO_MANY {
                    true => Reason::always(&format!("a run asks for {} names at most", names::MOST)),
                    false => judge.explainer.host_name_reason(&name),
                };
                // The root has no name.
                let shown = if name.is_empty() { ".".to_string() } else { host_name(&name) };
                self.tell(judge, &asker, Fate::Blocked, "dns", format!("{kind} {shown}"), reason);
            }
            Event::Opened { host, port, ends, address } => {
                ends.map(|ends| self.dials.tell(ends, 0));
                let caller = self.counted(&host, port, |used| used.connections += 1).caller(&host, port);
                self.list(judge, &caller, &host, address);
            }
            Event::Failed { host, port, errno, ends } => {
                let learns = match ends {
                    None => Learns::Answer,
                    Some(ends) if self.dials.tell(ends, as_of_connect(errno)) => Learns::Error,
                    Some(_) => Learns::Reset,
                };
                match errno {
                    libc::EACCES => self.hear_not_let_out(&host, port, judge),
                    errno => self.hear_failed(&host, port, (errno, learns), judge),
                }
            }
            Event::Mismatch { host, port, said, protocol } => {
                let caller = self.counted(&host, port, |used| used.refused += 1).caller(&host, port);
                let word = protocol.to_string().to_uppercase();
                let reason = judge.explainer.mismatch_reason(&word, &host, port, said.as_deref());
                let said = said.map_or_else(|| "no host".to_string(), |said| format!("'{}'", said.replace('\'', "?")));
                let what = format!("{}:{port}, {word} to {said}", bracketed(&host));
                let fate = if self.logs { Fate::WouldBlock } else { Fate::Blocked };
                self.tell(judge, &caller, fate, "connection", what, reason);
            }
            Event::Closed { host, port, sent, received, .. } => {
                self.counted(&host, port, |used| {
                    used.sent = used.sent.saturating_add(sent);
                    used.received = used.received.saturating_add(received);
                });
            }
            Event::Cut { host, port, .. } => judge.violations.line(&cut(&host, port)),
            Event::Full { count } => judge.violations.line(&format!(
                "the run has {count} connections to hosts, as many as it can have: the next ones wait until one ends"
            )),
            Event::Untold { count } => {
                self.state.borrow_mut().lose(count);
            }
            Event::Lost { count } => {
                self.dials.release(false);
                self.state.borrow_mut().lose(count);
            }
        }
    }

    /// A name has an address inside.
    fn hear_assigned(&self, name: HostName, address: Ipv4Addr, judge: &mut Judge) {
        if !Range::of_names().has(address.into()) {
            return;
        }
        let is_listed = self.logs && !self.plan.rules.know_name(&name);
        let shown = name.to_string();
        let asker = {
            let mut state = self.state.borrow_mut();
            state.names.entry(address).or_insert(name);
            state.asker()
        };
        if is_listed {
            let reason = judge.explainer.host_name_reason(&shown);
            self.tell(judge, &asker, Fate::WouldBlock, "dns", format!("A {shown}"), reason);
        }
    }

    /// The broker let a connection not out: a client of the proxy names whom it likes, and a name may have an address
    /// that no rule names.
    fn hear_not_let_out(&self, host: &str, port: u16, judge: &mut Judge) {
        let caller = self.counted(host, port, |used| used.refused += 1).caller(host, port);
        let asked = host_of(host, port);
        let reason = match self.allows(&asked) {
            true => judge.explainer.address_of_name_reason(host, port),
            false => judge.explainer.host_reason(&asked),
        };
        self.tell(judge, &caller, Fate::Blocked, "connection", format!("{}:{port}", bracketed(host)), reason);
    }

    /// A connection failed as it would outside. No error of connect(2) says so of a name without an address, and no
    /// answer of the proxy says why.
    fn hear_failed(&self, host: &str, port: u16, (errno, learns): (i32, Learns), judge: &Judge) {
        let mut is_first = false;
        self.counted(host, port, |used| {
            used.failed += 1;
            is_first = used.failed == 1;
        });
        let line = match why_not_looked_up(errno) {
            Some(cause) => {
                let short = if host.contains('.') { "" } else { SHORT };
                format!("cannot look up '{}': {cause}{short}", shown(Path::new(host)))
            }
            None if learns == Learns::Error || errno == libc::ECONNABORTED => return,
            None => {
                let (host, cause) =
                    (bracketed(host), crate::sys::plain(&std::io::Error::from_raw_os_error(errno)));
                let end = if learns == Learns::Reset { ", and was reset" } else { "" };
                format!("the connection to {}:{port} failed outside{end}: {cause}", shown(Path::new(&host)))
            }
        };
        if is_first {
            judge.violations.line(&line);
        }
    }

    /// What is known, with this counted of a host.
    fn counted(&self, host: &str, port: u16, change: impl FnOnce(&mut Used)) -> RefMut<'_, State> {
        let mut state = self.state.borrow_mut();
        state.of(host, port, change);
        state
    }

    /// Names a connection that only log mode has let through, by its host or by the address that it has led to.
    fn list(&self, judge: &mut Judge, program: &Program, shown: &str, to: SocketAddr) {
        let (host, port) = (host_of(shown, to.port()), to.port());
        if !self.logs || host.address.is_loopback() {
            return;
        }
        let reason = match self.allows(&host) {
            false => judge.explainer.host_reason(&host),
            true if self.leads_out(to.ip(), port) => return,
            true => judge.explainer.address_of_name_reason(shown, port),
        };
        self.tell(judge, program, Fate::WouldBlock, "connection", format!("{shown}:{port}"), reason);
    }

    /// Whether the broker would make a connection to this address of a host that rules name.
    fn leads_out(&self, address: IpAddr, port: u16) -> bool {
        let rules = &self.plan.rules;
        rules.allow_resolved(address, port) && broker::leads_out(rules, address, port)
    }

    /// What log mode does not let through either was blocked: a refusal that the broker tells of has happened.
    fn tell(
        &self,
        judge: &mut Judge,
        (program, process): &Program,
        fate: Fate,
        call: &str,
        arguments: String,
        reason: Reason,
    ) {
        let (kind, confidence) = (Kind::Address, Confidence::Observed);
        let (call, path, address) = (call.to_string(), None, None);
        let violation = Violation { fate, kind, confidence, call, arguments, path, address, reason };
        judge.violations.tell_of(violation, program, *process);
    }

    /// Ends the broker. What it has still to tell is heard. `finishes`: and what the run has sent is passed on first.
    pub fn end(&self, finishes: bool, judge: &mut Judge) {
        // What happened before is heard, and is news.
        self.read(judge);
        self.state.borrow_mut().is_over = true;
        self.broker.end(finishes, &mut || self.read(judge));
    }

    /// What the run had of each host and port. Port 0: its name was asked for.
    pub fn used(&self) -> Vec<((String, u16), Used)> {
        self.state.borrow().used.iter().map(|(host, used)| (host.clone(), used.clone())).collect()
    }

    /// How many events are in none of them.
    pub fn unlisted(&self) -> u64 {
        self.state.borrow().unlisted
    }
}

/// That the run has ended before what it had sent was passed on.
fn cut(host: &str, port: u16) -> String {
    let host = shown(Path::new(host));
    format!(
        "the run ended, and what it had sent last to {}:{port} could not be delivered: the connection was reset",
        bracketed(&host)
    )
}

/// A host as the broker names it.
fn host_of(shown: &str, port: u16) -> Host {
    let address = shown.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    Host { name: HostName::parse(shown).ok(), address, port }
}

/// A host as the broker is told of it. One that hosts(5) has may have several names, and the broker knows them.
fn said(host: &Host) -> said::Host {
    let name = host.name.clone().filter(|_| Range::of_names().has(host.address));
    name.map_or(said::Host::Address(host.address), said::Host::Name)
}

/// The error that connect(2) has for a failure that only the broker knows.
fn as_of_connect(errno: i32) -> i32 {
    match errno {
        libc::EACCES | libc::EADDRNOTAVAIL => libc::ECONNREFUSED,
        libc::ENOENT | libc::EREMOTEIO => libc::EHOSTUNREACH,
        errno => errno,
    }
}

/// What is to be said of a name without a dot.
const SHORT: &str = ", and domains to search are not tried: name it in full";

/// Why a name has no address. No error of connect(2) says that to the command.
fn why_not_looked_up(errno: i32) -> Option<&'static str> {
    match errno {
        libc::ENOENT => Some("this machine's name servers know no address of it"),
        libc::EREMOTEIO => Some("this machine's name servers answer with an error"),
        _ => None,
    }
}
