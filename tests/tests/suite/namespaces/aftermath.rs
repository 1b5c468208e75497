//! What git would execute of repositories that nobody had protected: those that a command makes, those that were there
//! and not known, and those of runs without namespaces.

use super::git::{in_repositories, plain};
use super::pointers::executes;
use super::{in_namespaces, names, shell};
use sbx_tests::{Output, World, as_users, need};
use serde_json::Value;
use std::fs;

const ASIDE: &str = "sbx-aside";

/// What a user does who looks at a directory: most prompts do the same.
pub fn looked_at(world: &World, place: &str) -> bool {
    executes(world, &format!("cd {place} && (git status; git log -1; git stash)"))
}

pub fn planted(world: &World, script: &str) -> String {
    script.replace("PLANTED", &format!("touch {}", world.outside.join("ran").display()))
}

/// An ordinary directory as the workspace.
pub fn in_directories(body: impl Fn(&World)) {
    need!("git", "bash");
    in_namespaces(|world| {
        world.write(world.home.join(".gitconfig"), "[user]\n\tname = x\n\temail = x@example.org\n");
        body(world);
    });
}

pub const FSMONITOR: &str = "printf '[core]\\nfsmonitor = \"PLANTED; false\"\\n' >> $GIT/config";
const HOOK: &str =
    "printf '#!/bin/sh\\nPLANTED\\n' > $GIT/hooks/post-index-change; chmod +x $GIT/hooks/post-index-change";

