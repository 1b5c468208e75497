//! Names that programs outside act on, and where nothing stands during a run: what is made there is put aside.

use super::{in_namespaces, names, shell, user_of};
use sbx_tests::{Cmd, User, World, as_users, need, promise};
use sbx_tests::{kernel, processes};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

/// A user of direnv, mise, vim and an agent.
fn stage(user: &User) -> World {
    user_of(user, &[".config/direnv", ".config/mise", ".vim", ".gemini"])
}

fn staged(body: impl Fn(&World)) {
    super::with_namespaces(|user| body(&stage(user)));
}

/// Without namespaces what is made stays until the end.
const WITHOUT: &[&str] = &["-q", "--namespaces", "none"];

/// In both ways to run, with the names that are left.
fn in_both_ways(prepare: impl Fn(&World), script: &str, left: &[&str]) {
    as_users(|user| {
        promise!(kernel::PATHS);
        for flags in [&["-q"][..], WITHOUT] {
            let world = stage(user);
            prepare(&world);
            shell(&world, flags, script).run();
            assert_eq!(names(&world.workspace), left, "{flags:?}: {script}");
            assert!(!world.exists(".config/mise.toml"), "{flags:?}: {script}");
        }
    });
}

#[test]
fn nothing_is_visible_where_nothing_was() {
    staged(|world| {
        let out = shell(world, &[], "ls -A; find . -mindepth 1").run().success();
        out.prints("").silent();
        assert!(names(&world.workspace).is_empty());
    });
}

/// By each way to make a name.
#[test]
fn what_is_made_is_put_aside() {
    let ways = [
        "echo planted > .envrc",
        "echo planted > x; ln x .envrc; rm x",
        "echo planted > x; mv x .envrc",
        "ln -s /etc/passwd .envrc",
        "mkfifo .envrc",
        "mkdir x; echo planted > x/y; mv x .envrc",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\".envrc\")'",
    ];
    for way in ways {
        in_both_ways(|_| {}, &format!("{way}; sleep 0.05"), &[".envrc.sbx-aside"]);
    }
    // Below a directory that the command makes, or brings along, or that it has a link lead to.
    in_both_ways(|_| {}, "mkdir .config; sleep 0.05; echo planted > .config/mise.toml", &[".config"]);
    in_both_ways(|_| {}, "mkdir x; echo planted > x/mise.toml; mv x .config", &[".config"]);
    in_both_ways(
        |_| {},
        "mkdir x; echo planted > x/mise.toml; ln -s x .config; sleep 0.05",
        &[".config.sbx-aside", "x"],
    );
}

/// A profile may refuse what its parent would put aside, in whichever order they name it.
#[test]
fn what_a_profile_keeps_from_being_made_is_not_looked_for_as_well() {
    staged(|world| {
        let own = r#"{"extends": "workspace", "paths": {"protect": ["${WORKSPACE}/.envrc"]}}"#;
        fs::write(world.outside.join("own.json"), own).unwrap();
        let profile = world.outside.join("own.json").into_os_string().into_string().unwrap();
        let run = |script: &str| shell(world, &["-p", &profile], script).run();
        run("true").success().silent();
        run("echo planted > .envrc").failed();
        assert!(names(&world.workspace).is_empty());
        shell(world, &[], "echo planted > .envrc; sleep 0.05").run();
        assert_eq!(names(&world.workspace), [".envrc.sbx-aside"]);
    });
}

/// While the run goes on, and not only at its end.
#[test]
fn what_is_made_deep_down_is_put_aside_at_once() {
    staged(|world| {
        for script in [
            "mkdir .config; sleep 0.05; echo planted > .config/mise.toml",
            "mkdir .config; echo planted > .config/mise.toml",
            "mkdir -p x; echo planted > x/mise.toml; mv x .config",
        ] {
            let script = format!(
                "{script}; sleep 0.1; cat .config/mise.toml && echo there; cat .config/mise.toml.sbx-aside"
            );
            shell(world, &["-q"], &script).run().prints("planted\n");
            fs::remove_dir_all(world.path(".config")).unwrap();
        }
        let script = "mkdir x; echo planted > x/mise.toml; ln -s x .config; sleep 0.1; cat .config/mise.toml";
        shell(world, &["-q"], script).run().failed().prints("");
    });
}

