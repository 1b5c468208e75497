//! The built-in profiles, merged with their parents when `sbx` was built: a run copies a few pointers.

use super::location::{Location, Variable};
use super::model::*;
use super::pattern::Pattern;
use sbx_policy::calls::Call;
use std::borrow::Cow;

include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

/// A built-in profile.
pub(super) fn find(name: &str) -> Option<&'static Profile> {
    let place = sbx_profiles::NAMES.iter().position(|known| *known == name)?;
    PROFILES.get(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Search, resolve};
    use std::ffi::OsStr;

    #[test]
    fn each_table_is_what_its_document_says() {
        for name in sbx_profiles::NAMES {
            let read = resolve::resolve(OsStr::new(name), &Search::default()).unwrap();
            assert_eq!(format!("{:#?}", find(name).unwrap()), format!("{read:#?}"), "{name}");
        }
    }
}
