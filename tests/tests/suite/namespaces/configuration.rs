//! git changes its configuration in a protected workspace, as far as that is harmless, and in no other way.

use super::git::{in_repositories, nothing_planted_runs, plain, stage};
use super::{PYTHON, names, shell, with_namespaces};
use sbx_tests::{World, need};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Runs a script inside, where the repository for submodules can be read.
#[track_caller]
fn works(world: &World, script: &str) -> String {
    let library = world.home.join("library");
    let flags = ["-q", "--ro", library.to_str().unwrap()];
    shell(world, &flags, &format!("set -e; {script}")).run().success().out()
}

fn config(world: &World) -> String {
    world.read(".git/config").unwrap()
}

/// A run leaves nothing in the directory of hooks.
fn nothing_is_left(world: &World) {
    for directory in [".git", ".git/hooks"] {
        let left = names(&world.path(directory));
        assert!(!left.iter().any(|name| name.contains("sbx") || name.ends_with(".lock")), "{left:?}");
    }
}

#[test]
fn harmless_changes_are_made() {
    in_repositories(|world| {
        plain(world, "git remote add origin ../library && chmod 640 .git/config");
        works(
            world,
            "git branch -m topic renamed; git branch --set-upstream-to=main renamed; \
             git checkout -qb tracking --track main; git config user.name 'Somebody else'; \
             git branch -d renamed --force; git config branch.main.remote origin",
        );
        let text = config(world);
        for part in [
            "name = Somebody else",
            "[branch \"tracking\"]\n\tremote = .\n\tmerge = refs/heads/main",
            "remote = origin",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("renamed"));
        let mode = fs::metadata(world.path(".git/config")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        nothing_is_left(world);
        // In the sandbox and outside, from another directory, and by another program.
        let seen = works(
            world,
            "mkdir -p deep; cd deep; git config user.email new@example.org; cp ../.git/config ../.git/config.lock; \
             mv -f ../.git/config.lock ../.git/config; cat ../.git/config",
        );
        assert_eq!(seen, config(world));
    });
}

/// Replacing the file under one name would leave the other name as it is, with nothing mounted on it: it is refused.
#[test]
fn a_configuration_with_a_second_name_stays() {
    in_repositories(|world| {
        let before = config(world);
        let second = world.path("second");
        fs::hard_link(world.path(".git/config"), &second).unwrap();
        shell(world, &["-q"], "git config user.email new@example.org").run().failed();
        assert_eq!((config(world), world.read("second").unwrap()), (before.clone(), before.clone()));
        nothing_is_left(world);
        fs::remove_file(second).unwrap();
        works(world, "git config user.email new@example.org");
        assert_ne!(config(world), before);
    });
}

#[test]
fn submodules_are_added_and_updated() {
    need!("git", "bash");
    with_namespaces(|user| {
        let world = stage(user);
        works(
            &world,
            "git submodule -q add ../library sub; git commit -qm sub; git submodule -q update --init",
        );
        assert!(config(&world).contains("[submodule \"sub\"]"));
        plain(&world, "test -z \"$(git status --porcelain)\"; test -f sub/lib; git submodule status");
        // A submodule that exists before the run is protected, and works all the same.
        works(
            &world,
            "git -C sub config user.name Inside; git -C sub branch -m other; \
             git submodule -q update --init --recursive; git -C sub fetch -q",
        );
        assert!(world.read(".git/modules/sub/config").unwrap().contains("Inside"));
        shell(&world, &["-q"], "git -C sub config core.fsmonitor false").run().failed();
        // A clone of it that has no submodules yet.
        plain(&world, "git clone -q . ../clone");
        let mut clone = stage(user);
        plain(&clone, &format!("rm -rf ../library; cp -r {} ..", world.home.join("library").display()));
        clone.workspace = clone.home.join("clone");
        plain(&world, &format!("cp -r ../clone {}", clone.workspace.display()));
        plain(
            &clone,
            "git config remote.origin.url ../workspace/../library/../clone; git config submodule.sub.url ../library; \
             git config --unset submodule.sub.url",
        );
        works(
            &clone,
            "sed -i s,../library,$HOME/library, .gitmodules; git submodule -q update --init; test -f sub/lib",
        );
        assert!(config(&clone).contains("[submodule \"sub\"]"));
    });
}

/// A new configuration is written by way of the directory of hooks.
#[test]
fn a_repository_without_hooks_keeps_its_configuration() {
    in_repositories(|world| {
        plain(world, "rm -rf .git/hooks");
        let before = config(world);
        shell(world, &["-q"], "git config user.name Somebody").run().failed();
        assert!(config(world) == before && !world.path(".git/hooks").exists());
    });
}

/// Additions that make git execute something, or lead to something that does.
const HARMFUL: [&str; 26] = [
    "[core]\\n\\tfsmonitor = PLANTED\\n",
    "[CORE] FsMonitor = PLANTED\\n",
    "[core]\\n\\tfsmonitor = \\\\\\nPLANTED\\n",
    "[core]fsmonitor=PLANTED",
    "# \\\\\\n[core]fsmonitor = PLANTED\\n",
    "[user]\\n\\tname = \"x\\n[core]\\n\\tfsmonitor = PLANTED\\n",
    "[user \"]\\\\\\n[core]\"]\\n\\tfsmonitor = PLANTED\\n[core]\\n\\tfsmonitor = PLANTED\\n",
    "\\0[core]\\n\\tfsmonitor = PLANTED\\n",
    "[core]\\n\\tfsmonitor = PLANTED\\0\\n",
    "[core]\\r[core]\\r\\n\\tfsmonitor = PLANTED\\r\\n",
    "[core]\\n\\thooksPath = evil\\n",
    "[core]\\n\\tsshCommand = PLANTED\\n[core]\\n\\tpager = PLANTED\\n",
    "[core]\\n\\teditor = PLANTED\\n",
    "[core]\\n\\tworktree = ..\\n",
    "[alias]\\n\\tst = !PLANTED\\n",
    "[filter \"x\"]\\n\\tsmudge = PLANTED\\n\\tclean = PLANTED\\n\\trequired\\n",
    "[diff]\\n\\texternal = PLANTED\\n",
    "[merge \"x\"]\\n\\tdriver = PLANTED\\n",
    "[credential]\\n\\thelper = !PLANTED\\n",
    "[gpg]\\n\\tprogram = PLANTED\\n[commit]\\n\\tgpgSign = true\\n",
    "[include]\\n\\tpath = ../evil/config\\n",
    "[includeIf \"gitdir:/\"]\\n\\tpath = ../evil/config\\n",
    "[extensions]\\n\\tworktreeConfig = true\\n",
    "[submodule \"x\"]\\n\\tupdate = !PLANTED\\n",
    "[submodule \"x\"]\\n\\turl = ext::sh -c PLANTED\\n",
    "[branch \"main\"]\\n\\tremote = ext::sh -c PLANTED\\n\\tmerge = refs/heads/main\\n",
];

/// Prepares an attempt: a directory of hooks, and a configuration to be included.
const READY: &str = "mkdir -p evil; printf '#!/bin/sh\\nPLANTED\\n' > evil/post-commit; chmod +x evil/post-commit; \
                     printf '[core]\\nfsmonitor = PLANTED\\n' > evil/config";

#[test]
fn harmful_changes_are_refused() {
    in_repositories(|world| {
        let before = config(world);
        for addition in HARMFUL {
            nothing_planted_runs(
                world,
                &format!(
                    "{READY}; cp .git/config .git/config.lock; printf '{addition}' >> .git/config.lock; \
                     mv -f .git/config.lock .git/config; rm -f .git/config.lock"
                ),
            );
            assert_eq!(config(world), before, "{addition}");
        }
        for other in [
            "cp .git/config .git/config.lock; sed -i /bare/d .git/config.lock",
            "{ printf '\\xef\\xbb\\xbf[core]\\nfsmonitor = PLANTED\\n'; cat .git/config; } > .git/config.lock",
            "{ cat .git/config; yes '# filler' | head -c 300000; } > .git/config.lock",
            "mkfifo .git/config.lock",
            "mkdir .git/config.lock",
            ": > .git/config.lock",
            "cp .git/config evil/new; printf '[core]\\nfsmonitor = PLANTED\\n' >> evil/new; \
             ln -s ../evil/new .git/config.lock",
            "cp .git/config evil/new; ln -s ../evil/new .git/config.lock",
        ] {
            nothing_planted_runs(
                world,
                &format!("{READY}; {other}; mv -fT .git/config.lock .git/config; rm -rf .git/config.lock"),
            );
            assert_eq!(config(world), before, "{other}");
        }
        nothing_is_left(world);
        // The line names what is refused.
        let out = shell(world, &[], "git config Core.FsMonitor 'touch ran'").run().failed();
        out.says("blocked rename(").says("core.fsmonitor");
        assert_eq!(config(world), before);
        shell(world, &["-q"], "git remote add evil https://example.org/; exit 1").run().failed();
        assert_eq!(config(world), before);
    });
}

/// A copy is checked: the file that it was copied from may have other names and writers.
#[test]
fn writing_after_the_check_has_no_effect() {
    in_repositories(|world| {
        nothing_planted_runs(
            world,
            "cp .git/config .git/config.lock; printf '[user]\\n\\tname = Harmless\\n' >> .git/config.lock; \
             ln .git/config.lock other; exec 3>> .git/config.lock; mv -f .git/config.lock .git/config; \
             printf '[core]\\nfsmonitor = PLANTED\\n' >&3; printf '[core]\\nfsmonitor = PLANTED\\n' >> other; \
             printf '[core]\\nfsmonitor = PLANTED\\n' >> /proc/self/fd/3",
        );
        let text = config(world);
        assert!(text.contains("Harmless") && !text.contains("fsmonitor"), "{text}");
    });
}

/// Opens, holds, renames and links everything on the way, and changes what is to be checked, while git changes its
/// configuration over and over.
const MEDDLER: &str = r#"
import os, subprocess, threading, time
EVIL = b"\n[core]\nfsmonitor = PLANTED\n"
PATHS = [".git/config", ".git/hooks/sbx-config", ".git/hooks/sbx-config.lock"]
over, reached = False, []
def write(path, name):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    # One that has no name any more is nobody's configuration.
    if os.fstat(fd).st_nlink: reached.append(name)
    os.write(fd, EVIL); os.close(fd)
def attempt(act, *args):
    try: return act(*args)
    except OSError: return None
def open_all():
    while not over:
        for path in PATHS: attempt(write, path, path)
def hold_all():
    held = []
    while not over:
        for path in PATHS:
            for flags in (os.O_PATH, os.O_RDONLY):
                fd = attempt(os.open, path, flags)
                if fd is not None: held.append(fd)
        while len(held) > 30:
            fd = held.pop(0)
            attempt(write, "/proc/self/fd/%d" % fd, "held")
            os.close(fd)
def move_all():
    while not over:
        for path in PATHS:
            for act in (os.rename, os.link): 
                if attempt(lambda: (act(path, ".git/stolen"), True)[1]): reached.append(act.__name__)
            for mode in (0o666, 0o600): attempt(os.chmod, path, mode)
def swap():
    good = open(".git/config", "rb").read()
    while not over:
        for text in (good + b"[user]\nemail = a@b\n", good + EVIL):
            attempt(lambda: open(".git/other", "wb").write(text))
            attempt(os.rename, ".git/other", ".git/config.lock")
            attempt(os.rename, ".git/config.lock", ".git/config")
threads = [threading.Thread(target=t) for t in (open_all, hold_all, move_all, swap)]
for t in threads: t.start()
done, end = 0, time.monotonic() + 4
while time.monotonic() < end:
    done += attempt(os.rename, ".git/config.lock", ".git/config") is None
    subprocess.run(["git", "config", "user.name", str(done)], stderr=subprocess.DEVNULL)
over = True
for t in threads: t.join()
print(sorted(set(reached)))
"#;

#[test]
fn no_race_gets_past_the_check() {
    need!("git", "bash", PYTHON);
    with_namespaces(|user| {
        let world = stage(user);
        world.write("meddler.py", MEDDLER);
        let out =
            shell(&world, &["-q"], &format!("rm -f .git/config.lock; {PYTHON} meddler.py")).run().success();
        assert_eq!(out.out(), "[]\n");
        let text = config(&world);
        assert!(text.contains("[user]") && !text.contains("PLANTED"), "{text}");
    });
}

/// The other run could not follow the change, so its protection would end.
#[test]
fn another_run_in_the_repository_prevents_the_change() {
    in_repositories(|world| {
        let before = config(world);
        let wait = "echo inside; for n in $(seq 600); do [ -e stop ] && exit 0; sleep 0.05; done; exit 1";
        let other = shell(world, &["-q"], wait).start();
        other.wait_for("inside");
        let out = shell(world, &[], "git config user.name Somebody").run().failed();
        out.says("another run is in this repository");
        assert_eq!(config(world), before);
        // A run in one of its submodules prevents it too.
        world.write("stop", "");
        other.wait().success();
        works(world, "git config user.name Somebody");
        assert!(config(world).contains("name = Somebody"));
        nothing_is_left(world);
    });
}

/// Even if the runs are in different workspaces, each with a repository of its own before that one.
#[test]
fn a_run_that_protects_a_repository_below_its_own_prevents_the_change() {
    in_repositories(|world| {
        plain(world, "git init -q sub; cd sub; git commit -q --allow-empty -m one");
        shell(world, &["-q"], "true").run().success();
        let change = |say: &str| {
            let command = ["run", "--", "git", "config", "user.name", "harmless"];
            let out = world.sbx(command).cwd(world.path("sub")).run();
            assert_eq!(out.code == Some(0), say.is_empty(), "{out}");
            assert!(out.err().contains(say), "{out}");
        };
        let running = shell(world, &["-q"], "echo ready; until [ -e go ]; do sleep 0.02; done").start();
        running.wait_for("ready");
        change("another run is in this repository");
        assert!(!world.read("sub/.git/config").unwrap().contains("harmless"));
        world.write("go", "");
        running.wait().success();
        // The twin.
        change("");
        assert!(world.read("sub/.git/config").unwrap().contains("harmless"));
    });
}

/// A run counts as long as its processes may exist, even if its supervisor is gone.
#[test]
fn the_remains_of_a_killed_run_prevent_nothing() {
    in_repositories(|world| {
        let wait = "while :; do git config user.name x$RANDOM || exit 1; echo more; done";
        let killed = shell(world, &["-q"], wait).start();
        killed.wait_for_times("more", 3);
        killed.kill();
        plain(world, "rm -f .git/config.lock; git config --list >/dev/null; git status >/dev/null");
        works(world, "git config user.name Afterwards");
        assert!(config(world).contains("Afterwards"));
        nothing_is_left(world);
    });
}

/// They are no hooks. A hook that comes meanwhile is put aside.
#[test]
fn what_another_run_has_in_the_directory_of_hooks_is_left_to_it() {
    in_repositories(|world| {
        let script = "echo ready; until [ -e go ]; do sleep 0.02; done";
        let running = shell(world, &[], script).start();
        running.wait_for("ready");
        plain(world, "cd .git/hooks; touch sbx-config sbx-config.lock pre-commit");
        world.write("go", "");
        let out = running.wait().success();
        for name in ["sbx-config", "sbx-config.lock"] {
            assert!(world.exists(format!(".git/hooks/{name}")), "{out}");
        }
        assert!(!out.err().contains("sbx-config"), "{out}");
        assert!(!world.exists(".git/hooks/pre-commit"), "{out}");
        assert!(out.err().contains("pre-commit.sbx-aside"), "{out}");
    });
}
