//! Repositories that the look at the end has to find, wherever a command hides them.

use super::aftermath::{FSMONITOR, in_directories, looked_at, planted};
use super::git::{in_repositories, plain};
use super::shell;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A gitlink in the index leads git anywhere in the working tree, whatever the directories are called.
#[test]
fn no_name_hides_a_repository_from_the_search() {
    in_repositories(|world| {
        let prepare = "EV() { printf '[core]\\n\\tfsmonitor = \"PLANTED; false\"\\n' >> $1; }; \
            mk() { mkdir -p $1; git -C $1 init -q; git -C $1 commit -q --allow-empty -m x; \
            git update-index --add --cacheinfo 160000,$(git -C $1 rev-parse HEAD),$1; EV $1/.git/config; }; ";
        let cases = [
            "mk lib",
            "mk lib; mv lib/.git lib/.hg; echo 'gitdir: .hg' > lib/.git",
            "mk lib.sbx-aside",
            "mk .hg/lib",
            "mk node_modules/lib",
            "mkdir -p sub/refs sub/objects; echo 'ref: refs/heads/main' > sub/HEAD; mk sub/objects/lib",
            "mk lib; mv lib/.git .git/foo; printf '[core]\\nworktree=../../lib\\n' >> .git/foo/config; \
             echo 'gitdir: ../.git/foo' > F; ln -s ../F lib/.git",
        ];
        for case in cases {
            let script = planted(world, &format!("{prepare}{case}"));
            // The control.
            plain(world, &format!("cp -a . ../control; cd ../control; {script}"));
            assert!(looked_at(world, "../control"), "{case}");
            plain(world, "rm -rf ../control ../kept; cp -a . ../kept");
            let out = shell(world, &[], &script).run().success();
            assert!(out.err().contains("the command made the repository"), "{case}: {out}");
            assert!(!looked_at(world, "."), "{case}");
            plain(world, "rm -rf * .hg .git; cp -a ../kept/. .");
        }
    });
}

/// git enters by name what nobody can list, and root's enters all.
#[test]
fn no_mode_hides_a_repository_from_the_look() {
    in_repositories(|world| {
        let payload = "printf '[core]\\n\\tfsmonitor = \"PLANTED; false\"\\n' >> ";
        let gitlink = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD)";
        let below = format!(
            "mkdir -p closed; git init -q closed/lib; git -C closed/lib commit -q --allow-empty -m x; \
             {gitlink},closed/lib; {payload} closed/lib/.git/config"
        );
        let module = format!(
            "mkdir -p .git/modules/lib lib; cp -r .git/objects .git/refs .git/HEAD .git/modules/lib; {gitlink},lib; \
             printf '[core]\\n\\tworktree = ../../../lib\\n' > .git/modules/lib/config; \
             {payload} .git/modules/lib/config; echo 'gitdir: ../.git/modules/lib' > lib/.git"
        );
        let own = format!("{payload} .git/config");
        for (script, closed, flags) in [
            (below, "closed", &[][..]),
            (module, ".git/modules/lib", &[]),
            (own, ".git", &["--namespaces", "none"]),
        ] {
            for mode in ["111", "311", "444", "000"] {
                let script = planted(world, &format!("set -e; {script}; chmod {mode} {closed}"));
                plain(
                    world,
                    &format!(
                        "rm -rf ../control ../kept; cp -a . ../control; cp -a . ../kept; cd ../control; {script}"
                    ),
                );
                assert!(!mode.ends_with("11") || looked_at(world, "../control"), "{script}");
                let out = shell(world, flags, &script).run().success();
                assert!(out.err().contains("core.fsmonitor: put aside"), "{script}: {out}");
                assert!(!looked_at(world, "."), "{script}: {out}");
                plain(world, "chmod -R u+rwx ../control; rm -rf * .git; cp -a ../kept/. .");
            }
        }
        // What was closed before stays so.
        plain(world, "mkdir -p before/deep; chmod 311 before");
        shell(world, &["-q"], "touch before/deep/file; touch made").run().success();
        assert_eq!(fs::metadata(world.path("before")).unwrap().permissions().mode() & 0o777, 0o311);
        plain(world, "chmod 755 before");
    });
}

