//! `sbx hook install` and `remove`: what becomes of the settings that are there.

use super::{read, sbx, write};
use sbx_tests::{World, as_users};
use std::os::unix::fs::{PermissionsExt, symlink};

const SETTINGS: &str = "{\n\t// mine\n  \"model\":\"x\",\"hooks\" : { \"PreToolUse\": [\n\
    {\"matcher\":\"Bash\", \"hooks\":[{\"type\":\"command\",\"command\":\"own-hook\"}]} ],\"Stop\":[] } ,  }\n\n";

/// Settings that agents may have, by the agent and its file.
const CASES: [(&str, &str, Option<&str>); 9] = [
    ("claude", ".claude/settings.json", Some(SETTINGS)),
    ("claude", ".claude/settings.json", Some("{}")),
    ("claude", ".claude/settings.json", Some("")),
    ("claude", ".claude/settings.json", None),
    ("codex", ".codex/hooks.json", Some("{\"hooks\":{\"PreToolUse\":[]}}\r\n")),
    ("codex", ".codex/hooks.json", None),
    ("gemini", ".gemini/settings.json", Some("{ /* x */ \"ui\": {\"theme\": \"a\"} }")),
    (
        "cursor",
        ".cursor/hooks.json",
        Some("{\"version\": 1, \"hooks\": {\"preToolUse\": [{\"command\": \"./own\"}]}}"),
    ),
    ("opencode", ".config/opencode/plugins/sbx.js", None),
];

#[test]
fn settings_are_put_back_byte_for_byte() {
    as_users(|user| {
        for (agent, file, before) in CASES {
            let world = World::new(user);
            if let Some(text) = before {
                write(&world, file, text);
                let mode = PermissionsExt::from_mode(0o640);
                std::fs::set_permissions(world.home.join(file), mode).unwrap();
            }
            let mode = || world.home.join(file).metadata().map(|meta| meta.permissions().mode() & 0o777).ok();
            let old_mode = mode();
            for _ in 0..2 {
                sbx(&world, &["hook", "install", agent]).run();
                let text = read(&world, file).unwrap();
                assert_eq!(
                    text.matches(&format!("filter {agent} ")).count().max(text.matches("\"filter\"").count()),
                    1,
                    "{text}"
                );
                assert_eq!(old_mode.unwrap_or(0o600), mode().unwrap());
            }
            // Another profile: one hook all the same.
            sbx(&world, &["hook", "install", agent, "--profile", "read-only"]).run();
            assert!(read(&world, file).unwrap().contains("read-only"));
            assert!(!read(&world, file).unwrap().contains("workspace"));
            sbx(&world, &["hook", "remove", agent]).run().success();
            assert_eq!((read(&world, file).as_deref(), mode()), (before, old_mode), "{agent}");
            let again = sbx(&world, &["hook", "remove", agent]).run().success();
            assert!(again.out().contains("there is no hook in"), "{again}");
        }
    });
}

/// What somebody else changed since stays: only the hook goes.
#[test]
fn of_settings_that_changed_since_only_the_hook_is_taken() {
    as_users(|user| {
        for (agent, file, before) in
            CASES.iter().filter(|(agent, _, before)| *agent != "opencode" && before.is_some())
        {
            let world = World::new(user);
            write(&world, file, before.unwrap());
            sbx(&world, &["hook", "install", agent]).run();
            let text = read(&world, file).unwrap();
            let changed = text.replacen('{', "{ \"added\": [1,  2],", 1);
            write(&world, file, &changed);
            let out = sbx(&world, &["hook", "remove", agent]).run().success();
            assert!(out.out().contains("which has changed since"), "{out}");
            let after = read(&world, file).unwrap();
            assert!(after.contains("\"added\": [1,  2]") && !after.contains("hook filter"), "{after}");
            for kept in ["// mine", "own-hook", "\"Stop\":[]", "/* x */", "./own", "\"model\":\"x\""] {
                assert_eq!(before.unwrap().contains(kept), after.contains(kept), "{kept}: {after}");
            }
        }
    });
}

#[test]
fn what_cannot_be_understood_is_left_alone() {
    as_users(|user| {
        let world = World::new(user);
        for (text, why) in [
            ("{\"hooks\": [}", "correct it first"),
            ("[1]", "is no object"),
            ("{\"hooks\": 3}", "'hooks' in it is no object"),
            ("{\"hooks\": {\"PreToolUse\": \"x\"}}", "'hooks.PreToolUse' in it is no list"),
        ] {
            write(&world, ".claude/settings.json", text);
            sbx(&world, &["hook", "install", "claude"]).run().refused(125, &[why]);
            assert_eq!(read(&world, ".claude/settings.json").as_deref(), Some(text));
        }
        write(&world, ".config/opencode/plugins/sbx.js", "mine");
        sbx(&world, &["hook", "install", "opencode"]).run().refused(125, &["it is not one of sbx"]);
        assert_eq!(read(&world, ".config/opencode/plugins/sbx.js").as_deref(), Some("mine"));
        std::fs::remove_file(world.home.join(".claude/settings.json")).unwrap();
        std::fs::create_dir(world.home.join(".claude/settings.json")).unwrap();
        sbx(&world, &["hook", "install", "claude"]).run().refused(125, &["no file of settings"]);
        std::fs::remove_dir(world.home.join(".claude/settings.json")).unwrap();
        symlink("../nowhere", world.home.join(".claude/settings.json")).unwrap();
        sbx(&world, &["hook", "install", "claude"]).run().refused(125, &["a link that leads nowhere"]);
        assert!(world.home.join(".claude/settings.json").is_symlink());
        sbx(&world, &["hook", "install", "claud"]).run().refused(125, &["claude"]);
        sbx(&world, &["hook", "install", "codex", "-p", "workspac"])
            .run()
            .refused(125, &["did you mean 'workspace'?"]);
    });
}

/// Users keep their settings in a repository, and link to them.
#[test]
fn a_link_to_settings_stays_a_link() {
    as_users(|user| {
        let world = World::new(user);
        write(&world, "dotfiles/claude.json", "{}\n");
        world.make_dir(&world.home.join(".claude"));
        let link = world.home.join(".claude/settings.json");
        symlink("../dotfiles/claude.json", &link).unwrap();
        sbx(&world, &["hook", "install", "claude"]).run();
        assert!(
            link.is_symlink() && read(&world, "dotfiles/claude.json").unwrap().contains("hook filter claude")
        );
        sbx(&world, &["hook", "remove", "claude"]).run().success();
        assert!(link.is_symlink());
        assert_eq!(read(&world, "dotfiles/claude.json").as_deref(), Some("{}\n"));
    });
}
