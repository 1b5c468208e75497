//! The self-test, `sbx test` and `sbx run --verify`: promises hold, and every broken one is found.

use sbx_tests::{Cmd, User, World, as_users, in_worlds, kernel, promise, stage};
use serde_json::Value;
use std::time::{Duration, Instant};

const PROFILES: [&str; 7] = ["custom", "minimal", "network", "write", "no-exec", "read-only", "workspace"];
/// Rows that only root can break.
const ROOTS: [&str; 1] = ["capabilities"];
/// Rows that the system's own settings may refuse to everybody.
const SETTINGS: [&str; 1] = ["namespaces"];

fn tested(cmd: Cmd, code: i32) -> Vec<(String, String, String)> {
    rows_of("profiles", cmd, code)
}

/// The rows of an entry: of profiles as they are, or of `hosts`.
fn rows_of(entry: &str, cmd: Cmd, code: i32) -> Vec<(String, String, String)> {
    let out = cmd.run().exited(code);
    let value: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out}"));
    assert_eq!(value["version"], 1);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let profiles = value[entry].as_array().unwrap().iter();
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
        // Five rows need path rules.
        let least = if kernel::landlock() >= 1 { 15 } else { 9 };
        for profile in PROFILES {
            let own: Vec<_> = rows.iter().filter(|row| row.0 == profile).cloned().collect();
            assert!(with(&own, "holds").len() > least, "{profile}: {own:?}");
            for name in with(&own, "untried") {
                assert!(may_be_untried(name, user), "{profile}: {name}");
            }
        }
        // The self-test leaves nothing behind, and does not touch the tester's own files.
        assert_eq!(world.read("../.netrc").unwrap(), "planted-secret\n");
    });
}

/// The self-test's own machine and outside are namespaces.
#[test]
fn what_rules_about_hosts_promise_is_seen_from_outside() {
    in_worlds(|world| {
        let rows = rows_of("hosts", world.sbx(["test", "--json"]), 0);
        assert_eq!(with(&rows, "holds").len(), HOST_ROWS, "{rows:?}");
        // A profile is tried with them if it names hosts.
        let words = ["test", "--json", "-p", "workspace"];
        assert_eq!(rows_of("hosts", world.sbx(words), 0), []);
        world.write("base.json", LISTS_HOSTS);
        let rows = rows_of("hosts", world.sbx(["test", "--json", "-p", "./base.json"]), 0);
        assert_eq!(with(&rows, "holds").len(), HOST_ROWS, "{rows:?}");
    });
}

const HOST_ROWS: usize = 8;
const LISTS_HOSTS: &str = r#"{"description": "x", "extends": "workspace",
    "network": {"mode": "allow", "connect": ["example.org"]}}"#;

