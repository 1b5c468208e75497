//! The network of a run: what is asked for, and what it becomes on this machine.

use crate::host::landlock::Version;
use crate::host::{Host, Open};
use crate::hosts::{DEFAULT_PORT, DNS_PORT, HostPattern, HostRule, HostRules, Range, RuleError};
use crate::plan::by_proxy::{self, Proxy};
use crate::plan::calls;
use crate::plan::namespaces::Choice;
use crate::plan::rules::Network;
use crate::plan::validation::Invalid;
use crate::profile::{Given, NetworkMode, Profile, Text, groups};
use crate::request::Request;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

/// The hosts that a run reaches, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Which.
    pub rules: HostRules,
    /// The sockets that this takes.
    pub doors: Doors,
    /// How connections leave the run.
    pub route: Route,
}

/// How connections to hosts leave a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// Out of a network of its own, by the sockets.
    #[default]
    Doors,
    /// By a proxy, where it has no such network.
    Proxy(Proxy),
}

/// The sockets in the run's network through which connections leave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doors {
    /// Ports of hosts outside.
    pub ports: Vec<u16>,
    /// Ports of the host's own loopback, which have the same number inside.
    pub host_ports: Vec<u16>,
}

/// Maximum number of ports that rules about hosts name: each is a socket or two.
const MOST_PORTS: usize = 64;

/// The network that is asked for.
pub fn asked(
    request: &Request,
    profile: &Profile,
    host: &Host,
    landlock: Version,
) -> Result<Network, Invalid> {
    let (mut network, allow) = at_first(request.net, profile)?;
    let mut rules = HostRules { allow, deny: read(&profile.network.deny, HostRule::parse_denial)? };
    if !request.connect.is_empty() || !request.bind.is_empty() {
        network.mode = NetworkMode::Ports;
        for text in &request.connect {
            rules.allow.extend(flag(text, profile)?);
        }
        network.bind.extend(&request.bind);
    }
    if network.mode == NetworkMode::Host && !profile.network.deny.is_empty() {
        return Err(Invalid::DeniedInOpenNetwork(profile.name.to_string()));
    }
    request.host_port.iter().try_for_each(|port| may_be_brought(*port, &rules))?;
    // Where no rule allows anything, they deny nothing else.
    if network.mode != NetworkMode::Ports {
        rules.deny.clear();
    }
    // With `--net private` ports are those of hosts as well: the run stays in a network of its own.
    let names_hosts =
        (request.net == Some(NetworkMode::Private) && !rules.allow.is_empty()) || are_about_hosts(&rules);
    if names_hosts || !request.host_port.is_empty() {
        return named(rules, &network, request, host);
    }
    network.connect = rules.ports();
    if !request.publish.is_empty() {
        publishing(&mut network, profile)?;
    }
    if network.mode == NetworkMode::Private && request.exec {
        return Err(Invalid::PrivateWithExec);
    }
    if network.mode == NetworkMode::Private {
        foreign_socket(request, host).map_or(Ok(()), Err)?;
    }
    if network.mode == NetworkMode::Ports && landlock < Version::TCP {
        return Err(Invalid::PortsWithoutLandlock(landlock));
    }
    if network.mode == NetworkMode::Ports && !network.connect.is_empty() && *host.has_connections_made.get() {
        return Err(Invalid::PortsInside);
    }
    Ok(network)
}

/// Refuses a port of this machine's loopback that is denied.
fn may_be_brought(port: u16, rules: &HostRules) -> Result<(), Invalid> {
    let own: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    match own.into_iter().find_map(|address| rules.denial_at(address, port)) {
        Some(denial) => Err(Invalid::NeverApplies {
            rule: format!("--host-port {port}"),
            why: format!("'{denial}' is denied"),
        }),
        None => Ok(()),
    }
}

/// Whether a profile has rules about hosts: its runs have a network of their own then.
pub fn names_hosts(profile: &Profile) -> Result<bool, Invalid> {
    let network = &profile.network;
    let (allow, deny) =
        (read(&network.connect, HostRule::parse)?, read(&network.deny, HostRule::parse_denial)?);
    Ok(calls::mode(profile) == NetworkMode::Ports && are_about_hosts(&HostRules { allow, deny }))
}

