//! The suite's output, and the generated tables in docs/.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use super::judge::Judged;
use super::repository;
use super::runs::{LEVELS, Level, PROFILES};
use super::table::{self, Attempt, attempts};
use super::trial::Got;
use crate::kernel;
use crate::wrap::wrapped;

const INTRODUCTION: &str = include_str!("../../escapes/introduction.md");
/// The marks around the generated part of docs/security.md.
const MARKS: [&str; 2] = ["<!-- made by make test-escapes -->\n", "<!-- until here -->\n"];
const TRIED_ON: &str = "Tried on ";

/// The number of runs with each outcome.
#[derive(Default)]
struct Count {
    refused: usize,
    through: usize,
    impossible: usize,
}

impl Count {
    fn add(&mut self, one: &Judged, level: &Level, profile: Option<&str>) {
        let is_meant = |run: &&(&str, &str)| run.0 == level.name && profile.is_none_or(|name| name == run.1);
        let results: Vec<&Got> =
            one.results.iter().filter(|(run, _)| is_meant(run)).map(|(_, got)| got).collect();
        if one.impossible.is_some() {
            self.impossible += 1;
        } else if results.iter().any(|got| matches!(got, Got::Through(_))) {
            self.through += 1;
        } else if !results.is_empty() {
            self.refused += 1;
        }
    }

    fn cell(&self) -> String {
        format!("{} / {} / {}", self.refused, self.through, self.impossible)
    }
}

/// Prints the outcomes; with `each`, those of each run. Returns how many promises do not hold.
pub fn report(judged: &[Judged], each: bool) -> usize {
    let mut broken = 0;
    for one in judged {
        let name = format!("{} as {}", one.attempt.name, one.user.name);
        if each {
            one.impossible.iter().for_each(|why| println!("not applicable here: {name}: {why}"));
            one.results
                .iter()
                .for_each(|((level, profile), got)| println!("{name}, {level}, {profile}: {got:?}"));
        }
        for hole in one.broken() {
            broken += 1;
            println!(
                "PROMISED, BUT NOT SO: {name}, level {}, profile {}: {}",
                hole.run.0, hole.run.1, hole.how
            );
        }
    }
    println!("{}", kernel::named());
    println!("refused everywhere / let through somewhere / not applicable here, of attempts:");
    let mut classes = classes();
    classes.retain(|class| judged.iter().any(|one| one.attempt.class == *class));
    for class in classes.into_iter().map(Some).chain([None]) {
        for (user, level) in
            users(judged).into_iter().flat_map(|user| LEVELS.iter().map(move |level| (user, level)))
        {
            let mut count = Count::default();
            let meant = judged.iter().filter(|one| one.user.name == user);
            meant
                .filter(|one| class.is_none_or(|class| one.attempt.class == class))
                .for_each(|one| count.add(one, level, None));
            println!("  {:14} {user:7} {:9} {}", class.unwrap_or("all"), level.name, count.cell());
        }
    }
    println!("{broken} promises do not hold");
    broken
}

/// Whether a document is about the running kernel.
pub fn same_machine(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(TRIED_ON) && line.contains(&kernel::named()))
}

/// The names and sources in docs/internals/testing/escapes.md, in its order.
pub fn listed() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(escapes()).unwrap_or_default();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        let (name, rest) =
            row.split_once('`').filter(|(name, _)| LEVELS.iter().all(|level| level.name != *name))?;
        Some((name.to_owned(), rest.split('|').nth(2)?.trim().to_owned()))
    })
    .collect()
}

/// The files that are generated from the results, with their contents.
pub fn written(judged: &[Judged]) -> Vec<(PathBuf, String)> {
    let security = repository().join("docs/security.md");
    let old = std::fs::read_to_string(&security).unwrap_or_default();
    let (before, rest) = old.split_once(MARKS[0]).expect("docs/security.md has a place for the table");
    let (_, after) = rest.split_once(MARKS[1]).expect("docs/security.md has an end of that place");
    let new = format!("{before}{}{}{}{after}", MARKS[0], totals(judged), MARKS[1]);
    vec![(escapes(), whole(judged)), (security, new)]
}

fn escapes() -> PathBuf {
    repository().join("docs/internals/testing/escapes.md")
}

fn classes() -> Vec<&'static str> {
    let mut classes: Vec<&str> = attempts().iter().map(|attempt| attempt.class).collect();
    classes.dedup();
    classes
}

fn users(judged: &[Judged]) -> Vec<&'static str> {
    let mut seen = BTreeSet::new();
    judged.iter().map(|one| one.user.name).filter(|name| seen.insert(*name)).collect()
}

