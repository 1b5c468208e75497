//! Repositories that come to be in parts: over several runs, in runs at the same time, and beside a `.git` that is none
//! any more.

use super::aftermath::{in_directories, looked_at, planted};
use super::git::plain;
use super::pointers::{begin_anew, executes};
use super::shell;
use sbx_tests::World;

/// A configuration of a repository whose working tree is its own directory.
const CONFIGURE: &str = "printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\n\
                         fsmonitor = \"PLANTED; false\"\\n' > config";
const HOOKS: &str = "mkdir -p $HOOKS; for hook in pre-receive post-index-change; do \
                     printf '#!/bin/sh\\nPLANTED\\n' > $HOOKS/$hook; chmod +x $HOOKS/$hook; done";

fn run(world: &World, script: &str) -> String {
    shell(world, &[], &planted(world, script)).run().err()
}

#[test]
fn what_makes_a_repository_of_the_workspace_later_is_put_aside() {
    in_directories(|world| {
        let parts = format!("set -e; mkdir objects refs; {CONFIGURE}; HOOKS=hooks; {HOOKS}");
        let said = run(world, &parts);
        assert!(said.contains("core.fsmonitor") && said.contains("config.sbx-aside"), "{said}");
        run(world, "echo 'ref: refs/heads/main' > HEAD");
        assert!(!looked_at(world, "."));
        plain(world, "mv config.sbx-aside config");
        assert!(looked_at(world, "."));
    });
}

/// A file of this name may be anything, and nobody need be able to read it.
#[test]
fn a_file_of_the_users_that_is_called_config_stays() {
    in_directories(|world| {
        for with_git in [false, true] {
            if with_git {
                begin_anew(world);
            }
            let text = "[core]\n\tbare = false\n\tpager = mine\n";
            world.write("config", text);
            plain(world, "sleep 0.05");
            shell(world, &[], "ls; echo made > made").run().success().silent();
            assert_eq!(world.read("config").as_deref(), Some(text));
            if with_git {
                plain(world, "chmod 000 config");
                shell(world, &[], "git status -s >/dev/null; touch more").run().success().silent();
                assert!(world.exists("config") && !world.exists("config.sbx-aside"));
                assert_eq!(shell(world, &["-q"], "ls -d commondir hooks").run().out(), "");
            }
        }
    });
}

#[test]
fn a_bare_repository_beside_a_broken_one_is_protected() {
    in_directories(|world| {
        begin_anew(world);
        run(world, "mv .git/HEAD .git/H; git init -q --bare .");
        let said = run(world, &format!("{CONFIGURE}; HOOKS=hooks; {HOOKS}"));
        assert!(said.contains("/config") && said.contains("/hooks"), "{said}");
        assert!(!looked_at(world, "."));
        plain(world, &planted(world, CONFIGURE));
        assert!(looked_at(world, "."));
    });
}

#[test]
fn what_another_run_has_recorded_meanwhile_is_put_aside() {
    in_directories(|world| {
        begin_anew(world);
        let until = |file: &str| format!("until test -e {file}; do sleep 0.02; done");
        let make = "git init -q sub; git -C sub commit -q --allow-empty -m x; echo made";
        let first = shell(world, &["-q"], &format!("{make}; {}", until("end-first"))).start();
        first.wait_for("made");
        let change =
            format!("cd sub/.git; {}; HOOKS=hooks; {HOOKS}", CONFIGURE.replace("worktree = .\\n", ""));
        let script = format!("echo began; {}; {change}", until("end-second"));
        let second = shell(world, &[], &planted(world, &script)).start();
        second.wait_for("began");
        plain(world, "touch end-first");
        first.wait().success();
        plain(world, "touch end-second");
        let out = second.wait();
        assert!(out.err().contains("config.sbx-aside"), "{out}");
        assert!(!looked_at(world, "sub"), "{out}");
        plain(world, "mv sub/.git/config.sbx-aside sub/.git/config");
        assert!(looked_at(world, "sub"));
    });
}

/// What is pushed to a repository, it receives in its own directory.
#[test]
fn a_relative_directory_of_hooks_is_protected_in_the_repository_too() {
    in_directories(|world| {
        begin_anew(world);
        plain(world, "mkdir .githooks; touch .githooks/x; git config core.hooksPath .githooks");
        plain(world, "rm -rf ../clone; git clone -q . ../clone");
        let plant = format!("HOOKS=.git/.githooks; {HOOKS}");
        let push = |branch: &str| format!("cd ../clone && git push origin HEAD:refs/heads/{branch}");
        run(world, &plant);
        assert!(!executes(world, &push("one")));
        plain(world, &planted(world, &plant));
        assert!(executes(world, &push("two")));
    });
}

#[test]
fn a_new_repository_has_no_hooks_where_the_user_names_some() {
    in_directories(|world| {
        begin_anew(world);
        let user = world.read(world.home.join(".gitconfig")).unwrap();
        world.write(world.home.join(".gitconfig"), format!("{user}[core]\n\thooksPath = .githooks\n"));
        let said = run(world, &format!("git init -q --bare x.git; HOOKS=x.git/.githooks; {HOOKS}"));
        assert!(said.contains(".githooks.sbx-aside"), "{said}");
        let push = |branch: &str| format!("git push ./x.git HEAD:refs/heads/{branch}");
        assert!(!executes(world, &push("one")));
        plain(world, "mv x.git/.githooks.sbx-aside x.git/.githooks");
        assert!(executes(world, &push("two")));
    });
}
