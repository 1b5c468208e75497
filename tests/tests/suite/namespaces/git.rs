//! git works in a protected workspace; what it executes cannot be planted there.

use super::{in_namespaces, names, shell, with_namespaces};
use sbx_tests::{User, World, need, tree};
use std::fs;

const IDENTITY: &str = "[user]\n\tname = Somebody\n\temail = somebody@example.org\n\
                        [init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = \
                            always\n[advice]\n\tdetachedHead = false\n";

/// A workspace that is a repository with two commits and a branch, and beside it, outside, one for submodules.
pub fn stage(user: &User) -> World {
    let world = World::new(user);
    world.write(world.home.join(".gitconfig"), IDENTITY);
    world.write("file", "one\n");
    plain(
        &world,
        "git init -q . && git add . && git commit -qm one && git switch -qc topic && echo two > other && git add . && \
         git commit -qm two && git switch -q main && echo three >> file && git commit -qam three",
    );
    plain(
        &world,
        "git init -q ../library && cd ../library && echo lib > lib && git add . && git commit -qm lib",
    );
    world
}

/// Runs a test in such a workspace, for each user who can have namespaces.
pub fn in_repositories(body: impl Fn(&World)) {
    need!("git", "bash");
    with_namespaces(|user| body(&stage(user)));
}

/// Runs a script outside any sandbox.
#[track_caller]
pub fn plain(world: &World, script: &str) -> String {
    world.bare(["bash", "-ec", script]).run().success().out()
}

/// Runs a script inside; its last words tell whether all of it worked.
#[track_caller]
pub fn works(world: &World, script: &str) -> String {
    shell(world, &["-q"], &format!("set -e; {script}")).run().success().out()
}

/// Runs git after the attempts as the user would; nothing planted may run then.
#[track_caller]
pub fn nothing_planted_runs(world: &World, script: &str) {
    let marks = world.outside.join("ran");
    let planted = format!("touch {}", marks.display());
    let script = script.replace("PLANTED", &planted);
    let out = shell(world, &["-q"], &script).run();
    assert!(!out.err().contains("panicked"), "{out}");
    // The repository may have been broken, but nothing worse.
    plain(
        world,
        "(git status; git commit -q --allow-empty -m after; git log -1; git switch -q -; \
         git switch -q -) >/dev/null 2>&1 || true",
    );
    // Changes the configuration, and makes git read one more file.
    plain(
        world,
        "(cp -a . ../sparse && cd ../sparse && git sparse-checkout set --no-cone '/*'; git status) >/dev/null 2>&1 || \
         true; rm -rf ../sparse",
    );
    assert!(!marks.exists(), "it ran: {script}: {out}");
}

/// Everyday work.
const WORK: &str = "\
echo more >> file; git commit -qam more; git branch kept; git switch -qc new; git switch -q -
echo dirty >> file; git stash -q; git stash pop -q; git checkout -q -- file
git tag -a v1 -m v1; git merge -q --no-edit topic; git switch -q topic; git rebase -q kept; git switch -q -
git cherry-pick --allow-empty kept~0 >/dev/null 2>&1 || git cherry-pick --abort >/dev/null 2>&1 || true
git gc -q; git fsck >/dev/null 2>&1; git log --oneline | wc -l >/dev/null; git reflog >/dev/null
";

#[test]
fn a_repository_can_be_initialised_again() {
    in_repositories(|world| {
        let mode = || tree::mode(world.path(".git/config"));
        let before = (world.read(".git/config"), mode());
        works(world, "git init -q; git init -q .; git status");
        assert_eq!((world.read(".git/config"), mode()), before);
        // git tries whether a configuration can be made executable; no other mode can be set.
        works(world, "chmod u+x .git/config");
        assert_eq!(mode(), before.1 | 0o100);
        for mode in ["600", "g+w", "g+x", "4744", "000"] {
            shell(world, &["-q"], &format!("chmod {mode} .git/config")).run().failed();
        }
        assert_eq!(mode(), before.1 | 0o100);
        works(world, "chmod u-x .git/config");
        shell(world, &["-q"], "chmod u+x .git/hooks/post-update.sample .git/hooks").run().failed();
        assert_eq!((world.read(".git/config"), mode()), before);
    });
}

