//! What decides where a path leads: links, and directories that `..` leaves again. What is at its end by the words of
//! the path is something else.

use super::{in_namespaces, names, shell, with_namespaces};
use sbx_tests::{World, need};

/// What the user has made in the workspace, what the command does, and what the user does then, which prints EVIL where
/// the command has led it.
struct Case {
    made: &'static str,
    attack: &'static str,
    acts: &'static str,
}

const HOOK: &str = "hook() { printf '#!/bin/sh\\necho EVIL\\n' > \"$1\"; chmod +x \"$1\"; }\n";
const ALIAS: &str = "alias() { printf '[alias]\\nst = !echo EVIL\\n' >> \"$1\"; }\n";
const COMMIT: &str = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x 2>&1";

/// The kernel counts links again where it begins a walk anew, and so may give up before the fortieth.
const FOLLOW: &str = "for i in $(seq 50); do cat .envrc 2>/dev/null && break; done";
const PUSH: &str = "to=$PWD; test -d wt/to && to=$PWD/wt; git init -q ../from; cd ../from
    git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git push -q $to HEAD:refs/heads/new 2>&1";

const CASES: [Case; 25] = [
    // By words alone, these are at `hk` and `inc` beside the link.
    Case {
        made: "git init -q .; mkdir -p sub/real sub/hk; ln -s sub/real lr; git config core.hooksPath lr/../hk",
        attack: "hook sub/hk/pre-commit",
        acts: COMMIT,
    },
    Case {
        made: "git init -q .; mkdir -p sub/real; ln -s sub/real lr; touch sub/inc; git config include.path ../lr/../inc",
        attack: "alias sub/inc",
        acts: "git st",
    },
    Case {
        made: "git init -q .; mkdir -p sub/real; ln -s sub/real lr; touch sub/more; git config include.path ../lr/inc
               printf '[include]\\npath = ../more\\n' > sub/real/inc",
        attack: "alias sub/more",
        acts: "git st",
    },
    Case {
        made: "mkdir -p sub/x; git init -q --separate-git-dir=sub/real .; ln -s sub/x lr; echo 'gitdir: lr/../real' > .git",
        attack: "alias sub/real/config",
        acts: "git st",
    },
    // Another directory in the place of the one that is left, or a link.
    Case {
        made: "mkdir conf d; echo good > conf/envrc; ln -s d/../conf/envrc .envrc",
        attack: "mkdir -p o/dd o/conf; echo EVIL > o/conf/envrc; mv d d.o; ln -s o/dd d",
        acts: "cat .envrc",
    },
    Case {
        made: "git init -q .; mkdir tools hk; git config core.hooksPath tools/../hk",
        attack: "mkdir -p o/dd o/hk; hook o/hk/pre-commit; mv tools t.o; ln -s o/dd tools",
        acts: COMMIT,
    },
    Case {
        made: "git init -q .; mkdir tools hk; ln -s ../../tools/../hk/pre-commit .git/hooks/pre-commit",
        attack: "mkdir -p o/dd o/hk; hook o/hk/pre-commit; mv tools t.o; ln -s o/dd tools",
        acts: COMMIT,
    },
    Case {
        made: "git init -q .; mkdir tools; touch inc; git config include.path ../tools/../inc",
        attack: "mkdir -p o/dd; alias o/inc; mv tools t.o; ln -s o/dd tools",
        acts: "git st",
    },
    // One that is not there.
    Case {
        made: "git init -q .; mkdir hk; git config core.hooksPath gone/../hk",
        attack: "mkdir -p o/dd o/hk; hook o/hk/pre-commit; ln -s o/dd gone",
        acts: COMMIT,
    },
    Case {
        made: "mkdir conf; echo good > conf/envrc; ln -s gone/../conf/envrc .envrc",
        attack: "mkdir -p o/dd o/conf; echo EVIL > o/conf/envrc; ln -s o/dd gone",
        acts: "cat .envrc",
    },
    // The way to a repository.
    Case {
        made: "mkdir r; git init -q --separate-git-dir=r/real .; ln -s r lr; echo 'gitdir: lr/real' > .git",
        attack: "mkdir o; cp -r r/real o; alias o/real/config; mv lr lr.o; ln -s o lr; git st",
        acts: "test \"$(readlink lr)\" = r || echo EVIL",
    },
    Case {
        made: "git init -q .; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git worktree add -q wt
               mkdir d; echo ../../../d/../.git > .git/worktrees/wt/commondir",
        attack: "mkdir -p o/x; cp -r .git o; mv d d.o; ln -s o/x d",
        acts: "test -L d && echo EVIL",
    },
    // The working tree that a repository names.
    Case {
        made: "git init -q .; mkdir -p src-a/.hk; ln -s src-a src; git config core.worktree ../src
               git config core.hooksPath .hk",
        attack: "rm src; mkdir -p src-b/.hk; ln -s src-b src; hook src-b/.hk/pre-commit",
        acts: COMMIT,
    },
    Case {
        made: "git init -q .; git config core.hooksPath .hk; git config core.worktree ../build/src",
        attack: "mkdir -p build/src/.hk; hook build/src/.hk/pre-commit",
        acts: COMMIT,
    },
    Case {
        made: "git init -q .; git config extensions.worktreeConfig true; mkdir -p src/.hk
               git config --worktree core.worktree ../src; git config core.hooksPath .hk",
        attack: "hook src/.hk/pre-commit",
        acts: COMMIT,
    },
    // What is pushed to a repository has its hooks started there.
    Case {
        made: "git init -q .; git config core.hooksPath ../githooks",
        attack: "mkdir githooks; hook githooks/post-receive",
        acts: PUSH,
    },
    Case {
        made: "git init -q .; mkdir tools; ln -s ../tools .git/shared; git config core.hooksPath shared",
        attack: "hook tools/post-receive",
        acts: PUSH,
    },
    Case {
        made: "git init -q .; printf '[core]\\nhooksPath = .githooks\\n' > team; git config include.path ../team",
        attack: "mkdir .git/.githooks; hook .git/.githooks/post-receive",
        acts: PUSH,
    },
    Case {
        made: "git init -q .; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git worktree add -q wt
               git config core.hooksPath .githooks",
        attack: "mkdir .git/worktrees/wt/.githooks; hook .git/worktrees/wt/.githooks/post-receive; mkdir to; mv to wt/to",
        acts: PUSH,
    },
    Case {
        made: "git init -q .; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git worktree add -q wt
               git config core.hooksPath ../githooks",
        attack: "mkdir .git/worktrees/githooks; hook .git/worktrees/githooks/post-receive; mkdir to; mv to wt/to",
        acts: PUSH,
    },
    Case {
        made: "git init -q .; mkdir -p .husky tools; ln -s ../tools .husky/_; git config core.hooksPath .husky/_",
        attack: "hook tools/pre-commit",
        acts: COMMIT,
    },
    // Settings of the user's, where the workspace is no repository.
    Case {
        made: "mkdir hk; git config --global core.hooksPath $PWD/hk",
        attack: "hook hk/pre-commit",
        acts: "git init -q ../other; cd ../other; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x 2>&1",
    },
    Case {
        made: "touch inc; git config --global include.path $PWD/inc",
        attack: "alias inc",
        acts: "cd ..; git st",
    },
    // One more link than the kernel follows.
    Case {
        made: "for i in $(seq 40); do ln -s l$((i + 1)) l$i; done; ln -s l1 .envrc",
        attack: "rm -f l40; echo EVIL > l40",
        acts: FOLLOW,
    },
    // As many links as the kernel follows.
    Case {
        made: "echo good > l40; for i in $(seq 39 -1 1); do ln -s l$((i + 1)) l$i; done; ln -s l1 .envrc",
        attack: "echo EVIL > l40",
        acts: FOLLOW,
    },
];

