//! Signals, the terminal, and what is left when a process dies.

use std::time::Duration;

use sbx_tests::{User, World, in_worlds, kernel, need, processes, promise, stage, sys};

#[test]
fn signals_reach_the_command() {
    in_worlds(|world| {
        for (name, number) in [
            ("HUP", libc::SIGHUP),
            ("INT", libc::SIGINT),
            ("QUIT", libc::SIGQUIT),
            ("TERM", libc::SIGTERM),
            ("USR1", libc::SIGUSR1),
            ("USR2", libc::SIGUSR2),
            ("PIPE", libc::SIGPIPE),
        ] {
            let script =
                format!("trap 'echo got {name}; exit 7' {name}; echo up; while :; do sleep 0.02; done");
            let running = world.run("workspace", ["sh", "-c", &script]).start();
            running.wait_for("up\n");
            running.signal(number);
            let out = running.wait().exited(7);
            assert_eq!(out.out(), format!("up\ngot {name}\n"));
        }
    });
}

#[test]
fn a_signal_to_the_whole_group_arrives_once() {
    need!("perl");
    let world = World::new(&User::ordinary());
    let program = "$| = 1; $SIG{INT} = sub { $n++ }; print qq(up\\n); $t = time + 2; \
                   sleep 1 while time < $t; print qq(n=$n\\n)";
    let running = world.run("workspace", ["perl", "-e", program]).start();
    running.wait_for("up\n");
    running.signal_group(libc::SIGINT);
    running.wait().success().prints("up\nn=1\n");
}

#[test]
fn a_command_killed_by_a_signal_gives_128_and_the_number() {
    in_worlds(|world| {
        let attempt = world.subject("attempt");
        for signal in
            [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV, libc::SIGABRT, libc::SIGINT, libc::SIGPIPE]
        {
            for profile in ["no-exec", "workspace"] {
                let words = [attempt.to_str().unwrap(), "say-and-die", &signal.to_string()];
                let out = world.run(profile, words).run().exited(128 + signal).prints("last words\n");
                // Shells say that too, and nothing of a command that somebody ended.
                match signal {
                    libc::SIGKILL => out.says("the command was ended by SIGKILL"),
                    libc::SIGSEGV => out.says("the command was ended by SIGSEGV"),
                    libc::SIGABRT => out.says("the command was ended by SIGABRT"),
                    _ => out.silent(),
                };
            }
        }
    });
}

#[test]
fn the_end_is_noticed_where_the_caller_ignores_sigchld() {
    in_worlds(|world| {
        for profile in ["minimal", "no-exec", "workspace"] {
            let run = || world.run(profile, ["cat", "missing"]).timeout(Duration::from_secs(20));
            for run in [run(), run().ignoring(libc::SIGCHLD)] {
                run.run().exited(1);
            }
        }
        // The command ignores SIGCHLD too: it could not wait for its own children either.
        let words = ["sed", "-n", "s/^SigIgn:\t//p", "/proc/self/status"];
        let out = world.run("workspace", words).ignoring(libc::SIGCHLD).run().success();
        let ignored = u64::from_str_radix(out.out().trim(), 16).expect("a set of signals");
        assert_eq!(ignored & (1 << (libc::SIGCHLD - 1)), 0, "{out}");
    });
}

#[test]
fn a_broken_pipe_ends_the_command_as_usual() {
    let world = World::new(&User::ordinary());
    let script = format!("{} run -p minimal -- yes | head -n 1", stage::sbx().display());
    world
        .bare(["bash", "-c", &format!("{script}; echo ${{PIPESTATUS[0]}}")])
        .run()
        .success()
        .prints("y\n141\n");
}

/// timeout(1) in Perl: an alarm that is set before the program is executed.
#[test]
fn an_alarm_of_the_callers_reaches_the_command() {
    need!("perl");
    in_worlds(|world| {
        let sbx = stage::sbx();
        for profile in ["minimal", "no-exec", "workspace"] {
            let words = ["perl", "-e", "alarm 1; exec @ARGV", sbx.to_str().unwrap(), "run", "-p", profile];
            world.bare(words).args(["--", "sleep", "20"]).run().exited(128 + libc::SIGALRM);
        }
    });
}

#[test]
fn a_line_that_the_callers_limit_has_no_room_for_ends_nothing() {
    in_worlds(|world| {
        let sbx = stage::sbx().display();
        let script = format!(
            "head -c 4096 /dev/zero > log; ulimit -c 0; ulimit -f 1; exec {sbx} run -v -- sh -c 'exit 5' 2>> log"
        );
        world.bare(["bash", "-c", &script]).run().exited(5);
    });
}

