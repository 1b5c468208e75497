//! Workspaces that an earlier command, or somebody else, has prepared against the next run.

use super::{PYTHON, in_namespaces, names, shell, with_namespaces};
use sbx_tests::{User, World};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::Duration;

#[track_caller]
fn starts(world: &World) {
    shell(world, &["-q"], "echo started")
        .timeout(Duration::from_secs(30))
        .run()
        .success()
        .prints("started\n");
}

fn with_world(user: &User, prepare: impl FnOnce(&World)) {
    let world = World::new(user);
    prepare(&world);
    starts(&world);
}

#[test]
fn an_odd_git_directory_prevents_no_run() {
    with_namespaces(|user| {
        let fifo = |world: &World, name: &str| drop(world.bare(["mkfifo", name]).run().success());
        with_world(user, |world| fifo(world, ".git"));
        with_world(user, |world| drop(UnixListener::bind(world.path(".git")).unwrap()));
        with_world(user, |world| symlink(".git", world.path(".git")).unwrap());
        with_world(user, |world| symlink("/dev/zero", world.path(".git")).unwrap());
        with_world(user, |world| symlink("/proc/self/mem", world.path(".git")).unwrap());
        with_world(user, |world| symlink("/nowhere", world.path(".git")).unwrap());
        with_world(user, |world| drop(world.write(".git", "gitdir: ".to_string() + &"x/".repeat(5_000_000))));
        with_world(user, |world| drop(world.write(".git", [0xff, 0, 0xfe, b'\n'])));
        for target in [
            ".",
            "..",
            ".git",
            "/proc/self",
            "/proc/1",
            "/",
            "/dev/zero",
            "",
            "/proc/self/fd",
            "\n",
            "../../../..",
        ] {
            with_world(user, |world| drop(world.write(".git", format!("gitdir: {target}\n"))));
        }
        for name in ["config", "commondir", "config.worktree", "HEAD", "hooks", "worktrees", "modules"] {
            with_world(user, |world| {
                world.make_dir(&world.path(".git"));
                fifo(world, &format!(".git/{name}"));
            });
            with_world(user, |world| {
                world.make_dir(&world.path(".git"));
                symlink("/dev/zero", world.path(".git").join(name)).unwrap();
            });
            with_world(user, |world| {
                world.make_dir(&world.path(".git"));
                symlink("..", world.path(".git").join(name)).unwrap();
            });
            with_world(user, |world| {
                world.make_dir(&world.path(".git/modules/lib"));
                world.write(".git/modules/lib/HEAD", "x");
                let _ = fs::remove_file(world.path(".git/modules/lib").join(name));
                fifo(world, &format!(".git/modules/lib/{name}"));
            });
        }
        with_world(user, |world| {
            world.write(
                ".git/config",
                "[include]\n\tpath = config\n\tpath = ../pipe\n[core]\n\thooksPath = .\n",
            );
            fifo(world, "pipe");
        });
        with_world(user, |world| {
            drop(world.write(".git/config", "[include]\n".to_string() + &"path = x\n".repeat(20_000)))
        });
        // Creation of names cannot be blocked in a directory that cannot be opened.
        let world = World::new(user);
        world.write(".git/config", "[core]\n");
        fs::set_permissions(world.path(".git"), fs::Permissions::from_mode(0o0)).unwrap();
        let out = shell(&world, &[], "echo started").run();
        if user.is_root() {
            out.success();
        } else {
            out.refused(125, &[".git", "permission denied"]);
        }
        with_world(user, |world| {
            world.write(
                ".git/config",
                "[core]\n\thooksPath = \"\"\n\thooksPath =\n\thooksPath = /\n\thooksPath = ..\n",
            );
        });
    });
}

#[test]
fn odd_names_are_denied_like_ordinary_ones() {
    with_namespaces(|user| {
        let world = World::new(user);
        let longest = "x".repeat(255);
        let odd: [&[u8]; 7] = [
            b"new\nline",
            b"\xff\xfe",
            b"-dash",
            longest.as_bytes(),
            b"a b\t\"c\"\\",
            b"\x1b[2J",
            b"$(touch x)",
        ];
        for name in odd {
            let name = OsStr::from_bytes(name);
            world.write(name, "hidden\n");
            let path = world.path(name);
            world
                .sbx(["run", "-q", "--deny"])
                .arg(&path)
                .args(["--", "cat", "--"])
                .arg(&path)
                .run()
                .failed()
                .prints("");
            world
                .sbx(["run", "-q", "--deny"])
                .arg(&path)
                .args(["--", "rm", "-f", "--"])
                .arg(&path)
                .run()
                .failed();
            world.sbx(["run", "-q", "--", "cat", "--"]).arg(&path).run().success().prints("hidden\n");
            fs::remove_file(&path).unwrap();
            world.sbx(["run", "-q", "--deny"]).arg(&path).args(["--", "touch", "--"]).arg(&path).run();
            assert!(!world.exists(&path), "{name:?}");
        }
        assert_eq!(names(&world.workspace), [""; 0]);
        let deep = world.path(vec!["d"; 400].join("/"));
        fs::create_dir_all(&deep).unwrap();
        world.bare(["chown", "-R", &user.id.to_string(), "d"]).run();
        fs::write(deep.join("f"), "hidden\n").unwrap();
        world
            .sbx(["run", "-q", "--deny"])
            .arg(deep.join("f"))
            .args(["--", "cat"])
            .arg(deep.join("f"))
            .run()
            .failed()
            .prints("");
    });
}

