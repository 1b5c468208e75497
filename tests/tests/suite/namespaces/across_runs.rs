//! What a run leaves in the workspace gives the next run no more: modes, closed directories and links are not believed.

use super::git::{in_repositories, plain, stage};
use super::{in_namespaces, names, shell, with_namespaces};
use sbx_tests::{User, World, need, skip, tree};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

/// Runs these scripts one after the other, each in a sandbox of its own, and then git as the user would.
#[track_caller]
fn nothing_planted_runs_after(world: &World, scripts: &[&str]) {
    let ran = world.outside.join("ran");
    for script in scripts {
        let planted = format!("touch {}", ran.display());
        shell(world, &["-q"], &script.replace("PLANTED", &planted)).run();
        plain(world, "(git status; git log -1) >/dev/null 2>&1 || true");
        assert!(!ran.exists(), "{script}");
    }
    plain(world, "chmod 755 .git; git status >/dev/null");
    assert!(!ran.exists(), "{scripts:?}");
}

const FSMONITOR: &str = "chmod 755 .git; printf '[core]\nfsmonitor = PLANTED\n' >> .git/config";
const HOOK: &str = "chmod 755 .git; printf '#!/bin/sh\nPLANTED\n' > .git/hooks/post-index-change; \
                    chmod +x .git/hooks/post-index-change; git status";

#[test]
fn no_mode_makes_a_repository_pass_for_a_placeholder() {
    in_repositories(|world| {
        // The control: outside a sandbox the planted line does run.
        let ran = world.outside.join("ran");
        let planted = FSMONITOR.replace("PLANTED", &format!("touch {}", ran.display()));
        plain(
            world,
            &format!("cp -a .git ../kept; {planted}; git status >/dev/null; rm -rf .git; mv ../kept .git"),
        );
        assert!(ran.exists());
        fs::remove_file(&ran).unwrap();
        for mode in ["1000", "1755", "1555", "1500", "1001", "000", "1100"] {
            for then in [FSMONITOR, HOOK] {
                // By a run without namespaces, say.
                plain(world, &format!("chmod {mode} .git"));
                nothing_planted_runs_after(world, &[then]);
            }
        }
    });
}

/// A later run could not tell what is in it, and would be refused.
#[test]
fn no_directory_above_something_protected_can_be_closed() {
    in_repositories(|world| {
        plain(world, "git worktree add -q tree topic");
        let mode = |name: &str| fs::metadata(world.path(name)).unwrap().mode() & 0o7777;
        for name in [".git", ".git/worktrees", ".git/worktrees/tree"] {
            let before = mode(name);
            for way in ["chmod 000", "chmod 300", "chmod 400", "chmod u-r", "chmod u-x"] {
                let out = shell(world, &[], &format!("{way} {name}")).run().failed();
                assert!(out.err().contains("protects"), "{out}");
                assert_eq!(mode(name), before, "{way} {name}");
            }
            shell(world, &[], &format!("chmod 710 {name} && chmod 755 {name}")).run().success();
        }
        shell(world, &[], "mkdir own && chmod 000 own && chmod 700 own && rmdir own").run().success();
    });
}

/// An access list is a mode in more words.
#[test]
fn no_access_list_closes_such_a_directory() {
    in_repositories(|world| {
        let list_of = |kind: &str, place: &str, owner: u8| {
            format!(
                "/usr/bin/python3 -c 'import os, struct\n\
                 entries = [struct.pack(\"<HHI\", *each, 0xffffffff) for each in ((1, {owner}), (4, 5), (32, 5))]\n\
                 os.setxattr(\"{place}\", \"system.posix_acl_{kind}\", b\"\\2\\0\\0\\0\" + b\"\".join(entries))'"
            )
        };
        let list = |place: &str, owner: u8| list_of("access", place, owner);
        plain(world, "mkdir own");
        if world.bare(["bash", "-c", &list("own", 7)]).run().code != Some(0) {
            return skip("the file system has no access lists");
        }
        let mode = |name: &str| fs::metadata(world.path(name)).unwrap().mode() & 0o700;
        for owner in [0, 3, 4] {
            let out = shell(world, &[], &list(".git", owner)).run().failed();
            assert!(out.err().contains("protects") && mode(".git") == 0o700, "{owner}: {out}");
            shell(world, &["-q"], &list_of("default", ".git", owner)).run().failed();
        }
        // The twins: one that leaves it open, and one of a directory of no matter.
        shell(world, &[], &list(".git", 7)).run().success();
        shell(world, &[], &format!("{}; stat -c %a own", list("own", 0))).run().success().prints("55\n");
        plain(world, "chmod 755 own; git status");
        world.write(world.home.join(".claude/settings.json"), "{}");
        // Where the user has such a list for new files, placeholders are what they are, and go.
        let names_of = || [".", ".git"].map(|place| names(&world.path(place)));
        let before = names_of();
        for owner in [0, 4, 7] {
            plain(
                world,
                &format!("{}; {}", list_of("default", ".", owner), list_of("default", ".git", owner)),
            );
            shell(world, &["-q"], "echo ../x > .git/commondir").run().failed();
            let out = shell(world, &[], "stat -c %a .claude").run().success().prints("1755\n");
            assert!(out.err().is_empty(), "{owner}: {out}");
            assert_eq!(names_of(), before, "{owner}");
        }
    });
}

