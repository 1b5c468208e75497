//! What a caller sees: exit codes, streams, names, and the subcommands that run nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use sbx_tests::{Output, User, World, in_worlds, kernel, need, promise, stage};

#[test]
fn the_exit_code_is_the_commands_own() {
    in_worlds(|world| {
        for code in [0, 1, 2, 42, 123, 124, 125, 126, 127, 128, 254, 255] {
            world.sbx(["run", "--", "sh", "-c", &format!("exit {code}")]).run().exited(code).silent();
            world
                .sbx(["run", "--exec", "--", "sh", "-c", &format!("exit {code}")])
                .run()
                .exited(code)
                .silent();
        }
    });
}

#[test]
fn streams_are_the_callers_own() {
    in_worlds(|world| {
        let out = world.sbx(["run", "--", "sh", "-c", "cat; echo err >&2"]).stdin("in\n").run().success();
        assert_eq!((out.out().as_str(), out.err().as_str()), ("in\n", "err\n"));
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(world.sbx(["run", "--", "cat"]).stdin(bytes.clone()).run().success().stdout, bytes);
        let script = format!("{} run -- cat <&-", stage::sbx().display());
        world.bare(["sh", "-c", &script]).run().failed();
        let script = format!("{} run -- true >&- 2>&-", stage::sbx().display());
        world.bare(["sh", "-c", &script]).run().success();
    });
}

#[test]
fn arguments_are_passed_as_they_are() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let world = World::new(&User::ordinary());
    let odd = OsStr::from_bytes(b"\xff\xfe bytes");
    let words = ["run", "--", "printf", "%s|"].map(OsStr::new);
    let rest = [OsStr::new(""), OsStr::new("two words"), OsStr::new("--"), OsStr::new("-p"), odd];
    let out = world.sbx([&words[..], &rest].concat()).run().success();
    assert_eq!(out.stdout, b"|two words|--|-p|\xff\xfe bytes|");
}

#[test]
fn the_program_keeps_its_own_name() {
    in_worlds(|world| {
        let path = world.subject("attempt");
        let real = path.canonicalize().unwrap();
        symlink("attempt", world.path("by-link")).unwrap();
        for name in [path.to_str().unwrap(), "./attempt", "./by-link"] {
            for profile in ["minimal", "workspace"] {
                for front in
                    [&["run", "-p", profile, "--", name][..], &["run", "--exec", "-p", profile, "--", name]]
                {
                    let ask = |what: &str| world.sbx([front, &[what]].concat()).run().success().out();
                    let plain = |what: &str| world.bare([name, what]).run().success().out();
                    assert_eq!(ask("argv0"), plain("argv0"), "argv[0] of {name}");
                    assert_eq!(ask("comm"), plain("comm"), "process name of {name}");
                    assert_eq!(ask("exe"), format!("{}\n", real.display()), "/proc/self/exe of {name}");
                }
            }
        }
        let words = ["run", "--", "sh", "-c", "echo $0"];
        world.sbx(words).run().success().prints("sh\n");
    });
}

#[test]
fn commands_are_found_as_a_shell_finds_them() {
    in_worlds(|world| {
        world.script("tools/mine", "#!/bin/sh\necho mine \"$@\"\n");
        let path = format!("{}:/usr/bin:/bin", world.path("tools").display());
        world.sbx(["run", "--", "mine", "a", "b"]).env("PATH", &path).run().success().prints("mine a b\n");
        world.sbx(["run", "--", "mine"]).run().refused(127, &["mine"]);
        world.sbx(["run", "--", "tools/mine"]).run().success().prints("mine\n");
        // An empty PATH entry means the working directory only if the caller's PATH has it.
        world.script("here", "#!/bin/sh\necho here\n");
        world.sbx(["run", "--", "here"]).run().refused(127, &["here"]);
    });
}

#[test]
fn the_working_directory_can_be_chosen() {
    in_worlds(|world| {
        world.make_dir(&world.path("below"));
        world
            .sbx(["run", "--cwd", "below", "--", "pwd"])
            .run()
            .success()
            .prints(&format!("{}\n", world.path("below").display()));
        world.sbx(["run", "--", "pwd"]).run().success().prints(&format!("{}\n", world.workspace.display()));
        // Shells believe what PWD says.
        let printed = |words: &[&str]| {
            let words = [&["run"], words, &["--", "printenv", "PWD"]].concat();
            world.sbx(words).env("PWD", &world.workspace).run().success().out()
        };
        assert_eq!(printed(&[]), format!("{}\n", world.workspace.display()));
        assert_eq!(printed(&["--cwd", "below"]), format!("{}\n", world.path("below").display()));
        assert_eq!(printed(&["--cwd", "below", "--env", "PWD=/x"]), "/x\n");
        // A directory that may be entered, but not listed.
        fs::set_permissions(world.path("below"), fs::Permissions::from_mode(0o311)).unwrap();
        for profile in ["minimal", "workspace"] {
            let out = world.sbx(["run", "-p", profile, "--cwd", "below", "--", "pwd"]).run().success();
            out.prints(&format!("{}\n", world.path("below").display()));
        }
    });
}

