//! The end of a run after its time limit: the whole tree ends, whatever it does against that.

use std::time::{Duration, Instant};

use sbx_tests::{User, World, in_worlds, kernel, processes, promise};

const PYTHON: &str = "/usr/bin/python3";

#[test]
fn a_timeout_ends_a_slow_command_and_not_a_quick_one() {
    in_worlds(|world| {
        for profile in ["minimal", "workspace"] {
            let start = Instant::now();
            let slow = world.sbx(["run", "-p", profile, "-t", "500ms", "--", "sleep", "50"]).run();
            slow.exited(124).says("timed out after 500ms");
            assert!(start.elapsed() < Duration::from_secs(20));
            world.sbx(["run", "-p", profile, "-t", "50s", "--", "true"]).run().success().silent();
            world.sbx(["run", "-p", profile, "-t", "500ms", "-t", "50s", "--", "true"]).run().exited(125);
        }
    });
}

#[test]
fn a_command_that_exits_124_by_itself_has_not_timed_out() {
    let world = World::new(&User::ordinary());
    world.sbx(["run", "-t", "50s", "--", "sh", "-c", "exit 124"]).run().exited(124).silent();
}

#[test]
fn sigterm_comes_first_and_leaves_time_to_clean_up() {
    in_worlds(|world| {
        let script = "trap 'echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.02; done";
        let out = world.sbx(["run", "-t", "1s", "--kill-after", "50s", "--", "sh", "-c", script]).run();
        out.exited(124).prints("up\ncleaned\n");
        // Not only the command: also what it started.
        let script = "sh -c 'trap \"sleep 1; echo child >child\" TERM; while :; do sleep 0.02; done' & \
                      trap 'wait; exit 3' TERM; wait; wait";
        world.sbx(["run", "-t", "1s", "--kill-after", "3s", "--", "sh", "-c", script]).run().exited(124);
        assert_eq!(world.read("child").as_deref(), Some("child\n"));
    });
}

#[test]
fn processes_that_ignore_hide_or_stop_end_too() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        for supervisor_dies in [false, true] {
            let marker = processes::marker();
            let script = format!(
                "trap 'echo >told' TERM; for i in 1 2 3 4 5 6 7 8 9 10; do \
                   {attempt} sleep {marker} & \
                   (trap '' TERM HUP; exec {attempt} sleep {marker}) & \
                   (trap '' TERM HUP; setsid {attempt} sleep {marker} >/dev/null 2>&1 </dev/null &) ; \
                 done; \
                 {attempt} sleep {marker} & kill -STOP $!; \
                 (trap '' TERM; exec {attempt} sleep {marker}) & kill -STOP $!; \
                 while :; do sleep 0.02; done"
            );
            let grace = if supervisor_dies { "50s" } else { "1s" };
            let words = ["run", "-t", "2s", "--kill-after", grace, "--", "sh", "-c", &script];
            let running = world.sbx(words).start();
            processes::wait_for(&marker, 35);
            if supervisor_dies {
                let deadline = Instant::now() + Duration::from_secs(20);
                while !world.exists("told") {
                    assert!(Instant::now() < deadline, "nobody was told to end");
                    std::thread::sleep(Duration::from_millis(5));
                }
                assert!(
                    processes::with_marker(&marker).len() > 10,
                    "those that ignore it should be there yet"
                );
                running.kill();
            } else {
                running.wait().exited(124);
                assert!(world.exists("told"));
                std::fs::remove_file(world.path("told")).unwrap();
            }
            processes::none_left(&marker);
        }
    });
}

#[test]
fn a_stopped_command_does_not_stop_the_clock() {
    in_worlds(|world| {
        let python = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)";
        world
            .sbx(["run", "-p", "workspace", "-t", "1s", "--", "sh", "-c", "kill -STOP $$"])
            .run()
            .exited(124);
        world.sbx(["run", "-p", "no-exec", "-t", "1s", "--", "python3", "-c", python]).run().exited(124);
    });
}

#[test]
fn a_stopped_supervisor_does_not_stop_the_clock() {
    in_worlds(|world| {
        for profile in ["minimal", "workspace"] {
            let marker = processes::marker();
            let script = format!("import time; print('up', flush=True); time.sleep(1000) # {marker}");
            let words = ["run", "-p", profile, "-t", "2s", "--", PYTHON, "-c", &script];
            let running = world.sbx(words).start();
            running.wait_for("up");
            running.signal(libc::SIGSTOP);
            running.wait().exited(124);
            processes::none_left(&marker);
        }
    });
}