#[test]
fn what_a_repository_of_the_commands_own_executes_is_put_aside() {
    in_directories(|world| {
        let cases = [
            (".", "git init -q .; echo x > x; git add x; GIT=.git", FSMONITOR, "core.fsmonitor"),
            (".", "git init -q .; echo x > x; git add x; GIT=.git", HOOK, "hooks/post-index-change"),
            (
                "a/b/c",
                "git init -q a/b/c; cd a/b/c; echo x > x; git add x; GIT=.git",
                FSMONITOR,
                "core.fsmonitor",
            ),
            // Behind a file, and behind a link.
            ("d", "git init -q --separate-git-dir=e d; GIT=e", FSMONITOR, "core.fsmonitor"),
            (
                "f",
                "git init -q g; mkdir f; mv g/.git f/real; ln -s real f/.git; GIT=f/real",
                FSMONITOR,
                "core.fsmonitor",
            ),
            (
                "f",
                "git init -q f; echo x > f/x; git -C f add x; mv f/.git/hooks f/more; ln -s ../more f/.git/hooks; GIT=f/.git",
                HOOK,
                "hooks",
            ),
            // Somewhere else, and through something else.
            (
                "h",
                "git init -q h; GIT=h/.git; mkdir h/more; mv $GIT/config h/more; ln -s ../more/config $GIT/config",
                FSMONITOR,
                "config",
            ),
            (
                "i",
                "git init -q i; echo '[include] path = x' >> i/.git/config; GIT=/tmp",
                "printf '[core]\\nfsmonitor = \"PLANTED; false\"\\n' > i/.git/x",
                "include.path",
            ),
            (
                "j",
                "git init -q j; git -C j config extensions.worktreeConfig true; GIT=/tmp",
                "printf '[core]\\nfsmonitor = \"PLANTED; false\"\\n' > j/.git/config.worktree",
                "core.fsmonitor",
            ),
            (
                "k",
                "git init -q k; mv k/.git k/common; mkdir k/.git; cp k/common/HEAD k/.git; \
                   echo ../common > k/.git/commondir; GIT=k/common",
                FSMONITOR,
                "core.fsmonitor",
            ),
            // Where nobody looks for repositories.
            (
                "l",
                "git init -q l; mkdir l/.git/more; mv l/.git/config l/.git/objects l/.git/refs l/.git/more; \
                   echo more > l/.git/commondir; GIT=l/.git/more",
                FSMONITOR,
                "commondir",
            ),
            // Far behind, where nobody reads any more.
            (
                "g",
                "git init -q g; GIT=g/.git; head -c 300000 /dev/zero | tr '\\0' '#' >> $GIT/config; echo >> $GIT/config",
                FSMONITOR,
                "config",
            ),
            // Behind a file or a link, in a place that is passed over.
            (
                "m",
                "git init -q n; git init -q --separate-git-dir=n/.git/x m; GIT=n/.git/x",
                FSMONITOR,
                "core.fsmonitor",
            ),
            (
                "m",
                "git init -q o; git init -q m; mv m/.git o/.git/objects/aa; ln -s ../o/.git/objects/aa m/.git; \
                   GIT=o/.git/objects/aa",
                FSMONITOR,
                "core.fsmonitor",
            ),
            (
                "m",
                "git init -q m; mkdir -p .hg; mv m/.git .hg/x; echo 'gitdir: ../.hg/x' > m/.git; GIT=.hg/x",
                FSMONITOR,
                "core.fsmonitor",
            ),
            // Of a linked worktree alone, by settings of its own, by another repository.
            (
                "wt",
                "git init -q m; git -C m commit -q --allow-empty -m x; git -C m config extensions.worktreeConfig true; \
                    git -C m worktree add -q ../wt; git -C m config core.x y; GIT=/tmp",
                "printf '[core]\\nfsmonitor = \"PLANTED; false\"\\n' > m/.git/worktrees/wt/config.worktree",
                "worktrees/wt/config.worktree",
            ),
            (
                "wt",
                "git init -q m; git -C m commit -q --allow-empty -m x; git -C m worktree add -q ../wt; \
                    cp -r m/.git n; mv n 'm/.git/worktrees/wt/ .'; echo ' .' > m/.git/worktrees/wt/commondir; \
                    GIT='m/.git/worktrees/wt/ .'; printf '[core]\\nfsmonitor = \"PLANTED; false\"\\n' >> \"$GIT/config\"",
                "true",
                "commondir",
            ),
            // Closed to everybody who lists directories, and open to those who know a name.
            ("p", "git init -q p; chmod 0311 p; GIT=p/.git", FSMONITOR, "core.fsmonitor"),
        ];
        for (place, make, plant, name) in cases {
            let script = planted(world, &format!("set -e; {make}; {plant}"));
            // The control: outside a sandbox it does run.
            plain(world, &script);
            assert!(looked_at(world, place), "the control did not run: {script}");
            plain(world, "chmod -R u+rwX .; rm -rf ./* .git .hg");
            let out = shell(world, &[], &script).run().success();
            assert!(!looked_at(world, place), "it ran: {script}: {out}");
            out.says("the command made the repository").says(name).says(ASIDE);
            // What was put aside is still there, and the next run finds nothing new.
            let aside = plain(world, "chmod -R u+rwX .; find . -name '*sbx-aside*' | wc -l");
            assert_ne!(aside.trim(), "0", "{script}");
            shell(world, &[], "true").run().success().silent();
            plain(world, "chmod -R u+rwX .; rm -rf ./* .git .hg");
        }
    });
}

/// A search that takes a part of a short run's time sees only some directories. Those that the run changed are seen in
/// any case, however many others there are, and however many it made to be looked at before.
#[test]
fn a_repository_among_many_directories_is_found() {
    in_directories(|world| {
        let clean = "rm -rf ./* .git; mkdir $(seq -f old%g 200)";
        plain(world, clean);
        let decoys =
            "mkdir -p $(seq -f new%g/objects 200) $(seq -f new%g/refs 200); touch $(seq -f new%g/HEAD 200)";
        for (place, before) in [("old137", "true"), ("old11", decoys), ("zz/deep/down", decoys)] {
            let make = format!("git init -q {place}; GIT={place}/.git");
            let script = planted(world, &format!("set -e; {before}; {make}; {FSMONITOR}"));
            plain(world, &script);
            assert!(looked_at(world, place), "the control did not run: {script}");
            plain(world, clean);
            let out = shell(world, &[], &script).run().success();
            assert!(!looked_at(world, place), "it ran: {script}: {out}");
            out.says("core.fsmonitor").says(ASIDE);
            plain(world, clean);
        }
    });
}