#[test]
fn everyday_work_goes_on() {
    in_repositories(|world| {
        works(world, WORK);
        works(
            world,
            "git worktree add -q tree topic; cd tree; echo x > x; git add x; git commit -qm x; cd ..; \
             git worktree remove tree; git worktree prune",
        );
        works(world, "git config user.name >/dev/null; git -c core.editor=true commit -q --amend");
        plain(world, "git fsck 2>&1; test -z \"$(git status --porcelain)\"");
        assert!(!names(&world.workspace).iter().any(|name| name.starts_with(".env")));
    });
}

#[test]
fn a_new_repository_can_be_made() {
    need!("git");
    in_namespaces(|world| {
        world.write(world.home.join(".gitconfig"), IDENTITY);
        works(
            world,
            "git init -q .; echo x > x; git add x; git commit -qm x; mkdir sub; git init -q sub; cd sub; touch y; \
             git add y; git commit -qm y",
        );
        plain(world, "git fsck 2>&1");
    });
}

#[test]
fn a_linked_worktree_is_a_workspace() {
    need!("git");
    with_namespaces(|user| {
        let mut world = stage(user);
        plain(&world, "git worktree add -q ../tree topic");
        let main = world.workspace.clone();
        world.workspace = world.home.join("tree");
        works(
            &world,
            "echo more >> other; git commit -qam more; git switch -qc new; echo y > y; git add y; git stash -q; \
             git stash pop -q; git commit -qm y; git rebase -q main; git gc -q",
        );
        let marks = world.outside.join("ran");
        let common = main.join(".git");
        let common = common.display();
        for script in [
            format!(
                "printf '#!/bin/sh\\nPLANTED\\n' > {common}/hooks/post-commit; chmod +x {common}/hooks/post-commit"
            ),
            format!(
                "git config core.fsmonitor 'PLANTED; false'; echo '[core] fsmonitor = PLANTED' >> {common}/config"
            ),
            format!("echo '[core] fsmonitor = PLANTED' > {common}/config.worktree"),
            format!("echo /tmp > {common}/worktrees/tree/commondir; rm {common}/worktrees/tree/commondir"),
            format!("rm .git; mkdir .git; mv {common}/worktrees {common}/w"),
            format!(
                "rm .git; cp -r {common} .git; rm -rf .git/hooks; mkdir .git/hooks; \
                 printf '#!/bin/sh\\nPLANTED\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit"
            ),
        ] {
            nothing_planted_runs(&world, &script);
            world.workspace = main.clone();
            plain(&world, "git status >/dev/null; git commit -q --allow-empty -m main");
            world.workspace = world.home.join("tree");
        }
        assert!(!marks.exists());
        // Only git's own part of the repository can be written, nothing else of that worktree.
        let file = || fs::read(main.join("file")).unwrap();
        let before = file();
        shell(&world, &["-q"], &format!("echo x >> {}", main.join("file").display())).run();
        assert_eq!(file(), before);
    });
}

