//! `sbx test` and `sbx run --verify`: that promises hold, and that each one that is broken is found out.

use sbx_tests::{Cmd, User, World, as_users, kernel, stage};
use serde_json::Value;
use std::time::{Duration, Instant};

const PROFILES: [&str; 6] = ["minimal", "network", "write", "no-exec", "read-only", "workspace"];
/// What no kernel need have; the rest is tried everywhere as root.
const MAY_LACK: [&str; 8] = ["alg", "vsock", "module", "x32", "narrow", "perf", "io-uring", "inet6"];
/// What only root could do anyway.
const ROOTS: [&str; 6] = ["read-shadow", "device", "raw", "capabilities", "clock", "bpf"];

fn tested(cmd: Cmd, code: i32) -> Vec<(String, String, String)> {
    let out = cmd.run().exited(code);
    let value: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out}"));
    assert_eq!(value["version"], 1);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let profiles = value["profiles"].as_array().unwrap().iter();
    let rows = profiles.flat_map(|profile| {
        let rows = profile["rows"].as_array().unwrap().iter();
        rows.map(move |row| (text(&profile["profile"]), text(&row["name"]), text(&row["result"])))
    });
    rows.collect()
}

fn with<'r>(rows: &'r [(String, String, String)], result: &str) -> Vec<&'r str> {
    rows.iter().filter(|row| row.2 == result).map(|row| row.1.as_str()).collect()
}

#[test]
fn every_profile_keeps_its_promises() {
    as_users(|user| {
        let world = World::new(user);
        let rows = tested(world.sbx(["test", "--json"]), 0);
        // About a dozen rows are about path rules.
        let least = if kernel::landlock() >= 1 { 30 } else { 20 };
        for profile in PROFILES {
            let own: Vec<_> = rows.iter().filter(|row| row.0 == profile).cloned().collect();
            assert!(with(&own, "holds").len() > least, "{profile}: {own:?}");
            for name in with(&own, "untried") {
                let excused = MAY_LACK.contains(&name) || (!user.is_root() && ROOTS.contains(&name));
                // A user namespace or a set-id bit may be refused by the system's own settings.
                assert!(excused || ["namespaces", "userfaultfd"].contains(&name), "{profile}: {name}");
            }
        }
        // Nothing of the tests is left, and the tester's own files are not involved.
        assert_eq!(world.read("../.netrc").unwrap(), "planted-secret\n");
    });
}

#[test]
fn a_profile_is_tested_in_two_seconds() {
    as_users(|user| {
        let world = World::new(user);
        let start = Instant::now();
        tested(world.sbx(["test", "--json", "-p", "workspace"]), 0);
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    });
}

