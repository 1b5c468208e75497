//! Where the runs of two profiles differ, `sbx profile diff` says so.

use super::attackers::extended;
use sbx_tests::{World, in_worlds, kernel, promise};
use serde_json::{Value, json};

/// What a script prints under a profile that adds this to `workspace`.
fn output(world: &World, file: &str, added: &Value, script: &str) -> String {
    world.write(file, extended("workspace", added).to_string());
    let run = world.sbx(["run", "-q", "-p", file, "--", "/bin/sh", "-c", script]).env("DB_HOST", "there");
    run.run().out()
}

/// Compares what adds this to `workspace` with what adds that, which one script tells apart.
fn compare(world: &World, more: &Value, less: &Value, script: &str, told: &str) {
    let outputs = [output(world, "../more.json", more, script), output(world, "../less.json", less, script)];
    assert_ne!(outputs[0], outputs[1], "{more}");
    let out = world.sbx(["profile", "diff", "../more.json", "../less.json"]).run().exited(1);
    let first = out.out();
    let first = first.split("only '../less.json'").next().unwrap();
    assert!(first.contains("only '../more.json' gives:") && first.contains(told), "{told}: {out}");
    // The twin.
    world.write("../less.json", extended("workspace", more).to_string());
    let out = world.sbx(["profile", "diff", "../more.json", "../less.json"]).run().exited(0);
    assert_eq!(out.out(), "both give the same\n");
}

#[test]
fn every_word_that_changes_a_run_is_compared() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let file = world.write(world.outside.join("config"), "password = hidden\n");
        let read = |unless: &Value| {
            let mut entry = json!({ "path": file });
            entry.as_object_mut().unwrap().extend(unless.as_object().unwrap().clone());
            json!({ "paths": { "read": [entry] } })
        };
        let cat = format!("cat {}; true", file.display());
        compare(
            world,
            &read(&json!({})),
            &read(&json!({ "unless": "credentials" })),
            &cat,
            "credentials in it",
        );
        let closed = |set: Value| json!({ "home": { "mode": "closed", "closed_env": set } });
        let (more, less) = (closed(json!({ "GREETING": "hello" })), closed(json!({})));
        compare(world, &more, &less, "echo $GREETING", "if closed  GREETING=hello");
        let open = |names: Value| json!({ "network": { "mode": "host" }, "env": { "addresses": names } });
        compare(
            world,
            &open(json!(["DB_*"])),
            &open(json!([])),
            "echo $DB_HOST",
            "DB_*, where the network is open",
        );
    });
}

#[test]
fn every_word_of_a_protection_is_compared() {
    promise!(namespaces);
    in_worlds(|world| {
        let entry = |more: Value| {
            let mut entry = json!({ "path": "${WORKSPACE}/made" });
            entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "paths": { "protect": [entry] } })
        };
        let make = "echo x > made && cat made; rm -f made; true";
        let (free, kept) = (json!({ "readers": ["/no/such"] }), json!({}));
        compare(
            world,
            &entry(free),
            &entry(kept.clone()),
            make,
            "made, where nothing is there of what reads it",
        );
        let aside = json!({ "when_made": "set-aside" });
        let look = "ls -d made; true";
        let outputs = [aside, kept].map(|words| output(world, "../one.json", &entry(words), look));
        assert_eq!(outputs, ["", "made\n"]);
    });
}

/// A run that reaches hosts has a network of its own, where it may listen as without.
#[test]
fn hosts_take_nothing_away_that_a_network_of_its_own_has() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let hosts = json!({ "network": { "mode": "allow", "connect": ["example.org:443"] } });
        world.write("../more.json", extended("workspace", &hosts).to_string());
        let out = world.sbx(["profile", "diff", "workspace", "../more.json"]).run().exited(1);
        let reach = "  reach      example.org:443 by network.connect[0]";
        assert!(out.out().starts_with(&format!("only '../more.json' gives:\n{reach}")), "{out}");
        assert_eq!(out.out().lines().count(), 2, "{out}");
    });
}
