//! Learning by running the command.

use super::{FILE, learn, learned, under_learned};
use crate::namespaces::with_namespaces;
use sbx_tests::{World, in_worlds, need};
use serde_json::Value;
use std::path::PathBuf;

#[test]
fn the_learned_profile_gives_what_the_command_needs_and_nothing_beside_it() {
    in_worlds(|world| {
        let (kept, beside) = (world.outside.join("kept"), world.outside.join("dir/inner"));
        let script = format!("cat {} && mkdir made && echo x > made/file", kept.display());
        // Each round begins where the last one ended.
        let again = format!("rm -rf made; {script}");
        let out = learn(world, &[], &again).run().success();
        assert!(out.out().contains("outside\n"), "{out}");
        assert!(out.err().contains("wrote '../learned.json'"), "{out}");
        // What the command did in the last round stays done.
        assert_eq!(world.read("made/file").as_deref(), Some("x\n"), "{out}");
        std::fs::remove_dir_all(world.path("made")).unwrap();
        let out = under_learned(world, &again).success();
        assert_eq!((out.out().as_str(), world.exists("made/file")), ("outside\n", true), "{out}");
        let more = format!("cat {}; echo x > {}/new", beside.display(), world.outside.display());
        let new = world.outside.join("new");
        let out = under_learned(world, &more);
        assert_eq!((out.out().as_str(), new.exists()), ("", false), "{out}");
        // The twin: the same profile and a flag.
        let run = world.sbx(["run", "-p", FILE, "--rw"]).arg(&world.outside);
        let out = run.args(["--", "/bin/sh", "-c", &more]).run();
        assert_eq!((out.out().as_str(), new.exists()), ("inner\n", true), "{out}");
    });
}

/// There /tmp may be written to, and the workspace below it not.
#[test]
fn a_workspace_in_a_home_below_tmp_is_learned_as_any_other() {
    with_namespaces(|user| {
        let world = World::new(user);
        let made = world.bare(["mktemp", "-d", "/tmp/sbx-home-XXXXXX"]).run().success().out();
        let home = PathBuf::from(made.trim());
        let workspace = home.join("project");
        world.make_dir(&workspace);
        let in_it = |words: &[&str]| world.sbx(words).cwd(&workspace).env("HOME", &home);
        let learned = home.join("learned.json");
        let run = in_it(&["run", "-p", "read-only", "--", "mkdir", "made"]).run();
        let learn =
            in_it(&["learn", "-p", "read-only", "-o", learned.to_str().unwrap(), "--", "mkdir", "made"]);
        let learn = learn.run();
        let is_made = workspace.join("made").is_dir();
        std::fs::remove_dir_all(&home).unwrap();
        assert!(run.err().contains(&format!("may not change {}", workspace.display())), "{run}");
        assert!(is_made, "{learn}");
        learn.success();
    });
}

/// What one command leaves in the home of its rounds is not there for the next command.
#[test]
fn no_home_is_left_behind() {
    in_worlds(|world| {
        let script = "test ! -e ~/planted; new=$?; echo x > ~/planted; exit $new";
        for _ in 0..2 {
            learn(world, &["--profile", "workspace"], script).run().success();
        }
        let homes = world.sbx(["home", "list"]).run().success();
        assert!(!homes.out().contains("/proc/"), "{homes}");
        // The twin: runs of a profile that stays share one.
        let again = |expected| world.sbx(["run", "-q", "--", "sh", "-c", script]).run().exited(expected);
        again(0);
        if sbx_tests::kernel::gives_namespaces() {
            again(1);
        }
    });
}

#[test]
fn each_rule_has_its_evidence() {
    in_worlds(|world| {
        let kept = world.outside.join("kept");
        let script = format!("cat {}", kept.display());
        let out = learn(world, &["--json"], &script).run().success();
        // The command writes elsewhere, so that the JSON is alone.
        let told: Value = serde_json::from_str(&out.out()).unwrap_or_else(|error| panic!("{error}: {out}"));
        assert!(out.err().contains("outside\n"), "{out}");
        let rules = told["rules"].as_array().unwrap();
        let read = rules.iter().find(|rule| rule["kind"] == "read").unwrap_or_else(|| panic!("{told:#}"));
        assert_eq!(read["what"], kept.to_str().unwrap(), "{told:#}");
        assert_eq!(read["evidence"][0]["process"], "cat", "{told:#}");
        let profile = learned(world).unwrap();
        assert_eq!(profile, told["profile"]);
        assert_eq!(profile["extends"], "minimal");
        let why = profile["paths"]["read"][0]["why"].as_str().unwrap();
        assert!(why.starts_with("refused in round ") && why.contains("of cat"), "{why}");
        world.sbx(["profile", "check", FILE]).run().success();
    });
}

