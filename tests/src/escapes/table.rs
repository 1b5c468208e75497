//! The attempts: `escapes/attempts.tbl`, whose head explains its columns.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::runs::Level;

const TABLE: &str = include_str!("../../escapes/attempts.tbl");
/// The section with the reasons why something is let through.
const REASONS: &str = "why";

/// The evidence that an attempt succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The kernel's answer, as the attempt prints it, or one of the following.
    Answer,
    /// A change outside, a visit there, a secret in the output.
    Outside,
    /// A file called `mark` in the workspace.
    Mark,
    /// More output than the run may make.
    Output,
}

/// One attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its name, the same in the program that makes it.
    pub name: &'static str,
    /// Its class.
    pub class: &'static str,
    /// The evidence of success.
    pub evidence: Evidence,
    /// The Landlock ABI from which a promise says that it cannot succeed; 0: on every kernel; none: never.
    pub promised_from: Option<i64>,
    /// Whether the promise is about runs with namespaces of their own.
    needs_namespaces: bool,
    /// Profiles that let it through.
    pub except: Vec<&'static str>,
    /// Where it was published, or a description of the mechanism.
    pub source: &'static str,
    /// What is tried.
    pub what: &'static str,
    settings: Vec<&'static str>,
    /// What is done one after another, where one program does not do it.
    pub steps: Vec<Step>,
}

/// One of several steps of an attempt: a script.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// What the user has made beforehand, or does between runs, outside.
    User(&'static str),
    /// What a command does, in a run of its own.
    Run(&'static str),
    /// What the user does at the end, outside, and what would execute something planted.
    Look(&'static str),
}

impl Attempt {
    /// Whether it has a setting without a value.
    pub fn has(&self, setting: &str) -> bool {
        self.settings.contains(&setting)
    }

    /// The values of a setting, which are separated by commas.
    pub fn values(&self, setting: &str) -> Vec<&'static str> {
        self.settings(setting).flat_map(|values| values.split(',')).collect()
    }

    /// The values behind `SETTING=`, one for each time that it occurs.
    pub fn settings<'a>(&'a self, setting: &'a str) -> impl Iterator<Item = &'static str> + 'a {
        self.settings.iter().filter_map(move |word| word.strip_prefix(setting)?.strip_prefix('='))
    }

    /// Whether a promise says that it cannot succeed.
    pub fn promised(&self, profile: &str, level: &Level) -> bool {
        let is_promised = self.promised_from.is_some_and(|least| level.abi() >= least);
        is_promised && !self.except.contains(&profile) && (level.namespaces || !self.needs_namespaces)
    }
}

/// Every attempt, in the order of the table.
pub fn attempts() -> &'static [Attempt] {
    static ATTEMPTS: OnceLock<Vec<Attempt>> = OnceLock::new();
    ATTEMPTS.get_or_init(|| {
        let mut all: Vec<Attempt> = Vec::new();
        for (class, line) in sections().filter(|(class, _)| *class != REASONS) {
            match (line.strip_prefix("  "), all.last_mut()) {
                (Some(step), Some(attempt)) => attempt.steps.push(self::step(step)),
                _ => all.push(attempt((class, line))),
            }
        }
        all
    })
}

/// The reasons why something is let through, by the name that `why=` gives them.
pub fn reasons() -> BTreeMap<&'static str, &'static str> {
    let lines = sections().filter(|(class, _)| *class == REASONS);
    lines
        .map(|(_, line)| line.split_once('|').expect("a name and a reason"))
        .map(|(key, text)| (key.trim(), text.trim()))
        .collect()
}

/// The lines that are neither empty nor comments, with the section that each belongs to.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut class = "";
    TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).filter_map(move |line| {
        let heading = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        class = heading.unwrap_or(class);
        heading.is_none().then_some((class, line))
    })
}

fn step(line: &'static str) -> Step {
    match line.split_once(": ") {
        Some(("user", script)) => Step::User(script),
        Some(("run", script)) => Step::Run(script),
        Some(("look", script)) => Step::Look(script),
        _ => panic!("attempts.tbl: no such step: {line}"),
    }
}

fn attempt((class, line): (&'static str, &'static str)) -> Attempt {
    let columns: Vec<&str> = line.split('|').map(str::trim).collect();
    let [name, evidence, promise, except, settings, source, what] = columns[..] else {
        panic!("attempts.tbl: seven columns are needed: {line}");
    };
    Attempt {
        name,
        class,
        evidence: match evidence {
            "answer" => Evidence::Answer,
            "outside" => Evidence::Outside,
            "mark" => Evidence::Mark,
            "output" => Evidence::Output,
            other => panic!("attempts.tbl: no such evidence: {other}"),
        },
        promised_from: match promise {
            "filter" => Some(0),
            "paths" | "namespaces" => Some(1),
            "truncate" => Some(3),
            "devices" => Some(5),
            "signals" => Some(6),
            "never" => None,
            other => panic!("attempts.tbl: no such promise: {other}"),
        },
        needs_namespaces: promise == "namespaces",
        steps: Vec::new(),
        except: except.split_whitespace().collect(),
        source,
        what,
        settings: settings.split_whitespace().collect(),
    }
}
