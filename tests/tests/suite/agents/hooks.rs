//! `sbx hook`: agents that ask their hooks run their commands in `sbx`, or not at all.

use super::{read, sbx, with_path, write};
use crate::namespaces::with_namespaces;
use sbx_tests::world::SECRET;
use sbx_tests::{Output, World, as_users, need, stage};
use std::path::Path;

const AGENT: &str = include_str!("asks_hooks.py");
const KINDS: [&str; 4] = ["claude", "codex", "gemini", "cursor"];
const ATTEMPTS: &str =
    "cat ~/.ssh/id_rsa; echo x >>~/.claude/settings.json; echo \"it's\n$((1 + 1))\" >made; cat made";

/// An agent of this kind runs a command of its model's.
fn agent(world: &World, kind: &str, command: &str) -> Output {
    with_path(world, world.bare(["python3", "-c", AGENT, kind, command])).run()
}

#[test]
fn commands_of_agents_with_a_hook_are_confined() {
    need!("python3");
    with_namespaces(|user| {
        for kind in KINDS {
            let world = World::new(user);
            let bare = agent(&world, kind, ATTEMPTS);
            assert!(bare.out().contains(SECRET) && bare.out().ends_with("it's\n2\n"), "{bare}");
            let out = sbx(&world, &["hook", "install", kind]).run().success();
            assert!(out.out().contains(&format!("{kind}: the hook is installed")), "{out}");
            assert!(out.out().contains("works: a test command ran confined"), "{out}");
            let before = read(&world, ".claude/settings.json");
            let ran = agent(&world, kind, ATTEMPTS);
            assert!(!ran.out().contains(SECRET) && ran.out().ends_with("it's\n2\n"), "{kind}: {ran}");
            assert_eq!(read(&world, ".claude/settings.json"), before);
            assert_eq!(world.read("made").as_deref(), Some("it's\n2\n"));
            let status = agent(&world, kind, "exit 7");
            assert_eq!(status.code, Some(7), "{status}");
            sbx(&world, &["hook", "remove", kind]).run().success();
            assert!(agent(&world, kind, ATTEMPTS).out().contains(SECRET));
        }
    });
}

/// What is tried writes nothing.
#[test]
fn a_hook_that_only_looks_around_works_too() {
    need!("python3");
    with_namespaces(|user| {
        for profile in ["read-only", "workspace"] {
            let world = World::new(user);
            let out = sbx(&world, &["hook", "install", "claude", "--profile", profile]).run().success();
            assert!(out.out().contains("the hook is installed"), "{profile}: {out}");
            let out = sbx(&world, &["hook", "status", "claude"]).run().success();
            assert!(out.out().contains("a test command ran confined"), "{profile}: {out}");
            // Nor does it leave a home behind.
            sbx(&world, &["home", "list"]).run().success().prints("no private homes\n");
            let out = agent(&world, "claude", "echo x > made; echo end");
            assert!(out.out().contains("end"), "{profile}: {out}");
            assert_eq!(world.exists("made"), profile == "workspace", "{profile}: {out}");
        }
    });
}

/// Agents go on without a hook that fails in a way of its own. Ours refuses then.
#[test]
fn a_hook_whose_program_is_gone_refuses() {
    need!("python3");
    with_namespaces(|user| {
        let world = World::new(user);
        let program = world.outside.join("sbx");
        stage::copy(stage::sbx(), &program);
        stage::give(&program, user);
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let install = |kind| world.bare([program.to_str().unwrap(), "hook", "install", kind]).run();
        for kind in KINDS {
            install(kind).success();
            assert_eq!(agent(&world, kind, "echo ran").out(), "ran\n");
        }
        for content in [None, Some("#!/bin/sh\nexit 1\n"), Some("#!/bin/sh\nkill -9 $$\n")] {
            std::fs::remove_file(&program).unwrap();
            if let Some(content) = content {
                world.script(&program, content);
            }
            for kind in KINDS {
                let out = agent(&world, kind, "echo ran");
                assert!(
                    out.out().is_empty() && out.err().contains("the command was not run"),
                    "{kind}: {out}"
                );
                let status = sbx(&world, &["hook", "status", kind]).run().exited(1);
                assert!(status.out().contains("does not work: "), "{status}");
            }
            if content.is_none() {
                world.script(&program, "");
            }
        }
    });
}