/// Neither a warning nor an error that nobody reads is in the way of the run, or of its status.
#[test]
fn lines_that_nobody_reads_end_nothing() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let status = |words: &str| {
            let run = format!("{} run {words} 2>&1 >/dev/null", stage::sbx().display());
            let script =
                format!("{{ until [ -e alone ]; do sleep 0.02; done; {run}; }} | {{ exec <&-; : > alone; }}");
            world
                .bare(["bash", "-c", &format!("rm -f alone; {script}; echo ${{PIPESTATUS[0]}}")])
                .run()
                .success()
                .out()
        };
        // The flag has it warn.
        assert_eq!(status("--ro / -- sh -c ': > went-on; exit 3'"), "3\n");
        assert!(world.exists("went-on"));
        assert_eq!(status("-- none-of-this-name"), "127\n");
        assert_eq!(status("--ro none-of-this-name -- true"), "125\n");
    });
}

/// What sbx says to nobody is its own affair: the command does not get the SIGPIPE.
#[test]
fn the_command_goes_on_where_nobody_reads_what_is_said_of_it() {
    in_worlds(|world| {
        let command =
            "until [ -e alone ]; do sleep 0.02; done; (: > /usr/refused); sleep 0.3; : > went-on; exit 3";
        let run = format!("{} run -- sh -c '{command}' 2>&1 >/dev/null", stage::sbx().display());
        let script = format!("{run} | {{ exec <&-; : > alone; }}; echo ${{PIPESTATUS[0]}}");
        world.bare(["bash", "-c", &script]).run().success().prints("3\n");
        assert!(world.exists("went-on"));
    });
}

#[test]
fn killing_the_supervisor_at_any_moment_leaves_no_process() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        for round in 0..40_u64 {
            let marker = processes::marker();
            let script = format!("{attempt} sleep {marker} & {attempt} sleep {marker} & wait");
            let running = world.run("workspace", ["sh", "-c", &script, &marker]).start();
            std::thread::sleep(Duration::from_micros(round * round * 12));
            running.kill();
            processes::none_left(&marker);
        }
    });
}

#[test]
fn a_killed_supervisor_takes_daemons_with_it() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let marker = processes::marker();
        let script = format!("(setsid {attempt} sleep {marker} &) ; {attempt} sleep {marker}");
        let running = world.run("workspace", ["sh", "-c", &script]).start();
        running.wait_for("sleeping\nsleeping\n");
        running.kill();
        processes::none_left(&marker);
    });
}

#[test]
fn the_end_of_the_command_ends_the_processes_it_left() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let marker = processes::marker();
        let script = format!(
            "(setsid {attempt} sleep {marker} >/dev/null 2>&1 &); {attempt} sleep {marker} >/dev/null & exit 5"
        );
        world.run("workspace", ["sh", "-c", &script]).run().exited(5);
        processes::none_left(&marker);
    });
}

#[test]
fn processes_that_the_caller_started_before_sbx_go_on() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let sbx = stage::sbx().display();
        for more in ["--namespaces auto", "--namespaces none"] {
            let (before, left) = (processes::marker(), processes::marker());
            // One that reads the run's output, for example; what the command itself leaves behind ends.
            let script = format!(
                "{attempt} sleep {before} >/dev/null 2>&1 & exec {sbx} run -q {more} -- \
                 sh -c '{attempt} sleep {left} >/dev/null 2>&1 & exit 5'"
            );
            world.bare(["sh", "-c", &script]).run().exited(5);
            processes::none_left(&left);
            let going_on = processes::with_marker(&before);
            going_on.iter().for_each(|pid| sys::kill(*pid, libc::SIGKILL));
            assert_eq!(going_on.len(), 1, "{more}");
        }
    });
}

#[test]
fn stop_and_continue_work() {
    let world = World::new(&User::ordinary());
    let script = "echo up; read -r line; echo \"$line\"";
    let running = world.run("workspace", ["sh", "-c", script]).stdin("text\n").start();
    running.wait_for("up\n");
    running.signal(libc::SIGTSTP);
    std::thread::sleep(Duration::from_millis(50));
    running.signal(libc::SIGCONT);
    running.wait().success().prints("up\ntext\n");
}

#[test]
fn the_command_has_the_terminal() {
    in_worlds(|world| {
        let script = "test -t 0 && tty && read -r l; echo \"<$l>\"";
        let (running, terminal) = world.sbx(["run", "--", "sh", "-c", script]).start_on_terminal();
        terminal.types("typed\n");
        running.wait_for("<typed>");
        let out = running.wait().success();
        assert!(out.out().contains("/dev/pts/"), "{out}");
    });
}

