//! What a plan and the kernel's accounts say, in the words of a report.

use super::bytes::Bytes;
use super::model::{LimitUsed, NetworkMode, NetworkUsed, ProfileUsed, Rusage, Unit};
use crate::launch::plan::Plan;
use crate::launch::policy::Mode;
use crate::profile::Source;
use crate::sys::privilege::Limit;
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
        },
        connect: plan.network.connect.clone(),
        bind: plan.network.bind.clone(),
        unix: plan.sockets.iter().map(|path| path.as_path().into()).collect(),
    }
}

pub fn limit(limit: Limit, value: u64) -> LimitUsed {
    let (name, value, unit) = match limit {
        Limit::Core => ("core", value, Unit::Bytes),
        Limit::OpenFiles => ("open_files", value, Unit::Count),
        Limit::FileSize => ("file_size", value, Unit::Bytes),
        Limit::Cpu => ("cpu", value.saturating_mul(1_000), Unit::Ms),
    };
    LimitUsed { name, value, unit, mechanism: "rlimit" }
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
    let mut writable = plan.paths.iter().flatten().filter(|rule| rule.rights.write && !rule.rights.devices);
    plan.paths.is_none() || writable.any(|rule| path.starts_with(&rule.path))
}
