//! `sbx profile review` and `sbx profile diff`.

use sbx_tests::servers::UnixServer;
use sbx_tests::{World, in_worlds, need, promise};
use serde_json::{Value, json};
use std::path::Path;

pub(super) fn review(world: &World, profile: &Value) -> Value {
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
            (json!({ "paths": { "write": [world.outside] } }), "sockets", "service.sock", "paths.write"),
            (json!({ "network": group }), "network", "*:443", "network.connect"),
            (json!({ "network": { "mode": "host" } }), "network", "127.0.0.1", "network.mode"),
            (json!({ "network": { "mode": "host" } }), "network", "listening", "network.mode"),
            // It is not there, and a rule is judged all the same.
            (
                json!({ "paths": { "write": ["/run/docker.sock"] } }),
                "runs later",
                "docker.sock",
                "paths.write",
            ),
            (json!({ "env": { "inherit": ["*"] } }), "variables", "any name", "env.inherit"),
            (json!({ "home": { "copies": keys } }), "secrets", ".npmrc: *", "home.copies"),
            (json!({ "home": { "stores": ["${HOME}/.ssh"] } }), "secrets", ".ssh", "home.stores"),
            (json!({ "syscalls": { "default": "log" } }), "kernel", "bpf", "syscalls.default"),
        ] {
            // A machine with Docker has it.
            if about == "docker.sock" && Path::new("/run/docker.sock").exists() {
                continue;
            }
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

/// Where a run looks at repositories that the command makes, a review does not tell of them, and elsewhere it does.
#[test]
fn a_repository_that_a_review_finds_is_one_that_git_acts_on() {
    promise!(namespaces);
    need!("git");
    in_worlds(|world| {
        let ran = world.path("../ran");
        let make = format!(
            "mkdir -p $DIR/.git/objects $DIR/.git/refs && echo ref: refs/heads/m > $DIR/.git/HEAD && \
             printf '[core]\nrepositoryformatversion = 0\nfsmonitor = \"touch {}; false\"\n' > $DIR/.git/config",
            ran.display()
        );
        let outside = world.outside.to_str().unwrap();
        for (directory, found) in [(outside, true), ("made", false)] {
            let review = review(world, &json!({ "extends": "workspace", "paths": { "write": [outside] } }));
            let all = review["findings"].as_array().unwrap();
            let mut of_git = all.iter().filter(|finding| finding["meaning"].to_string().contains(".git"));
            let about = of_git.next().map(|finding| finding["about"].clone());
            assert_eq!(about, Some(json!([outside])), "{review:#}");
            assert!(of_git.next().is_none(), "{review:#}");
            world.write("made/file", "x");
            let script = format!("DIR={directory}; {make}");
            world.sbx(["run", "-q", "-p", "../reviewed.json", "--", "sh", "-c", &script]).run();
            world.bare(["git", "-C", directory, "status"]).run();
            assert_eq!(ran.exists(), found, "{directory}");
            let _ = std::fs::remove_file(&ran);
        }
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
        assert!(out.out().starts_with("only '../more.json' gives:\n  read       /srv"), "{out}");
        assert!(out.out().contains("paths.read[0]") && out.out().contains("(data)"), "{out}");
        // What lets every call through has no call less.
        let out = diff("minimal", "unrestricted").exited(1);
        assert!(!out.out().contains("only 'minimal'") && out.out().contains("every system call"), "{out}");
        assert!(out.out().lines().count() < 20, "{out}");
        let out = diff("workspace", "no-such").exited(125);
        assert!(out.err().contains("no-such"), "{out}");
    });
}

/// A finding about a text, whether the built-in profile gives it too or not.
pub(super) fn about<'r>(review: &'r Value, topic: &str, text: &str) -> Option<&'r Value> {
    let mut all = review["findings"].as_array().unwrap().iter();
    all.find(|finding| finding["topic"] == topic && finding["about"].to_string().contains(text))
}