/// A relative `core.hooksPath` is meant from the top of each working tree.
#[test]
fn hooks_are_protected_in_every_working_tree() {
    in_repositories(|world| {
        let ran = world.outside.join("ran");
        plain(
            world,
            "git submodule add -q ../library lib; git commit -qm lib; git worktree add -q tree topic; \
             git config --global core.hooksPath .githooks",
        );
        let commit = "git commit -q --allow-empty -m after";
        for tree in [".", "lib", "tree"] {
            let plant = format!(
                "mkdir -p {tree}/.githooks; printf '#!/bin/sh\ntouch {}\n' > {tree}/.githooks/post-commit; \
                 chmod +x {tree}/.githooks/post-commit",
                ran.display()
            );
            shell(world, &["-q"], &plant).run();
            plain(world, &format!("cd {tree}; {commit}"));
            assert!(!ran.exists(), "{tree}");
            // The control.
            plain(world, &format!("{plant}; cd {tree}; {commit}; rm -r .githooks"));
            assert!(ran.exists(), "{tree}");
            fs::remove_file(&ran).unwrap();
        }
    });
}

/// `git status` goes into submodules, also into those that keep their repository in their own directory.
#[test]
fn a_repository_embedded_in_its_submodule_is_protected() {
    in_repositories(|world| {
        let ran = world.outside.join("ran");
        plain(
            world,
            "git clone -q ../library lib; git clone -q ../library deep/lib; \
             git submodule add -q ../library lib; git submodule add -q --name other ../library deep/lib; \
             git commit -qm lib; test -d lib/.git; test -d deep/lib/.git",
        );
        let planted = format!("touch {}", ran.display());
        for lib in ["lib", "deep/lib"] {
            for script in [
                format!("printf '[core]\nfsmonitor = {planted}\n' >> {lib}/.git/config"),
                format!(
                    "mv {lib}/.git {lib}/was; cp -r {lib}/was {lib}/.git; git -C {lib} config core.fsmonitor '{planted}'"
                ),
            ] {
                shell(world, &["-q"], &script).run();
                plain(world, "git status >/dev/null");
                assert!(!ran.exists(), "{script}");
            }
            // The control.
            plain(world, &format!("git -C {lib} config core.fsmonitor '{planted}'; git status >/dev/null"));
            assert!(ran.exists(), "{lib}");
            plain(world, &format!("git -C {lib} config --unset core.fsmonitor; rm {}", ran.display()));
            // Work in it goes on.
            shell(world, &["-q"], &format!("cd {lib} && echo more >> lib && git commit -qam more"))
                .run()
                .success();
        }
    });
}

