//! Placeholders keep names from being made: they stand in the workspace during a run, and never afterwards.

use super::git::plain;
use super::{names, shell, user_of, with_namespaces};
use sbx_tests::{User, World, need, processes};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// An empty workspace, and readers of files that could be made. Under a umask that removes all bits, the cache
/// directory could not be inspected, and the files in it would be treated as existing.
fn stage(user: &User) -> World {
    user_of(user, &[".claude", ".config/zed", ".roo", ".cache"])
}

/// Runs a test in such a workspace, for each user who can have namespaces.
fn staged(body: impl Fn(&World)) {
    with_namespaces(|user| body(&stage(user)));
}

const MADE: &[&str] = &[".claude", ".roo", ".zed", "kept"];
const FLAGS: &[&str] = &["-q", "--deny", "kept/away"];

#[track_caller]
fn none_left(world: &World) {
    for _ in 0..500 {
        if names(&world.workspace).is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("left behind: {:?}", names(&world.workspace));
}

/// Tries to make each of them.
const MAKE: &str = "for n in .claude .roo .zed kept; do mkdir -p $n/x; touch $n; ln -s / $n; rmdir $n; \
                    rm -rf $n; mv $n other; chmod 777 $n; echo x > $n/y; done 2>/dev/null; ls -A";

#[test]
fn placeholders_come_and_go_with_the_run() {
    with_namespaces(|user| {
        for umask in ["022", "077", "000", "777"] {
            let world = stage(user);
            let running = world.bare(["sh", "-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
            let script = "echo ready; sleep 0.3; umask";
            let running = running
                .arg(sbx_tests::stage::sbx())
                .args(["run"])
                .args(FLAGS)
                .args(["--", "sh", "-c", script]);
            let running = running.start();
            running.wait_for("ready");
            let there = names(&world.workspace);
            assert!(MADE.iter().all(|name| there.iter().any(|n| n == name)), "{umask}: {there:?}");
            running.wait().success().prints(&format!("ready\n0{umask}\n"));
            none_left(&world);
            shell(&world, FLAGS, MAKE).run().success().prints(".claude\n.roo\n.zed\nkept\n");
            none_left(&world);
        }
    });
}

#[test]
fn killed_runs_leave_no_placeholders() {
    staged(|world| {
        let running = shell(world, FLAGS, "echo ready; sleep 100").start();
        running.wait_for("ready");
        running.signal(libc::SIGKILL);
        running.wait().died_of(libc::SIGKILL);
        none_left(world);
        // Kills supervisor and first process at once: the next run cleans up.
        let marker = processes::marker();
        let running = shell(world, FLAGS, &format!("echo ready; sleep 100; : {marker}")).start();
        running.wait_for("ready");
        running.kill_with_children();
        processes::none_left(&marker);
        shell(world, FLAGS, MAKE).run().success();
        none_left(world);
    });
}

/// Several runs use the same names, and one ends first.
#[test]
fn the_last_run_removes_the_placeholders() {
    staged(|world| {
        let script = format!("echo ready; until [ -e go ]; do sleep 0.02; done; {MAKE}");
        let first = shell(world, FLAGS, &script).start();
        first.wait_for("ready");
        shell(world, FLAGS, "true").run().success();
        let killed = shell(world, FLAGS, "echo ready; sleep 100").start();
        killed.wait_for("ready");
        killed.signal(libc::SIGKILL);
        killed.wait().died_of(libc::SIGKILL);
        std::thread::sleep(Duration::from_millis(200));
        world.write("go", "");
        first.wait().success().prints("ready\n.claude\n.roo\n.zed\ngo\nkept\n");
        fs::remove_file(world.path("go")).unwrap();
        none_left(world);
        // The later run depends on them as much.
        let first = shell(world, FLAGS, "echo ready; until [ -e end ]; do sleep 0.02; done").start();
        first.wait_for("ready");
        let second = shell(world, FLAGS, &script).start();
        second.wait_for("ready");
        world.write("end", "");
        first.wait().success();
        fs::remove_file(world.path("end")).unwrap();
        world.write("go", "");
        second.wait().success().prints("ready\n.claude\n.roo\n.zed\ngo\nkept\n");
        fs::remove_file(world.path("go")).unwrap();
        none_left(world);
    });
}

/// No file of somebody else's is taken for a placeholder.
#[test]
fn other_files_stay() {
    with_namespaces(|user| {
        let world = stage(user);
        world.make_dir(&world.path(".zed"));
        world.write(".claude/mine", "mine\n");
        world.write(".roo", "");
        fs::set_permissions(world.path(".zed"), fs::Permissions::from_mode(0o555)).unwrap();
        shell(&world, FLAGS, MAKE).run().success();
        assert_eq!(names(&world.workspace), [".claude", ".roo", ".zed"]);
        assert_eq!(world.read(".claude/mine").unwrap(), "mine\n");
        fs::set_permissions(world.path(".zed"), fs::Permissions::from_mode(0o755)).unwrap();
        // A placeholder that somebody has written to belongs to them.
        let other = stage(user);
        let inside = "echo ready; until [ -e go ]; do sleep 0.02; done; cat .zed/mine; echo x > .zed/mine; echo x > .zed/x";
        let running = shell(&other, FLAGS, inside).start();
        running.wait_for("ready");
        // As git does that changes to a branch with such a file, or an editor.
        plain(&other, "mkdir -p .zed; echo mine > .zed/mine");
        other.write("go", "");
        let out = running.wait().failed().prints("ready\nmine\n");
        assert!(!out.err().contains("could not be removed"), "{out}");
        assert_eq!(names(&other.path(".zed")), ["mine"]);
        assert_eq!(names(&other.workspace), [".zed", "go"]);
        assert_eq!(other.read(".zed/mine").unwrap(), "mine\n");
        assert_eq!(fs::metadata(other.path(".zed")).unwrap().permissions().mode() & 0o7777, 0o755);
    });
}

#[test]
fn a_run_that_does_not_start_leaves_no_placeholders() {
    staged(|world| {
        world.sbx(["run"]).args(FLAGS).args(["--", "./nothing-there"]).run().refused(127, &[]);
        world.script("broken", "#!/nowhere/at/all\n");
        world.sbx(["run"]).args(FLAGS).args(["--", "./broken"]).run().failed();
        world.sbx(["run"]).args(FLAGS).args(["--max-memory", "1k", "--", "true"]).run();
        fs::remove_file(world.path("broken")).unwrap();
        none_left(world);
    });
}

/// Many runs at a time.
#[test]
fn many_runs_share_a_workspace() {
    staged(|world| {
        // Some are killed, at any moment of their life.
        for round in 0..4 {
            let pauses = (0..8).map(|number| number * 12 + round * 3);
            let killed = pauses.map(|pause| {
                let run = shell(world, FLAGS, "sleep 100").start();
                std::thread::sleep(Duration::from_millis(pause));
                run.signal(libc::SIGKILL);
                run
            });
            let killed: Vec<_> = killed.collect();
            let runs: Vec<_> = (0..12).map(|_| shell(world, FLAGS, MAKE).start()).collect();
            for run in runs {
                run.wait().success().prints(".claude\n.roo\n.zed\nkept\n");
            }
            killed.into_iter().for_each(|run| drop(run.wait().died_of(libc::SIGKILL)));
        }
        // The next run removes what two kills at once have left.
        shell(world, FLAGS, "true").run().success();
        none_left(world);
    });
}

/// For example a repository that a container gets for reading.
#[test]
fn a_read_only_workspace_needs_no_placeholders() {
    need!("unshare", "mount");
    with_namespaces(|user| {
        let world = stage(user);
        let sbx = sbx_tests::stage::sbx().display().to_string();
        let run = "\"$1\" run -- sh -c 'ls -A; mkdir .zed' 2>&1";
        let script = format!("mount --bind . . && mount -o remount,ro,bind . && cd \"$PWD\" && {run}");
        let out = world.bare([&user.unshare(&[])[..], &["sh", "-c", &script, "sh", &sbx]].concat()).run();
        let out = out.exited(1);
        assert!(out.out().starts_with("mkdir: ") && out.out().contains("Read-only file system"), "{out}");
        let out = world.bare(["sh", "-c", run, "sh", &sbx]).run().exited(1);
        assert!(out.out().starts_with(".claude\n.roo\n.zed\n"), "{out}");
        none_left(&world);
    });
}

/// git refuses a repository whose `commondir` is empty.
#[test]
fn no_repository_is_broken_by_half_a_placeholder() {
    need!("git");
    staged(|world| {
        let git = |words: &[&str]| world.bare([&["git"], words].concat()).run();
        git(&["init", "-q"]).success();
        let common = world.path(".git/commondir");
        world.write(".git/commondir", "");
        git(&["status"]).failed();
        fs::remove_file(&common).unwrap();
        // A program that looks meanwhile sees no placeholder or a whole one.
        let done = std::sync::atomic::AtomicBool::new(false);
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        let seen: std::collections::BTreeSet<_> = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut seen = std::collections::BTreeSet::new();
                while !done.load(relaxed) {
                    seen.insert(fs::read_to_string(&common).ok());
                }
                seen
            });
            for _ in 0..30 {
                shell(world, &[], "true").run().success();
            }
            done.store(true, relaxed);
            watcher.join().unwrap()
        });
        assert_eq!(seen, [None, Some("./\n".to_string())].into());
    });
}

