//! Shows ports of the run's own loopback on this machine's (`--publish`).
//!
//! What does it is the broker turned around: its sockets are this machine's, and it lives in the run's network, where
//! it connects to loopback. It is confined in the same way.

use crate::broker::{self, Door, Doors, Listener, Resolver, Setup};
use crate::enforce::doors::{self, Purpose};
use crate::error::{Refusal, cannot};
use crate::hosts::HostRules;
use crate::request::PortPair;
use crate::run::proxy::listening;
use crate::supervise::brokers::Broker;
use crate::supervise::published::Published;
use crate::sys::namespace::OpenNetwork;
use crate::sys::{OfCall, SyscallError, descriptor, probe, process, socket};
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
        let mut listeners = Vec::new();
        for PortPair { here, inside } in ports {
            for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
                match listening(address, *here) {
                    Ok((socket, _)) => listeners.push(Listener { kind: Door::HostPort(*inside), socket }),
                    Err(failed) if address.is_ipv6() && has_no_ipv6(&failed) => {}
                    Err(failed) => {
                        let place = format!("{address}, port {here}, of this machine");
                        return Err(Refusal::new(format!(
                            "cannot show a port of the run at {place}: {failed}"
                        )));
                    }
                }
            }
        }
        Ok(Publishing { ports: ports.to_vec(), listeners })
    }

    /// Starts to serve them, in the run's network.
    pub fn start(self, doors: &[doors::Door]) -> Result<Rc<Published>, Refusal> {
        let network = network_of(doors).map_err(cannot("find the run's network for --publish"))?;
        let [own, channel] = socket::packet_pair().map_err(cannot("make a channel for --publish"))?;
        let pid = probe::fork().map_err(cannot("start the process for --publish"))?;
        if pid == 0 {
            drop(own);
            if network.enter().is_err() {
                process::exit_now(broker::NOT_STARTED);
            }
            let resolver = Resolver::none();
            let setup = Setup { rules: HostRules::default(), resolver, watches: false, tells: true };
            let doors = Doors { datagrams: Vec::new(), questions: Vec::new(), listeners: self.listeners };
            broker::serve(setup, doors, channel);
        }
        Ok(Rc::new(Published::new(Broker::new(own, pid), &self.ports)))
    }
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
