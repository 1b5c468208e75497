//! The suite's output, and the generated tables in docs/internals/testing/faults.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use super::judge::{Outcome, Verdict};
use super::run::Done;
use super::{harmless, site};
use crate::kernel;

/// Everything after this line is generated.
const MARK: &str = "<!-- from here on made by make test-faults UPDATE=1 -->\n";

/// The number of each outcome.
#[derive(Default)]
struct Count {
    injections: usize,
    refused: usize,
    same: usize,
    said: usize,
    tighter: usize,
    degraded: usize,
    ended: usize,
    not_made: usize,
    broken: usize,
}

impl Count {
    fn add(&mut self, outcome: &Outcome) {
        self.injections += 1;
        *match outcome {
            Outcome::Refused(..) => &mut self.refused,
            Outcome::Same => &mut self.same,
            Outcome::Said(_) => &mut self.said,
            Outcome::Tighter => &mut self.tighter,
            Outcome::Degraded(_) => &mut self.degraded,
            Outcome::Ended(..) => &mut self.ended,
            Outcome::NotMade => &mut self.not_made,
            Outcome::Broken(_) => &mut self.broken,
        } += 1;
    }

    fn of<'a>(done: impl Iterator<Item = &'a Done>, late: bool) -> Count {
        let mut count = Count::default();
        let verdicts = done.flat_map(|one| &one.verdicts).filter(|verdict| verdict.late == late);
        verdicts.for_each(|verdict| count.add(&verdict.outcome));
        count
    }

    fn row(&self, name: &str, calls: usize, late: bool) -> String {
        let Count { injections, refused, same, said, tighter, degraded, ended, not_made, broken } = self;
        // Nothing is refused any more once the command runs.
        let first = if late { ended } else { refused };
        format!(
            "| {name} | {calls} | {injections} | {first} | {same} | {said} | {tighter} | {degraded} | \
             {not_made} | {broken} |\n"
        )
    }
}

/// Prints the outcomes; returns how many are bad.
pub fn report(done: &[Done]) -> usize {
    [false, true].iter().for_each(|late| println!("{}", totals(done, *late)));
    let all = done.iter().flat_map(|one| &one.verdicts);
    let broken = all.filter(|verdict| verdict.is_broken()).count();
    println!("{broken} calls whose failure was taken badly");
    broken
}

fn totals(done: &[Done], late: bool) -> String {
    let first = if late { "ended, and said why" } else { "refused" };
    let mut text = format!(
        "| run | calls | made to fail | {first} | went on as ever | the same, with a word | allowed less | \
         confined less, and said so | not made again | taken badly |\n|---|---|---|---|---|---|---|---|---|---|\n"
    );
    let mut seen = BTreeSet::new();
    let calls = |one: &Done| one.calls[usize::from(late)];
    for scenario in done.iter().map(|one| one.scenario).filter(|name| seen.insert(*name)) {
        let those = || done.iter().filter(|one| one.scenario == scenario);
        text += &Count::of(those(), late).row(scenario, those().map(calls).max().unwrap_or(0), late);
    }
    text + &Count::of(done.iter(), late).row("**all**", done.iter().map(calls).sum(), late)
}

/// Writes the tables.
pub fn update(path: &Path, done: &[Done]) {
    let old = std::fs::read_to_string(path).expect("docs/internals/testing/faults.md");
    let (before, _) =
        old.split_once(MARK).expect("docs/internals/testing/faults.md has a place for the tables");
    let mut text = format!("{before}{MARK}\n## Until the command is executed\n\n");
    let _ = writeln!(text, "Tried on {}, as {}.\n\n{}", kernel::named(), users(done), totals(done, false));
    if done.iter().flat_map(|one| &one.verdicts).any(|verdict| verdict.late) {
        let _ = writeln!(text, "## While it runs\n\n{}", totals(done, true));
    }
    text.pop();
    text += "\n## What a run says when it goes on with less, or goes on otherwise\n\n";
    text += "| it says | when this fails |\n|---|---|\n";
    for (line, calls) in said(done) {
        let calls: Vec<String> = calls.iter().map(|call| format!("`{call}`")).collect();
        let _ = writeln!(text, "| {line} | {} |", calls.join(", "));
    }
    text += "\n## Calls that may fail without a word\n\n| call | why |\n|---|---|\n";
    for (call, why) in harmless::all() {
        let rest = if call.contains('(') && !call.contains(')') { ", …)" } else { "" };
        let _ = writeln!(text, "| `{call}{rest}` | {why} |");
    }
    text += "\n## Calls that are not made to fail\n\n| call | why |\n|---|---|\n";
    for (calls, why) in site::excluded() {
        let _ = writeln!(text, "| {calls} | {why} |");
    }
    std::fs::write(path, text).expect("docs/internals/testing/faults.md can be written");
}

fn users(done: &[Done]) -> String {
    let users: BTreeSet<&str> =
        done.iter().flat_map(|one| &one.verdicts).map(|verdict| verdict.user).collect();
    users.into_iter().collect::<Vec<_>>().join(" and ")
}

/// The messages of runs that went on, each with the calls.
fn said(done: &[Done]) -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut said: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    let start = done.iter().flat_map(|one| &one.verdicts).filter(|verdict| !verdict.late);
    for Verdict { outcome, call, .. } in start {
        let (Outcome::Said(lines) | Outcome::Degraded(lines)) = outcome else { continue };
        for line in lines.iter().filter(|line| !line.starts_with("sbx: blocked ")) {
            said.entry(general(line)).or_default().insert(call);
        }
        if lines.is_empty() {
            said.entry("(in the report)".into()).or_default().insert(call);
        }
    }
    said
}

/// Removes the cause, and the suite's own paths.
fn general(line: &str) -> String {
    let line =
        line.replace("ROOT/home/project", "WORKSPACE").replace("ROOT/home", "HOME").replace('|', "\\|");
    let marks = ["no namespaces: ", "beyond this run: ", "cannot be read: ", "be reported: "];
    let cause = marks.iter().filter_map(|mark| Some(line.find(mark)? + mark.len())).min();
    cause.map_or_else(|| line.clone(), |end| format!("{}…", &line[..end]))
}