#[test]
fn what_git_and_others_act_on_is_where_the_kernel_leads_them() {
    need!("git");
    with_namespaces(|user| {
        for Case { made, attack, acts } in &CASES {
            let attack = format!("{HOOK}{ALIAS}{attack}");
            let acted = |sandbox: bool| {
                let world = World::new(user);
                world.bare(["bash", "-c", made]).run().success();
                match sandbox {
                    true => drop(shell(&world, &["-q"], &attack).run()),
                    false => drop(world.bare(["bash", "-c", &attack]).run()),
                }
                world.bare(["bash", "-c", acts]).run().out()
            };
            assert!(!acted(true).contains("EVIL"), "{attack}");
            // The twin, without a run.
            assert!(acted(false).contains("EVIL"), "{attack}");
        }
    });
}

/// A relative `core.hooksPath` may lead from a linked worktree's directory to beside it. What a run has there, so that
/// the command makes no hooks, is not taken for a linked worktree, and goes.
#[test]
fn what_stands_in_for_hooks_is_no_linked_worktree() {
    need!("git");
    in_namespaces(|world| {
        let made = "git init -q .; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
                    git worktree add -q wt; git config core.hooksPath ../githooks";
        world.bare(["bash", "-c", made]).run().success();
        for _ in 0..2 {
            shell(world, &[], "test -f .git/worktrees/githooks").run().success().silent();
            assert_eq!(names(&world.workspace.join(".git/worktrees")), ["wt"]);
        }
        // A link is one all the same.
        shell(world, &[], "ln -s ../../wt .git/worktrees/other").run().success().says("worktrees/other");
        assert!(!world.exists(".git/worktrees/other"));
    });
}