#[test]
fn the_tree_cannot_signal_supervisor_or_helper() {
    promise!(kernel::SCOPES);
    in_worlds(|world| {
        let script = "reaper=$PPID; supervisor=$(sed -n 's/^PPid:\\t//p' /proc/$reaper/status); \
                      for signal in TERM STOP KILL RTMIN+2 RTMIN+3; do \
                        for pid in $reaper ${supervisor#0}; do kill -$signal $pid 2>/dev/null && echo reached $pid; done; \
                      done; \
                      sleep 50 & kill -TERM $! && wait $!; echo $?";
        for namespaces in ["auto", "none"] {
            let words = ["run", "--namespaces", namespaces, "--", "bash", "-c", script];
            world.sbx(words).run().success().prints("143\n");
        }
    });
}

#[test]
fn a_profile_sets_a_limit_and_a_flag_overrides_it() {
    let world = World::new(&User::ordinary());
    world.write("short.json", r#"{"extends": "workspace", "limits": {"timeout": "500ms"}}"#);
    world.write("lifted.json", r#"{"extends": "./short.json", "limits": {"timeout": "none"}}"#);
    let run = |flags: &[&str]| {
        world.sbx(["run"]).args(flags).args(["--", "sh", "-c", "sleep 1.2; echo over"]).run()
    };
    run(&["-p", "./short.json"]).exited(124).prints("");
    run(&["-p", "./short.json", "-t", "none"]).success().prints("over\n");
    run(&["-p", "./short.json", "--timeout", "50s"]).success().prints("over\n");
    run(&["-p", "./lifted.json"]).success().prints("over\n");
    run(&["-p", "./lifted.json", "-t", "500ms"]).exited(124);
    let out = run(&["-p", "./short.json", "--exec"]);
    out.refused(125, &["limits.timeout", "short", "--exec", "--timeout none"]);
}

#[test]
fn processes_that_may_stay_do_and_no_others() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let marker = processes::marker();
        let script = format!(
            "(cat {} >seen 2>&1; exec {attempt} sleep {marker}) >/dev/null 2>&1 & echo $! >pid; until [ -s seen ]; do \
             sleep 0.01; done; exit 7",
            world.home.join(".ssh/id_rsa").display()
        );
        let out = world.sbx(["run", "--keep-background", "--", "sh", "-c", &script]).run().exited(7);
        assert!(out.err().contains("keeps its directory"), "{out}");
        processes::wait_for(&marker, 1);
        // Still confined: the filter and the path rules stay with it.
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", world.read("pid").unwrap().trim())).unwrap();
        assert!(status.contains("Seccomp:\t2"), "{status}");
        let seen = world.read("seen").unwrap();
        assert!(!kernel::promises(kernel::PATHS) || !seen.contains(sbx_tests::world::SECRET));
        processes::with_marker(&marker).into_iter().for_each(|pid| sbx_tests::sys::kill(pid, libc::SIGKILL));
        processes::none_left(&marker);
        let lines = out.sbx_lines();
        let kept = lines.iter().find(|line| line.contains("keeps its directory")).unwrap();
        let kept = kept.split('\'').nth(1).unwrap().to_string();
        std::fs::remove_dir_all(kept).unwrap();
        let named = "ended 'attempt', which the command had left in the background";
        world
            .sbx(["run", "-v", "--", "sh", "-c", &script])
            .run()
            .exited(7)
            .says(named)
            .says("--keep-background");
        processes::none_left(&marker);
        // What ends a moment later has not been cut off.
        let out = world.sbx(["run", "-v", "--", "sh", "-c", "sleep 0.05 >/dev/null 2>&1 &"]).run().success();
        assert!(!out.err().contains("in the background"), "{out}");
        // A timeout ends them all the same.
        let script = format!("{attempt} sleep {marker} >/dev/null & sleep 50");
        world.sbx(["run", "--keep-background", "-t", "1s", "--", "sh", "-c", &script]).run().exited(124);
        processes::none_left(&marker);
    });
}