/// Started with an empty environment, for example by a service; the user who reads them afterwards has a home.
#[test]
fn placeholders_are_made_where_their_readers_are_unknown() {
    with_namespaces(|user| {
        let world = World::new(user);
        let script = "mkdir .claude; echo planted > .roo; echo fine > file; cat .roo file";
        // Here it is known that nobody reads them.
        shell(&world, &[], script).run().success().prints("planted\nfine\n");
        let world = World::new(user);
        let run = |home: Option<&str>| {
            let cmd = shell(&world, &["--workspace", "."], script);
            match home {
                Some(home) => cmd.env("HOME", home).run(),
                None => cmd.no_env("HOME").run(),
            }
        };
        for home in [None, Some(""), Some("nowhere")] {
            run(home).failed().prints("fine\n");
            assert_eq!(names(&world.workspace), ["file"], "{home:?}");
        }
    });
}

/// A directory in its place would be an error in every repository.
#[test]
fn git_goes_on_beside_a_file_that_its_settings_name_and_that_is_missing() {
    need!("git");
    with_namespaces(|user| {
        let world = World::new(user);
        let settings = format!("[include]\n\tpath = {}\n", world.path("local").display());
        world.write_at_home(".gitconfig", &settings);
        let status = |world: &World| world.bare(["git", "status", "-s"]).run().success();
        world.bare(["git", "init", "-q"]).run().success();
        let run = shell(&world, &[], "echo ready; git status -s; ! echo '[alias] x = !y' > local; sleep 60")
            .start();
        run.wait_for("ready");
        status(&world);
        run.signal(libc::SIGTERM);
        let out = run.wait();
        assert!(out.err().contains("blocked openat") && !out.err().contains("fatal"), "{out}");
        assert!(!world.exists("local"));
        status(&world);
    });
}
