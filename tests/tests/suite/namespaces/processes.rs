//! Processes: a run sees and reaches only its own, and can inspect no others.

use super::{PYTHON, in_namespaces, shell};
use sbx_tests::{have, need, processes};
use std::time::Duration;

#[test]
fn only_the_runs_own_processes_are_visible() {
    in_namespaces(|world| {
        let marker = processes::marker();
        let sleeper = world.bare(["sh", "-c", &format!("sleep 60; : {marker}")]).start();
        processes::wait_for(&marker, 1);
        let script = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null; \
                      ls /proc | grep -c '^[0-9]'";
        let out = shell(world, &["-q"], script).run().success();
        assert!(!out.out().contains(&marker), "{out}");
        assert!(out.out().lines().last().unwrap().parse::<usize>().unwrap() < 8, "{out}");
        if have("ps").is_some() {
            let out = shell(world, &["-q"], "ps -ef").run().success();
            assert!(!out.out().contains(&marker) && out.out().lines().count() < 7, "{out}");
        }
        let pid = sleeper.pid().to_string();
        for script in [
            format!("kill -9 {pid}"),
            format!("kill -0 {pid}"),
            "kill -9 -- -1".to_string(),
            format!("kill -9 -- -{pid}"),
        ] {
            shell(world, &["-q"], &format!("{script}; exit 1")).run().failed();
        }
        let program = "import os, signal\nfor n in range(2, 70000):\n  if n != os.getpid():\n    \
                       try: os.kill(n, 9)\n    except OSError: pass\nfor n in (1, -1):\n  try: os.kill(n, 9)\n  \
                       except OSError: pass\nprint('still here')\n";
        world.sbx(["run", "-q", "--", PYTHON, "-c", program]).run().success().prints("still here\n");
        assert!(!processes::with_marker(&marker).is_empty(), "it was killed from inside");
        // Its counterpart outside is real.
        world.bare(["kill", "-9", &pid]).run().success();
        sleeper.wait().died_of(libc::SIGKILL);
    });
}

#[test]
fn the_first_process_cannot_be_inspected() {
    in_namespaces(|world| {
        let secret = "hunter2-in-the-environment";
        for name in ["environ", "mem", "maps", "auxv", "stack", "syscall"] {
            let script = format!("cat /proc/1/{name} | head -c 100000");
            let out = shell(world, &["-q"], &script).env("SECRET_TOKEN", secret).run();
            assert!(out.stdout.is_empty(), "{name}: {out}");
        }
        for name in ["root/", "cwd/", "map_files", "fd/0/", "fd/3"] {
            shell(world, &["-q"], &format!("ls /proc/1/{name}")).run().failed().prints("");
        }
        for name in ["exe", "cwd", "root", "ns/mnt", "ns/user", "fd/*"] {
            shell(world, &["-q"], &format!("readlink /proc/1/{name}")).run().failed().prints("");
        }
        let out = shell(world, &["-q"], "cat /proc/*/environ").env("SECRET_TOKEN", secret).run();
        assert!(!out.out().contains(secret), "{out}");
        // One's own process can be.
        shell(world, &["-q"], "cat /proc/self/environ | wc -c; ls /proc/self/fd/ /proc/$$/root/usr")
            .run()
            .success();
    });
}

#[test]
fn exit_codes_and_signals_are_passed_on() {
    in_namespaces(|world| {
        let run = |script: &str| shell(world, &["-q"], script).run();
        run("exit 0").success();
        run("exit 77").exited(77);
        run("(exit 5) & wait $!; sleep 0.01 & exit 9").exited(9);
        for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGINT, libc::SIGHUP, libc::SIGSEGV, libc::SIGABRT]
        {
            run(&format!("kill -{signal} $$")).exited(128 + signal);
        }
        // The first process adopts orphans, waits for them and ends them.
        let marker = processes::marker();
        run(&format!("setsid sh -c 'sleep 60; : {marker}' & (sh -c 'sleep 60; : {marker}' &); exit 3"))
            .exited(3);
        processes::none_left(&marker);
        run("for i in $(seq 200); do (true &) ; done; exit 4").exited(4);
        run("kill -9 -1; exit 4").exited(4);
        run("kill -TERM 1; kill -STOP 1; kill -9 1; kill -34 1; kill -37 1; exit 6").exited(6);
    });
}

#[test]
fn signals_to_sbx_reach_the_command() {
    in_namespaces(|world| {
        for (name, signal) in
            [("TERM", libc::SIGTERM), ("INT", libc::SIGINT), ("HUP", libc::SIGHUP), ("USR1", libc::SIGUSR1)]
        {
            let script =
                format!("trap 'echo got {name}; exit 42' {name}; echo ready; while :; do sleep 0.05; done");
            for to_group in [false, true] {
                let running = shell(world, &[], &script).start();
                running.wait_for("ready");
                if to_group {
                    running.signal_group(signal)
                } else {
                    running.signal(signal)
                }
                running.wait().exited(42).prints(&format!("ready\ngot {name}\n"));
            }
            let (running, _terminal) = shell(world, &[], &script).start_on_terminal();
            running.wait_for("ready");
            running.signal(signal);
            running.wait_for("got");
            running.wait().exited(42);
        }
    });
}