#[test]
fn profiles_can_be_listed_shown_and_checked() {
    let world = World::new(&User::ordinary());
    let list = world.sbx(["profile", "list"]).run().success().silent().out();
    for name in ["minimal", "network", "write", "no-exec", "custom", "workspace", "read-only", "unrestricted"]
    {
        assert!(list.contains(name), "{name} is not listed: {list}");
        let shown = world.sbx(["profile", "show", name, "--json"]).run().success().silent();
        serde_json::from_slice::<serde_json::Value>(&shown.stdout)
            .unwrap_or_else(|error| panic!("{error}: {shown}"));
        world.sbx(["profile", "check", name]).run().success();
    }
    world.write("wrong.json", "{\"unknown\": 1}");
    let out = world.sbx(["profile", "check", "--json", "minimal", "./wrong.json"]).run().exited(125).silent();
    let checked: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let good = serde_json::json!({ "profile": "minimal", "ok": true, "error": null });
    assert_eq!((&checked[0], &checked[1]["ok"]), (&good, &false.into()), "{out}");
    assert!(checked[1]["error"].as_str().is_some_and(|error| error.contains("wrong.json")), "{out}");
}

#[test]
fn user_profiles_are_found_by_path_and_by_name() {
    in_worlds(|world| {
        let json = r#"{"description": "cat and mkdir", "extends": ["minimal"],
                       "syscalls": {"allow": ["mkdir", "mkdirat"]}, "paths": {"write": ["${WORKSPACE}"]}}"#;
        let file = world.write(world.home.join("settings/sbx/profiles/mine.json"), json);
        let config = world.home.join("settings");
        world.sbx(["profile", "check"]).arg(&file).run().success();
        world.run("mine", ["mkdir", "one"]).env("XDG_CONFIG_HOME", &config).run().success();
        world.sbx(["run", "-p"]).arg(&file).args(["--", "mkdir", "two"]).run().success();
        world.sbx(["run", "-p"]).arg(&file).args(["--", "touch", "three"]).run().failed();
        assert!(world.path("one").is_dir() && world.path("two").is_dir() && !world.exists("three"));
        world.write(world.home.join("settings/sbx/profiles/minimal.json"), json);
        let list = world.sbx(["profile", "list"]).env("XDG_CONFIG_HOME", &config).run().success().out();
        let unusable = |line: &str| line.starts_with("minimal ") && line.contains("unusable");
        assert_eq!(list.lines().filter(|line| unusable(line)).count(), 1, "{list}");
        // A file in the workspace is never used as a profile unless it is named.
        world.write("mine.json", json.replace("mkdir", "rmdir"));
        world.run("mine", ["mkdir", "four"]).run().refused(125, &["mine"]);
    });
}

#[test]
fn the_users_default_profile_is_used_without_a_name() {
    let world = World::new(&User::ordinary());
    let config = world.home.join("settings");
    world.write(
        config.join("sbx/profiles/default.json"),
        r#"{"description": "mine", "extends": ["minimal"]}"#,
    );
    let touch = |name: &str| world.sbx(["run", "--", "touch", name]).env("XDG_CONFIG_HOME", &config).run();
    touch("made").failed();
    assert!(!world.exists("made"));
    world.sbx(["run", "--", "touch", "made"]).run().success();
}

#[test]
fn a_custom_list_is_built_from_nothing() {
    in_worlds(|world| {
        let hello = world.subject("hello");
        let run =
            |list: &str| world.sbx(["run", "-p", "custom", "--allow-calls", list, "--"]).arg(&hello).run();
        run("fstat:newfstatat:getrandom:brk:write:exit_group").success().silent().prints("Hello, world!\n");
        run("fstat:newfstatat:getrandom:brk:exit_group").prints("");
    });
}

