//! What a profile is compared with: the nearest built-in one that it extends.

use super::attackers::{extended, has, run, shown};
use super::reviews::{about, review};
use sbx_tests::{in_worlds, kernel, promise};
use serde_json::{Value, json};

/// A profile that requires less runs where its parent is refused.
#[test]
fn a_level_that_is_required_no_more_is_unusual() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let whole = review(world, &json!({ "extends": "agent:claude" }));
        assert!(whole["unusual"].as_array().unwrap().is_empty(), "{whole:#}");
        assert!(shown(world).contains("gives nothing that 'agent:claude' does not give"));
        let refused = |profile: &str| {
            let words = ["run", "-q", "-p", profile, "--namespaces", "none", "--", "true"];
            world.sbx(words).run().code == Some(125)
        };
        assert!(refused("agent:claude") && refused("../reviewed.json"));
        let weak = review(world, &json!({ "extends": "agent:claude", "require": "minimal" }));
        assert_eq!(weak["base"], "agent:claude");
        let unusual = weak["unusual"].as_array().unwrap();
        assert!(unusual.len() == 1 && unusual[0]["rule"].to_string().contains("require"), "{weak:#}");
        assert!(!refused("../reviewed.json"));
        // What the parent gives is no finding of the file's own, and what comes later is not either.
        let login = about(&weak, "secrets", ".claude/.credentials.json").unwrap();
        assert_eq!(login["usual"], true, "{weak:#}");
        assert_eq!(about(&weak, "network", "api.anthropic.com").unwrap()["usual"], true, "{weak:#}");
    });
}

/// What is taken back is named where it is little.
#[test]
fn few_things_that_a_profile_lacks_are_named() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        world.write("kept", "x");
        let deny = json!({ "paths": { "deny": ["${WORKSPACE}/kept"] } });
        let reviewed = review(world, &extended("workspace", &deny));
        let text = shown(world);
        assert!(
            text.contains("lacks what 'workspace' gives:") && text.contains("${WORKSPACE}/kept"),
            "{text}"
        );
        run(world, &["cat", "kept"]).failed();
        assert!(has(&reviewed, "workspace", "/"), "{reviewed:#}");
        review(world, &json!({ "extends": "workspace" }));
        assert!(!shown(world).contains("lacks"));
        run(world, &["cat", "kept"]).success();
        let closed = json!({ "syscalls": { "deny": ["fork", "vfork", "mkdir", "rmdir", "rename"] } });
        review(world, &extended("workspace", &closed));
        assert!(shown(world).contains("sbx profile diff workspace"), "{}", shown(world));
    });
}

/// A rule for which no run starts here hides nothing of what the others give.
#[test]
fn a_profile_under_which_no_run_starts_is_reviewed_without_the_rule_that_is_why() {
    promise!(namespaces);
    in_worlds(|world| {
        let added = |hosts: Value, why: &[&str]| {
            let network = json!({ "mode": "allow", "connect": hosts });
            let paths = json!({ "read": ["${HOME}/.netrc"] });
            let profile = extended("workspace", &json!({ "network": network, "paths": paths }));
            let reviewed = review(world, &profile);
            let notes = reviewed["notes"].to_string();
            let out = run(world, &["cat", world.home.join(".netrc").to_str().unwrap()]);
            assert_eq!(out.code == Some(125), !why.is_empty(), "{out}");
            for text in why {
                assert!(notes.contains(text), "{text}: {notes}");
            }
            assert_eq!(notes.contains("no run starts so"), !why.is_empty(), "{notes}");
            // The error is that of the run.
            let error = out.err().trim().trim_start_matches("sbx: ").to_string();
            assert!(why.is_empty() || notes.contains(error.lines().next().unwrap()), "{error}: {notes}");
            assert!(
                has(&reviewed, "secrets", ".netrc") && has(&reviewed, "network", "example.org"),
                "{reviewed:#}"
            );
        };
        added(json!(["example.org"]), &[]);
        added(json!(["example.org", "localhost:443"]), &["'localhost:443'", "without network.connect[1]"]);
        added(
            json!(["localhost:443", "example.org", "localhost:80"]),
            &["without network.connect[0]", "without network.connect[2]"],
        );
        // What is not understood is not reviewed.
        world.write("../reviewed.json", r#"{ "extends": "workspace", "paths": { "raed": [] } }"#);
        world.sbx(["profile", "review", "../reviewed.json"]).run().refused(125, &["raed"]);
    });
}
