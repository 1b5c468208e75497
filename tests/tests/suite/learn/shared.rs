//! What a run without namespaces of its own has in common with other programs of the user.

use super::attackers::{extended, has, run};
use super::reviews::review;
use sbx_tests::{World, in_worlds, kernel, need, promise};
use serde_json::{Value, json};

/// A program of the user's that prints `at NAME now`, and then what becomes of it; with the name.
fn other(world: &World, script: &str) -> (sbx_tests::command::Running, String) {
    let running = world.bare(["python3", "-c", script]).start();
    running.wait_for(" now");
    let told = running.so_far();
    let name = told.split_once("at ").unwrap().1.split_once(" now").unwrap().0.to_string();
    (running, name)
}

/// A profile without namespaces of its own, and the same with them, each with whether a run has something in common.
fn without_and_with(base: &str, added: &Value) -> [(Value, bool); 2] {
    let with = extended(base, added);
    let mut without = with.clone();
    without["namespaces"] = json!("none");
    [(without, true), (with, !kernel::gives_namespaces())]
}

#[test]
fn the_users_other_terminals_are_told_where_a_run_has_them() {
    promise!(kernel::PATHS);
    need!("python3");
    in_worlds(|world| {
        let script = "import os\nm, s = os.openpty()\nos.write(m, b'typed there\\n')\n\
            print('at', os.ttyname(s), 'now', flush=True)\ndata = b''\n\
            while b'end' not in data: data += os.read(m, 99)\nprint('shown' if b'written' in data else 'not')\n";
        for (profile, has_them) in without_and_with("workspace", &json!({})) {
            let reviewed = review(world, &profile);
            assert_eq!(has(&reviewed, "terminals", "/dev/pts"), has_them, "{reviewed:#}");
            let (running, terminal) = other(world, script);
            let out = run(world, &["sh", "-c", &format!("head -n 1 {terminal}; echo written > {terminal}")]);
            assert_eq!(out.out().contains("typed there"), has_them, "{out}");
            world.bare(["sh", "-c", &format!("echo end > {terminal}")]).run().success();
            let told = running.wait().success().out();
            assert_eq!(told.contains("shown"), has_them, "{told}");
        }
        // Reading is told alone, and one terminal by its name.
        let (running, terminal) = other(world, script);
        let paths = json!({ "namespaces": "none", "paths": { "read": [terminal] } });
        let reads = review(world, &extended("read-only", &paths));
        let found = super::reviews::about(&reads, "terminals", &terminal);
        assert!(found.is_some_and(|it| !it["meaning"].to_string().contains("written")), "{reads:#}");
        assert!(run(world, &["head", "-n", "1", &terminal]).out().contains("typed there"));
        run(world, &["sh", "-c", &format!("echo written > {terminal}")]).failed();
        world.bare(["sh", "-c", &format!("echo end > {terminal}")]).run().success();
        running.wait().success();
        assert!(!review(world, &json!({ "extends": "read-only" })).to_string().contains("terminals can"));
    });
}

#[test]
fn memory_that_is_shared_by_name_is_told_where_a_run_has_it() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        for (profile, has_it) in without_and_with("workspace", &json!({})) {
            let path = format!("/dev/shm/sbx-test-{}-{}", std::process::id(), world.user.id);
            world.write(&path, "shared\n");
            let reviewed = review(world, &profile);
            assert_eq!(has(&reviewed, "memory", "/dev/shm"), has_it, "{reviewed:#}");
            let out =
                run(world, &["sh", "-c", &format!("cat {path}; test -e {path} && echo changed > {path}")]);
            let after = world.read(&path);
            std::fs::remove_file(&path).unwrap();
            assert_eq!(out.out().contains("shared"), has_it, "{out}");
            assert_eq!(after.as_deref(), Some(if has_it { "changed\n" } else { "shared\n" }));
        }
    });
}

#[test]
fn memory_that_is_shared_by_number_is_told_where_a_run_has_it() {
    promise!(kernel::PATHS);
    need!("python3");
    const SETUP: &str = "import ctypes as c, os, time\nl = c.CDLL(None)\nl.shmat.restype = c.c_void_p\n";
    in_worlds(|world| {
        let owner = format!(
            "{SETUP}i = l.shmget(0, 4096, 0o1600)\np = l.shmat(i, None, 0)\nc.memmove(p, b'of another', 11)\n\
             print('at', i, 'now', flush=True)\nfor _ in range(1000):\n    \
             if os.path.exists('seen'): break\n    time.sleep(0.01)\nprint(c.string_at(p).decode())\nl.shmctl(i, 0, None)\n"
        );
        let allow = json!({ "network": { "mode": "none" }, "syscalls": { "allow": ["shmat"] } });
        let closed = json!({ "network": { "mode": "none" } });
        let [closed, _] = without_and_with("workspace", &closed);
        // A network of the run's own comes with memory of its own.
        let [alone, _] = without_and_with(
            "workspace",
            &json!({ "network": { "mode": "private" }, "syscalls": allow["syscalls"] }),
        );
        let alone = Some((alone.0, false)).filter(|_| kernel::gives_namespaces());
        let all = without_and_with("workspace", &allow).into_iter().chain([(closed.0, false)]).chain(alone);
        for (profile, has_it) in all {
            let reviewed = review(world, &profile);
            assert_eq!(has(&reviewed, "memory", "System V (shmat)"), has_it, "{profile}: {reviewed:#}");
            let only = "shmat (built-in profiles allow only shmat[no-exec]";
            let allows = profile["syscalls"].is_object();
            assert_eq!(has(&reviewed, "kernel", only), allows, "{profile}: {reviewed:#}");
            let inside = "and only in namespaces of the run's own";
            assert_eq!(has(&reviewed, "kernel", inside), allows && has_it, "{profile}: {reviewed:#}");
            let (running, number) = other(world, &owner);
            let program = format!(
                "{SETUP}p = l.shmat({number}, None, 0)\nif p == c.c_void_p(-1).value: exit(3)\n\
                 print(c.string_at(p).decode())\nc.memmove(p, b'changed', 8)\n"
            );
            let out = run(world, &["python3", "-c", &program]);
            assert_eq!(out.out().contains("of another"), has_it, "{profile}: {out}");
            let seen = world.write("seen", "");
            let told = running.wait().success().out();
            std::fs::remove_file(seen).unwrap();
            assert_eq!(told.contains("changed"), has_it, "{profile}: {told}");
        }
    });
}
