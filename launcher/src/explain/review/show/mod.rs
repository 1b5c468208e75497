//! A review, for people and for programs. Texts of profiles are whatever a file holds: none steers the terminal.

mod lines;
mod rights;

use crate::explain::review::effects::Effect;
use crate::explain::review::probes::{ABSENT, is_denied, set};
use crate::explain::review::{Finding, Review};
use crate::profile::{Origin, Source};
use crate::text::shown;
use lines::{Lines, plain};
use serde_json::{Value, json};
use std::fmt::Write;

/// Maximum number of things of one finding, or of one rule, that are named.
const MOST: usize = 12;

/// As text. `all`: with every entry of long lists.
pub fn human(review: &Review<'_>, all: bool) -> String {
    let mut text = String::new();
    let profile = review.profile;
    let source = match &profile.source {
        Source::BuiltIn => "built in".to_string(),
        Source::File(path) => plain(&path.display().to_string()),
    };
    let lineage: Vec<String> = profile.lineage.iter().map(|name| plain(name)).collect();
    let workspace = match &review.workspace {
        Some(path) => format!("{}, as in a run here", shown(path)),
        None => "none, as in a run here".to_string(),
    };
    for (label, line) in [
        ("profile", format!("{} ({source})", profile.name)),
        ("for", profile.description.to_string()),
        ("made of", lineage.join(" -> ")),
        ("workspace", workspace),
    ] {
        Lines::new(&mut text, label).sentence(&line, 2);
    }
    findings(&mut text, review, all);
    text.push_str("\nIt may:\n");
    rights::human(&mut text, review, all);
    text.push_str("\nA run under it has:\n");
    rights::means(&mut text, review);
    unusual(&mut text, review, all);
    if !review.closed.is_empty() {
        let paths: Vec<String> = review.closed.iter().map(|path| shown(path)).collect();
        let paths = shortened(paths, all).join(", ");
        let note = format!("the rules give more that the permissions of files close to this user: {paths}");
        text.push('\n');
        Lines::new(&mut text, "note").sentence(&note, 2);
    }
    for note in &review.notes {
        text.push('\n');
        Lines::new(&mut text, "note").sentence(&format!("a run here says: {note}"), 2);
    }
    for missing in &review.missing {
        text.push('\n');
        let note = format!(
            "nothing is there on this machine, so no run starts until it is, or the entry is \"optional\": {missing}"
        );
        Lines::new(&mut text, "note").sentence(&note, 2);
    }
    text
}

/// Maximum number of things that are named of what a profile takes back.
const FEW: usize = 4;

fn unusual(text: &mut String, review: &Review<'_>, all: bool) {
    let Some(unusual) = &review.unusual else { return };
    let base = plain(&unusual.base);
    if unusual.more.is_empty() {
        let _ = writeln!(text, "\nThis profile gives nothing that '{base}' does not give.");
    } else {
        let _ = writeln!(text, "\nThis profile gives what '{base}' does not:");
        // The entries stand above with their reasons.
        let bare = |effect: &Effect| Effect {
            why: effect.why.clone().filter(|_| effect.rule.is_none()),
            ..effect.clone()
        };
        effects(text, &unusual.more.iter().map(bare).collect::<Vec<_>>(), all);
    }
    match unusual.less.len() {
        0 => {}
        1..=FEW => {
            let _ = writeln!(text, "It lacks what '{base}' gives:");
            effects(text, &unusual.less, all);
        }
        many => {
            let _ = writeln!(text, "It lacks {many} things that '{base}' gives. To see both ways:");
            let _ = writeln!(text, "  sbx profile diff {base} {}", shown(review.name.as_ref()));
        }
    }
}

/// What effects have in common that stand together: their kind, their list and profile, and the reason.
type Key<'e> = (&'e str, Option<(&'e str, &'e str)>, Option<&'e str>);

fn key(effect: &Effect, all: bool) -> Key<'_> {
    let rule = effect.rule.as_ref().map(|origin| (origin.key, &*origin.profile));
    let is_short = !all && effect.rule.as_ref().is_some_and(|origin| origin.built_in);
    (effect.kind, rule, effect.why.as_deref().filter(|_| !is_short))
}

/// Effects, those of one kind, list and reason together. The reasons of built-in profiles are shown with `all`.
pub fn effects(text: &mut String, effects: &[Effect], all: bool) {
    let mut groups: Vec<(Key<'_>, Vec<&Effect>)> = Vec::new();
    for effect in effects {
        match groups.iter_mut().find(|(known, _)| *known == key(effect, all)) {
            Some((_, group)) => group.push(effect),
            None => groups.push((key(effect, all), vec![effect])),
        }
    }
    for ((kind, _, why), group) in groups {
        let mut lines = Lines::new(text, kind);
        let what: Vec<String> = group.iter().map(|effect| plain(&effect.what)).collect();
        let what = shortened(what, all);
        let rules: Vec<&Origin> = group.iter().filter_map(|effect| effect.rule.as_deref()).collect();
        let rule = places(&rules, all);
        let rest = match (rule, why) {
            (Some(rule), Some(why)) => format!("by {rule} ({why})"),
            (Some(rule), None) => format!("by {rule}"),
            (None, Some(why)) => format!("({why})"),
            (None, None) => String::new(),
        };
        let is_short = what.len() == 1 && what[0].chars().count() + rest.chars().count() < 80;
        if is_short {
            lines.sentence(&format!("{:30} {rest}", what[0]), 4);
            continue;
        }
        lines.words(what.iter().map(String::as_str), 0);
        lines.sentence(&format!("    {rest}"), 4);
    }
}

/// The places of entries of one list: `paths.read[0, 2-5] of profile 'x'`.
fn places(rules: &[&Origin], all: bool) -> Option<String> {
    let first = rules.first()?;
    let with_places = rules.iter().filter(|origin| all || !origin.built_in);
    let mut indices: Vec<usize> = with_places.filter_map(|origin| origin.index).collect();
    indices.sort_unstable();
    indices.dedup();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for index in indices {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => ranges.push((index, index)),
        }
    }
    let ranges: Vec<String> = ranges
        .into_iter()
        .map(|(from, to)| if from == to { from.to_string() } else { format!("{from}-{to}") })
        .collect();
    let list = if ranges.is_empty() { String::new() } else { format!("[{}]", ranges.join(", ")) };
    Some(format!("{}{list} of profile '{}'", first.key, first.profile))
}

