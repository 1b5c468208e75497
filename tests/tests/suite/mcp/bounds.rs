//! What no argument, and no message, gets out of the server.

use super::Client;
use sbx_tests::{User, World, in_worlds, kernel, processes};
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn no_argument_widens_the_policy() {
    in_worlds(|world| {
        let marker = processes::marker();
        let mut client = Client::start(world, &["-t", "30s"]);
        let wide = |key: &str, value: Value| {
            let mut arguments = json!({"command": "touch made"});
            arguments[key] = value;
            arguments
        };
        // What a run could be asked for otherwise.
        for key in ["flags", "profile", "ro", "rw", "net", "env", "workspace", "argv", "shell"] {
            client.refused("execute", wide(key, json!("/")), &["unknown field", key]);
        }
        let outside = world.outside.to_str().unwrap();
        std::os::unix::fs::symlink(outside, world.path("link")).unwrap();
        for directory in ["..", "/", outside, "link", "link/dir", "../../outside", "~"] {
            let words: &[&str] = if directory == "~" { &["no such file"] } else { &["not in the workspace"] };
            client.refused("execute", wide("cwd", json!(directory)), words);
        }
        client.refused("execute", wide("timeout", json!(31)), &["longer than the 30 s"]);
        for time in [json!(0), json!(-1), json!(1e300)] {
            client.refused("execute", wide("timeout", time), &["timeout"]);
        }
        client.refused("execute", wide("input", json!("x".repeat(1 << 20) + "x")), &["input", "longer than"]);
        client.refused("execute", json!({"command": "x".repeat(200_000)}), &["command", "longer than"]);
        client.refused("execute", json!({"command": "a\0b"}), &["NUL"]);
        client.refused("execute", json!({"command": " \n"}), &["empty"]);
        client.refused("execute", json!({}), &["command"]);
        assert!(!world.exists("made"));
        // Its twin, with everything that may be asked for.
        world.make_dir(&world.path("inner"));
        let asked = json!({"command": "cat > made", "cwd": "inner", "timeout": 29.5, "input": marker});
        assert_eq!(client.run_with(asked)["status"], 0);
        assert_eq!(world.read("inner/made"), Some(marker));
    });
}

