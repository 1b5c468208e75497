//! A selection of `make test-faults`: the calls that confine a command are made to fail, one at a time.

use sbx_tests::faults::{Selection, run};

/// Without any one of these, less would hold than was promised.
const CONFINING: [&str; 22] = [
    "capget",
    "capset",
    "clone",
    "close_range",
    "execve",
    "fchdir",
    "keyctl",
    "landlock_add_rule",
    "landlock_create_ruleset",
    "landlock_restrict_self",
    "memfd_create",
    "mkdir",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "pidfd_open",
    "pipe2",
    "prctl",
    "prlimit64",
    "seccomp",
    "setsid",
];

#[test]
fn a_confining_call_that_fails_ends_the_run_or_is_reported() {
    let scenarios = ["minimal", "workspace", "custom, with the library", "the library alone"];
    let selection = Selection {
        scenarios: scenarios.map(str::to_owned).to_vec(),
        calls: CONFINING.map(str::to_owned).to_vec(),
        one_error: true,
        only_start: true,
        ..Selection::default()
    };
    let done = run(&selection);
    let all: Vec<_> = done.iter().flat_map(|one| &one.verdicts).collect();
    let broken: Vec<String> =
        all.iter().filter(|verdict| verdict.is_broken()).map(ToString::to_string).collect();
    assert!(broken.is_empty(), "taken badly:\n{}", broken.join("\n"));
    assert!(all.len() > 100, "only {} calls were made to fail", all.len());
}