/// Where a name was put aside once, nothing can be made until the run ends: a program outside would see it.
#[test]
fn a_name_is_held_after_the_first_attempt() {
    staged(|world| {
        let script = "echo first > .envrc; sleep 0.1; echo more > .envrc; rm -f .envrc; mv -T x .envrc; mkdir .envrc; \
                      ln -sfn x .envrc; chmod 777 .envrc; echo ready; until [ -e go ]; do sleep 0.02; done";
        world.write("x", "");
        let running = shell(world, &[], script).start();
        running.wait_for("ready");
        // What stands there leads nowhere.
        assert!(fs::metadata(world.path(".envrc")).is_err() && world.path(".envrc").is_symlink());
        assert_eq!(names(&world.workspace), [".envrc", ".envrc.sbx-aside", "x"]);
        world.write("go", "");
        let out = running.wait().success();
        let out = out.says(".envrc' during the run").says(".envrc.sbx-aside'");
        assert_eq!(out.err().matches("sbx: ").count(), 1, "{out}");
        assert_eq!(names(&world.workspace), [".envrc.sbx-aside", "go", "x"]);
        assert_eq!(world.read(".envrc.sbx-aside").as_deref(), Some("first\n"));
    });
}

/// A command that opens what stands there, in the moment before it is held, has nothing that it can write to.
#[test]
fn a_descriptor_from_before_is_of_no_use() {
    need!("python3");
    staged(|world| {
        world.write(
            "race.py",
            "import os, time\n\
             until = time.time() + 2\n\
             def tries(*calls):\n    for call in calls:\n        try: call()\n        except OSError: pass\n\
             while time.time() < until:\n    \
                 tries(lambda: os.mkdir('.gemini'), lambda: os.rmdir('.gemini'), lambda: os.unlink('.gemini'),\n          \
                       lambda: os.rename('prepared', '.gemini'), lambda: os.makedirs('prepared/x'),\n          \
                       lambda: os.close(os.open('.gemini/x/settings.json', os.O_CREAT | os.O_WRONLY)))\n",
        );
        shell(world, &["-q"], "exec python3 race.py").run();
        assert!(!world.exists(".gemini") && !world.path(".gemini").is_symlink());
        // The directory itself must not come back under its name.
        assert!(names(&world.workspace).iter().any(|name| name.starts_with(".gemini.sbx-aside")));
    });
}