#[test]
fn the_interrupt_key_ends_the_command() {
    in_worlds(|world| {
        let script = "echo up; exec sleep 1000";
        let (running, terminal) = world.sbx(["run", "--", "sh", "-c", script]).start_on_terminal();
        running.wait_for("up");
        terminal.types("\x03");
        // As the command itself would: a shell would go on with its script after a status.
        running.wait().died_of(libc::SIGINT);
    });
}

#[test]
fn job_control_works_inside() {
    need!("bash");
    in_worlds(|world| {
        let shell = world.sbx(["run", "--", "bash", "--norc", "--noprofile", "-i"]);
        let (running, terminal) = shell.timeout(Duration::from_secs(20)).start_on_terminal();
        terminal.types("echo up-$((40+1)); sleep 1000\n");
        running.wait_for("up-41");
        std::thread::sleep(Duration::from_millis(300));
        terminal.types("\x1a");
        running.wait_for("Stopped");
        terminal.types("jobs; kill %1; fg; echo back-$((40+2)); exit 3\n");
        running.wait_for("back-42");
        let out = running.wait().exited(3);
        assert!(!out.out().contains("no job control"), "{out}");
    });
}

#[test]
fn a_hangup_leaves_nothing() {
    let world = World::new(&User::ordinary());
    let attempt = world.program("attempt");
    let marker = processes::marker();
    let (running, terminal) = world.run("workspace", [&attempt, "sleep", &marker]).start_on_terminal();
    running.wait_for("sleeping");
    running.signal(libc::SIGHUP);
    drop(running.wait());
    drop(terminal);
    processes::none_left(&marker);
}

#[test]
fn a_later_run_removes_what_a_killed_one_left() {
    in_worlds(|world| {
        let tmp = world.outside.join("tmp");
        world.make_dir(&tmp);
        let held =
            || std::fs::read_dir(&tmp).unwrap().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
        let run = |profile: &str, command: &[&str]| world.run(profile, command).env("TMPDIR", &tmp);
        let old = |path: &std::path::Path| {
            let hour = Duration::from_secs(3600);
            let then = std::time::SystemTime::now() - hour;
            std::fs::File::open(path).unwrap().set_modified(then).unwrap();
        };
        // Without a reaper nobody is left to remove it.
        let killed = run("write", &["sleep", "60"]).start();
        let wait_for = |count: usize| {
            let start = std::time::Instant::now();
            while held().len() < count {
                assert!(start.elapsed() < Duration::from_secs(20), "no scratch directory is made");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        wait_for(1);
        let living = run("write", &["sleep", "4"]).start();
        wait_for(2);
        held().iter().for_each(|path| old(path));
        killed.kill();
        // A short run does not look; a longer one removes what belongs to no run.
        run("workspace", &["true"]).run().success();
        assert_eq!(held().len(), 2);
        run("workspace", &["sleep", "1.2"]).run().success();
        assert_eq!(held().len(), 1, "that of a living run is gone, or that of the killed one is not");
        living.wait().success();
        assert!(held().is_empty());
    });
}

#[test]
fn a_killed_helper_takes_the_command_with_it() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        for namespaces in ["none", "auto"] {
            let marker = processes::marker();
            let running = world
                .sbx(["run", "--namespaces", namespaces, "--", "sh", "-c"])
                .arg(format!("(setsid {attempt} sleep {marker} &); {attempt} sleep {marker}; echo went on"))
                .start();
            running.wait_for("sleeping\nsleeping\n");
            let supervisor = running.pid();
            let children = format!("/proc/{supervisor}/task/{supervisor}/children");
            let helper = std::fs::read_to_string(children).unwrap();
            world.bare(["kill", "-9", helper.trim()]).run().success();
            let out = running.wait().exited(125).says("was killed or failed");
            assert!(!out.out().contains("went on"), "{out}");
            processes::none_left(&marker);
        }
    });
}

/// A process that waits for the one whose call was refused must not go on when that one is gone.
#[test]
fn a_violation_that_ends_the_run_ends_all_processes_together() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let script = format!("{attempt} syscall {} 0; echo x > after", libc::SYS_bpf);
        for _ in 0..5 {
            world.sbx(["run", "--on-violation", "kill", "--", "sh", "-c", &script]).run().exited(159);
            assert!(!world.exists("after"));
        }
        world.sbx(["run", "--", "sh", "-c", &script]).run().success();
        assert!(world.exists("after"));
    });
}