/// A bare repository, one behind a `.git` file, submodules and worktrees are known by what is left of them.
#[test]
fn an_unrecognisable_repository_is_one() {
    need!("git");
    with_namespaces(|user| {
        let bare = "git clone -q --bare . ../bare; rm -rf * .git; cp -r ../bare/. .";
        let behind = "mv .git .bare; echo 'gitdir: .bare' > .git; echo .bare >> .bare/info/exclude";
        let nested =
            "mkdir -p third_party; git submodule add -q ../library third_party/foo; git commit -qm lib";
        let embedded = "git clone -q ../library deep/lib; git submodule add -q --name other ../library deep/lib; \
                        git commit -qm lib; test -d deep/lib/.git";
        let worktree = "git worktree add -q wt topic";
        let here = "mkdir evil; printf '#!/bin/sh\nPLANTED\n' > evil/reference-transaction; \
                    chmod +x evil/reference-transaction; printf '[core]\nhooksPath = evil\n' >> config";
        let cases: &[(&str, &[&str], &str)] = &[
            (
                embedded,
                &[
                    "chmod 000 .gitmodules",
                    "chmod 644 .gitmodules; printf '[core]\nfsmonitor = PLANTED\n' >> deep/lib/.git/config",
                ],
                "chmod 644 .gitmodules; git status",
            ),
            (bare, &["mv refs was", &format!("mv was refs; {here}")], "git branch three"),
            (bare, &["mv -T HEAD HEAD.bak", &format!("mv HEAD.bak HEAD; {here}")], "git branch three"),
            (
                behind,
                &[
                    "mv .bare/HEAD was",
                    "mv was .bare/HEAD; cd .bare; printf '[core]\nfsmonitor = PLANTED\n' >> config",
                ],
                "git status",
            ),
            (
                behind,
                &[
                    "cp -r .bare copy; rm -rf .bare",
                    "cp -r copy .bare; printf '[core]\nfsmonitor = PLANTED\n' >> .bare/config",
                ],
                "git status",
            ),
            (
                nested,
                &[
                    ": > .git/modules/third_party/config",
                    "rm -f .git/modules/third_party/config; printf '[core]\nfsmonitor = PLANTED\n' >> .git/modules/third_party/foo/config",
                ],
                "git status",
            ),
            (
                nested,
                &[
                    "chmod 0300 .git/modules",
                    "chmod 755 .git/modules; printf '[core]\nfsmonitor = PLANTED\n' >> .git/modules/third_party/foo/config",
                ],
                "chmod 755 .git/modules; git status",
            ),
            (
                nested,
                &[
                    "chmod 000 .git/modules/third_party/foo",
                    "chmod 755 .git/modules/third_party/foo; cp -r .git/modules/third_party/foo evil; \
 git config -f evil/config core.worktree $PWD/third_party/foo; git config -f evil/config core.fsmonitor 'PLANTED'; \
 echo gitdir: $PWD/evil > third_party/foo/.git",
                ],
                "chmod 755 .git/modules/third_party/foo; git status",
            ),
            (
                worktree,
                &[
                    "chmod 000 .git/worktrees/wt",
                    "chmod 755 .git/worktrees/wt; cp -r .git evil; git -C evil config core.fsmonitor 'PLANTED'; \
               echo gitdir: $PWD/evil/worktrees/wt > wt/.git",
                ],
                "chmod 755 .git/worktrees/wt; cd wt; git status",
            ),
            (
                worktree,
                &[
                    "chmod 0200 .git/worktrees",
                    "chmod 755 .git/worktrees; cp -r .git evil; git -C evil config core.fsmonitor 'PLANTED'; \
               echo gitdir: $PWD/evil/worktrees/wt > wt/.git",
                ],
                "chmod 755 .git/worktrees; cd wt; git status",
            ),
        ];
        for (made, scripts, after) in cases {
            for sandboxed in [true, false] {
                let world = stage(user);
                let ran = world.outside.join("ran");
                let planted = format!("touch {}", ran.display());
                plain(&world, made);
                for script in *scripts {
                    let script = script.replace("PLANTED", &planted);
                    match sandboxed {
                        true => shell(&world, &["-q"], &script).run(),
                        false => world.bare(["bash", "-c", &script]).run(),
                    };
                }
                let said = plain(&world, &format!("({after}) 2>&1 || true"));
                assert_eq!(ran.exists(), !sandboxed, "{scripts:?}: {said}");
            }
        }
    });
}

#[test]
fn a_mercurial_repository_is_one_without_its_store() {
    in_namespaces(|world| {
        world.make_dir(&world.path(".hg/store"));
        shell(world, &["-q"], "mv .hg/store was || true").run();
        for script in ["echo '[hooks]' > .hg/hgrc", "mv .hg had && mkdir .hg && echo '[hooks]' > .hg/hgrc"] {
            shell(world, &["-q"], script).run().failed();
            assert!(!world.exists(".hg/hgrc"), "{script}");
        }
        shell(world, &["-q"], "echo branch > .hg/branch").run().success();
    });
}