fn shortened(mut what: Vec<String>, all: bool) -> Vec<String> {
    let more = what.len().saturating_sub(MOST);
    if more > 1 && !all {
        what.truncate(MOST);
        what.push(format!("and {more} more"));
    }
    what
}

fn findings(text: &mut String, review: &Review<'_>, all: bool) {
    if review.findings.is_empty() {
        text.push_str("\nWhat an attacker gets: nothing of what this review knows to ask for.\n");
        return;
    }
    text.push_str("\nWhat an attacker gets:\n");
    let summary = summary(&review.findings);
    Lines::new(text, "in short").words(summary.iter().map(String::as_str), 2);
    let base = review.unusual.as_ref().map_or("", |unusual| &unusual.base);
    // One head for all that means the same, whatever rules give it.
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in &review.findings {
        let head = |known: &Finding| (known.topic, known.meaning.clone(), known.usual);
        match groups.iter_mut().find(|group| group.first().is_some_and(|known| head(known) == head(finding)))
        {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    for group in groups {
        let Some(Finding { topic, meaning, usual, .. }) = group.first() else { continue };
        let mark = if *usual { format!(" (so in '{base}' too)") } else { String::new() };
        let mut lines = Lines::new(text, topic);
        lines.sentence(&format!("{meaning}{mark}:"), 0);
        for finding in group {
            named(&mut lines, finding, all);
        }
    }
    if review.findings.iter().any(|finding| !finding.usual) || base.is_empty() {
        return;
    }
    let _ = writeln!(text, "All of it is so in '{base}' too.");
}

/// What some rules give, and these rules.
fn named(lines: &mut Lines<'_>, Finding { about, rules, .. }: &Finding, all: bool) {
    let (words, sentences): (Vec<String>, Vec<String>) =
        about.iter().map(|about| plain(about)).partition(|about| !about.contains(' '));
    for about in shortened(sentences, all) {
        lines.sentence(&format!("- {about}"), 2);
    }
    if !words.is_empty() {
        let words = shortened(words, all);
        lines.words(std::iter::once("-").chain(words.iter().map(String::as_str)), 2);
    }
    for rule in shortened(rules.clone(), all) {
        lines.sentence(&format!("by {rule}"), 2);
    }
}

/// Maximum number of things of one topic that the summary names.
const MOST_NAMED: usize = 2;

/// Each topic with what it is about, or with how much there is: the parts of one line.
fn summary(findings: &[Finding]) -> Vec<String> {
    let mut topics: Vec<(&str, Vec<&str>)> = Vec::new();
    for Finding { topic, about, .. } in findings {
        let about = about.iter().map(String::as_str);
        match topics.iter_mut().find(|(known, _)| known == topic) {
            Some((_, all)) => all.extend(about),
            None => topics.push((topic, about.collect())),
        }
    }
    let last = topics.len().saturating_sub(1);
    let parts = topics.into_iter().enumerate().map(|(place, (topic, all))| {
        let (absent, there): (Vec<&str>, Vec<&str>) = all.iter().partition(|about| about.contains(ABSENT));
        // What it is stands before the remarks.
        let names: Vec<&str> = all.iter().map(|about| about.split(" (").next().unwrap_or(about)).collect();
        let is_short = absent.is_empty()
            && names.len() <= MOST_NAMED
            && names.iter().all(|name| name.chars().count() <= 40);
        let what = match (there.len(), absent.len()) {
            _ if is_short => format!("{topic}: {}", names.join(", ")),
            (there, 0) => format!("{topic} {there}"),
            (0, absent) => format!("{topic} 0 ({absent} if they are made)"),
            (there, absent) => format!("{topic} {there} ({absent} more if they are made)"),
        };
        plain(&format!("{what}{}", if place < last { " ·" } else { "" }))
    });
    parts.collect()
}

/// As JSON.
pub fn json(review: &Review<'_>) -> Value {
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
        "workspace": review.workspace.as_ref().map(|path| path.to_string_lossy()),
        "rights": rights::json(review),
        "base": review.unusual.as_ref().map(|unusual| &unusual.base),
        "unusual": review.unusual.iter().flat_map(|unusual| &unusual.more).map(effect).collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
        "closed": review.closed.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "missing": review.missing,
        "notes": review.notes,
    })
}

/// An effect as JSON.
pub fn effect(effect: &Effect) -> Value {
    let rule = effect.rule.as_ref().map(|origin| origin.to_string());
    json!({ "kind": effect.kind, "what": effect.what, "rule": rule, "why": effect.why })
}
