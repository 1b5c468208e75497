//! `sbx profile review` and `sbx profile diff`.

use sbx_tests::{World, in_worlds};
use serde_json::{Value, json};

fn review(world: &World, profile: &Value) -> Value {
    world.write("../reviewed.json", profile.to_string());
    let out = world.sbx(["profile", "review", "--json", "../reviewed.json"]).run().success();
    serde_json::from_str(&out.out()).unwrap()
}

/// The findings that are not those of the built-in profiles.
fn findings(review: &Value) -> Vec<&Value> {
    let all = review["findings"].as_array().unwrap();
    all.iter().filter(|finding| finding["usual"] == false).collect()
}

#[test]
fn an_attackers_use_of_a_profile_is_found_with_its_rule() {
    in_worlds(|world| {
        world.write(world.home.join(".bashrc"), "");
        for (added, topic, about, rule) in [
            (json!({ "paths": { "read": ["${HOME}"] } }), "secrets", ".ssh", "paths.read"),
            (json!({ "paths": { "write": ["${HOME}/.bashrc"] } }), "runs later", ".bashrc", "paths.write"),
            (json!({ "network": { "mode": "host" } }), "network", "any host", "network.mode"),
            (
                json!({ "network": { "mode": "allow", "connect": ["example.org"] } }),
                "network",
                "example.org",
                "connect",
            ),
            (json!({ "syscalls": { "allow": ["bpf"] } }), "kernel", "bpf", "syscalls.allow"),
            (json!({ "env": { "inherit": ["SSH_AUTH_*"], "deny": [] } }), "", "", ""),
        ] {
            let mut profile = json!({ "extends": "write" });
            profile.as_object_mut().unwrap().extend(added.as_object().unwrap().clone());
            let review = review(world, &profile);
            let found = findings(&review);
            if topic.is_empty() {
                // What a parent denies stays denied.
                assert!(found.is_empty(), "{added}: {review:#}");
                continue;
            }
            let is_it = |finding: &&&Value| {
                finding["topic"] == topic
                    && finding["about"].to_string().contains(about)
                    && finding["rules"].to_string().contains(rule)
            };
            assert!(found.iter().find(is_it).is_some(), "{added}: {review:#}");
        }
        let quiet = review(world, &json!({ "extends": "write" }));
        assert!(findings(&quiet).is_empty(), "{quiet:#}");
    });
}

/// What a review says of a file, a run does.
#[test]
fn a_secret_that_a_review_finds_is_one_that_a_run_reads() {
    in_worlds(|world| {
        let script = "cat ~/.netrc";
        for (path, found) in [("${HOME}/.netrc", true), ("${HOME}/other-project", false)] {
            let review = review(world, &json!({ "extends": "read-only", "paths": { "read": [path] } }));
            let is_found =
                findings(&review).iter().any(|finding| finding["about"].to_string().contains(".netrc"));
            assert_eq!(is_found, found, "{review:#}");
            let run = world.sbx(["run", "-p", "../reviewed.json", "--", "/bin/sh", "-c", script]).run();
            assert_eq!(run.out().contains(sbx_tests::world::SECRET), found, "{run}");
        }
    });
}

#[test]
fn a_review_shows_no_text_of_a_profile_that_steers_a_terminal() {
    in_worlds(|world| {
        let text = "red\u{1b}[31m\u{202e}";
        let why = json!([{ "path": "/srv", "why": text }]);
        let profile = json!({ "description": text, "extends": "minimal", "paths": { "read": why } });
        world.write("../odd.json", profile.to_string());
        for arguments in [&["review", "../odd.json"][..], &["diff", "minimal", "../odd.json"]] {
            let out = world.sbx(["profile"]).args(arguments).run();
            assert!(out.out().contains("red"), "{out}");
            assert!(!out.out().contains(['\u{1b}', '\u{202e}']), "{out}");
        }
    });
}

#[test]
fn a_rule_about_what_is_not_here_is_left_out_and_named() {
    in_worlds(|world| {
        let paths = json!({ "read": ["/no/such/place", "${HOME}/.netrc"] });
        let network = json!({ "unix": ["/no/such.sock"] });
        let profile = json!({ "extends": "read-only", "paths": paths, "network": network });
        let review = review(world, &profile);
        assert_eq!(review["missing"].as_array().unwrap().len(), 2, "{review:#}");
        assert!(findings(&review).iter().any(|finding| finding["topic"] == "sockets"), "{review:#}");
    });
}

#[test]
fn a_diff_says_who_gives_more_by_effect() {
    in_worlds(|world| {
        let diff = |one: &str, other: &str| world.sbx(["profile", "diff", one, other]).run();
        world.write(
            "../same.json",
            json!({ "description": "another text", "extends": "workspace" }).to_string(),
        );
        let out = diff("workspace", "../same.json").success();
        assert_eq!(out.out(), "both give the same\n", "{out}");
        world.write(
            "../more.json",
            json!({ "extends": "workspace", "paths": { "read": [{ "path": "/srv", "why": "data" }] } })
                .to_string(),
        );
        let out = diff("../more.json", "workspace").exited(1);
        assert!(out.out().starts_with("only '../more.json' gives:\n  read      /srv"), "{out}");
        assert!(out.out().contains("paths.read[0]") && out.out().contains("(data)"), "{out}");
        let out = diff("workspace", "no-such").exited(125);
        assert!(out.err().contains("no-such"), "{out}");
    });
}
