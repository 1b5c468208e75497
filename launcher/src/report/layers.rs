//! Which layers confine a run, and why the others do not.

use crate::host::landlock::Version;
use crate::plan::{OnViolation, Plan, static_programs};
use crate::profile::NetworkMode;
use sbx_client::report::LayerState::{Absent, Enforced, NotNeeded, Partial};
use sbx_client::report::{Layer, LayerState};

/// The layer that reports violations to the supervisor.
const NOTIFICATION: &str = "notification";

/// All layers, as the plan has them.
pub fn of(plan: &Plan) -> Vec<Layer> {
    let all = [
        ("seccomp", seccomp(plan)),
        ("seal", seal(plan)),
        (NOTIFICATION, (Enforced, None)),
        ("landlock", landlock(plan)),
        ("tcp", tcp(plan)),
        ("signal-scope", scope(plan)),
    ];
    let unconfined = (NotNeeded, Some("the run is unconfined, as requested".to_string()));
    let confining = all.into_iter().map(|(name, decided)| {
        let (state, reason) = if plan.unconfined { unconfined.clone() } else { decided };
        Layer { name: name.into(), state, reason }
    });
    let own_network = network(plan);
    let (state, reason) = match &plan.namespaces {
        Ok(_) => (Enforced, None),
        Err(why) if plan.unconfined => (NotNeeded, Some(why.clone())),
        Err(why) => (Absent, Some(why.clone())),
    };
    confining
        .chain([
            Layer { name: "privileges".into(), state: Enforced, reason: None },
            Layer { name: "namespaces".into(), state, reason },
            Layer { name: "own-network".into(), state: own_network.0, reason: own_network.1 },
        ])
        .collect()
}

/// Records why the supervisor does not hear of violations.
pub fn unheard(layers: &mut [Layer], why: &str) {
    for layer in layers.iter_mut().filter(|layer| layer.name == NOTIFICATION) {
        layer.state = Absent;
        layer.reason = Some(why.to_string());
    }
}

type Decided = (LayerState, Option<String>);

fn because(state: LayerState, reason: &str) -> Decided {
    (state, Some(reason.to_string()))
}

fn seccomp(plan: &Plan) -> Decided {
    if plan.on_violation == OnViolation::Log {
        return because(Partial, "what the profile refuses is let through and listed, as requested");
    }
    (Enforced, None)
}

fn seal(plan: &Plan) -> Decided {
    if plan.seal.is_none() {
        return because(NotNeeded, "the profile allows all that the loader needs");
    }
    if plan.on_violation == OnViolation::Log {
        return because(NotNeeded, "what it would take away is let through and listed, as requested");
    }
    if !static_programs::takes_library(&plan.program) {
        return because(Absent, "libsandbox.so cannot be loaded into the program");
    }
    (Enforced, None)
}

fn landlock(plan: &Plan) -> Decided {
    let lacks = |what: &str| Some(format!("Landlock ABI {} does not cover {what}", plan.landlock.0));
    match plan.landlock {
        _ if plan.paths.is_none() => because(Absent, "this kernel has no Landlock"),
        Version(..=2) => (Partial, lacks("cutting files off, nor controlling devices")),
        Version(3 | 4) => (Partial, lacks("controlling devices")),
        _ => (Enforced, None),
    }
}

fn tcp(plan: &Plan) -> Decided {
    let logs = plan.on_violation == OnViolation::Log;
    match plan.network.mode {
        NetworkMode::Host => because(NotNeeded, "the network is the host's"),
        NetworkMode::Private if plan.network.namespace => because(NotNeeded, "the network is the run's own"),
        _ if logs => because(Absent, "what the profile refuses is let through and listed, as requested"),
        _ if plan.paths.is_some() && plan.landlock >= Version::TCP => (Enforced, None),
        _ => because(NotNeeded, "the filter refuses every internet socket"),
    }
}

/// Whether the run has a network of its own.
fn network(plan: &Plan) -> Decided {
    match &plan.network.lacks {
        _ if plan.network.namespace => (Enforced, None),
        _ if let Some(proxy) = plan.network.proxy() => (Absent, Some(proxy.why.clone())),
        Some(why) => (Absent, Some(why.clone())),
        None => because(NotNeeded, "none is asked for"),
    }
}

fn scope(plan: &Plan) -> Decided {
    if plan.paths.is_some() && plan.landlock >= Version::SCOPES {
        return (Enforced, None);
    }
    (
        Absent,
        Some(format!("needs Landlock ABI {}, and this kernel has {}", Version::SCOPES.0, plan.landlock.0)),
    )
}