#[test]
fn what_is_missing_or_switched_off_is_said() {
    need!("python3");
    as_users(|user| {
        let world = World::new(user);
        let status = |kind: &str, word: &str| {
            let out = sbx(&world, &["hook", "status", kind]).run().exited(1);
            assert!(out.out().contains(word), "{word}: {out}");
        };
        sbx(&world, &["hook", "status"])
            .run()
            .success()
            .prints("no hooks are installed; 'sbx hook install claude' installs one\n");
        sbx(&world, &["hook", "status", "--json"]).run().success().prints("[]\n");
        status("claude", "no hook: its commands run without sbx");
        let out = sbx(&world, &["hook", "status", "--json", "claude"]).run().exited(1).out();
        let found: serde_json::Value = serde_json::from_str(&out).unwrap();
        let (agent, state, error) = (&found[0]["agent"], &found[0]["state"], &found[0]["error"]);
        assert_eq!((agent, state, error), (&"claude".into(), &"missing".into(), &().into()), "{out}");
        write(&world, ".claude/settings.json", "{\"disableAllHooks\": true}");
        sbx(&world, &["hook", "install", "claude"]).run().exited(1);
        status("claude", "the same settings switch hooks off");
        write(&world, ".gemini/settings.json", "{\"hooksConfig\": {\"disabled\": [\"sbx\"]} /* off */}");
        sbx(&world, &["hook", "install", "gemini"]).run().exited(1);
        status("gemini", "the same settings switch hooks off");
        sbx(&world, &["hook", "status"]).run().exited(1);
        // A project brings settings too, and the agent takes them for its own.
        write(&world, ".claude/settings.json", "{}");
        sbx(&world, &["hook", "install", "claude"]).run().success();
        for file in [".claude/settings.json", ".claude/settings.local.json"] {
            world.write(file, "{\"disableAllHooks\": true} // off");
            status("claude", &format!("project/{file}' switches hooks off"));
            std::fs::remove_file(world.path(file)).unwrap();
        }
    });
}

/// A hook that is there, and that the agent does not ask about every command, does not work.
#[test]
fn a_hook_that_is_asked_about_something_else_is_found_out() {
    with_namespaces(|user| {
        for (kind, file) in
            KINDS.iter().zip([".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json"])
        {
            let world = World::new(user);
            sbx(&world, &["hook", "install", kind]).run().success();
            let text = read(&world, file).unwrap();
            for (old, new) in [
                ("\"matcher\": \"", "\"matcher\": \"Other"),
                ("\"type\": \"command\"", "\"type\": \"prompt\""),
                ("\"timeout\": ", "\"timeout\": 1, \"was\": "),
            ] {
                write(&world, file, &text.replacen(old, new, 1));
                let out = sbx(&world, &["hook", "status", kind]).run().exited(1);
                assert!(
                    out.out().contains("another one than this version of sbx writes"),
                    "{kind} {new}: {out}"
                );
            }
            sbx(&world, &["hook", "install", kind]).run().success();
            sbx(&world, &["hook", "status", kind]).run().success();
        }
    });
}

