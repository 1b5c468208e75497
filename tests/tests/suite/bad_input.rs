//! Whatever is wrong is reported before the command starts: the right exit code, one sentence, a suggestion.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use sbx_tests::{Output, User, World, as_users, have, in_worlds, need};

fn world() -> World {
    World::new(&User::ordinary())
}

/// `sbx run FRONT -- touch made` must refuse, without running the command.
#[track_caller]
fn refuses(world: &World, code: i32, front: &[&str], words: &[&str]) -> Output {
    let out = world.sbx([&["run"], front, &["--", "touch", "made"]].concat()).run().refused(code, words);
    assert!(!world.exists("made"), "the command was run: {out}");
    out
}

#[test]
fn unknown_names_are_refused_with_the_nearest_one() {
    in_worlds(|world| {
        refuses(world, 125, &["-p", "minimale"], &["minimale", "minimal"]);
        refuses(world, 125, &["-p", "netwrok"], &["netwrok", "network"]);
        refuses(world, 125, &["--profil", "minimal"], &["--profil"]);
        refuses(world, 125, &["--no-such-flag"], &["--no-such-flag"]);
        refuses(world, 125, &["--allow-calls", "opennat"], &["opennat", "openat"]);
        refuses(world, 125, &["--deny-calls", "exeve"], &["exeve", "execve"]);
        refuses(world, 125, &["--allow-calls", "@file-sistem"], &["@file-sistem", "@file-system"]);
        refuses(world, 125, &["--allow-calls", "openat[reed]"], &["reed", "read"]);
        refuses(world, 125, &["--on-violation", "explode"], &["explode"]);
        refuses(world, 125, &["--net", "some"], &["some"]);
        refuses(world, 125, &["--static", "maybe"], &["maybe"]);
    });
}

#[test]
fn an_unknown_group_is_refused_with_the_list_of_groups() {
    let world = world();
    refuses(
        &world,
        125,
        &["--allow-calls", "@elephants"],
        &["@elephants", "there are @aio, ", "@file-system"],
    );
}

#[test]
fn a_program_in_the_working_directory_is_suggested() {
    let world = world();
    world.script("tool", "#!/bin/sh\n");
    world.write("text", "no program");
    world.sbx(["run", "--", "tool"]).run().refused(127, &["not found in PATH", "'./tool'"]);
    world.sbx(["run", "--", "./tool"]).run().success();
    assert!(
        !world.sbx(["run", "--", "text"]).run().refused(127, &["not found in PATH"]).err().contains("./text")
    );
}

