//! The calls of one run.

use crate::error::Refusal;
use crate::host::landlock::Version;
use crate::plan::calls::{Calls, Unix, calls};
use crate::plan::namespaces::Choice;
use crate::plan::rules::Network;
use crate::plan::{Inputs, validation};
use crate::profile::NetworkMode;
use sbx_policy::calls::Arch;
use sbx_policy::list::List;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// What the profile allows, with what the flags say about it.
pub fn of_run(
    inputs: &Inputs<'_>,
    network: &Network,
    view: &Choice,
    landlock: Version,
) -> Result<Calls, Refusal> {
    let Inputs { request, profile, .. } = inputs;
    let unix = unix(inputs, network, landlock);
    let has_view = *view == Choice::Made;
    let own_ipc = has_view || network.namespace;
    let calls = calls(profile, network, own_ipc, unix, Arch::HOST)?;
    // A view comes with a namespace for process numbers; it is what some calls need.
    let mut calls = calls.inside(has_view);
    if !request.rw.is_empty() || !request.rwx.is_empty() {
        calls.add_writing()?;
    }
    let lists = [
        (List::Allow, "--allow-calls", &request.allow_calls),
        (List::Deny, "--deny-calls", &request.deny_calls),
    ];
    for (list, flag, texts) in lists {
        texts.iter().try_for_each(|text: &OsString| calls.add(list, flag, text.as_bytes()))?;
    }
    if validation::names_sockets(request, profile, network, unix, landlock)? {
        calls.add_sockets(landlock < Version::UNIX && !inputs.itself)?;
    }
    Ok(calls)
}

/// Who tells UNIX sockets apart.
fn unix(inputs: &Inputs<'_>, network: &Network, landlock: Version) -> Unix {
    let Inputs { request, profile, host, itself, .. } = inputs;
    let listens = !request.exec && !itself && !profile.is_unrestricted() && !host.nested.get();
    match network.mode {
        // Connections to hosts that are named are the supervisor's business everywhere.
        _ if landlock >= Version::UNIX && network.hosts.is_none() => Unix::ByPath,
        // Only an open network has something to lose where the supervisor could not connect.
        NetworkMode::Host | NetworkMode::Ports if listens && *host.takes_descriptors.get() => {
            Unix::Supervised
        }
        _ => Unix::Refused,
    }
}