/// The server's own limits take none of the profile's away.
#[test]
fn limits_of_the_profile_hold() {
    in_worlds(|world| {
        let file = world
            .write("../p.json", r#"{"extends": "workspace", "limits": {"timeout": "1s", "output": "100"}}"#);
        let mut client = Client::start(world, &["-p", file.to_str().unwrap()]);
        let run = client.run("head -c 5000 /dev/zero | tr '\\0' x; sleep 9");
        assert_eq!(run["cause"], "timeout", "{run}");
        assert!(run["stdout"].as_str().unwrap().len() < 400, "{run}");
        client.refused("execute", json!({"command": "true", "timeout": 2}), &["longer than the 1 s"]);
    });
}

#[test]
fn a_command_that_begins_with_a_dash_is_a_command() {
    let world = World::new(&User::current());
    let mut client = Client::start(&world, &[]);
    for command in ["--rw=/", "-c", "-i", "--", "--login"] {
        let run = client.run(command);
        assert_eq!((&run["cause"], &run["status"]), (&json!("exited"), &json!(127)), "{command}: {run}");
    }
    assert_eq!(client.run("echo - --; echo -n x")["stdout"], "- --\nx");
}

#[test]
fn what_commands_write_is_bounded_and_need_not_be_text() {
    let world = World::new(&User::current());
    let mut client = Client::start(&world, &["--max-output", "10K"]);
    let run = client
        .run("echo begin; head -c 3M /dev/zero | tr '\\0' x; echo; echo end; printf '\\377\\033[2J' >&2");
    let stdout = run["stdout"].as_str().unwrap();
    assert!(
        stdout.len() < 12_000 && stdout.starts_with("begin\n") && stdout.ends_with("\nend\n"),
        "{}",
        stdout.len()
    );
    assert!(stdout.contains("bytes left out"));
    assert!(run["stdout_left_out"].as_u64().unwrap() > 3_000_000, "{}", run["stdout_left_out"]);
    assert_eq!(run["stderr"], "\u{fffd}\u{1b}[2J");
    world.sbx(["mcp", "--max-output", "none"]).run().refused(125, &["--max-output", "4194304"]);
}

#[test]
fn a_message_that_is_none_ends_nothing() {
    let world = World::new(&User::current());
    let mut client = Client::start(&world, &[]);
    client.line(b"");
    client.line(b"this is no JSON");
    client.line(br#"{"jsonrpc":"2.0","id":77,"method":5}"#);
    client.line(br#"{"jsonrpc":"2.0","method":"notifications/unheard-of"}"#);
    client.line(br#"{"jsonrpc":"2.0","id":4711,"result":{}}"#);
    client.line(&vec![b'x'; 9 << 20]);
    let code = |code: i32| move |message: &Value| message["error"]["code"] == code;
    client.wait_for("an answer to what is no JSON", code(-32700));
    client
        .wait_for("an answer to what is no request", |message| message["id"] == 77 && code(-32600)(message));
    let too_long =
        |message: &Value| message["error"]["message"].as_str().unwrap_or_default().contains("longer than");
    client.wait_for("an answer to what is too long", too_long);
    let unknown = client.request("tools/call", json!({"name": "widen", "arguments": {}}));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("unknown tool"), "{unknown}");
    assert_eq!(client.request("no/method", json!({}))["error"]["code"], -32601);
    assert_eq!(client.run("echo still")["stdout"], "still\n");
}

#[test]
fn a_flag_whose_meaning_commands_could_change_is_refused() {
    let world = World::new(&User::current());
    world.write("data/file", "");
    let profile = r#"{"description": "own", "extends": "workspace"}"#;
    world.write("own.json", profile);
    let elsewhere = world.write(world.outside.join("own.json"), profile);
    let outside = world.outside.to_str().unwrap();
    let child = format!(r#"{{"description": "child", "extends": "{}"}}"#, world.path("own.json").display());
    let child = world.write(world.home.join("child.json"), &child);
    let of_elsewhere = format!(r#"{{"description": "child", "extends": "{}"}}"#, elsewhere.display());
    let of_elsewhere = world.write(world.home.join("of-elsewhere.json"), &of_elsewhere);
    let (child, of_elsewhere) = (child.to_str().unwrap(), of_elsewhere.to_str().unwrap());
    for flags in [
        &["--profile", child][..],
        &["--profile", of_elsewhere, "--rw", outside],
        &["--ro", "data"][..],
        &["--rwx", "data/file"],
        &["--rw", outside, "--ro", "../../outside/dir"],
        &["--profile", "./own.json"],
    ] {
        world.sbx(["mcp"].iter().chain(flags)).run().refused(125, &["commands may change"]);
    }
    // What a link of the workspace leads to when the server starts, is meant: commands may change the link.
    let link = world.path("link");
    std::os::unix::fs::symlink(outside, &link).unwrap();
    let mut client = Client::start(&world, &["--profile", "link/own.json"]);
    std::fs::remove_file(&link).unwrap();
    world.write("link/own.json", r#"{"description": "no programs", "extends": "minimal"}"#);
    let run = client.run("sh -c 'echo started'");
    assert_eq!(run["stdout"], "started\n", "{run}");
    for flags in [
        &["--ro", outside][..],
        &["--profile", elsewhere.to_str().unwrap()],
        &["--profile", of_elsewhere],
        &["--deny", "data"],
    ] {
        Client::start(&world, flags).leave().success();
    }
}

#[test]
fn no_command_can_put_another_directory_in_the_place_of_the_workspace() {
    let world = World::new(&User::current());
    let workspace = world.outside.join("dir");
    let serve = |writable: &Path| {
        let workspace = workspace.to_str().unwrap();
        world.sbx(["mcp", "--workspace", workspace, "--rw", writable.to_str().unwrap()]).run()
    };
    serve(&world.outside).refused(125, &["refused the workspace", "commands may change"]);
    // Its twin: a directory beside it.
    let beside = world.outside.join("beside");
    world.make_dir(&beside);
    serve(&beside).success();
}

#[test]
fn a_command_is_not_run_when_a_link_has_come_into_a_path_of_the_policy() {
    let world = World::new(&User::current());
    if !kernel::promises(1) {
        return;
    }
    let (opened, moved) = (world.outside.join("dir"), world.outside.join("moved"));
    let mut client = Client::start(&world, &["--ro", opened.to_str().unwrap()]);
    let read = format!("cat {}/*", opened.display());
    assert_eq!(client.run(&read)["stdout"], "inner\n");
    std::fs::rename(&opened, &moved).unwrap();
    std::os::unix::fs::symlink(world.home.join(".ssh"), &opened).unwrap();
    client.refused("execute", json!({"command": read}), &["a link has come into the path", "dir"]);
    std::fs::remove_file(&opened).unwrap();
    std::fs::rename(&moved, &opened).unwrap();
    assert_eq!(client.run(&read)["stdout"], "inner\n");
}

#[test]
fn a_list_of_commands_does_not_depend_on_the_directory_of_a_call() {
    let world = World::new(&User::current());
    world.script("tool", "#!/bin/sh\necho the tool\n");
    world.script("inner/tool", "#!/bin/sh\necho another\n");
    let list = ["--allow-command", "./tool", "--allow-command", "bash", "--allow-command", "sh"];
    let mut client = Client::start(&world, &list);
    assert_eq!(client.run("./tool")["stdout"], "the tool\n");
    let run = client.run_with(json!({"command": "./tool", "cwd": "inner"}));
    assert_eq!((&run["stdout"], &run["status"]), (&json!(""), &json!(126)), "{run}");
    assert_eq!(client.run_with(json!({"command": "../tool", "cwd": "inner"}))["stdout"], "the tool\n");
}

#[test]
fn a_server_says_at_its_start_what_it_cannot_do() {
    let world = World::new(&User::current());
    let unsafe_here = [
        (&["--cwd", "."][..], "--cwd"),
        (&["--exec"], "--exec"),
        (&["--keep-background"], "--keep-background"),
        (&["--pass-fd", "3"], "--pass-fd"),
        (&["--report", "r"], "read_report"),
        (&["-v"], "--verbose"),
        (&["--dangerously-unconfined"], "never run without confinement"),
        (&["--profile", "minimla"], "did you mean 'minimal'"),
        (&["--concurrent", "0"], "--concurrent"),
        (&["--", "ls"], "ls"),
    ];
    for (flags, word) in unsafe_here {
        world.sbx(["mcp"].iter().chain(flags)).run().refused(125, &[word]);
    }
    // The home is nobody's workspace by accident.
    world.sbx(["mcp"]).cwd(&world.home).run().refused(125, &["no workspace", "--workspace"]);
    world.sbx(["mcp"]).run().success().prints("");
}

#[test]
fn the_directory_of_the_server_stays_the_workspace() {
    in_worlds(|world| {
        if !kernel::promises(1) {
            return;
        }
        // A work tree in it would be the workspace of a run that begins there.
        world.write("inner/.git/HEAD", "ref: refs/heads/main\n");
        let mut client = Client::start(world, &[]);
        let run = client.run_with(json!({"command": "echo x > ../above && touch here", "cwd": "inner"}));
        assert_eq!(run["status"], 0, "{run}");
        assert!(world.exists("above") && world.exists("inner/here"));
    });
}

/// What no server can have, its help does not list.
#[test]
fn the_help_lists_the_flags_that_a_server_takes() {
    in_worlds(|world| {
        let help = world.sbx(["mcp", "--help"]).run().success().out();
        for (flag, is_taken) in
            [("--ro <PATH>", true), ("--timeout <", true), ("--cwd <", false), ("--pass-fd <", false)]
        {
            assert_eq!(help.contains(flag), is_taken, "{flag}: {help}");
        }
        world.sbx(["mcp", "--cwd", "x"]).run().exited(125).says("sbx mcp takes no --cwd");
        // The twin.
        assert!(world.sbx(["run", "--help"]).run().success().out().contains("--cwd <"));
    });
}
