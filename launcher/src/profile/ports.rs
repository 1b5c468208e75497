//! Ports that are listed although the network's mode ignores them.

use crate::profile::error::ProfileCause;
use crate::profile::model::Profile;
use crate::profile::origin::Origin;
use crate::profile::resolve::Loaded;
use crate::profile::words::NetworkMode;

/// Refuses ports without effect: whoever lists some under mode `host` believes that the others are closed. A
/// child that sets another mode than its parents does so on purpose, and drops their ports.
pub(crate) fn check(profile: &Profile, family: &[Loaded]) -> Result<(), ProfileCause> {
    let network = &profile.network;
    let mode = network.mode.as_deref().copied().unwrap_or_default();
    let opens = match mode {
        NetworkMode::Ports => return Ok(()),
        NetworkMode::Host => "every port is open",
        NetworkMode::Private | NetworkMode::Loopback => "the network is the run's own",
        NetworkMode::None => "there is no network",
    };
    let by = network.mode.as_ref().and_then(|given| family.iter().find(|one| one.wrote(&given.origin)));
    let dropped = |origin: &Origin| by.is_some_and(|by| by.inherits(origin, family));
    let connect = network.connect.iter().map(|port| &port.origin);
    let mut origins = connect.chain(network.bind.iter().map(|port| &port.origin));
    match origins.find(|origin| !dropped(origin)) {
        None => Ok(()),
        Some(origin) => {
            Err(ProfileCause::UselessPort { entry: origin.to_string(), mode: mode.word(), opens })
        }
    }
}