/// Killed at any moment, and two at a time: no link stays, or the next run removes it.
#[test]
fn links_go_with_the_runs() {
    staged(|world| {
        let script = "echo planted > .envrc; sleep 0.1; echo ready; sleep 100";
        let clean = || {
            for _ in 0..500 {
                if !world.path(".envrc").is_symlink() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            panic!("a link is left");
        };
        let start = || {
            let running = shell(world, &["-q"], script).start();
            running.wait_for("ready");
            running
        };
        let (one, other) = (start(), start());
        one.signal(libc::SIGTERM);
        one.wait();
        other.signal(libc::SIGKILL);
        other.wait();
        clean();
        // Supervisor and first process at once.
        let marker = processes::marker();
        let running = shell(world, &["-q"], &format!("{script}; : {marker}")).start();
        running.wait_for("ready");
        running.kill_with_children();
        processes::none_left(&marker);
        assert!(world.path(".envrc").is_symlink());
        shell(world, &["-q"], "echo planted > .envrc; rm -f .envrc; true").run();
        clean();
        assert!(!world.exists(".envrc"));
    });
}

/// The run that made the name first ends before the other makes it again.
#[test]
fn a_run_beside_another_watches_the_name_again() {
    staged(|world| {
        let first = shell(
            world,
            &["-q"],
            "echo one > .envrc; sleep 0.1; echo ready; until [ -e go ]; do sleep 0.02; done",
        );
        let first = first.start();
        first.wait_for("ready");
        let second = shell(
            world,
            &["-q"],
            "echo ready; until [ -e then ]; do sleep 0.02; done; echo two > .envrc; sleep 0.1",
        );
        let second = second.start();
        second.wait_for("ready");
        world.write("go", "");
        first.wait().success();
        world.write("then", "");
        second.wait();
        assert!(!world.exists(".envrc"));
        assert_eq!(world.read(".envrc.sbx-aside-2").as_deref(), Some("two\n"));
    });
}

/// The command has ended, and what it left behind goes on for a moment.
#[test]
fn what_is_left_behind_makes_nothing_either() {
    staged(|world| {
        let script =
            "(sleep 0.05; echo x > .envrc; sleep 0.05; test -f .envrc && cp .envrc seen; sleep 9) & exit 0";
        shell(world, &["-q"], script).run();
        assert!(!world.exists(".envrc") && !world.exists("seen"));
        assert!(world.exists(".envrc.sbx-aside"));
    });
}

/// A directory that comes to be above a watched name stays where it is, or its turns would hide what is made below.
#[test]
fn a_directory_above_a_watched_name_is_held() {
    staged(|world| {
        let script = "mkdir .config; sleep 0.05; mv .config away; mkdir other; mv -T --exchange other .config; ls -d .config away";
        shell(world, &["-q"], script).run().failed().prints(".config\n");
        assert_eq!(names(&world.workspace), [".config", "other"]);
    });
}

/// Neither by its mode at first, nor later: the next run would be refused.
#[test]
fn no_directory_above_a_watched_name_is_closed() {
    as_users(|user| {
        promise!(kernel::PATHS);
        for flags in [&["-q"][..], WITHOUT] {
            for close in ["mkdir -m 000 .config", "mkdir .config; chmod 000 .config"] {
                let world = stage(user);
                shell(&world, flags, &format!("{close}; sleep 0.05")).run();
                let after = shell(&world, flags, "ls -A").run().success();
                assert!(
                    ["", ".config\n", ".config.sbx-aside\n"].contains(&&*after.out()),
                    "{flags:?} {close}: {after}"
                );
                world.bare(["chmod", "-R", "u+rwx", "."]).run();
            }
        }
    });
}

/// Only what was not there at the start is put aside, whatever the command makes of the rest.
#[test]
fn a_workspace_that_was_closed_keeps_its_name() {
    as_users(|user| {
        promise!(kernel::PATHS);
        let world = stage(user);
        shell(&world, WITHOUT, "chmod 000 .").run();
        assert!(!names(&world.home).iter().any(|name| name.ends_with(".sbx-aside")));
        assert!(world.workspace.is_dir());
        fs::set_permissions(&world.workspace, fs::Permissions::from_mode(0o755)).unwrap();
    });
}

/// While the run goes on: a program outside that runs as root sees what is in it.
#[test]
fn a_closed_directory_above_a_watched_name_is_put_aside_at_once() {
    staged(|world| {
        let script = "mkdir -m 000 .config; sleep 0.1; ls -d .config.sbx-aside";
        shell(world, &["-q"], script).run().success().prints(".config.sbx-aside\n");
        world.bare(["chmod", "-R", "u+rwx", "."]).run();
    });
}

/// What was there, what nobody reads, and what the user names stays.
#[test]
fn everything_else_stays() {
    as_users(|user| {
        promise!(kernel::PATHS);
        for flags in [&["-q"][..], WITHOUT] {
            let world = stage(user);
            fs::remove_dir(world.home.join(".vim")).unwrap();
            world.write(".envrc", "mine\n");
            symlink("settings", world.path(".config")).unwrap();
            world.make_dir(&world.path("settings"));
            let script = "echo x > .exrc; echo x > .envrc.local; mkdir -p sub; echo x > sub/.envrc; echo x > settings/x";
            shell(&world, flags, script).run().success();
            let left = [".config", ".envrc", ".envrc.local", ".exrc", "settings", "sub"];
            assert_eq!(names(&world.workspace), left, "{flags:?}");
            assert_eq!(names(&world.path("sub")), [".envrc"]);
        }
    });
}

#[test]
fn the_report_lists_what_was_put_aside() {
    as_users(|user| {
        promise!(kernel::PATHS);
        for flags in [&[][..], &["--namespaces", "none"]] {
            let world = stage(user);
            let report = world.outside.join("report");
            let path = report.display().to_string();
            let flags = [&["-q", "--report", &path], flags].concat();
            shell(&world, &flags, "echo planted > .envrc; sleep 0.05").run().success();
            let report: serde_json::Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
            let finding = &report["findings"][0];
            assert_eq!(finding["kind"], "file-made", "{report}");
            assert!(finding["path"].as_str().unwrap().ends_with("/.envrc"));
            assert!(finding["put_aside"][0].as_str().unwrap().ends_with("/.envrc.sbx-aside"));
        }
    });
}

/// A storm of other names costs no run its protection, and no name its place.
#[test]
fn many_other_names_hide_none() {
    staged(|world| {
        let storm = "for n in 1 2 3; do python3 -c 'for n in range(20000): open(f\"f{n % 500}.{n}\", \"w\")' & done; \
                     wait; echo planted > .envrc; sleep 0.2; ls .envrc.sbx-aside; find . -name 'f*' -delete";
        shell(world, &["-q"], storm).run().success().prints(".envrc.sbx-aside\n");
    });
}

/// Whoever asks is told.
#[test]
fn why_knows_the_names() {
    in_namespaces(|world| {
        world.make_dir(&world.home.join(".config/direnv"));
        let why = |path: &str| -> Cmd { world.sbx(["why", "--path", path, "--op", "w"]) };
        let out = why(".envrc").run().failed();
        assert!(out.out().starts_with("refused: profile 'workspace' protects"), "{out}");
        why(".exrc").run().success();
    });
}