/// Refused, let through and not applicable, for each level and profile.
fn totals(judged: &[Judged]) -> String {
    let users = users(judged);
    let mut text = format!("{TRIED_ON}{}: {} attempts.\n\n", kernel::named(), attempts().len());
    let heads = users.iter().map(|user| format!(" as {user} |")).collect::<String>();
    let _ = writeln!(text, "| level | profile |{heads}\n|---|---|{}", "---|".repeat(users.len()));
    for (level, profile) in
        LEVELS.iter().flat_map(|level| PROFILES.iter().map(move |profile| (level, profile)))
    {
        if level.abi() < profile.needs {
            continue;
        }
        let _ = write!(text, "| `{}` | {} |", level.name, profile.shown());
        for user in &users {
            let mut count = Count::default();
            let about = |one: &&Judged| one.user.name == *user && profile.is_about(one.attempt);
            judged.iter().filter(about).for_each(|one| count.add(one, level, Some(profile.name)));
            let _ = write!(text, " {} |", count.cell());
        }
        text.push('\n');
    }
    text
}

fn whole(judged: &[Judged]) -> String {
    let mut text = INTRODUCTION.to_owned();
    let _ = write!(text, "\n## Totals\n\nRefused / let through / not applicable here.\n\n{}", totals(judged));
    let by_name: BTreeMap<&str, Vec<&Judged>> = judged.iter().fold(BTreeMap::new(), |mut all, one| {
        all.entry(one.attempt.name).or_insert_with(Vec::new).push(one);
        all
    });
    for class in classes() {
        let _ = write!(text, "\n## {}{}\n\n", class[..1].to_uppercase(), &class[1..]);
        let heads = LEVELS.iter().map(|level| format!(" `{}` |", level.name)).collect::<String>();
        let _ = writeln!(
            text,
            "| attempt | what is tried | source | works without |{heads}\n|---|---|---|---|{}",
            "---|".repeat(LEVELS.len())
        );
        for attempt in attempts().iter().filter(|attempt| attempt.class == class) {
            let Attempt { name, what, source, .. } = attempt;
            let both = by_name.get(name).map(Vec::as_slice).unwrap_or_default();
            let _ = write!(text, "| `{name}` | {what} | {source} | {} |", works(both));
            text.extend(LEVELS.iter().map(|level| format!(" {} |", came(both, level))));
            text.push('\n');
        }
    }
    text.push_str(&let_through());
    text
}

/// The users for whom it works without a sandbox, or why it works for nobody.
fn works(both: &[&Judged]) -> String {
    let able: Vec<&str> =
        both.iter().filter(|one| one.impossible.is_none()).map(|one| one.user.name).collect();
    if able.is_empty() {
        let why = both.first().and_then(|one| one.impossible.as_deref()).unwrap_or("not tried");
        return format!("not applicable here: {why}");
    }
    able.join(", ")
}

fn came(both: &[&Judged], level: &Level) -> String {
    let able: Vec<&&Judged> = both.iter().filter(|one| one.impossible.is_none()).collect();
    let mut through: Vec<String> = Vec::new();
    let mut tried = false;
    for profile in PROFILES {
        let results = able.iter().map(|one| (one.user.name, one.results.get(&(level.name, profile.name))));
        let passes: Vec<&str> = results
            .clone()
            .filter(|(_, got)| matches!(got, Some(Got::Through(_))))
            .map(|(user, _)| user)
            .collect();
        tried |= results.clone().any(|(_, got)| got.is_some());
        match passes.len() {
            0 => {}
            all if all == able.len() => through.push(profile.name.to_owned()),
            _ => through.push(format!("{} ({})", profile.name, passes.join(", "))),
        }
    }
    match (tried, through.is_empty()) {
        (false, _) => String::new(),
        (true, true) => "refused".into(),
        (true, false) => format!("**passes**: {}", through.join(", ")),
    }
}

/// The attempts that not every run refuses, by name, and why.
fn let_through() -> String {
    let mut text = "\n## Let through on purpose, or not promised\n".to_owned();
    for (key, reason) in table::reasons() {
        let meant = attempts().iter().filter(|attempt| attempt.settings("why").any(|why| why == key));
        let names: Vec<String> =
            meant.map(|attempt| format!("`{}`{}", attempt.name, whose(attempt))).collect();
        let item = wrapped(&format!("- {}: {reason}", names.join(", ")), "  ");
        let _ = write!(text, "\n{item}\n");
    }
    text
}

fn whose(attempt: &Attempt) -> String {
    if attempt.except.is_empty() { String::new() } else { format!(" ({})", attempt.except.join(", ")) }
}
