//! A review, for people and for programs. Texts of profiles are whatever a file holds: none steers the terminal.

use crate::explain::review::effects::Effect;
use crate::explain::review::{Finding, Review};
use crate::profile::{self, Given, Profile, Source};
use crate::text::tame;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// Maximum number of entries of one profile and kind that are listed.
const MOST: usize = 12;
/// Number of calls in a line.
const CALLS: usize = 8;
/// Maximum number of things of one finding that are named.
const MOST_ABOUT: usize = 6;

/// As text.
pub fn human(review: &Review<'_>) -> String {
    let mut text = String::new();
    let profile = review.profile;
    let source = match &profile.source {
        Source::BuiltIn => "built in".to_string(),
        Source::File(path) => plain(&path.display().to_string()),
    };
    let _ = writeln!(text, "profile   {} ({source})", plain(&profile.name));
    if !profile.description.is_empty() {
        let _ = writeln!(text, "for       {}", plain(&profile.description));
    }
    let lineage: Vec<String> = profile.lineage.iter().map(|name| plain(name)).collect();
    let _ = writeln!(text, "made of   {}", lineage.join(" -> "));
    let _ = writeln!(text, "\nIt may:");
    for (label, entries) in rights(profile) {
        right(&mut text, label, &entries);
    }
    unusual(&mut text, review);
    let (particular, usual): (Vec<_>, Vec<_>) = review.findings.iter().partition(|finding| !finding.usual);
    findings(&mut text, "What an attacker would make of it:", &particular);
    if particular.is_empty() {
        let _ = writeln!(text, "\nWhat an attacker would make of it: nothing of what is looked for.");
    }
    findings(&mut text, "The same as in the built-in profiles that it is made of:", &usual);
    for missing in &review.missing {
        let _ = writeln!(
            text,
            "\nnote: nothing is there on this machine, so it was left out: {}",
            plain(missing)
        );
    }
    text
}

fn unusual(text: &mut String, review: &Review<'_>) {
    let Some(unusual) = &review.unusual else { return };
    let base = plain(&unusual.base);
    if unusual.more.is_empty() {
        let _ = writeln!(text, "\nIt gives nothing that '{base}' does not give.");
    } else {
        let _ = writeln!(text, "\nIt gives what '{base}' does not:");
        effects(text, &unusual.more);
    }
    if unusual.less > 0 {
        let things =
            if unusual.less == 1 { "one thing".to_string() } else { format!("{} things", unusual.less) };
        let _ = writeln!(text, "  ('{base}' gives {things} that it does not: sbx profile diff)");
    }
}

/// Rows of effects. Calls without a reason stand together.
pub fn effects(text: &mut String, effects: &[Effect]) {
    let is_plain = |effect: &&Effect| effect.kind == "call" && effect.why.is_none();
    let calls: Vec<String> = effects.iter().filter(is_plain).map(|effect| plain(&effect.what)).collect();
    let mut label = "calls";
    for line in calls.chunks(CALLS) {
        let _ = writeln!(text, "  {label:9} {}", line.join(" "));
        label = "";
    }
    for Effect { kind, what, rule, why } in effects.iter().filter(|effect| !is_plain(effect)) {
        let _ = write!(text, "  {kind:9} {:36}", plain(what));
        let _ = match rule {
            Some(rule) => write!(text, " {}", plain(rule)),
            None => Ok(()),
        };
        let _ = match why {
            Some(why) => writeln!(text, " ({})", plain(why)),
            None => writeln!(text),
        };
    }
}

fn findings(text: &mut String, title: &str, findings: &[&Finding]) {
    if findings.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}");
    for Finding { topic, about, meaning, rules, .. } in findings {
        let _ = writeln!(text, "  {topic:10} {meaning}:");
        for about in about.iter().take(MOST_ABOUT) {
            let _ = writeln!(text, "  {:10}   {}", "", plain(about));
        }
        if about.len() > MOST_ABOUT {
            let _ = writeln!(text, "  {:10}   and {} more", "", about.len() - MOST_ABOUT);
        }
        for rule in rules {
            let _ = writeln!(text, "  {:10} by {}", "", plain(rule));
        }
    }
}

