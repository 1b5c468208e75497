//! Hooks that a configuration names from the top of each working tree: no command has git take a directory of its own
//! for such a top.

use super::aftermath::{in_directories, planted};
use super::git::{in_repositories, plain};
use super::pointers::executes;
use super::shell;

/// A hook in a directory, in the place that the configuration names.
fn hook(place: &str) -> String {
    format!(
        "mkdir -p {place}/.githooks; printf '#!/bin/sh\nPLANTED\n' > {place}/.githooks/post-index-change; \
         chmod +x {place}/.githooks/post-index-change"
    )
}

#[test]
fn no_new_file_borrows_a_protected_configuration() {
    in_repositories(|world| {
        plain(
            world,
            "git config core.hooksPath .githooks; mkdir .githooks; touch .githooks/x; cp file file2",
        );
        plain(world, "git add .; git commit -qm hooks; rm -rf ../start; cp -a . ../start");
        let linked = "cp file file2 sub; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; \
                      touch -d 2001-01-01 sub/file";
        let uses = "touch sub/file; git diff; git diff HEAD; git describe --dirty; cd sub; git status";
        for entry in [
            "echo 'gitdir: ../.git' > sub/.git",
            "ln -s ../.git sub/.git",
            // A worktree's, which names another place.
            "mv sub more; git worktree add -q sub -b new; cp -r more/.githooks sub; cp -r sub decoy; \
             echo $PWD/decoy/.git > .git/worktrees/sub/gitdir",
        ] {
            let script = planted(world, &format!("set -e; {}; {entry}; {linked}", hook("sub")));
            plain(world, &format!("rm -rf ../twin; cp -a . ../twin; cd ../twin; {script}"));
            assert!(executes(world, &format!("cd ../twin; {uses}")), "{entry}");
            let out = shell(world, &[], &script).run().success();
            assert!(out.err().contains("put aside there as .git.sbx-aside"), "{entry}: {out}");
            assert!(!executes(world, uses), "{entry}: {out}");
            plain(world, "rm -rf * .git*; cp -a ../start/. .");
        }
        // What git makes itself stays.
        let own =
            "git worktree add -q tree -b own; git -c protocol.file.allow=always submodule add -q ./ lib";
        let out = shell(world, &[], own).run();
        assert!(!out.err().contains(".git.sbx-aside"), "{out}");
        plain(world, "git -C tree status");
    });
}

/// A file of the user's that leads nowhere yet stays. It leads there only when something on the way is another.
#[test]
fn no_old_file_borrows_a_protected_configuration_later() {
    in_repositories(|world| {
        plain(world, "git config core.hooksPath .githooks; mkdir .githooks; touch .githooks/x");
        plain(world, "git add .githooks; git commit -qm hooks; rm -rf ../start; cp -a . ../start");
        let uses = "cd d; touch b; git add b; git status";
        for (first, second) in [
            ("mkdir d x; echo 'gitdir: ../x/y' > d/.git", "ln -s ../.git x/y"),
            (
                "git init -q r; mkdir d x; ln -s ../r/.git x/y; echo 'gitdir: ../x/y' > d/.git",
                "ln -sfn ../.git x/y",
            ),
        ] {
            let second = planted(world, &format!("{}; {second}", hook("d")));
            plain(world, &format!("rm -rf ../twin; cp -a . ../twin; cd ../twin; {first}; {second}"));
            assert!(executes(world, &format!("cd ../twin; {uses}")), "{second}");
            plain(world, first);
            shell(world, &[], "true").run().success();
            let out = shell(world, &[], &second).run();
            assert!(!executes(world, uses), "{second}: {out}");
            // A link that was on the way is held.
            let is_said = |text| out.err().contains(text);
            assert!(
                is_said("put aside there as .git.sbx-aside") || is_said("x/y': Device or resource busy"),
                "{second}: {out}"
            );
            plain(world, "rm -rf * .git*; cp -a ../start/. .");
        }
    });
}

/// The workspace is no repository, and what the user's configuration names is protected in each clone.
#[test]
fn the_users_configuration_counts_in_recorded_repositories() {
    in_directories(|world| {
        let user = "[user]\n\tname = x\n\temail = x@example.org\n";
        world.write("shared.gitconfig", "[core]\n");
        let shared = world.path("shared.gitconfig");
        let more =
            format!("{user}[core]\n\thooksPath = .githooks\n[include]\n\tpath = {}\n", shared.display());
        world.write(world.home.join(".gitconfig"), more);
        plain(world, "git init -q a; cd a; mkdir .githooks; touch .githooks/x; git add .; git commit -qm x");
        shell(world, &["-q"], "true").run().success();
        let hook = planted(world, &hook("a"));
        let setting = planted(world, "printf '[core]\nfsmonitor = \"PLANTED; false\"\n' > shared.gitconfig");
        for script in [&hook, &setting] {
            shell(world, &[], script).run();
            assert!(!executes(world, "cd a; touch b; git add b; git status"), "{script}");
        }
        // The twin.
        plain(world, &hook);
        assert!(executes(world, "cd a; touch c; git add c; git status"));
    });
}