#[test]
fn nothing_is_written_where_the_command_does_not_pass() {
    in_worlds(|world| {
        world.write(FILE, "{}");
        for (flags, script, says) in [
            (&[][..], "exit 3", "does not pass"),
            (&["--rounds", "1"], "echo x > made", "not passed within one round:"),
            (&["--status", "3"], "exit 4", "does not pass"),
        ] {
            let out = learn(world, flags, script).run();
            assert_eq!(out.code, Some(1), "{out}");
            assert!(out.err().contains(says), "{out}");
            assert_eq!(world.read(FILE).as_deref(), Some("{}"), "{out}");
        }
        let out = learn(world, &["--status", "3"], "exit 3").run().success();
        assert_ne!(world.read(FILE).as_deref(), Some("{}"), "{out}");
        let out = learn(world, &["-o", "no/such/directory/x.json"], "touch ran").run();
        assert_eq!((out.code, world.exists("ran")), (Some(125), false), "{out}");
    });
}

#[test]
fn what_flags_give_is_in_the_profile_and_so_is_what_they_deny() {
    in_worlds(|world| {
        let (outside, inner) = (&world.outside, world.outside.join("dir/inner"));
        let script = format!("cat {} {} 2>/dev/null; true", outside.join("kept").display(), inner.display());
        let flags = ["--profile", "read-only", "--ro", outside.to_str().unwrap()];
        let denied = [&flags[..], &["--deny", inner.to_str().unwrap()]].concat();
        learn(world, &denied, &script).run().success();
        let out = under_learned(world, &script);
        assert_eq!(out.out(), "outside\n", "{out}");
        learn(world, &flags, &script).run().success();
        let out = under_learned(world, &script);
        assert_eq!(out.out(), "outside\ninner\n", "{out}");
    });
}

#[test]
fn what_something_outside_executes_stays_protected_in_a_workspace_that_is_learned() {
    in_worlds(|world| {
        world.write(".envrc", "as it was\n");
        let attack = "echo changed > .envrc; echo x > ordinary; true";
        learn(world, &[], "echo x > ordinary").run().success();
        let profile = learned(world).unwrap();
        assert_eq!(profile["paths"]["write"][0]["path"], "${WORKSPACE}", "{profile:#}");
        assert_eq!(profile["namespaces"], "auto", "{profile:#}");
        std::fs::remove_file(world.path("ordinary")).unwrap();
        let out = under_learned(world, attack);
        assert_eq!(world.read("ordinary").as_deref(), Some("x\n"), "{out}");
        if !sbx_tests::kernel::promises_namespaces() {
            return;
        }
        assert_eq!(world.read(".envrc").as_deref(), Some("as it was\n"), "{out}");
        // The twin: without the protections the rule lets it be changed.
        let loose = serde_json::json!({ "extends": "read-only", "paths": { "write": ["${WORKSPACE}"] } });
        world.write("../loose.json", loose.to_string());
        let out = world.sbx(["run", "-p", "../loose.json", "--", "/bin/sh", "-c", attack]).run();
        assert_eq!(world.read(".envrc").as_deref(), Some("changed\n"), "{out}");
    });
}

#[test]
fn a_signal_ends_learning_and_nothing_is_written() {
    in_worlds(|world| {
        let running = learn(world, &["--profile", "read-only"], "echo began; sleep 30; echo late").start();
        running.wait_for("began");
        running.signal(libc::SIGTERM);
        let out = running.wait();
        assert_eq!(out.code, Some(128 + libc::SIGTERM), "{out}");
        assert!(out.err().contains("interrupted") && !out.out().contains("late"), "{out}");
        assert_eq!(learned(world), None, "{out}");
    });
}

/// The one who learns blocks the signals that it waits for. A command that had them blocked too could not end its own
/// children, and would behave otherwise than in a run.
#[test]
fn signals_reach_the_command() {
    in_worlds(|world| {
        learn(
            world,
            &[],
            "grep SigBlk /proc/self/status > mask; sleep 60 & kill $!; wait $!; echo $? > status",
        )
        .run()
        .success();
        assert_eq!(world.read("mask").as_deref(), Some("SigBlk:\t0000000000000000\n"));
        assert_eq!(world.read("status").as_deref(), Some("143\n"));
    });
}