#[test]
fn submodules_work_and_are_protected() {
    need!("git");
    with_namespaces(|user| {
        let world = stage(user);
        plain(&world, "git submodule -q add ../library sub && git commit -qm sub");
        works(
            &world,
            "git submodule status >/dev/null; cd sub; echo x >> lib; git commit -qam inside; cd ..; git add sub; \
             git commit -qm moved; git status --porcelain",
        );
        for script in [
            "printf '#!/bin/sh\\nPLANTED\\n' > .git/modules/sub/hooks/post-commit; chmod +x .git/modules/sub/hooks/*",
            "git -C sub config core.fsmonitor PLANTED; echo '[core] fsmonitor = PLANTED' >> .git/modules/sub/config",
            "rm sub/.git; git init -q sub; git -C sub config core.fsmonitor PLANTED",
            "mv .git/modules/sub .git/modules/was; cp -r .git/modules/was .git/modules/sub; \
             echo '[core] fsmonitor = PLANTED' >> .git/modules/sub/config",
            "mv .git/modules .git/was; cp -r .git/was .git/modules; \
             echo '[core] fsmonitor = PLANTED' >> .git/modules/sub/config",
            "echo ../../evil > .git/modules/sub/commondir",
        ] {
            nothing_planted_runs(&world, script);
        }
        // In two runs: for the second one it is not a repository any more.
        shell(&world, &["-q"], "mv .git/modules/sub/HEAD .git/modules/sub/WAS").run().success();
        shell(
            &world,
            &["-q"],
            "echo '[core] fsmonitor = touch ran' >> .git/modules/sub/config; \
             mv .git/modules/sub/WAS .git/modules/sub/HEAD",
        )
        .run();
        assert!(!fs::read_to_string(world.path(".git/modules/sub/config")).unwrap().contains("touch ran"));
        // As a workspace of its own.
        let mut inside = stage(user);
        plain(&inside, "git submodule -q add ../library sub && git commit -qm sub");
        inside.workspace = inside.path("sub");
        works(
            &inside,
            "echo y >> lib; git commit -qam inside; git switch -qc new; git stash -q 2>/dev/null || true; git gc -q",
        );
        for script in [
            "printf '#!/bin/sh\\nPLANTED\\n' > ../.git/modules/sub/hooks/post-commit; \
             chmod +x ../.git/modules/sub/hooks/*",
            "git config core.fsmonitor PLANTED",
            "echo '[core] fsmonitor = PLANTED' >> ../.git/config",
        ] {
            nothing_planted_runs(&inside, script);
        }
        shell(&inside, &["-q"], "echo x >> ../file; echo x >> ../.git/HEAD; exit 1").run().failed();
        assert!(!inside.read("../file").unwrap().contains('x'));
    });
}

#[test]
fn a_repository_that_cannot_be_inspected_is_protected() {
    with_namespaces(|user| {
        // root can look into everything.
        if user.is_root() {
            return;
        }
        need!("git");
        for (hide, show) in [
            ("chmod 000 .git/modules", "chmod 755 .git/modules"),
            ("chmod 111 .git/modules", "chmod 755 .git/modules"),
            (
                "rm -r .git/modules/sub/{hooks,info,objects,refs,logs}; chmod 444 .git/modules/sub",
                "chmod 755 .git/modules/sub",
            ),
            ("chmod 000 .git", "chmod 755 .git"),
        ] {
            let world = stage(user);
            plain(&world, "git submodule --quiet add ../library sub && git commit -qm sub");
            // One run hides it; the next one shows it again and plants.
            let plant = "echo '[core] fsmonitor = planted' >> .git/modules/sub/config; \
                         mkdir -p .git/modules/sub/hooks; echo planted > .git/modules/sub/hooks/post-commit";
            shell(&world, &["-q"], hide).run();
            let out = shell(&world, &["-q"], &format!("{show}; {plant}")).run();
            plain(&world, "chmod -R u+rwX .git");
            let config = fs::read_to_string(world.path(".git/modules/sub/config")).unwrap();
            assert!(!config.contains("planted"), "{hide}: {out}");
            assert!(!world.exists(".git/modules/sub/hooks/post-commit"), "{hide}: {out}");
            // Where nothing is hidden, the attempt would have worked.
            plain(&world, plant);
            assert!(world.exists(".git/modules/sub/hooks/post-commit"));
        }
    });
}

#[test]
fn files_that_git_executes_cannot_be_planted() {
    need!("git");
    with_namespaces(|user| {
        for setting in
            ["", "core.hooksPath .husky/_", "include.path ../more.config", "extensions.worktreeConfig true"]
        {
            let world = stage(user);
            if !setting.is_empty() {
                plain(&world, &format!("git config {setting}"));
            }
            for script in [
                "mkdir -p .git/hooks; printf '#!/bin/sh\\nPLANTED\\n' > .git/hooks/post-commit; \
                 chmod +x .git/hooks/post-commit",
                "git config core.fsmonitor 'PLANTED; false'",
                "git config --worktree core.fsmonitor 'PLANTED; false'; \
                 printf '[core]\\nfsmonitor = PLANTED\\n' > .git/config.worktree",
                "printf '[core]\\nfsmonitor = PLANTED\\n' >> .git/config",
                "printf '[core]\\nfsmonitor = PLANTED\\n' > .git/config.worktree",
                "printf '[core]\\nfsmonitor = PLANTED\\n' > more.config; mkdir more.config",
                "mkdir -p .husky/_; printf '#!/bin/sh\\nPLANTED\\n' > .husky/_/post-commit; \
                 chmod +x .husky/_/post-commit",
                "mv .husky .was; mkdir -p .husky/_; printf '#!/bin/sh\\nPLANTED\\n' > .husky/_/post-commit; \
                 chmod +x .husky/_/post-commit",
                "cp -r .git evil; printf '[core]\\nfsmonitor = PLANTED\\n' >> evil/config; \
                 echo ../evil > .git/commondir; rm -rf .git/commondir; echo ../evil > .git/commondir",
                "mv .git .was; cp -r .was .git; printf '[core]\\nfsmonitor = PLANTED\\n' >> .git/config",
                "cp -r .git evil; printf '[core]\\nfsmonitor = PLANTED\\n' >> evil/config; rm -rf .git; \
                 echo 'gitdir: evil' > .git",
            ] {
                let copy = stage_copy(&world);
                nothing_planted_runs(&copy, script);
            }
        }
    });
}

