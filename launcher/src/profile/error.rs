//! What is wrong with a profile, in one sentence.

use std::ffi::OsStr;
use std::fmt::{self, Display, Write};

/// A profile that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    sentence: String,
}

impl ProfileError {
    /// How `sbx` ends on any of these.
    pub const EXIT_CODE: u8 = 125;

    pub(crate) fn new(profile: &dyn Display, cause: &dyn Display) -> ProfileError {
        ProfileError { sentence: format!("cannot open profile '{profile}': {cause}") }
    }
}

impl Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for ProfileError {}

/// What is wrong inside a document, before it is said in which.
#[derive(Debug)]
pub(crate) struct Fault(pub String);

impl Fault {
    pub(crate) fn at(place: &Place, cause: impl Display) -> Fault {
        Fault(if place.is_top() { cause.to_string() } else { format!("{place}: {cause}") })
    }
}

/// Where in a document: `syscalls.allow[3]`. It is only written out when something is wrong.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Top,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn is_top(&self) -> bool {
        matches!(self, Place::Top)
    }
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Top => Ok(()),
            Place::Key(parent, key) if parent.is_top() => write!(f, "{}", Plain(key)),
            Place::Key(parent, key) => write!(f, "{parent}.{}", Plain(key)),
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A string from outside in a sentence: without control characters, and not endless.
pub(crate) struct Plain<'a>(pub &'a str);

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.chars();
        for character in rest.by_ref().take(200) {
            f.write_char(tame(character))?;
        }
        if rest.next().is_some() { f.write_str("...") } else { Ok(()) }
    }
}

/// A character from outside for a terminal: what moves its cursor, or turns the text around it, becomes a `?`.
pub(crate) fn tame(character: char) -> char {
    let separator = matches!(character, '\u{2028}' | '\u{2029}');
    let turns = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if character.is_control() || separator || turns { '?' } else { character }
}

/// The same for a name or path.
pub(crate) fn plain(name: &OsStr) -> String {
    Plain(&name.to_string_lossy()).to_string()
}

/// ` (did you mean 'x'?)`, where something is near.
pub(crate) fn hint<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> String {
    match sbx_policy::calls::nearest(wrong.as_bytes(), known) {
        Some(near) => format!(" (did you mean '{near}'?)"),
        None => String::new(),
    }
}

/// Names for a sentence: `a, b, c`.
pub(crate) fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
