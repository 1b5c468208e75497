//! `sbx why` answers what a run does.

mod names;

use sbx_tests::servers::{HttpServer, UnixServer};
use sbx_tests::stage::Removed;
use sbx_tests::{Output, User, World, in_worlds, kernel, need, promise};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

const ALLOWED: i32 = 0;
const REFUSED: i32 = 1;
const DEPENDS: i32 = 2;

fn why(world: &World, words: &[&str]) -> Output {
    world.sbx([&["why"], words].concat()).run()
}

/// Both /tmp and the home directory in it are others inside, and what a rule opens of the home is there.
#[test]
fn what_is_open_of_a_home_below_tmp_is_told_so() {
    in_worlds(|world| {
        let made = world.bare(["mktemp", "-d", "/tmp/sbx-home-XXXXXX"]).run().success().out();
        let home = Path::new(made.trim());
        for name in [".netrc", ".other"] {
            world.bare(["sh", "-c", "echo text > \"$0\""]).arg(home.join(name)).run().success();
        }
        let profile = r#"{"extends": "workspace", "paths": {"read": ["${HOME}/.netrc"]}}"#;
        world.write("../opening.json", profile);
        for (name, is_open) in [(".netrc", true), (".other", false)] {
            let path = home.join(name);
            let path = path.to_str().unwrap();
            let ask = world.sbx(["why", "-p", "../opening.json", "--path", path]).env("HOME", home).run();
            let run = world.sbx(["run", "-p", "../opening.json", "--", "cat", path]).env("HOME", home).run();
            assert_eq!(run.code == Some(0), is_open, "{run}");
            assert_eq!(ask.code, Some(if is_open { ALLOWED } else { REFUSED }), "{ask}");
        }
        world.bare(["rm", "-rf"]).arg(home).run().success();
    });
}

/// Copies of settings, and files that an earlier run alone has mounted there.
#[test]
fn what_is_in_a_home_of_the_runs_own_is_told_so() {
    promise!(namespaces);
    in_worlds(|world| {
        let [settings, key] = [".npmrc", ".ssh/key"].map(|name| world.home.join(name));
        let [settings, key] = [(settings, "fund=false\n"), (key, "secret\n")].map(|(path, text)| {
            world.write(&path, text);
            path.display().to_string()
        });
        assert!(why(world, &[&settings]).exited(ALLOWED).out().contains("a copy of yours"));
        world.sbx(["run", "--ro", &key, "--", "cat", &key]).run().success().prints("secret\n");
        let hint = format!("--ro {key} (keys and hosts of ssh)");
        assert!(why(world, &[&key]).exited(REFUSED).out().contains(&hint));
        // For programs the flags are one thing, and what there is to know another.
        let json = why(world, &["--json", &key]).exited(REFUSED).out();
        assert!(
            json.contains(&format!("\"--ro {key}\"")) && json.contains("\"keys and hosts of ssh\""),
            "{json}"
        );
        assert!(world.sbx(["run", "--", "cat", &key]).run().failed().err().contains(&hint));
    });
}

/// Flags, path, `--op`, the same in a shell.
type Deed<'a> = (&'a [&'a str], &'a str, &'a str, &'a str);

#[test]
fn limits_are_no_hindrance_to_questions() {
    in_worlds(|world| {
        world.write(
            "../limits.json",
            r#"{"extends": "workspace", "limits": {"memory": "1G", "processes": 99}}"#,
        );
        why(world, &["-p", "../limits.json", "/etc/passwd"]).exited(ALLOWED);
        world.sbx(["profile", "review", "../limits.json"]).run().success();
    });
}

