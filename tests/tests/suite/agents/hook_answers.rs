//! `sbx hook filter`: what it answers to what agents, and models, say.

use super::{sbx, with_path};
use crate::namespaces::with_namespaces;
use sbx_tests::{Output, User, World, as_users, stage};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn filter(world: &World, agent: &str, asked: &str) -> Output {
    sbx(world, &["hook", "filter", agent]).stdin(asked).run()
}

fn call(world: &World, input: Value) -> String {
    json!({ "tool_name": "Bash", "cwd": world.workspace, "tool_input": input }).to_string()
}

#[test]
fn what_is_not_understood_is_refused() {
    as_users(|user| {
        let world = World::new(user);
        let deep = "[".repeat(100_000);
        let cwd = |place: &str| {
            json!({ "tool_name": "Bash", "cwd": place, "tool_input": { "command": "ls" } }).to_string()
        };
        for (asked, why) in [
            ("", "it is no JSON"),
            (deep.as_str(), "it is no JSON"),
            ("{}", "'tool_name' is missing"),
            ("{\"tool_name\": \"Bash\"}", "'tool_input' is missing"),
            (&call(&world, json!({})), "has no command"),
            (&call(&world, json!({ "command": ["ls"] })), "has no command"),
            (&call(&world, json!({ "command": "a\0b" })), "has no command"),
            (
                "{\"tool_name\": \"Bash\", \"tool_input\": {\"command\": \"ls\"}}",
                "does not say where it works",
            ),
            (&cwd("project"), "does not say where it works"),
            (&cwd("/nowhere"), "/nowhere"),
            (&cwd("/"), "your home directory is in it"),
            (&cwd(world.home.to_str().unwrap()), "it is your home directory"),
            (&cwd(world.home.join(".ssh").to_str().unwrap()), "keep settings and keys"),
        ] {
            let out = filter(&world, "claude", asked).exited(2);
            assert!(out.out().is_empty() && out.err().contains(why), "{why}: {out}");
            assert_eq!(out.err().lines().count(), 1, "{out}");
        }
        // Of other tools it says nothing, and the agent goes on as it would.
        let other = json!({ "tool_name": "Read", "tool_input": { "file_path": "x" } }).to_string();
        filter(&world, "claude", &other).success().silent();
    });
}

/// Whatever stands in a command, a shell hands on just that.
#[test]
fn commands_come_through_as_they_are() {
    with_namespaces(|user| {
        let world = World::new(user);
        for command in [
            "printf '%s|' 'a b' \"c'd\" e\\ f",
            "echo one\necho two # three",
            "cat <<'END'\n$x `y` \\ \"'\nEND",
            "x='; exit 9'; echo \"$x\" && echo é | wc -c",
            "echo \"$0\" \"$#\"; echo $BASHPID >/dev/null; echo \"${BASH_VERSION:+bash}\"",
            "'",
            "-c",
            "printf '%s|' 'x\\' \\' \"a\\\\'b\"",
        ] {
            let out =
                filter(&world, "codex", &call(&world, json!({ "command": command, "timeout": 5 }))).success();
            let answer: Value = serde_json::from_str(&out.out()).unwrap();
            let output = &answer["hookSpecificOutput"];
            assert_eq!(
                (&output["permissionDecision"], &output["updatedInput"]["timeout"]),
                (&json!("allow"), &json!(5))
            );
            let line = output["updatedInput"]["command"].as_str().unwrap();
            let bare = world.bare(["/bin/bash", "-c", command]).run();
            for shell in ["/bin/sh", "/bin/bash"] {
                let inside = world.bare([shell, "-c", line]).run();
                assert_eq!((inside.out(), inside.code), (bare.out(), bare.code), "{command:?}: {inside}");
            }
        }
    });
}

/// The model says where a command starts; where the agent works is the workspace nevertheless. Codex writes only what
/// the model said, and starts the hook where it works.
#[test]
fn a_model_does_not_choose_the_workspace() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.make_dir(&world.path("sub"));
        for agent in ["claude", "codex"] {
            let asked = json!({ "command": "echo x >made; echo x >sub/made", "workdir": world.outside });
            let cwd = if agent == "codex" { &world.outside } else { &world.workspace };
            let asked = json!({ "tool_name": "Bash", "cwd": cwd, "tool_input": asked }).to_string();
            let out = filter(&world, agent, &asked).success();
            let answer: Value = serde_json::from_str(&out.out()).unwrap();
            let line = answer["hookSpecificOutput"]["updatedInput"]["command"].as_str().unwrap().to_string();
            // As the agent starts it, where the model said.
            let out = world.bare(["/bin/sh", "-c", &line]).cwd(&world.outside).run();
            assert!(!world.outside.join("made").exists(), "{agent}: {out}");
            let out = world.bare(["/bin/sh", "-c", &line]).run();
            assert!(world.exists("sub/made") && world.exists("made"), "{agent}: {out}");
        }
    });
}

