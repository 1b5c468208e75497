//! Names: links that a run does not see, what cannot be removed or renamed, and terminals.

use super::{ALLOWED, REFUSED, why};
use crate::namespaces::with_namespaces;
use sbx_tests::{World, need, stage};
use std::fs;
use std::os::unix::fs::symlink;

const KEEPS_ITS_NAME: &str = "it may be changed, but not removed, replaced or renamed";

/// The flags that an answer advises.
fn advice(answer: &str) -> Vec<String> {
    let flags = answer.lines().find_map(|line| line.trim().strip_prefix("allow it with ")).expect(answer);
    flags.split(" (").next().unwrap().split(' ').map(str::to_string).collect()
}

#[test]
fn a_link_that_is_out_of_sight_leads_nowhere() {
    with_namespaces(|user| {
        let world = World::new(user);
        world.make_dir(&world.home.join("env/bin"));
        world.write("file", "text\n");
        world.write_at_home("letters/one", "text\n");
        symlink("/bin/sh", world.home.join("env/bin/tool")).unwrap();
        symlink(&world.workspace, world.home.join("work")).unwrap();
        symlink("letters/one", world.home.join("letter")).unwrap();
        symlink("letters", world.home.join("post")).unwrap();
        let (read, write, execute) = ("cat \"$0\"", "echo x >> \"$0\"", "\"$0\" -c true");
        for (name, op, line) in [
            ("env/bin/tool", "x", execute),
            ("work/file", "r", read),
            ("work/file", "rw", write),
            ("work/new", "w", write),
            ("letter", "r", read),
            ("post/one", "r", read),
        ] {
            let path = world.home.join(name).display().to_string();
            let run = |flags: &[String]| {
                world.sbx(["run", "-q"]).args(flags).args(["--", "sh", "-c", line, &path]).run()
            };
            let ask = |flags: &[String]| {
                let flags = flags.iter().map(String::as_str);
                why(&world, &flags.chain(["--path", &*path, "--op", op]).collect::<Vec<_>>())
            };
            run(&[]).failed();
            let answer = ask(&[]).exited(REFUSED).out();
            assert!(answer.contains(&format!("{path}, which is out of sight")), "{answer}");
            assert!(answer.contains("the symbolic link "), "{answer}");
            // The command of a run is there.
            assert_eq!(answer.contains("the command of the run itself"), op == "x", "{answer}");
            let flags = advice(&answer);
            run(&flags).success();
            ask(&flags).exited(ALLOWED);
            // What that run has left in its home is not there in the next one.
            ask(&[]).exited(REFUSED);
        }
        world.sbx(["run", "--"]).arg(world.home.join("env/bin/tool")).args(["-c", "true"]).run().success();
    });
}

/// What is in directories of PATH, and what links in them lead to; and settings, of which a run has copies.
#[test]
fn a_link_that_a_run_sees_leads_where_it_does() {
    with_namespaces(|user| {
        let world = World::new(user);
        let home = world.home.display();
        world.script(world.home.join("opt/tool"), "#!/bin/sh\necho ran\n");
        world.make_dir(&world.home.join("bin"));
        symlink("../opt/tool", world.home.join("bin/tool")).unwrap();
        let path = format!("{home}/bin:/usr/bin:/bin");
        for name in ["bin/tool", "opt/tool"] {
            let tool = format!("{home}/{name}");
            let sbx = |words: &[&str]| world.sbx(words).arg(&tool).env("PATH", &path).run();
            sbx(&["run", "--", "sh", "-c", "\"$0\""]).success().prints("ran\n");
            sbx(&["why", "--op", "x"]).exited(ALLOWED);
        }
        world.write_at_home("dots/npmrc", "fund=false\n");
        fs::remove_file(world.home.join(".npmrc")).unwrap();
        symlink("dots/npmrc", world.home.join(".npmrc")).unwrap();
        let [link, file] = [".npmrc", "dots/npmrc"].map(|name| format!("{home}/{name}"));
        world.sbx(["run", "--", "cat", &link]).run().success().prints("fund=false\n");
        assert!(why(&world, &[&link]).exited(ALLOWED).out().contains("a copy of yours"));
        world.sbx(["run", "--", "cat", &file]).run().failed();
        why(&world, &[&file]).exited(REFUSED);
    });
}

#[test]
fn what_keeps_its_name_is_told_so() {
    need!("git");
    with_namespaces(|user| {
        let world = World::new(user);
        let home = world.home.display().to_string();
        let ask = |words: &[&str]| why(&world, &[&["--path", "."], words].concat());
        let rename = "may not remove, replace or rename";
        world.bare(["git", "init", "-q", "."]).run().success();
        // Wherever its name may be changed, it is held in its place: no flag helps.
        let answer = ask(&["--op", "rwd"]).exited(REFUSED).out();
        assert!(answer.contains(rename) && answer.contains(KEEPS_ITS_NAME), "{answer}");
        assert!(!answer.contains("allow it with"), "{answer}");
        let answer = ask(&["--op", "rwd", "--rw", &home]).exited(REFUSED).out();
        assert!(answer.contains("protects what is in") && answer.contains(KEEPS_ITS_NAME), "{answer}");
        ask(&["--op", "rw", "--rw", &home]).exited(ALLOWED);
        let moved = format!("{home}/moved");
        let moves = |flags: &[String]| {
            let run = world.sbx(["run", "-q"]).args(flags).args(["--", "mv"]);
            run.arg(&world.workspace).arg(&moved).run()
        };
        moves(&["--rw".to_string(), home.clone()]).failed();
        fs::remove_dir_all(world.path(".git")).unwrap();
        let answer = ask(&["--op", "rwd"]).exited(REFUSED).out();
        assert!(answer.contains(rename), "{answer}");
        moves(&[]).failed();
        moves(&advice(&answer)).success();
    });
}

/// The caller's terminal keeps its name where a run has terminals of its own.
#[test]
fn the_callers_terminal_is_written_to_and_no_more() {
    need!("tty");
    with_namespaces(|user| {
        let world = World::new(user);
        let inside = "(: <> \"$0\") && echo has-opened; \
                      chmod 600 \"$0\" || echo mode-kept; rm -f \"$0\" || echo stayed";
        let script = "T=$(tty); test -r \"$T\" && test -w \"$T\" && echo may-open; \
                      for op in rw d; do \"$0\" why --path \"$T\" --op $op; echo \"$op: $?\"; done; \
                      \"$0\" run -q -- sh -c \"$1\" \"$T\"; echo all-told; read -r line";
        let sh = world.bare(["sh", "-c", script]).arg(stage::sbx()).arg(inside);
        let (running, terminal) = sh.start_on_terminal();
        running.wait_for("all-told");
        let told = running.so_far();
        terminal.types("\r");
        running.wait();
        let words = ["rw: 0", "d: 1", "its mode, owner and times may not be changed", "mode-kept", "stayed"];
        assert!(words.iter().all(|word| told.contains(word)), "{told}");
        // Permissions may close a terminal that the tests have opened as another user.
        assert_eq!(told.contains("has-opened"), told.contains("may-open"), "{told}");
    });
}