#[test]
fn answers_about_paths_are_what_a_run_does() {
    in_worlds(|world| {
        let outside = world.outside.to_str().unwrap();
        let (kept, new, dir) =
            (format!("{outside}/kept"), format!("{outside}/new"), format!("{outside}/dir"));
        let key = world.home.join(".ssh/id_rsa");
        let key = key.to_str().unwrap();
        let tool = world.script(world.outside.join("tool"), "#!/bin/sh\nexit 0\n");
        let tool = tool.to_str().unwrap();
        world.write("file", "x\n");
        world.write("sub/file", "x\n");
        world.write("private/deep/file", "x\n");
        std::os::unix::fs::symlink(&kept, world.path("link")).unwrap();
        let (read, write, make) = ("cat \"$0\" >/dev/null", ": >> \"$0\"", "touch \"$0\"");
        let list = "ls \"$0\" >/dev/null";
        let deeds: &[Deed<'_>] = &[
            (&[], "file", "r", read),
            (&[], "file", "w", write),
            (&[], "made", "w", make),
            (&[], ".", "r", list),
            (&[], "..", "r", list),
            (&[], "link", "r", read),
            (&[], "link", "w", write),
            (&[], &kept, "r", read),
            (&[], &new, "w", make),
            (&[], key, "r", read),
            (&[], tool, "x", "\"$0\""),
            (&[], "/etc/passwd", "r", read),
            (&[], "/usr/bin/env", "x", "\"$0\" true"),
            (&[], "../../outside/kept", "r", read),
            (&["-p", "read-only"], "file", "r", read),
            (&["-p", "read-only"], "file", "w", write),
            (&["--ro", outside], &kept, "r", read),
            (&["--ro", outside], &kept, "w", write),
            (&["--ro", outside], "link", "r", read),
            (&["--rw", outside], &kept, "w", write),
            (&["--rw", "../../outside"], &new, "w", make),
            (&["--rw", &kept], &kept, "w", write),
            (&["--rw", outside, "--deny", &dir], &dir, "r", list),
            (&["--rw", outside, "--deny", &dir], &kept, "r", read),
            (&["--rw", outside, "--deny", &dir], &new, "w", make),
            (&["--rox", outside], tool, "x", "\"$0\""),
            (&["--deny", "private/deep"], "private/deep/file", "r", read),
            (&["--deny", "private/deep"], "private", "r", list),
            (&["--deny", "private/deep"], "sub/file", "w", write),
            (&["--deny", "private/deep"], ".", "r", list),
        ];
        for (flags, path, op, line) in deeds {
            let out = why(world, &[flags, &["--path", path, "--op", op][..]].concat());
            let ran = world.sbx([&["run"], *flags, &["--", "sh", "-c", line, path]].concat()).run();
            let expected = if ran.code == Some(0) { ALLOWED } else { REFUSED };
            assert_eq!(out.code, Some(expected), "{flags:?} {path} {op}: {out}\n{ran}");
            if expected == ALLOWED {
                continue;
            }
            // Following the hint helps.
            let out = out.out();
            let Some(advice) = out.lines().find_map(|line| line.trim().strip_prefix("allow it with ")) else {
                assert!(out.contains("--deny"), "no way out of {flags:?} {path}: {out}");
                continue;
            };
            let more: Vec<&str> = advice.split(" (").next().unwrap().split(' ').collect();
            let front: Vec<&str> = if more[0] == "--profile" { more } else { [*flags, &more[..]].concat() };
            world.sbx([&["run"], &front[..], &["--", "sh", "-c", line, path]].concat()).run().success();
        }
    });
}