/// Settings in a repository of dotfiles, and the agent works there: a command cannot take the hook out.
#[test]
fn a_command_cannot_change_settings_that_are_a_link_to_its_workspace() {
    need!("python3");
    with_namespaces(|user| {
        let world = World::new(user);
        world.write("dot/claude.json", "{}\n");
        world.make_dir(&world.home.join(".claude"));
        std::os::unix::fs::symlink(world.path("dot/claude.json"), world.home.join(".claude/settings.json"))
            .unwrap();
        sbx(&world, &["hook", "install", "claude"]).run().success();
        let before = world.read("dot/claude.json");
        let change = "echo {} >dot/claude.json; rm -f dot/claude.json; mv dot moved; echo made >made";
        let out = agent(&world, "claude", change);
        assert_eq!(
            (world.read("dot/claude.json"), world.read("made").as_deref()),
            (before, Some("made\n")),
            "{out}"
        );
        sbx(&world, &["hook", "remove", "claude"]).run().success();
        agent(&world, "claude", change);
        assert!(!world.exists("dot/claude.json"));
    });
}

/// A hook that does not confine is found out, whatever it says.
#[test]
fn a_hook_that_lets_everything_through_is_found_out() {
    as_users(|user| {
        let world = World::new(user);
        for (answer, word) in [
            (
                "{\"hookSpecificOutput\": {\"updatedInput\": '\"$(jq .tool_input)\"'}}",
                "could read a file of your home",
            ),
            ("{\"hookSpecificOutput\": {\"updatedInput\": {\"command\": \"true\"}}}", "did not run"),
            ("", "did not answer with a command"),
        ] {
            need!("jq");
            let command = format!("echo '{answer}' # hook filter claude --profile workspace");
            sbx(&world, &["hook", "install", "claude"]).run();
            let text = read(&world, ".claude/settings.json").unwrap();
            let mut settings: serde_json::Value = serde_json::from_str(&text).unwrap();
            settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"] = command.into();
            write(&world, ".claude/settings.json", &settings.to_string());
            let out = sbx(&world, &["hook", "status", "claude"]).run().exited(1);
            assert!(out.out().contains(word), "{word}: {out}");
        }
        assert!(
            !world
                .home
                .read_dir()
                .unwrap()
                .any(|entry| { entry.unwrap().file_name().to_string_lossy().contains("sbx-hook") })
        );
    });
}

/// The plugin runs in a JavaScript engine, as in opencode.
#[test]
fn commands_of_opencode_are_confined_by_its_plugin() {
    need!("node");
    const LOAD: &str = "import(process.argv[1]).then(async (module) => {
        const hooks = await module.Sbx({ directory: process.cwd() });
        const output = { args: { command: process.argv[2], description: 'kept' } };
        await hooks['tool.execute.before']({ tool: process.argv[3] }, output);
        process.stdout.write(output.args.description + '\\n' + output.args.command);
    }).catch((error) => { console.error('refused: ' + error.message); process.exit(9); })";
    with_namespaces(|user| {
        let world = World::new(user);
        sbx(&world, &["hook", "install", "opencode"]).run().success();
        let plugin = world.home.join(".config/opencode/plugins/sbx.js");
        // Node takes a file for a module by its name.
        let module = world.home.join("plugin.mjs");
        let load = |command: &str, tool: &str| {
            std::fs::copy(&plugin, &module).unwrap();
            stage::give(&module, user);
            world.bare(["node", "-e", LOAD, module.to_str().unwrap(), command, tool]).run()
        };
        let changed = load("cat ~/.ssh/id_rsa; echo \"it's\"", "bash").success().out();
        let (kept, command) = changed.split_once('\n').unwrap();
        let out = world.bare(["bash", "-c", command]).run();
        assert!(kept == "kept" && out.out() == "it's\n" && !out.out().contains(SECRET), "{changed}: {out}");
        assert_eq!(load("x", "read").success().out(), "kept\nx");
        let text = std::fs::read_to_string(&plugin).unwrap();
        world.write(&plugin, text.replace(stage::sbx().to_str().unwrap(), "/nowhere/sbx"));
        load("echo", "bash")
            .exited(9)
            .says("refused: sbx: the hook failed, so the command was not run: see sbx hook status\n");
        let status = sbx(&world, &["hook", "status", "opencode"]).run().exited(1);
        assert!(status.out().contains("somebody changed the plugin"), "{status}");
        assert!(Path::new(&plugin).exists());
    });
}
