//! `sbx agent`: a whole agent in a run.

use super::{read, sbx, with_path, write};
use crate::namespaces::with_namespaces;
use sbx_tests::world::SECRET;
use sbx_tests::{User, World, as_users};
use serde_json::{Value, json};

/// An agent as Claude Code is: it keeps its state in the home directory, and runs what the model says, which is its
/// last argument here.
const AGENT: &str = r#"#!/bin/sh
echo "{\"numStartups\": 1}" >"$HOME/.claude.json.new" && cat "$HOME/.claude.json" 2>/dev/null >"$HOME/.claude.json.old"
mv "$HOME/.claude.json.new" "$HOME/.claude.json"
mkdir -p "$HOME/.claude/projects" && echo transcript >"$HOME/.claude/projects/one"
echo renewed >"$HOME/.claude/.credentials.json"
printf 'arguments:'; printf ' <%s>' "$@"; echo
for last do :; done
eval "$last"
"#;

/// What the model says: each line is something that a sandbox decides about.
const ATTEMPTS: &str = "cat ~/.ssh/id_rsa; echo '{\"hooks\": 1}' >~/.claude/settings.json; \
    echo bad >.claude/settings.json; echo made >made; echo key=$ANTHROPIC_API_KEY other=$AWS_SECRET_ACCESS_KEY; \
    cat ~/.claude/settings.json";

const SETTINGS: &str = "{\"model\": \"mine\"}\n";

fn world_of(user: &User) -> World {
    let world = World::new(user);
    world.script(world.home.join("bin/claude"), AGENT);
    write(&world, ".claude/settings.json", SETTINGS);
    write(&world, ".claude/.credentials.json", "login\n");
    write(
        &world,
        ".claude.json",
        r#"{"theme": "dark", "hasCompletedOnboarding": true, "mcpServers": {"x": {"command": "run-outside"}},
            "oauthAccount": {"accountUuid": "a"},
            "projects": {"/p.q": {"hasTrustDialogAccepted": true, "history": [1]}}}"#,
    );
    world
}

#[test]
fn an_agent_reaches_its_workspace_and_its_login() {
    with_namespaces(|user| {
        let world = world_of(user);
        let state = read(&world, ".claude.json");
        let out = sbx(&world, &["agent", "claude", "--", ATTEMPTS])
            .env("ANTHROPIC_API_KEY", "the-key")
            .env("AWS_SECRET_ACCESS_KEY", "no-key")
            .run();
        let text = out.out();
        assert!(text.starts_with("arguments: <--settings={\"sandbox\":{\"enabled\":false}}> <"), "{out}");
        assert!(!text.contains(SECRET) && text.contains("key=the-key other=\n"), "{out}");
        assert!(text.ends_with(SETTINGS), "{out}");
        assert_eq!(read(&world, ".claude/settings.json").as_deref(), Some(SETTINGS));
        assert_eq!(read(&world, ".claude.json"), state, "its state is its own");
        assert!(read(&world, ".claude/projects/one").is_none());
        assert_eq!(read(&world, ".claude/.credentials.json").as_deref(), Some("renewed\n"));
        assert_eq!(world.read("made").as_deref(), Some("made\n"));
        assert!(!world.exists(".claude/settings.json"));
        // The next session finds it again.
        let again = sbx(&world, &["agent", "claude", "--", "cat ~/.claude/projects/one"]).run().success();
        assert!(again.out().ends_with("transcript\n"), "{again}");
    });
}

/// The same without `sbx`: the attempts succeed.
#[test]
fn the_same_agent_outside_does_everything() {
    as_users(|user| {
        let world = world_of(user);
        let out = with_path(&world, world.bare(["sh", "-c", "exec claude \"$0\"", ATTEMPTS])).run();
        assert!(out.out().contains(SECRET), "{out}");
        assert_eq!(read(&world, ".claude/settings.json").as_deref(), Some("{\"hooks\": 1}\n"));
        assert!(read(&world, ".claude/projects/one").is_some());
    });
}

/// What later sessions outside would start does not come in, and what saves questions does.
#[test]
fn state_comes_as_a_copy_without_programs() {
    with_namespaces(|user| {
        let world = world_of(user);
        let out = sbx(&world, &["agent", "claude", "--", "cat ~/.claude.json.old"]).run().success();
        let start =
            out.out().find('{').and_then(|first| out.out()[first + 1..].find("\n{").map(|at| first + 2 + at));
        let copy: Value = serde_json::from_str(&out.out()[start.unwrap()..]).unwrap();
        let trusted = json!({ "/p.q": { "hasTrustDialogAccepted": true } });
        assert_eq!(copy, json!({ "theme": "dark", "hasCompletedOnboarding": true, "projects": trusted }));
    });
}

#[test]
fn an_agent_reaches_the_hosts_of_its_profile_alone() {
    with_namespaces(|user| {
        let world = world_of(user);
        let look = "getent hosts api.anthropic.com >/dev/null && echo listed; getent hosts evil.example || echo none";
        let out = sbx(&world, &["agent", "claude", "--", look]).run().success();
        assert!(out.out().ends_with("listed\nnone\n"), "{out}");
        assert!(out.err().contains("does not reach evil.example"), "{out}");
        let more = sbx(&world, &["agent", "claude", "--connect", "evil.example", "--", look]).run().success();
        assert!(!more.out().ends_with("none\n"), "{more}");
    });
}

