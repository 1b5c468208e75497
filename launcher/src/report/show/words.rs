//! Values of a report in words.

use crate::explain::decode::signal_name;
use crate::report::show::{name, sentence};
use crate::text::{escape, host_name, rounded_size as bytes};
use sbx_client::report::{
    Cause, Exit, Finding, FindingKind, HostUsed, LimitUsed, NetworkMode, NetworkUsed, Output, PublishedPort,
    Report, Rusage, Stream, Unit,
};
use std::net::IpAddr;

/// How the run ended, and its exit status where that is another one.
pub fn ending(report: &Report) -> String {
    let how = match (report.cause, &report.exit) {
        (Cause::Exited, Some(Exit { code: Some(code), .. })) => format!("exited with {code}"),
        (Cause::Signalled, Some(Exit { signal: Some(signal), .. })) => match signal_name(*signal) {
            Some(name) => format!("ended by {name}"),
            None => format!("ended by signal {signal}"),
        },
        (Cause::Exited, _) => "exited".to_string(),
        (Cause::Signalled, _) => "ended by a signal".to_string(),
        (Cause::Violation, _) => "ended for a violation".to_string(),
        (Cause::Timeout, _) => "ended when it timed out".to_string(),
        (Cause::MemoryLimit, _) => "ended for its memory".to_string(),
        (Cause::OutputFailed, _) => "ended because its output could not be passed on".to_string(),
        (Cause::Refused, _) => "not started: refused".to_string(),
        (Cause::NotFound, _) => "not started: there is no such command".to_string(),
        (Cause::NotExecutable, _) => "not started: it cannot be executed".to_string(),
        (Cause::Lost, _) => "lost: nobody knows how it ended".to_string(),
        (Cause::Unknown, _) => "ended in a way that this sbx does not know".to_string(),
    };
    let status = report.exit_status;
    let is_told = matches!(&report.exit, Some(Exit { code: Some(code), .. }) if *code == status);
    if is_told { how } else { format!("{how} (status {status})") }
}

/// A time in milliseconds.
pub fn seconds(milliseconds: f64) -> String {
    format!("{:.3} s", milliseconds / 1000.0)
}

pub fn processor(used: &Rusage) -> String {
    let (user, system) = (seconds(used.user_ms), seconds(used.system_ms));
    format!("{} ({user} in programs, {system} in the kernel)", seconds(used.user_ms + used.system_ms))
}

pub fn memory(used: &Rusage) -> String {
    let kib = u64::try_from(used.max_rss_kib).unwrap_or_default();
    format!("{} in the largest process", bytes(kib.saturating_mul(1024)))
}

/// What went through the caches is not in the report.
pub fn disks(used: &Rusage) -> String {
    let blocks = |count: i64| bytes(u64::try_from(count).unwrap_or_default().saturating_mul(512));
    format!("{} read, {} written", blocks(used.blocks_read), blocks(used.blocks_written))
}

/// The streams that were counted, if any were.
pub fn output(output: &Output) -> Option<String> {
    let stream = |name: &str, stream: Option<Stream>| {
        let Stream { bytes: all, left_out } = stream?;
        let without =
            if left_out > 0 { format!(", {} of it left out", bytes(left_out)) } else { String::new() };
        Some(format!("{} on {name}{without}", bytes(all)))
    };
    let streams: Vec<String> =
        [stream("stdout", output.stdout), stream("stderr", output.stderr)].into_iter().flatten().collect();
    (!streams.is_empty()).then(|| streams.join("; "))
}

/// What the command could reach.
pub fn network(network: &NetworkUsed) -> String {
    let ports = |ports: &[u16]| match ports {
        [] => "none".to_string(),
        ports => ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", "),
    };
    if network.proxy.is_some() {
        return format!(
            "by proxy, to {}",
            match network.allow.as_slice() {
                [] => "no host".to_string(),
                hosts => hosts.join(", "),
            }
        );
    }
    match network.mode {
        NetworkMode::None => "none".to_string(),
        NetworkMode::Host => "the host's".to_string(),
        NetworkMode::Private => "its own loopback, and nothing else".to_string(),
        NetworkMode::Hosts if network.allow.is_empty() => "its own loopback".to_string(),
        NetworkMode::Hosts => format!("its own loopback, and {}", network.allow.join(", ")),
        NetworkMode::Ports => {
            format!("TCP to ports {}; listening on {}", ports(&network.connect), ports(&network.bind))
        }
        NetworkMode::Unknown => "of a kind that this sbx does not know".to_string(),
    }
}

/// How a port of the run was used that this machine showed.
pub fn published(port: &PublishedPort) -> String {
    let mut what = connections(port.connections, port.sent, port.received);
    what.extend((port.failed > 0).then(|| format!("failed {}", port.failed)));
    let what = if what.is_empty() { "not used".to_string() } else { what.join("; ") };
    let of_run =
        if port.inside == port.port { String::new() } else { format!(", {} of the run", port.inside) };
    format!("{}{of_run}: {what}", port.port)
}

fn connections(number: u64, sent: u64, received: u64) -> Vec<String> {
    let whole = || format!("connections {number}, {} sent, {} received", bytes(sent), bytes(received));
    (number > 0).then(whole).into_iter().collect()
}

/// What the run had of a host.
pub fn host(used: &HostUsed) -> String {
    let mut what = connections(used.connections, used.sent, used.received);
    what.extend((used.failed > 0).then(|| format!("failed {}", used.failed)));
    what.extend((used.refused > 0).then(|| format!("refused {}", used.refused)));
    let port = used.port.map_or_else(String::new, |port| format!(":{port}"));
    // The command chooses the names that it asks for. None of them is to look like another row.
    let host = match used.host.parse::<IpAddr>() {
        Err(_) if used.host.contains(':') => format!("\"{}\"", escape(used.host.as_bytes(), 260)),
        _ => host_name(&used.host),
    };
    format!("{host}{port}: {}", what.join("; "))
}

pub fn limit(limit: &LimitUsed) -> String {
    let value = match limit.unit {
        Unit::Bytes => bytes(limit.value),
        Unit::Ms => seconds(limit.value as f64),
        Unit::Count | Unit::Unknown => limit.value.to_string(),
    };
    format!("{} {value}", sentence(&limit.name))
}

pub fn finding(finding: &Finding) -> String {
    let what = match finding.kind {
        FindingKind::RepositoryMade => "the command made this repository",
        FindingKind::RepositoryChanged => "the command may have changed this repository",
        FindingKind::IndexChanged => "the command wrote this index, which would lead git elsewhere",
        FindingKind::StateChanged => "the command wrote what git or hg goes on with here, as they never do",
        FindingKind::FileReplaced => "something outside replaced this protected file",
        FindingKind::FileMade => "something made this protected file",
        FindingKind::Unknown => "something of a kind that this sbx does not know",
    };
    let list = |names: &[_]| names.iter().map(name).collect::<Vec<_>>().join(", ");
    let names = if finding.names.is_empty() { String::new() } else { format!(" ({})", list(&finding.names)) };
    let aside = match finding.put_aside.is_empty() {
        true => String::new(),
        false => format!("; put aside as {}", list(&finding.put_aside)),
    };
    format!("{}: {what}{names}{aside}", name(&finding.path))
}
