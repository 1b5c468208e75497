//! Hosts for a run that has no network of its own: the broker is a proxy on this machine's loopback, and the only place
//! that connections lead to.
//!
//! Where the supervisor can take the sockets of programs, it connects each to the proxy, and says there whom the
//! program means: programs need to know nothing of it. Elsewhere Landlock keeps them to the proxy's port, and only
//! programs that go by the variables reach anybody.

use crate::error::Refusal;
use crate::host::landlock::Version;
use crate::plan::namespaces::Choice;
use crate::plan::network::{Hosts, Route};
use crate::plan::rules::Network;
use crate::plan::validation::Invalid;
use crate::plan::{Inputs, OnViolation, calls::Calls};
use crate::profile::NetworkMode;
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{self, Data};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

/// The proxy of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Where it is. `None` until it is made, and where a run is only asked about.
    pub at: Option<At>,
    /// The supervisor connects to it in the programs' place, so what is said of addresses holds exactly.
    pub is_supervised: bool,
    /// Why the run has no network of its own.
    pub why: String,
}

/// The ports of a socket on loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// On 127.0.0.1.
    pub ipv4: u16,
    /// On ::1, where there is IPv6.
    pub ipv6: Option<u16>,
}

impl Ports {
    /// The address for a socket of one of the families. A socket of IPv6 reaches 127.0.0.1 too.
    pub fn address(self, is_ipv6: bool) -> SocketAddr {
        match self.ipv6.filter(|_| is_ipv6) {
            Some(port) => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port),
            None if is_ipv6 => SocketAddr::new(Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(), self.ipv4),
            None => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.ipv4),
        }
    }

    /// Whether an address of loopback leads there.
    pub fn are_at(self, ip: IpAddr, port: u16) -> bool {
        match ip {
            IpAddr::V4(_) => port == self.ipv4,
            IpAddr::V6(_) => Some(port) == self.ipv6,
        }
    }

    fn all(self) -> impl Iterator<Item = u16> {
        [self.ipv4].into_iter().chain(self.ipv6)
    }
}

/// Where a proxy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// For connections.
    pub proxy: Ports,
    /// For questions of DNS, over TCP.
    pub questions: Ports,
}

/// Why something around `sbx` keeps the supervisor from connecting.
pub const NO_SOCKETS: &str =
    "a sandbox around sbx refuses pidfd_getfd(2), which sbx needs to connect sockets for the command";

/// Whether a run that names hosts may have them by a proxy, and why it has to, if it has.
pub fn other_way(
    inputs: &Inputs<'_>,
    asked: &Network,
    landlock: Version,
    nested: bool,
) -> Result<(bool, Option<Choice>), Invalid> {
    let Inputs { request, profile, .. } = inputs;
    if asked.hosts.is_none() {
        return Ok((false, None));
    }
    let wants_its_own = request.net == Some(NetworkMode::Private) || !request.publish.is_empty();
    let has_supervisor = !request.exec && !request.keep_background && !nested && !inputs.itself;
    let may = has_supervisor && !wants_its_own && !profile.is_unrestricted() && landlock >= Version::TCP;
    match *inputs.host.takes_descriptors.get() {
        true => Ok((may, None)),
        false if may => Ok((true, Some(Choice::None(NO_SOCKETS.to_string())))),
        false => Err(Invalid::HostsWithoutSockets),
    }
}

/// The network of a run that has its hosts by a proxy.
pub fn network(hosts: &Hosts, is_supervised: bool, why: String) -> Network {
    let route = Route::Proxy(Proxy { at: None, is_supervised, why });
    let hosts = Some(Rc::new(Hosts { route, ..hosts.clone() }));
    Network { mode: NetworkMode::Ports, hosts, ..Network::default() }
}

/// Refuses a run in which something else than the supervisor, or Landlock, judges what is sent.
pub fn check(network: &Network, calls: &Calls, on_violation: OnViolation) -> Result<(), Refusal> {
    let Some(proxy) = network.proxy().filter(|_| on_violation != OnViolation::Log) else { return Ok(()) };
    if proxy.is_supervised && !calls.connects_outside() {
        return Err(Invalid::HostsWithCalls("connect(2)").into());
    }
    let program = calls.strict_program()?;
    let allows = |name: &str, args: [u64; 6]| {
        let Some(nr) = Call::named(name.as_bytes()).and_then(|call| call.number(Arch::HOST)) else {
            return true;
        };
        interpret::run(&program, &Data { nr, arch: Arch::HOST.audit(), args }) != Some(bpf::RET_TRAP)
    };
    // A datagram has an address of its own.
    let makes = |family: i32| allows("socket", [family as u64, libc::SOCK_DGRAM as u64, 0, 0, 0, 0]);
    if [libc::AF_INET, libc::AF_INET6].into_iter().any(makes) {
        return Err(Invalid::HostsWithCalls("sockets of UDP").into());
    }
    // So has a routing header.
    match allows("setsockopt", [0, libc::IPPROTO_IPV6 as u64, libc::IPV6_RTHDR as u64, 0, 0, 0]) {
        true => Err(Invalid::HostsWithCalls("any option of sockets").into()),
        false => Ok(()),
    }
}

