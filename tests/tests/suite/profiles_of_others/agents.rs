//! Settings of agents: what a profile made of them lets through and what it refuses.

use super::made_of;
use sbx_tests::servers::UnixServer;
use sbx_tests::world::SECRET;
use sbx_tests::{World, as_users, need};
use serde_json::Value;

/// Reads a secret, writes in the workspace, in a directory of it, and beside it.
const SCRIPT: &str =
    "cat \"$HOME/.ssh/id_rsa\"; echo x > made; echo x > fixed/made; echo x > \"$HOME/beside/made\"; echo end";

/// What a document allows: the secret, and what is written.
#[derive(Debug, PartialEq, Eq)]
struct Allowed {
    secret: bool,
    made: bool,
    fixed: bool,
    beside: bool,
}

fn allowed(world: &World, language: &str, document: &str) -> Allowed {
    world.make_dir(&world.path("fixed"));
    world.make_dir(&world.home.join("beside"));
    let profile = made_of(world, language, document);
    let out = world.sbx(["run", "-p"]).arg(&profile).args(["--", "/bin/sh", "-c", SCRIPT]).run();
    assert!(out.out().ends_with("end\n"), "{language}: {document}: {out}");
    let written = |path: std::path::PathBuf| std::fs::remove_file(path).is_ok();
    Allowed {
        secret: out.out().contains(SECRET),
        made: written(world.path("made")),
        fixed: written(world.path("fixed/made")),
        beside: written(world.home.join("beside/made")),
    }
}

/// Each document, and what it allows: whether the secret is read, and the three files written.
fn hold(language: &str, cases: &[(&str, [bool; 4])]) {
    as_users(|user| {
        let world = World::new(user);
        for (document, [secret, made, fixed, beside]) in cases {
            let meant = Allowed { secret: *secret, made: *made, fixed: *fixed, beside: *beside };
            assert_eq!(allowed(&world, language, document), meant, "{language}: {document}");
        }
    });
}

/// A server outside that listens in the workspace. The twins have what opens UNIX sockets in their settings.
#[test]
fn unix_sockets_are_closed_where_the_settings_close_them() {
    need!("python3");
    let script = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('server')";
    as_users(|user| {
        let world = World::new(user);
        let srt =
            |more: &str| format!("{{\"network\":{{{more}}},\"filesystem\":{{\"allowWrite\":[\".\"]}}}}");
        let claude = |more: &str| format!("{{\"sandbox\":{{\"enabled\":true,\"network\":{{{more}}}}}}}");
        let all = "\"allowAllUnixSockets\":true";
        let codex = "sandbox_mode = 'workspace-write'\n";
        let open = format!("{codex}[sandbox_workspace_write]\nnetwork_access = true\n");
        let by_proxy = format!("{open}[features]\nnetwork_proxy = true\n");
        for (language, document, connects) in [
            ("srt", srt(""), false),
            ("srt", srt(all), true),
            ("claude", "{}".to_string(), false),
            ("claude", claude(""), false),
            ("claude", claude(all), true),
            ("codex", "sandbox_mode = 'read-only'\n".to_string(), false),
            ("codex", codex.to_string(), false),
            ("codex", open, true),
            ("codex", by_proxy, false),
        ] {
            let server = UnixServer::at(&world.path("server"));
            let profile = made_of(&world, language, &document);
            let out = world.sbx(["run", "-p"]).arg(&profile).args(["--", "python3", "-c", script]).run();
            let out = if connects { out.success() } else { out.failed() };
            assert_eq!(server.connections() > 0, connects, "{document}: {out}");
            std::fs::remove_file(world.path("server")).unwrap();
        }
    });
}

#[test]
fn settings_of_srt_hold() {
    let of = |files: &str| format!("{{\"network\":{{}},\"filesystem\":{{{files}}}}}");
    hold(
        "srt",
        &[
            (&of("\"allowWrite\":[\".\",\"~/beside\"]"), [true, true, true, true]),
            (
                &of("\"denyRead\":[\"~/.ssh\"],\"allowWrite\":[\".\"],\"denyWrite\":[\"fixed\"]"),
                [false, true, false, false],
            ),
            (
                &of("\"denyRead\":[\"~\"],\"allowRead\":[\".\"],\"allowWrite\":[\".\"]"),
                [false, true, true, false],
            ),
            (&of("\"denyRead\":[]"), [true, false, false, false]),
        ],
    );
}

