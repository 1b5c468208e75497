//! The broker: the process through which a run reaches the hosts that its rules name.
//!
//! It lives in the host's network and serves sockets that were made in the run's own one, where every address is local.
//! There it answers the questions of DNS with addresses that stand for names, accepts the connections to them, and
//! connects to the hosts outside. No other way leads out of the run. It is a process of its own, with no right but to
//! make such connections: what it reads comes from a command that nobody trusts, and from the network.
//!
//! A run without a network of its own reaches it by a proxy on loopback.

mod askers;
mod clients;
mod confine;
mod dial;
pub mod dns;
mod events;
mod link;
mod look;
mod lookup;
pub mod message;
pub mod names;
mod pipes;
mod poll;
pub mod proxy;
mod relay;
mod resolver;
pub mod said;
mod serving;

pub use events::{Event, LONGEST as LONGEST_EVENT, Teller};
pub use resolver::{Files, Resolver, names_of_host};
pub use serving::{FINISH, Loop, Settings};

use crate::hosts::HostRules;
use crate::sys::process;
use crate::sys::route::Routes;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// The sockets in the run's network.
pub struct Doors {
    /// UDP sockets for questions, at port 53 of all addresses: one for IPv4, and one for IPv6 only, if there is one.
    /// They tell where each datagram was sent.
    pub datagrams: Vec<OwnedFd>,
    /// Listening TCP sockets for questions.
    pub questions: Vec<OwnedFd>,
    /// Listening TCP sockets for connections.
    pub listeners: Vec<Listener>,
}

/// A socket for connections, listening and non-blocking.
pub struct Listener {
    /// Where its connections lead.
    pub kind: Door,
    /// The socket.
    pub socket: OwnedFd,
}

/// Where connections lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// To the host that the local address of the connection stands for, at this port.
    Rule(u16),
    /// To this port of the host's loopback.
    HostPort(u16),
    /// To whom the client wants to reach, as it says first.
    Proxy,
}

/// Which end of a connection is the run's: the one that is accepted here, or the one that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsEnd {
    /// It reaches hosts.
    Inside,
    /// It is reached.
    Outside,
}

/// What the broker goes by.
pub struct Setup {
    /// Where connections may go.
    pub rules: HostRules,
    /// Whom names are asked of.
    pub resolver: Resolver,
    /// Log mode: everything is let through, and told of.
    pub watches: bool,
    /// Which end of each connection is the run's.
    pub run: RunsEnd,
    /// Tells what leads to other machines. Without them, nothing does but what rules have the address of.
    pub routes: Option<Routes>,
}

/// Whether the broker would make a connection to an address that rules allow.
pub fn leads_out(rules: &HostRules, address: IpAddr, port: u16) -> bool {
    dial::leads_out(rules, Routes::open().ok().as_ref(), address, port)
}

/// The exit status when the broker could not begin to serve. It has served nobody then.
pub const NOT_STARTED: i32 = 2;

/// The exit status when it had to stop.
pub const STOPPED: i32 = 3;

/// Confines the calling process, serves until the other end of the channel is closed, and exits. The channel is a
/// UNIX socket of packets.
pub fn serve(setup: Setup, doors: Doors, channel: OwnedFd) -> ! {
    let started = confine::confine(&doors, setup.routes.as_ref(), &channel).and_then(|descriptors| {
        Loop::new(setup, Settings::new(descriptors), doors, channel).map_err(Into::into)
    });
    let Ok(mut started) = started else { process::exit_now(NOT_STARTED) };
    process::exit_now(if started.run().is_ok() { 0 } else { STOPPED })
}