/// Cursor tells a hook where its model has the command start, and which directories are open.
#[test]
fn a_call_of_cursor_without_a_workspace_is_refused() {
    as_users(|user| {
        let world = World::new(user);
        let call = |more: &str| {
            let (cwd, input) = (json!(world.workspace), json!({ "command": "ls" }));
            format!("{{ \"tool_name\": \"Shell\", \"cwd\": {cwd}, \"tool_input\": {input}{more} }}")
        };
        filter(&world, "cursor", &call(&format!(", \"workspace_roots\": [{}]", json!(world.workspace))))
            .success();
        for roots in ["", ", \"workspace_roots\": []"] {
            let out = filter(&world, "cursor", &call(roots)).exited(2);
            assert!(out.out().is_empty() && out.err().contains("Cursor names no workspace"), "{out}");
        }
    });
}

/// The agent holds rules of its user against the command that it runs, and that is one of sbx.
#[test]
fn rules_about_single_commands_hold() {
    as_users(|user| {
        let world = World::new(user);
        let rules = json!({ "permissions": { "deny": ["Bash(git push:*)"], "ask": ["Bash(touch:*)"] } });
        super::write(&world, ".claude/settings.json", &rules.to_string());
        world.write(".claude/settings.local.json", "{ \"permissions\": { \"deny\": [\"Bash(curl *)\"] } }");
        let answer = |command: &str, flags: &[&str]| {
            let asked = call(&world, json!({ "command": command }));
            let words = [&["hook", "filter", "claude"], flags].concat();
            sbx(&world, &words).stdin(asked.as_str()).run()
        };
        for (command, rule) in [("cd x && git push", "git push:*"), ("curl x", "curl *")] {
            let out = answer(command, &[]).exited(2);
            assert!(
                out.out().is_empty() && out.err().contains(&format!("your rule Bash({rule}) denies it")),
                "{out}"
            );
        }
        for (command, flags, decision) in [
            ("touch x", &[][..], json!("ask")),
            ("touch x", &["--approve"], json!("ask")),
            ("git pull", &["--approve"], json!("allow")),
            ("git pull", &[], Value::Null),
        ] {
            let answer: Value = serde_json::from_str(&answer(command, flags).success().out()).unwrap();
            assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], decision, "{command} {flags:?}");
        }
    });
}

/// The agent reads more than the two files of the project, and what it may read and the hook cannot might be a rule.
#[test]
fn rules_of_every_file_hold_and_one_that_is_not_understood_refuses() {
    as_users(|user| {
        let world = World::new(user);
        let rules = "{ \"permissions\": { \"deny\": [\"Bash(git push:*)\"] } }";
        world.make_dir(&world.path(".git"));
        world.make_dir(&world.path("a/b"));
        let ask = |command: &str, why: Option<&str>| {
            let asked = json!({ "tool_name": "Bash", "tool_input": { "command": command } }).to_string();
            let hook =
                sbx(&world, &["hook", "filter", "claude"]).env("CLAUDE_PROJECT_DIR", world.path("a/b"));
            let out = hook.stdin(asked.as_str()).run();
            match why {
                None => out.success(),
                Some(why) => {
                    let out = out.exited(2);
                    assert!(out.out().is_empty() && out.err().contains(why), "{why}: {out}");
                    assert_eq!(out.err().lines().count(), 1, "{out}");
                    out
                }
            }
        };
        ask("git push", None);
        let project = |directory: &str, name: &str| world.path(directory).join(".claude").join(name);
        for file in [
            project("", "settings.json"),
            project("", "settings.local.json"),
            project("a", "settings.json"),
            project("a/b", "settings.json"),
            world.home.join(".claude/settings.json"),
            world.home.join(".claude/remote-settings.json"),
        ] {
            for text in [rules.to_string(), format!("\u{feff}{rules}")] {
                world.write(&file, text);
                ask("git push", Some("your rule Bash(git push:*) denies it"));
                ask("git pull", None);
            }
            for wrong in
                [&rules[..rules.len() - 1], "{ \"permissions\": { \"deny\": \"Bash(git push:*)\" } }"]
            {
                world.write(&file, wrong);
                ask("git pull", Some(&format!("'{}'", file.display())));
            }
            std::fs::remove_file(&file).unwrap();
        }
        ask("git push", None);
    });
}

