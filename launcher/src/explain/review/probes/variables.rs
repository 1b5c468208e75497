//! Variables that carry secrets into a run.

use crate::explain::review::effects::key;
use crate::explain::review::probes::Gain;
use crate::plan::environment::{is_kept_back, is_never_passed};
use crate::profile::{self, Given, Location, Name, Pattern, Profile, Search};
use std::ffi::OsStr;

/// The profile whose denials say how variables with secrets are named.
const KNOWING: &str = "custom";
/// Maximum number of kinds of names that are told of one pattern.
const MOST: usize = 4;

/// Which runs get a variable that a profile sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetFor {
    /// All.
    Every,
    /// Those with a closed home.
    IfClosed,
    /// Those that reach no other machine.
    IfOffline,
}

impl SetFor {
    /// As a label.
    pub fn label(self) -> &'static str {
        match self {
            SetFor::Every => "set",
            SetFor::IfClosed => "if closed",
            SetFor::IfOffline => "if offline",
        }
    }

    /// As the end of a sentence.
    fn words(self) -> &'static str {
        match self {
            SetFor::Every => "",
            SetFor::IfClosed => " where the home is closed",
            SetFor::IfOffline => " where no other machine can be reached",
        }
    }
}

/// What is passed on, or set, of what is named like a secret.
pub fn ask(profile: &Profile) -> Vec<Gain> {
    let secrets = profile::load(OsStr::new(KNOWING), &Search::default()).map(|knowing| knowing.env.deny);
    let secrets: Vec<Pattern> = secrets
        .unwrap_or_default()
        .iter()
        .map(|entry| entry.value.clone())
        .filter(|names| !is_never_passed(names))
        .collect();
    let gain = |about: String, meaning: &str, rule: String| Gain {
        topic: "variables",
        about,
        meaning: meaning.to_string(),
        rules: vec![rule],
    };
    let mut gains = Vec::new();
    let inherited = profile.env.inherit.iter().map(|entry| (entry, "it is set"));
    let addresses = profile.env.addresses.iter().map(|entry| (entry, "the network is open"));
    let passed_on = inherited.chain(addresses);
    for (entry, when) in passed_on.filter(|(entry, _)| !is_denied(profile, &entry.value)) {
        let passed =
            secrets.iter().filter(|names| names.overlaps(&entry.value) && !is_denied(profile, names));
        let passed: Vec<String> = passed.map(ToString::to_string).collect();
        if entry.value.trim_matches('*').is_empty() {
            let meaning = format!(
                "every variable is passed on where {when}, but for names that are denied: a secret may have any name"
            );
            gains.push(gain(entry.value.to_string(), &meaning, rule(entry)));
        }
        if !passed.is_empty() {
            let meaning = format!("passed on where {when}, and named as secrets are");
            gains.push(gain(with_kinds(&entry.value, &passed), &meaning, rule(entry)));
        }
    }
    // Names of a maker (`GOOGLE_*`) say nothing about a single variable; words for secrets in a name do.
    let words = |names: &&Pattern| names.starts_with('*');
    for entry in profile.agent.keys.iter() {
        if secrets.iter().filter(words).any(|names| names.overlaps(&entry.value)) {
            let rule = if entry.origin.index.is_some() { rule(entry) } else { key(&entry.origin) };
            gains.push(gain(
                entry.value.to_string(),
                "keys that sbx agent passes on where they are set",
                rule,
            ));
        }
    }
    for (name, value, who) in set(profile) {
        let mut told = |about: String, what: &str| {
            let what = format!("set by the profile{}{what}", who.words());
            gains.push(gain(about, &what, value.origin.to_string()));
        };
        if secrets.iter().any(|names| names.matches(Name::new(name.as_bytes()))) {
            told(name.to_string(), ", and named as secrets are");
        }
        // Passed on from outside such a variable would be kept back; what a profile sets is set.
        let about = || format!("{name}={}", value.value);
        if *name == *"PATH" {
            told(about(), ": programs of the run are looked for there");
        } else if is_kept_back(OsStr::new(name)) {
            told(about(), ": programs of the run load code that it names");
        }
    }
    gains
}

/// What a profile sets, and in which runs. What it sets in every run stands before what it sets in some.
pub fn set(profile: &Profile) -> impl Iterator<Item = (&str, &Given<Location>, SetFor)> {
    let every = profile.env.set.iter().map(|set| (set, SetFor::Every));
    let is_in_every = |name: &str| profile.env.set.iter().any(|(known, _)| *known == *name);
    let closed = profile.home.closed_env.iter().map(|set| (set, SetFor::IfClosed));
    let offline = profile.network.closed_env.iter().map(|set| (set, SetFor::IfOffline));
    let some = closed.chain(offline).filter(move |((name, _), _)| !is_in_every(name));
    every.chain(some).map(|((name, value), who)| (&**name, value, who))
}

/// Whether no variable of these names is passed on, whatever lists name it.
pub fn is_denied(profile: &Profile, names: &Pattern) -> bool {
    is_never_passed(names) || profile.env.deny.iter().any(|denied| denied.value.covers(names))
}

/// An entry with the kinds of secrets that it passes on, where it names more than one variable.
fn with_kinds(entry: &Pattern, secrets: &[String]) -> String {
    if !entry.contains('*') {
        return entry.to_string();
    }
    let more = secrets.len().saturating_sub(MOST);
    let shown = secrets.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    let rest = if more > 0 { format!(" and {more} more kinds of names") } else { String::new() };
    format!("{entry} (that is {shown}{rest})")
}

/// An entry with its place.
fn rule(entry: &Given<Pattern>) -> String {
    let origin = &entry.origin;
    match origin.index {
        Some(_) => origin.to_string(),
        None => format!("{} '{}' of profile '{}'", origin.key, entry.value, origin.profile),
    }
}
