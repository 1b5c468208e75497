//! `sbx hook filter`: what it answers to what agents, and models, say.

use super::{sbx, with_path};
use crate::namespaces::with_namespaces;
use sbx_tests::{Output, World, as_users, stage};
use serde_json::{Value, json};

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
            (&cwd("/"), "more than one project"),
            (&cwd(world.home.to_str().unwrap()), "more than one project"),
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

/// The model says where a command starts; where the agent works is the workspace nevertheless.
#[test]
fn a_model_does_not_choose_the_workspace() {
    with_namespaces(|user| {
        let world = World::new(user);
        let asked = json!({ "command": "echo x >made; echo x >sub/made", "workdir": world.outside });
        let out = filter(&world, "codex", &call(&world, asked)).success();
        let answer: Value = serde_json::from_str(&out.out()).unwrap();
        let line = answer["hookSpecificOutput"]["updatedInput"]["command"].as_str().unwrap().to_string();
        world.make_dir(&world.path("sub"));
        // As the agent starts it, where the model said.
        let out = world.bare(["/bin/sh", "-c", &line]).cwd(&world.outside).run();
        assert!(!world.outside.join("made").exists(), "{out}");
        let out = world.bare(["/bin/sh", "-c", &line]).run();
        assert!(world.exists("sub/made") && world.exists("made"), "{out}");
    });
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
