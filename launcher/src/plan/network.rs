//! The network of a run: what is asked for, and what it becomes on this machine.

use crate::host::landlock::Version;
use crate::host::{Host, Open};
use crate::plan::calls;
use crate::plan::namespaces::Choice;
use crate::plan::rules::Network;
use crate::plan::validation::Invalid;
use crate::profile::{Endpoint, NetworkMode, Profile};
use crate::request::Request;

/// The network that is asked for.
pub fn asked(
    request: &Request,
    profile: &Profile,
    host: &Host,
    landlock: Version,
) -> Result<Network, Invalid> {
    let mut network = Network { mode: calls::mode(profile), ..Network::default() };
    if network.mode == NetworkMode::Ports {
        network.bind = profile.network.bind.iter().map(|port| port.value).collect();
        for endpoint in profile.network.connect.iter() {
            network.connect.push(any_host(&endpoint.host, endpoint.port)?);
        }
    }
    if let Some(mode) = request.net {
        network = Network { mode, asked: true, ..Network::default() };
    }
    if !request.connect.is_empty() || !request.bind.is_empty() {
        network.mode = NetworkMode::Ports;
        for text in &request.connect {
            let (host, port) = text.rsplit_once(':').unwrap_or(("*", text));
            let parsed = Endpoint::port(port);
            let port =
                parsed.ok_or_else(|| Invalid::NoPort { text: text.clone(), port: port.to_string() })?;
            network.connect.push(any_host(host, port)?);
        }
        network.bind.extend(&request.bind);
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
    Ok(network)
}

/// Landlock knows ports, not addresses.
fn any_host(host: &str, port: u16) -> Result<u16, Invalid> {
    if host == "*" { Ok(port) } else { Err(Invalid::OneHost(host.to_string(), port)) }
}

/// A socket stays in the network that it was made in: one of the host's, handed in, would lead out to it.
fn foreign_socket(request: &Request, host: &Host) -> Option<Invalid> {
    let mut numbers = (0..3).chain(request.pass_fd.iter().copied());
    numbers.find_map(|number| match (host.opened)(number) {
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
        (NetworkMode::Private, _) => Network { namespace: true, ..private },
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

/// Why a run in log mode has none.
const LOGS: &str = "connections that lead out are let through and listed, as requested";
