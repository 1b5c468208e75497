//! How a review says it: what counts is counted, and each thing is said once.

use super::attackers::{extended, has, run, shown};
use super::learn;
use super::reviews::review;
use sbx_tests::{in_worlds, kernel, need, promise};
use serde_json::json;

#[test]
fn what_is_not_there_is_counted_by_itself_and_each_head_stands_once() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        world.write("../plain/.netrc", "held\n");
        let plain = world.path("../plain").canonicalize().unwrap();
        let paths = json!({ "read": [plain, { "path": "${HOME}/.ssh/none", "optional": true }] });
        let calls = json!({ "allow": [
            { "call": "creat", "why": "one" }, { "call": "bpf", "why": "two" }, { "call": "mount", "why": "three" },
        ] });
        let profile = extended("minimal", &json!({ "paths": paths, "syscalls": calls }));
        let reviewed = review(world, &profile);
        let text = shown(world);
        assert!(text.contains("secrets 1 (1 more if they are made)"), "{text}");
        assert_eq!(run(world, &["cat", plain.join(".netrc").to_str().unwrap()]).out(), "held\n");
        run(world, &["cat", world.home.join(".ssh/none").to_str().unwrap()]).failed();
        // Each call has a rule of its own.
        let of_calls = reviewed["findings"].as_array().unwrap().iter().filter(|it| it["topic"] == "kernel");
        assert!(of_calls.count() == 3 && text.matches("\n  kernel ").count() == 1, "{text}");
        for index in 0..3 {
            assert!(text.contains(&format!("by syscalls.allow[{index}]")), "{text}");
        }
        review(world, &extended("minimal", &json!({ "paths": { "read": ["${HOME}"] } })));
        let text = shown(world);
        assert!(text.contains("(the home directory)") && !text.contains("(it holds home"), "{text}");
    });
}

/// What a profile sets is set, though no such variable is passed on from outside.
#[test]
fn variables_that_lead_programs_to_code_are_told() {
    promise!(kernel::PATHS);
    need!("python3");
    in_worlds(|world| {
        world.write("code/planted.py", "print('loaded')\n");
        world.script("code/planted", "#!/bin/sh\necho found\n");
        let directory = "${WORKSPACE}/code";
        let path = format!("{directory}:/usr/local/bin:/usr/bin:/bin");
        for (variable, value, command, effect) in [
            ("PYTHONPATH", directory, "python3 -c 'import planted'", "loaded\n"),
            ("PATH", &path, "planted", "found\n"),
            ("GREETING", directory, "planted || python3 -c 'import planted'", ""),
        ] {
            let set = json!({ "env": { "set": { variable: value } } });
            let reviewed = review(world, &extended("workspace", &set));
            let out = run(world, &["sh", "-c", command]).out();
            assert_eq!(out, effect, "{variable}");
            let about = format!("{variable}={value}");
            assert_eq!(has(&reviewed, "variables", &about), !effect.is_empty(), "{reviewed:#}");
        }
    });
}

/// What is set, or passed on, in some runs alone is told as well.
#[test]
fn variables_of_a_closed_home_and_of_an_open_network_are_told() {
    promise!(kernel::PATHS);
    need!("python3");
    in_worlds(|world| {
        world.write("code/planted.py", "print('loaded')\n");
        let directory = "${WORKSPACE}/code";
        for (home, set, is_told) in [
            (json!({ "mode": "closed", "closed_env": { "PYTHONPATH": directory } }), json!({}), true),
            (json!({ "mode": "closed", "closed_env": { "GREETING": directory } }), json!({}), false),
            // What is set in every run stands in its place.
            (json!({ "closed_env": { "PYTHONPATH": directory } }), json!({ "PYTHONPATH": "/none" }), false),
        ] {
            let profile = extended("workspace", &json!({ "home": home, "env": { "set": set } }));
            let reviewed = review(world, &profile);
            let out = run(world, &["python3", "-c", "import planted"]).out();
            let about = format!("PYTHONPATH={directory}");
            assert_eq!(
                (out == "loaded\n", has(&reviewed, "variables", &about)),
                (is_told, is_told),
                "{reviewed:#}"
            );
            assert_eq!(reviewed["rights"]["if closed"].to_string().contains(&about), is_told, "{reviewed:#}");
        }
        for (mode, passed) in [("host", "there\n"), ("none", "\n")] {
            let added = json!({ "network": { "mode": mode }, "env": { "addresses": ["DB_*"] } });
            let reviewed = review(world, &extended("workspace", &added));
            let words = ["run", "-q", "-p", "../reviewed.json", "--", "sh", "-c", "echo $DB_HOST"];
            assert_eq!(world.sbx(words).env("DB_HOST", "there").run().out(), passed, "{mode}");
            assert!(reviewed["rights"]["addresses"].to_string().contains("DB_*"), "{reviewed:#}");
        }
    });
}

