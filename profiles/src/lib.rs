//! The built-in profiles of `sbx` and their JSON Schema, as text. The launcher interprets them.
#![forbid(unsafe_code)]

use include_dir::{Dir, include_dir};

/// The JSON Schema (draft 2020-12) of a profile.
pub static SCHEMA: &str = include_str!("../schema/profile.schema.json");

/// The names of the built-in profiles, sorted.
pub const NAMES: [&str; 8] =
    ["custom", "minimal", "network", "no-exec", "read-only", "unrestricted", "workspace", "write"];

/// What the names of agents' profiles begin with: `agent:claude` is in `agents/claude.json`.
pub const AGENT: &str = "agent:";

/// The names of the built-in profiles of agents, without what they begin with; sorted.
pub const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR");

/// The text of a built-in profile.
pub fn built_in(name: &str) -> Option<&'static str> {
    let path = match name.strip_prefix(AGENT) {
        Some(agent) => AGENTS.contains(&agent).then(|| format!("agents/{agent}.json")),
        None => NAMES.contains(&name).then(|| format!("{name}.json")),
    };
    FILES.get_file(path?)?.contents_utf8()
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
        assert!(AGENTS.is_sorted());
        for name in AGENTS {
            let file = FILES.get_file(format!("agents/{name}.json")).unwrap();
            assert_eq!(built_in(&format!("{AGENT}{name}")), file.contents_utf8());
        }
        assert_eq!(FILES.get_dir("agents").unwrap().files().count(), AGENTS.len());
        for wrong in ["../schema/profile.schema", "agents/claude", "claude", "agent:", "agent:../workspace"] {
            assert_eq!(built_in(wrong), None, "{wrong}");
        }
    }
}
