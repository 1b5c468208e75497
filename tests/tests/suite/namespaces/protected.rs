//! Denied and protected files below a directory that may be changed: every way to reach them that we know.

use super::{PYTHON, REFUSING, shell, with_namespaces};
use sbx_tests::tree::{Tree, differences, snapshot};
use sbx_tests::world::SECRET;
use sbx_tests::{Cmd, Output, User, World, as_users, kernel, need, promise};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

const ATTEMPTS: &str = include_str!("../../../subjects/protected.py");

/// Denied: a directory, a file, the target of a link, a file that does not exist, and one whose directory does not.
const DENY: &[&str] = &["private", "secret", "alias", "later/made", "never/was/here"];
const DENIED: &[&str] = &["private", "private/inside", "secret", "hidden/inside"];
/// Nothing exists there, and nothing can be made there.
const ABSENT: &[&str] = &["later/made", "later/made/inside", "never", "never/was/here"];
/// Protected: files that exist, and some that do not, although something outside would read them.
const PROTECTED: &[&str] = &[
    ".git/config",
    ".git/hooks",
    ".git/hooks/inside",
    ".git/hooks/pre-commit",
    ".git/commondir",
    ".vscode",
    ".vscode/inside",
    ".mcp.json",
    ".cursor",
];

/// A workspace with all of them; anybody may change `free` and `twin`.
fn stage(user: &User) -> World {
    let world = World::new(user);
    for directory in [".vscode", ".cursor", ".claude", ".config/direnv"] {
        world.make_dir(&world.home.join(directory));
    }
    for name in ["private/inside", "hidden/inside", "secret"] {
        world.write(name, format!("{SECRET}\n"));
    }
    for name in [".vscode/inside", ".git/hooks/inside", "twin/file", "later/other", ".mcp.json"] {
        world.write(name, "as it was\n");
    }
    world.write(".git/config", "[core]\n\tbare = false\n");
    for name in ["free", "twin-new", "twin-other"] {
        world.make_dir(&world.path(name));
    }
    symlink("hidden/inside", world.path("alias")).unwrap();
    world.write("attempts.py", ATTEMPTS);
    world
}

/// Runs a test in such a workspace, for each user who can have namespaces.
pub fn staged(body: impl Fn(&World)) {
    with_namespaces(|user| body(&stage(user)));
}

fn denying(world: &World, flags: &[&str]) -> Cmd {
    let held_by_mounts = !flags.contains(&"none");
    let denied =
        DENY.iter().filter(|path| held_by_mounts || world.exists(path)).flat_map(|path| ["--deny", path]);
    world.sbx(["run", "-q"]).args(denied).args(flags).args(["--", PYTHON, "attempts.py"])
}

