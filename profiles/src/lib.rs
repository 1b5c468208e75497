//! The built-in profiles of `sbx` and their JSON Schema, as text. The launcher interprets them.
#![forbid(unsafe_code)]

use include_dir::{Dir, include_dir};

/// The JSON Schema (draft 2020-12) of a profile.
pub static SCHEMA: &str = include_str!("../schema/profile.schema.json");

/// The names of the built-in profiles, sorted.
pub const NAMES: [&str; 8] =
    ["custom", "minimal", "network", "no-exec", "read-only", "unrestricted", "workspace", "write"];

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR");

/// The text of a built-in profile.
pub fn built_in(name: &str) -> Option<&'static str> {
    let known = NAMES.contains(&name);
    let mut files = FILES.files().filter(|_| known);
    files.find(|file| file.path().as_os_str().to_str() == Some(&format!("{name}.json")))?.contents_utf8()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_file_and_every_file_its_name() {
        assert!(NAMES.is_sorted());
        for name in NAMES {
            let file = FILES.get_file(format!("{name}.json")).unwrap();
            assert_eq!(built_in(name), file.contents_utf8());
        }
        let files = FILES.files().filter(|file| file.path().extension().is_some_and(|e| e == "json"));
        assert_eq!(files.count(), NAMES.len());
        assert_eq!(built_in("../schema/profile.schema"), None);
    }
}