#[test]
fn profile_check_finds_what_a_run_would_refuse() {
    let world = world();
    let named = |host: &str| format!(r#"{{"network": {{"mode": "allow", "connect": ["{host}:443"]}}}}"#);
    world.write("host.json", named("example.org"));
    world.sbx(["profile", "check", "host.json"]).run().success().prints("host.json: ok\n");
    world.write("never.json", named("localhost"));
    world.sbx(["profile", "check", "never.json"]).run().refused(125, &["localhost", "--host-port 443"]);
    world.write("any.json", named("*"));
    world.sbx(["profile", "check", "any.json"]).run().success().prints("any.json: ok\n");
    world.write("empty.json", "\n");
    world.sbx(["profile", "check", "empty.json"]).run().refused(125, &["the file is empty"]);
}

#[test]
fn contradictions_are_refused() {
    let world = world();
    refuses(&world, 125, &["--exec", "--log-violations"], &["--exec", "--log-violations"]);
    refuses(&world, 125, &["-v", "-q"], &["-q"]);
    refuses(&world, 125, &["--net", "none", "--connect", "*:80"], &["--connect"]);
    for other in [&["--bind", "80"][..], &["--exec"]] {
        refuses(&world, 125, &[&["--net", "private"][..], other].concat(), &["--net private", other[0]]);
    }
    world.write("private.json", r#"{"extends": "workspace", "network": {"mode": "private"}}"#);
    refuses(&world, 125, &["-p", "./private.json", "--exec"], &["network of the run's own", "--exec"]);
    refuses(&world, 125, &["--log-violations", "--on-violation", "kill"], &["--on-violation"]);
    for ours in ["SECCOMP_SYSCALL_ALLOW=read", "SECCOMP_SYSCALL_DENY=", "SBX_SHIM_FD=3"] {
        let name = ours.split('=').next().unwrap();
        refuses(
            &world,
            125,
            &["--allow-dangerous-env", "--env", ours],
            &["cannot pass", name, "sbx sets it itself"],
        );
    }
    let other = ["run", "--env", "OTHER=x", "--", "printenv", "OTHER"];
    world.sbx(other).run().success().prints("x\n");
    refuses(&world, 125, &["--require", "full", "--namespaces", "none"], &["'full'", "--namespaces none"]);
    refuses(
        &world,
        125,
        &["--dangerously-unconfined", "-p", "minimal"],
        &["--dangerously-unconfined", "minimal"],
    );
    refuses(&world, 125, &["-p", "minimal", "-p", "network"], &[]);
}

#[test]
fn missing_paths_named_by_the_user_are_errors() {
    in_worlds(|world| {
        for flag in ["--ro", "--rox", "--rw", "--rwx", "--workspace", "--cwd"] {
            refuses(world, 125, &[flag, "not/there"], &["not/there"]);
        }
        // Only a mount can deny a path that does not exist.
        refuses(world, 125, &["--namespaces", "none", "--deny", "not/there"], &["not/there"]);
        refuses(world, 125, &["-p", "minimal", "--deny", "not/there"], &["not/there"]);
        refuses(world, 125, &["-p", "./not-there.json"], &["not-there.json"]);
        world.write("file", "");
        refuses(world, 125, &["--workspace", "file"], &["file"]);
        refuses(world, 125, &["--cwd", "file"], &["file"]);
        symlink("loop", world.path("loop")).unwrap();
        refuses(world, 125, &["--rw", "loop"], &["loop"]);
        refuses(world, 125, &["--pass-fd", "77"], &["77"]);
        refuses(world, 125, &["--pass-fd", "-1"], &[]);
        refuses(world, 125, &["--pass-fd", "x"], &["x"]);
    });
}

#[test]
fn control_characters_in_names_do_not_reach_the_terminal() {
    let world = world();
    let odd = "no\u{1b}[31m\nthing";
    for flag in ["--ro", "--workspace", "--cwd", "--unix", "--env", "-p"] {
        let out = world.sbx(["run", flag, odd, "--", "true"]).run().refused(125, &["thing"]);
        assert!(!out.err().trim_end().contains(['\u{1b}', '\n']), "{flag}: {out}");
    }
    let out = world
        .sbx(["run", "--namespaces", "none", "--deny", odd, "--", "true"])
        .run()
        .refused(125, &["thing"]);
    assert!(!out.err().trim_end().contains(['\u{1b}', '\n']), "{out}");
    // Where the name exists, it appears in warnings and further errors.
    world.make_dir(&world.path(odd));
    world.make_dir(&world.path(format!("{odd}/below")));
    let below = format!("{odd}/below");
    for front in [&["--deny", &below][..], &["--rw", odd, "--deny", &below]] {
        let out =
            world.sbx([&["run", "--namespaces", "none"], front, &["--", "true"]].concat()).run().success();
        assert!(out.err().contains("thing") && !out.err().contains('\u{1b}'), "{front:?}: {out}");
    }
}

#[test]
fn a_directory_that_cannot_be_searched_holds_no_profiles() {
    let world = world();
    let closed = world.home.join(".config");
    let file = world.write(closed.join("sbx/profiles/own.json"), r#"{"extends": "minimal"}"#);
    let run = |profile: &str| world.run(profile, ["cat", "/etc/hostname"]).run();
    run("own").success();
    // A profile that exists and cannot be read is an error, and so is a dangling link.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    run("own").refused(125, &["own", "may not be read"]);
    run("minimal").success();
    let default = closed.join("sbx/profiles/default.json");
    symlink("nowhere", &default).unwrap();
    world.sbx(["run", "--", "true"]).run().refused(125, &["default", "no such file"]);
    std::fs::remove_file(&default).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    run("minimal").success().silent();
    world.sbx(["run", "--", "true"]).run().success();
    run("own").refused(125, &["there is no profile of that name"]);
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn bad_values_are_refused() {
    let world = world();
    for value in ["*", "*:99999", "*:x", ":", ""] {
        refuses(&world, 125, &["-p", "network", "--connect", value], &[]);
    }
    for value in ["0x", "-5", "65536", ""] {
        refuses(&world, 125, &["-p", "network", "--bind", value], &[]);
    }
    for value in ["=x", "", "A\nB"] {
        refuses(&world, 125, &["--env", value], &[]);
    }
}

#[test]
fn missing_commands_exit_127() {
    in_worlds(|world| {
        let run = |name: &str| world.sbx(["run", "--", name]).run();
        run("no-such-command").refused(127, &["no-such-command"]);
        run("export").refused(127, &["command of shells", "sh -c 'export ...'"]);
        run("X=1").refused(127, &["set a variable", "--env 'X=1'"]);
        run("./no-such-command").refused(127, &["no-such-command"]);
        run("/no/such/command").refused(127, &["/no/such/command"]);
        symlink("nowhere", world.path("dangling")).unwrap();
        run("./dangling").refused(127, &["dangling"]);
    });
}

#[test]
fn an_empty_command_is_a_usage_error() {
    let world = world();
    world.sbx(["run", "--"]).run().refused(125, &[]);
    world.sbx(["run"]).run().refused(125, &[]);
    world.sbx(["run", "--", ""]).run().failed();
    world.sbx(["run", "--", "", "x"]).run().failed();
    world.sbx(["no-such-subcommand"]).run().refused(125, &["no-such-subcommand"]);
    world.sbx::<_, &str>([]).run().refused(125, &["sbx"]);
}

#[test]
fn files_that_cannot_be_executed_exit_126() {
    as_users(|user| {
        let world = World::new(user);
        world.write("plain", "no program\n");
        world.make_dir(&world.path("directory"));
        let run = |name: &str| world.sbx(["run", "--", name]).run();
        run("./plain").refused(126, &["plain"]);
        run("./directory").refused(126, &["directory"]);
        symlink("loop", world.path("loop")).unwrap();
        run("./loop").refused(126, &["loop"]);
        world.script("empty", "");
        world.script("garbage", b"\x00\x01\x02 not a program");
        run("./empty").refused(126, &["empty"]);
        run("./garbage").refused(126, &["garbage"]);
        sbx_tests::stage::give(&world.script("unreadable", "#!/bin/sh\n"), user);
        std::fs::set_permissions(world.path("unreadable"), std::fs::Permissions::from_mode(0o111)).unwrap();
        run("./unreadable").failed();
    });
}

#[test]
fn scripts_with_broken_interpreters_are_refused() {
    in_worlds(|world| {
        let try_line = |name: &str, text: &str| {
            world.script(name, text);
            let out = world.sbx(["run", "--", &format!("./{name}")]).run();
            assert!(matches!(out.code, Some(126 | 127)), "{text:?}: {out}");
            assert!(out.stdout.is_empty() && out.err().contains(name), "{text:?}: {out}");
        };
        try_line("missing", "#!/no/such/interpreter\n");
        try_line("nothing", "#!\n");
        try_line("spaces", "#!   \n");
        try_line("self", &format!("#!{}\n", world.path("self").display()));
        try_line("long", &format!("#!/{}\n", "x".repeat(5000)));
        try_line("folder", "#!/usr\n");
        for depth in 0..7 {
            let target = if depth == 0 { "/bin/sh".into() } else { world.path(format!("deep{}", depth - 1)) };
            world.script(format!("deep{depth}"), format!("#!{}\n", target.display()));
        }
        // As deep as the kernel goes, and no deeper.
        let plain = world.bare(["./deep2"]).run();
        assert_eq!(world.sbx(["run", "--", "./deep2"]).run().code, plain.code);
        world.sbx(["run", "--", "./deep6"]).run().refused(126, &["deep6"]);
    });
}

#[test]
fn broken_programs_are_refused_without_a_crash() {
    let world = world();
    let whole = std::fs::read("/bin/true").unwrap();
    let run = |bytes: &[u8]| {
        world.script("broken", bytes);
        let out = world.sbx(["run", "--", "./broken"]).run();
        assert!(!out.err().contains("panicked") && out.signal.is_none(), "{out}");
        world.sbx(["inspect", "./broken"]).run();
        out
    };
    for length in [1, 4, 5, 16, 20, 52, 63, 64, 100, 120, 200, 300] {
        run(&whole[..length]).refused(126, &["broken"]);
    }
    // Sets each header field to an extreme; the program must never be taken for something else.
    for offset in 4..64 {
        let mut bytes = whole.clone();
        bytes[offset] = 0xff;
        let out = run(&bytes);
        assert!(out.code.is_some(), "byte {offset}: {out}");
    }
    for word in [32, 40, 52, 54, 56, 58, 60, 62] {
        let mut bytes = whole.clone();
        bytes[word..word + 2].copy_from_slice(&[0xff, 0xff]);
        run(&bytes);
    }
    // The program headers, PT_INTERP among them.
    for offset in (64..64 + 56 * 4).step_by(4) {
        let mut bytes = whole.clone();
        bytes[offset..offset + 4].copy_from_slice(&[0xff; 4]);
        run(&bytes);
    }
}

#[test]
fn programs_of_other_machines_are_refused() {
    let world = world();
    let mut bytes = std::fs::read("/bin/true").unwrap();
    for machine in [243_u16, 8, 21, 62_000] {
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        world.script("foreign", &bytes);
        world.sbx(["run", "--", "./foreign"]).run().refused(126, &["foreign"]);
    }
    let narrow = world.subject("narrow");
    world.sbx(["run", "-p", "minimal", "--"]).arg(&narrow).run().refused(126, &["narrow"]);
}

#[test]
fn odd_files_do_not_hang_the_check() {
    need!("mkfifo");
    let world = world();
    world.bare(["mkfifo", "-m", "755", "fifo"]).run().success();
    let run = |name: &str| world.sbx(["run", "--", name]).timeout(std::time::Duration::from_secs(10)).run();
    run("./fifo").refused(126, &["fifo"]);
    run("/dev/zero").refused(126, &["/dev/zero"]);
    let file = std::fs::File::create(world.path("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o755)).unwrap();
    run("./huge").refused(126, &["huge"]);
    world
        .sbx(["run", "-p", "./fifo", "--", "true"])
        .timeout(std::time::Duration::from_secs(10))
        .run()
        .refused(125, &["fifo"]);
    world
        .sbx(["run", "-p", "./huge", "--", "true"])
        .timeout(std::time::Duration::from_secs(10))
        .run()
        .refused(125, &["huge"]);
}

#[test]
fn names_that_are_not_utf8_are_passed_as_bytes() {
    let world = world();
    let name = OsStr::from_bytes(b"caf\xe9 \xff");
    world.script(name, "#!/bin/sh\necho ran\n");
    let path = world.path(name);
    world.sbx(["run", "--"]).arg(&path).run().success().prints("ran\n");
    world.sbx(["run", "--", "./"]).run().failed();
    let mut missing = path.clone().into_os_string();
    missing.push(".missing");
    world.sbx(["run", "--"]).arg(&missing).run().refused(127, &[]);
    let dir = world.outside.join(name);
    world.make_dir(&dir);
    world.sbx(["run", "--rw"]).arg(&dir).args(["--", "touch"]).arg(dir.join("made")).run().success();
    world.sbx(["run", "--ro"]).arg(&missing).args(["--", "true"]).run().refused(125, &[]);
    world.sbx(["run", "--", "true"]).env("ODD", name).run().success();
    world.sbx(["run", "--env"]).arg(OsStr::from_bytes(b"ODD=\xff")).args(["--", "env"]).run().success();
    world.sbx(["run", "-p"]).arg(name).args(["--", "true"]).run().refused(125, &[]);
    world.sbx(["run", "--allow-calls"]).arg(name).args(["--", "true"]).run().refused(125, &[]);
}

#[test]
fn broken_profiles_are_refused() {
    in_worlds(|world| {
        let refused = |json: &str, words: &[&str]| {
            let file = world.write("p.json", json);
            world.sbx(["run", "-p"]).arg(&file).args(["--", "touch", "made"]).run().refused(125, words);
            world.sbx(["profile", "check"]).arg(&file).run().failed();
            assert!(!world.exists("made"), "{json}");
        };
        refused(r#"{"sycalls": {}}"#, &["p.json", "sycalls", "syscalls"]);
        refused(r#"{"syscalls": {"alow": []}}"#, &["alow", "allow"]);
        refused(r#"{"syscalls": {"allow": ["opennat"]}}"#, &["opennat", "openat"]);
        refused(r#"{"syscalls": {"allow": ["@file-sistem"]}}"#, &["@file-system"]);
        refused(r#"{"syscalls": {"allow": ["openat[reed]"]}}"#, &["reed"]);
        refused(r#"{"extends": ["minimale"]}"#, &["minimale", "minimal"]);
        refused(r#"{"extends": ["./p.json"]}"#, &["p.json"]);
        refused(r#"{"network": {"mode": "maybe"}}"#, &["maybe"]);
        refused(r#"{"paths": {"write": ["${WROKSPACE}/x"]}}"#, &["WROKSPACE"]);
        refused(r#"{"description": 7}"#, &["p.json"]);
        refused(r#"{"description": "a", "description": "b"}"#, &["description"]);
        refused("{", &["p.json"]);
        refused("", &["p.json"]);
        refused("[]", &["p.json"]);
        refused("null", &["p.json"]);
        refused("{} {}", &["p.json"]);
        refused(&"[".repeat(100_000), &["p.json"]);
        refused(&format!("{{\"description\": \"{}\"}}", "x".repeat(20_000_000)), &["p.json"]);
        world.write("q.json", r#"{"extends": ["./p.json"]}"#);
        refused(r#"{"extends": ["./q.json"]}"#, &["p.json"]);
    });
}

#[test]
fn no_combination_of_errors_starts_the_command() {
    // A bad flag after a good one, a bad path after a bad name: still nothing runs.
    let world = world();
    refuses(&world, 125, &["--rw", ".", "--ro", "not/there"], &["not/there"]);
    refuses(&world, 125, &["-p", "workspace", "--allow-calls", "read:nosuchcall"], &["nosuchcall"]);
    let out = world.sbx(["run", "-p", "minimale", "--", "no-such-command"]).run();
    assert!(matches!(out.code, Some(125 | 127)), "{out}");
}

#[test]
fn error_messages_are_one_sentence() {
    let world = world();
    let outs = [
        world.sbx(["run", "-p", "minimale", "--", "true"]).run(),
        world.sbx(["run", "--ro", "not/there", "--", "true"]).run(),
        world.sbx(["run", "--", "no-such-command"]).run(),
        world.sbx(["run", "--", "/etc"]).run(),
    ];
    for out in outs {
        assert_eq!(out.sbx_lines().len(), 1, "not one line that begins with `sbx: `: {out}");
        assert!(out.own_lines().is_empty(), "more than the line: {out}");
    }
}

#[test]
fn set_id_programs_are_named_in_the_error() {
    let Some(tool) = have("su") else { return sbx_tests::skip("needs su") };
    let world = world();
    let out = world.sbx(["inspect"]).arg(&tool).run().success().out().to_lowercase();
    assert!(out.contains("set-user-id") || out.contains("setuid") || out.contains("set-id"), "{out}");
}

/// Such a pattern looks like a rule about many things and matches none.
#[test]
fn patterns_that_would_deny_nothing_are_refused() {
    in_worlds(|world| {
        world.write("key.pem", "secret\n");
        world.write("readme", "open\n");
        world.write("p.json", r#"{"extends": "workspace", "paths": {"deny": ["${WORKSPACE}/*.pem"]}}"#);
        let unread: [&[&str]; 5] = [
            &["--deny", "*.pem"],
            &["--profile", "./p.json"],
            &["--block-command", "ca?"],
            &["--block-command", ""],
            &["--allow-command", "ca?"],
        ];
        for flags in unread {
            let out = world.sbx([&["run"], flags, &["--", "cat", "key.pem"]].concat()).run().exited(125);
            assert_eq!(out.out(), "", "{flags:?}");
        }
        for (file, read) in [("key.pem", false), ("readme", true)] {
            let out =
                world.sbx(["run", "--namespaces", "none", "--deny", "key.pem", "--", "cat", file]).run();
            assert_eq!(out.code == Some(0), read, "{out}");
        }
        world.sbx(["run", "--block-command", "tou*", "--", "cat", "readme"]).run().success();
    });
}

#[test]
fn a_workspace_that_cannot_be_searched_is_refused_in_one_sentence() {
    let world = world();
    world.make_dir(&world.path("closed"));
    let run = |flags: &str, mode: &str| {
        let sbx = sbx_tests::stage::sbx().display();
        let script = format!("cd closed && chmod {mode} . && exec {sbx} run {flags} -- true");
        world.bare(["sh", "-c", &script]).run()
    };
    let out = run("--namespaces auto", "600").refused(125, &["closed", "may not be searched", "--workspace"]);
    assert_eq!(out.err().lines().count(), 1, "{out}");
    world.bare(["chmod", "700", "closed"]).run().success();
    run("--namespaces auto", "700").success().silent();
}