#[test]
fn answers_know_the_runs_own_directories_and_calls() {
    in_worlds(|world| {
        if need(&["git"]) {
            world.bare(["git", "init", "-q", "."]).run().success();
        } else {
            world.make_dir(&world.path(".git"));
        }
        let name = format!("sbx-why-{}-{}", std::process::id(), world.home.metadata().unwrap().uid());
        let (shared, tmp) = (Path::new("/dev/shm").join(&name), Path::new("/tmp").join(&name));
        let _gone = [Removed(shared.clone()), Removed(tmp.clone())];
        for file in [&shared, &tmp] {
            std::fs::write(file, "x\n").unwrap();
            std::fs::set_permissions(file, PermissionsExt::from_mode(0o644)).unwrap();
        }
        let (shared, tmp) = (shared.to_str().unwrap(), tmp.to_str().unwrap());
        let new = [tmp, "-new"].concat();
        let (read, write, make) = ("cat \"$0\" >/dev/null", ": >> \"$0\"", "touch \"$0\"");
        let (list, make_in) = ("ls \"$0\" >/dev/null", "touch \"$0/sbx-why\"");
        let deeds: &[Deed<'_>] = &[
            (&[], shared, "r", read),
            (&["--ro", shared], shared, "r", read),
            (&[], tmp, "r", read),
            (&["--ro", tmp], tmp, "r", read),
            (&["--ro", "/"], tmp, "r", read),
            (&[], &new, "w", make),
            (&[], "/tmp", "r", list),
            (&["-p", "read-only"], "/tmp", "w", make_in),
            (&["--deny", "/tmp"], "/tmp", "r", list),
            (&["--deny", "/tmp"], &new, "w", make),
            (&["-p", "write", "--namespaces", "none"], &new, "w", ": > \"$0\""),
            (&[], ".git", "w", make_in),
            (&["-p", "minimal"], "/bin/true", "x", "\"$0\""),
            (&["-p", "no-exec"], "/bin/true", "x", "\"$0\""),
            (&[], "/bin/true", "x", "\"$0\""),
            (&["-p", "minimal"], "/dev/urandom", "w", write),
            (&["-p", "minimal"], "/dev/null", "w", write),
            (&["-p", "minimal"], "/etc/passwd", "r", "read -r line < \"$0\""),
            (&["-p", "minimal", "--deny-calls", "openat:open"], "/etc/passwd", "r", "read -r line < \"$0\""),
        ];
        for (flags, path, op, line) in deeds {
            let asked: Vec<&str> =
                flags.iter().copied().filter(|word| !["--namespaces", "none"].contains(word)).collect();
            let out = why(world, &[&asked, &["--path", path, "--op", op][..]].concat());
            let ran = world.sbx([&["run"], *flags, &["--", "sh", "-c", line, path]].concat()).run();
            let expected = if ran.code == Some(0) { ALLOWED } else { REFUSED };
            assert_eq!(out.code, Some(expected), "{flags:?} {path} {op}: {out}\n{ran}");
        }
        why(world, &["--path", "/proc/1/environ"]).exited(DEPENDS);
        for own in ["/proc/self/status", "/proc/net/dev", "/proc/version"] {
            why(world, &["--path", own]).exited(ALLOWED);
        }
    });
}

/// Also where there are no path rules at all.
#[test]
fn answers_are_what_runs_do_without_landlock() {
    in_worlds(|world| {
        world.write("file", "x");
        let without = |words: &[&str]| {
            world.sbx(words).answering(&[(libc::SYS_landlock_create_ruleset, libc::EOPNOTSUPP)]).run()
        };
        let kept = world.outside.join("kept");
        let (kept, write) = (kept.to_str().unwrap(), ": >> \"$0\"");
        let deeds = [
            ("minimal", "file", "w", write),
            ("minimal", "/dev/null", "w", write),
            ("minimal", kept, "r", "read -r line < \"$0\""),
            ("minimal", "/bin/true", "x", "\"$0\""),
            ("write", kept, "w", write),
            ("write", "new", "w", write),
            ("workspace", "/bin/true", "x", "\"$0\""),
            ("workspace", kept, "rw", write),
        ];
        for (profile, path, op, line) in deeds {
            let out = without(&["why", "-p", profile, "--path", path, "--op", op]);
            let ran = without(&["run", "-p", profile, "--", "sh", "-c", line, path]);
            let expected = if ran.code == Some(0) { ALLOWED } else { REFUSED };
            assert_eq!(out.code, Some(expected), "{profile} {path} {op}: {out}\n{ran}");
        }
    });
}

