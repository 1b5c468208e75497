//! Ports that are named where the network's mode does not look at them.

use super::error::Fault;
use super::merge::inherited;
use super::model::{NetworkMode, Origin, Profile};
use super::resolve::Loaded;

/// Refuses ports without effect: whoever names some under mode `host` believes that the others are closed. A child
/// that sets another mode than its parents means it, and drops their ports.
pub(crate) fn check(profile: &Profile, family: &[Loaded]) -> Result<(), Fault> {
    let network = &profile.network;
    let (mode, opens) = match network.mode.as_deref() {
        Some(NetworkMode::Allow) => return Ok(()),
        Some(NetworkMode::Host) => ("host", "every port is open"),
        Some(NetworkMode::Private) => ("private", "the network is the run's own"),
        Some(NetworkMode::None) | None => ("none", "there is no network"),
    };
    let by = network.mode.as_ref().and_then(|given| place(&given.origin, family));
    let dropped = |origin: &Origin| by.is_some_and(|by| inherited(origin, family, by));
    let connect = network.connect.iter().map(|port| &port.origin);
    let origins = connect.chain(network.bind.iter().map(|port| &port.origin));
    match origins.into_iter().find(|origin| !dropped(origin)) {
        None => Ok(()),
        Some(origin) => Err(Fault(format!(
            "{} has no effect, for network.mode is '{mode}' and {opens}; add \"mode\": \"allow\"",
            **origin
        ))),
    }
}

/// The document that an entry stands in.
fn place(origin: &Origin, family: &[Loaded]) -> Option<usize> {
    family.iter().position(|loaded| std::ptr::eq(&*loaded.name, &*origin.profile))
}
