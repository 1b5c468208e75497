//! Shows ports of the run's own loopback on this machine's (`--publish`).
//!
//! What does it is the broker turned around: its sockets are this machine's, and it lives in the run's network, where
//! it connects to loopback. It is confined in the same way.

use crate::broker::{self, Door, Doors, Listener, Resolver, RunsEnd, Setup};
use crate::enforce::doors::{self, Purpose};
use crate::error::{Refusal, cannot};
use crate::hosts::HostRules;
use crate::request::PortPair;
use crate::run::proxy::listening;
use crate::supervise::brokers::Broker;
use crate::supervise::published::Published;
use crate::sys::namespace::OpenNetwork;
use crate::sys::{OfCall, SyscallError, descriptor, process, socket};
use rustix::io::Errno;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// The sockets on this machine's loopback, listening.
pub struct Publishing {
    ports: Vec<PortPair>,
    listeners: Vec<Listener>,
}

impl Publishing {
    /// Takes the ports, before there is a command. A machine without IPv6 has them for IPv4 alone.
    pub fn of(ports: &[PortPair]) -> Result<Publishing, Refusal> {
        let (mut shown, mut listeners): (Vec<PortPair>, Vec<Listener>) = Default::default();
        for &pair in ports {
            let PortPair { here, inside } = pair;
            match shown.iter().find(|other| other.here == here) {
                Some(other) if *other == pair => continue,
                Some(_) => {
                    return Err(Refusal::new(format!("--publish names port {here} of this machine twice")));
                }
                None => shown.push(pair),
            }
            for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
                match listening(address, here) {
                    Ok((socket, _)) => listeners.push(Listener { kind: Door::HostPort(inside), socket }),
                    Err(failed) if address.is_ipv6() && has_no_ipv6(&failed) => {}
                    Err(failed) => return Err(not_shown(address, pair, &failed)),
                }
            }
        }
        Ok(Publishing { ports: shown, listeners })
    }

    /// Starts to serve them, in the run's network.
    pub fn start(self, doors: &[doors::Door]) -> Result<Rc<Published>, Refusal> {
        let network = network_of(doors).map_err(cannot("find the run's network for --publish"))?;
        let [own, channel] = socket::packet_pair().map_err(cannot("make a channel for --publish"))?;
        let pid = process::fork().map_err(cannot("start the process for --publish"))?;
        if pid == 0 {
            drop(own);
            if network.enter().is_err() {
                process::exit_now(broker::NOT_STARTED);
            }
            let resolver = Resolver::none();
            let (rules, run) = (HostRules::default(), RunsEnd::Outside);
            let setup = Setup { rules, resolver, watches: false, run, routes: None };
            let doors = Doors { datagrams: Vec::new(), questions: Vec::new(), listeners: self.listeners };
            broker::serve(setup, doors, channel);
        }
        Ok(Rc::new(Published::new(Broker::new(own, pid), &self.ports)))
    }
}

/// That this machine's port cannot be had, and what else may be asked for.
fn not_shown(address: IpAddr, pair: PortPair, failed: &SyscallError) -> Refusal {
    let PortPair { here, inside } = pair;
    let other = |why: &str| format!("{why}; to show it at another, --publish OTHER:{inside}");
    let advice = match failed.errno() {
        libc::EADDRINUSE => other(", because another program listens there"),
        libc::EACCES => other(", because that port is the administrator's"),
        _ => String::new(),
    };
    let place = format!("{address}, port {here}, of this machine");
    Refusal::new(format!("cannot show port {inside} of the run at {place}: {failed}{advice}"))
}

fn has_no_ipv6(failed: &SyscallError) -> bool {
    matches!(failed.errno(), libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)
}

/// The run's network, as its first process has opened it, and the user namespace that gives the right to it, unless
/// that is this process's.
fn network_of(doors: &[doors::Door]) -> Result<OpenNetwork, SyscallError> {
    let find = |wanted| doors.iter().find(|(purpose, _)| *purpose == wanted);
    let own = |wanted| find(wanted).map(|(_, number)| descriptor::own(*number)).ok_or(Errno::BADF);
    let (user, network) = (own(Purpose::User).of("open")?, own(Purpose::Network).of("open")?);
    let identity = |file: &OwnedFd| rustix::fs::fstat(file).map(|found| (found.st_dev, found.st_ino));
    let here = OwnedFd::from(File::open("/proc/self/ns/user").of("open")?);
    let is_own = identity(&here).of("fstat")? == identity(&user).of("fstat")?;
    Ok(OpenNetwork { user: (!is_own).then_some(user), network })
}