/// An entry: what it is, and where it comes from.
struct Entry {
    what: String,
    profile: String,
    built_in: bool,
    why: Option<String>,
}

fn entry<T: Display>(given: &Given<T>) -> Entry {
    Entry {
        what: given.value.to_string(),
        profile: given.origin.profile.to_string(),
        built_in: given.origin.built_in,
        why: given.origin.why.as_ref().map(ToString::to_string),
    }
}

/// What a profile gives, by kind.
fn rights(profile: &Profile) -> Vec<(&'static str, Vec<Entry>)> {
    let list = |list: &[profile::PathEntry]| list.iter().map(entry).collect::<Vec<_>>();
    let Profile { paths, network, env, commands, .. } = profile;
    let mut reach: Vec<Entry> = network.mode.iter().map(entry).collect();
    reach.extend(network.connect.iter().map(entry));
    let calls = profile.syscalls.calls.iter().flat_map(|(call, rules)| {
        let origins = rules.allow.origins().chain(rules.inside.origins());
        origins.map(move |origin| Entry {
            what: match &*origin.entry {
                "" => call.name().to_string(),
                entry => entry.to_string(),
            },
            profile: origin.profile.to_string(),
            built_in: origin.built_in,
            why: origin.why.as_ref().map(ToString::to_string),
        })
    });
    let mut calls: Vec<Entry> = calls.collect();
    // One entry of a profile can be about many calls.
    calls.dedup_by(|one, other| one.what == other.what && one.profile == other.profile);
    vec![
        ("read", list(&paths.read)),
        ("execute", list(&paths.execute)),
        ("write", list(&paths.write)),
        ("not", list(&paths.deny)),
        ("reach", reach),
        ("listen", network.bind.iter().map(entry).collect()),
        ("sockets", list(&network.unix)),
        ("start", commands.allow.iter().map(entry).collect()),
        ("not start", commands.block.iter().map(entry).collect()),
        ("variables", env.inherit.iter().map(entry).collect()),
        ("calls", calls),
    ]
}

/// The entries of a file one by one; those of built-in profiles as far as they can be taken in.
fn right(text: &mut String, label: &str, entries: &[Entry]) {
    if entries.is_empty() {
        return;
    }
    let mut label = label;
    let mut line = |what: &str| {
        let _ = writeln!(text, "  {label:9} {what}");
        label = "";
    };
    for entry in entries.iter().filter(|entry| !entry.built_in) {
        match &entry.why {
            Some(why) => line(&format!("{:36} ({})", plain(&entry.what), plain(why))),
            None => line(&plain(&entry.what)),
        }
    }
    let mut inherited: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.built_in) {
        inherited.entry(&entry.profile).or_default().push(&entry.what);
    }
    for (profile, what) in inherited {
        let shown = what.iter().take(MOST).copied().collect::<Vec<_>>().join(" ");
        let more = what.len().saturating_sub(MOST);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        line(&format!("{}{rest} (of '{}')", plain(&shown), plain(profile)));
    }
}

/// As JSON.
pub fn json(review: &Review<'_>) -> Value {
    let rights: serde_json::Map<String, Value> = rights(review.profile)
        .into_iter()
        .map(|(label, entries)| {
            let entries = entries.iter().map(|entry| {
                json!({ "what": entry.what, "profile": entry.profile, "built_in": entry.built_in, "why": entry.why })
            });
            (label.to_string(), entries.collect())
        })
        .collect();
    let findings = review.findings.iter().map(|finding| {
        json!({
            "topic": finding.topic,
            "about": finding.about,
            "meaning": finding.meaning,
            "rules": finding.rules,
            "usual": finding.usual,
        })
    });
    json!({
        "profile": review.profile.name,
        "lineage": review.profile.lineage.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "rights": rights,
        "base": review.unusual.as_ref().map(|unusual| &unusual.base),
        "unusual": review.unusual.iter().flat_map(|unusual| &unusual.more).map(effect).collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
        "missing": review.missing,
    })
}

/// An effect as JSON.
pub fn effect(effect: &Effect) -> Value {
    json!({ "kind": effect.kind, "what": effect.what, "rule": effect.rule, "why": effect.why })
}

/// Texts of profiles, fit for a terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|character| if tame(character) == character { character } else { ' ' }).collect()
}