/// However many files it concerns.
#[test]
fn a_directory_that_is_protected_is_named_once() {
    in_repositories(|world| {
        plain(world, "cd .git/hooks && rm -f * && touch {1..9} && cd .. && ls -d hooks");
        let out = shell(world, &[], "exec 2>/dev/null; rm .git/hooks/*; mv .git moved").run().failed();
        let lines = out.sbx_lines();
        let says = |line: &str, text: &str| assert!(line.contains(text), "lacks {text:?}: {out}");
        says(&lines[0], "/.git/hooks, which something outside could execute");
        says(&lines[1], "protects what is in ");
        says(&lines[2], "and 8 more in rm");
        assert_eq!((lines.len(), world.path(".git/hooks").read_dir().unwrap().count()), (3, 9), "{out}");
    });
}

/// The workspace is a directory of the repository, which executes files of that directory.
#[test]
fn no_hooks_are_planted_in_a_workspace_that_is_a_directory_of_a_repository() {
    need!("git");
    with_namespaces(|user| {
        let hook =
            "hook=front/scripts/pre-commit; mkdir -p front/scripts; echo '#!/bin/sh' > $hook; chmod +x $hook";
        let settings = [
            "git config core.hooksPath front/scripts",
            "git config include.path ../front/more; touch front/more",
            "ln -s ../../front/scripts/pre-commit .git/hooks/pre-commit",
            "git config core.hooksPath front/scripts; git worktree add -q ../tree; mkdir ../tree/front; \
             mv front/scripts ../tree/front",
        ];
        let plant = "echo x > front/x; mkdir -p front/scripts; rm -f front/scripts/pre-commit; \
                     printf '#!/bin/sh\ntouch ran\n' > front/scripts/pre-commit; chmod +x front/scripts/pre-commit; \
                     printf '[core]\nfsmonitor = touch ran; false\n' > front/more";
        for setting in settings {
            for confined in [true, false] {
                let world = stage(user);
                plain(&world, &format!("{hook}; {setting}"));
                let top = if setting.contains("worktree") { "../tree" } else { "." };
                let workspace = format!("{top}/front");
                // A run begins in its workspace.
                let script = format!("cd {}; {plant}", if confined { ".." } else { top });
                let out = if confined {
                    shell(&world, &["--workspace", &workspace], &script).run().to_string()
                } else {
                    plain(&world, &script)
                };
                assert!(world.exists(format!("{workspace}/x")), "{setting}: {out}");
                plain(&world, &format!("cd {top}; git commit -q --allow-empty -m after"));
                assert_eq!(world.exists(format!("{top}/ran")), !confined, "{setting}");
            }
        }
    });
}