/// A command that has done its work finds another state when it runs again. What it passed under is a profile that
/// does.
#[test]
fn a_command_that_cannot_be_repeated_is_learned_from_the_round_that_it_passed_in() {
    in_worlds(|world| {
        // The shell reads by itself: nothing else is refused.
        let read = format!("read line < {}/kept && echo $line; true", world.outside.display());
        let once = format!("test ! -e done && echo x > done && {{ {read}; }}");
        let out = learn(world, &["--json"], &once).run().success();
        let told: Value = serde_json::from_str(&out.out()).unwrap_or_else(|error| panic!("{error}: {out}"));
        assert_eq!(told["passed_in_round"], 2, "{told:#}");
        assert!(
            told["notes"][0].as_str().unwrap().contains("passed in round 2, and not in round 3"),
            "{told:#}"
        );
        assert!(out.err().contains("passed in round 2, and not in round 3"), "{out}");
        assert!(!out.err().contains("beginning again"), "{out}");
        // What it passed without is not in the profile, and is named with its flag.
        assert!(told["not_learned"].to_string().contains("kept"), "{told:#}");
        assert!(out.err().contains(&format!("allow it with --ro {}/kept", world.outside.display())), "{out}");
        std::fs::remove_file(world.path("done")).unwrap();
        let out = under_learned(world, &once).success();
        assert_eq!((out.out().as_str(), world.read("done").as_deref()), ("", Some("x\n")), "{out}");
        // The same where no round is left.
        std::fs::remove_file(world.path("done")).unwrap();
        let out = learn(world, &["--rounds", "2"], &once).run().success();
        assert!(out.err().contains("passed in round 2") && !out.err().contains("not in round"), "{out}");
        std::fs::remove_file(world.path("done")).unwrap();
        under_learned(world, &once).success();
        // The twin: a command that can be repeated gets that, too.
        let again = format!("rm -f done; {once}");
        learn(world, &[], &again).run().success();
        under_learned(world, &again).success().prints("outside\n");
    });
}

#[test]
fn a_commit_is_learned_from_the_round_that_made_it() {
    in_worlds(|world| {
        need!("git");
        let git = "git -c user.name=a -c user.email=a@b.c";
        world.bare(["sh", "-c", "git init -q . && echo x > file && git add file"]).run().success();
        let commit = format!("{git} commit -q -m more");
        let out = learn(world, &[], &commit).run().success();
        let count = || world.bare(["git", "rev-list", "--count", "HEAD"]).run().out();
        assert_eq!(count(), "1\n", "{out}");
        world.bare(["sh", "-c", "echo y > file && git add file"]).run().success();
        let out = under_learned(world, &commit).success();
        assert_eq!(count(), "2\n", "{out}");
    });
}

/// Another profile refuses a secret as well: no round more is run for it.
#[test]
fn what_is_sensitive_is_named_where_it_may_explain_the_end() {
    in_worlds(|world| {
        let script = "echo round >> rounds; read line < ~/.netrc && echo $line";
        let given = ["--rw", ".", "--allow-calls", "openat"];
        let out = learn(world, &given, script).run().exited(1);
        assert!(out.err().contains(".netrc") && out.err().contains("--allow-sensitive"), "{out}");
        assert!(!out.err().contains("beginning again") && learned(world).is_none(), "{out}");
        let rounds = world.read("rounds").unwrap().lines().count();
        // The twins: it is allowed, and nothing sensitive was refused.
        learn(world, &["--allow-sensitive"], script).run().success();
        let out = learn(world, &given, "exit 1").run().exited(1);
        assert!(out.err().contains("beginning again from 'read-only'"), "{out}");
        assert_eq!(rounds, 1);
        // A profile that is asked for is the only one.
        let out = learn(world, &["--profile", "minimal"], "exit 1").run().exited(1);
        assert!(!out.err().contains("beginning again"), "{out}");
        assert!(out.err().contains("begin from another profile with --profile read-only"), "{out}");
    });
}

/// One file is written, and the rule is about more: the reason says so, for the directory and for calls.
#[test]
fn a_rule_that_is_wider_than_what_was_refused_says_why() {
    in_worlds(|world| {
        let (kept, new) = (world.outside.join("kept"), world.outside.join("new"));
        let out = learn(world, &[], &format!("echo x > {}", new.display())).run().success();
        let profile = learned(world).unwrap();
        let directory = &profile["paths"]["write"][0];
        assert_eq!(directory["path"], world.outside.to_str().unwrap(), "{profile:#}");
        let why = directory["why"].as_str().unwrap();
        assert!(why.contains("whole directory") && why.contains(new.to_str().unwrap()), "{why}");
        assert!(out.err().contains("for the whole directory"), "{out}");
        let calls = profile["syscalls"]["allow"].as_array().unwrap();
        let why_of = |name: &str| {
            let entry = calls.iter().find(|entry| entry["call"].as_str().unwrap().starts_with(name)).unwrap();
            entry["why"].as_str().unwrap().to_string()
        };
        assert_eq!(why_of("openat"), "refused in round 1: openat of sh");
        let why = why_of("unlink");
        let says = "refused in round 1: openat of sh; unlink itself was not, but goes with it";
        assert!(why.starts_with(says), "{why}");
        assert!(out.err().contains("sh (openat; goes with it)"), "{out}");
        // The twin: a rule about the file itself.
        let out = learn(world, &[], &format!("echo x >> {}", kept.display())).run().success();
        let profile = learned(world).unwrap();
        let file = &profile["paths"]["write"][0];
        assert_eq!(
            (&file["path"], &file["why"]),
            (&kept.to_str().into(), &"refused in round 1: openat of sh".into())
        );
        assert!(!out.err().contains("whole directory"), "{out}");
    });
}

