//! `sbx status`, and the levels of a run: on this kernel, and on one that a filter imitates.

use sbx_tests::{Cmd, Output, User, World, as_users, in_worlds, kernel, need, promise, stage};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

const CREATE: libc::c_long = libc::SYS_landlock_create_ruleset;

fn status(cmd: Cmd, code: i32) -> Value {
    let out = cmd.run().exited(code);
    serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[track_caller]
fn state(status: &Value, layer: &str, expected: &str, detail: &str) {
    let layer = &status["layers"][layer];
    assert_eq!(layer["state"], expected, "{layer}");
    assert!(layer["detail"].as_str().unwrap().contains(detail), "{layer}");
}

fn json(world: &World) -> Cmd {
    world.sbx(["status", "--json"])
}

#[test]
fn a_session_and_a_process_group_of_another_pid_namespace_are_no_obstacle() {
    need!("unshare");
    // As for what `docker exec` starts: getsid(2) and getpgrp(2) return 0.
    in_worlds(|world| {
        let words = world.user.unshare(&["--pid", "--fork", "--mount-proc"]);
        let inside = |sbx: &[&str]| world.bare(words.iter().copied()).arg(stage::sbx()).args(sbx).run();
        let status = inside(&["status", "--json"]).success();
        let found: Value = serde_json::from_slice(&status.stdout).unwrap();
        state(&found, "seccomp", "works", "");
        assert_eq!(inside(&["run", "--", "echo", "inside"]).success().out(), "inside\n");
        let on_terminal =
            world.bare(words.iter().copied()).arg(stage::sbx()).args(["run", "--", "echo", "inside"]);
        let (running, _terminal) = on_terminal.start_on_terminal();
        running.wait().success();
    });
}

#[test]
fn features_of_this_machine_are_found_by_using_them() {
    in_worlds(|world| {
        let found = status(json(world), 0);
        assert_eq!(found["version"], 1);
        for layer in ["processes", "seccomp", "notification"] {
            state(&found, layer, "works", "");
        }
        let abi = found["layers"]["landlock"]["abi"].as_i64().unwrap();
        assert_eq!(found["level"], kernel::level(), "{found}");
        let said = world.sbx(["run", "-v", "--", "true"]).run().success();
        if abi == 0 {
            state(&found, "landlock", "missing", "");
            assert!(found["raise"][0].as_str().unwrap().contains("level standard"), "{found}");
            said.says("warning: ").says("paths not restricted").says("at level minimal");
            return;
        }
        for layer in ["landlock", "landlock-files"] {
            state(&found, layer, "works", "");
        }
        for (layer, least) in [("landlock-tcp", 4), ("landlock-signals", 6), ("landlock-abstract", 6)] {
            state(&found, layer, if abi >= least { "works" } else { "missing" }, "");
        }
        assert_eq!(found["layers"]["landlock"]["features"]["truncate"], abi >= 3);
        assert_eq!(found["around"]["sbx"], false);
        let raise = found["raise"].as_array().unwrap();
        assert_eq!(
            raise.iter().any(|line| line.as_str().unwrap().contains("level full")),
            kernel::level() != "full",
            "{found}"
        );
        state(&found, "own-view", if kernel::gives_namespaces() { "works" } else { "refused" }, "");
        state(&found, "own-packages", if kernel::gives_namespaces() { "works" } else { "refused" }, "");
        assert!(
            found["layers"]["own-packages"]["homes"].as_str().unwrap().ends_with("/sbx/homes"),
            "{found}"
        );
        assert!(said.err().contains(&format!("at level {}", kernel::level())), "{said}");
        // The verbose line of a run names the same version.
        assert!(said.err().contains(&format!("Landlock ABI {abi}")), "{said}");
    });
}

#[test]
fn a_user_without_a_home_keeps_no_packages_and_nothing_is_left_of_trying() {
    in_worlds(|world| {
        let before = entries(&world.home);
        status(json(world), 0);
        assert_eq!(entries(&world.home), before);
        let found =
            status(json(world).env("HOME", "/nonexistent").env("XDG_STATE_HOME", "/nonexistent/state"), 0);
        state(&found, "own-packages", "untried", "no directory to keep them in");
        assert_eq!(found["layers"]["own-packages"]["homes"], Value::Null);
    });
}

fn entries(directory: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_table_is_plain_where_colours_are_unwanted() {
    let world = World::new(&User::current());
    let out = world.sbx(["status"]).run().success();
    assert!(
        out.out().starts_with(&format!("level {}: ", kernel::level())) && !out.out().contains('\x1b'),
        "{out}"
    );
    let shown = |cmd: Cmd| -> Output {
        let (running, _terminal) = cmd.env("TERM", "xterm").start_on_terminal();
        running.wait().success()
    };
    assert!(shown(world.sbx(["status"])).out().contains(&format!("m{}\x1b[0m", kernel::level())));
    let (running, _terminal) = world.sbx(["status"]).env("TERM", "dumb").start_on_terminal();
    assert!(!running.wait().success().out().contains('\x1b'));
    assert!(!shown(world.sbx(["status"]).env("NO_COLOR", "1")).out().contains('\x1b'));
}

#[test]
fn a_kernel_without_landlock_is_level_minimal_and_each_run_says_so() {
    in_worlds(|world| {
        let secret = world.home.join(".netrc");
        for (errno, reason) in [
            (libc::ENOSYS, "this kernel has no Landlock"),
            (libc::EOPNOTSUPP, "turned off in this kernel"),
            (libc::EPERM, "a sandbox around this one refuses Landlock"),
        ] {
            let without = |cmd: Cmd| cmd.answering(&[(CREATE, errno)]);
            let found = status(without(json(world)), 0);
            assert_eq!(found["level"], "minimal");
            assert_eq!(found["layers"]["landlock"]["abi"], 0);
            state(&found, "landlock", if errno == libc::EPERM { "refused" } else { "missing" }, reason);
            assert!(found["raise"][0].as_str().unwrap().contains(reason), "{found}");
            let run = |flags: &[&str], command: &[&str]| {
                without(world.sbx([&["run"], flags, &["--"], command].concat())).run()
            };
            // A denial that would not hold ends the run; the same profile without one goes on.
            let profile = |deny: &str| {
                let text = format!(r#"{{ "extends": "workspace", "paths": {{ "deny": [{deny}] }} }}"#);
                world.write("own.json", text);
                run(&["-p", "./own.json"], &["touch", "made"])
            };
            profile(r#""/etc/hosts""#).refused(125, &["cannot deny '/etc/hosts'", "paths.deny", reason]);
            assert!(!world.exists("made"));
            profile("").success();
            assert!(world.exists("made"));
            fs::remove_file(world.path("made")).unwrap();
            // The promise that is not made, and the warning about it; system calls stay restricted.
            let cat = ["cat", secret.to_str().unwrap()];
            run(&["-p", "minimal"], &cat)
                .success()
                .says("warning: ")
                .says(reason)
                .says("files are not restricted");
            if kernel::promises(kernel::PATHS) {
                world.run("minimal", cat).run().failed();
            }
            run(&["-p", "minimal"], &["touch", "made"]).failed();
            run(&["--require", "minimal"], &["true"]).success();
            run(&["--require", "standard"], &["touch", "made"]).refused(125, &["--require", reason]);
            run(&["--ro", "/etc"], &["touch", "made"]).refused(125, &["cannot enforce path rules", reason]);
            assert!(!world.exists("made"));
        }
    });
}

#[test]
fn full_is_refused_with_the_reason_where_it_is_unavailable() {
    in_worlds(|world| {
        world.sbx(["run", "--require", kernel::level(), "--", "true"]).run().success();
        let full =
            |more: &[&str]| world.sbx(["run", "--require", "full"]).args(more).args(["--", "touch", "made"]);
        if kernel::level() != "full" {
            full(&[]).run().refused(125, &["level"]);
            return;
        }
        full(&["--namespaces", "none"]).run().refused(125, &["level 'full'", "--namespaces none"]);
        full(&["--exec"]).run().refused(125, &["level 'full'", "--exec"]);
        full(&[]).docker().run().refused(125, &["level 'full'", "not permitted"]);
        assert!(!world.exists("made"));
        // Also under a profile that needs no namespaces itself.
        full(&["-p", "write"]).run().success();
        assert!(world.exists("made"));
    });
}

#[test]
fn without_filters_nothing_can_be_run() {
    in_worlds(|world| {
        let without = |cmd: Cmd| cmd.answering(&[(libc::SYS_seccomp, libc::ENOSYS)]);
        let found = status(without(json(world)), 1);
        assert_eq!(found["level"], "none");
        state(&found, "seccomp", "missing", "not implemented");
        without(world.sbx(["run", "--", "touch", "made"])).run().refused(125, &["install the filter"]);
        assert!(!world.exists("made"));
    });
}

#[test]
fn a_feature_that_only_pretends_to_work_does_not_count() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let pretends = json(world).answering(&[(libc::SYS_landlock_restrict_self, 0)]);
        let found = status(pretends, 0);
        assert_eq!(found["level"], "minimal", "{found}");
        state(&found, "landlock", "missing", "not refused");
    });
}

#[test]
fn a_container_is_distinguished_from_a_kernel_without_namespaces() {
    in_worlds(|world| {
        let found = status(json(world).docker(), 0);
        assert_eq!(found["level"], kernel::level_without_namespaces());
        state(&found, "pidfd-getfd", "refused", "not permitted");
        for layer in ["user-namespace", "mount-namespace", "net-namespace"] {
            state(&found, layer, "refused", ": ");
        }
        assert_eq!(found["around"]["seccomp"], true);
        let lacks = json(world).answering(&[(libc::SYS_unshare, libc::EINVAL)]);
        state(&status(lacks, 0), "user-namespace", "missing", "invalid argument");
    });
}

#[test]
fn inside_sbx_the_outer_sandbox_is_named() {
    in_worlds(|world| {
        let sbx = stage::sbx().to_str().unwrap();
        let inside = |profile: &str| world.run(profile, [sbx, "status", "--json"]);
        let found = status(inside("workspace"), 0);
        assert_eq!(
            (&found["level"], &found["around"]["sbx"]),
            (&kernel::level_without_namespaces().into(), &true.into())
        );
        state(&found, "notification", "refused", "listens already");
        state(&found, "user-namespace", "refused", "an sbx around this process");
        // Nothing can be started there, so nothing can be run.
        let found = status(inside("minimal"), 1);
        assert_eq!(found["level"], "none");
        state(&found, "processes", "untried", "not permitted");
        state(&found, "landlock", "refused", "a sandbox around this one refuses Landlock");
    });
}

#[test]
fn proc_is_not_needed() {
    need!("unshare", "mount");
    as_users(|user| {
        let world = World::new(user);
        let script = format!("mount -t tmpfs none /proc && exec {} status --json", stage::sbx().display());
        let found = status(world.bare([&user.unshare(&[])[..], &["sh", "-c", &script]].concat()), 0);
        // Its own mount namespace hides /proc, so Landlock is as before.
        assert_ne!(found["level"], "none");
        assert_eq!(found["around"]["proc"], false);
        state(&found, "cgroup", "missing", "/proc is not there");
    });
}
