//! What somebody outside does between two runs is no command's.

use super::git::{in_repositories, plain};
use super::shell;
use sbx_tests::World;
use std::fs;

const LINKS: &str = "ln -s ../../scripts/hook .git/hooks/pre-commit; ln -s ../../scripts/hook .git/info/sparse; \
                     mv .git/logs moved; ln -s ../moved .git/logs";

fn are_there(world: &World) -> bool {
    [".git/hooks/pre-commit", ".git/info/sparse", ".git/logs"]
        .iter()
        .all(|path| world.path(path).is_symlink())
}

#[test]
fn links_that_somebody_makes_between_two_runs_stay() {
    in_repositories(|world| {
        world.script(world.path("scripts/hook"), "#!/bin/sh\n");
        shell(world, &[], "git log > /dev/null").run().success();
        plain(world, LINKS);
        for _ in 0..2 {
            let out = shell(world, &[], "true").run().success();
            assert!(are_there(world) && !out.err().contains("put aside"), "{out}");
        }
    });
}

/// A link of the user's in the place of settings is held by mounts, so that it is no finding either.
#[test]
fn links_to_settings_are_held_and_not_blamed() {
    in_repositories(|world| {
        plain(world, "mkdir .hg; echo '[ui]' > team.rc; ln -s ../team.rc .hg/hgrc; cp .git/config .git/own");
        plain(world, "ln -sf own .git/config");
        for flags in [&[][..], &["-v"]] {
            let out = shell(world, flags, "true").run().success();
            assert!(!out.err().contains("outside would act on"), "{out}");
            assert!(world.path(".hg/hgrc").is_symlink() && world.path(".git/config").is_symlink(), "{out}");
        }
        // Nor are they a command's if they are younger than the run.
        let running = shell(world, &[], "echo ready; while [ ! -e go ]; do sleep 0.02; done").start();
        running.wait_for("ready");
        plain(world, "touch -h .hg/hgrc .git/config; touch go");
        let out = running.wait().success();
        assert!(world.path(".hg/hgrc").is_symlink() && world.path(".git/config").is_symlink(), "{out}");
        // The twin: no mount holds them.
        let without = ["--namespaces", "none"];
        let script = "rm .hg/hgrc; mv team.rc .hg/team.rc; ln -s team.rc .hg/hgrc";
        let out = shell(world, &without, script).run();
        assert!(out.err().contains("hgrc"), "{out}");
    });
}

/// Of a run that was killed with its reaper nobody has looked at anything.
#[test]
fn links_after_a_run_without_a_look_do_not() {
    in_repositories(|world| {
        world.script(world.path("scripts/hook"), "#!/bin/sh\n");
        shell(world, &[], "true").run().success();
        let running = shell(world, &[], "echo ready; sleep 60").start();
        running.wait_for("ready");
        running.kill_with_children();
        plain(world, LINKS);
        shell(world, &[], "true").run().success().says("put aside");
        assert!(!are_there(world));
        // Nor while a run may go on.
        fs::remove_file(world.path(".git/logs")).unwrap_or_default();
        shell(world, &["-q", "--keep-background"], "true").run().success();
        shell(world, &["-q"], "true").run().success();
        plain(world, "ln -s ../../scripts/hook .git/info/other");
        shell(world, &[], "true").run().success().says("put aside");
        assert!(!world.path(".git/info/other").is_symlink());
    });
}

/// What is put aside stays where it is, and is told once.
#[test]
fn what_was_put_aside_is_not_put_aside_again() {
    in_repositories(|world| {
        let script = "mkdir .git/rebase-merge .git/rebase-apply; mkfifo .git/rebase-merge/msgnum; \
                      ln -s /none .git/rebase-apply/next; mkfifo .git/rebase-apply/other";
        shell(world, &[], script).run().success().says("put aside");
        let all = || plain(world, "find .git/rebase-merge .git/rebase-apply | sort");
        let before = all();
        assert!(before.contains("msgnum.sbx-aside") && before.contains("other.sbx-aside"), "{before}");
        for _ in 0..2 {
            let out = shell(world, &[], "true").run().success();
            assert!(!out.err().contains("put aside"), "{out}");
        }
        assert_eq!(all(), before);
    });
}