/// The sandbox around has protected its own workspace, not what an inner run is started in.
#[test]
fn an_inner_run_says_that_its_repository_is_not_protected() {
    in_repositories(|world| {
        let sbx = sbx_tests::stage::sbx().to_str().unwrap();
        plain(world, "git init -q inner && git -C inner commit -q --allow-empty -m one");
        let inner = |directory: &str| {
            shell(world, &["-q", "--rox", sbx], &format!("cd {directory} && {sbx} run -- true")).run()
        };
        let own = world.path("inner/.git/hooks");
        inner("inner").success().says(&format!("warning: '{}'", own.display())).says("has no namespaces");
        // What is protected already needs no word.
        assert!(!inner(".").success().err().contains("can be changed"));
    });
}

/// Dotfiles that are kept as links into a workspace.
#[test]
fn what_links_in_the_home_directory_lead_to_is_protected_behind_closed_directories() {
    in_namespaces(|world| {
        let dot = world.path("dot");
        for (link, file) in [(".bashrc", "bashrc"), (".config/sbx/profiles", "profiles")] {
            let link = world.home.join(link);
            world.make_dir(link.parent().unwrap());
            world.make_dir(&dot);
            let target = dot.join(file);
            if file == "profiles" {
                world.make_dir(&target)
            } else {
                drop(world.write(&target, "mine\n"))
            }
            symlink(&target, &link).unwrap();
            let before = tree::snapshot(&dot);
            for mode in ["000", "1000", "100", "700"] {
                shell(world, &["-q"], &format!("chmod {mode} dot")).run();
                let script = format!(
                    "chmod 755 dot; echo x >> dot/{file}; echo x > dot/{file}/planted.json; mv dot/{file} dot/was; \
                     mv dot was; mkdir dot; echo x > dot/{file}; true"
                );
                shell(world, &["-q"], &script).run();
                fs::set_permissions(&dot, fs::Permissions::from_mode(0o755)).unwrap();
                let after = tree::snapshot(&dot);
                let changed = tree::differences(&before, &after);
                let changed: Vec<_> =
                    changed.into_iter().filter(|(path, ..)| path.to_string_lossy().contains(file)).collect();
                assert!(changed.is_empty(), "{mode}: {changed:?}");
            }
            // What is not protected can be changed.
            shell(world, &["-q"], "echo x > dot/other && rm dot/other").run().success();
            fs::remove_file(&link).unwrap();
            fs::remove_dir_all(&dot).unwrap();
        }
    });
}

#[test]
fn what_links_in_the_home_directory_lead_to_cannot_be_made() {
    in_namespaces(|world| {
        world.make_dir(&world.path("dot"));
        symlink(world.path("dot/bashrc"), world.home.join(".bashrc")).unwrap();
        shell(world, &["-q"], "echo planted > dot/bashrc").run().failed();
        shell(world, &["-q"], "mkdir x && echo planted > x/bashrc && mv dot was && mv x dot").run().failed();
        assert!(!world.exists("dot/bashrc") && names(&world.path("dot")).is_empty());
        shell(world, &["-q"], "echo mine > dot/other").run().success();
    });
}

#[test]
fn one_named_file_of_shared_memory_opens_no_other() {
    in_namespaces(|world| {
        let mark = sbx_tests::processes::marker();
        let (named, other) = (format!("/dev/shm/{mark}"), format!("/dev/shm/{mark}-other"));
        let make = |path: &str| world.bare(["sh", "-c", &format!("echo secret > {path}")]).run().success();
        make(&named);
        make(&other);
        let script =
            format!("cat {named}; cat {other}; echo x > {other}; echo x > /dev/shm/{mark}-new; ls /dev/shm");
        for flag in ["--ro", "--rw"] {
            let out = shell(world, &["-q", flag, &named], &script).run().success();
            assert_eq!(out.out(), format!("secret\n{mark}\n{mark}-new\n{mark}-other\n"), "{out}");
            assert_eq!(fs::read_to_string(&other).unwrap(), "secret\n");
            assert!(!fs::exists(format!("/dev/shm/{mark}-new")).unwrap());
        }
        shell(world, &["-q", "--rw", &named], &format!("echo mine > {named}")).run().success();
        assert_eq!(fs::read_to_string(&named).unwrap(), "mine\n");
        // The whole directory, where that is named.
        shell(world, &["-q", "--rw", "/dev/shm"], &format!("echo all > {other}")).run().success();
        assert_eq!(fs::read_to_string(&other).unwrap(), "all\n");
        fs::remove_file(named).unwrap();
        fs::remove_file(other).unwrap();
    });
}