/// Programs change what is on the way all the time.
#[test]
fn what_is_in_a_directory_on_the_way_may_change() {
    need!("git");
    in_namespaces(|world| {
        let made = "git init -q .; mkdir tools hk; git config core.hooksPath tools/../hk; touch tools/a";
        world.bare(["bash", "-c", made]).run().success();
        let script =
            "set -e; echo x > tools/b; rm tools/a; mkdir tools/c; mv tools/c tools/d; chmod 700 tools";
        shell(world, &[], script).run().success();
        assert!(world.exists("tools/d") && !world.exists("tools/a"));
    });
}

/// `core.worktree` of a submodule and `gitdir` of a linked worktree that go up behind a link.
#[test]
fn git_is_led_over_no_link_and_up_again() {
    need!("git");
    in_namespaces(|world| {
        let victim = world.outside.join("victim");
        world.make_dir(&victim);
        world.make_dir(&world.outside.join("any"));
        let set_up = "git config --global user.name a; git config --global user.email a@b
            git init -q .; git commit -q --allow-empty -m base";
        world.bare(["bash", "-c", set_up]).run().success();
        let attack = |leads: &str| {
            format!(
                "set -e; V=victim; git init -q $V; cd $V; git commit -q --allow-empty -m one
                 echo EVIL > planted; git add planted; git commit -q -m two; NEW=$(git rev-parse HEAD)
                 git checkout -q HEAD~1; cd ..; mkdir -p .git/modules; mv $V/.git .git/modules/$V; rm -rf $V; mkdir $V
                 echo \"gitdir: ../.git/modules/$V\" > $V/.git
                 printf '[submodule \"%s\"]\\npath = %s\\nurl = ./%s\\n' $V $V $V > .gitmodules
                 git update-index --add --cacheinfo 160000,$NEW,$V; git add .gitmodules; git commit -q -m sub
                 ln -s {} l; git config -f .git/modules/$V/config core.worktree {leads}",
                world.outside.join("any").display(),
            )
        };
        let acts = ["git", "-C", "victim", "checkout", "-q", "-f", "master"];
        let settled = |script: &str| {
            let out = shell(world, &[], script).run().success();
            let _ = world.bare(acts).run();
            out
        };
        let out = settled(&attack("../../../l/../victim"));
        assert!(!victim.join("planted").exists(), "{out}");
        out.says("git outside would act on its core.worktree");
        world.bare(["bash", "-c", &format!("find . -mindepth 1 -delete; {set_up}")]).run().success();
        // The twin, without a run.
        world.bare(["bash", "-c", &attack("../../../l/../victim")]).run().success();
        let _ = world.bare(acts).run();
        assert!(victim.join("planted").exists());
    });
}

#[test]
fn no_linked_worktree_is_said_to_be_over_a_link_and_up_again() {
    need!("git");
    in_namespaces(|world| {
        let (any, victim) = (world.outside.join("any"), world.outside.join("victim"));
        [&any, &victim].into_iter().for_each(|directory| world.make_dir(directory));
        let set_up = "git init -q .; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m base";
        world.bare(["bash", "-c", set_up]).run().success();
        let attack = format!(
            "git worktree add -q wt; rm -rf wt; ln -s {} l; echo $PWD/l/../victim/.git > .git/worktrees/wt/gitdir",
            any.display()
        );
        for sandbox in [true, false] {
            match sandbox {
                true => shell(world, &[], &attack).run().success().says("worktrees/wt/gitdir"),
                false => {
                    world.bare(["bash", "-c", &format!("rm -rf .git/worktrees l; {attack}")]).run().success()
                }
            };
            let _ = world.bare(["git", "worktree", "repair"]).run();
            assert_eq!(victim.join(".git").exists(), !sandbox);
        }
    });
}
