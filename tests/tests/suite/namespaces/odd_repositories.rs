//! Repositories that are not `.git` in the workspace: bare ones, separate directories, forged pointers, many
//! submodules.

use super::aftermath::{FSMONITOR, in_directories, looked_at, planted};
use super::git::{in_repositories, nothing_planted_runs, plain, stage, works};
use super::{shell, with_namespaces};
use sbx_tests::{need, tree};

/// A directory of worktrees may itself be the repository, without one of its own.
#[test]
fn a_bare_repository_is_protected() {
    need!("git");
    with_namespaces(|user| {
        let mut world = stage(user);
        plain(&world, "git clone -q --bare . ../bare && git -C ../bare worktree add -q main");
        world.workspace = world.home.join("bare");
        works(
            &world,
            "cd main; echo more >> file; git commit -qam more; git branch new; cd ..; git log new >/dev/null; \
             git gc -q",
        );
        for script in [
            "printf '#!/bin/sh\nPLANTED\n' > hooks/post-commit; chmod +x hooks/post-commit",
            "git config core.fsmonitor PLANTED; printf '[core]\nfsmonitor = PLANTED\n' >> config",
            "mv hooks was; mkdir hooks; printf '#!/bin/sh\nPLANTED\n' > hooks/post-commit; chmod +x hooks/post-commit",
        ] {
            nothing_planted_runs(&world, script);
            plain(&world, "cd main; git status >/dev/null; git commit -q --allow-empty -m after");
            assert!(!world.outside.join("ran").exists(), "{script}");
        }
        // Also from one of its worktrees, which writes to it.
        plain(&world, "git worktree add -q other new");
        world.workspace = world.home.join("bare/main");
        works(&world, "echo more >> file; git commit -qam more");
        for script in [
            "cp -r ../worktrees/other ../evil; echo ../evil > ../evil/commondir; \
             printf '[core]\nfsmonitor = PLANTED\n' > ../evil/config; echo gitdir: $PWD/../evil > ../other/.git; \
             mv ../other ../was; cp -r ../was ../other",
            "git init -q ../evil; cd ../evil; git config core.fsmonitor PLANTED; mv .git ../.git; cp -r .git ..; \
             echo gitdir: evil/.git > ../.git",
            "printf '#!/bin/sh\nPLANTED\n' > ../hooks/post-commit; chmod +x ../hooks/post-commit",
        ] {
            nothing_planted_runs(&world, script);
            plain(
                &world,
                "for at in .. ../other; do (cd $at; git status >/dev/null 2>&1 || true; git log -1 >/dev/null); done",
            );
            assert!(!world.outside.join("ran").exists(), "{script}");
        }
        world.workspace = world.home.join("bare");
        // The branch's configuration can be changed as anywhere.
        works(&world, "git config user.name Somebody; cd main; git branch -m new newer");
    });
}

/// A repository that keeps its own data elsewhere inside the workspace.
#[test]
fn a_separate_git_directory_inside_is_protected() {
    need!("git");
    with_namespaces(|user| {
        for script in [
            "mkdir -p data/hooks; printf '#!/bin/sh\\nPLANTED\\n' > data/hooks/post-commit; \
             chmod +x data/hooks/post-commit",
            "git config core.fsmonitor PLANTED; printf '[core]\\nfsmonitor = PLANTED\\n' >> data/config",
            "mv data was; cp -r was data; printf '[core]\\nfsmonitor = PLANTED\\n' >> data/config",
            "cp -r data evil; printf '[core]\\nfsmonitor = PLANTED\\n' >> evil/config; echo 'gitdir: evil' > .git",
        ] {
            let world = stage(user);
            plain(
                &world,
                "git init -q --separate-git-dir data . && echo data > .gitignore && git add .gitignore && \
                 git commit -qm ignore",
            );
            works(&world, "echo more >> file; git commit -qam more");
            nothing_planted_runs(&world, script);
        }
    });
}

/// The content of a `.git` file is a claim of whoever wrote it.
#[test]
fn a_forged_pointer_gains_nothing() {
    in_repositories(|world| {
        plain(
            world,
            "git init -q ../victim && cd ../victim && git commit -q --allow-empty -m one && \
             git worktree add -q ../linked",
        );
        let victim = world.home.join("victim/.git");
        let before = tree::snapshot(&victim);
        for target in [victim.clone(), victim.join("worktrees/linked"), victim.join("../../victim/.git/.")] {
            plain(world, "rm -rf .git");
            world.write(".git", format!("gitdir: {}\n", target.display()));
            let place = victim.display();
            let script = format!(
                "echo x >> {place}/HEAD; echo x > {place}/planted; git commit -q --allow-empty -m x; \
                 git update-ref refs/heads/x HEAD; rm -f {place}/index; exit 1"
            );
            shell(world, &["-q"], &script).run().failed();
            let after = tree::snapshot(&victim);
            assert!(tree::differences(&before, &after).is_empty(), "{}", target.display());
        }
    });
}