#[test]
fn one_named_terminal_opens_no_other() {
    in_namespaces(|world| {
        let show = || world.bare(["sh", "-c", "tty; sleep 60"]).start_on_terminal();
        let ((first, _first), (second, _second)) = (show(), show());
        let name = |running: &sbx_tests::command::Running| {
            let process = format!("/proc/{}", running.pid());
            let link = fs::read_link(format!("{process}/fd/0")).unwrap();
            // login(1) gives a terminal to its user.
            chown(&link, Some(fs::metadata(process).unwrap().uid()), None).unwrap();
            link.to_str().unwrap().to_string()
        };
        let (named, other) = (name(&first), name(&second));
        let script = format!("echo x > {named} && echo reached; echo x > {other} && echo escaped; true");
        let out = shell(world, &["-q", "--rw", &named], &script).run().success();
        assert_eq!(out.out(), "reached\n", "{out}");
        first.kill();
        second.kill();
    });
}

#[test]
fn a_missing_path_behind_a_link_is_not_said_to_be_denied() {
    in_namespaces(|world| {
        world.make_dir(&world.path("real"));
        symlink("real", world.path("conf")).unwrap();
        let real = world.path("real/.env");
        let refusal = ["cannot deny 'conf/.env'", "symbolic link", real.to_str().unwrap()];
        let make = "rm -f conf; mkdir -p conf real; echo x > conf/.env; echo x > real/.env; cat real/.env";
        shell(world, &["--deny", "conf/.env"], make).run().refused(125, &refusal);
        assert!(world.path("conf").is_symlink());
        shell(world, &["-q", "--deny", "real/.env"], make).run().failed();
        assert!(!real.exists());
        // Of what is there, the file itself is denied.
        world.bare(["sh", "-c", "rm -r conf && ln -s real conf"]).run().success();
        world.write("real/.env", "secret\n");
        let out = shell(world, &["-q", "--deny", "conf/.env"], "cat conf/.env real/.env").run();
        assert!(out.failed().out().is_empty());
    });
}

/// What a run of a narrow profile leaves in a tool cache is not what a run that may write the workspace reads.
#[test]
fn tool_caches_are_those_of_one_profile() {
    let world = World::new(&User::current());
    let in_cache = |profile: &str, script: &str| {
        let script = format!("cd \"$XDG_CACHE_HOME\" && {script}");
        world.sbx(["run", "-p", profile, "--home", "closed", "--", "sh", "-c", &script]).run().success().out()
    };
    in_cache("read-only", "echo planted > tool");
    assert_eq!(in_cache("read-only", "cat tool"), "planted\n");
    assert_eq!(in_cache("workspace", "ls -A"), "");
    in_cache("workspace", "echo own > tool");
    assert_eq!(in_cache("workspace", "cat tool"), "own\n");
    assert_eq!(in_cache("read-only", "cat tool"), "planted\n");
}

/// Variables by which an interpreter, a compiler or git loads other code.
#[test]
fn variables_that_load_code_do_not_pass() {
    let world = World::new(&User::current());
    let hooks = ["PERLLIB", "MAKEFILES", "GIT_EXEC_PATH", "DOTNET_STARTUP_HOOKS", "PYTHONPYCACHEPREFIX"];
    let more = ["OPENSSL_ENGINES", "CLASSPATH", "NODE_REPL_EXTERNAL_MODULE", "PYTHONWARNINGS"];
    let with = |flags: &[&str]| {
        let mut run = world.sbx(["run"]).args(flags).args(["--", "env"]).env("HARMLESS", "1");
        for name in hooks.iter().chain(&more) {
            run = run.env(name, "planted");
        }
        run.run().success().out()
    };
    assert!(!with(&[]).contains("planted"));
    let all = with(&["--inherit-env"]);
    assert!(!all.contains("planted") && all.contains("HARMLESS=1"), "{all}");
}
