//! Logins in the settings of a repository: `git clone https://user:token@host/...` keeps the token there.

use crate::sys::file;
use crate::sys::path::says_missing;
use std::path::Path;

/// What is said of such settings.
const LOGIN: &str = "an address in it has a login";
/// What is said of those that are no regular file, or too long.
const UNREADABLE: &str = "it cannot be read, so an address in it may have a login";
/// Longest settings that are read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Why settings may name an address with a login. The name in `ssh://git@host` is none: a key goes with it.
pub fn login_in(settings: &Path) -> Option<&'static str> {
    match file::read_regular(settings, LONGEST) {
        Ok(text) => String::from_utf8_lossy(&text).split_whitespace().any(names_login).then_some(LOGIN),
        Err(error) => (!says_missing(&error)).then_some(UNREADABLE),
    }
}

fn names_login(word: &str) -> bool {
    word.split_once("://").is_some_and(|(scheme, rest)| {
        let host = rest.split(['/', '?', '#', '"']).next().unwrap_or_default();
        host.contains('@') && !scheme.ends_with("ssh")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_told_from_a_name_for_ssh() {
        for word in ["https://user:token@host/x.git", "https://token@host/x", "\"https://u:t@host/\"]"] {
            assert!(names_login(word), "{word}");
        }
        for word in ["https://host/x@y", "ssh://git@host/x", "git+ssh://git@host/x", "git@host:x.git", "url"]
        {
            assert!(!names_login(word), "{word}");
        }
    }
}