#[test]
fn a_path_needs_no_flag() {
    in_worlds(|world| {
        for words in [
            &["why", "/etc/shadow"][..],
            &["why", "/etc/shadow", "--op", "rw"],
            &["why", "-p", "minimal", "inside"],
        ] {
            let by_flag: Vec<&str> = words
                .iter()
                .flat_map(|word| match *word {
                    "/etc/shadow" | "inside" => vec!["--path", word],
                    word => vec![word],
                })
                .collect();
            assert_eq!(world.sbx(words).run().out(), world.sbx(by_flag).run().out(), "{words:?}");
        }
        world.sbx(["why", "--op", "w"]).run().refused(125, &["PATH"]);
        world.sbx(["why", "--call", "read", "x"]).run().refused(125, &["--call"]);
        world.sbx(["why", "--host-port", "5432"]).run().refused(125, &["no question", "--connect"]);
    });
}

#[test]
fn rules_and_their_reasons_are_named() {
    let world = World::new(&User::ordinary());
    let says = |words: &[&str], code: i32, expected: &[&str]| {
        let out = why(&world, words).exited(code).silent();
        for text in expected {
            assert!(out.out().contains(text), "no {text:?}: {out}");
        }
    };
    says(&["--call", "read"], ALLOWED, &["allowed\n", "syscalls.allow[", "profile 'minimal'"]);
    says(&["--call", "keyctl"], REFUSED, &["refused: ", "syscalls.default", "--allow-calls keyctl"]);
    says(&["--call", "keyctl", "--allow-calls", "keyctl"], ALLOWED, &["--allow-calls"]);
    says(&["--call", "read", "--deny-calls", "read"], REFUSED, &["--deny-calls"]);
    let none = ["--net", "none"];
    let inet6 = &["socket[unix-stream]", "socket[inet6]", "profile 'read-only' ("];
    says(&[&["--call", "socket"], &none[..]].concat(), DEPENDS, inet6);
    says(&[&["--call", "socket,2,1"], &none[..]].concat(), REFUSED, &["has no network", "--net host"]);
    says(&["--call", "socket,16,3", "--net", "host"], ALLOWED, &["by the network that is open"]);
    says(&["--call", "openat,-100,0,0"], ALLOWED, &["ask with --path"]);
    says(&["--call", "openat,-100,0,0x241", "-p", "minimal"], REFUSED, &["--profile write"]);
    says(&["--call", "chmod"], DEPENDS, &["where the file may be written"]);
    says(&["--call", "setxattr"], DEPENDS, &["where the file may be written", "only user.*"]);
    says(&["--path", "/etc/passwd"], ALLOWED, &["paths.read[", "names of users"]);
    says(&["--path", "/etc/shadow"], REFUSED, &["--ro /etc/shadow"]);
    // The removal of a file is its directory's.
    let removes = "may not remove, replace or rename /etc/passwd";
    says(&["--path", "/etc/passwd", "--op", "rd"], REFUSED, &[removes, "--rw /etc\n"]);
    says(&["--path", "../../outside/x", "--op", "w"], REFUSED, &["outside/x", "--rw "]);
    says(
        &["--path", "x", "--op", "w", "-p", "minimal"],
        REFUSED,
        &["may not change ", "/project/x\n", "--rw "],
    );
    says(&["--call", "keyctl"], REFUSED, &["refused: keyctl: "]);
    says(&["--path", ".", "--deny", "."], REFUSED, &["by --deny ."]);
    says(&["--path", "../../outside/x", "--op", "wx", "-p", "minimal"], REFUSED, &["--rwx "]);
    let custom = &["--connect", "a.example:443", "-p", "custom"];
    says(custom, REFUSED, &["network.mode of profile 'custom'", "--connect a.example:443"]);
    if kernel::gives_namespaces() {
        says(&["--call", "socket,16,3"], ALLOWED, &["by the run's own network"]);
        says(
            &["--connect", "a.example"],
            REFUSED,
            &[
                "network.mode of profile 'read-only'",
                "nothing else is in the run's own network",
                "--connect a.example:443",
            ],
        );
        says(&["--connect", "*:80"], REFUSED, &["nothing else is in", "--connect '*:80'"]);
        for own in ["localhost:443", "127.0.0.1:443", "[::1]:443", "443"] {
            says(&["--connect", own], DEPENDS, &["between the processes of the run", "--host-port 443"]);
        }
    }
    says(&["--connect", "a.example:443", "-p", "network"], ALLOWED, &["network.mode of profile 'network'"]);
    let ports =
        r#"{"extends": "minimal", "network": {"mode": "allow", "connect": ["*:443"], "bind": [8080]}}"#;
    world.write("ports.json", ports);
    says(&["--connect", "x:443", "-p", "./ports.json"], ALLOWED, &["network.connect"]);
    says(&["--connect", "x:80", "-p", "./ports.json"], REFUSED, &["only the named ports"]);
    says(&["--bind", "8080", "-p", "./ports.json"], ALLOWED, &["network.bind"]);
    says(&["--bind", "80", "-p", "./ports.json"], REFUSED, &["whatever sbx allows"]);
    let told = ["--publish", "port 8080 of this machine's loopback"];
    says(&["--bind", "3000", "--publish", "8080:3000"], ALLOWED, &told);
    says(&["--bind", "3001", "--publish", "8080:3000"], DEPENDS, &["allow it with --publish 3001"]);
    says(&["--connect", "localhost:5432", "--host-port", "5432"], ALLOWED, &["--host-port"]);
    let private = ["why", "--bind", "80", "--net", "private"];
    assert!(!world.sbx(private).run().out().contains("whatever sbx allows"), "all ports are its own");
    let args = r#"{"extends": "minimal", "syscalls": {"allow": [{"calls": ["getpriority"], "args": [{"index": 0, "op": "eq", "value": 1}], "why": "because"}]}}"#;
    world.write("args.json", args);
    says(
        &["--call", "getpriority", "-p", "./args.json"],
        DEPENDS,
        &["under the conditions of syscalls.allow[0]", "(because)"],
    );
    says(&["--call", "getpriority,1", "-p", "./args.json"], ALLOWED, &["(because)"]);
    says(&["--call", "getpriority,2", "-p", "./args.json"], REFUSED, &[]);
}

