//! The self-test without a sandbox: every row has to find its promise broken.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use sbx::selftest::{Verdict, hosts, test_without_sandbox};
use std::path::Path;

#[test]
fn without_a_sandbox_no_promise_holds() {
    let rows = test_without_sandbox(Path::new(env!("CARGO_BIN_EXE_sbx"))).unwrap();
    let mut broken = Vec::new();
    for (row, verdict) in &rows {
        match verdict {
            Verdict::Broken(_) => broken.push(row.name),
            // What this machine refuses to everybody proves nothing.
            Verdict::Untried(_) => {}
            other => panic!("{}: {other:?}", row.name),
        }
    }
    assert!(broken.len() > 18, "only these of {} rows could be broken: {broken:?}", rows.len());
    // No profile can allow these, so this is the only test that breaks them.
    for name in ["no-new-privs", "filter", "core", "descriptors", "environment", "scratch", "tree", "signal"]
    {
        assert!(broken.contains(&name), "{name}: {broken:?}");
    }
}

/// In a run without rules every host is reached, and so is the one that a rule would name.
#[test]
fn without_a_sandbox_every_host_is_reached() {
    let rows = match hosts::test_without_sandbox(Path::new(env!("CARGO_BIN_EXE_sbx"))) {
        Ok(rows) => rows,
        Err(refusal) => {
            assert!(std::env::var_os("SBX_TEST_NO_SKIP").is_none(), "{refusal}");
            return eprintln!("skipped: {refusal}");
        }
    };
    for (row, verdict) in &rows {
        let expected =
            if row.name == "host-listed" { *verdict == Verdict::Holds } else { is_broken(verdict) };
        assert!(expected, "{}: {verdict:?}", row.name);
    }
}

fn is_broken(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Broken(_))
}