/// A rule about one file of a sensitive place is found, and the run does what the review says.
#[test]
fn a_single_file_of_a_sensitive_place_is_found() {
    in_worlds(|world| {
        world.write(world.home.join("work/git/.git/hooks/old"), "");
        for file in [".ssh/id_test", ".claude/settings.json", ".kube/config", ".config/gh/hosts.yml"] {
            world.write(world.home.join(file), "content");
            let path = format!("${{HOME}}/{file}");
            let profile = json!({ "extends": "read-only", "paths": { "read": [path] } });
            let review = review(world, &profile);
            let found = about(&review, "secrets", file).unwrap_or_else(|| panic!("{file}: {review:#}"));
            assert!(
                found["usual"] == false && found["rules"].to_string().contains("paths.read[0]"),
                "{found}"
            );
            let cat = format!("cat ~/{file}");
            let run = world.sbx(["run", "-p", "../reviewed.json", "--", "/bin/sh", "-c", &cat]).run();
            assert!(run.success().out().contains("content"), "{file}");
            world.sbx(["run", "-p", "read-only", "--", "/bin/sh", "-c", &cat]).run().failed();
        }
        let profile = json!({ "extends": "workspace", "paths": { "write": ["${HOME}/work/git"] } });
        let review = review(world, &profile);
        assert!(about(&review, "runs later", "work/git/.git/hooks").is_some(), "{review:#}");
        let write = "echo x > ~/work/git/.git/hooks/made";
        world.sbx(["run", "-p", "../reviewed.json", "--", "/bin/sh", "-c", write]).run().success();
        assert!(world.home.join("work/git/.git/hooks/made").exists());
    });
}

#[test]
fn places_of_the_system_and_devices_are_found() {
    in_worlds(|world| {
        let write = ["/etc/cron.d", "/usr/bin/env", "/dev/full", "/dev/zero"];
        let review = review(world, &json!({ "extends": "workspace", "paths": { "write": write } }));
        for path in ["/etc/cron.d", "/usr/bin/env"] {
            // Its permissions close it to others.
            let can = Path::new(path).exists() && world.user.is_root();
            assert_eq!(about(&review, "runs later", path).is_some(), can, "{path}: {review:#}");
        }
        // What a built-in profile opens is none of these.
        assert!(about(&review, "runs later", "/dev/full").is_none(), "{review:#}");
    });
}

/// Where all calls go through, a review says so.
#[test]
fn a_default_that_lets_calls_through_gives_every_call() {
    in_worlds(|world| {
        let open = json!({ "extends": "minimal", "syscalls": { "default": "log" } });
        let open = review(world, &open);
        let found = about(&open, "kernel", "unshare (makes namespaces").unwrap_or_else(|| panic!("{open:#}"));
        assert!(found["rules"].to_string().contains("syscalls.default"), "{found}");
        let closed = review(world, &json!({ "extends": "minimal" }));
        assert!(about(&closed, "kernel", "unshare").is_none(), "{closed:#}");
        let out = world.sbx(["profile", "review", "unrestricted"]).run().success();
        for text in ["bpf (puts programs into the kernel)", "syscalls.default", "paths.write '/'"] {
            assert!(out.out().contains(text), "{text}: {out}");
        }
        let why = world.sbx(["why", "-p", "unrestricted", "--call", "bpf"]).run().success();
        assert!(why.out().starts_with("allowed"), "{why}");
    });
}

/// What is protected in the built-in profile, and not in this one, is not "so in the built-in profile too".
#[test]
fn what_the_built_in_profile_protects_is_no_common_gain() {
    in_worlds(|world| {
        world.write(".envrc", "");
        let bare = review(world, &json!({ "extends": "workspace", "namespaces": "none" }));
        assert!(
            about(&bare, "runs later", ".envrc").is_some_and(|found| found["usual"] == false),
            "{bare:#}"
        );
        let net = review(world, &json!({ "extends": "network" }));
        // A reader of the one section sees the network.
        assert!(about(&net, "network", "any host").is_some_and(|found| found["usual"] == true), "{net:#}");
        let out = world.sbx(["profile", "review", "network"]).run().success();
        assert!(!out.out().contains("nothing of what is looked for"), "{out}");
    });
}