#[test]
fn settings_of_claude_code_hold() {
    hold(
        "claude",
        &[
            ("{}", [true, true, true, false]),
            ("{\"permissions\":{\"allow\":[\"Edit(~/beside/**)\"]}}", [true, true, true, true]),
            (
                "{\"permissions\":{\"deny\":[\"Read(~/.ssh/**)\",\"Edit(./fixed/**)\"]}}",
                [false, true, false, false],
            ),
            ("{\"permissions\":{\"deny\":[\"Read(~)\"]}}", [false, true, true, false]),
            (
                "{\"permissions\":{\"deny\":[\"Edit(/fixed)\"],\"ask\":[\"Read(~/.ssh/id_rsa)\"]}}",
                [false, true, false, false],
            ),
            (
                "{\"sandbox\":{\"filesystem\":{\"denyRead\":[\"~/.ssh\"],\"denyWrite\":[\".\"]}}}",
                [false, false, false, false],
            ),
        ],
    );
}

/// These tools pass over a directory that is to be written to and is not there.
#[test]
fn a_directory_that_is_not_there_keeps_nothing_from_running() {
    as_users(|user| {
        let world = World::new(user);
        for (language, document) in [
            ("srt", "{\"network\":{},\"filesystem\":{\"denyRead\":[],\"allowWrite\":[\"~/beside\"]}}"),
            ("claude", "{\"sandbox\":{\"enabled\":true,\"filesystem\":{\"allowWrite\":[\"~/beside\"]}}}"),
            (
                "codex",
                "sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nwritable_roots = [\"~/beside\"]\n",
            ),
            ("cursor", "{\"type\":\"workspace_readwrite\",\"additionalReadwritePaths\":[\"~/beside\"]}"),
        ] {
            let profile = made_of(&world, language, document);
            let beside = world.home.join("beside");
            for is_there in [false, true] {
                let script = "(echo x > \"$HOME/beside/made\") 2>/dev/null; echo end";
                let out = world.sbx(["run", "-p"]).arg(&profile).args(["--", "/bin/sh", "-c", script]).run();
                assert_eq!(out.out(), "end\n", "{language}: {out}");
                assert_eq!(beside.join("made").exists(), is_there, "{language}: {out}");
                world.make_dir(&beside);
            }
            std::fs::remove_dir_all(beside).unwrap();
        }
    });
}

/// Paths of rules are patterns of gitignore: what is escaped in them stands for itself.
#[test]
fn escaped_paths_of_claude_code_are_about_the_files_that_they_name() {
    as_users(|user| {
        let world = World::new(user);
        world.write("my secrets/k", SECRET);
        world.write("mysecrets/k", "open");
        let script = "cat 'my secrets/k' mysecrets/k; echo end";
        for (rule, shown) in [
            ("Read(./my\\\\ secrets/**)", "openend\n".to_string()),
            ("Read(./mysecrets/**)", format!("{SECRET}end\n")),
        ] {
            let profile = made_of(&world, "claude", format!("{{\"permissions\":{{\"deny\":[\"{rule}\"]}}}}"));
            let out = world.sbx(["run", "-p"]).arg(&profile).args(["--", "/bin/sh", "-c", script]).run();
            assert_eq!(out.out(), shown, "{rule}: {out}");
        }
    });
}

#[test]
fn a_blocked_command_is_not_executed() {
    as_users(|user| {
        let world = World::new(user);
        let script = "head -c4 /etc/passwd; echo end";
        for (rule, shown) in [("Bash(head:*)", "end\n"), ("Bash(tail:*)", "rootend\n")] {
            let profile = made_of(&world, "claude", format!("{{\"permissions\":{{\"deny\":[\"{rule}\"]}}}}"));
            let out = world.sbx(["run", "-p"]).arg(&profile).args(["--", "/bin/sh", "-c", script]).run();
            assert_eq!(out.out(), shown, "{rule}: {out}");
        }
    });
}

