//! The text of a drop-in file for a service.

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

/// A word, in quotes where it needs them.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./%+=@,:".contains(c);
    if word.chars().all(plain) {
        return word.to_string();
    }
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_ascii_control() => {
                let _ = write!(text, "\\x{:02x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_they_have_to_be() {
        assert_eq!(quoted("-/usr"), "-/usr");
        assert_eq!(quoted("-/a b\"c\\"), r#""-/a b\"c\\""#);
        assert_eq!(quoted("-/a\n"), r#""-/a\n""#);
    }

    #[test]
    fn a_list_is_broken_into_assignments() {
        let mut unit = Unit(String::new());
        unit.list("X", "~", &vec!["a".repeat(30); 4]);
        let a = "a".repeat(30);
        assert_eq!(unit.0, format!("X=~{a} {a}\nX=~{a} {a}\n"));
    }
}
