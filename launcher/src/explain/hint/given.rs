//! What a plan gives that reasons depend on.

use crate::hosts::{HostRule, HostRules};
use crate::plan::Plan;
use crate::plan::rules::{PathRights, PathRule};
use crate::sys::within::is_within;
use std::path::PathBuf;

/// The hosts that the profile denies.
pub fn denied_hosts(plan: &Plan) -> HostRules {
    let denied = plan.profile.network.deny.iter();
    let deny = denied.filter_map(|rule| HostRule::parse_denial(&rule.value).ok()).collect();
    HostRules { deny, ..HostRules::default() }
}

fn rules(plan: &Plan) -> impl Iterator<Item = &PathRule> {
    plan.paths.iter().flatten()
}

/// Where there are these rights, by the names inside.
fn having(plan: &Plan, rights: fn(PathRights) -> bool) -> Vec<PathBuf> {
    let inside = |path: PathBuf| match &plan.namespaces {
        Ok(layout) => layout.inside(path),
        Err(_) => path,
    };
    rules(plan).filter(|rule| rights(rule.rights)).map(|rule| inside(rule.path.clone())).collect()
}

/// Where files may be changed, by the names inside.
pub fn changing(plan: &Plan) -> Vec<PathBuf> {
    having(plan, PathRights::changes_files)
}

/// Devices that may be written to, and directories of such.
pub fn devices(plan: &Plan) -> Vec<PathBuf> {
    having(plan, |rights| rights.write && rights.devices)
}

/// The home directory, where the run could have one of its own and has none. One that a flag names is the user's.
pub fn closed_home(plan: &Plan) -> Option<PathBuf> {
    let is_closed = plan.namespaces.is_ok() && plan.private_home.is_none() && plan.no_home.is_none();
    let home = plan.home.as_ref().filter(|_| is_closed)?;
    let mut named = rules(plan).map(|rule| &rule.path).chain(&plan.denied);
    (!named.any(|path| is_within(home, path))).then(|| home.clone())
}