#[test]
fn a_promise_that_a_profile_breaks_is_the_row_that_fails() {
    let calls = |list: &str| format!(r#""syscalls": {{ "allow": [{list}] }}"#);
    let cases = [
        ("minimal", calls(r#""keyctl", "add_key""#), &["keyring"][..]),
        ("minimal", calls(r#""userfaultfd""#), &["userfaultfd"]),
        ("minimal", calls(r#""fork", "vfork", "clone[no-namespace]""#), &["processes"]),
        ("minimal", calls(r#""execve""#), &["exec"]),
        ("minimal", calls(r#""ioctl""#), &["terminal"]),
        ("minimal", calls(r#""prlimit64""#), &["other-processes"]),
        ("minimal", calls(r#""socket""#), &["inet6", "netlink"]),
        // musl opens files by the older call.
        ("write", calls(r#""open", "openat""#), &["set-id"]),
        ("workspace", calls(r#""clone", "unshare""#), &["namespaces"]),
        ("workspace", r#""network": { "mode": "host" }"#.to_owned(), &["tcp", "udp", "inet6"]),
        ("workspace", r#""paths": { "read": ["${HOME}"] }"#.to_owned(), &["read-secret"]),
    ];
    as_users(|user| {
        let world = World::new(user);
        for (base, more, expected) in &cases {
            if expected == &["read-secret"] && !kernel::promises(1) {
                continue;
            }
            world.write("loose.json", format!(r#"{{ "description": "x", "extends": "{base}", {more} }}"#));
            let test =
                |against: &str| world.sbx(["test", "--json", "-p", "./loose.json", "--against", against]);
            let rows = tested(test(base), 1);
            for name in *expected {
                assert!(with(&rows, "broken").contains(name), "{base}, {more}: {rows:?}");
            }
            // By its own word it promises less.
            tested(test("./loose.json"), 0);
        }
    });
}

/// Calls that a filter answers as if they had succeeded, so that a layer is lost without `sbx` being told.
const LOST: [(libc::c_long, &[&str]); 2] = [
    (libc::SYS_landlock_restrict_self, &["read-secret", "write-outside", "remove", "hard-link"]),
    (libc::SYS_prlimit64, &["core"]),
];

#[test]
fn a_layer_that_is_lost_is_found_out() {
    as_users(|user| {
        let world = World::new(user);
        for (call, expected) in LOST {
            if call == libc::SYS_landlock_restrict_self && !kernel::promises(1) {
                continue;
            }
            let rows = tested(world.sbx(["test", "--json", "-p", "workspace"]).answering(&[(call, 0)]), 1);
            for name in expected {
                assert!(with(&rows, "broken").contains(name), "{call}: {rows:?}");
            }
        }
    });
}

#[test]
fn verify_runs_the_command_or_says_which_promise_does_not_hold() {
    as_users(|user| {
        let world = World::new(user);
        for profile in PROFILES {
            let words = ["run", "--verify", "-p", profile, "--", "sh", "-c", "exit 7"];
            world.sbx(words).run().silent().exited(7);
        }
        for flags in [&["--exec"][..], &["--net", "host"], &["--rw", "/tmp"], &["--on-violation", "kill"]] {
            if flags == ["--rw", "/tmp"] && !kernel::promises(1) {
                continue;
            }
            let words = [&["run", "--verify"], flags, &["--", "sh", "-c", ": >made"]].concat();
            world.sbx(words).run().success();
            std::fs::remove_file(world.path("made")).unwrap();
        }
        if !kernel::promises(1) {
            return;
        }
        let lost =
            |words: &[&str]| world.sbx(words).answering(&[(libc::SYS_landlock_restrict_self, 0)]).run();
        lost(&["run", "--verify", "--", "touch", "made"]).refused(125, &["--verify", "does not hold"]);
        assert!(!world.exists("made"));
        lost(&["run", "--", "touch", "made"]).success();
    });
}

#[test]
fn without_landlock_path_promises_are_not_made() {
    as_users(|user| {
        let world = World::new(user);
        let cmd =
            world.sbx(["test", "--json"]).answering(&[(libc::SYS_landlock_create_ruleset, libc::ENOSYS)]);
        let out = tested(cmd, 0);
        assert!(with(&out, "not-promised").contains(&"read-secret"));
        assert!(!with(&out, "holds").contains(&"read-secret"));
    });
}

#[test]
fn a_container_and_an_sbx_around_are_no_hindrance() {
    as_users(|user| {
        let world = World::new(user);
        tested(world.sbx(["test", "--json"]).docker(), 0);
        let sbx = stage::sbx().to_str().unwrap();
        let rows = tested(world.run("workspace", [sbx, "test", "--json", "-p", "read-only"]), 0);
        let expected = if kernel::promises(1) { "holds" } else { "not-promised" };
        assert!(with(&rows, expected).contains(&"read-secret"), "{rows:?}");
    });
}

#[test]
fn what_cannot_be_tested_is_refused_in_one_sentence() {
    as_users(|user| {
        let world = World::new(user);
        world.sbx(["test", "-p", "nope"]).run().refused(125, &["there is no profile of that name"]);
        world.sbx(["test", "-p", "custom"]).run().refused(125, &["write to its standard output"]);
        let text = r#"{ "description": "x", "extends": "minimal", "syscalls": { "default": "log" } }"#;
        world.write("log.json", text);
        world.sbx(["test", "-p", "./log.json"]).run().refused(125, &["lets every call through"]);
        world.sbx(["run", "--verify", "--log-violations", "--", "true"]).run().refused(125, &["contradict"]);
        world.sbx(["canary", "x"]).run().refused(125, &["sbx test"]);
    });
}

#[test]
fn an_unconfined_profile_promises_nothing_by_its_own_choice() {
    let world = World::new(&User::ordinary());
    let out = world.sbx(["test", "-p", "unrestricted"]).run().success().out();
    assert!(out.contains("the profile allows it"), "{out}");
    assert!(!kernel::promises(1) || !out.contains("no Landlock"), "{out}");
}