/// Without these calls nobody would notice that a run is over.
#[test]
fn where_processes_cannot_be_waited_for_or_ended_nothing_starts() {
    in_worlds(|world| {
        for profile in ["workspace", "minimal"] {
            let run = || world.run(profile, ["/bin/echo", "ran"]);
            let out = run().answering(&[(libc::SYS_waitid, libc::EPERM)]).run();
            out.refused(125, &["cannot learn of the end of processes", "waitid"]);
            // Nor could a time limit end the run then, or what it leaves.
            let out = run().answering(&[(libc::SYS_kill, libc::EPERM)]).run();
            out.refused(125, &["cannot send signals", "kill"]);
            run().run().success().prints("ran\n");
        }
    });
}

/// Whichever step finds no descriptor left.
#[test]
fn a_run_refused_for_lack_of_descriptors_leaves_nothing() {
    in_worlds(|world| {
        let scratch = world.path("scratch");
        world.make_dir(&scratch);
        let before = world.workspace.read_dir().unwrap().count();
        // There is no place for lasting caches: they are in the scratch directory then.
        let run = |limit| {
            let run = world.sbx(["run", "--", "/bin/true"]).env("TMPDIR", &scratch);
            run.env("XDG_CACHE_HOME", "/dev/null").open_files(limit).run()
        };
        // How many a run needs depends on the kernel.
        let enough = (4..1000).find(|limit| {
            let out = run(*limit);
            let left: Vec<_> = scratch.read_dir().unwrap().flatten().collect();
            assert!(left.is_empty(), "{limit}: {left:?}: {out}");
            assert_eq!(world.workspace.read_dir().unwrap().count(), before, "{limit}: {out}");
            out.code == Some(0) || {
                out.exited(125).says("too many open files");
                false
            }
        });
        assert!(enough.is_some_and(|limit| limit > 4), "{enough:?}");
    });
}

/// A run's mounts are taken apart when it has ended already. They are, though: a limit of the namespaces that there are
/// at a time is not met by runs one after the other.
#[test]
fn mounts_of_runs_that_have_ended_do_not_pile_up() {
    need!("unshare");
    promise!(kernel::TCP_PORTS);
    in_worlds(|world| {
        let times = |limit: u32, script: &str| {
            let unshare = ["unshare", "--user", "--map-root-user", "sh", "-c"];
            let script = format!("echo {limit} > /proc/sys/user/max_mnt_namespaces; {script}");
            let run = ["run", "--require", "full", "--workspace", ".", "--", "echo", "ran"];
            world.bare(unshare).arg(script).arg("sh").arg(stage::sbx()).args(run).run()
        };
        times(0, "\"$@\"").exited(125).says("cannot make namespaces");
        let out = times(24, "for n in $(seq 40); do \"$@\" || exit; sleep 0.02; done").success();
        assert_eq!(out.out().matches("ran\n").count(), 40, "{out}");
    });
}

/// A number that a server has left in a file is to be nobody's in the next run.
#[test]
fn numbers_of_processes_begin_elsewhere_in_each_run() {
    promise!(namespaces);
    in_worlds(|world| {
        let number =
            || world.run("workspace", ["sh", "-c", "echo $$"]).run().success().out().trim().parse::<u32>();
        let numbers: Vec<u32> = (0..4).map(|_| number().unwrap()).collect();
        assert!(numbers.iter().all(|number| *number > 1000), "{numbers:?}");
        assert!(numbers.iter().any(|number| *number != numbers[0]), "{numbers:?}");
    });
}

/// A program that has said that it goes on does not; others are often left behind, and are named with `-v`.
#[test]
fn a_daemon_that_is_ended_is_named() {
    need!("setsid");
    in_worlds(|world| {
        let run = |script: &str| world.run("workspace", ["sh", "-c", script]).run().success();
        let out = run("setsid sleep 60 & sleep 0.2");
        out.says("ended 'sleep', which the command had left in the background");
        run("sleep 60 & sleep 0.2").silent();
        let out = run("nohup sleep 60 >/dev/null 2>&1 </dev/null & sleep 0.2");
        out.says("ended 'sleep', which the command had left in the background");
        // Where nobody minds the hangup, that says nothing.
        let script = "trap '' HUP; exec \"$0\" run -- sh -c 'sleep 60 & sleep 0.2'";
        world.bare(["sh", "-c", script]).arg(stage::sbx()).run().success().silent();
    });
}
