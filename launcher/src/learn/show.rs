//! What is learned, for people on standard error, and as JSON.

use crate::learn::candidate::Rule;
use crate::learn::learner::{Learner, NotLearned};
use crate::learn::right::{Evidence, Right, Wider, wider};
use crate::run::aftermath;
use crate::supervise::Stderr;
use crate::text::{escape, shown};
use sbx_client::report::{Cause, Exit, Report};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of rows of a table.
const MOST_ROWS: usize = 64;

/// What happened in a round.
pub struct Round {
    /// Its number, from 1.
    pub number: usize,
    /// The profile that it began from.
    pub start: String,
    /// How the command ended.
    pub cause: Cause,
    /// The exit status.
    pub status: i32,
    /// How many distinct calls were refused.
    pub refused: usize,
    /// What was learned.
    pub learned: Vec<Rule>,
    /// What was taken out again.
    pub pruned: Vec<Rule>,
}

impl Round {
    /// The round that a report is about. It has taught nothing yet.
    pub fn of(report: &Report, number: usize, start: &str) -> Round {
        Round {
            number,
            start: start.to_string(),
            cause: report.cause,
            status: report.exit_status,
            refused: report.violations.len(),
            learned: Vec::new(),
            pruned: Vec::new(),
        }
    }
}

/// How a round ended, in words.
pub fn ending(report: &Report) -> String {
    match (report.cause, &report.exit) {
        (Cause::Exited, Some(Exit { code: Some(code), .. })) => format!("exit status {code}"),
        (cause, _) => format!("{cause}, status {}", report.exit_status),
    }
}

/// Says a sentence on standard error.
pub fn say(sentence: &str) {
    let mut stderr = Stderr::default();
    stderr.say(&format!("sbx: {sentence}\n"));
    stderr.finish();
}

/// Says once what a round has left that a program outside may act on, and what it went on without.
pub fn beside(report: &Report, said: &mut BTreeSet<String>) {
    let lines = report.degradations.iter().cloned().chain(report.findings.iter().map(aftermath::line));
    for line in lines.filter(|line| said.insert(line.clone())) {
        say(&line);
    }
}

/// Shows what a round has taught.
pub fn round(round: &Round, ending: &str, learner: &Learner) {
    let learned = round.learned.len();
    let refusals = if round.refused == 1 { "refusal" } else { "refusals" };
    let rules = if learned == 1 { "rule" } else { "rules" };
    say(&format!("round {}: {ending}, {} {refusals}, {learned} new {rules}", round.number, round.refused));
    table(&round.learned, learner);
    if !round.pruned.is_empty() {
        say("nothing was connected by these rules, so they are taken out again:");
        table(&round.pruned, learner);
    }
}

/// Shows rules. What is sensitive is marked, whoever allowed it.
pub fn table(rules: &[Rule], learner: &Learner) {
    let mut text = String::new();
    for rule in rules {
        let (what, kind) = (rule.right.to_string(), rule.right.kind());
        let mark = learner.judge(&rule.right).map_or(String::new(), |why| format!(": sensitive: {why}"));
        text.push_str(&format!("  {kind:14} {what:40} {}{mark}\n", by(Some(&rule.right), &rule.evidence)));
    }
    Stderr::default().say(&text);
}

/// Who asked for a rule.
fn by(right: Option<&Right>, evidence: &[Evidence]) -> String {
    match evidence.first() {
        Some(first @ Evidence::Refused { process, call, path, .. }) => {
            match (right.and_then(|right| wider(right, first)), path) {
                (Some(Wider::OtherCall), _) => format!("{process} ({call}; goes with it)"),
                (Some(Wider::Directory), Some(path)) => {
                    format!("{process} ({call} of {}; for the whole directory)", shown(path))
                }
                _ => format!("{process} ({call})"),
            }
        }
        Some(Evidence::Given(flag)) => format!("given with {flag}"),
        Some(Evidence::Joined(count)) => format!("{count} names in it"),
        None => String::new(),
    }
}