/// A link on the way is swapped while runs start: the effect stays in the workspace.
#[test]
fn links_that_change_during_the_start_lead_nowhere() {
    in_namespaces(|world| {
        world.write("a/secret", "hidden\n");
        world.write("b/secret", "other\n");
        world.write("go", "");
        let swap = "while [ -e go ]; do ln -sfn b.real a.tmp 2>/dev/null; mv -T a c && ln -s ../outside a; rm -f a; \
                    mv -T c a; done; true";
        let swapper = world.bare(["bash", "-c", swap]).start();
        for _ in 0..12 {
            let out = shell(world, &["-q", "--deny", "a/secret"], "echo end").run();
            assert!(out.code == Some(0) || out.code == Some(125), "{out}");
        }
        fs::remove_file(world.path("go")).unwrap();
        swapper.wait();
        assert_eq!(fs::read_to_string(world.outside.join("kept")).unwrap(), "outside\n");
        assert_eq!(names(&world.outside), ["dir", "kept"]);
    });
}

/// A command that still runs swaps a directory, which a flag of the next run names, with a link out of the workspace.
#[test]
fn a_directory_of_a_flag_that_is_swapped_with_a_link_leads_nowhere() {
    in_namespaces(|world| {
        let (letters, project) = (world.home.join("letters"), world.home.join("project"));
        [&letters, &project, &project.join("build")].into_iter().for_each(|path| world.make_dir(path));
        let letter = world.write(letters.join("one"), "secret");
        symlink(&letters, project.join("link")).unwrap();
        world.write(project.join("go"), "");
        // renameat2 with RENAME_EXCHANGE.
        let swap = "import ctypes, os\nlibc = ctypes.CDLL(None)\nprint('ready', flush=True)\n\
            while os.path.exists('go'):\n\
            \x20   for _ in range(200): libc.renameat2(-100, b'build', -100, b'link', 2)\n";
        let swapping = world.sbx(["run", "--", PYTHON, "-c", swap]).cwd(&project).start();
        swapping.wait_for("ready");
        let script = "cat ~/letters/one; echo changed > ~/letters/one; ls -R ~";
        for flags in [["-p", "read-only", "--rw", "build"], ["-p", "workspace", "--ro", "build"]] {
            for _ in 0..40 {
                let out = shell(world, &[&["-q"][..], &flags].concat(), script).cwd(&project).run();
                assert!(!out.out().contains("secret"), "{out}");
            }
        }
        fs::remove_file(project.join("go")).unwrap();
        swapping.wait().success();
        assert_eq!(fs::read_to_string(letter).unwrap(), "secret");
    });
}

#[test]
fn workspaces_in_odd_places_work() {
    with_namespaces(|user| {
        let script = "echo made > made; cat made; ls -A; echo denied > .vscode/x";
        for place in ["/tmp", "/dev/shm", "/run", "/var/tmp"] {
            let mut world = World::new(user);
            let path = std::path::Path::new(place).join(sbx_tests::processes::marker());
            if fs::create_dir(&path).is_err() {
                continue;
            }
            if user.switch {
                std::os::unix::fs::chown(&path, Some(user.id), Some(user.id)).unwrap();
            }
            world.make_dir(&world.home.join(".vscode"));
            let workspace = std::mem::replace(&mut world.workspace, path.clone());
            let out = shell(&world, &["-q"], script).run();
            let left = names(&path);
            let text = world.read("made");
            world.workspace = workspace;
            fs::remove_dir_all(&path).unwrap();
            out.failed().prints("made\n.vscode\nmade\n");
            assert_eq!((left, text.as_deref()), (vec!["made".to_string()], Some("made\n")), "{place}");
        }
        let mut world = World::new(user);
        world.workspace = world.home.clone();
        let out = shell(
            &world,
            &["-q"],
            "cat .ssh/id_rsa; echo planted >> .bashrc; mkdir .bash_profile; echo x > x",
        )
        .run();
        assert!(!out.out().contains(sbx_tests::world::SECRET), "{out}");
        assert!(!world.exists(".bashrc") && !world.exists(".bash_profile"));
        let world = World::new(user);
        shell(&world, &["-q"], "touch x").no_env("HOME").run().success();
        let missing = world.outside.join("missing");
        shell(&world, &["-q"], "touch y").env("HOME", &missing).run().success();
        assert!(!missing.exists());
        assert_eq!(names(&world.workspace), ["x", "y"]);
        world.make_dir(&world.home.join(".vscode"));
        world.sbx(["run", "-q", "-p", "read-only", "--", "touch", ".gemini"]).run().failed();
        assert_eq!(names(&world.workspace), ["x", "y"]);
    });
}

/// A directory that is handed in would lead past all mounts: what cannot be told apart from one is refused.
#[test]
fn a_descriptor_that_cannot_be_looked_at_is_refused() {
    in_namespaces(|world| {
        for flags in [&[][..], &["--net", "private"]] {
            let run = || shell(world, flags, "echo ran");
            let out = run().answering(&[(libc::SYS_fstat, libc::EIO)]).run();
            out.refused(125, &["cannot pass descriptor 0 on", "it cannot be looked at"]).prints("");
            run().run().success().prints("ran\n");
        }
    });
}

/// Directories of processes come and go, whoever starts them.
#[test]
fn nothing_is_looked_for_where_the_kernel_makes_the_names() {
    in_namespaces(|world| {
        let starts = "for n in 1 2 3 4 5 6 7 8; do (sleep 0.3 &); done; sleep 0.1";
        world.bare(["sh", "-c", starts]).run().success();
        let out = world.sbx(["run", "--workspace", "/", "--", "sh", "-c", starts]).run().success();
        assert!(!out.err().contains("/proc") && !out.err().contains("/sys"), "{out}");
    });
}