#[test]
fn what_git_itself_writes_is_left_alone() {
    in_repositories(|world| {
        plain(world, "git clone -q ../library library; echo library > .git/info/exclude");
        let work = "\
            git clone -q . clone; git clone -q --mirror . mirror; git init -q --bare bare; git init -q init
            git clone -q --recurse-submodules --depth 1 \"file://$PWD\" rec; git -C clone worktree add -q ../tree
            git clone -q --sparse \"file://$PWD\" sparse; git -C sparse sparse-checkout add x
            git submodule add -q $PWD/library lib; git -C clone submodule add -q $PWD/library lib
            git -C init config user.name me; git -C clone branch -q -m other; git -C clone remote rename origin up
            git -C clone remote add more $PWD/library; git -C clone fetch -q more; git -C clone push -q -u up other";
        let out = shell(world, &[], &format!("set -e\n{work}")).run().success();
        assert_eq!(out.own_lines(), [""; 0], "{out}");
        assert_eq!(plain(world, "find . -name '*sbx-aside*'"), "");
        plain(world, "git -C clone status && git -C tree status && git -C rec fsck && git -C sparse status");
        // And it goes on in the next run, in which all of them are protected.
        let more = "for at in clone rec init tree sparse; do cd $at; echo x > new; git add new; git commit -qm new; \
                    git branch -q later-$at; git stash -q; cd ..; done; git -C clone gc -q";
        let out = shell(world, &[], &format!("set -e; {more}")).run().success();
        assert_eq!(out.own_lines(), [""; 0], "{out}");
        let config = "git -C clone config core.fsmonitor x; git -C bare config core.fsmonitor x; \
                      echo x > clone/.git/hooks/post-commit; echo x > tree/.git";
        shell(world, &[], config).run();
        assert_eq!(plain(world, "cat */.git/config bare/config | grep -c fsmonitor || true"), "0\n");
        assert!(!world.exists("clone/.git/hooks/post-commit"));
    });
}

/// A repository below the workspace that no file of the workspace names.
#[test]
fn a_nested_repository_is_named_if_it_was_changed_and_protected_from_then_on() {
    in_directories(|world| {
        for run in ["true", "mv clone moved; mv moved clone"] {
            plain(world, "git init -q clone; cd clone; echo x > x; git add x; git commit -qm x");
            shell(world, &["-q"], run).run();
            let script = planted(world, &format!("cd clone; GIT=.git; {FSMONITOR}; {HOOK}"));
            shell(world, &["-q"], &script).run();
            assert!(!looked_at(world, "clone"), "{run}");
            plain(world, "rm -rf clone");
        }
        // In the first run nobody knows of it.
        plain(world, "git init -q deep/clone");
        let change = planted(world, &format!("GIT=deep/clone/.git; {FSMONITOR}; {HOOK}"));
        let out = shell(world, &[], &change).run().success();
        out.says("nothing protected the repository").says("core.fsmonitor").says("hooks/post-index-change");
        shell(world, &[], "true").run().success().silent();
        // A directory that looks like a repository hides none in it.
        plain(world, "git init -q hidden/clone");
        let change =
            planted(world, &format!("git init -q --bare hidden; GIT=hidden/clone/.git; {FSMONITOR}"));
        shell(world, &[], &change).run().success().says("hidden/clone/.git").says("core.fsmonitor");
    });
}

/// What the user's own repository has got, and what was put together from what an earlier run left.
#[test]
fn new_worktrees_and_old_directories_do_not_hide_what_git_executes() {
    in_repositories(|world| {
        let add = "git worktree add -q wt; cp -r .git cm; rm cm/HEAD; printf '[core]\\nfsmonitor = \"PLANTED; false\"\\n' \
                   >> cm/config; echo ../../../cm > .git/worktrees/wt/commondir";
        let out = shell(world, &[], &planted(world, add)).run().success().says("worktrees/wt/commondir");
        assert!(!looked_at(world, "wt"), "{out}");
        plain(world, "rm -rf cm wt; git worktree prune; mkdir src docs; git add .");
        let prepare =
            "git init -q x; cp x/.git/config src/config; mkdir src/refs docs/pack; GIT=src; FSMONITOR";
        shell(world, &["-q"], &planted(world, &prepare.replace("FSMONITOR", FSMONITOR))).run().success();
        let assemble =
            "mkdir sub; mv src sub/.git; mv docs sub/.git/objects; echo ref: refs/heads/x > sub/.git/HEAD";
        shell(world, &[], assemble).run().success().says("sub/.git").says("core.fsmonitor");
    });
}

