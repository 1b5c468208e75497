//! The text of a drop-in file for a service.

use crate::text::tame;
use std::fmt::{Display, Write};

/// The text so far.
pub struct Unit(pub String);

impl Unit {
    /// Assigns a value.
    pub fn set(&mut self, name: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}={value}");
    }

    /// A list, on lines of bounded length. Each assignment adds to it.
    pub fn list(&mut self, name: &str, prefix: &str, words: &[String]) {
        let mut line = String::new();
        for word in words {
            if !line.is_empty() && line.len() + word.len() > 90 {
                self.set(name, format_args!("{prefix}{line}"));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.set(name, format_args!("{prefix}{line}"));
        }
    }
}

/// A word of `Environment=`, in quotes where it needs them.
pub fn quoted(word: &str) -> String {
    in_quotes(word, ":", |c| match c {
        '\n' => "\\n".to_string(),
        '\t' => "\\t".to_string(),
        c if is_printable(c) => c.to_string(),
        c => format!("\\U{:08x}", u32::from(c)),
    })
}

/// A word of a list of paths, in quotes where it needs them: a colon does in lists of binds. No escape there stands for
/// a character that a line cannot have, or that a terminal obeys or does not show.
pub fn quoted_path(word: &str) -> Option<String> {
    let is_written = word.chars().all(|c| is_printable(c) || c == '\t');
    is_written.then(|| in_quotes(word, "", |c| c.to_string()))
}

/// Whether a terminal shows a character as itself.
fn is_printable(c: char) -> bool {
    tame(c) == c
}

/// A word in quotes, if it has more than these and other plain characters.
fn in_quotes(word: &str, plain: &str, written: impl Fn(char) -> String) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./%+=@,".contains(c) || plain.contains(c);
    if word.chars().all(is_plain) {
        return word.to_string();
    }
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c => text.push_str(&written(c)),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::foreign::systemd::unit::Setting;
    use crate::profile::foreign::systemd::words::{binds, words};

    #[test]
    fn words_are_quoted_where_they_have_to_be() {
        assert_eq!((quoted("-/usr"), quoted("A=http://b")), ("-/usr".into(), "A=http://b".into()));
        assert_eq!(quoted("-/a b\"c\\"), r#""-/a b\"c\\""#);
        assert_eq!(quoted("-/a\n"), r#""-/a\n""#);
        let odd = "A=\u{1b}\u{85}\u{202e}\u{e0041}é";
        assert_eq!(quoted(odd), r#""A=\U0000001b\U00000085\U0000202e\U000e0041é""#);
        let setting = Setting { line: 1, name: "Environment".to_string(), value: quoted(odd) };
        assert_eq!(words(&setting).unwrap(), [odd]);
    }

    /// A list of paths takes a backslash away, and a bind a colon.
    #[test]
    fn paths_are_written_without_escapes() {
        let written = |word: &str| quoted_path(word).unwrap();
        assert_eq!((&*written("-/usr"), &*written("-/a b\"c\\")), ("-/usr", r#""-/a b\"c\\""#));
        assert_eq!((&*written("/a\tb"), &*written("/a:b")), ("\"/a\tb\"", "\"/a:b\""));
        assert!(quoted_path("/a\nb").is_none() && quoted_path("/a\u{1b}b").is_none());
        assert!(quoted_path("/a\u{202e}b").is_none() && quoted_path("/a\u{85}b").is_none());
        for path in ["/a\tb", "/a b\"c\\x41", "/a:b", "/é"] {
            let name = "BindPaths".to_string();
            let setting = Setting { line: 1, name, value: written(path) };
            assert_eq!(words(&setting).unwrap(), [path]);
            assert_eq!(binds(&setting).unwrap(), [[path]]);
        }
    }

    #[test]
    fn a_list_is_broken_into_assignments() {
        let mut unit = Unit(String::new());
        unit.list("X", "~", &vec!["a".repeat(30); 4]);
        let a = "a".repeat(30);
        assert_eq!(unit.0, format!("X=~{a} {a}\nX=~{a} {a}\n"));
    }
}
