//! The built-in profiles, and what is said about broken ones.
#![allow(missing_docs)]

use std::ffi::OsStr;

use sbx::profile::{self, Profile, Search};

fn built_in(name: &str) -> Profile {
    profile::load(OsStr::new(name), &Search::default()).unwrap()
}

#[test]
fn every_built_in_loads() {
    for name in sbx_profiles::NAMES {
        let profile = built_in(name);
        assert!(!profile.description.is_empty());
    }
}