/// The repository of a linked worktree lies elsewhere, and gets what git makes there.
#[test]
fn a_new_submodule_of_a_linked_worktree_executes_nothing() {
    in_repositories(|world| {
        let script =
            "set -e; git submodule --quiet add $PWD/own lib; GIT=$(git -C lib rev-parse --absolute-git-dir)";
        for (plant, said) in [("true", false), (FSMONITOR, true)] {
            plain(world, "git worktree add -q ../tree topic; git clone -q . ../tree/own");
            let script = planted(world, &format!("{script}; {plant}"));
            let out = shell(world, &[], &script).cwd(world.home.join("tree")).run().success();
            assert!(!looked_at(world, "../tree/lib"), "{out}");
            assert_eq!(out.err().contains("lib/.git"), said, "{out}");
            assert_eq!(world.exists("../tree/lib/.git"), !said, "{out}");
            plain(world, "rm -rf ../tree; git worktree prune; git branch -q -D topic; git branch -q topic");
        }
    });
}

/// A clone that nobody knew of, and what its hooks and configuration lead to.
#[test]
fn what_the_hooks_of_an_unknown_repository_lead_to_is_named() {
    in_directories(|world| {
        plain(
            world,
            "for n in a b c; do git init -q $n; mkdir $n/dir; touch $n/dir/pre-commit $n/more; done; \
             git -C a config core.hooksPath dir; ln -s ../../more b/.git/hooks/pre-commit; \
             git -C c config include.path ../more",
        );
        for (clone, file) in [("a", "dir/pre-commit"), ("b", "more"), ("c", "more")] {
            plain(world, "rm -rf ../.local/state/sbx");
            let script = format!("echo x > {clone}/{file}");
            let out = shell(world, &[], &script).run().success();
            out.says("nothing protected the repository").says(&format!("{clone}/{file}"));
        }
    });
}

/// One that a run did not find, made by a command or not: what is older than the first run is the user's.
#[test]
fn a_repository_that_came_after_the_first_run_is_named_once() {
    in_directories(|world| {
        plain(world, "git init -q old; git -C old config core.pager mine");
        shell(world, &[], "true").run().success().silent();
        plain(world, "git init -q new; git -C new config core.pager mine");
        let out = shell(world, &[], "true")
            .run()
            .success()
            .says("nothing protected the repository")
            .says("core.pager");
        assert!(out.err().contains("project/new/.git") && !out.err().contains("project/old"), "{out}");
        assert_eq!(
            plain(world, "git -C new config core.pager; git -C old config core.pager"),
            "mine\nmine\n"
        );
        shell(world, &[], "true").run().success().silent();
    });
}

/// `.gitmodules` says where submodules are that keep their repository to themselves, and a command may change it.
#[test]
fn a_submodule_stays_protected_when_no_file_names_it_any_more() {
    in_repositories(|world| {
        plain(
            world,
            "git clone -q ../library lib; git submodule add -q --name other ../library lib; git commit -qm lib; \
             git config --remove-section submodule.other",
        );
        shell(world, &["-q"], "rm .gitmodules").run().success();
        shell(world, &["-q"], &planted(world, &format!("GIT=lib/.git; {FSMONITOR}"))).run();
        assert!(!looked_at(world, "lib"));
        assert!(!looked_at(world, "."));
    });
}

#[test]
fn no_command_writes_in_the_record() {
    in_directories(|world| {
        plain(world, "git init -q clone");
        shell(world, &[], "true").run().success();
        let home = world.home.to_str().unwrap();
        let records = world.home.join(".local/state/sbx/workspaces");
        let file = fs::read_dir(&records).unwrap().flatten().next().unwrap().path();
        let before = fs::read_to_string(&file).unwrap();
        assert!(before.contains("clone/.git"), "{before}");
        let attempt = "cd ~/.local/state/sbx; rm -rf workspaces; mv workspaces w; for f in workspaces/*; do : > $f; done; \
                       cd ..; mv sbx s; cd ..; mv state t; true";
        shell(world, &["-q", "--workspace", home], attempt).run();
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
        // What cannot be read may have named something.
        fs::remove_file(&file).unwrap();
        world.make_dir(&file);
        shell(world, &[], "touch ran").run().refused(125, &["cannot tell which repositories in", "record"]);
        assert!(!world.exists("ran"));
    });
}

