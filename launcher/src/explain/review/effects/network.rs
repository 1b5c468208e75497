//! What one network gives beyond another one.

use crate::error::Refusal;
use crate::explain::review::effects::{Effect, key};
use crate::hosts::HostRule;
use crate::plan::calls;
use crate::profile::{Network, NetworkMode, Profile, Text};
use sbx_policy::calls::Call;

/// What a network reaches, and who reaches it.
pub fn differ(more: &Profile, less: &Profile, effects: &mut Vec<Effect>) -> Result<(), Refusal> {
    // The rules of groups stand where the groups are named. Ports to listen on are compared below.
    let Network { mode: _, groups: _, connect, deny, bind: _, unix, closed_env: _ } = &more.network;
    let mode = |profile: &Profile| calls::mode(profile);
    let told =
        |effect: Effect, profile: &Profile| effect.of(profile.network.mode.as_ref(), "network.mode", profile);
    let (wide, narrow) = (mode(more), mode(less));
    if wide == NetworkMode::Host && narrow != NetworkMode::Host {
        effects.push(told(Effect::new("reach", "the whole network of this machine"), more));
    }
    if matches!(wide, NetworkMode::Private | NetworkMode::Loopback) && narrow == NetworkMode::None {
        effects.push(told(Effect::new("reach", "a loopback of the run's own"), more));
    }
    let rules = |profile: &Profile| -> Vec<HostRule> {
        profile.network.connect.iter().filter_map(|entry| HostRule::parse(&entry.value).ok()).collect()
    };
    if wide == NetworkMode::Ports && narrow != NetworkMode::Host {
        let known = if narrow == NetworkMode::Ports { rules(less) } else { Vec::new() };
        for entry in connect.iter() {
            let rule = HostRule::parse(&entry.value).ok();
            let same = less.network.connect.iter().any(|other| other.value == entry.value);
            let covered = rule.is_some_and(|rule| known.iter().any(|wide| wide.covers(&rule)));
            let is_known = covered || (same && narrow == NetworkMode::Ports);
            if !is_known {
                effects.push(Effect::new("reach", entry.value.to_string()).by(&entry.origin));
            }
        }
    }
    in_listening(more, less, effects)?;
    let is_open = matches!(wide, NetworkMode::Host | NetworkMode::Ports);
    let denied = |text: &Text| deny.iter().any(|entry| entry.value == *text);
    for entry in less.network.deny.iter().filter(|entry| is_open && !denied(&entry.value)) {
        let effect = Effect::new("reach", format!("{}, if a rule names it", entry.value));
        effects.push(Effect { why: Some(format!("{} denies it", key(&entry.origin))), ..effect });
    }
    for entry in unix.iter() {
        if !less.network.unix.iter().any(|other| other.value.holds(&entry.value)) {
            effects.push(Effect::new("socket", entry.value.to_string()).by(&entry.origin));
        }
    }
    Ok(())
}

/// Ports of this machine at which others connect. A socket of TCP that was never bound listens at a port that the
/// kernel chooses, wherever listen(2) goes through, for Landlock is not asked.
fn in_listening(more: &Profile, less: &Profile, effects: &mut Vec<Effect>) -> Result<(), Refusal> {
    let listens = |profile: &Profile| -> Result<bool, Refusal> {
        let is_outside = matches!(super::mode(profile)?, NetworkMode::Host | NetworkMode::Ports);
        let Some(call) = Call::named(b"listen").filter(|_| is_outside) else { return Ok(false) };
        Ok(super::table(profile)?.allows(call))
    };
    if !listens(more)? {
        return Ok(());
    }
    let is_known = listens(less)?;
    let (wide, narrow) = (calls::mode(more), calls::mode(less));
    let told = |effect: Effect| effect.of(more.network.mode.as_ref(), "network.mode", more);
    if wide == NetworkMode::Host && (narrow != NetworkMode::Host || !is_known) {
        effects.push(told(Effect::new("listen", "any TCP port")));
    }
    if wide == NetworkMode::Ports {
        let has_all = is_known && narrow == NetworkMode::Host;
        let bound = |port: u16| has_all || less.network.bind.iter().any(|entry| entry.value == port);
        for entry in more.network.bind.iter().filter(|entry| !bound(entry.value)) {
            effects.push(Effect::new("listen", format!("TCP port {}", entry.value)).by(&entry.origin));
        }
        if !is_known {
            let effect = Effect::new("listen", "a free TCP port that the kernel chooses");
            effects.push(match more.network.bind.first() {
                Some(entry) => effect.by(&entry.origin),
                None => told(effect),
            });
        }
    }
    Ok(())
}
