//! What a plan and the kernel's accounts say, in the words of a report.

use super::bytes::Bytes;
use super::model::{LimitUsed, NetworkMode, NetworkUsed, Output, ProfileUsed, Rusage, Stream, Unit};
use crate::launch::limits::Applied;
use crate::launch::plan::Plan;
use crate::launch::policy::Mode;
use crate::profile::Source;
use crate::supervise;
use crate::sys::usage::Usage;
use std::path::Path;

pub fn profile(plan: &Plan) -> ProfileUsed {
    let profile = &plan.profile;
    let file = match &profile.source {
        Source::BuiltIn => None,
        Source::File(path) => Some(Bytes::from(path.as_path())),
    };
    let lineage = profile.lineage.iter().map(|name| name.to_string()).collect();
    ProfileUsed { name: profile.name.to_string(), file, lineage }
}

pub fn network(plan: &Plan) -> NetworkUsed {
    NetworkUsed {
        mode: match plan.network.mode {
            Mode::None => NetworkMode::None,
            Mode::Ports => NetworkMode::Ports,
            Mode::Host => NetworkMode::Host,
            Mode::Private => NetworkMode::Private,
        },
        connect: plan.network.connect.clone(),
        bind: plan.network.bind.clone(),
        unix: plan.sockets.iter().map(|path| path.as_path().into()).collect(),
    }
}

pub fn limit(applied: &Applied) -> LimitUsed {
    let unit = match applied.limit {
        "timeout" | "cpu" => Unit::Ms,
        "processes" | "open_files" => Unit::Count,
        _ => Unit::Bytes,
    };
    LimitUsed {
        name: applied.limit.into(),
        value: applied.value,
        unit,
        mechanism: applied.means.word().into(),
    }
}

/// What went through us; where both streams are one file, it counts as standard output.
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

/// Of microseconds.
pub fn milliseconds(microseconds: f64) -> f64 {
    microseconds / 1_000.0
}

/// Whether a file lies where the command may write.
pub fn is_exposed(path: &Path, plan: &Plan) -> bool {
    let mut writable = plan.paths.iter().flatten().filter(|rule| rule.rights.changes_files());
    plan.paths.is_none() || writable.any(|rule| path.starts_with(&rule.path))
}