/// The attempts that the kernel allowed.
fn done(out: &Output) -> Vec<(String, String)> {
    let text = out.out();
    let lines = text.lines().filter_map(|line| line.strip_suffix("\tdone"));
    lines.filter_map(|line| line.split_once('\t')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

/// The changes in a workspace, except of files that anybody may change and those that Python leaves.
pub fn changes(world: &World, before: &Tree) -> Vec<String> {
    let after = snapshot(&world.workspace);
    let ours = |path: &str| !path.starts_with("free") && !path.starts_with("twin");
    let all = differences(before, &after).into_iter();
    all.map(|(path, was, is)| format!("{}: {was:?} -> {is:?}", path.display()))
        .filter(|line| ours(line))
        .collect()
}

/// Runs all attempts on all of these and requires that they had no effect.
#[track_caller]
fn none_succeeds(world: &World, targets: &[&str], run: Cmd, harmless: &[&str]) {
    let before = snapshot(&world.workspace);
    let out = run.args(targets).run().success();
    let known = |attempt: &str| harmless.contains(&attempt);
    let succeeded: Vec<_> = done(&out).into_iter().filter(|(_, attempt)| !known(attempt)).collect();
    assert!(succeeded.is_empty(), "{succeeded:?}");
    assert!(out.out().lines().count() > targets.len() * 25, "{out}");
    assert!(!out.out().contains(SECRET), "{out}");
    let changes = changes(world, &before);
    assert!(changes.is_empty(), "{changes:#?}");
}

/// Protected files may be read; a process may read its own memory maps and make directories of its own.
const READING: &[&str] = &["list", "enter", "read-inside", "copy"];

#[test]
fn denied_files_are_out_of_reach() {
    staged(|world| {
        // Entering a directory where nothing is visible reveals nothing.
        none_succeeds(world, DENIED, denying(world, &[]), &[]);
        none_succeeds(world, ABSENT, denying(world, &[]), &["enter", "list"]);
        let alias = fs::read_link(world.path("alias")).unwrap();
        // A link is denied with what it leads to, and its name comes to mean nothing else.
        let out = shell(
            world,
            &["-q", "--deny", "alias"],
            "cat alias hidden/inside; ln -sf twin/file alias; cat alias",
        );
        out.run().failed().prints("");
        assert_eq!(fs::read_link(world.path("alias")).unwrap(), alias);
    });
}

/// The directory that blocks creation of a name has this mode, and is empty.
#[test]
fn a_denied_directory_is_not_recognised_by_its_mode() {
    staged(|world| {
        for mode in ["1755", "1555", "1111", "1000", "1444"] {
            shell(world, &["-q"], "mkdir held; echo held > held/file").run().success();
            // An earlier command.
            shell(world, &["-q"], &format!("chmod {mode} held")).run().success();
            let out = shell(
                world,
                &["-q", "--deny", "held"],
                "cat held/file; ls held; chmod 755 held; cat held/file; cat twin/file",
            );
            out.run().prints("as it was\n");
            shell(world, &["-q"], "chmod 755 held; cat held/file; rm -r held")
                .run()
                .success()
                .prints("held\n");
        }
    });
}

#[test]
fn denied_files_are_out_of_reach_without_namespaces() {
    as_users(|user| {
        promise!(kernel::PATHS);
        for take_away in [|run: Cmd| run, |run: Cmd| run.docker(), |run: Cmd| run.answering(REFUSING)] {
            let world = stage(user);
            let flags: &[&str] = &["--namespaces", "none"];
            // Landlock lets everybody list directories and enter them.
            none_succeeds(&world, DENIED, take_away(denying(&world, flags)), &["enter"]);
            let absent = world.sbx(["run", "--namespaces", "none", "--deny", "later/made", "--", "true"]);
            take_away(absent).run().refused(125, &["later/made"]);
        }
    });
}

#[test]
fn protected_files_cannot_be_changed_replaced_or_made() {
    staged(|world| {
        let before = snapshot(&world.workspace);
        let out = denying(world, &[]).args(PROTECTED).run().success();
        let reads = |attempt: &str| attempt.starts_with("read") || READING.contains(&attempt);
        let succeeded: Vec<_> = done(&out).into_iter().filter(|(_, attempt)| !reads(attempt)).collect();
        assert!(succeeded.is_empty(), "{succeeded:?}");
        let changes = changes(world, &before);
        assert!(changes.is_empty(), "{changes:#?}");
        // They can be read, as ever.
        for name in [".git/config", ".vscode/inside", ".mcp.json"] {
            let read = |(target, attempt): &(String, String)| target == name && attempt == "read";
            assert!(done(&out).iter().any(read), "{name}: {out}");
        }
    });
}

/// The same attempts on files that are neither denied nor protected: they work.
#[test]
fn the_attempts_succeed_on_other_files() {
    let expected = [
        "read",
        "read-dot-dot",
        "read-proc-self-root",
        "read-proc-self-cwd",
        "read-symlink",
        "read-through_descriptor",
        "read-through_parent",
        "read-through_socket",
        "read-link",
        "chmod",
        "times",
        "write",
        "truncate",
        "write-proc-self-root",
        "write-through_descriptor",
        "rename-over",
        "exchange",
        "rename-away",
        "rename-parent",
    ];
    as_users(|user| {
        let world = stage(user);
        let out =
            denying(&world, &[]).args(["twin/file", "twin-new/new", "twin-other/other/new"]).run().success();
        let done = done(&out);
        for attempt in expected {
            assert!(done.iter().any(|(_, name)| name == attempt), "{attempt}: {out}");
        }
        let made =
            |name: &str| done.iter().any(|(target, attempt)| target == "twin-new/new" && attempt == name);
        assert!(["create", "make-directory", "symlink-over"].into_iter().any(made), "{out}");
    });
}

/// What cannot be protected without namespaces is reported, by its name.
#[test]
fn missing_protection_is_reported() {
    as_users(|user| {
        let world = stage(user);
        let out = shell(&world, &["--namespaces", "none"], "echo planted >> .vscode/inside").run().success();
        assert!(out.err().contains("has no namespaces"), "{out}");
        assert_eq!(world.read(".vscode/inside").unwrap(), "as it was\nplanted\n");
        let out = shell(&world, &[], "echo planted >> .vscode/inside; exit 0").docker().run().success();
        assert!(out.err().contains("has no namespaces"), "{out}");
        let out = shell(&world, &[], "true").answering(REFUSING).run().success();
        if !user.is_root() || out.err().contains("has no namespaces") {
            assert!(out.err().contains("warning: "), "{out}");
        }
        shell(&world, &["--require", "full"], "true").docker().run().refused(125, &["namespaces"]);
        world.sbx(["run", "--namespaces", "none", "--require", "full", "--", "true"]).run().refused(125, &[]);
    });
}

/// The supervisor renews mounts that somebody outside has removed: if it could not see the mounts, it would do so for
/// ever.
#[test]
fn no_run_hangs_where_mounts_cannot_be_seen() {
    staged(|world| {
        let run =
            |words: &[&str]| world.sbx([&["run"], words, &["--", "/bin/sh", "-c", "echo ran"]].concat());
        let out = run(&[]).answering(&[(libc::SYS_statx, libc::EPERM)]).run().success().prints("ran\n");
        assert!(out.err().contains("has no namespaces") && out.err().contains("statx"), "{out}");
        let refused = run(&["--require", "full"]).answering(&[(libc::SYS_statx, libc::EPERM)]).run();
        refused.refused(125, &["statx"]);
        let out = run(&[]).run().success().prints("ran\n");
        assert!(!out.err().contains("has no namespaces"), "{out}");
    });
}

#[test]
fn git_notices_nothing() {
    need!("git");
    staged(|world| {
        world.bare(["rm", "-rf", ".git", "alias"]).run().success();
        let git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"];
        for words in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "all"]] {
            world.bare([&git[..], words].concat()).run().success();
        }
        let clean = || world.bare(["git", "status", "--porcelain", "--ignored"]).run().success().prints("");
        clean();
        let out = shell(world, &["--deny", "private", "--deny", "none/yet"], "git status --porcelain").run();
        // Inside, denied files seem to be deleted.
        let shown = out.success().out();
        assert!(shown.lines().all(|line| line.contains("private")), "{shown}");
        clean();
    });
}

