//! Repositories whose directory is elsewhere than their working tree, and is not called `.git`.

use super::git::{in_repositories, plain, stage};
use super::{pointers, shell, with_namespaces};
use sbx_tests::{World, need};

/// Has a configuration name a directory of hooks and a file in the working tree, both harmless.
const NAMES: &str = "mkdir .githooks; printf '#!/bin/sh\n' > .githooks/pre-commit; chmod +x .githooks/pre-commit; \
                     echo > .included; GIT config core.hooksPath .githooks; GIT config include.path $PWD/.included";
/// Each has one of them name something to execute.
const PLANTS: [&str; 2] = [
    "printf '#!/bin/sh\nPLANTED\n' > .githooks/pre-commit",
    "printf '[core]\n\tfsmonitor = \"PLANTED; false\"\n' > .included",
];

/// Whether git outside executes anything that was planted in a working tree.
fn executes(world: &World, tree: &str, git: &str) -> bool {
    let uses = format!("cd {tree}; {git} status; {git} commit --allow-empty -m x");
    pointers::executes(world, &uses)
}

/// In a working tree, the command of a run in a workspace gets nothing executed outside. Where nobody looks after it,
/// it does.
#[track_caller]
fn is_protected(world: &World, workspace: &str, tree: &str, git: &str) {
    for plant in PLANTS {
        let planted = format!("touch {}", world.outside.join("ran").display());
        let script = format!("cd {tree}; {}", plant.replace("PLANTED", &planted));
        let out = shell(world, &["-q"], &script).cwd(world.path(workspace)).run();
        let tree = &format!("{workspace}/{tree}");
        assert!(!executes(world, tree, git), "{workspace}: {script}: {out}");
        plain(world, &format!("cp -a {tree} ../kept; cd {workspace}; {script}"));
        assert!(executes(world, tree, git), "{workspace}: {script}");
        plain(world, &format!("cp -a ../kept/.githooks ../kept/.included {tree}; rm -rf ../kept"));
    }
}

/// That git finds the repository is enough, whether or not it names the working tree in its turn.
#[test]
fn what_git_executes_is_protected_where_the_repository_is_outside() {
    need!("git", "bash");
    with_namespaces(|user| {
        for (make, workspace) in [
            ("git init -q --separate-git-dir=../store", "."),
            ("mv .git ../store; ln -s ../store .git", "."),
            ("git worktree add -q ../tree topic; mv ../tree ../moved", "../moved"),
        ] {
            let world = stage(user);
            plain(&world, &format!("{make}; cd {workspace}; {}", NAMES.replace("GIT", "git")));
            is_protected(&world, workspace, ".", "git");
            // Such a repository is not opened for writing.
            let at = world.path(workspace);
            shell(&world, &["-q"], "git commit -q --allow-empty -m x").cwd(at).run().failed();
        }
    });
}

/// Later runs protect what the repository on record has git execute, in the working tree that leads to it.
#[test]
fn what_a_repository_on_record_executes_is_protected_wherever_its_working_tree_is() {
    in_repositories(|world| {
        let store = world.path("named").display().to_string();
        for (make, tree, git) in [
            ("git init -q --separate-git-dir=store separate", "separate", "git"),
            (
                "git init -q linked; mv linked/.git linked.store; ln -s ../linked.store linked/.git",
                "linked",
                "git",
            ),
            ("git init -q --separate-git-dir=../beyond beyond", "beyond", "git"),
            (
                "git init -q tree; mv tree/.git named; git -C named config core.worktree ../tree",
                "tree",
                &format!("git --git-dir={store}"),
            ),
        ] {
            plain(world, &format!("{make}; cd {tree}; {}", NAMES.replace("GIT", git)));
            shell(world, &["-q"], "true").run().success();
            is_protected(world, ".", tree, git);
        }
    });
}
