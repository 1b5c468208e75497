//! The profiles that `sbx` carries with it, and their JSON Schema: as text. What they mean is the launcher's
//! business.

/// The JSON Schema (draft 2020-12) of a profile.
pub static SCHEMA: &str = include_str!("../schema/profile.schema.json");

/// The built-in profiles' names, sorted.
pub const NAMES: [&str; 8] =
    ["custom", "minimal", "network", "no-exec", "read-only", "unrestricted", "workspace", "write"];

const TEXTS: [&str; NAMES.len()] = [
    include_str!("../custom.json"),
    include_str!("../minimal.json"),
    include_str!("../network.json"),
    include_str!("../no-exec.json"),
    include_str!("../read-only.json"),
    include_str!("../unrestricted.json"),
    include_str!("../workspace.json"),
    include_str!("../write.json"),
];

/// The text of a built-in profile.
pub fn built_in(name: &str) -> Option<&'static str> {
    NAMES.into_iter().zip(TEXTS).find(|(known, _)| *known == name).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use include_dir::{Dir, include_dir};

    static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR");

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
