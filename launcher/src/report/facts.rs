//! Parts of a plan, and the kernel's usage counters, as parts of a report.

use crate::hosts::{HostRule, HostRules};
use crate::plan::Plan;
use crate::plan::home::PrivateHome;
use crate::plan::limits::Applied;
use crate::profile::Source;
use crate::request::PortPair;
use crate::supervise;
use crate::supervise::hosts::{Hosts, Used};
use crate::supervise::published::Published;
use crate::sys::usage::Usage;
use sbx_client::report::{
    Bytes, HomeUsed, HostUsed, Level, LimitUsed, NetworkMode, NetworkUsed, Output, ProfileUsed, Proxy,
    PublishedPort, Rusage, Stream,
};
use std::path::Path;
use std::time::SystemTime;

pub fn profile(plan: &Plan) -> ProfileUsed {
    let profile = &plan.profile;
    let file = match &profile.source {
        Source::BuiltIn => None,
        Source::File(path) => Some(Bytes::from(path.as_path())),
    };
    let lineage = profile.lineage.iter().map(|name| name.to_string()).collect();
    ProfileUsed { name: profile.name.to_string(), file, lineage }
}

pub fn home(home: &PrivateHome) -> HomeUsed {
    HomeUsed {
        directory: home.directory.as_path().into(),
        lasts: home.lasts,
        stores_read_only: home.no_layers.clone(),
        written: Vec::new(),
        more_written: false,
    }
}

pub fn network(plan: &Plan) -> NetworkUsed {
    let hosts = plan.network.hosts.as_deref();
    let rules = |list: fn(&HostRules) -> &[HostRule]| {
        hosts.map_or_else(Vec::new, |hosts| list(&hosts.rules).iter().map(HostRule::to_string).collect())
    };
    NetworkUsed {
        mode: match plan.network.mode {
            crate::profile::NetworkMode::None | crate::profile::NetworkMode::Loopback => NetworkMode::None,
            _ if hosts.is_some() => NetworkMode::Hosts,
            crate::profile::NetworkMode::Ports => NetworkMode::Ports,
            crate::profile::NetworkMode::Host => NetworkMode::Host,
            crate::profile::NetworkMode::Private => NetworkMode::Private,
        },
        connect: if hosts.is_some() { Vec::new() } else { plan.network.connect.clone() },
        bind: plan.network.bind.clone(),
        unix: plan.sockets.iter().map(|path| path.as_path().into()).collect(),
        allow: rules(|rules| &rules.allow),
        deny: rules(|rules| &rules.deny),
        proxy: plan.network.proxy().map(|proxy| match proxy.is_supervised {
            true => Proxy::Supervised,
            false => Proxy::ByPort,
        }),
        host_ports: hosts.map(|hosts| hosts.doors.host_ports.clone()).unwrap_or_default(),
        published: plan.publish.iter().map(|pair| shown(pair, &Used::default())).collect(),
        hosts: Vec::new(),
        hosts_unlisted: 0,
    }
}

/// What the run had of each host.
pub fn hosts(hosts: &Hosts) -> Vec<HostUsed> {
    let used = hosts.used().into_iter();
    let all = used.map(|((host, port), used)| HostUsed {
        host,
        port: (port != 0).then_some(port),
        connections: used.connections,
        failed: used.failed,
        refused: used.refused,
        sent: used.sent,
        received: used.received,
        first: time(used.first.unwrap_or(SystemTime::UNIX_EPOCH)),
        last: time(used.last.unwrap_or(SystemTime::UNIX_EPOCH)),
    });
    all.collect()
}

/// How each port of the run that this machine showed was used.
pub fn published(published: &Published) -> Vec<PublishedPort> {
    published.used().iter().map(|(pair, used)| shown(pair, used)).collect()
}

fn shown(pair: &PortPair, used: &Used) -> PublishedPort {
    PublishedPort {
        port: pair.here,
        inside: pair.inside,
        connections: used.connections,
        failed: used.failed,
        sent: used.sent,
        received: used.received,
        first: used.first.map(time),
        last: used.last.map(time),
    }
}

fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_micros(time).to_string()
}

pub fn level(plan: &Plan) -> Level {
    match plan.level() {
        None => Level::None,
        Some(crate::profile::Level::Minimal) => Level::Minimal,
        Some(crate::profile::Level::Standard) => Level::Standard,
        Some(crate::profile::Level::Full) => Level::Full,
    }
}

pub fn limit(applied: &Applied) -> LimitUsed {
    LimitUsed {
        name: applied.limit.word().into(),
        value: applied.value,
        unit: applied.limit.unit(),
        mechanism: applied.means.word().into(),
    }
}

/// What passed through the supervisor. If both streams are one file, it counts as standard output.
pub fn output(streams: &[supervise::output::Stream]) -> Output {
    let of = |name: &str| {
        let stream = streams.iter().find(|stream| stream.name.starts_with(name))?;
        Some(Stream { bytes: stream.bytes, left_out: stream.left_out })
    };
    Output { stdout: of("stdout"), stderr: of("stderr") }
}

pub fn rusage(usage: Usage) -> Rusage {
    let Usage { user, system, memory, faults, switches, blocks } = usage;
    Rusage {
        user_ms: milliseconds(user as f64),
        system_ms: milliseconds(system as f64),
        max_rss_kib: memory,
        minor_faults: faults[0],
        major_faults: faults[1],
        voluntary_switches: switches[0],
        involuntary_switches: switches[1],
        blocks_read: blocks[0],
        blocks_written: blocks[1],
    }
}

/// Converts microseconds.
pub fn milliseconds(microseconds: f64) -> f64 {
    microseconds / 1_000.0
}

/// Whether the command may write to this file.
pub fn is_exposed(path: &Path, plan: &Plan) -> bool {
    let mut writable = plan.paths.iter().flatten().filter(|rule| rule.rights.changes_files());
    plan.paths.is_none() || writable.any(|rule| path.starts_with(&rule.path))
}