#[test]
fn a_killed_supervisor_takes_everything_along() {
    in_namespaces(|world| {
        for pause in [0, 1, 3, 8, 20, 50, 120, 250] {
            let marker = processes::marker();
            let script = format!("setsid sh -c 'sleep 60; : {marker}' & sh -c 'sleep 60; : {marker}'");
            let running = shell(world, &["--deny", "not/yet"], &script).start();
            std::thread::sleep(Duration::from_millis(pause));
            running.signal(libc::SIGKILL);
            running.wait().died_of(libc::SIGKILL);
            processes::none_left(&marker);
        }
        for _ in 0..300 {
            if super::names(&world.workspace).is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(super::names(&world.workspace), [""; 0]);
        assert_eq!(super::mounted_below(&world.home), [""; 0]);
    });
}

#[test]
fn the_report_names_the_process_as_the_host_knows_it() {
    in_namespaces(|world| {
        let marker = processes::marker();
        let report = world.outside.join("report.json");
        let script = format!("echo ready; sleep 1; : {marker}");
        let running = shell(world, &["--report", report.to_str().unwrap()], &script).start();
        running.wait_for("ready");
        let seen: Vec<i32> = processes::with_marker(&marker);
        running.wait().success();
        let text = std::fs::read_to_string(&report).unwrap();
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        let pid = found["pid"].as_i64();
        let pid = i32::try_from(pid.unwrap_or_else(|| panic!("{text}"))).unwrap();
        assert!(seen.contains(&pid) && pid > 5, "{pid} is none of {seen:?}");
    });
}

#[test]
fn limits_hold_inside() {
    in_namespaces(|world| {
        let forks = "import os, sys\nmade = 0\ntry:\n  for n in range(30):\n    if os.fork() == 0:\n      \
                     import time; time.sleep(5); os._exit(0)\n    made += 1\nexcept OSError: pass\n\
                     print(made < 12, flush=True)\nos.kill(0, 9)\n";
        world
            .sbx(["run", "-q", "--max-processes", "10", "--", PYTHON, "-c", forks])
            .run()
            .exited(137)
            .prints("True\n");
        let eats = "x = bytearray(300 << 20)\nfor n in range(0, len(x), 4096): x[n] = 1\nimport time; time.sleep(10); \
                    print('kept')";
        let out = world.sbx(["run", "-q", "--max-memory", "100M", "--", PYTHON, "-c", eats]).run().failed();
        assert!(!out.out().contains("kept"), "{out}");
        let marker = processes::marker();
        let endless = format!(
            "trap '' TERM; (trap '' TERM; while :; do sleep 0.1; : {marker}; done) & while :; do sleep 0.1; done"
        );
        shell(world, &["-q", "-t", "1s"], &endless).run().exited(124);
        processes::none_left(&marker);
        let out = shell(world, &["-q", "--max-output", "1k"], "yes | head -c 100000").run().success();
        assert!(out.stdout.len() < 3000, "{}", out.stdout.len());
    });
}

#[test]
fn process_numbers_are_as_long_as_outside() {
    in_namespaces(|world| {
        let limit = ["cat", "/proc/sys/kernel/pid_max"];
        let outside = world.bare(limit).run().success().out().to_owned();
        shell(world, &["-q"], &limit.join(" ")).run().success().prints(&outside);
        shell(world, &["-q"], "echo 400000 > /proc/sys/kernel/pid_max").run().failed();
        world.bare(limit).run().success().prints(&outside);
    });
}

#[test]
fn the_hosts_name_and_message_queues_are_out_of_reach() {
    need!("hostname", "ipcs");
    in_namespaces(|world| {
        shell(world, &["-q"], "hostname other").run().failed();
        let links = "for n in pid mnt ipc uts; do readlink /proc/self/ns/$n; done";
        let outside = world.bare(["bash", "-c", links]).run().success().out();
        let inside = shell(world, &["-q"], links).run().success().out();
        for (mine, theirs) in outside.lines().zip(inside.lines()) {
            assert_ne!(mine, theirs);
        }
        assert_eq!(inside.lines().count(), 4);
    });
}

/// The session that the command gets, with pipes and on a terminal.
#[test]
fn sessions_and_process_groups_have_numbers() {
    in_namespaces(|world| {
        let program = "import os; print(os.getsid(0) != 0, os.getpgrp() != 0, os.getppid())";
        world.sbx(["run", "--", PYTHON, "-c", program]).run().success().prints("True True 1\n");
        // Where the run was given no terminal, none can be opened.
        shell(world, &["-q"], "exec 3<>/dev/tty").run().failed();
    });
}