/// A link in the working tree leads there.
#[test]
fn a_directory_of_git_hides_no_repository() {
    in_repositories(|world| {
        for place in [".git/docs", ".git/objects/ab/docs", ".git/info/a/b"] {
            let script = format!(
                "set -e; git init -q {place}; git -C {place} commit -q --allow-empty -m x; GIT={place}/.git; {FSMONITOR}; \
                 ln -s {place} docs"
            );
            let script = planted(world, &script);
            plain(world, &format!("rm -rf ../control; cp -a . ../control; cd ../control; {script}"));
            assert!(looked_at(world, "../control/docs"), "{place}");
            let out = shell(world, &[], &script).run().success();
            assert!(!looked_at(world, "docs"), "{place}: {out}");
            assert!(out.err().contains("core.fsmonitor: put aside"), "{place}: {out}");
            plain(world, "rm docs");
        }
    });
}

/// A linked worktree's repository is outside the workspace, and git puts submodules there.
#[test]
fn what_is_made_in_the_repository_of_a_linked_worktree_is_put_aside() {
    in_repositories(|world| {
        plain(world, "git worktree add -q ../tree topic");
        let tree = world.home.join("tree");
        let script = planted(
            world,
            "G=$(git rev-parse --git-common-dir); mkdir -p $G/modules; git init -q tmp; mv tmp/.git $G/modules/lib; \
             printf '[core]\n\tworktree = ../../../../tree/lib\n\tfsmonitor = \"PLANTED; false\"\n' >> $G/modules/lib/config",
        );
        let run = world.sbx(["run", "--", "bash", "-c", &script]).cwd(&tree).run().success();
        run.says("core.fsmonitor: put aside");
        let config = world.read(".git/modules/lib/config").unwrap();
        assert!(!config.contains("fsmonitor"), "{config}");
    });
}

/// A relative `core.hooksPath` means a directory in each working tree, also in one that the command adds.
#[test]
fn hooks_of_an_added_worktree_are_named() {
    in_repositories(|world| {
        plain(
            world,
            "mkdir .githooks; printf '#!/bin/sh\n' > .githooks/post-commit; chmod +x .githooks/post-commit; \
             git add .; git commit -qm hooks; git config core.hooksPath .githooks",
        );
        shell(world, &[], "git worktree add -q same -b same").run().success().silent();
        let script = "git worktree add -q other -b other; echo evil >> other/.githooks/post-commit";
        shell(world, &[], script).run().success().says("other/.githooks/post-commit");
    });
}

/// The first run in a workspace ends without a look: it is killed, or has nobody who could look.
#[test]
fn what_an_unwatched_first_run_made_is_new() {
    in_directories(|world| {
        let script =
            planted(world, &format!("git init -q lib; GIT=lib/.git; {FSMONITOR}; echo ready; sleep 20"));
        let running = shell(world, &[], &script).start();
        running.wait_for("ready");
        running.kill_with_children();
        shell(world, &[], "sleep 0.3").run().success().says("nothing protected the repository");
    });
}

/// Short as it is, the first run finds what has been there all along.
#[test]
fn the_first_run_finds_clones_among_many_directories() {
    in_repositories(|world| {
        plain(world, "for n in $(seq 40); do mkdir -p packages/$n/src; done; git init -q packages/27/vendor");
        shell(world, &[], "true").run().success();
        let config = "packages/27/vendor/.git/config";
        let before = world.read(config);
        shell(world, &[], "git -C packages/27/vendor config alias.x '!id'").run().failed().says("alias.x");
        assert_eq!(world.read(config), before);
    });
}

/// `.hg` may be a link to a directory of any name.
#[test]
fn mercurial_is_followed_over_a_link() {
    in_directories(|world| {
        let script = "mkdir -p lib/foo; printf '[hooks]\npre-status = x\n' > lib/foo/hgrc; ln -s foo lib/.hg";
        shell(world, &[], script).run().success().says("hgrc");
        assert!(!world.exists("lib/foo/hgrc") && world.exists("lib/foo/hgrc.sbx-aside"));
    });
}

