//! Flags that hold in every round: limits, variables, directories. What a key of a profile says is written; the others
//! have to be given to each run.

use crate::explain::hint::shell_word;
use crate::plan::Plan;
use crate::plan::environment::{self, is_kept_back, name_and_value};
use crate::profile::{Given, Name, Pattern};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// A flag of `sbx run`, as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenFlag {
    /// Its name, without the dashes.
    pub long: &'static str,
    /// Its value, if it takes one.
    pub value: Option<OsString>,
}

/// Limits, with their keys below `limits`.
const LIMITS: [(&str, &str); 7] = [
    ("timeout", "timeout"),
    ("max-output", "output"),
    ("max-processes", "processes"),
    ("max-memory", "memory"),
    ("max-cpu", "cpu"),
    ("max-open-files", "open_files"),
    ("max-file-size", "file_size"),
];

/// What becomes of the flags.
#[derive(Debug, Default)]
pub struct Held {
    /// Keys of the profile with their values. A list has one value for each entry.
    pub keys: Vec<Key>,
    /// Flags that the profile cannot say.
    pub flags: Vec<Beside>,
}

/// A key of the profile.
#[derive(Debug, PartialEq)]
pub enum Key {
    /// A limit.
    Limit(&'static str, Value),
    /// A variable that is set.
    Set(String, Value),
    /// A name of variables that are passed on.
    Inherit(String),
}

/// A flag that has to be given to each run.
#[derive(Debug)]
pub struct Beside {
    flag: GivenFlag,
    /// The value is not to be shown.
    is_secret: bool,
}

impl Beside {
    /// The flag in one word, so that no value can be taken for a flag.
    pub fn word(&self) -> OsString {
        let mut word = OsString::from(format!("--{}", self.flag.long));
        if let Some(value) = &self.flag.value {
            word.push("=");
            word.push(value);
        }
        word
    }

    /// The flag as it is written in a shell.
    pub fn shown(&self) -> String {
        let long = self.flag.long;
        match &self.flag.value {
            None => format!("--{long}"),
            Some(value) if self.is_secret => {
                let (name, value) = name_and_value(value);
                format!("--{long} {}{}", shell_word(name), if value.is_some() { "=..." } else { "" })
            }
            Some(value) if value.as_bytes().starts_with(b"-") => shell_word(&self.word()),
            Some(value) => format!("--{long} {}", shell_word(value)),
        }
    }
}

/// Says of each flag where it belongs, for a profile that extends the one of a plan.
pub fn hold(flags: &[GivenFlag], plan: &Plan) -> Held {
    let mut held = Held::default();
    for flag in flags {
        match key(flag, plan) {
            Ok(key) => held.keys.push(key),
            Err(is_secret) => held.flags.push(Beside { flag: flag.clone(), is_secret }),
        }
    }
    held
}

/// The key that says the same; else whether the value may be a secret.
fn key(flag: &GivenFlag, plan: &Plan) -> Result<Key, bool> {
    let text = flag.value.as_deref().and_then(OsStr::to_str);
    if let (Some((_, key)), Some(text)) = (LIMITS.iter().find(|(long, _)| *long == flag.long), text) {
        let number = text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number));
        return Ok(Key::Limit(key, number));
    }
    match (flag.long, &flag.value) {
        ("inherit-env", _) => Ok(Key::Inherit("*".to_string())),
        ("env", Some(value)) => variable(value, plan),
        _ => Err(false),
    }
}

/// The key for a variable. A file is kept and shown, so no secret is written to it: what profiles deny, and what may
/// be an address with a password.
fn variable(value: &OsStr, plan: &Plan) -> Result<Key, bool> {
    let profile = &plan.profile;
    let (name, value) = name_and_value(value);
    let is_any = |list: &[Given<Pattern>]| {
        list.iter().any(|pattern| pattern.value.matches(Name::new(name.as_bytes())))
    };
    // sbx run says what is wrong with these, or takes them with --allow-dangerous-env.
    if is_kept_back(name) || environment::is_reserved(name) {
        return Err(false);
    }
    if is_any(&profile.env.deny) || is_any(&profile.env.addresses) {
        return Err(true);
    }
    let text = name.to_str().filter(|text| !text.is_empty() && !text.contains('*')).ok_or(false)?;
    match value.map(OsStr::to_str) {
        // A `${` would be the beginning of a variable of profiles.
        Some(Some(value)) if !value.contains("${") => Ok(Key::Set(text.to_string(), json!(value))),
        Some(_) => Err(false),
        None => {
            // What a profile sets outranks what it passes on; the flag outranks both.
            let set = profile.env.set.iter().chain(profile.set_for_some());
            match set.into_iter().any(|(set, _)| **set == *text) {
                true => Err(false),
                false => Ok(Key::Inherit(text.to_string())),
            }
        }
    }
}