#[test]
fn the_most_harmful_stands_first_and_the_differing_profile_is_named() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let paths = json!({ "read": ["${HOME}/.ssh"], "write": ["/proc/sys", "${WORKSPACE}"] });
        let profile = json!({ "paths": paths, "network": { "mode": "host" } });
        let reviewed = review(world, &extended("read-only", &profile));
        let topics =
            reviewed["findings"].as_array().unwrap().iter().map(|finding| finding["topic"].to_string());
        let topics: Vec<String> = topics.collect();
        let last = |topic: &str| topics.iter().rposition(|known| *known == format!("\"{topic}\""));
        let first = |topic: &str| topics.iter().position(|known| *known == format!("\"{topic}\""));
        assert!(last("network") < first("secrets") && last("secrets") < first("programs"), "{topics:?}");
        assert!(last("network").is_some() && first("secrets").is_some(), "{topics:?}");
        // The kernel's own file systems hold no sockets; the workspace may.
        assert!(!has(&reviewed, "sockets", "/proc/sys"), "{reviewed:#}");
        assert!(has(&reviewed, "sockets", "the workspace"), "{reviewed:#}");
        review(world, &extended("minimal", &json!({ "namespaces": "auto" })));
        let text = shown(world);
        assert!(text.contains("(profile 'minimal' has no namespaces)"), "{text}");
    });
}

#[test]
fn a_profile_that_confines_nothing_is_refused_in_a_review_too() {
    in_worlds(|world| {
        for (default, is_refused) in [("allow", true), ("errno", false)] {
            review(world, &extended("custom", &json!({ "syscalls": { "default": default } })));
            let (text, out) = (shown(world), run(world, &["true"]));
            // A long note is broken between words.
            let is_told = text.contains("--dangerously-unconfined");
            let refuses = out.code == Some(125) && out.err().contains("--dangerously-unconfined");
            assert_eq!((is_told, refuses), (is_refused, is_refused), "{text} {out}");
        }
    });
}

#[test]
fn what_would_steer_a_terminal_is_shown() {
    in_worlds(|world| {
        let read = json!([{ "path": "/srv/a\nb\u{202e}c", "why": "one\ntwo\u{1b}[31m", "optional": true }]);
        let profile = json!({ "description": "x\u{202e}y\nz", "paths": { "read": read } });
        review(world, &extended("minimal", &profile));
        let text = shown(world);
        for part in ["x\\u{202e}y\\nz", "/srv/a\\nb\\u{202e}c", "(one\\ntwo\\x1b[31m)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text}");
    });
}

/// Two names that differ by what cannot be seen are two names.
#[test]
fn what_cannot_be_seen_is_shown() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        for hidden in ['\u{200b}', '\u{ad}', '\u{e0041}', '\u{3164}', '\u{a0}'] {
            let shows = format!("\\u{{{:x}}}", u32::from(hidden));
            let file = world.write(world.outside.join(format!("da{hidden}ta")), "hidden\n");
            let plain = world.write(world.outside.join("data"), "plain\n");
            let why = format!("wh{hidden}y");
            let entries = [&file, &plain].map(|path| json!({ "path": path, "why": why }));
            let programs = json!([format!("pro{hidden}gram")]);
            let profile = json!({ "description": format!("fo{hidden}r"), "paths": { "read": entries },
                "agent": { "programs": programs } });
            review(world, &extended("read-only", &profile));
            for path in [&file, &plain] {
                assert!(!run(world, &["cat", path.to_str().unwrap()]).out().is_empty());
            }
            let text = shown(world);
            for part in [format!("da{shows}ta"), format!("wh{shows}y"), format!("fo{shows}r")] {
                assert!(text.contains(&part), "{part}: {text}");
            }
            assert!(text.contains("/data") && !text.contains(hidden), "{text}");
            let show = world.sbx(["profile", "show", "../reviewed.json"]).run().success().out();
            assert!(!show.contains(hidden) && show.contains("da?ta") && show.contains("/data"), "{show}");
        }
        // What is seen stays.
        review(world, &extended("read-only", &json!({ "description": "für « Ägypten »: \u{65}\u{301} 中" })));
        assert!(shown(world).contains("für « Ägypten »: \u{65}\u{301} 中"));
    });
}

/// The profile of a round is a file without a name.
#[test]
fn a_flag_that_denies_is_named() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let mine = world.home.join("mine/file");
        world.write(&mine, "x\n");
        let denied = world.home.join("mine");
        let flags = ["--profile", "workspace", "--deny", denied.to_str().unwrap()];
        let out = learn(world, &flags, &format!("cat {}; true", mine.display())).run();
        let said = format!("--deny {} denies {}", denied.display(), mine.display());
        assert!(out.err().contains(&said) && !out.err().contains("profile '"), "{out}");
    });
}
