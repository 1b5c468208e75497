//! Fault injection: each system call by which a run starts is made to fail in turn, and the run has to take it well.
//!
//! A run is followed once to see which calls it makes (`follow`), in all of its processes, up to the command's own
//! exec. Then it is repeated, with one of them failing each time (`site`). What comes of it is compared with the
//! untouched run (`judge`): either the command does not start, one sentence says why, and nothing is left (`place`); or
//! it is confined just as it was, which it says itself (`subjects/facts.c`); or something says that it is confined
//! less. Nothing here knows the sequence of calls, so nothing here has to change with it.

mod document;
mod follow;
mod harmless;
mod judge;
mod place;
mod run;
mod scenario;
mod site;

use std::path::Path;

pub use judge::{Outcome, Verdict};
pub use run::{Done, Selection, run};

const USAGE: &str = "usage: faults [--scenario NAME] [--call NAME] [--every] [--jobs N] [--update] [-v]

  --scenario NAME  only this kind of run
  --user NAME      only root, or only nobody
  --call NAME      only this system call
  --only-start     not the calls that are made while the command runs
  --every          each call of a group of like ones, not only the first, the middle and the last
  --jobs N         runs at the same time (2)
  --update         writes the tables in docs/internals/testing/faults.md
  -v               also tells what came of each injection";

/// Runs the suite; returns the exit status.
pub fn main(words: &[String]) -> i32 {
    let Some((selection, update)) = options(words) else {
        eprintln!("{USAGE}");
        return 2;
    };
    crate::stage::in_memory();
    let done = run(&selection);
    let broken = document::report(&done);
    if update && selection.is_everything() {
        document::update(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/internals/testing/faults.md"),
            &done,
        );
    }
    i32::from(broken > 0)
}

fn options(words: &[String]) -> Option<(Selection, bool)> {
    let (mut selection, mut update) = (Selection::default(), false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--scenario" => selection.scenarios.push(words.next()?.clone()),
            "--user" => selection.user = Some(words.next()?.clone()),
            "--call" => selection.calls = vec![words.next()?.clone()],
            "--jobs" => selection.jobs = words.next()?.parse().ok()?,
            "--only-start" => selection.only_start = true,
            "--every" => selection.every = true,
            "--update" => update = true,
            "-v" => selection.verbose = true,
            _ => return None,
        }
    }
    Some((selection, update))
}
