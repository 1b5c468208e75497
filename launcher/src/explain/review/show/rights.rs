//! What a profile gives, by kind.

use crate::explain::review::probes::SetFor;
use crate::explain::review::show::lines::{Lines, plain};
use crate::explain::review::{Holds, Review};
use crate::profile::{self, Given, HomeMode, Location, NetworkMode, Origin, Profile, StaticMode};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;

/// Maximum number of entries of one profile and kind that are listed.
const MOST: usize = 12;

/// What entries about the workspace begin with.
const WORKSPACE: &str = "${WORKSPACE}";

/// An entry: what it is, and where it comes from.
struct Entry {
    what: String,
    profile: String,
    built_in: bool,
    index: Option<usize>,
    why: Option<String>,
}

impl Entry {
    fn new(what: impl Into<String>, origin: &Origin) -> Entry {
        Entry {
            what: what.into(),
            profile: origin.profile.to_string(),
            built_in: origin.built_in,
            index: origin.index,
            why: origin.why.as_ref().map(ToString::to_string),
        }
    }
}

fn entry<T: Display>(given: &Given<T>) -> Entry {
    Entry::new(given.value.to_string(), &given.origin)
}

/// What a network is, in words. `is_empty`: no rule says where connections may go.
fn network(mode: NetworkMode, is_empty: bool, sends_packets: bool) -> &'static str {
    match mode {
        NetworkMode::Host => "the whole network of this machine",
        _ if sends_packets => "any host, though its rules name none: calls that it allows lead out",
        NetworkMode::None => "no network",
        NetworkMode::Ports if is_empty => "no host, because it names none",
        NetworkMode::Ports => "these hosts and ports:",
        NetworkMode::Private => "a network of the run's own, with nobody else in it",
        NetworkMode::Loopback => "a network of the run's own, with nobody else in it, or none",
    }
}

/// What a profile gives, by kind. Without a call that starts programs, executing is reading.
fn rights(review: &Review<'_>) -> Vec<(&'static str, Vec<Entry>)> {
    let (profile, starts) = (review.profile, review.starts);
    let list = |list: &[profile::PathEntry]| list.iter().map(entry).collect::<Vec<_>>();
    let Profile { paths, network, env, commands, .. } = profile;
    let words =
        |mode: NetworkMode| self::network(mode, network.connect.is_empty(), review.holds.sends_packets);
    let mode = network.mode.iter().map(|mode| Entry::new(words(mode.value), &mode.origin));
    let reach = mode.chain(network.connect.iter().map(entry)).collect();
    let mut known = HashSet::new();
    let calls = profile.syscalls.calls.iter().flat_map(|(call, rules)| {
        let origins = rules.allow.origins().chain(rules.inside.origins());
        origins.map(move |origin| match &*origin.entry {
            "" => Entry::new(call.name(), origin),
            entry => Entry::new(entry, origin),
        })
    });
    // One entry of a profile can be about many calls.
    let calls = calls.filter(|entry| known.insert((entry.what.clone(), entry.profile.clone(), entry.index)));
    let mut calls: Vec<Entry> = calls.collect();
    calls.sort_by_key(|entry| entry.index);
    let default = profile.syscalls.default.iter();
    let default = default.filter(|default| {
        matches!(default.value, profile::DefaultAction::Allow | profile::DefaultAction::Log)
    });
    calls.splice(
        0..0,
        default.map(|default| Entry::new("all that no entry answers with an error", &default.origin)),
    );
    let passed = env.inherit.iter().filter(|entry| !super::is_denied(profile, &entry.value));
    let denied = env.deny.iter().filter(|entry| !entry.origin.built_in);
    let addresses = env.addresses.iter().filter(|entry| !super::is_denied(profile, &entry.value));
    let set = |wanted: SetFor| {
        let set = super::set(profile).filter(|(_, _, who)| *who == wanted);
        let entry = |(name, value, _): (&str, &Given<Location>, SetFor)| {
            Entry::new(format!("{name}={}", value.value), &value.origin)
        };
        (wanted.label(), set.map(entry).collect())
    };
    let (read, execute) = match starts {
        true => (list(&paths.read), list(&paths.execute)),
        false => (list(&paths.read).into_iter().chain(list(&paths.execute)).collect(), Vec::new()),
    };
    vec![
        ("read", read),
        ("execute", execute),
        ("write", list(&paths.write)),
        ("not", list(&paths.deny)),
        ("reach", reach),
        ("not reach", network.deny.iter().map(entry).collect()),
        ("listen", network.bind.iter().map(entry).collect()),
        ("sockets", list(&network.unix)),
        ("start", commands.allow.iter().map(entry).collect()),
        ("not start", commands.block.iter().map(entry).collect()),
        ("variables", passed.map(entry).collect()),
        ("addresses", addresses.map(entry).collect()),
        ("not passed", denied.map(entry).collect()),
        set(SetFor::Every),
        set(SetFor::IfClosed),
        set(SetFor::IfOffline),
        ("keys", profile.agent.keys.iter().map(entry).collect()),
        ("calls", calls),
    ]
}

/// As text.
pub fn human(text: &mut String, review: &Review<'_>, all: bool) {
    for (label, entries) in rights(review) {
        right(text, label, &entries, all);
    }
}