fn are_about_hosts(rules: &HostRules) -> bool {
    let is_about_one = |rule: &HostRule| rule.hosts != HostPattern::Any || rule.speaks.is_some();
    !rules.deny.is_empty() || rules.allow.iter().any(is_about_one)
}

/// What the profile allows of a network. A `--net` takes the place of all of it, and so of the hosts that it names.
fn at_first(flag: Option<NetworkMode>, profile: &Profile) -> Result<(Network, Vec<HostRule>), Invalid> {
    let mut network =
        Network { mode: flag.unwrap_or(calls::mode(profile)), asked: flag.is_some(), ..Network::default() };
    if flag.is_some() || network.mode != NetworkMode::Ports {
        return Ok((network, Vec::new()));
    }
    network.bind = profile.network.bind.iter().map(|port| port.value).collect();
    Ok((network, read(&profile.network.connect, HostRule::parse)?))
}

/// Ports are shown out of a network of the run's own: where the profile wants one if it can be had, it has to be.
fn publishing(network: &mut Network, profile: &Profile) -> Result<(), Invalid> {
    let what = match network.mode {
        NetworkMode::Private | NetworkMode::Loopback => {
            (network.mode, network.asked) = (NetworkMode::Private, true);
            return Ok(());
        }
        NetworkMode::None => "no network",
        NetworkMode::Ports | NetworkMode::Host => "this machine's network",
    };
    Err(Invalid::PublishElsewhere { profile: profile.name.to_string(), network: what })
}

/// The rules of a `--connect`: one, or those of a group. A number alone is a port.
fn flag(text: &str, profile: &Profile) -> Result<Vec<HostRule>, Invalid> {
    let Some(name) = groups::name(text) else { return rule(text).map(|rule| vec![rule]) };
    let network = &profile.network;
    let Some(rules) = network.group(name) else {
        let (name, known) = (name.to_string(), network.group_names());
        return Err(Invalid::NoGroup { name, known });
    };
    rules.iter().map(|text| rule(text)).collect()
}

fn rule(text: &str) -> Result<HostRule, Invalid> {
    let is_port = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let rule = if is_port { HostRule::parse(&format!("*:{text}")) } else { HostRule::parse(text) };
    rule.map_err(|why| Invalid::NoHost { text: text.to_string(), why })
}

/// The rules of a profile, whose texts were read with it.
fn read(
    given: &[Given<Text>],
    parse: fn(&str) -> Result<HostRule, RuleError>,
) -> Result<Vec<HostRule>, Invalid> {
    let rule = |text: &Text| parse(text).map_err(|why| Invalid::NoHost { text: text.to_string(), why });
    given.iter().map(|given| rule(&given.value)).collect()
}

/// A network of the run's own with ways to some hosts.
fn named(rules: HostRules, asked: &Network, request: &Request, host: &Host) -> Result<Network, Invalid> {
    if request.exec {
        return Err(Invalid::HostsWithExec);
    }
    if !asked.bind.is_empty() {
        return Err(Invalid::HostsWithBind);
    }
    if request.host_port.contains(&0) {
        return Err(Invalid::HostPortZero);
    }
    if request.host_port.contains(&DNS_PORT) {
        return Err(Invalid::HostPortOfNames);
    }
    if let Some(pair) = request.publish.iter().find(|pair| request.host_port.contains(&pair.inside)) {
        return Err(Invalid::PublishedHostPort(pair.inside));
    }
    rules.allow.iter().try_for_each(|rule| applies(rule, &rules))?;
    let ports = rules.ports();
    if ports.len() > MOST_PORTS {
        return Err(Invalid::ManyPorts(ports.len(), MOST_PORTS));
    }
    foreign_socket(request, host).map_or(Ok(()), Err)?;
    let host_ports: BTreeSet<u16> = request.host_port.iter().copied().collect();
    let doors = Doors { ports, host_ports: host_ports.into_iter().collect() };
    let hosts = Some(Rc::new(Hosts { rules, doors, route: Route::Doors }));
    Ok(Network { mode: NetworkMode::Private, asked: true, hosts, ..Network::default() })
}

