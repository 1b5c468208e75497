//! The canaries against nothing: whatever a row could find out, it has to find out here.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use sbx::canary::{Verdict, test_without_sandbox};
use std::path::Path;

#[test]
fn without_a_sandbox_no_promise_holds() {
    let rows = test_without_sandbox(Path::new(env!("CARGO_BIN_EXE_sbx"))).unwrap();
    let mut broken = Vec::new();
    for (row, verdict) in &rows {
        match verdict {
            Verdict::Broken(_) => broken.push(row.name),
            // What this machine refuses to everybody proves nothing either way.
            Verdict::Untried(_) => {}
            other => panic!("{}: {other:?}", row.name),
        }
    }
    assert!(broken.len() > 30, "only these of {} rows could be broken: {broken:?}", rows.len());
    // What no profile can allow is broken nowhere else.
    for name in ["no-new-privs", "filter", "core", "descriptors", "environment", "scratch", "tree", "signal"]
    {
        assert!(broken.contains(&name), "{name}: {broken:?}");
    }
}
