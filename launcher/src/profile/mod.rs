//! Profiles: JSON documents that say what one kind of command may do.
//!
//! [`load`] finds a profile by name or path, reads it and its parents strictly, and merges them; every entry
//! keeps where it comes from. [`Syscalls::to_rules`] makes the table that a filter is built from. Nothing
//! here opens anything but profiles or looks at the machine: variables in paths stay variables until
//! [`Location::expand`].

#[cfg(built_in_tables)]
mod built_in;
mod conditions;
mod document;
mod error;
mod json;
mod location;
mod merge;
mod model;
mod overlap;
mod pattern;
mod ports;
mod resolve;
mod rules;
mod search;
mod show;
mod syscalls;
pub mod units;
mod words;

use std::ffi::OsStr;

pub(crate) use document::{NOT_EXPANDED, ONLY_STAR};
pub use error::ProfileError;
#[cfg(built_in_tables)]
pub(crate) use error::tame;
pub use location::{Location, Variable, Variables};
pub use model::{
    Alternative, CallRules, CallTable, Commands, DefaultAction, Endpoint, Env, Given, Grants, Level, Limits,
    List, Namespaces, Network, NetworkMode, Origin, PathEntry, Paths, Profile, Protection, Shared, Source,
    StaticMode, Syscalls, Text, When,
};
pub use pattern::{Name, Pattern};
pub use rules::FreeConditions;
pub(crate) use search::is_path;
pub use search::{SIZE_LIMIT, Search};
pub use show::{human, show};
pub use units::Bound;

/// The profile that runs commands where the user has no default of their own.
pub const FALLBACK: &str = "workspace";

/// Reads a profile and its parents: a file where `name_or_path` contains a `/` or ends in `.json`, else by name.
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
#[derive(Clone, Debug)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// Built in, or a file.
    pub source: Source,
    /// Its description, or what is wrong with it.
    pub description: Result<Text, ProfileError>,
}

/// Every profile that has a name: the built-in ones, then the users'.
pub fn list(search: &Search) -> Vec<Listed> {
    let built_in = sbx_profiles::NAMES.into_iter().map(|name| (name.to_string(), Source::BuiltIn));
    let files = search.user_profiles().into_iter().map(|(name, path)| (name, Source::File(path)));
    built_in
        .chain(files)
        .map(|(name, source)| {
            let target = match &source {
                Source::File(path) => path.as_os_str(),
                Source::BuiltIn => OsStr::new(&name),
            };
            // A file of a built-in's name may not hide that one.
            let nowhere = Search::default();
            let search = if source == Source::BuiltIn { &nowhere } else { search };
            let taken = matches!(source, Source::File(_)) && sbx_profiles::built_in(&name).is_some();
            let description = match taken {
                true => Err(ProfileError::new(
                    &error::plain(target),
                    &"a built-in profile has its name; rename it",
                )),
                false => load(target, search).map(|profile| profile.description),
            };
            Listed { name, source, description }
        })
        .collect()
}

/// The JSON Schema of a profile.
pub fn schema() -> &'static str {
    sbx_profiles::SCHEMA
}
