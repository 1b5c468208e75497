//! Which layers confine a run, and what keeps the others from it.

use super::model::{Layer, LayerState};
use crate::launch::guard::OnViolation;
use crate::launch::landlock::Version;
use crate::launch::plan::Plan;
use crate::launch::policy::Mode;
use crate::launch::treatment;
use LayerState::{Absent, Enforced, NotNeeded, Partial};

/// The name of the layer that tells what was refused.
const NOTIFICATION: &str = "notification";

/// All layers, as they are planned. `seals` tells whether the loader needs what the command may not have.
pub fn of(plan: &Plan, seals: bool) -> Vec<Layer> {
    let all = [
        ("seccomp", seccomp(plan)),
        ("seal", seal(plan, seals)),
        (NOTIFICATION, (Enforced, None)),
        ("landlock", landlock(plan)),
        ("tcp", tcp(plan)),
        ("signal-scope", scope(plan)),
    ];
    let unconfined = (NotNeeded, Some("the run is unconfined, as wished".to_string()));
    let confining = all.into_iter().map(|(name, decided)| {
        let (state, reason) = if plan.unconfined { unconfined.clone() } else { decided };
        Layer { name: name.into(), state, reason }
    });
    let (state, reason) = match &plan.namespaces {
        Ok(_) => (Enforced, None),
        Err(why) if plan.unconfined => (NotNeeded, Some(why.clone())),
        Err(why) => (Absent, Some(why.clone())),
    };
    confining
        .chain([
            Layer { name: "privileges".into(), state: Enforced, reason: None },
            Layer { name: "namespaces".into(), state, reason },
        ])
        .collect()
}

/// Takes note that refused calls are not told to us.
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
        return because(Partial, "what the profile refuses is let through and listed, as wished");
    }
    (Enforced, None)
}

fn seal(plan: &Plan, seals: bool) -> Decided {
    if !seals {
        return because(NotNeeded, "the profile allows all that the loader needs");
    }
    if plan.on_violation == OnViolation::Log {
        return because(NotNeeded, "what it would take away is let through and listed, as wished");
    }
    if !treatment::takes_library(&plan.program) {
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
        Mode::Host => because(NotNeeded, "the network is the host's"),
        Mode::Private => because(NotNeeded, "the network is the run's own"),
        _ if logs => because(Absent, "what the profile refuses is let through and listed, as wished"),
        _ if plan.paths.is_some() && plan.landlock >= Version::TCP => (Enforced, None),
        _ => because(NotNeeded, "the filter refuses every internet socket"),
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