/// The entries of a file one by one, with their places in the list; those of built-in profiles as far as they can be
/// taken in.
fn right(text: &mut String, label: &str, entries: &[Entry], all: bool) {
    let mut lines = Lines::new(text, label);
    let (own, inherited): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| !entry.built_in);
    let shown = |entry: &Entry| match entry.index {
        Some(index) => format!("[{index}] {}", plain(&entry.what)),
        None => plain(&entry.what),
    };
    let (explained, bare): (Vec<&Entry>, Vec<&Entry>) =
        own.into_iter().partition(|entry| entry.why.is_some());
    for Entry { what, index, why, .. } in explained {
        let index = index.map_or(String::new(), |index| format!("[{index}] "));
        let why = why.as_deref().unwrap_or_default();
        lines.sentence(&format!("{index}{what}  ({why})"), 4);
    }
    let bare: Vec<String> = bare.into_iter().map(shown).collect();
    lines.words(bare.iter().map(String::as_str), 0);
    let mut profiles: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    // What matters most of a long list: the user's work.
    let mut inherited = inherited;
    inherited.sort_by_key(|entry| !entry.what.starts_with(WORKSPACE));
    for entry in inherited {
        profiles.entry(&entry.profile).or_default().push(plain(&entry.what));
    }
    for (profile, mut what) in profiles {
        let more = what.len().saturating_sub(MOST);
        if more > 1 && !all {
            what.truncate(MOST);
            what.push(format!("and {more} more"));
        }
        what.push(format!("(of '{}')", plain(profile)));
        lines.words(what.iter().map(String::as_str), 2);
    }
}

/// What a run here is like: what is protected, whose home it has, what the profile requires.
pub fn means(text: &mut String, review: &Review<'_>) {
    let Review { profile, holds, .. } = review;
    let mut rows = vec![
        ("home", home(profile, holds)),
        ("namespaces", namespaces(profile, holds).to_string()),
        ("requires", profile.require.as_deref().map_or("no level".to_string(), ToString::to_string)),
        ("static", format!("programs that are linked statically are {}", linked(profile))),
        ("limits", limits(profile)),
    ];
    let count = profile.paths.protect.len();
    if count > 0 {
        let row = match (holds.namespaces, holds.looks_at_git) {
            (true, _) => format!(
                "{count} paths, and what git executes; those that are missing only where you use a program that reads \
                 them; the list: sbx profile show"
            ),
            (false, true) => {
                "nothing while it runs; what git would execute of what it makes is put aside when it has ended"
                    .to_string()
            }
            (false, false) => "nothing".to_string(),
        };
        rows.insert(0, ("protected", row));
    }
    for (label, row) in rows {
        Lines::new(text, label).sentence(&row, 2);
    }
}

fn home(profile: &Profile, holds: &Holds) -> String {
    let opens_all = |list: &[profile::PathEntry]| list.iter().any(|entry| entry.value.to_string() == "/");
    let mode = profile.home.mode.as_deref().copied().unwrap_or_default();
    let lasts = match mode {
        HomeMode::Private => {
            "kept for the next run in this workspace, which starts what this one puts on its path"
        }
        HomeMode::Closed | HomeMode::Temporary => "removed afterwards",
    };
    let (copies, stores) = (profile.home.copies.len(), profile.home.stores.len());
    match (mode, holds.home) {
        (HomeMode::Closed, _) if opens_all(&profile.paths.write) || opens_all(&profile.paths.read) => {
            "yours".to_string()
        }
        (HomeMode::Closed, _) => "yours, closed but for what the rules open".to_string(),
        (_, true) => format!(
            "one of the run's own, {lasts}, with copies of {copies} files of settings, and {stores} directories of \
             packages below it"
        ),
        (_, false) => {
            "yours, closed but for what the rules open: a home of the run's own takes namespaces".to_string()
        }
    }
}

fn namespaces(profile: &Profile, holds: &Holds) -> &'static str {
    match (profile.namespaces.as_deref(), holds.namespaces) {
        (Some(profile::Namespaces::Auto), true) => "where the machine gives them, as this one does",
        (Some(profile::Namespaces::Auto), false) => "where the machine gives them; a run here has none",
        (_, true) => "its own, which come with a network of its own",
        (_, false) => "none: it sees the processes and the /tmp of this machine as far as rules open them",
    }
}

fn linked(profile: &Profile) -> &'static str {
    match profile.static_programs.as_deref().copied().unwrap_or_default() {
        StaticMode::Block => "not started",
        StaticMode::Warn => "started, with a warning",
        StaticMode::Confine => "started",
    }
}

fn limits(profile: &Profile) -> String {
    let mut all: Vec<String> = Vec::new();
    macro_rules! shown {
        ($($field:ident $word:literal,)*) => {$(
            all.extend(profile.limits.$field.as_ref().map(|given| format!("{} {}", $word, given.value)));
        )*};
    }
    limits!(shown);
    if all.is_empty() { "none".to_string() } else { all.join(", ") }
}

/// As JSON.
pub fn json(review: &Review<'_>) -> Map<String, Value> {
    let rights = rights(review).into_iter();
    let rights = rights.map(|(label, entries)| {
        let entries = entries.iter().map(|entry| {
            json!({
                "what": entry.what,
                "profile": entry.profile,
                "built_in": entry.built_in,
                "index": entry.index,
                "why": entry.why,
            })
        });
        (label.to_string(), entries.collect())
    });
    rights.collect()
}
