//! `--log-violations`: the command is let through, and everything that the profile would have refused is reported.

use sbx_tests::servers::{BODY, HttpServer};
use sbx_tests::{Output, World, in_worlds, kernel, need, promise};

fn logged(world: &World, front: &[&str], command: &[&str]) -> Output {
    world.sbx([&["run", "--log-violations"], front, &["--"], command].concat()).run()
}

/// The flags that the lines of a run suggest, each once.
fn suggestions(out: &Output) -> Vec<String> {
    let mut flags: Vec<String> = Vec::new();
    for line in out.sbx_lines() {
        let Some((_, advice)) = line.split_once("allow it with ") else { continue };
        let first = advice.split(" (").next().unwrap().to_owned();
        if !flags.contains(&first) {
            flags.push(first);
        }
    }
    flags
}

#[test]
fn curl_finishes_and_every_call_is_listed() {
    need!("curl");
    let server = HttpServer::start();
    in_worlds(|world| {
        let url = server.url();
        let out = logged(world, &["-p", "minimal"], &["curl", "-sS", &url]).success().prints(BODY);
        assert!(out.own_lines().is_empty(), "{out}");
        let lines = out.sbx_lines();
        let to = format!("127.0.0.1:{}", server.port);
        for words in [&["socket(", "AF_INET"][..], &["connect(", "AF_INET", &to], &["curl["]] {
            let found = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
            assert!(found, "no line has {words:?}: {out}");
        }
        let told: std::collections::HashSet<_> = lines.iter().collect();
        assert_eq!(told.len(), lines.len(), "a line is repeated: {out}");
    });
    assert!(server.connections() > 0);
}

#[test]
fn following_the_suggestions_makes_the_run_clean() {
    need!("curl");
    let server = HttpServer::start();
    in_worlds(|world| {
        let url = server.url();
        let commands: &[&[&str]] =
            &[&["curl", "-sS", &url], &["touch", "made"], &["sh", "-c", "/bin/echo ran"]];
        for command in commands {
            let out = logged(world, &["-p", "minimal"], command);
            let mut flags: Vec<String> = suggestions(&out);
            assert!(!flags.is_empty(), "nothing is suggested: {out}");
            // A second run may find what the first failure has hidden.
            for _ in 0..3 {
                let words: Vec<&str> = flags.iter().flat_map(|flag| flag.split_whitespace()).collect();
                let front = if words.iter().any(|word| ["-p", "--profile"].contains(word)) {
                    &[][..]
                } else {
                    &["-p", "minimal"]
                };
                let again = world.sbx([&["run"], front, &words, &["--"], command].concat()).run();
                let new: Vec<String> =
                    suggestions(&again).into_iter().filter(|flag| !flags.contains(flag)).collect();
                if new.is_empty() {
                    assert!(again.sbx_lines().is_empty(), "still not clean with {flags:?}: {again}");
                    again.success();
                    break;
                }
                flags.extend(new);
            }
        }
    });
}

#[test]
fn a_clean_run_prints_nothing() {
    in_worlds(|world| {
        world.write("file", "text\n");
        logged(world, &["-p", "minimal"], &["cat", "file"]).success().silent().prints("text\n");
        logged(world, &[], &["sh", "-c", "cat file | sort"]).success().silent().prints("text\n");
    });
}

#[test]
fn refused_paths_are_named_and_stay_refused() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let key = world.home.join(".ssh/id_rsa");
        let key = key.to_str().unwrap();
        for flag in ["--log-violations", "--explain"] {
            let out = world.sbx(["run", flag, "--", "cat", key]).run().failed().prints("");
            assert!(
                out.sbx_lines().iter().any(|line| line.contains(key)),
                "{flag} does not name the path: {out}"
            );
        }
        let made = world.outside.join("made");
        let out = logged(world, &[], &["touch", made.to_str().unwrap()]).failed();
        assert!(out.sbx_lines().iter().any(|line| line.contains(made.to_str().unwrap())), "{out}");
        assert!(!made.exists());
    });
}

#[test]
fn an_ordinary_run_prints_one_line_for_each_distinct_violation() {
    in_worlds(|world| {
        let attempt = world.subject("attempt");
        let script = "for i in range(200):\n try: __import__('socket').socket(2, 1)\n except OSError: pass";
        let out = world.run("minimal", ["/usr/bin/python3", "-c", script]).run().success();
        let sockets: Vec<_> = out.sbx_lines().into_iter().filter(|line| line.contains("socket(")).collect();
        assert!((1..=2).contains(&sockets.len()), "not one line and perhaps a sum: {out}");
        assert!(out.err().contains("200") || out.err().contains("199"), "the repeats are not counted: {out}");
        let out = world.run("minimal", [attempt.to_str().unwrap(), "exec", "/bin/echo"]).run().exited(1);
        let named = out.sbx_lines().iter().any(|line| line.contains("execve(") && line.contains("/bin/echo"));
        assert!(named, "{out}");
    });
}

#[test]
fn on_violation_chooses_the_action() {
    in_worlds(|world| {
        let attempt = world.subject("attempt");
        let with = |action: &str| {
            world
                .sbx(["run", "-p", "minimal", "--on-violation", action, "--"])
                .args([attempt.to_str().unwrap(), "create", "made"])
                .run()
        };
        with("kill").exited(159);
        with("errno").exited(1).prints("errno 1 (Operation not permitted)\n");
        assert!(!world.exists("made"));
        let out = world
            .sbx(["run", "-p", "minimal", "--on-violation", "log", "--"])
            .args([attempt.to_str().unwrap(), "fork"])
            .run();
        assert!(out.sbx_lines().iter().any(|line| line.contains("clone") || line.contains("fork")), "{out}");
    });
}

#[test]
fn a_profile_can_end_the_run_at_the_first_violation() {
    in_worlds(|world| {
        world.write("kill.json", r#"{"extends": "minimal", "syscalls": {"default": "kill"}}"#);
        let script = "$| = 1; print 'before '; mkdir 'made'; print 'after'";
        let run = |front: &[&str], script: &str| {
            world.sbx([&["run", "-p", "./kill.json"], front, &["--", "perl", "-e", script]].concat()).run()
        };
        run(&[], script).exited(159).prints("before ");
        run(&["--on-violation", "errno"], script).success().prints("before after");
        assert!(!world.exists("made"));
        run(&[], "print 'allowed'").success().silent().prints("allowed");
    });
}

#[test]
fn a_call_that_a_profile_logs_is_let_through_and_reported() {
    in_worlds(|world| {
        world.write("log.json", r#"{"extends": "write", "syscalls": {"log": ["mkdir", "mkdirat"]}}"#);
        let script = "mkdir 'made' or die; rmdir 'made' or die; mkdir 'made' or die";
        let out = world.run("./log.json", ["perl", "-e", script]).run().success();
        let noted: Vec<_> = out.sbx_lines().into_iter().filter(|line| line.contains("mkdir")).collect();
        assert!(world.exists("made"));
        assert!(noted.iter().any(|line| line.contains("noted") && line.contains("made")), "{out}");
        let plain = world.run("write", ["perl", "-e", "mkdir 'again' or die"]).run();
        plain.success().silent();
    });
}