/// A protected or denied file, or a directory, is handed over open.
#[test]
fn descriptors_of_protected_or_denied_files_are_refused() {
    staged(|world| {
        let open = |name: &str| fs::File::open(world.path(name)).unwrap().into();
        let pass = |name: &str, number: &str, as_number: i32| {
            let words =
                ["run", "-q", "--deny", "secret", "--deny", "private", "--pass-fd", number, "--", "true"];
            world.sbx(words).pass_fd(open(name), as_number).run()
        };
        for name in
            [".git/config", ".vscode/inside", ".mcp.json", "secret", "private/inside", "free", ".git/hooks"]
        {
            pass(name, "7", 7).refused(125, &["descriptor 7"]);
        }
        pass("twin/file", "7", 7).success();
        let stdin = |name: &str| {
            world.sbx(["run", "-q", "--deny", "secret", "--", "cat"]).pass_fd(open(name), 0).run()
        };
        stdin("secret").refused(125, &["descriptor 0"]);
        stdin("twin/file").success().prints("as it was\n");
        // A file elsewhere that is passed for reading cannot be written.
        let outside = world.write(world.outside.join("lent"), "lent\n");
        let file = fs::File::open(&outside).unwrap().into();
        let script = "echo planted > /proc/self/fd/0; echo planted > /dev/stdin; cat";
        shell(world, &["-q"], script).pass_fd(file, 0).run().success().prints("lent\n");
        assert_eq!(fs::read_to_string(outside).unwrap(), "lent\n");
    });
}

