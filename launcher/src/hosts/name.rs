//! Names of hosts.

use std::fmt;
use thiserror::Error;

/// Maximum length of a name, and of one label of it (RFC 1035, 2.3.4). As text: 255 octets on the wire have one for the
/// length of each label and one for the root.
const LONGEST: usize = 253;
const LONGEST_LABEL: usize = 63;

/// A name of a host: lower-case labels of letters, digits, hyphens and underscores, without a dot at the end.
/// Labels in other scripts are A-labels (`xn--`, RFC 5890).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// Why a text is no name of a host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing is left of it.
    #[error("it is empty")]
    Empty,
    /// Two dots in a row, or one at the beginning.
    #[error("a label is empty")]
    EmptyLabel,
    /// More than 253 characters.
    #[error("it is longer than {LONGEST} characters")]
    TooLong,
    /// More than 63 characters.
    #[error("a label is longer than {LONGEST_LABEL} characters")]
    LongLabel,
    /// A character that no name of a host has.
    #[error("a name has letters, digits, '-' and '_'")]
    Character,
    /// A hyphen where none may be.
    #[error("a label begins or ends with '-'")]
    Hyphen,
    /// What programs take for an address in an old notation (`127.1`, `0x7f000001`).
    #[error("the last label is a number, as in an address")]
    Number,
    /// Not valid by IDNA (UTS 46).
    #[error("it is not valid by IDNA")]
    Idna,
}

impl HostName {
    /// Reads a name. One dot at the end is dropped.
    pub fn parse(text: &str) -> Result<HostName, NameError> {
        if text.is_ascii() {
            return HostName::from_ascii(text.as_bytes());
        }
        // Characters that are mapped to dots or to nothing are looked at afterwards.
        let ascii = idna::domain_to_ascii(text).map_err(|_| NameError::Idna)?;
        HostName::from_ascii(ascii.as_bytes())
    }

    /// Reads a name of bytes, none of which is above 127.
    pub fn from_ascii(text: &[u8]) -> Result<HostName, NameError> {
        let text = text.strip_suffix(b".").unwrap_or(text);
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > LONGEST {
            return Err(NameError::TooLong);
        }
        text.split(|byte| *byte == b'.').try_for_each(check_label)?;
        if text.rsplit(|byte| *byte == b'.').next().is_some_and(is_number) {
            return Err(NameError::Number);
        }
        Ok(HostName(text.iter().map(|byte| char::from(byte.to_ascii_lowercase())).collect()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is below another name: `a.b` is below `b`, and `b` is not.
    pub fn is_below(&self, other: &HostName) -> bool {
        self.0.strip_suffix(other.as_str()).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check_label(label: &[u8]) -> Result<(), NameError> {
    if label.is_empty() {
        return Err(NameError::EmptyLabel);
    }
    if label.len() > LONGEST_LABEL {
        return Err(NameError::LongLabel);
    }
    if !label.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
        return Err(NameError::Character);
    }
    if label.starts_with(b"-") || label.ends_with(b"-") {
        return Err(NameError::Hyphen);
    }
    Ok(())
}

/// Whether inet_aton(3) takes a label for a number.
fn is_number(label: &[u8]) -> bool {
    let hexadecimal = label.strip_prefix(b"0x").or_else(|| label.strip_prefix(b"0X"));
    match hexadecimal {
        Some(digits) => digits.iter().all(u8::is_ascii_hexdigit),
        None => label.iter().all(u8::is_ascii_digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn name(text: &str) -> String {
        HostName::parse(text).unwrap().to_string()
    }

    #[test]
    fn one_host_has_one_name() {
        for text in ["example.org", "EXAMPLE.org", "example.org.", "Example.ORG."] {
            assert_eq!(name(text), "example.org");
        }
        assert_eq!(name("bücher.example"), "xn--bcher-kva.example");
        assert_eq!(name("BÜCHER.example"), "xn--bcher-kva.example");
        assert_eq!(name("xn--bcher-kva.example"), "xn--bcher-kva.example");
        // Full-width letters and an ideographic full stop are those of ASCII (UTS 46).
        assert_eq!(name("ｅｘａｍｐｌｅ。org"), "example.org");
        assert_eq!(name("_acme-challenge.example.org"), "_acme-challenge.example.org");
        assert_eq!(name("localhost"), "localhost");
        assert_eq!(name("1.2.3.4.example"), "1.2.3.4.example");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = "a".repeat(64);
        let longest = format!("{}.{}.{}.{}", "a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61));
        assert_eq!(name(&longest).len(), 253);
        for (text, error) in [
            ("", NameError::Empty),
            (".", NameError::Empty),
            ("example.org..", NameError::EmptyLabel),
            (".example.org", NameError::EmptyLabel),
            ("a..b", NameError::EmptyLabel),
            (&format!("{longest}e"), NameError::LongLabel.clone()),
            (&long, NameError::LongLabel),
            (&format!("{longest}.e"), NameError::TooLong),
            ("evil.example\0.example.org", NameError::Character),
            ("evil.example/.example.org", NameError::Character),
            ("user@example.org", NameError::Character),
            ("exa mple.org", NameError::Character),
            ("*.example.org", NameError::Character),
            ("[::1]", NameError::Character),
            ("%65xample.org", NameError::Character),
            ("-a.example", NameError::Hyphen),
            ("a-.example", NameError::Hyphen),
            ("127.0.0.1", NameError::Number),
            ("127.1", NameError::Number),
            ("0x7f.1", NameError::Number),
            ("2130706433", NameError::Number),
            ("0x7f000001", NameError::Number),
            ("example.0x", NameError::Number),
        ] {
            let found = HostName::parse(text);
            let expected = if text == format!("{longest}e") { Err(NameError::TooLong) } else { Err(error) };
            assert_eq!(found, expected, "{text:?}");
        }
        // Full-width digits are digits.
        assert_eq!(HostName::parse("１２７.0.0.１"), Err(NameError::Number));
    }

    #[test]
    fn only_names_below_another_are() {
        let below = |name: &str, other: &str| {
            HostName::parse(name).unwrap().is_below(&HostName::parse(other).unwrap())
        };
        assert!(below("a.example.org", "example.org") && below("a.b.example.org", "example.org"));
        assert!(!below("example.org", "example.org") && !below("badexample.org", "example.org"));
    }
}