/// A library of the user's own is loaded after ours, which by then has removed what only the loader needed.
#[test]
fn a_custom_list_holds_with_a_preloaded_library_too() {
    const LIST: &str = "fstat:newfstatat:getrandom:brk:write:exit_group";
    in_worlds(|world| {
        let (attempt, hook) = (world.subject("attempt"), world.subject("hook.so"));
        world.write("data", "text\n");
        let preload = format!("LD_PRELOAD={}", hook.display());
        let run = |preload: &[&str], more: &[&str]| {
            let front = ["run", "-q", "-p", "custom", "--allow-calls", LIST];
            let command = ["--", attempt.to_str().unwrap(), "read", "data"];
            world.sbx([&front[..], more, preload, &command].concat()).run()
        };
        let with = ["--allow-dangerous-env", "--env", &preload];
        run(&[], &[]).exited(1).prints("errno 1 (Operation not permitted)\n");
        run(&with, &[]).exited(1).prints("errno 1 (Operation not permitted)\n");
        assert!(!world.exists("mark"));
        // This flag also allows the calls that it needs itself.
        run(&[], &["--rw", "."]).success().prints("text\n");
        assert!(!world.exists("mark"), "nothing was to be preloaded");
        run(&with, &["--rw", "."]).success().prints("text\n");
        assert!(world.exists("mark"), "the library was not loaded");
    });
}

#[test]
fn calls_can_be_removed_from_and_added_to_a_profile() {
    in_worlds(|world| {
        world.sbx(["run", "--deny-calls", "mkdir:mkdirat", "--", "mkdir", "made"]).run().failed();
        assert!(!world.exists("made"));
        world.sbx(["run", "--", "mkdir", "made"]).run().success();
    });
}

#[test]
fn unconfined_needs_the_long_flag() {
    let world = World::new(&User::ordinary());
    world.run("unrestricted", ["touch", "made"]).run().refused(125, &["--dangerously-unconfined"]);
    assert!(!world.exists("made"));
    world
        .sbx(["run", "-p", "unrestricted", "--dangerously-unconfined", "--", "touch", "made"])
        .run()
        .success();
    assert!(world.exists("made"));
}

