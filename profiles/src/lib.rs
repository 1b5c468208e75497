//! The profiles that `sbx` carries with it, and their JSON Schema: as text. What they mean is the launcher's
//! business.

use include_dir::{Dir, include_dir};

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR");

/// The JSON Schema (draft 2020-12) of a profile.
pub static SCHEMA: &str = include_str!("../schema/profile.schema.json");

/// The built-in profiles' names, sorted.
pub const NAMES: [&str; 8] =
    ["custom", "minimal", "network", "no-exec", "read-only", "unrestricted", "workspace", "write"];

/// The text of a built-in profile.
pub fn built_in(name: &str) -> Option<&'static str> {
    let name = NAMES.into_iter().find(|known| *known == name)?;
    FILES
        .files()
        .find(|file| file.path().to_str().and_then(|path| path.strip_suffix(".json")) == Some(name))?
        .contents_utf8()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_file_and_every_file_its_name() {
        assert!(NAMES.is_sorted());
        assert!(NAMES.iter().all(|name| built_in(name).is_some()));
        let files = FILES.files().filter(|file| file.path().extension().is_some_and(|e| e == "json"));
        assert_eq!(files.count(), NAMES.len());
        assert_eq!(built_in("../schema/profile.schema"), None);
    }
}