/// Where settings could not be kept from being changed, nothing is started.
#[test]
fn without_namespaces_no_agent_is_started() {
    as_users(|user| {
        let world = world_of(user);
        let out = sbx(&world, &["agent", "claude", "--namespaces", "none", "--", "echo started"]).run();
        out.refused(125, &["full"]);
        let out = sbx(&world, &["agent", "claude", "--", "echo started"]).docker().run();
        assert!(out.code == Some(125) && !out.out().contains("started"), "{out}");
        assert_eq!(read(&world, ".claude/.credentials.json").as_deref(), Some("login\n"));
    });
}

#[test]
fn the_line_that_is_printed_does_the_same() {
    with_namespaces(|user| {
        let world = world_of(user);
        let key = |cmd: sbx_tests::Cmd| cmd.env("ANTHROPIC_API_KEY", "the-key");
        let words = [
            "agent",
            "claude",
            "--ro",
            "/etc/hostname",
            "--dry-run",
            "--",
            "it's",
            "echo $ANTHROPIC_API_KEY",
        ];
        let line = key(sbx(&world, &words)).run().success().out();
        assert!(line.starts_with("sbx run --profile agent:claude --env ANTHROPIC_API_KEY --ro "), "{line}");
        assert!(!line.contains("the-key") && !world.home.join(".claude/projects").exists(), "{line}");
        let program = sbx_tests::stage::sbx().display();
        let line = line.replacen("sbx", &program.to_string(), 1);
        let out = key(with_path(&world, world.bare(["sh", "-c", &line]))).run().success();
        let same: Vec<&str> = words.iter().copied().filter(|word| *word != "--dry-run").collect();
        let agent = key(sbx(&world, &same)).run().success();
        assert!(out.out().ends_with("<it's> <echo $ANTHROPIC_API_KEY>\nthe-key\n"), "{out}");
        assert_eq!(out.out(), agent.out());
    });
}

#[test]
fn users_add_agents_of_their_own() {
    with_namespaces(|user| {
        let world = world_of(user);
        world.script(
            world.home.join("bin/mine"),
            "#!/bin/sh\ncat ~/.mine/settings; echo x >>~/.mine/settings\n",
        );
        write(&world, ".mine/settings", "set\n");
        let document = json!({
            "description": "an agent of mine", "extends": "workspace", "require": "full",
            "agent": { "programs": ["no-such-program", "mine"] },
            "paths": { "read": ["${HOME}/.mine"] },
        });
        let place = ".config/sbx/profiles/agents";
        write(&world, format!("{place}/mine.json"), &document.to_string());
        write(&world, format!("{place}/broken.json"), "{\"agent\": {\"program\": 1}}");
        write(&world, format!("{place}/silent.json"), "{\"extends\": \"workspace\"}");
        let list = sbx(&world, &["agent", "list"]).run().success();
        assert!(list.out().contains("mine      an agent of mine\n"), "{list}");
        assert!(list.out().contains("did you mean 'programs'?"), "{list}");
        let out = sbx(&world, &["agent", "mine"]).run();
        assert_eq!(
            (out.out().as_str(), read(&world, ".mine/settings").as_deref()),
            ("set\n", Some("set\n")),
            "{out}"
        );
        let shown = sbx(&world, &["agent", "show", "mine"]).run().success();
        assert!(shown.out().contains("reads of your home:\n  ${HOME}/.mine\n"), "{shown}");
        // Whoever takes the hint at its word gets there.
        for name in ["mien", "agent:mien"] {
            sbx(&world, &["agent", name]).run().refused(125, &["did you mean 'agent:mine'?"]);
        }
        sbx(&world, &["agent", "silent"]).run().refused(125, &["names no program"]);
        sbx(&world, &["agent", "./mine"]).run().refused(125, &["is no name of an agent"]);
        sbx(&world, &["agent", "mine", "-p", "minimal"]).run().refused(125, &["takes no --profile"]);
        // No file takes the place of a built-in agent.
        write(&world, format!("{place}/claude.json"), "{}");
        sbx(&world, &["agent", "claude", "--", "true"]).run().refused(125, &["has the same name"]);
    });
}

/// Settings in another place than the profile's are not protected there, and may lie in the workspace.
#[test]
fn an_agent_whose_settings_are_elsewhere_is_not_started() {
    with_namespaces(|user| {
        let world = world_of(user);
        world.write("conf/settings.json", SETTINGS);
        let start = |place: &str| {
            let change = "echo bad >\"$CLAUDE_CONFIG_DIR/settings.json\"; echo made >made";
            sbx(&world, &["agent", "claude", "--", change]).env("CLAUDE_CONFIG_DIR", place).run()
        };
        start(world.path("conf").to_str().unwrap()).refused(125, &["CLAUDE_CONFIG_DIR", "unset it"]);
        assert_eq!(world.read("conf/settings.json").as_deref(), Some(SETTINGS));
        assert!(!world.exists("made"));
        start(&format!("{}/.claude/", world.home.display()));
        assert_eq!(world.read("made").as_deref(), Some("made\n"));
        assert_eq!(read(&world, ".claude/settings.json").as_deref(), Some(SETTINGS));
    });
}

/// Settings in a repository of dotfiles, and the agent works there.
#[test]
fn settings_that_are_a_link_to_the_workspace_stay_as_they_are() {
    with_namespaces(|user| {
        let world = world_of(user);
        world.write("dot/settings.json", SETTINGS);
        let link = world.home.join(".claude/settings.json");
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(world.path("dot/settings.json"), &link).unwrap();
        let change = "echo bad >dot/settings.json; echo bad >~/.claude/settings.json; rm -f dot/settings.json; \
            mv dot moved; echo made >made";
        let out = sbx(&world, &["agent", "claude", "--", change]).run();
        assert_eq!(world.read("dot/settings.json").as_deref(), Some(SETTINGS), "{out}");
        assert_eq!(world.read("made").as_deref(), Some("made\n"));
    });
}