impl Network {
    /// The proxy, where hosts are reached by one.
    pub fn proxy(&self) -> Option<&Proxy> {
        match &self.hosts.as_deref()?.route {
            Route::Proxy(proxy) => Some(proxy),
            Route::Doors => None,
        }
    }

    /// Whether it is one that the supervisor connects to.
    pub fn is_supervised_proxy(&self) -> bool {
        self.proxy().is_some_and(|proxy| proxy.is_supervised)
    }

    /// Notes where it is, and that connections lead there and to the ports that are brought inside. Returns what this
    /// means for the run.
    pub fn place_proxy(&mut self, at: Option<At>) -> Option<String> {
        let hosts = self.hosts.as_mut().map(Rc::make_mut)?;
        let Route::Proxy(proxy) = &mut hosts.route else { return None };
        proxy.at = at;
        let supervised = at.filter(|_| proxy.is_supervised);
        let ports = at.into_iter().flat_map(|at| at.proxy.all());
        let questions = supervised.into_iter().flat_map(|at| at.questions.all());
        self.connect = ports.chain(questions).chain(hosts.doors.host_ports.iter().copied()).collect();
        self.connect.sort_unstable();
        self.connect.dedup();
        Some(format!("warning: {}", proxy.said(&hosts.doors.host_ports)))
    }
}

impl Proxy {
    /// The variables by which programs learn of it.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        let Some(at) = self.at else { return Vec::new() };
        let url = format!("http://{}", at.proxy.address(false));
        let set = |(name, value): (&str, &str)| (OsString::from(name), OsString::from(value));
        let proxies = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
        let proxies = proxies.map(|name| (name, url.as_str()));
        let direct = ["no_proxy", "NO_PROXY"].map(|name| (name, "localhost,127.0.0.1,::1"));
        // Node goes by these variables only if told to.
        let mut all: Vec<_> =
            proxies.into_iter().chain(direct).chain([("NODE_USE_ENV_PROXY", "1")]).collect();
        if self.is_supervised {
            // There is no UDP: resolv.conf(5) has this for connections of TCP to nameservers.
            all.push(("RES_OPTIONS", "use-vc"));
        }
        all.into_iter().map(set).collect()
    }

    /// What this means for the run.
    pub fn said(&self, host_ports: &[u16]) -> String {
        let front = format!("network: by proxy, as the run has no network of its own ({})", self.why);
        let Some(at) = self.at.filter(|_| !self.is_supervised) else {
            return format!(
                "{front}: programs that look up names over TCP or go by HTTPS_PROXY reach the hosts of the rules"
            );
        };
        let ports: Vec<String> =
            at.proxy.all().chain(host_ports.iter().copied()).map(|port| port.to_string()).collect();
        format!(
            "{front}: only programs that go by HTTPS_PROXY reach the hosts of the rules; and what remains open, as \
             {NO_SOCKETS}: TCP to {} of any host",
            match ports.as_slice() {
                [port] => format!("port {port}"),
                ports => format!("the ports {}", ports.join(", ")),
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_led_to_a_place_of_their_family() {
        let both = Ports { ipv4: 1, ipv6: Some(2) };
        let one = Ports { ipv4: 1, ipv6: None };
        let shown = |ports: Ports, is_ipv6| ports.address(is_ipv6).to_string();
        assert_eq!((shown(both, false), shown(both, true)), ("127.0.0.1:1".into(), "[::1]:2".into()));
        assert_eq!(shown(one, true), "[::ffff:127.0.0.1]:1");
        assert!(both.are_at(Ipv6Addr::LOCALHOST.into(), 2) && !one.are_at(Ipv6Addr::LOCALHOST.into(), 1));
    }

    #[test]
    fn what_remains_open_is_said() {
        let ports = Ports { ipv4: 4000, ipv6: None };
        let at = Some(At { proxy: ports, questions: Ports { ipv4: 4001, ipv6: None } });
        let proxy = |is_supervised| Proxy { at, is_supervised, why: "x".to_string() };
        assert!(!proxy(true).said(&[]).contains("remains open"));
        assert!(proxy(false).said(&[]).ends_with("TCP to port 4000 of any host"));
        assert!(proxy(false).said(&[5432]).ends_with("TCP to the ports 4000, 5432 of any host"));
        let names = |proxy: Proxy| proxy.variables().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert!(names(proxy(true)).contains(&"RES_OPTIONS".into()));
        assert!(!names(proxy(false)).contains(&"RES_OPTIONS".into()));
    }
}
