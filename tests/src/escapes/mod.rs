//! The escape suite: published ways out of a sandbox, each tried without `sbx`, where it has to work, and then inside.
//!
//! `escapes/attempts.tbl` lists the attempts, `subjects/escape/` makes them, and
//! docs/internals/testing/escapes.md has the results, which this module writes. An attempt that succeeds
//! although docs/security.md promises that it cannot is a failure.

mod across;
mod document;
mod judge;
mod place;
mod runs;
mod table;
mod trial;
mod witness;

use std::path::{Path, PathBuf};

pub use document::{listed, written};
pub use table::{Attempt, attempts};
pub use trial::names;

use crate::stage;
use judge::{Judged, judge};

/// Runs the suite. `--update` writes the tables; `--profile=FILE` tries that profile and no other, at the levels that
/// have path rules; other words are names of attempts or classes, for trying only those. Returns the exit status.
pub fn main(words: &[String]) -> i32 {
    let update = words.iter().any(|word| word == "--update");
    let given = words.iter().find_map(|word| word.strip_prefix("--profile="));
    if let Some(file) = given {
        runs::give(file);
    }
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    let chosen = attempts().iter().filter(|attempt| {
        wanted.is_empty() || wanted.iter().any(|word| **word == attempt.name || **word == attempt.class)
    });
    stage::in_memory();
    let judged: Vec<Judged> = judge(&chosen.collect::<Vec<_>>());
    let is_part = !wanted.is_empty() || given.is_some();
    let broken = document::report(&judged, is_part);
    if is_part {
        return i32::from(broken > 0);
    }
    written(&judged).iter().for_each(|(path, text)| bring_up_to_date(path, text, update));
    i32::from(broken > 0)
}

/// Writes a file, or prints how it differs. A difference is no failure: it can only concern what is not promised, where
/// a race may end one way or the other. Another test makes sure that the page has all attempts.
fn bring_up_to_date(path: &Path, text: &str, update: bool) {
    let there = std::fs::read_to_string(path).unwrap_or_default();
    let name = path.strip_prefix(repository()).unwrap_or(path).display();
    if there == text {
        return;
    }
    if update {
        std::fs::write(path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        println!("{name} was written anew");
        return;
    }
    if !document::same_machine(&there) {
        println!("{name} is about another kernel: not compared");
        return;
    }
    println!("{name} is not what this run found; 'make test-escapes UPDATE=1' writes it");
    for line in text.lines().filter(|line| !there.lines().any(|other| other == *line)).take(20) {
        println!("  now: {line}");
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