#[test]
fn each_promise_about_hosts_that_a_rule_breaks_fails_its_own_row() {
    let all = ["unlisted", "address", "question", "rebinding", "metadata", "said", "datagram"];
    let more = |rules: &str| format!(r#"{{"extends": "./base.json", "network": {{"connect": [{rules}]}}}}"#);
    let opened = r#"{"extends": "workspace", "network": {"mode": "host"}}"#.to_string();
    let cases = [
        (more(r#""unlisted.test:80""#), &["unlisted", "question"][..]),
        (more(r#""203.0.113.12:80""#), &["address"]),
        (more(r#""10.0.0.0/8:80""#), &["rebinding"]),
        (more(r#""169.254.0.0/16:80""#), &["metadata"]),
        (more(r#""listed.test:443/tcp""#), &["said"]),
        (opened, &all),
    ];
    in_worlds(|world| {
        world.write("base.json", LISTS_HOSTS);
        for (text, broken) in &cases {
            world.write("loose.json", text);
            let words = ["test", "--json", "-p", "./loose.json", "--against", "./base.json"];
            let rows = rows_of("hosts", world.sbx(words), 1);
            let expected: Vec<String> = broken.iter().map(|name| format!("host-{name}")).collect();
            assert_eq!(with(&rows, "broken"), expected, "{text}: {rows:?}");
        }
    });
}

/// Where no namespace can be made, the rows say so, and nothing is broken.
#[test]
fn without_namespaces_promises_about_hosts_are_not_tried() {
    in_worlds(|world| {
        let refused = [(libc::SYS_unshare, libc::EPERM)];
        let rows = rows_of("hosts", world.sbx(["test", "--json"]).answering(&refused), 0);
        assert_eq!(with(&rows, "untried").len(), HOST_ROWS, "{rows:?}");
        let out = world.sbx(["test", "-v"]).answering(&refused).run().success().out();
        assert!(
            out.contains("untried") && out.contains("no outside can be made here to look from: unshare"),
            "{out}"
        );
    });
}

#[test]
fn a_profile_is_tested_in_two_seconds() {
    in_worlds(|world| {
        let start = Instant::now();
        tested(world.sbx(["test", "--json", "-p", "workspace"]), 0);
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    });
}

/// Profiles that each allow one thing more than another profile, and the rows of that one which this breaks.
const LOOSENED: &str = include_str!("../../loosened.json");

/// Whether it is expected that a row proves nothing here.
fn may_be_untried(name: &str, user: &User) -> bool {
    (!user.is_root() && ROOTS.contains(&name)) || SETTINGS.contains(&name)
}

#[test]
fn each_promise_that_a_profile_breaks_fails_its_own_row() {
    let mut cases: Vec<Value> = serde_json::from_str(LOOSENED).unwrap();
    // Without path rules every path is open, so that these cases show nothing.
    let by_path =
        |case: &Value| !case["more"]["paths"].is_null() || !case["more"]["network"]["unix"].is_null();
    let has_paths = kernel::promises(kernel::PATHS);
    cases.retain(|case| has_paths || !by_path(case));
    as_users(|user| {
        let world = World::new(user);
        let mut own = vec!["test".to_owned(), "--json".to_owned()];
        for (number, case) in cases.iter().enumerate() {
            let mut profile = case["more"].clone();
            profile["description"] = "x".into();
            profile["extends"] = case["base"].clone();
            world.write(format!("{number}.json"), profile.to_string());
            own.extend(["-p".to_owned(), format!("./{number}.json")]);
        }
        // Tested against itself, each loosened profile promises less, and holds.
        tested(world.sbx(&own), 0);
        for base in ["minimal", "workspace"] {
            let of_base = |(_, case): &(usize, &Value)| case["base"] == base;
            let numbered: Vec<_> = cases.iter().enumerate().filter(of_base).collect();
            let files = numbered.iter().flat_map(|(number, _)| ["-p".to_owned(), format!("./{number}.json")]);
            let words = ["test", "--json", "--against", base].map(str::to_owned);
            if numbered.is_empty() {
                continue;
            }
            let rows = tested(world.sbx(words.into_iter().chain(files)), 1);
            for (number, case) in numbered {
                let file = format!("./{number}.json");
                let of_case: Vec<_> = rows.iter().filter(|row| row.0 == file).cloned().collect();
                breaks(case, &of_case, user);
            }
        }
    });
}

/// Requires that the rows which a loosened profile should break are broken, and no others.
fn breaks(case: &Value, rows: &[(String, String, String)], user: &User) {
    let named: Vec<_> = case["rows"].as_array().unwrap().iter().map(|row| row.as_str().unwrap()).collect();
    let result = |name: &str| rows.iter().find(|row| row.1 == name).unwrap().2.as_str();
    for name in &named {
        let expected = match result(name) {
            "broken" => true,
            "untried" => may_be_untried(name, user),
            "not-promised" => kernel::landlock() < 6,
            _ => false,
        };
        assert!(expected, "{name} is {}: {case}", result(name));
    }
    let broken = with(rows, "broken");
    // Before ABI 6, a command that connects to Unix sockets connects to abstract ones too.
    let beside = |name: &str| name == "abstract" && named.contains(&"unix") && kernel::landlock() < 6;
    assert!(broken.iter().all(|name| named.contains(name) || beside(name)), "{broken:?}: {case}");
}

/// A filter answers these calls as if they had succeeded, so that a layer is missing without `sbx` being told.
const LOST: [(libc::c_long, &[&str]); 2] =
    [(libc::SYS_landlock_restrict_self, &["read-secret", "write-outside"]), (libc::SYS_prlimit64, &["core"])];

#[test]
fn a_missing_layer_is_found() {
    in_worlds(|world| {
        for (call, expected) in LOST {
            if call == libc::SYS_landlock_restrict_self && !kernel::promises(kernel::PATHS) {
                continue;
            }
            // Without namespaces: they would hide what Landlock refuses.
            world.write("alone.json", r#"{"extends": "workspace", "namespaces": "none"}"#);
            let rows = tested(world.sbx(["test", "--json", "-p", "./alone.json"]).answering(&[(call, 0)]), 1);
            for name in expected {
                assert!(with(&rows, "broken").contains(name), "{call}: {rows:?}");
            }
        }
    });
}

#[test]
fn what_the_self_test_needs_is_added_and_reported() {
    in_worlds(|world| {
        let text =
            r#"{ "description": "x", "extends": "custom", "syscalls": { "allow": ["write", "getpid"] } }"#;
        world.write("short.json", text);
        let test = |profile: &str| world.sbx(["test", "-p", profile]).run().success().out();
        assert!(
            test("custom")
                .contains("only the self-test was allowed exit_group, getpid, getppid, mmap[no-jit], ")
        );
        assert!(
            test("./short.json")
                .contains("only the self-test was allowed exit_group, getppid, mmap[no-jit], read,")
        );
        assert!(!test("minimal").contains("only the self-test"));
    });
}

#[test]
fn rows_of_several_profiles_are_counted_and_broken_ones_listed() {
    let world = World::new(&User::ordinary());
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let short = lines(world.sbx(["test"]).run().success().out());
    assert!(short.len() < 20, "{short:?}");
    assert!(
        PROFILES.iter().all(|name| short.iter().any(|line| line.starts_with(&format!("profile '{name}': "))))
    );
    let whole = lines(world.sbx(["test", "-v"]).run().success().out());
    assert!(whole.len() > PROFILES.len() * 20, "{}", whole.len());
    let text = r#"{ "description": "x", "extends": "minimal", "syscalls": { "allow": ["execve"] } }"#;
    world.write("loose.json", text);
    let words = ["test", "-p", "minimal", "-p", "./loose.json", "--against", "minimal"];
    let broken = lines(world.sbx(words).run().exited(1).out());
    assert!(broken.iter().any(|line| line.starts_with("  exec ") && line.contains(" broken ")), "{broken:?}");
    assert!(!broken.iter().any(|line| line.contains(" holds  ")), "{broken:?}");
}

#[test]
fn verify_runs_the_command_or_names_the_broken_promise() {
    in_worlds(|world| {
        for profile in PROFILES.into_iter().filter(|profile| *profile != "custom") {
            let words = ["run", "--verify", "-p", profile, "--", "sh", "-c", "exit 7"];
            world.sbx(words).run().silent().exited(7);
        }
        // The self-test is allowed what it needs to report; the command is not.
        for (list, printed) in [("exit_group:@default", ""), ("exit_group:@default:write", "said\n")] {
            let words = ["run", "-q", "--verify", "-p", "custom", "--allow-calls", list, "--"];
            world.sbx(words).args(["/bin/echo", "said"]).run().prints(printed);
        }
        for flags in [&["--exec"][..], &["--net", "host"], &["--rw", "/tmp"], &["--on-violation", "kill"]] {
            if flags == ["--rw", "/tmp"] && !kernel::promises(kernel::PATHS) {
                continue;
            }
            let words = [&["run", "--verify"], flags, &["--", "sh", "-c", ": >made"]].concat();
            world.sbx(words).run().success();
            std::fs::remove_file(world.path("made")).unwrap();
        }
        promise!(kernel::PATHS);
        let lost =
            |words: &[&str]| world.sbx(words).answering(&[(libc::SYS_landlock_restrict_self, 0)]).run();
        let alone = ["--namespaces", "none", "--", "touch", "made"];
        lost(&[&["run", "--verify"], &alone[..]].concat()).refused(125, &["--verify", "does not hold"]);
        assert!(!world.exists("made"));
        lost(&[&["run"], &alone[..]].concat()).success();
    });
}

#[test]
fn without_landlock_path_promises_are_not_made() {
    in_worlds(|world| {
        let cmd =
            world.sbx(["test", "--json"]).answering(&[(libc::SYS_landlock_create_ruleset, libc::ENOSYS)]);
        let out = tested(cmd, 0);
        assert!(with(&out, "not-promised").contains(&"read-secret"));
        assert!(!with(&out, "holds").contains(&"read-secret"));
    });
}

#[test]
fn a_container_or_an_outer_sbx_is_no_obstacle() {
    in_worlds(|world| {
        tested(world.sbx(["test", "--json"]).docker(), 0);
        let sbx = stage::sbx().to_str().unwrap();
        let rows = tested(world.run("workspace", [sbx, "test", "--json", "-p", "read-only"]), 0);
        let expected = if kernel::promises(kernel::PATHS) { "holds" } else { "not-promised" };
        assert!(with(&rows, expected).contains(&"read-secret"), "{rows:?}");
    });
}

#[test]
fn what_cannot_be_tested_is_refused_in_one_sentence() {
    in_worlds(|world| {
        world.sbx(["test", "-p", "nope"]).run().refused(125, &["there is no profile of that name"]);
        let silent = ["run", "--verify", "--deny-calls", "write", "--", "true"];
        world.sbx(silent).run().refused(125, &["write to its standard output"]);
        let text = r#"{ "description": "x", "extends": "minimal", "syscalls": { "default": "log" } }"#;
        world.write("log.json", text);
        world.sbx(["test", "-p", "./log.json"]).run().refused(125, &["it is log-only"]);
        world.sbx(["run", "--verify", "--log-violations", "--", "true"]).run().refused(125, &["contradict"]);
        world.sbx(["self-test", "x"]).run().refused(125, &["sbx test"]);
    });
}

#[test]
fn an_unconfined_profile_promises_nothing_by_choice() {
    let world = World::new(&User::ordinary());
    let out = world.sbx(["test", "-p", "unrestricted"]).run().success().out();
    assert!(out.contains("the profile allows it"), "{out}");
    assert!(!kernel::promises(kernel::PATHS) || !out.contains("no Landlock"), "{out}");
}