/// Shows what was refused and is not learned.
pub fn not_learned(learner: &Learner) {
    if learner.not_learned.is_empty() {
        return;
    }
    say("not learned:");
    let mut text = String::new();
    // The sensitive ones first: the command can have many others refused.
    let (sensitive, others): (Vec<_>, Vec<_>) =
        learner.not_learned.iter().partition(|refused| refused.sensitive);
    for refused in sensitive.into_iter().chain(others).take(MOST_ROWS) {
        let NotLearned { what, kind, why, sensitive, flag, file, evidence } = refused;
        let by = by(None, std::slice::from_ref(evidence));
        let mark = if *sensitive { "sensitive: " } else { "" };
        text.push_str(&format!("  {kind:14} {what:40} {by}: {mark}{}\n", escape(why.as_bytes(), 400)));
        if let Some(flag) = flag.as_ref().filter(|_| *sensitive) {
            text.push_str(&format!(
                "  {:14} allow it with {flag}, or all of these with --allow-sensitive\n",
                ""
            ));
        } else if let Some(flag) = flag {
            text.push_str(&format!("  {:14} allow it with {flag}\n", ""));
        }
        if let Some(file) = file {
            let file = shown(file);
            text.push_str(&format!(
                "  {:14} or make {file} first: the rule is about that file alone then\n",
                ""
            ));
        }
    }
    let more = learner.not_learned.len().saturating_sub(MOST_ROWS) + learner.unlisted;
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
    Stderr::default().say(&text);
}

/// All that there is to know, as JSON. `passed_in`: the round in which the command passed under the profile.
pub fn json(
    written: Option<&Path>,
    passed_in: Option<usize>,
    notes: &[String],
    learner: &Learner,
    rounds: &[Round],
    profile: &Value,
) -> Value {
    let rule = |rule: &Rule| rule_of(rule, learner);
    let rules: Vec<Value> = learner.candidate.rules().iter().map(rule).collect();
    let rounds: Vec<Value> = rounds
        .iter()
        .map(|round| {
            json!({
                "round": round.number,
                "start": round.start,
                "cause": round.cause.to_string(),
                "exit_status": round.status,
                "refused": round.refused,
                "learned": round.learned.iter().map(rule).collect::<Vec<_>>(),
                "pruned": round.pruned.iter().map(rule).collect::<Vec<_>>(),
            })
        })
        .collect();
    let not_learned: Vec<Value> = learner
        .not_learned
        .iter()
        .map(|refused| {
            json!({
                "kind": refused.kind,
                "what": refused.what,
                "why": refused.why,
                "sensitive": refused.sensitive,
                "flag": refused.flag,
                "file": refused.file.as_deref().map(shown),
                "evidence": evidence(&refused.evidence),
            })
        })
        .collect();
    json!({
        "written": written.map(shown),
        "passed_in_round": passed_in,
        "notes": notes,
        "rounds": rounds,
        "rules": rules,
        "not_learned": not_learned,
        "not_learned_unlisted": learner.unlisted,
        "profile": profile,
    })
}

fn rule_of(rule: &Rule, learner: &Learner) -> Value {
    json!({
        "kind": rule.right.kind(),
        "what": rule.right.to_string(),
        "sensitive": learner.judge(&rule.right),
        "flag": rule.right.flag(),
        "evidence": rule.evidence.iter().map(evidence).collect::<Vec<_>>(),
    })
}

fn evidence(evidence: &Evidence) -> Value {
    match evidence {
        Evidence::Refused { round, process, call, path, count } => {
            let path = path.as_deref().map(shown);
            json!({ "round": round, "process": process, "call": call, "path": path, "count": count })
        }
        Evidence::Given(flag) => json!({ "flag": flag }),
        Evidence::Joined(count) => json!({ "joined": count }),
    }
}

/// Whether a right is about a host that no connection was made to.
pub fn is_unused(right: &Right, report: &Report) -> bool {
    let Right::Connect(text) = right else { return false };
    let Ok(rule) = crate::hosts::HostRule::parse(text) else { return false };
    let hosts = report.network.iter().flat_map(|network| &network.hosts);
    !hosts.filter(|used| used.connections > 0).any(|used| {
        let host = used.host.as_str();
        let about = match (crate::hosts::HostName::parse(host), host.parse()) {
            (_, Ok(address)) => rule.is_about_address(address),
            (Ok(name), _) => rule.is_about(&name),
            _ => false,
        };
        about && used.port.is_some_and(|port| rule.has_port(port))
    })
}
