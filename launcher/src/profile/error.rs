//! Why a profile cannot be used: the facts, and the sentences made of them.

use crate::hosts::RuleError;
use crate::text::tame;
use std::ffi::OsStr;
use std::fmt::{self, Display, Write};
use std::io;
use std::path::{Path, PathBuf};

/// A profile that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot open profile '{profile}': {cause}")]
pub struct ProfileError {
    /// The profile that was asked for, fit for a terminal.
    pub profile: String,
    pub(crate) cause: Box<ProfileCause>,
}

impl ProfileError {
    pub(crate) fn new(profile: &OsStr, cause: ProfileCause) -> ProfileError {
        ProfileError { profile: plain(profile), cause: Box::new(cause) }
    }
}

/// Why a profile, or a parent of it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProfileCause {
    #[error("the name is empty")]
    NoName,
    #[error("there is no profile of that name{}; there are {}", Hint(near), known.join(", "))]
    Unknown { near: Option<String>, known: Vec<String> },
    #[error("it is built in, but '{}' has the same name; give that file another name, or use its path", shown(.0))]
    HidesBuiltIn(PathBuf),
    /// The same, of the file in a list of profiles.
    #[error("a built-in profile has its name; rename it")]
    TakenName,
    #[error("{}", unreadable(.0))]
    Unreadable(#[from] io::Error),
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it has more than the {0} bytes that a profile may have")]
    TooBig(u64),
    #[error("the file is empty; the least that a profile can be is {{}}")]
    Empty,
    /// The same of another tool's document.
    #[error("the file is empty")]
    EmptyDocument,
    /// It is not JSON, or an object has a key twice.
    #[error("{}{}", if .0.is_syntax() { "it is no JSON: " } else { "" }, .0)]
    Syntax(#[from] serde_json::Error),
    /// A mistake in a text that is no JSON.
    #[error("line {line}: {why}")]
    Line { line: usize, why: String },
    #[error("it extends itself: {}", .0.join(" -> "))]
    Circle(Vec<String>),
    #[error("more than {depth} profiles extend each other: {}", chain.join(" -> "))]
    TooDeep { depth: usize, chain: Vec<String> },
    #[error("more than {0} profiles are involved")]
    TooMany(usize),
    #[error("extends '{}': {cause}", Plain(parent))]
    Parent { parent: String, cause: Box<ProfileCause> },
    #[error(transparent)]
    Document(#[from] Fault),
    #[error("{entry} has no effect, because network.mode is '{mode}' and {opens}; add \"mode\": \"allow\"")]
    UselessPort { entry: String, mode: &'static str, opens: &'static str },
    #[error("{entry} names the group '@{name}', which there is not; {}", groups(known))]
    UnknownGroup { entry: String, name: String, known: Vec<String> },
    #[error("{entry}: '{}': {why}", Plain(rule))]
    Group { entry: String, rule: String, why: RuleError },
    #[error("compiling the conditions on {call}: {cause}")]
    Conditions { call: &'static str, cause: String },
}

fn groups(known: &[String]) -> String {
    match known {
        [] => "network.groups has none".to_string(),
        known => format!("network.groups has {}", known.join(", ")),
    }
}

fn shown(path: &Path) -> String {
    plain(path.as_os_str())
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_string(),
        io::ErrorKind::PermissionDenied => "it may not be read".to_string(),
        _ => error.to_string(),
    }
}

/// A mistake, and its place in the document.
#[derive(Debug, thiserror::Error)]
#[error("{}{}{mistake}", place, if place.is_empty() { "" } else { ": " })]
pub(crate) struct Fault {
    /// `syscalls.allow[3]`; empty for the document as a whole.
    pub place: String,
    pub mistake: Mistake,
}

/// What is wrong at one place of a document.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Mistake {
    /// A key, a value or a name that does not exist. `rest` tells what does, as the end of the sentence.
    #[error("unknown {what} '{}'{}{rest}", Plain(word), Hint(near))]
    Unknown { what: &'static str, word: String, near: Option<String>, rest: String },
    /// A value of another JSON type.
    #[error("{found} instead of {expected}")]
    Instead { found: &'static str, expected: &'static str },
    #[error("the key '{0}' is missing")]
    Missing(&'static str),
    /// Two entries of which one makes the other pointless; `place` is that of the other.
    #[error(
        "'{}' and '{}' ({place}) do not go together: {cause}; keep one of them",
        Plain(one),
        Plain(other)
    )]
    Conflict { one: String, other: String, place: String, cause: String },
    /// A value that means nothing here.
    #[error("{0}")]
    Value(String),
}

impl From<String> for Mistake {
    fn from(sentence: String) -> Mistake {
        Mistake::Value(sentence)
    }
}

impl From<&str> for Mistake {
    fn from(sentence: &str) -> Mistake {
        Mistake::Value(sentence.to_string())
    }
}

impl Mistake {
    /// That a word is none of those that are `known`. A list of these follows, except after a similar key.
    pub(crate) fn unknown(what: &'static str, word: &str, known: &[&str], intro: &str) -> Mistake {
        let near = nearest(word, known.iter().copied());
        let listed = near.is_none() || what != "key";
        let rest = if listed { format!("; {intro} {}", known.join(", ")) } else { String::new() };
        Mistake::Unknown { what, word: word.to_string(), near, rest }
    }
}

/// The most similar name.
pub(crate) fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    sbx_policy::calls::nearest(wrong.as_bytes(), known).map(str::to_string)
}

/// ` (did you mean 'x'?)`, if something is similar.
struct Hint<'a>(&'a Option<String>);

impl Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |near| write!(f, " (did you mean '{near}'?)"))
    }
}

/// A place in a document: `syscalls.allow[3]`. It is only written out when something is wrong there.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Top,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// This mistake, here.
    pub(crate) fn fault(&self, mistake: impl Into<Mistake>) -> Fault {
        Fault { place: self.to_string(), mistake: mistake.into() }
    }
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Top => Ok(()),
            Place::Key(Place::Top, key) => write!(f, "{}", Plain(key)),
            Place::Key(parent, key) => write!(f, "{parent}.{}", Plain(key)),
            Place::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A string from outside in a sentence: without control characters, and of bounded length.
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

/// The same for a name or path.
pub(crate) fn plain(name: &OsStr) -> String {
    Plain(&name.to_string_lossy()).to_string()
}
