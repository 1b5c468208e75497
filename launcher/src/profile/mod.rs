//! Profiles: JSON documents that give the rights of one kind of command.
//!
//! [`load`] finds a profile by name or path, reads it and its parents strictly, and merges them; every entry
//! keeps its origin. [`Syscalls::to_rules`] makes the table that a filter is built from. Nothing here opens
//! anything but profiles or looks at the machine: variables in paths stay variables until
//! [`Location::expand`].

#[cfg(built_in_tables)]
mod built_in;
mod calls;
mod conditions;
mod document;
mod error;
#[cfg(built_in_tables)]
pub mod foreign;
pub mod groups;
mod json;
mod keys;
mod location;
mod merge;
mod model;
mod moved;
mod origin;
mod overlap;
mod pattern;
mod ports;
mod resolve;
mod rules;
mod search;
pub mod shells;
mod show;
mod syscalls;
pub mod units;
mod values;
mod words;

use std::ffi::OsStr;

pub use calls::{Alternative, CallRules, CallTable, DefaultAction, Grants, NETWORK_CALLS, Syscalls, When};
use error::ProfileCause;
pub use error::ProfileError;
pub use location::{Location, Variables};
pub use model::{
    Agent, Commands, Env, Home, HostGroup, Limits, Network, PathEntry, Paths, Profile, Protection,
    SettingsCopy, Source,
};
pub use moved::Moved;
pub use origin::{Given, List, Origin, Shared, Text};
pub(crate) use overlap::covers;
pub use pattern::{Name, Pattern};
pub use rules::FreeConditions;
pub use search::{SIZE_LIMIT, Search};
pub(crate) use search::{agents, is_path};
pub use show::{human, show};
pub use units::Bound;
pub(crate) use values::{NOT_EXPANDED, ONLY_STAR};
pub use words::{HomeMode, Level, Namespaces, NetworkMode, SettingsFormat, StaticMode, Variable, WhenMade};

/// The profile that runs commands where the user has no default of their own.
pub const FALLBACK: &str = "workspace";

/// Reads a profile and its parents: a file if `name_or_path` has a `/` or ends in `.json`, else by name.
pub fn load(name_or_path: &OsStr, search: &Search) -> Result<Profile, ProfileError> {
    #[cfg(built_in_tables)]
    if let Some(profile) = name_or_path.to_str().and_then(built_in::find)
        && !search.has(name_or_path)
    {
        return Ok(profile.clone());
    }
    resolve::resolve(name_or_path, search)
}

/// The profile of plain `sbx run`: the user's `default`, where there is one, else `workspace`.
pub fn default_profile(search: &Search) -> Result<Profile, ProfileError> {
    let name = if search.default_file().is_some() { search::DEFAULT } else { FALLBACK };
    load(OsStr::new(name), search)
}

/// One line of a list of profiles.
#[derive(Debug)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// Built in, or a file.
    pub source: Source,
    /// Its description, or why it cannot be used.
    pub description: Result<Text, ProfileError>,
}

/// Every profile that has a name: the built-in ones, then the users', then those of agents.
pub fn list(search: &Search) -> Vec<Listed> {
    let description = |name: &OsStr, search: &Search| load(name, search).map(|profile| profile.description);
    let built_in = sbx_profiles::NAMES.into_iter().map(|name| {
        // A file of the same name may not hide it.
        let description = description(OsStr::new(name), &Search::default());
        Listed { name: name.to_string(), source: Source::BuiltIn, description }
    });
    let files = search.user_profiles().into_iter().map(|(name, path)| {
        let description = match sbx_profiles::built_in(&name) {
            Some(_) => Err(ProfileError::new(path.as_os_str(), ProfileCause::TakenName)),
            None => description(path.as_os_str(), search),
        };
        Listed { name, source: Source::File(path), description }
    });
    let agents = agents(search).map(|agent| {
        let name = format!("{}{agent}", sbx_profiles::AGENT);
        let file = search.user_agents().into_iter().find(|(known, _)| *known == agent);
        let description = description(OsStr::new(&name), search);
        Listed { name, source: file.map_or(Source::BuiltIn, |(_, path)| Source::File(path)), description }
    });
    let mut all: Vec<Listed> = built_in.chain(files).collect();
    for agent in agents {
        // A file with the name of a built-in one is the same line, which says that it cannot be used.
        if all.iter().all(|known| known.name != agent.name) {
            all.push(agent);
        }
    }
    all
}

/// The JSON Schema of a profile.
pub fn schema() -> &'static str {
    sbx_profiles::SCHEMA
}
