//! What a policy says about ports and sockets.

use crate::broker;
use crate::broker::dns::is_local;
use crate::error::Refusal;
use crate::explain::hint::{Explainer, Hint, Outside};
use crate::explain::query::{Answer, Rule, Subject, Verdict, network_rule, path};
use crate::host::landlock::Version;
use crate::hosts::{HostName, HostPattern, HostRule, Range};
use crate::plan::network::Hosts;
use crate::plan::rules;
use crate::profile::{Given, NetworkMode, Text};
use crate::sys::access;
use std::net::IpAddr;
use std::path::Path;

/// Where somebody wants to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// As it was given.
    pub text: String,
    /// The TCP port.
    pub port: u16,
    /// Whether it is on another machine.
    pub is_elsewhere: bool,
    /// The host, if it is one: somebody has to look its name up.
    pub name: Option<HostName>,
    /// Its address, if that is given.
    pub address: Option<IpAddr>,
}

pub fn connect(about: Subject<'_>, destination: &Destination) -> Answer {
    let plan = about.plan;
    let Destination { port, is_elsewhere, .. } = *destination;
    if let Some(hosts) = &plan.network.hosts {
        return to_host(about, hosts, destination);
    }
    if plan.network.mode == NetworkMode::Private && is_elsewhere {
        let refused = Answer::of(Verdict::Refused, "nothing else is in the run's own network");
        let mut answer = refused.by(network_rule(about));
        answer.hint = match outside(destination) {
            Outside::Unknown => Some(Hint::of(["--connect", &shown(destination)])),
            outside => Explainer::of(plan).connecting(outside, port, true),
        };
        return answer;
    }
    let names = |text: &str| HostRule::parse(text).is_ok_and(|rule| rule.has_port(port));
    let named = plan.profile.network.connect.iter().find(|entry| names(&entry.value));
    let named = named.map(|entry| Rule::of(&entry.origin));
    let hint = match plan.network.mode {
        NetworkMode::Private => to_this_machine(port),
        // A rule about ports has no name looked up.
        _ => Hint::of(["--connect", &shown(destination)]),
    };
    tcp(about, plan.network.connect.contains(&port), named, hint)
}

fn outside(destination: &Destination) -> Outside<'_> {
    match (&destination.name, destination.address) {
        (Some(name), _) => Outside::Name(name),
        (None, Some(address)) => Outside::Address(address),
        (None, None) => Outside::Unknown,
    }
}

/// The flag that brings a server of this machine inside.
fn to_this_machine(port: u16) -> Hint {
    Hint::of(["--host-port", &port.to_string()])
}

/// Out of a network of the run's own, to hosts that rules name.
fn to_host(about: Subject<'_>, hosts: &Hosts, destination: &Destination) -> Answer {
    let Destination { port, is_elsewhere, name, address, .. } = destination;
    let rules = &hosts.rules;
    if !is_elsewhere && hosts.doors.host_ports.contains(port) {
        return Answer::new(Verdict::Allowed).by(Rule::flag("--host-port"));
    }
    let proxy = about.plan.network.proxy();
    if !is_elsewhere && proxy.is_none() {
        return inside(network_rule(about), to_this_machine(*port));
    }
    if !is_elsewhere {
        let mut answer = Answer::of(Verdict::Refused, "no rule names it").by(network_rule(about));
        answer.hint = Some(to_this_machine(*port));
        return answer;
    }
    let is_any = name.is_none() && address.is_none();
    // An address that stands for names is none by itself.
    let leads_out = |address| broker::leads_out(rules, address, *port) && !Range::of_names().has(address);
    let by_file = |address| broker::names_of_host(address).iter().any(|name| rules.allow_name(name, *port));
    let allowed = name.as_ref().is_some_and(|name| rules.allow_name(name, *port) && !is_local(name))
        || address.is_some_and(|address| {
            let by_name = || rules.allow_resolved(address, *port) && by_file(address);
            (rules.allow_address(address, *port) || by_name()) && leads_out(address)
        })
        || is_any && rules.allow.iter().any(|rule| rule.hosts == HostPattern::Any && rule.has_port(*port));
    let is_about = |rule: &&HostRule| {
        let host = is_any && rule.hosts == HostPattern::Any
            || name.as_ref().is_some_and(|name| rule.is_about(name))
            || address.is_some_and(|address| rule.is_about_address(address));
        host && rule.has_port(*port)
    };
    let network = &about.plan.profile.network;
    // A rule is an entry of the profile, one of a group, or a flag.
    let rule = |list: &str, entries: &[Given<Text>], rules: &[HostRule]| {
        let rule = rules.iter().find(is_about)?.to_string();
        let entry = entries.iter().find(|entry| entry.value == rule);
        Some(entry.map_or_else(|| Rule::flag(format!("{list} '{rule}'")), |entry| Rule::of(&entry.origin)))
    };
    let denied = rule("network.deny", &network.deny, &rules.deny);
    if allowed {
        let mut answer =
            Answer::new(Verdict::Allowed)
                .by(rule("network.connect", &network.connect, &rules.allow).unwrap_or(network_rule(about)));
        let note = proxy.map(|proxy| match proxy.is_supervised {
            true => "by a proxy; a program that looks names up over UDP has to go by HTTPS_PROXY",
            false => "by a proxy, for programs that go by HTTPS_PROXY",
        });
        answer.notes.extend(note.map(str::to_string));
        return answer;
    }
    let why = if denied.is_some() { "a rule denies it" } else { "no rule names it" };
    let mut answer = Answer::of(Verdict::Refused, why);
    answer = answer.by(denied.clone().unwrap_or(network_rule(about)));
    answer.hint = denied.is_none().then(|| Hint::of(["--connect", &shown(destination)]));
    answer
}