#[test]
fn modes_of_codex_hold() {
    let writes = "sandbox_mode = \"workspace-write\"\n";
    hold(
        "codex",
        &[
            ("sandbox_mode = \"read-only\"\n", [true, false, false, false]),
            (writes, [true, true, true, false]),
            (
                &format!("{writes}[sandbox_workspace_write]\nwritable_roots = [\"~/beside\"]\n"),
                [true, true, true, true],
            ),
        ],
    );
}

#[test]
fn permission_profiles_of_codex_hold() {
    let of = |lines: &str| {
        format!(
            "default_permissions = \"x\"\n[permissions.x]\nextends = \":workspace\"\n\
             [permissions.x.filesystem]\n{lines}\n"
        )
    };
    hold(
        "codex",
        &[
            ("default_permissions = \":workspace\"\n", [true, true, true, false]),
            (&of("\"~/.ssh\" = \"deny\"\n\"~/beside\" = \"write\""), [false, true, true, true]),
            (&of("\":workspace_roots\" = { \"fixed\" = \"read\" }"), [true, true, false, false]),
            (&of("\":root\" = \"deny\"\n\":minimal\" = \"read\""), [false, true, true, false]),
            (&of("\":workspace_roots\" = { \".\" = \"read\" }"), [true, false, false, false]),
        ],
    );
}

#[test]
fn settings_of_cursor_hold() {
    hold(
        "cursor",
        &[
            ("{}", [true, true, true, false]),
            (
                "{\"type\":\"workspace_readonly\",\"additionalReadwritePaths\":[\"~/beside\"]}",
                [true, false, false, false],
            ),
            (
                "{\"readBoundary\":\"workspace\",\"additionalReadwritePaths\":[\"~/beside\"]}",
                [false, true, true, true],
            ),
            ("{\"additionalReadonlyPaths\":[\"./fixed\"]}", [true, true, false, false]),
        ],
    );
}

/// The network that a document makes.
fn network(world: &World, language: &str, document: &str) -> Value {
    let profile = made_of(world, language, document);
    let profile: Value = serde_json::from_slice(&std::fs::read(profile).unwrap()).unwrap();
    profile["network"].clone()
}

#[test]
fn hosts_become_rules() {
    as_users(|user| {
        let world = World::new(user);
        let rules = |list: &[&str]| serde_json::json!(list);
        let srt = "{\"network\":{\"allowedDomains\":[\"a.example.org\",\"*.b.example.org:8443\",\"localhost:1\"],\
                   \"deniedDomains\":[\"x.b.example.org\",\"*:22\"]},\"filesystem\":{}}";
        let of_srt = network(&world, "srt", srt);
        assert_eq!(of_srt["mode"], "allow");
        assert_eq!(of_srt["connect"], rules(&["a.example.org:80,443", "*.b.example.org:8443"]));
        assert_eq!(of_srt["deny"], rules(&["x.b.example.org"]));
        let closed = "{\"network\":{\"allowedDomains\":[\"a.example.org\"],\"deniedDomains\":[\"*\"]},\
                      \"filesystem\":{}}";
        assert_eq!(network(&world, "srt", closed), Value::Null);
        let claude = "{\"permissions\":{\"allow\":[\"WebFetch(domain:a.example.org)\"]}}";
        assert_eq!(network(&world, "claude", claude)["connect"], rules(&["a.example.org:80,443"]));
        let codex =
            "sandbox_mode = \"workspace-write\"\nsandbox_workspace_write = { network_access = true }\n";
        assert_eq!(network(&world, "codex", codex)["mode"], "host");
        let codex = "default_permissions = \"x\"\n[permissions.x.network]\nenabled = true\n\
                     domains = { \"**.example.org\" = \"allow\", \"y.example.org\" = \"deny\" }\n";
        let of_codex = network(&world, "codex", codex);
        assert_eq!(of_codex["connect"], rules(&["example.org:80,443", "*.example.org:80,443"]));
        assert_eq!(of_codex["deny"], rules(&["y.example.org"]));
        let cursor = "{\"networkPolicy\":{\"default\":\"allow\",\"deny\":[\"z.example.org\"]}}";
        assert_eq!(network(&world, "cursor", cursor)["connect"], rules(&["*:443/tls", "*:80/http"]));
    });
}