#[test]
fn answers_about_sockets_are_what_a_run_does() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let (inside, outside) = (world.path("in.sock"), world.outside.join("out.sock"));
        let (inside, outside) = (inside.to_str().unwrap(), outside.to_str().unwrap());
        let _servers = [UnixServer::at(inside.as_ref()), UnixServer::at(outside.as_ref())];
        let server = HttpServer::start();
        let port = server.port.to_string();
        world.write("p.json", format!(r#"{{"extends": "workspace", "network": {{"unix": ["{outside}"]}}}}"#));
        for (flags, kind, target) in [
            (&[][..], "connect-unix", inside),
            (&[], "connect-unix", outside),
            (&["-p", "./p.json"], "connect-unix", outside),
            (&["--deny", inside], "connect-unix", inside),
            (&["--namespaces", "none", "--deny", inside], "connect-unix", inside),
            (&["-p", "./p.json", "--deny", outside], "connect-unix", outside),
            (&["-p", "./p.json", "--deny", world.outside.to_str().unwrap()], "connect-unix", outside),
            (&["-p", "./p.json", "--namespaces", "none", "--deny", outside], "connect-unix", outside),
            (&["-p", "minimal"], "connect-unix", inside),
            (&["--net", "host"], "connect-unix", inside),
            (&["-p", "write"], "connect", &port),
            (&["--net", "host"], "connect", &port),
            (&["-p", "network"], "connect", &port),
        ] {
            let ran = world.sbx([&["run"], flags, &["--", &attempt, kind, target]].concat()).run();
            let asked = if kind == "connect" { format!("127.0.0.1:{target}") } else { target.to_string() };
            let flag = if kind == "connect" { "--connect" } else { "--unix" };
            let flags: Vec<&str> =
                flags.iter().copied().filter(|word| !["--namespaces", "none"].contains(word)).collect();
            let out = why(world, &[&flags[..], &[flag, &asked]].concat());
            assert_eq!(out.code, ran.code, "{flags:?} {kind}: {out}\n{ran}");
        }
    });
}

