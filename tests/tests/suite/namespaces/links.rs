//! Hard links between the workspace and what of it is in a mount of its own, and none to what is protected.

use super::git::{in_repositories, plain};
use super::{PYTHON, names, shell};
use sbx_tests::World;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How many names a file of the workspace has.
fn names_of(world: &World, path: &str) -> u64 {
    fs::metadata(world.path(path)).unwrap().nlink()
}

#[test]
fn a_clone_in_the_workspace_shares_its_objects() {
    in_repositories(|world| {
        let script = "set -e; git clone -q . copy; ln .git/HEAD head; ln file .git/made; cp -al .git/refs refs; \
            cd .git; ln -L description ../told";
        shell(world, &["-q"], script).run().success();
        let object = plain(world, "find copy/.git/objects -type f -name '??*' | grep -v pack | head -n 1");
        let object = object.trim();
        let beside = object.strip_prefix("copy/").unwrap();
        for (one, other) in
            [(object, beside), (".git/HEAD", "head"), ("file", ".git/made"), (".git/description", "told")]
        {
            let number = |path: &str| fs::metadata(world.path(path)).unwrap().ino();
            assert_eq!((names_of(world, one), number(one)), (2, number(other)), "{one} {other}");
        }
        assert_eq!(names_of(world, ".git/refs/heads/main"), 2);
    });
}

/// By a second name, it could be changed.
#[test]
fn nothing_protected_gets_a_second_name() {
    in_repositories(|world| {
        world.write(".git/hooks/pre-commit", "#!/bin/sh\n");
        world.write("closed/file", "closed");
        world.write("secret", "secret");
        let outside = world.outside.join("outside");
        world.write(&outside, "outside");
        world.write("payload", "#!/bin/sh\necho planted\n");
        let before = names(&world.path(".git/hooks"));
        let flags = ["--deny", "secret", "--deny", "closed"];
        let script = format!(
            "ln .git/config a; ln .git/hooks/pre-commit b; ln closed/file .git/c; ln .git/HEAD closed/d; \
             ln secret .git/e; ln {outside} .git/f; ln payload .git/hooks/post-commit; \
             ln payload .git/config.worktree; ln payload .git/commondir; ln .git/HEAD {directory}/g; \
             ln .git/HEAD file; \
             ln .git/HEAD /tmp/i; ln .git i; cd .git/hooks && ln pre-commit ../../j; \
             exec 3< pre-commit && ln -L /proc/self/fd/3 ../../k; echo tried",
            outside = outside.display(),
            directory = world.outside.display()
        );
        let out = shell(world, &flags, &script).run().success();
        assert_eq!(out.out(), "tried\n");
        let of_workspace = [".git/config", ".git/hooks/pre-commit", "closed/file", "secret", "payload"];
        for path in of_workspace.into_iter().chain([".git/HEAD", "file"]) {
            assert_eq!(names_of(world, path), 1, "{path}: {out}");
        }
        assert_eq!(fs::metadata(&outside).unwrap().nlink(), 1, "{out}");
        assert_eq!(names(&world.path(".git/hooks")), before);
        let made = ["a", "b", "i", "j", "k", ".git/c", ".git/e", ".git/f", "closed/d"];
        assert!(made.iter().all(|name| !world.exists(name)), "{out}");
        assert!(!Path::new("/tmp/i").exists());
        // What is not protected gets one.
        shell(world, &flags, "ln payload .git/payload").run().success();
        assert_eq!(names_of(world, "payload"), 2);
    });
}

/// A directory that a flag opens is in a mount of its own too.
#[test]
fn a_link_leads_to_a_directory_of_a_flag_and_gains_no_right() {
    in_repositories(|world| {
        let beside = world.outside.join("beside");
        world.make_dir(&beside);
        world.write(beside.join("program"), "");
        let at = beside.to_str().unwrap();
        let script = format!("ln file {at}/linked; ln {at}/program program; echo tried");
        for (flag, gained) in [("--ro", [1, 1]), ("--rw", [2, 1]), ("--rwx", [2, 2])] {
            let out = shell(world, &[flag, at], &script).run().success();
            let found = [names_of(world, "file"), fs::metadata(beside.join("program")).unwrap().nlink()];
            assert_eq!(found, gained, "{flag}: {out}");
            let _ = fs::remove_file(beside.join("linked"));
        }
    });
}

/// A command can ask for a link itself. What is at the same path outside is another file than in the home of the run.
#[test]
fn what_is_replaced_for_the_run_gets_no_second_name_outside() {
    in_repositories(|world| {
        world.write(world.home.join("secret"), "secret");
        let script = "import ctypes, os, sys\n\
            def link(old, new):\n\
            \x20   old, new = (ctypes.c_char_p(os.path.abspath(path).encode()) for path in (old, new))\n\
            \x20   print(ctypes.CDLL(None).prctl(0x53425833, ctypes.c_long(-100), old, ctypes.c_long(-100), new))\n\
            home = os.environ['HOME']\n\
            open(f'{home}/secret', 'w').write('made')\n\
            link(f'{home}/secret', f'{home}/second')\n\
            link('.git/config', 'second')\n\
            link('file', 'second')\n";
        let out = world.sbx(["run", "--", PYTHON, "-c", script]).run().success();
        assert_eq!(out.out(), "-1\n-1\n0\n");
        let secret = fs::metadata(world.home.join("secret")).unwrap();
        assert_eq!(secret.nlink(), 1);
        assert!(!world.home.join("second").exists());
        assert_eq!((names_of(world, ".git/config"), names_of(world, "file")), (1, 2));
        let refused = world.sbx(["run", "--deny-calls", "linkat", "--", PYTHON, "-c", script]).run();
        assert_eq!(refused.out(), "-1\n-1\n-1\n");
    });
}