/// Refuses a rule that never has an effect: whoever writes it believes something else.
pub(crate) fn applies(rule: &HostRule, rules: &HostRules) -> Result<(), Invalid> {
    let never = |why: String| Err(Invalid::NeverApplies { rule: rule.to_string(), why });
    if let Some(denial) = rules.denial_of(rule) {
        return never(format!("'{denial}' is denied"));
    }
    let port = rule.ports.first().copied().unwrap_or(DEFAULT_PORT);
    let own = |what: &str| {
        never(format!(
            "{what} is the run itself in its own network; bring a port of this machine inside with \
             '--host-port {port}'"
        ))
    };
    match &rule.hosts {
        HostPattern::Name(name) | HostPattern::Below(name)
            if name.as_str() == "localhost" || name.as_str().ends_with(".localhost") =>
        {
            own(&format!("'{name}'"))
        }
        HostPattern::Range(range) => match range.single().unwrap_or(range.first()) {
            address if address.is_loopback() => own(&format!("{range}")),
            address if address.is_multicast() => never("connections go to one host".to_string()),
            address if range.single().is_some() && address.is_unspecified() => own(&format!("{range}")),
            address if Range::of_names().has(address) && range.is_within(&Range::of_names()) => {
                never(format!("sbx takes the addresses of {} for the names of hosts", Range::of_names()))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A descriptor of the command's that is a socket of the host's network, or may be one. A socket stays in the network
/// that it was made in: one of the host's, handed in, would lead out to it.
pub fn foreign_socket(request: &Request, host: &Host) -> Option<Invalid> {
    let mut numbers = (0..3).chain(request.pass_fd.iter().copied());
    numbers.find_map(|number| match host.passed(number) {
        Open::NetworkSocket => Some(Invalid::ForeignSocket(number)),
        Open::Unseen(why) => Some(Invalid::UnseenDescriptor(number, why)),
        _ => None,
    })
}

/// What becomes of the network that is asked for. `own`: whether the run can have one of its own.
pub fn settle(
    asked: Network,
    own: Option<Choice>,
    logs: bool,
    (request, host): (&Request, &Host),
) -> Network {
    let lacking = |why: String| Network { lacks: Some(why), ..Network::default() };
    let private = Network { mode: NetworkMode::Private, ..Network::default() };
    match (asked.mode, own) {
        (NetworkMode::Private, Some(Choice::None(why))) if asked.hosts.is_some() => {
            let hosts = if logs { asked.hosts.map(listed) } else { asked.hosts };
            by_proxy::network(&hosts.unwrap_or_default(), *host.takes_descriptors.get(), why)
        }
        (NetworkMode::Private, _) => {
            let hosts = if logs { asked.hosts.map(listed) } else { asked.hosts };
            Network { namespace: true, asked: asked.asked, hosts, ..private }
        }
        // What would be refused is let through there: the calls are those of a network of the run's own.
        (NetworkMode::Loopback, _) if logs => Network { lacks: Some(LOGS.to_string()), ..private },
        (NetworkMode::Loopback, Some(Choice::Made)) => match foreign_socket(request, host) {
            None => Network { namespace: true, ..private },
            Some(Invalid::ForeignSocket(number)) => {
                lacking(format!("descriptor {number} is a socket of the host's network, and leads there"))
            }
            Some(invalid) => lacking(invalid.to_string()),
        },
        (NetworkMode::Loopback, Some(Choice::None(why))) => lacking(why),
        (NetworkMode::Loopback, None) => Network::default(),
        _ => asked,
    }
}

/// Where every host is let through and listed: the ports of the rules, and those that most programs use.
fn listed(hosts: Rc<Hosts>) -> Rc<Hosts> {
    const USUAL: [u16; 3] = [22, 80, DEFAULT_PORT];
    let mut hosts = Hosts::clone(&hosts);
    hosts.doors.ports.extend(USUAL);
    hosts.doors.ports.sort_unstable();
    hosts.doors.ports.dedup();
    Rc::new(hosts)
}

/// Why a run in log mode has none.
const LOGS: &str = "connections that lead out are let through and listed, as requested";
