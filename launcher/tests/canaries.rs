//! The canaries against nothing: whatever a row could find out, it has to find out here.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use sbx::canary::{Verdict, test_without_sandbox};
use std::path::Path;

#[test]
fn without_a_sandbox_no_promise_holds() {
    let rows = test_without_sandbox(Path::new(env!("CARGO_BIN_EXE_sbx"))).unwrap();
    let mut broken = 0;
    for (row, verdict) in &rows {
        match verdict {
            Verdict::Broken(_) => broken += 1,
            // What this machine refuses to everybody proves nothing either way.
            Verdict::Untried(_) => {}
            other => panic!("{}: {other:?}", row.name),
        }
    }
    assert!(broken > 30, "only {broken} of {} rows could be broken", rows.len());
}