#[test]
fn help_and_version_are_printed() {
    let world = World::new(&User::ordinary());
    let help = world.sbx(["--help"]).run().success().out();
    for word in ["run", "env", "shim", "inspect", "profile"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    world.sbx(["run", "--help"]).run().success();
    assert!(world.sbx(["--version"]).run().success().out().starts_with("sbx "));
}

#[test]
fn a_shell_is_started_in_a_run() {
    in_worlds(|world| {
        let outside = world.outside.join("made");
        let script = format!("echo $0; touch made {}\n", outside.display());
        let shell = |flags: &[&str]| world.sbx([&["shell"], flags].concat()).stdin(script.clone());
        shell(&[]).env("SHELL", "/bin/sh").run().failed().prints("/bin/sh\n");
        assert!(world.exists("made") && !outside.exists());
        for other in ["bash", ""] {
            shell(&["-q"]).env("SHELL", other).run().prints("/bin/sh\n");
        }
        shell(&["--rw", world.outside.to_str().unwrap()])
            .env("SHELL", "/bin/bash")
            .run()
            .success()
            .prints("/bin/bash\n");
        assert!(outside.exists());
        shell(&["ls"]).run().refused(125, &["unknown argument 'ls'"]);
    });
}

#[test]
fn a_profile_of_the_project_is_mentioned_and_not_obeyed() {
    in_worlds(|world| {
        world.write(".sbx.json", r#"{"extends": "workspace", "paths": {"write": ["/"]}}"#);
        let outside = world.outside.join("made");
        let touch = |flags: &[&str]| {
            world.sbx([&["run"], flags, &["--", "touch", outside.to_str().unwrap()]].concat()).run()
        };
        let mentions =
            |out: &Output| out.sbx_lines().iter().filter(|line| line.contains("./.sbx.json")).count();
        assert_eq!(mentions(&touch(&[]).failed()), 0);
        assert_eq!(mentions(&touch(&["-v"]).failed()), 1);
        assert!(!outside.exists());
        assert_eq!(mentions(&touch(&["-v", "-p", "./.sbx.json"])), 0);
    });
}

/// Makes a repository in which commits are to be signed by a program that has no key.
fn sign_in_vain(world: &World) {
    let set = "git init -q && git config user.name x && git config user.email x@y && \
               git config commit.gpgsign true && git config gpg.program /bin/false";
    world.bare(["sh", "-c", set]).run().success();
}

#[test]
fn who_cannot_sign_is_told_how_to_commit() {
    sbx_tests::need!("git");
    in_worlds(|world| {
        sign_in_vain(world);
        let commit = |flags: &[&str]| {
            world
                .sbx([&["run", "--", "git"], flags, &["commit", "-q", "--allow-empty", "-m", "x"]].concat())
                .run()
        };
        let told = |out: &Output| out.sbx_lines().iter().any(|line| line.contains("commit.gpgsign=false"));
        assert!(told(&commit(&[]).failed()));
        assert!(!told(&commit(&["-c", "commit.gpgsign=false"]).success()));
        assert!(!told(&world.sbx(["run", "--", "git", "status", "-bad"]).run().failed()));
    });
}

/// An agent has keys, whatever else keeps git from signing.
#[test]
fn who_has_an_agent_is_not_told_that_there_are_no_keys() {
    sbx_tests::need!("git");
    in_worlds(|world| {
        sign_in_vain(world);
        let [agent, other, gpg] = ["agent", "other", "S.gpg-agent"].map(|name| world.home.join(name));
        let _servers = [&agent, &other, &gpg].map(|path| UnixListener::bind(path).unwrap());
        let told = |socket: &Path| {
            let run = world.sbx(["run", "--env", "SSH_AUTH_SOCK", "--unix"]).arg(socket).arg("--");
            let run =
                run.args(["git", "commit", "-q", "--allow-empty", "-m", "x"]).env("SSH_AUTH_SOCK", &agent);
            run.run().failed().sbx_lines().iter().any(|line| line.contains("commit.gpgsign=false"))
        };
        assert_eq!([&*agent, &gpg, &other].map(told), [false, false, true]);
    });
}

/// The recipe of docs/troubleshooting.md.
#[test]
fn an_agent_of_ssh_signs_a_commit() {
    promise!(kernel::PATHS);
    sbx_tests::need!("git", "ssh-agent", "ssh-add", "ssh-keygen");
    in_worlds(|world| {
        let home = world.home.display();
        let set = format!(
            "git init -q && git config user.name x && git config user.email x@y && git config gpg.format ssh && \
             git config user.signingkey {home}/.ssh/own.pub && ssh-keygen -q -t ed25519 -N '' -f {home}/.ssh/own"
        );
        world.bare(["sh", "-c", &set]).run().success();
        let sbx = stage::sbx().display();
        let commit = |flags: &str| {
            let run = format!("{sbx} run {flags} -- git commit -q --allow-empty -S -m x");
            let script =
                format!("ssh-agent -a \"$0\" sh -c 'ssh-add -q {home}/.ssh/own && {run}'; rm \"$0\"");
            let socket = world.home.join("agent.sock");
            world.bare(["sh", "-c", &format!("{script}; git cat-file commit HEAD")]).arg(&socket).run()
        };
        let agent = "--unix \"$SSH_AUTH_SOCK\" --env SSH_AUTH_SOCK";
        commit(agent).failed();
        let made = commit(&format!("{agent} --ro {home}/.ssh/own.pub")).success();
        assert!(made.out().contains("BEGIN SSH SIGNATURE"), "{made}");
    });
}

/// Where an agent has the key, nobody is told to open the key itself.
#[test]
fn a_key_that_an_agent_has_need_not_be_opened() {
    promise!(kernel::PATHS);
    sbx_tests::need!("ssh-agent", "ssh-add", "ssh-keygen");
    in_worlds(|world| {
        let key = world.home.join(".ssh/id_ed25519").display().to_string();
        world.bare(["mkdir", "-p"]).arg(world.home.join(".ssh")).run().success();
        world.bare(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &key]).run().success();
        let socket = world.home.join("agent.sock").display().to_string();
        let run = |flags: &str, command: &str| {
            let run = format!("{} run {flags} -- {command}", stage::sbx().display());
            let script =
                format!("ssh-agent -a {socket} sh -c 'ssh-add -q {key}; {run}'; E=$?; rm {socket}; exit $E");
            world.bare(["sh", "-c", &script]).run()
        };
        let read = format!("ssh-keygen -y -f {key}");
        let both = format!("--unix {socket} --env SSH_AUTH_SOCK");
        run("", &read).failed().says(&format!("allow it with {both} (the agent then signs"));
        run("--env SSH_AUTH_SOCK", &read).failed().says(&format!("allow it with --unix {socket} (the agent"));
        let learned = {
            let learn = format!("{} learn -p workspace -o ../learned.json -- {read}", stage::sbx().display());
            let script = format!("ssh-agent -a {socket} sh -c '{learn}'; E=$?; rm {socket}; exit $E");
            world.bare(["sh", "-c", &script]).run().failed()
        };
        learned.says(&format!("the agent of ssh signs in place of the key; run with {both}"));
        // Who asks the agent alone is told as much.
        let asks =
            format!("which ssh-add looks for, is set outside but not passed on; pass it with {both} (the");
        run("", "ssh-add -l").failed().says(&asks);
        let unheard = run(&both, "ssh-add -L").success();
        assert!(unheard.sbx_lines().is_empty() && unheard.out().contains("ssh-ed25519 "), "{unheard}");
        // A question about the key is about the key.
        let why = world.sbx(["why", &key]).env("SSH_AUTH_SOCK", &socket).run();
        assert!(why.out().contains(&format!("--ro {key}")), "{why}");
        // With the flags the key can be used. Who reads it all the same is told how.
        let listed = run(&both, &format!("sh -c \"ssh-add -L; {read}\"")).failed();
        assert!(listed.out().contains("ssh-ed25519 "), "{listed}");
        listed.says(&format!("allow it with --ro {key} (keys and hosts of ssh)"));
    });
}

/// Runs a line outside, in which `SBX` is `sbx run`.
fn in_bash(world: &World, line: &str) -> Output {
    let line = line.replace("SBX", &format!("{} run", stage::sbx().display()));
    world.bare(["bash", "-c", &line]).run()
}

/// A shell's `<(...)` makes such words.
#[test]
fn a_word_that_is_a_descriptor_of_the_callers_leads_to_the_flag() {
    need!("bash");
    in_worlds(|world| {
        let run = |flags: &str| {
            in_bash(world, &format!("SBX {flags} -- cat <(echo one) /dev/fd/9 <(echo two)")).exited(1)
        };
        let out = run("");
        let line = "warning: not passed on, though the command names it: descriptor 62, descriptor 63; pass it with \
                    --pass-fd 62 --pass-fd 63";
        assert!(out.out().is_empty() && out.err().contains(line), "{out}");
        let out = run("--pass-fd 62 --pass-fd 63").prints("one\ntwo\n");
        assert!(!out.err().contains("warning"), "{out}");
    });
}

/// What a shell has opened outside the workspace is opened by `/dev/stdin` and the like as it is open, and no further.
#[test]
fn files_that_the_command_was_given_open_can_be_opened_again() {
    need!("bash");
    in_worlds(|world| {
        let run = |line: &str| in_bash(world, line);
        let (given, other) = (world.outside.join("given"), world.outside.join("other"));
        world.write(&given, "one\n");
        world.write(&other, "old\n");
        let [given, other] = [given, other].map(|path| path.display().to_string());
        for flags in ["", "-p minimal", "--explain", "--exec -p minimal", "--namespaces none -q"] {
            let out = run(&format!("SBX {flags} -- cat /dev/stdin < {given}")).success().prints("one\n");
            assert!(out.err().is_empty(), "{flags}: {out}");
        }
        run(&format!("SBX --pass-fd 7 -- cat /dev/fd/7 7< {given}")).success().prints("one\n");
        run(&format!("SBX -- sh -c 'echo new > /dev/stdout' > {given}; cat {given}"))
            .success()
            .prints("new\n");
        // A log as cron(8) has one. The descriptor itself can be written to anywhere as well (F_SETFL).
        world.write(world.outside.join("log"), "old\n");
        let log = world.outside.join("log").display().to_string();
        run(&format!("SBX -- sh -c 'echo a >> /dev/stderr; echo b | tee -a /dev/stdout' >> {log} 2>&1"))
            .success();
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.starts_with("old\na\nb\n"), "{text}");
        run(&format!("SBX -- sh -c 'echo new > /dev/stderr' 2>> {log}")).success();
        // Nothing is written that is open for reading, and no mode changes.
        for (script, given) in
            [("echo x > /dev/stdin", format!("< {other}")), ("chmod 777 /dev/stdout", format!("1<> {other}"))]
        {
            let mode = || fs::metadata(&other).unwrap().permissions().mode();
            let before = mode();
            run(&format!("SBX -q -- sh -c '{script}' {given}")).failed();
            assert_eq!(fs::read_to_string(&other).unwrap(), "old\n", "{script}");
            assert_eq!(mode(), before, "{script}");
        }
        // The twin: the descriptor itself.
        for flags in ["", "-p read-only", "-p minimal", "-p network", "-p write", "--exec -p minimal"] {
            world.write(Path::new(&other), "old\n");
            let added = run(&format!("SBX {flags} -- echo new >> {other} 2>> {other}; cat {other}"));
            added.success().prints("old\nnew\n");
        }
    });
}