/// The command may not decide where `git push` sends things to, and whose hooks it executes.
#[test]
fn remotes_cannot_be_planted() {
    need!("git");
    with_namespaces(|user| {
        let repository = "git init -q --bare REPO; printf '#!/bin/sh\\ntouch ran\\n' > REPO/hooks/pre-receive; \
                          chmod +x REPO/hooks/pre-receive";
        let old =
            "mkdir -p .git/remotes; printf 'URL: ./evil\\nPush: HEAD:refs/heads/x\\n' > .git/remotes/origin";
        let older = "mkdir -p .git/branches; echo ./evil > .git/branches/origin";
        for file in [old, older] {
            let evil = repository.replace("REPO", "evil");
            let script = format!("set -e; {evil}; {file}");
            let push = |world: &World| {
                plain(world, "git push -q origin HEAD:refs/heads/x || true");
                (world.exists("evil/ran"), world.exists("good/ran"))
            };
            // Hooks of a repository that the command makes are put aside; these are the user's.
            let world = stage(user);
            plain(&world, &evil);
            let out = shell(&world, &["-q"], file).run();
            assert!(world.exists("evil/hooks/pre-receive"), "{out}");
            assert_eq!(push(&world), (false, false), "{out}");
            // If there is an address, git looks at no file, and the command may make it.
            let world = stage(user);
            plain(&world, &format!("{}; git remote add origin ./good", repository.replace("REPO", "good")));
            shell(&world, &["-q"], &script).run().success();
            assert_eq!(push(&world), (false, true));
            // It would have worked.
            let world = stage(user);
            plain(&world, &script);
            assert_eq!(push(&world), (true, false));
        }
    });
}

/// A copy of the workspace, since an attempt may break it.
fn stage_copy(world: &World) -> World {
    let copy = World::new(&world.user);
    plain(world, &format!("cp -r . {0}; cp ../.gitconfig {0}/..", copy.workspace.display()));
    copy
}

/// The repository includes shared configuration, which names more files.
#[test]
fn files_that_included_configuration_names_are_protected_too() {
    need!("git");
    with_namespaces(|user| {
        let script = "mkdir -p githooks; printf '#!/bin/sh\\nPLANTED\\n' > githooks/post-commit; \
                      chmod +x githooks/post-commit";
        let stages: [&dyn Fn(&World); 5] = [
            &|world| {
                world.write("shared.config", "[include]\n\tpath = deeper.config\n");
                world.write("deeper.config", "[core]\n\thooksPath = githooks\n");
                plain(world, "git config include.path ../shared.config");
            },
            &|world| drop(plain(world, "echo '[core] hooksPath = githooks # ours' >> .git/config")),
            &|world| {
                drop(plain(
                    world,
                    "git config extensions.worktreeConfig true; git config --worktree core.hooksPath githooks",
                ))
            },
            &|world| drop(plain(world, "git config --global core.hooksPath githooks")),
            &|world| {
                drop(plain(world, "printf '[core]\\n\\tHooksPath = \"githooks\" ; ours\\n' >> .git/config"))
            },
        ];
        for prepare in stages {
            let world = stage(user);
            prepare(&world);
            nothing_planted_runs(&world, script);
        }
    });
}

/// A hook is often a link to a script that is kept with the rest.
#[test]
fn scripts_that_hooks_link_to_stay_as_they_are() {
    in_repositories(|world| {
        let twin = "printf '#!/bin/sh\\n' > scripts/other; mv scripts/other scripts/more; rm scripts/more";
        plain(
            world,
            "mkdir -p scripts kept; printf '#!/bin/sh\\n' | tee scripts/check > kept/run; \
             chmod +x scripts/check kept/run; ln -s kept alias; ln -s ../kept/run scripts/second; \
             ln -s ../../scripts/check .git/hooks/pre-commit; ln -s ../../scripts/second .git/hooks/post-commit; \
             ln -s ../../scripts/../kept/run .git/hooks/post-checkout; git add . && git commit -qm scripts",
        );
        works(world, twin);
        works(
            world,
            "scripts/check; kept/run; cat scripts/second >/dev/null; echo more >> file; git commit -qam more",
        );
        for script in [
            "printf '#!/bin/sh\\nPLANTED\\n' > scripts/check",
            "printf '#!/bin/sh\\nPLANTED\\n' > scripts/second",
            "printf '#!/bin/sh\\nPLANTED\\n' > evil; chmod +x evil; mv evil scripts/check",
            "printf '#!/bin/sh\\nPLANTED\\n' > evil; chmod +x evil; mv evil scripts/second; mv evil kept/run",
            "mv scripts was; mkdir scripts; for n in check second; do printf '#!/bin/sh\\nPLANTED\\n' > scripts/$n; \
             chmod +x scripts/$n; done",
            "chmod +w kept/run; echo PLANTED >> kept/run; rm kept/run; mv kept was",
        ] {
            nothing_planted_runs(world, script);
        }
    });
}