#[test]
fn what_mercurial_executes_of_a_repository_of_the_commands_own_is_put_aside() {
    in_directories(|world| {
        shell(world, &[], "mkdir -p a/.hg; printf '[hooks]\\npre-status = x\\n' > a/.hg/hgrc")
            .run()
            .success()
            .says("hgrc");
        assert_eq!(world.read("a/.hg/hgrc"), None);
        assert_eq!(world.read("a/.hg/hgrc.sbx-aside").as_deref(), Some("[hooks]\npre-status = x\n"));
        for (name, text) in [("mark", "\\357\\273\\277[hooks]\\n"), ("line", "[paths]\\nx = y\\r[hooks]\\r")]
        {
            let script = format!("mkdir -p {name}/.hg; printf '{text}' > {name}/.hg/hgrc");
            shell(world, &[], &script).run().success().says("hgrc");
        }
        shell(world, &[], "mkdir -p shared/.hg; echo ../../a/.hg > shared/.hg/sharedpath")
            .run()
            .says("sharedpath");
        // One that is recorded is protected.
        plain(world, "mkdir -p own/.hg/store; touch own/.hg/requires");
        shell(world, &[], "true").run().success();
        shell(world, &["-q"], "echo x > own/.hg/hgrc; echo shared > own/.hg/requires").run();
        assert!(!world.exists("own/.hg/hgrc") && world.read("own/.hg/requires").as_deref() == Some(""));
        // hg loads the extensions of a repository that it finds there.
        for value in ["../x", "/x", "file:///x", "path://y", "ssh://-x/y", "https://x\\n  /y"] {
            let write = format!("mkdir -p c/.hg; printf '[paths]\\ndefault = {value}\\n' > c/.hg/hgrc");
            shell(world, &[], &write).run().success().says("hgrc");
            assert!(!world.exists("c/.hg/hgrc"), "{value}");
            plain(world, "rm -r c");
        }
        // As `hg clone` writes it.
        let plain =
            "# one\n[paths]\ndefault = https://example.org/x\ndefault:pushurl = ssh://hg@example.org/x\n";
        shell(world, &[], &format!("mkdir -p b/.hg; printf '{plain}' > b/.hg/hgrc")).run().success().silent();
        assert_eq!(world.read("b/.hg/hgrc").as_deref(), Some(plain));
    });
}

/// Such as a build fetches: part by part it cannot go, and one line says what can be done.
#[test]
fn the_removal_of_a_repository_below_says_what_can_be_done() {
    in_repositories(|world| {
        shell(world, &[], "git init -q build/dep").run().success();
        let dep = world.path("build/dep");
        let cure = format!(
            "protects what git executes in {0}; to remove that repository, run rm -rf {0} outside",
            dep.display()
        );
        let out = shell(world, &[], "rm -rf build").run().failed();
        assert_eq!(out.err().matches(&cure).count(), 1, "{out}");
        assert!(dep.join(".git/config").exists());
        plain(world, &format!("rm -rf {}", dep.display()));
        shell(world, &[], "rm -rf build").run().success().silent();
        // It is more than one of its worktrees or submodules.
        let more = "git init -q dep; cd dep; git commit -q --allow-empty -m x; git worktree add -q ../tree; \
                    git init -q ../up; git -C ../up commit -q --allow-empty -m x; \
                    git -c protocol.file.allow=always submodule --quiet add ../up sub; git commit -qm sub";
        plain(world, more);
        shell(world, &["-q"], "true").run().success();
        for script in ["worktree remove ../tree", "submodule --quiet deinit -f sub"] {
            let out = shell(world, &[], &format!("git -C dep {script} || true")).run().success();
            let out = out.says("run this command outside");
            assert!(!out.err().contains("rm -rf"), "{script}: {out}");
        }
        // What the workspace's own repository executes is changed by hand.
        shell(world, &[], "rm -r .git/hooks").run().failed().says("run this command outside");
    });
}