fn findings(out: Output, world: &World) -> Value {
    out.success();
    let report: Value = serde_json::from_str(&world.read("../report.json").unwrap()).unwrap();
    report["findings"].clone()
}

/// A run without namespaces protects nothing: what is known is put back afterwards.
#[test]
fn without_namespaces_configurations_are_put_back_and_new_hooks_are_put_aside() {
    need!("git", "bash");
    as_users(|user| {
        let world = &World::new(user);
        plain(world, "git init -q .; git config core.pager mine; echo x > x; git add x");
        let flags = ["-q", "--namespaces", "none", "--report", "../report.json"];
        let all = planted(world, &format!("git config user.name changed; GIT=.git; {FSMONITOR}; {HOOK}"));
        let found = findings(shell(world, &flags, &all).run(), world);
        assert!(!looked_at(world, "."));
        assert_eq!(plain(world, "git config core.pager"), "mine\n");
        assert_eq!(found[0]["kind"], "repository-changed");
        assert_eq!(found[0]["names"], serde_json::json!(["core.fsmonitor", "hooks/post-index-change"]));
        let aside = ["config.sbx-aside", "hooks/post-index-change.sbx-aside"];
        assert_eq!(found[0]["put_aside"], serde_json::json!(aside));
        let found = findings(shell(world, &flags, "git config user.name changed").run(), world);
        assert_eq!(found, serde_json::json!([]));
        assert_eq!(plain(world, "git config user.name"), "changed\n");
    });
}

/// What is put aside, or put back, is done by a process that may do all that the user may.
#[test]
fn nothing_is_put_aside_outside_the_workspace() {
    need!("git", "bash");
    as_users(|user| {
        let world = &World::new(user);
        for made in [false, true] {
            plain(world, if made { "rm -rf .git" } else { "git init -q ." });
            let script = "echo ready; until test -e go; do sleep 0.01; done; git init -q .; rm -rf .git/hooks; \
                          mv .git/config .git/was; ln -s OUTSIDE/kept .git/config; ln -s OUTSIDE .git/hooks";
            let script = script.replace("OUTSIDE", world.outside.to_str().unwrap());
            let running = shell(world, &["--namespaces", "none"], &script).start();
            running.wait_for("ready");
            // Of now, as new hooks would be.
            let hook = world.outside.join("post-index-change");
            world.write(&hook, "outside\n");
            world.write(world.outside.join("kept"), "[core]\n\tpager = x\n");
            world.write("go", "");
            let out = running.wait().success().says("config").says("hooks");
            assert_eq!(names(&world.outside), ["dir", "kept", "post-index-change"], "{out}");
            assert_eq!(
                world.read(world.outside.join("kept")).as_deref(),
                Some("[core]\n\tpager = x\n"),
                "{out}"
            );
            plain(world, "rm -rf .git go");
        }
    });
}

#[test]
fn a_protected_file_that_something_outside_replaced_is_named() {
    in_repositories(|world| {
        let running = |script: &str| {
            let script = format!("echo ready; until test -e go; do sleep 0.01; done; {script}");
            let running = shell(world, &[], &script).start();
            running.wait_for("ready");
            running
        };
        let run = running("true");
        plain(world, "git config core.editor x; touch go");
        run.wait().success().says("something outside replaced").says("core.editor");
        plain(world, "rm go");
        let run = running("true");
        plain(world, "git config user.name other; git config --unset user.name; touch go");
        let out = run.wait().success();
        assert_eq!(out.own_lines(), [""; 0], "{out}");
    });
}

/// The clock of files goes in ticks: what was written just before a run has the time of its start.
#[test]
fn what_was_changed_just_before_a_run_is_not_blamed_on_it() {
    in_repositories(|world| {
        world.make_dir(&world.home.join(".vscode"));
        world.make_dir(&world.path(".vscode"));
        for round in 0..5 {
            world.write(".vscode/settings.json", format!("{round}\n"));
            let out = shell(world, &[], "true").run().success();
            assert_eq!(out.own_lines(), [""; 0], "{out}");
        }
    });
}
