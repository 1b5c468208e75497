//! The words of a value. Which characters mean something there depends on the directive, as `systemd-analyze verify` of
//! systemd 252 shows: it names what it passes over.

use std::str::Chars;

use crate::profile::error::{Plain, ProfileCause};
use crate::profile::foreign::systemd::unit::{Setting, is_blank};

/// What a backslash does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslash {
    /// It is left out, and what stands behind it is itself: `\x41` is `x41`.
    LeftOut,
    /// It escapes as in C.
    InC,
    /// The same, and what ends a word is itself behind it.
    InCOrEnd,
    /// It stays, for what looks at the word next.
    Stays,
}

/// What means something in a value.
#[derive(Clone, Copy)]
struct Syntax {
    /// Whether quotes keep what ends a word. Otherwise they are characters like others.
    has_quotes: bool,
    backslash: Backslash,
}

/// What ends a word.
type Ends = fn(char) -> bool;

/// That of a directive. Most are like the lists of paths.
fn syntax(directive: &str) -> Syntax {
    let (has_quotes, backslash) = match directive {
        "SystemCallFilter" | "SystemCallLog" | "IPAddressAllow" | "IPAddressDeny" => {
            (false, Backslash::LeftOut)
        }
        "Environment" | "UnsetEnvironment" => (true, Backslash::InC),
        name if name.ends_with("Directory") => (true, Backslash::Stays),
        _ => (true, Backslash::LeftOut),
    };
    Syntax { has_quotes, backslash }
}

/// The words of a value.
pub fn words(setting: &Setting) -> Result<Vec<String>, ProfileCause> {
    each(setting, |chars, syntax| word(chars, is_blank, syntax).map(|(word, _)| word))
}

/// The words of a list of binds, each in the parts that colons divide it into.
pub fn binds(setting: &Setting) -> Result<Vec<Vec<String>>, ProfileCause> {
    each(setting, |chars, syntax| parts(chars, |c| is_colon(c) || is_blank(c), syntax))
}

/// What stands between the blanks of a value, each as it is read.
fn each<T>(
    setting: &Setting,
    read: impl Fn(&mut Chars<'_>, Syntax) -> Result<T, String>,
) -> Result<Vec<T>, ProfileCause> {
    let (syntax, mut all, mut rest) = (syntax(&setting.name), Vec::new(), start(&setting.value));
    while !rest.is_empty() {
        let mut chars = rest.chars();
        all.push(read(&mut chars, syntax).map_err(|why| setting.wrong(why))?);
        rest = start(chars.as_str());
    }
    Ok(all)
}

/// The path of a word of `TemporaryFileSystem=`, and its options.
pub fn path_with_options(text: &str) -> Result<(String, &str), String> {
    let mut chars = text.chars();
    let (path, _) = word(&mut chars, is_colon, Syntax { has_quotes: false, backslash: Backslash::LeftOut })?;
    Ok((path, chars.as_str()))
}

/// The parts of a word of `StateDirectory=` and its like: a directory, a link to it, and flags.
pub fn directory(text: &str) -> Result<Vec<String>, String> {
    let syntax = Syntax { has_quotes: false, backslash: Backslash::InCOrEnd };
    parts(&mut text.chars(), is_colon, syntax)
}

fn is_colon(c: char) -> bool {
    c == ':'
}

/// A text from its next word on.
fn start(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}

/// Words up to the first one that no colon ends.
fn parts(chars: &mut Chars<'_>, ends: Ends, syntax: Syntax) -> Result<Vec<String>, String> {
    let mut parts = Vec::new();
    loop {
        let (part, end) = word(chars, ends, syntax)?;
        parts.push(part);
        if end != Some(':') {
            return Ok(parts);
        }
    }
}

/// A word, and what ends it.
fn word(chars: &mut Chars<'_>, ends: Ends, syntax: Syntax) -> Result<(String, Option<char>), String> {
    // An escape stands for a byte, of which several make a character.
    let (mut bytes, mut quote, mut end) = (Vec::new(), None, None);
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', _) if syntax.backslash != Backslash::Stays => {
                bytes.extend(escaped(chars, ends, syntax.backslash)?);
            }
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) if syntax.has_quotes => quote = Some(c),
            (c, None) if ends(c) => {
                end = Some(c);
                break;
            }
            (c, _) => bytes.extend(bytes_of(c)),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_string());
    }
    let word = String::from_utf8(bytes).map_err(|_| "its escapes make no UTF-8".to_string())?;
    Ok((word, end))
}

/// What a backslash and the characters behind it stand for.
fn escaped(chars: &mut Chars<'_>, ends: Ends, backslash: Backslash) -> Result<Vec<u8>, String> {
    let Some(c) = chars.next() else { return Err("it ends in a backslash".to_string()) };
    if backslash == Backslash::LeftOut || (backslash == Backslash::InCOrEnd && ends(c)) {
        return Ok(bytes_of(c));
    }
    let byte = |number: Option<u32>| number.and_then(|number| u8::try_from(number).ok());
    let character = |number: Option<u32>| number.and_then(char::from_u32);
    let found = match c {
        'x' => byte(number(chars, None, 2, 16)).map(|byte| vec![byte]),
        '0'..='7' => byte(number(chars, Some(c), 3, 8)).map(|byte| vec![byte]),
        'u' => character(number(chars, None, 4, 16)).map(bytes_of),
        'U' => character(number(chars, None, 8, 16)).map(bytes_of),
        c => named(c).map(bytes_of),
    };
    found.ok_or_else(|| format!("'\\{}' is no escape", Plain(&c.to_string())))
}

