//! What takes the place of /tmp beside a home of the run's own.

use std::fs;
use std::path::Path;

use sbx_tests::stage::Removed;
use sbx_tests::{World, need, processes};

use crate::namespaces::with_namespaces;

/// What takes the place of /tmp may be an earlier run's directory, of which nothing is left.
#[test]
fn nothing_in_tmp_lasts_or_is_shared() {
    with_namespaces(|user| {
        let world = World::new(user);
        for profile in ["workspace", "read-only"] {
            let run = |script: &str| world.sbx(["run", "-q", "-p", profile, "--", "sh", "-c", script]);
            let empty = || assert_eq!(run("ls -A /tmp; stat -c %a /tmp").run().success().out(), "700\n");
            empty();
            for leave in [
                "mkdir -p /tmp/a/b && echo x > /tmp/a/b/c && chmod 0 /tmp/a && touch /tmp/x",
                "chmod 755 /tmp",
                "mkfifo /tmp/pipe; ln -s / /tmp/link",
            ] {
                run(leave).run().success();
                empty();
            }
            let waits = "echo mine > /tmp/mine; echo ready; while [ ! -e go ]; do sleep 0.02; done; ls /tmp";
            let first = run(waits).start();
            first.wait_for("ready");
            empty();
            world.write("go", "");
            assert_eq!(first.wait().success().out(), "ready\nmine\n");
            fs::remove_file(world.workspace.join("go")).unwrap();
            empty();
            let marker = processes::marker();
            let killed = run(&format!("echo x > /tmp/left; echo ready; sleep 60; : {marker}")).start();
            killed.wait_for("ready");
            killed.signal(libc::SIGKILL);
            killed.wait().died_of(libc::SIGKILL);
            processes::none_left(&marker);
            empty();
        }
    });
}

/// Wherever what takes the place of /tmp is outside.
#[test]
fn a_denial_of_tmp_holds_for_what_takes_its_place() {
    with_namespaces(|user| {
        let world = World::new(user);
        let elsewhere = world.home.join("elsewhere");
        world.make_dir(&elsewhere);
        for profile in ["workspace", "read-only"] {
            let run = |flags: &[&str]| {
                let command = ["--", "sh", "-c", "ls /tmp && : > /tmp/made && ls /tmp"];
                world.sbx([&["run", "-q", "-p", profile][..], flags, &command].concat())
            };
            for denied in [&["--deny", "/tmp"][..], &["--deny", "/tmp", "--home", "closed"]] {
                run(denied).run().failed().prints("");
                run(denied).env("TMPDIR", &elsewhere).run().failed().prints("");
            }
            run(&[]).run().success().prints("made\n");
            run(&[]).env("TMPDIR", &elsewhere).run().success().prints("made\n");
        }
    });
}

#[test]
fn what_is_written_in_the_runs_own_tmp_is_said_to_be_gone() {
    with_namespaces(|user| {
        let world = World::new(user);
        let name = processes::marker();
        let run = |flags: &[&str]| {
            let words = [&["run"][..], flags, &["--", "touch", &name]].concat();
            world.sbx(words).cwd("/tmp").run().success()
        };
        let gone = "'/tmp' is the run's own: what is written there is gone afterwards";
        run(&[]).says(gone);
        assert!(!Path::new("/tmp").join(&name).exists());
        let made = Removed(Path::new("/tmp").join(&name));
        let out = run(&["--workspace", "/tmp"]);
        assert!(made.0.exists() && !out.err().contains(gone), "{out}");
    });
}

/// Shared memory is the run's own, too: what is there is out of sight, but for the workspace.
#[test]
fn a_home_may_be_in_shared_memory() {
    need!("git");
    with_namespaces(|user| {
        let world = World::new(user);
        let home = Removed(Path::new("/dev/shm").join(processes::marker()));
        let make =
            "mkdir -p \"$0/.ssh\" \"$0/project\" && echo key > \"$0/.ssh/key\" && git init -q \"$0/project\"";
        world.bare(["sh", "-c", make]).arg(&home.0).run().success();
        let run = |directory: &Path, script: &str| {
            world.sbx(["run", "-q", "--", "sh", "-c", script]).env("HOME", &home.0).cwd(directory)
        };
        for directory in [&world.workspace, &home.0.join("project")] {
            run(directory, "echo made > ~/made && echo x > here && ! cat ~/.ssh/key")
                .run()
                .success()
                .prints("");
            run(directory, "cat here; test ! -e ~/made").run().success().prints("x\n");
        }
        assert!(!home.0.join("made").exists());
        let hook = home.0.join("project/.git/hooks/pre-commit");
        run(&home.0.join("project"), "echo x > .git/hooks/pre-commit; mv .git away").run().failed();
        assert!(!hook.exists() && hook.parent().is_some_and(Path::exists));
        world.bare(["sh", "-c", "echo x > \"$0\""]).arg(&hook).run().success();
    });
}

/// The error says why the directory is not there.
#[test]
fn a_run_does_not_start_where_it_is_denied() {
    with_namespaces(|user| {
        let world = World::new(user);
        let above = world.home.join("above");
        world.make_dir(&above.join("below"));
        let run = |flags: &[&str]| {
            let flags = [&["run", "-q", "--ro", "/", "--deny", above.to_str().unwrap()], flags].concat();
            world.sbx(flags).args(["--", "pwd"]).cwd(above.join("below"))
        };
        run(&[]).run().refused(125, &["cannot start in", "above' is denied", "--cwd"]);
        run(&["--cwd", "/"]).run().success().prints("/\n");
    });
}