/// An earlier command has made a directory below its workspace look like a worktree of a repository elsewhere:
/// the next command, whose workspace that directory is, gains nothing by that.
#[test]
fn a_forged_worktree_opens_no_other_directory() {
    need!("git");
    with_namespaces(|user| {
        let mut world = stage(user);
        let (top, secrets) = (world.workspace.clone(), world.home.join("secrets"));
        plain(&world, "mkdir ../secrets && echo secret > ../secrets/file && git worktree add -q sub topic");
        let own = top.join(".git/worktrees/sub");
        // As git made it, it belongs to the repository.
        world.workspace = top.join("sub");
        works(&world, "git commit -q --allow-empty -m more");
        world.workspace = top.clone();
        // Its `commondir` is protected, but others can be made beside it.
        for (number, common) in [&secrets, &world.home, &top].into_iter().enumerate() {
            world.workspace = top.clone();
            let (forged, part) =
                (top.join(format!(".git/worktrees/forged{number}")), top.join(format!("part{number}")));
            let script = format!(
                "cp -r {1} {0}; echo {2} > {0}/commondir; mkdir {3}; echo {3}/.git > {0}/gitdir; \
                 echo 'gitdir: {0}' > {3}/.git",
                forged.display(),
                own.display(),
                common.display(),
                part.display()
            );
            works(&world, &script);
            world.workspace = part;
            let script = format!(
                "echo here > in; echo x > {0}/planted; cat {0}/file; echo x > {1}/planted; [ -e in ]",
                secrets.display(),
                top.display()
            );
            let out = shell(&world, &["-q"], &script).run().success();
            assert!(!out.out().contains("secret"), "{out}");
            for place in [&secrets, &top] {
                assert!(!place.join("planted").exists(), "{}: {out}", common.display());
            }
        }
        // The workspace made a repository itself: it is protected as it was before.
        world.workspace = top.clone();
        works(
            &world,
            "mkdir -p refs objects worktrees; cp -r .git/worktrees/sub worktrees/forged; \
             echo ref: refs/heads/main > HEAD; echo ../.. > worktrees/forged/commondir; mkdir part; \
             echo $PWD/part/.git > worktrees/forged/gitdir; echo 'gitdir: ../worktrees/forged' > part/.git",
        );
        world.workspace = top.join("part");
        let before = tree::snapshot(&top.join(".git"));
        let script = format!(
            "echo here > in; echo x >> {0}/.git/config; echo x > {0}/planted; [ -e in ]",
            top.display()
        );
        shell(&world, &["-q"], &script).run().success();
        let after = tree::snapshot(&top.join(".git"));
        assert!(tree::differences(&before, &after).is_empty());
        assert!(!top.join("planted").exists());
    });
}

/// More submodules than are inspected one by one.
#[test]
fn many_submodules_do_not_hide_one() {
    in_repositories(|world| {
        plain(
            world,
            "git submodule -q add ../library sub && git commit -qm sub; mkdir -p .git/modules/deep/a/b/c/d/e; \
             cp -r .git/modules/sub .git/modules/deep/a/b/c/d/e/f",
        );
        shell(world, &["-q"], "for n in $(seq 400); do mkdir -p .git/modules/a$n .git/worktrees/a$n; done")
            .run()
            .success();
        let script = "for c in $(find .git/modules -name config -type f) .git/modules/sub/hooks/post-commit; do \
                      echo planted >> $c; done; exit 1";
        shell(world, &["-q"], script).run().failed();
        let found = plain(world, "grep -rl planted .git/modules || true");
        assert_eq!(found, "");
    });
}

/// A repository may be left without a configuration, in which a later run makes one.
#[test]
fn a_configuration_where_there_was_none_is_sifted() {
    in_directories(|world| {
        for (place, git, gone) in
            [(".", ".git", "config"), (".", ".git", "config HEAD"), ("sub", "sub/.git", "config")]
        {
            let before =
                format!("git init -q {place}; cd {place}; echo x > x; git add x; cd .git; rm {gone}");
            let script = format!(
                "echo 'ref: refs/heads/main' > {git}/HEAD; printf '[core]\n\tbare = false\n' > {git}/config; \
                 GIT={git}; {FSMONITOR}"
            );
            shell(world, &["-q"], &before).run().success();
            plain(world, &format!("cp -r . ~/twin; cd ~/twin; {}", planted(world, &script)));
            assert!(looked_at(world, &format!("../twin/{place}")));
            let out = shell(world, &[], &planted(world, &script)).run().success();
            assert!(!looked_at(world, place), "{place} {gone}: {out}");
            assert!(out.err().contains("config.sbx-aside"), "{out}");
            assert!(world.read(format!("{git}/config")).unwrap().contains("bare = false"));
            plain(world, "find . ~/twin -mindepth 1 -delete");
        }
        // What git itself writes stays, and works.
        shell(world, &["-q"], "git init -q .; git commit -q --allow-empty -m one; rm .git/config")
            .run()
            .success();
        let script = "set -e; git init -q .; git config user.name Somebody; git worktree add -q tree; \
                      git remote add origin https://example.org/x";
        let out = shell(world, &[], script).run().success();
        assert_eq!(out.err(), "", "{out}");
        plain(world, "git -C tree status; test \"$(git remote get-url origin)\" = https://example.org/x");
    });
}