/// A protected name that is a link: neither it nor its target can be changed.
#[test]
fn protected_links_stay_what_they_are() {
    staged(|world| {
        world.write("tools.json", "as it was\n");
        world.make_dir(&world.home.join(".gemini"));
        world.make_dir(&world.path("editor/inside"));
        fs::remove_file(world.path(".mcp.json")).unwrap();
        symlink("tools.json", world.path(".mcp.json")).unwrap();
        symlink("editor", world.path(".gemini")).unwrap();
        symlink(world.outside.join("kept"), world.path(".envrc")).unwrap();
        let before = snapshot(&world.workspace);
        let script = "for n in .mcp.json .gemini .envrc tools.json editor; do echo x >> $n; echo x > $n; mkdir $n; \
            ln -sfn twin/file $n; mv -T $n was; mv -T twin/file $n; rm -rf $n; touch $n/x; chmod 777 $n; done 2>/dev/null; cat .mcp.json";
        shell(world, &["-q"], script).run().success().prints("as it was\n");
        let changed = changes(world, &before);
        assert!(changed.is_empty(), "{changed:#?}");
        assert_eq!(fs::read_to_string(world.outside.join("kept")).unwrap(), "outside\n");
    });
}

/// Two runs in the same place: one hands the other a descriptor that it has open.
#[test]
fn another_run_cannot_hand_over_more_than_it_has() {
    staged(|world| {
        world.write(
            "giver.py",
            "import os, socket\n\
             s = socket.socket(socket.AF_UNIX); s.bind('free/s'); s.listen(); print('ready', flush=True)\n\
             c, _ = s.accept()\n\
             socket.send_fds(c, [b'x'], [os.open('.', os.O_PATH), os.open('.git/config', os.O_RDONLY), \
             os.open('.vscode', os.O_RDONLY)])\n\
             c.recv(1)\n",
        );
        world.write(
            "taker.py",
            "import os, socket\ns = socket.socket(socket.AF_UNIX); s.connect('free/s')\n\
             _, f, _, _ = socket.recv_fds(s, 9, 3)\ndef attempt(what):\n  try: what(); print('done')\n  \
             except OSError: print('refused')\nw = os.O_WRONLY | os.O_CREAT\n\
             attempt(lambda: os.open('.git/config', w, dir_fd=f[0]))\n\
             attempt(lambda: os.open('.cursor/x', w, dir_fd=f[0]))\n\
             attempt(lambda: os.rename('.vscode', 'was', src_dir_fd=f[0], dst_dir_fd=f[0]))\n\
             attempt(lambda: os.open(f'/proc/self/fd/{f[1]}', os.O_RDWR))\n\
             attempt(lambda: os.open('x', w, dir_fd=f[2]))\nattempt(lambda: os.mkdir('.cursor/y', dir_fd=f[0]))\n\
             attempt(lambda: os.open('free/handed', w, dir_fd=f[0]))\n",
        );
        let before = snapshot(&world.workspace);
        let giver = world.sbx(["run", "-q", "--", PYTHON, "giver.py"]).start();
        giver.wait_for("ready");
        let taker = world.sbx(["run", "-q", "--", PYTHON, "taker.py"]).run().success();
        taker.prints(&("refused\n".repeat(6) + "done\n"));
        giver.wait();
        let changed = changes(world, &before);
        assert!(changed.is_empty(), "{changed:#?}");
    });
}