/// As a rule says it.
fn shown(Destination { port, name, address, .. }: &Destination) -> String {
    match (name, address) {
        (Some(name), _) => format!("{name}:{port}"),
        (None, Some(address)) => std::net::SocketAddr::new(*address, *port).to_string(),
        (None, None) => format!("*:{port}"),
    }
}

pub fn bind(about: Subject<'_>, port: u16) -> Answer {
    let plan = about.plan;
    if let Some(shown) = plan.publish.iter().find(|pair| pair.inside == port) {
        let mut answer = Answer::new(Verdict::Allowed).by(Rule::flag("--publish"));
        answer
            .notes
            .push(format!("who connects to port {} of this machine's loopback reaches it", shown.here));
        return answer;
    }
    let entries = plan.profile.network.bind.iter();
    let named = entries.filter(|entry| entry.value == port).map(|entry| Rule::of(&entry.origin)).next();
    let flag = if plan.network.mode == NetworkMode::Private { "--publish" } else { "--bind" };
    let mut answer =
        tcp(about, plan.network.bind.contains(&port), named, Hint::of([flag, &port.to_string()]));
    if plan.network.mode == NetworkMode::Host && !plan.network.asked && !plan.calls.allows("listen") {
        answer = Answer::of(Verdict::Refused, "the profile's network is for clients");
        answer.hint = Some(Hint::of(["--net", "host"]));
    }
    if plan.network.mode != NetworkMode::Private && !access::may_bind(port) {
        let note = "the kernel refuses ordinary users to listen on this port, whatever sbx allows";
        answer.notes.push(note.to_string());
    }
    answer
}

fn tcp(about: Subject<'_>, listed: bool, named: Option<Rule>, hint: Hint) -> Answer {
    let plan = about.plan;
    let all = network_rule(about);
    if plan.network.mode == NetworkMode::Private {
        return inside(all, hint);
    }
    match (plan.network.mode, listed) {
        (NetworkMode::Host, _) => Answer::new(Verdict::Allowed).by(all),
        (NetworkMode::Ports, true) => Answer::new(Verdict::Allowed).by(named.unwrap_or(all)),
        (mode, _) => {
            let mut answer = Answer::new(Verdict::Refused).by(all);
            let why = if mode == NetworkMode::None {
                "there is no network"
            } else {
                "only the named ports are open"
            };
            answer.reason = Some(match &plan.network.lacks {
                Some(lacks) => format!("{why}, and no loopback of the run's own: {lacks}"),
                None => why.to_string(),
            });
            // Single ports take Landlock ABI 4. A flag that says otherwise has to be taken back.
            let by_port = plan.landlock >= Version::TCP && about.request.net.is_none();
            answer.hint = Some(if by_port { hint } else { Hint::of(["--net", "host"]) });
            answer
        }
    }
}

/// In a network of the run's own.
fn inside(rule: Rule, hint: Hint) -> Answer {
    let mut answer = Answer::new(Verdict::Depends).by(rule);
    answer
        .depends
        .push("allowed between the processes of the run: nobody else is in its network".to_string());
    answer.hint = Some(hint);
    answer
}

pub fn unix(about: Subject<'_>, socket: &Path) -> Result<Answer, Refusal> {
    let plan = about.plan;
    if plan.unconfined {
        return Ok(Answer::of(Verdict::Allowed, "nothing is confined").by(network_rule(about)));
    }
    let (place, exists) = path::place(&plan.directory.join(socket));
    let granted = path::granted(plan)?.unwrap_or_default();
    let makes = plan.calls.allows("socket");
    let reachable = plan.landlock >= Version::UNIX || plan.calls.supervisor_connects();
    let mut answer = if let Some(hidden) = Explainer::of(plan).hidden_socket(&place) {
        Answer::new(Verdict::Refused).told(hidden)
    } else if rules::may_connect(&granted, &plan.sockets, None, &place) && makes && reachable {
        let named = plan.profile.network.unix.iter().find(|_| plan.sockets.contains(&place));
        let rule = named.map(|entry| Rule::of(&entry.origin));
        Answer::new(Verdict::Allowed)
            .by(rule.unwrap_or_else(|| Rule::flag("sockets in writable directories")))
    } else {
        let mut answer = Answer::new(Verdict::Refused);
        if makes && !reachable {
            answer = answer.by(network_rule(about));
            answer.reason =
                Some("with this network UNIX sockets cannot be told apart before Landlock ABI 9".into());
        } else {
            answer = answer.by(Rule::flag(
                "no rule of the policy names this socket, and it is in no writable directory",
            ));
            answer.hint = exists.then(|| Hint::default().and("--unix", &place));
        }
        answer
    };
    if !exists {
        answer.notes.push("there is no such socket now".to_string());
    }
    Ok(answer)
}
