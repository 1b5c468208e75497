//! `sbx profile review` and `sbx profile diff`.

use sbx_tests::servers::UnixServer;
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

/// What is below a known secret, what no list has, what groups and homes of the run's own give, and calls by
/// numbers.
#[test]
fn what_a_profile_hides_is_found() {
    in_worlds(|world| {
        world.write(world.home.join(".unknown-tool/session"), "x");
        world.write("../plain", "x");
        let _service = UnixServer::at(&world.outside.join("service.sock"));
        let keys = json!([{ "path": "${HOME}/.npmrc", "format": "npm", "keep": ["*"] }]);
        let optional = json!([{ "path": "${HOME}/.ssh/new_key", "optional": true }]);
        let group = json!({ "mode": "allow", "connect": ["@site"], "groups": { "site": ["*:443"] } });
        for (added, topic, about, rule) in [
            (json!({ "paths": { "read": ["${HOME}/.ssh/id_rsa"] } }), "secrets", "id_rsa", "paths.read"),
            (
                json!({ "paths": { "execute": ["${HOME}/.unknown-tool/session"] } }),
                "secrets",
                "hidden",
                "execute",
            ),
            (json!({ "paths": { "read": optional } }), "secrets", "not there now", "paths.read"),
            (json!({ "paths": { "write": [world.outside] } }), "runs later", "service.sock", "paths.write"),
            (json!({ "network": group }), "network", "*:443", "network.connect"),
            (json!({ "home": { "copies": keys } }), "secrets", ".npmrc: *", "home.copies"),
            (json!({ "home": { "stores": ["${HOME}/.ssh"] } }), "secrets", ".ssh", "home.stores"),
            (json!({ "syscalls": { "default": "log" } }), "kernel", "every call", "syscalls.default"),
        ] {
            let mut profile = json!({ "extends": "workspace" });
            profile.as_object_mut().unwrap().extend(added.as_object().unwrap().clone());
            let review = review(world, &profile);
            let is_it = |finding: &&&Value| {
                let all = [&finding["about"], &finding["meaning"]].map(Value::to_string).concat();
                finding["topic"] == topic
                    && all.contains(about)
                    && finding["rules"].to_string().contains(rule)
            };
            assert!(findings(&review).iter().any(|finding| is_it(&finding)), "{added}: {review:#}");
        }
        // What everybody may have is nothing to find.
        let plain = json!([world.home.join("plain"), { "path": "/no/such/path", "optional": true }]);
        let quiet = review(world, &json!({ "extends": "workspace", "paths": { "read": plain } }));
        assert!(findings(&quiet).is_empty(), "{quiet:#}");
        // A call by numbers alone is more than none.
        let call = json!([{ "call": "fanotify_init", "args": [{ "index": 5, "op": "ge", "value": 0 }] }]);
        let calls = review(world, &json!({ "extends": "workspace", "syscalls": { "allow": call } }));
        assert!(calls["unusual"][0]["what"].to_string().contains("fanotify_init"), "{calls:#}");
    });
}

/// Whether a rule is a built-in one does not depend on how a file is called.
#[test]
fn no_name_of_a_file_makes_a_rule_usual() {
    in_worlds(|world| {
        let parent = "../a of profile 'read-only";
        world.write(
            parent,
            json!({ "extends": "read-only", "paths": { "read": ["${HOME}/.ssh"] } }).to_string(),
        );
        let child = json!({ "extends": world.path(parent).canonicalize().unwrap() });
        let review = review(world, &child);
        assert!(findings(&review).iter().any(|finding| finding["topic"] == "secrets"), "{review:#}");
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
