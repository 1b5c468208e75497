//! Directories below the home that variables of the environment put elsewhere.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Variables, and where below the home is what they name otherwise. The first two hold for most programs (XDG Base
/// Directory Specification), the others for one.
const MOVES: [(&str, &str); 10] = [
    ("XDG_CONFIG_HOME", "/.config"),
    ("XDG_DATA_HOME", "/.local/share"),
    ("XDG_CACHE_HOME", "/.cache"),
    ("CLAUDE_CONFIG_DIR", "/.claude"),
    ("CODEX_HOME", "/.codex"),
    ("GEMINI_CLI_HOME", ""),
    ("DIRENV_CONFIG", "/.config/direnv"),
    ("MISE_CONFIG_DIR", "/.config/mise"),
    ("MISE_DATA_DIR", "/.local/share/mise"),
    ("ASDF_DATA_DIR", "/.asdf"),
];

/// A directory that a variable puts elsewhere.
#[derive(Clone, Debug)]
pub struct Moved {
    /// Where it is otherwise, below the home.
    from: &'static str,
    to: PathBuf,
}

impl Moved {
    /// All that these variables put elsewhere.
    pub fn all<'a>(variable: impl Fn(&str) -> Option<&'a OsStr>) -> Vec<Moved> {
        let moved = |(name, from): (&str, &'static str)| {
            let to = Path::new(variable(name)?);
            to.is_absolute().then(|| Moved { from, to: to.to_path_buf() })
        };
        MOVES.into_iter().filter_map(moved).collect()
    }

    /// Where a path below the home is then, if it is one of them or below.
    pub fn place(&self, rest: &str) -> Option<PathBuf> {
        let below = rest.strip_prefix(self.from)?;
        match below.strip_prefix('/') {
            Some(below) => Some(self.to.join(below)),
            None => below.is_empty().then(|| self.to.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_moves_what_is_below() {
        let all = [("XDG_CONFIG_HOME", "/cfg"), ("CODEX_HOME", "relative"), ("GEMINI_CLI_HOME", "/g")];
        let value =
            |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, value)| OsStr::new(*value));
        let moved = Moved::all(value);
        let places = |rest| moved.iter().filter_map(|moved| moved.place(rest)).collect::<Vec<_>>();
        assert_eq!(places("/.config/zed"), [Path::new("/cfg/zed"), Path::new("/g/.config/zed")]);
        assert_eq!(places("/.gemini"), [Path::new("/g/.gemini")]);
        assert_eq!(places("/.configured"), [Path::new("/g/.configured")]);
        assert_eq!(places("/.codex"), [Path::new("/g/.codex")]);
    }
}