/// A rule is about parts of words where it says so, and about words however they are written.
#[test]
fn rules_hold_for_parts_of_words_and_quoted_ones() {
    as_users(|user| {
        let world = World::new(user);
        let deny = ["Bash(*prod*)", "Bash(*.sh)", "Bash(git push:*)"];
        let rules = json!({ "permissions": {
            "allow": ["Bash(*)"], "deny": deny, "ask": ["Bash(*secret*)"],
        } });
        super::write(&world, ".claude/settings.json", &rules.to_string());
        let answer = |command: &str| filter(&world, "claude", &call(&world, json!({ "command": command })));
        for (command, rule) in [
            ("kubectl --context myprod delete ns x", "Bash(*prod*)"),
            ("./deploy.sh", "Bash(*.sh)"),
            ("git \\\n push origin", "Bash(git push:*)"),
            ("git 'push'", "Bash(git push:*)"),
            ("git \"push\"", "Bash(git push:*)"),
            ("gi\\t push", "Bash(git push:*)"),
            ("git 2>&1 >/dev/null push", "Bash(git push:*)"),
            ("git $'pu\\x73h'", "Bash(git push:*)"),
            ("git${IFS}push", "Bash(git push:*)"),
        ] {
            let out = answer(command).exited(2);
            let is_named = out.err().contains(&format!("your rule {rule} denies it"));
            assert!(out.out().is_empty() && is_named, "{command}: {out}");
        }
        // What they may run is no matter of the hook's.
        for (command, decision) in
            [("cat mysecret", json!("ask")), ("echo hello", Value::Null), ("git 'pull'", Value::Null)]
        {
            let answer: Value = serde_json::from_str(&answer(command).success().out()).unwrap();
            assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], decision, "{command}");
        }
    });
}

/// A shell that sbx does not start is no way around the one that it does.
#[test]
fn a_tool_of_another_shell_is_refused() {
    as_users(|user| {
        let world = World::new(user);
        let asked =
            json!({ "tool_name": "PowerShell", "cwd": world.workspace, "tool_input": { "command": "ls" } });
        let out = filter(&world, "claude", &asked.to_string()).exited(2);
        assert!(out.out().is_empty() && out.err().contains("no shell that sbx can start"), "{out}");
    });
}

/// Agents run a command without the hook that takes too long for them.
#[test]
fn a_hook_that_cannot_answer_refuses_in_time() {
    let world = World::new(&User::current());
    sbx(&world, &["hook", "install", "claude"]).run();
    let settings = super::read(&world, ".claude/settings.json").unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let hook = &settings["hooks"]["PreToolUse"][0]["hooks"][0];
    let began = Instant::now();
    // Nobody ever ends what it reads.
    let line = format!(
        "mkfifo fifo; sleep 100 >fifo & {{ {}; }} <fifo; status=$?; kill $!; exit $status",
        hook["command"].as_str().unwrap()
    );
    let out = world.bare(["/bin/sh", "-c", &line]).run().exited(2);
    assert!(out.err().contains("the command was not run"), "{out}");
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(hook["timeout"].as_u64().unwrap() > 3600, "{hook}");
}

/// Nothing that a command can change is run outside, and no variable of a project's chooses the profile.
#[test]
fn the_program_and_the_profile_are_not_a_commands_to_choose() {
    with_namespaces(|user| {
        let world = World::new(user);
        let own = world.install(stage::sbx(), "sbx");
        let asked = call(&world, json!({ "command": "true" }));
        let out = world
            .bare([own.to_str().unwrap(), "hook", "filter", "claude"])
            .stdin(asked.as_str())
            .run()
            .exited(2);
        assert!(out.err().contains("lies in the workspace"), "{out}");
        let asked = call(&world, json!({ "command": "cat ~/.ssh/id_rsa" }));
        let out = filter(&world, "claude", &asked).success();
        let answer: Value = serde_json::from_str(&out.out()).unwrap();
        let line = answer["hookSpecificOutput"]["updatedInput"]["command"].as_str().unwrap();
        let open = world.write(world.outside.join("open.json"), "{\"extends\": \"unrestricted\"}");
        let ran =
            with_path(&world, world.bare(["/bin/sh", "-c", line])).env("SBX_PROFILE", open).run().failed();
        assert!(!ran.out().contains("secret"), "{ran}");
    });
}