/// An editor outside replaces a file: the mount goes with the old file, and is made again.
#[test]
fn files_replaced_from_outside_stay_protected() {
    staged(|world| {
        let script = "echo ready; until [ -e go ]; do sleep 0.02; done; cat secret; echo x >> .git/config; echo x > .cursor/x; \
            mkdir .cursor/y; rm -rf secret .mcp.json .git/config; cat twin/file";
        let running = shell(world, &["-q", "--deny", "secret"], script).start();
        running.wait_for("ready");
        for name in ["secret", ".git/config", ".mcp.json", "twin/file"] {
            let new = world.write("new", format!("{SECRET}\n"));
            fs::rename(new, world.path(name)).unwrap();
        }
        // A process that waits for this moment may be faster; an ordinary command is not.
        std::thread::sleep(Duration::from_millis(500));
        let before = snapshot(&world.workspace);
        world.write("go", "");
        running.wait().success().prints(&format!("ready\n{SECRET}\n"));
        fs::remove_file(world.path("go")).unwrap();
        let changed: Vec<String> = changes(world, &before);
        // The placeholders existed before, and are gone now.
        assert!(changed.iter().all(|line| line.ends_with("-> None")), "{changed:#?}");
        for name in ["secret", ".git/config", ".mcp.json"] {
            assert!(world.exists(name), "{name}");
        }
    });
}

/// A mount goes with its file; whoever makes a new one of that name later, has made a protected one.
#[test]
fn files_removed_and_made_again_from_outside_are_protected() {
    staged(|world| {
        world.write("conf/real", "old\n");
        symlink("conf/real", world.path("link")).unwrap();
        world.write("deep/er/denied", "old\n");
        let script = "echo ready; until [ -e go ]; do sleep 0.02; done; cat secret link deep/er/denied; \
            for f in secret link deep/er/denied .git/config .mcp.json; do echo x >> $f; done; echo over";
        let flags = ["-q", "--deny", "secret", "--deny", "link", "--deny", "deep/er/denied"];
        let running = shell(world, &flags, script).start();
        running.wait_for("ready");
        let pause = || std::thread::sleep(Duration::from_millis(300));
        let names = ["secret", "link", "deep/er/denied", ".git/config", ".mcp.json"];
        for name in names {
            fs::remove_file(world.path(name)).unwrap();
        }
        fs::remove_dir_all(world.path("deep")).unwrap();
        pause();
        for name in names {
            world.write(name, format!("{SECRET}\n"));
            pause();
        }
        world.write("go", "");
        running.wait().success().prints("ready\nover\n");
        for name in names {
            assert_eq!(world.read(name).unwrap(), format!("{SECRET}\n"), "{name}");
        }
    });
}

/// What is denied by way of links stays so in the next run, whatever the command has put in their place.
#[test]
fn links_on_the_way_to_what_is_denied_are_not_replaced() {
    staged(|world| {
        world.write("s1", format!("{SECRET}\n"));
        for (target, link) in [("s1", "mid"), ("mid", "l2")] {
            symlink(target, world.path(link)).unwrap();
        }
        for script in ["rm mid; ln -s twin/file mid", "mv mid was; cat s1", "cat s1 mid l2"] {
            let out = shell(world, &["-q", "--deny", "l2"], script).run();
            assert!(!out.out().contains(SECRET), "{out}");
        }
        assert_eq!(fs::read_link(world.path("mid")).unwrap().to_str(), Some("s1"));
        symlink("twin", world.path("way")).unwrap();
        shell(world, &["--deny", "way/file"], "true")
            .run()
            .success()
            .says("is a symbolic link, which the command");
    });
}