#[test]
fn no_file_is_made_and_json_is_valid() {
    in_worlds(|world| {
        let tmp = world.outside.join("tmp");
        world.make_dir(&tmp);
        let out = world
            .sbx(["why", "--path", "/etc/passwd", "--op", "rw", "--json"])
            .env("TMPDIR", &tmp)
            .run()
            .exited(REFUSED);
        let value: serde_json::Value = serde_json::from_str(&out.out()).unwrap();
        assert_eq!(value["answer"], "refused");
        assert_eq!(value["profile"], "workspace");
        assert!(value["allow_with"].as_str().unwrap().starts_with("--rw /etc"), "{value}");
        assert_eq!(value["flags"][0], "--rw", "{value}");
        assert!(!world.home.join(".cache").exists() && tmp.read_dir().unwrap().next().is_none());
    });
}

#[test]
fn inside_a_run_it_answers_what_can_be_known() {
    in_worlds(|world| {
        let sbx = world.install(sbx_tests::stage::sbx(), "sbx");
        let sbx = sbx.to_str().unwrap();
        let kept = world.outside.join("kept");
        let kept = kept.to_str().unwrap();
        let inside = |words: &[&str]| {
            world.sbx([&["run", "--static", "confine", "--", sbx, "why"], words].concat()).run()
        };
        assert!(why(world, &[]).exited(1).out().starts_with("confined by sbx: no\n"));
        let told = inside(&[]).success().out();
        assert!(told.starts_with("confined by sbx: yes\n") && told.contains("\npath rules: yes\n"), "{told}");
        inside(&["--path", kept]).exited(REFUSED);
        inside(&["--path", "sbx"]).exited(ALLOWED);
        inside(&["--path", kept, "--op", "x"]).exited(DEPENDS);
        inside(&["--call", "ptrace"]).exited(DEPENDS);
        // A variable proves nothing.
        world.sbx(["why"]).env("SBX_CONFINED", "1").run().exited(1);
        let out = inside(&["--json"]).success();
        let value: serde_json::Value = serde_json::from_str(&out.out()).unwrap();
        assert_eq!(value["confined_by_sbx"], true, "{value}");
    });
}

#[test]
fn invalid_queries_are_refused() {
    let world = World::new(&User::ordinary());
    for (words, expected) in [
        (&["--call", "opennat"][..], "did you mean 'openat'"),
        (&["--call", "open,x"], "is no number"),
        (&["--call", "open,1,2,3,4,5,6,7"], "at most six"),
        (&["--call", ""], "unknown system call"),
        (&["--path", "x", "--op", "q"], "made of r, w, x and d"),
        (&["--path", "x", "--op", ""], "--op"),
        (&["--op", "r"], "--path"),
        (&["--connect", "x:0"], "is not a port"),
        (&["--bind", "70000"], "70000"),
        (&["--call", "read", "--path", "x"], "contradict"),
        (&["--path", "x", "-p", "nothing"], "there is no profile of that name"),
        (&["--path", "x", "--ro", "missing"], "missing"),
    ] {
        why(&world, words).refused(125, &[expected]);
    }
}

#[test]
fn a_silently_refused_call_is_reported_as_refused() {
    let world = World::new(&User::ordinary());
    // `workspace` does start programs.
    let out = why(&world, &["--call", "clone3"]).exited(REFUSED).out();
    assert!(out.starts_with("refused: clone3: profile 'workspace' answers it with ENOSYS\n"), "{out}");
    let out = why(&world, &["-p", "minimal", "--call", "vfork"]).exited(REFUSED).out();
    assert!(out.starts_with("refused: vfork: profile 'minimal' starts no programs\n"), "{out}");
}