/// A file named "" is nowhere: no rule is of use. The name is empty as long as mktemp(1) may write nothing.
#[test]
fn an_empty_name_teaches_nothing() {
    in_worlds(|world| {
        let out = world.sbx(["run", "-p", "minimal", "--", "/bin/sh", "-c", ": > \"\""]).run();
        assert!(out.err().contains("its path is empty, so it fails in any case"), "{out}");
        assert!(!out.err().contains("allow it with"), "{out}");
        let script = "f=$(mktemp); echo a > \"$f\"; cat \"$f\"; rm \"$f\"";
        let out = learn(world, &[], script).run().success();
        let profile = learned(world).unwrap().to_string();
        assert!(profile.contains("${TMP}") && !profile.contains("${WORKSPACE}"), "{profile} {out}");
        assert_eq!(under_learned(world, script).success().out(), "a\n");
        assert!(!under_learned(world, "echo x > made").err().is_empty() && !world.exists("made"));
        // The twin: a name that is one.
        learn(world, &[], "echo x > made").run().success();
        assert!(learned(world).unwrap().to_string().contains("${WORKSPACE}"));
    });
}

/// What is no regular file would be replaced, and what a link leads to would not be written.
#[test]
fn a_profile_goes_to_a_regular_file_alone() {
    in_worlds(|world| {
        let kept = world.write("../kept.json", "as it was");
        let link = world.path("../link.json");
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        std::os::unix::fs::symlink("nowhere", world.path("../dangling.json")).unwrap();
        world.bare(["mkfifo", "../pipe.json"]).run().success();
        let device = world.path("../device.json");
        let made = std::process::Command::new("mknod").arg(&device).args(["c", "1", "3"]).status();
        let has_device = made.is_ok_and(|status| status.success());
        let kind = |path: &str| world.path(path).symlink_metadata().map(|meta| meta.file_type()).ok();
        for (path, what) in [
            ("../link.json", "a symbolic link"),
            ("../dangling.json", "a symbolic link"),
            ("../pipe.json", "a pipe"),
            ("../device.json", "a device"),
            ("/dev/stdout", "a symbolic link"),
            ("/dev/null", "a device"),
            ("..", "names no file"),
        ] {
            if path == "../device.json" && !has_device {
                continue;
            }
            let before = kind(path);
            let out = world.sbx(["learn", "-o", path, "--", "touch", "started"]).run();
            let out = out.refused(125, &["cannot write the profile", what]);
            assert_eq!((kind(path), world.exists("started")), (before, false), "{path}: {out}");
        }
        assert_eq!(world.read("../kept.json").as_deref(), Some("as it was"));
        // The twin.
        let out = world.sbx(["learn", "-o", "../kept.json", "--", "true"]).run().success();
        assert!(world.read("../kept.json").unwrap().contains("extends"), "{out}");
    });
}

/// As make(1) takes what a failed round has linked for done.
#[test]
fn what_a_round_has_left_half_made_is_told_as_a_cause() {
    in_worlds(|world| {
        let script = "test ! -e made || exit 3; echo x > made && chmod 700 made && echo done";
        let left = "what earlier rounds have left, half made, may be why";
        let out = learn(world, &[], script).run().exited(1);
        let out = out.says(left).says("nothing is written");
        assert!(world.exists("made") && !out.out().contains("done") && learned(world).is_none(), "{out}");
        // A command that has written nothing, and one that passes.
        assert!(!learn(world, &[], "exit 3").run().exited(1).err().contains(left));
        std::fs::remove_file(world.path("made")).unwrap();
        let out = learn(world, &["--profile", "read-only", "--rw", "."], script).run().success();
        assert!(!out.err().contains(left) && out.out().contains("done"), "{out}");
    });
}
