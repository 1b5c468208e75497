//! The table of the escape suite, which `make test-escapes` runs, and the page that is generated from it.

use std::collections::BTreeSet;

use sbx_tests::escapes::{attempts, listed, names};

/// The least number of attempts.
const ENOUGH: usize = 120;

#[test]
fn the_table_and_the_program_have_the_same_attempts_each_once() {
    let table: Vec<&str> = attempts().iter().map(|attempt| attempt.name).collect();
    let unique: BTreeSet<&str> = table.iter().copied().collect();
    assert_eq!(unique.len(), table.len());
    assert!(table.len() >= ENOUGH, "{}", table.len());
    let program = names();
    let program: BTreeSet<&str> = program.iter().map(String::as_str).collect();
    let by_program = attempts().iter().filter(|attempt| attempt.steps.is_empty());
    let unique: BTreeSet<&str> = by_program.map(|attempt| attempt.name).collect();
    let odd: Vec<&&str> = unique.symmetric_difference(&program).collect();
    assert!(odd.is_empty(), "only in one of the table and the program: {odd:?}");
}

#[test]
fn each_success_has_a_reason_and_each_attempt_a_source() {
    for attempt in attempts() {
        assert!(!attempt.source.is_empty() && !attempt.what.is_empty(), "{}", attempt.name);
        let open = attempt.promised_from.is_none() || !attempt.except.is_empty();
        assert_eq!(open, attempt.settings("why").next().is_some(), "{}", attempt.name);
    }
}

#[test]
fn the_page_lists_the_attempts_of_the_table() {
    let table: Vec<(String, String)> =
        attempts().iter().map(|attempt| (attempt.name.to_owned(), attempt.source.to_owned())).collect();
    assert_eq!(
        listed(),
        table,
        "docs/internals/testing/escapes.md is older than the table: make test-escapes UPDATE=1"
    );
}