/// The number that so many digits are. None is zero.
fn number(chars: &mut Chars<'_>, first: Option<char>, digits: usize, base: u32) -> Option<u32> {
    let more = digits - usize::from(first.is_some());
    let text: String = first.into_iter().chain(chars.take(more)).collect();
    let is_whole = text.len() == digits && text.chars().all(|c| c.is_digit(base));
    u32::from_str_radix(&text, base).ok().filter(|number| is_whole && *number != 0)
}

/// What a letter or a mark stands for in C.
fn named(c: char) -> Option<char> {
    match c {
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        's' => Some(' '),
        '\\' | '"' | '\'' => Some(c),
        _ => None,
    }
}

fn bytes_of(c: char) -> Vec<u8> {
    c.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, value: &str) -> Setting {
        Setting { line: 1, name: name.into(), value: value.into() }
    }

    fn words_of(name: &str, value: &str) -> Result<Vec<String>, String> {
        words(&setting(name, value)).map_err(|error| error.to_string())
    }

    #[test]
    fn words_are_unquoted() {
        let of = |value: &str| words_of("Environment", value);
        assert_eq!(of(r#"a "b c"  'd'e \x41\102 "#).unwrap(), ["a", "b c", "de", "AB"]);
        assert_eq!(of(r"\xc3\xa9\303\251\u00e9").unwrap(), ["ééé"]);
        assert_eq!(of("").unwrap(), Vec::<String>::new());
        assert!(of("\"a").unwrap_err().contains("a quote is not closed"));
        assert!(of(r"\q").unwrap_err().contains(r"'\q' is no escape"));
        assert!(of(r"\xe9").unwrap_err().contains("no UTF-8"));
        assert!(of(r"\x4").is_err() && of(r"\x+4").is_err() && of(r"\000").is_err() && of("a\\").is_err());
        assert!(of(r"\777").is_err() && of(r"a\ b").is_err() && of(r"a\:b").is_err());
    }

    /// In lists of paths a backslash is left out, and escapes nothing but blanks, quotes and itself.
    #[test]
    fn a_backslash_is_left_out_of_a_path() {
        for name in [
            "ReadWritePaths",
            "ReadOnlyPaths",
            "InaccessiblePaths",
            "InaccessibleDirectories",
            "ExecPaths",
            "NoExecPaths",
            "TemporaryFileSystem",
            "PassEnvironment",
        ] {
            let of = |value: &str| words_of(name, value);
            assert_eq!(of(r#"-/p/x\x41 "/a\tb c" '\s'"#).unwrap(), ["-/p/xx41", "/atb c", "s"], "{name}");
            assert_eq!(of(r#"/a\ b /a\\b /a\"b"#).unwrap(), ["/a b", r"/a\b", "/a\"b"], "{name}");
            assert!(of("/a\\").unwrap_err().contains("it ends in a backslash"), "{name}");
            assert!(of("'/a").unwrap_err().contains("a quote is not closed"), "{name}");
        }
    }

    #[test]
    fn quotes_are_characters_where_no_word_needs_them() {
        for name in ["SystemCallFilter", "SystemCallLog", "IPAddressAllow", "IPAddressDeny"] {
            let found = words_of(name, r#""mkdir" \x41 an\y "a b"#).unwrap();
            assert_eq!(found, ["\"mkdir\"", "x41", "any", "\"a", "b"], "{name}");
        }
    }

    #[test]
    fn colons_divide_binds_where_they_stand_alone() {
        let of = |value: &str| binds(&setting("BindPaths", value)).unwrap();
        assert_eq!(
            of("/a  -/b:/c /d:/e:norbind"),
            [vec!["/a"], vec!["-/b", "/c"], vec!["/d", "/e", "norbind"]]
        );
        assert_eq!(of(r#"/a\:b "/a:b" "/a\\:b" /x\x41"#), [["/a:b"], ["/a:b"], [r"/a\:b"], ["/xx41"]]);
        assert_eq!(of("/a: /b"), [vec!["/a", ""], vec!["/b"]]);
        assert!(binds(&setting("BindPaths", "/a:'/b")).is_err());
    }

    #[test]
    fn a_word_is_looked_at_twice() {
        assert_eq!(path_with_options("/a:ro,mode=0").unwrap(), ("/a".to_string(), "ro,mode=0"));
        assert_eq!(path_with_options(r"/a\:b\x41").unwrap(), ("/a:bx41".to_string(), ""));
        assert_eq!(words_of("StateDirectory", r#""a b" x\x41"#).unwrap(), ["a b", r"x\x41"]);
        assert_eq!(directory(r"x\x41\:b:y:ro").unwrap(), ["xA:b", "y", "ro"]);
        assert!(directory(r"x\q").is_err());
    }
}
