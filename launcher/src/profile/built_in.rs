//! The built-in profiles as tables, merged by the build script: a run copies a few pointers.

// The build script writes the imports as well.
include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

/// A built-in profile.
pub(super) fn find(name: &str) -> Option<&'static Profile> {
    let place = sbx_profiles::NAMES.iter().position(|known| *known == name)?;
    PROFILES.get(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn each_table_is_what_its_document_says() {
        for name in sbx_profiles::NAMES {
            let read = resolve::resolve(OsStr::new(name), &Search::default()).unwrap();
            assert_eq!(format!("{:#?}", find(name).unwrap()), format!("{read:#?}"), "{name}");
        }
    }
}
