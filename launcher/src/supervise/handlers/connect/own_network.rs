//! What there is to say of connections in a network of the run's own.
//!
//! Such a connection fails by itself where it leads out, and where nobody waits at its port. The first is
//! said always. The second is said, once for each port, if a server of the host waits there: that one was
//! probably meant. A program that tries a port of its own before its server is up is not bothered.

use crate::explain::decode::Address;
use crate::explain::hint::{Hint, Outside};
use crate::explain::servers::{self, Protocol};
use crate::hosts::{HOST_PORT_AT, is_host_port_at, reached};
use crate::plan::OnViolation;
use crate::supervise::dispatch::Flow;
use crate::supervise::judge::{DecidedBy, Judge, error};
use crate::supervise::violation::Fate;
use crate::supervise::waiting::{NotifiedCall, Told};
use crate::sys::process::Pid;
use crate::sys::seccomp::Answer;
use crate::sys::socket::{self, Sends};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// A server, by what is sent to it and its port.
pub type Server = (Protocol, u16);

/// A connection whose result is looked at.
pub struct Watched {
    /// What is looked for.
    pub lead: Lead,
    protocol: Protocol,
    port: u16,
    call: NotifiedCall,
    told: Told,
}

/// What a connection may turn out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// One that leads out of the run's network.
    Out,
    /// One to a UNIX socket without a file: those belong to a network too.
    ToAName,
    /// One to the loopback interface, meant for a server of the host.
    ToTheHost {
        /// What is sent there.
        protocol: Protocol,
        /// Where to.
        address: SocketAddr,
        /// Who does so.
        caller: Pid,
    },
}

impl Watched {
    /// `None`: whatever comes of it, there is nothing to say.
    pub fn of(
        socket: &OwnedFd,
        call: &NotifiedCall,
        told: Told,
        named: &BTreeSet<Server>,
    ) -> Option<Watched> {
        let (ip, port) = match &told.decoded.address {
            Some(Address::Inet { ip, port }) => (*ip, *port),
            Some(Address::UnixAbstract(_)) => {
                let (lead, protocol, port) = (Lead::ToAName, Protocol::Tcp, 0);
                return Some(Watched { lead, protocol, port, call: call.clone(), told });
            }
            _ => return None,
        };
        let sends = socket::sends(socket);
        let protocol = match sends {
            Some(Sends::Stream) => Protocol::Tcp,
            _ => Protocol::Udp,
        };
        let lead = if is_loopback(ip) {
            sends?;
            if port == 0 || named.contains(&(protocol, port)) {
                return None;
            }
            let (address, caller) = (SocketAddr::new(reached(ip), port), call.notification.pid);
            Lead::ToTheHost { protocol, address, caller }
        } else {
            Lead::Out
        };
        Some(Watched { lead, protocol, port, call: call.clone(), told })
    }

    /// Says what the connection turned out to be.
    pub fn tell(&self, named: &mut BTreeSet<Server>, judge: &mut Judge) -> Flow {
        let say = |judge: &mut Judge, fate, to: Outside<'_>| {
            let is_tcp = self.protocol == Protocol::Tcp;
            let mut reason = judge.explainer.connection_reason(to, self.port, is_tcp);
            if let Lead::ToTheHost { protocol, address, .. } = self.lead
                && !is_host_port_at(address.ip())
            {
                reason.hint = reason.hint.map(|hint| at_another_address(hint, protocol, address.port()));
            }
            judge.say(fate, &self.call, &self.told, reason, DecidedBy::Filter);
        };
        match self.lead {
            Lead::ToTheHost { protocol, address, .. } => {
                if named.insert((protocol, address.port())) {
                    say(judge, Fate::Blocked, Outside::ThisMachine);
                }
                Flow::GoOn
            }
            Lead::ToAName => {
                let is_there = match &self.told.decoded.address {
                    Some(Address::UnixAbstract(name)) => servers::has_name(name),
                    _ => false,
                };
                if is_there {
                    let reason = judge.explainer.name_reason();
                    judge.say(Fate::Blocked, &self.call, &self.told, reason, DecidedBy::Filter);
                }
                Flow::GoOn
            }
            // Without a way there it has failed by itself.
            Lead::Out => {
                let (fate, flow) = match judge.on_violation {
                    OnViolation::Kill => (Fate::Ended, Flow::EndRun),
                    OnViolation::Log => (Fate::WouldBlock, Flow::GoOn),
                    OnViolation::Errno(_) => (Fate::Blocked, Flow::GoOn),
                };
                let to = match self.told.decoded.address {
                    Some(Address::Inet { ip, .. }) => Outside::Address(ip),
                    _ => Outside::Unknown,
                };
                say(judge, fate, to);
                flow
            }
        }
    }
}

/// What reaches a server of the host's loopback at an address to which `--host-port` brings none. The flag helps if the
/// server can be had at one to which it does.
fn at_another_address(hint: Hint, protocol: Protocol, port: u16) -> Hint {
    match HOST_PORT_AT.into_iter().any(|ip| servers::waits("self", protocol, SocketAddr::new(ip, port))) {
        true => hint.noting(Some("at 127.0.0.1 and ::1")),
        false => Hint::of(["--net", "host"]),
    }
}

impl Lead {
    /// The port of the run's own loopback that a connection with this result was to, and whether somebody listened.
    pub fn answered(self, socket: &OwnedFd, result: Answer) -> Option<(u16, bool)> {
        match self {
            Lead::ToTheHost { protocol: Protocol::Tcp, address, .. } => {
                Some((address.port(), !is_refused(socket, result)))
            }
            _ => None,
        }
    }

    /// Whether a connection with this result is such a one. No connection fails over UDP: what is sent is lost.
    pub fn is_true(self, socket: &OwnedFd, result: Answer) -> bool {
        let fails = |errno| result == error(errno);
        match self {
            Lead::Out => fails(libc::ENETUNREACH),
            Lead::ToAName => fails(libc::ECONNREFUSED),
            Lead::ToTheHost { protocol: Protocol::Tcp, address, .. } => {
                is_refused(socket, result) && servers::waits("self", Protocol::Tcp, address)
            }
            Lead::ToTheHost { protocol: Protocol::Udp, address, caller } => {
                let waits = |process: &str| servers::waits(process, Protocol::Udp, address);
                result == Answer::Done && waits("self") && !waits(&caller.to_string())
            }
        }
    }
}

/// Whether nobody listens where a connection with this result leads.
fn is_refused(socket: &OwnedFd, result: Answer) -> bool {
    let fails = |errno| result == error(errno);
    fails(libc::ECONNREFUSED) || (fails(libc::EINPROGRESS) && socket::is_closed(socket))
}

/// Whether an address stands for this machine alone, or is taken for one that does.
pub fn is_loopback(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || ip.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_told_from_others() {
        for ip in ["127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"] {
            let ip: IpAddr = ip.parse().unwrap();
            assert!(is_loopback(ip) && reached(ip).is_loopback(), "{ip}");
        }
        for ip in ["192.0.2.1", "169.254.169.254", "::ffff:192.0.2.1", "fe80::1", "2001:db8::1"] {
            assert!(!is_loopback(ip.parse().unwrap()), "{ip}");
        }
    }
}