#[test]
fn variables_are_given_as_a_run_gives_them() {
    in_worlds(|world| {
        let env = json!({ "inherit": ["MY_SECRET_TOKEN", "PLAIN"], "set": { "GITHUB_TOKEN": "x" } });
        let profile = json!({ "extends": "workspace", "env": env });
        let found = review(world, &profile);
        let variables = found["rights"]["variables"].to_string();
        assert!(variables.contains("PLAIN") && !variables.contains("MY_SECRET_TOKEN"), "{variables}");
        assert!(about(&found, "variables", "GITHUB_TOKEN").is_some(), "{found:#}");
        let print = "echo $PLAIN $MY_SECRET_TOKEN $GITHUB_TOKEN";
        let run = world.sbx(["run", "-p", "../reviewed.json", "--", "/bin/sh", "-c", print]);
        let run = run.env("PLAIN", "one").env("MY_SECRET_TOKEN", "two").run().success();
        assert_eq!(run.out(), "one x\n", "{run}");
        let check = world.sbx(["profile", "check", "../reviewed.json"]).run().exited(125);
        assert!(check.err().contains("'MY_SECRET_TOKEN' in env.inherit[0]"), "{check}");
        let agent = review(world, &json!({ "extends": "agent:claude", "require": "minimal" }));
        assert!(about(&agent, "variables", "ANTHROPIC_*").is_some(), "{agent:#}");
    });
}

#[test]
fn private_ranges_are_called_so_with_the_place_of_their_rules() {
    in_worlds(|world| {
        let network = json!({ "mode": "allow", "connect": ["10.0.0.0/8:22", "169.254.169.254:80"] });
        let found = review(world, &json!({ "extends": "workspace", "network": network }));
        for (host, rule) in
            [("10.0.0.0/8:22", "network.connect[0]"), ("169.254.169.254:80", "network.connect[1]")]
        {
            let found = about(&found, "network", host).unwrap_or_else(|| panic!("{found:#}"));
            assert!(found.to_string().contains("private network"), "{found}");
            assert!(found["rules"].to_string().contains(rule), "{found}");
        }
    });
}

#[test]
fn a_review_names_the_workspace_and_what_a_run_would_say() {
    in_worlds(|world| {
        let out = world.sbx(["profile", "review", "workspace"]).run().success();
        let own = world.path(".").canonicalize().unwrap();
        assert!(out.out().contains(&format!("workspace  {}", own.display())), "{out}");
        assert!(out.out().contains("- ${WORKSPACE}"), "{out}");
        let out = world.sbx(["profile", "review", "workspace"]).cwd(&world.home).run().success();
        assert!(out.out().contains("workspace  none") && out.out().contains("is not opened"), "{out}");
        assert!(!out.out().contains("- ${WORKSPACE}"), "{out}");
    });
}

#[test]
fn lines_of_a_review_fit_a_terminal_and_long_lists_can_be_had_whole() {
    in_worlds(|world| {
        let short = world.sbx(["profile", "review", "read-only"]).run().success().out();
        let whole = world.sbx(["profile", "review", "--all", "read-only"]).run().success().out();
        for line in short.lines() {
            assert!(line.chars().count() <= 100 || !line.trim().contains(' '), "{line}");
        }
        assert!(short.contains(" more ") && !whole.contains(" more "), "{whole}");
        assert!(short.lines().count() < 130 && whole.len() > short.len(), "{}", short.lines().count());
        // Without a call that starts programs, none is executed.
        let minimal = world.sbx(["profile", "review", "minimal"]).run().success().out();
        assert!(!minimal.contains("\n  execute"), "{minimal}");
    });
}

/// Every value of the JSON stands in the text.
#[test]
fn a_profile_is_shown_whole_and_agents_are_listed() {
    fn values(value: &Value, all: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                all.extend(object.get("value").and_then(Value::as_str).map(str::to_string));
                object.values().for_each(|value| values(value, all));
            }
            Value::Array(list) => list.iter().for_each(|value| values(value, all)),
            _ => {}
        }
    }
    in_worlds(|world| {
        for name in ["workspace", "agent:claude", "network"] {
            let json = world.sbx(["profile", "show", "--json", name]).run().success().out();
            let text = world.sbx(["profile", "show", name]).run().success().out();
            let mut all = Vec::new();
            values(&serde_json::from_str(&json).unwrap(), &mut all);
            assert!(all.len() > 50);
            let missing: Vec<_> = all.iter().filter(|value| !text.contains(value.as_str())).collect();
            assert!(missing.is_empty(), "{name}: {missing:?}");
        }
        let list = world.sbx(["profile", "list"]).run().success().out();
        assert!(list.contains("agent:claude"), "{list}");
        let out = world.sbx(["profile", "review", "claude"]).run().exited(125);
        assert!(out.err().contains("agent:claude"), "{out}");
    });
}
