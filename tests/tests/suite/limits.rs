//! Processes, memory, processor time, files: each limit, with a command that exceeds it and one that does not.

use std::time::{Duration, Instant};

use sbx_tests::{User, World, as_users, in_worlds, need, processes, stage};

const THREADS: &str = "\
import threading, time
started = 1
for i in range(30):
    try:
        threading.Thread(target=time.sleep, args=(1,)).start()
        started += 1
    except RuntimeError:
        pass
print(started)";

#[test]
fn a_fork_bomb_stays_within_its_limit() {
    need!("bash");
    in_worlds(|world| {
        let marker = processes::marker();
        // Bounded in depth by itself, in case the limit fails.
        let script = format!(
            "b() {{ [ $1 -gt 7 ] || {{ b $(($1 + 1)) | b $(($1 + 1)) & wait; sleep 2; }}; }}; b 0; # {marker}"
        );
        let words =
            ["run", "-t", "3s", "--kill-after", "1s", "--max-processes", "20", "--", "bash", "-c", &script];
        let running = world.sbx(words).start();
        let (start, mut most) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(2) {
            most = most.max(processes::with_marker(&marker).len());
        }
        let out = running.wait();
        processes::none_left(&marker);
        // The supervisor and its helper carry the marker as well.
        assert!((12..=22).contains(&most), "{most} processes: {out}");
        assert!(out.err().contains("Resource temporarily unavailable"), "{out}");
    });
}

#[test]
fn the_limit_of_processes_is_exact_and_counts_threads() {
    in_worlds(|world| {
        for profile in ["workspace", "network"] {
            let run = |limit: &str| {
                world
                    .sbx(["run", "-p", profile, "--max-processes", limit, "--", "python3", "-c", THREADS])
                    .run()
            };
            run("10").success().prints("10\n");
            run("1").success().prints("1\n");
            run("31").success().silent().prints("31\n");
        }
        // A process that has ended makes room again.
        let script = "i=0; while [ $i -lt 100 ]; do /bin/true || exit 9; i=$((i+1)); done; echo over";
        let out = world.sbx(["run", "--max-processes", "2", "--", "sh", "-c", script]).run();
        out.success().silent().prints("over\n");
        let out = world.sbx(["run", "--max-processes", "1", "--", "sh", "-c", "/bin/true; echo no"]).run();
        assert!(!out.failed().err().is_empty());
    });
}

#[test]
fn the_task_limiter_allows_no_other_call() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let run = |flags: &[&str], what: &str| {
            world.sbx(["run"]).args(flags).args(["--max-processes", "50", "--", &attempt, what]).run()
        };
        run(&["-p", "no-exec"], "fork").failed();
        run(&["-p", "network"], "fork").failed();
        run(&["-p", "workspace"], "clone3").exited(1).prints("errno 38 (Function not implemented)\n");
        run(&["-p", "workspace"], "fork").success();
        run(&["-p", "no-exec"], "thread").success();
        assert!(world.exists("forked"));
    });
}

#[test]
fn without_the_task_limiter_the_kernel_limits_or_nothing_runs() {
    as_users(|user| {
        let world = World::new(user);
        let inner = |words: &[&str]| world.sbx(words.iter().chain(&["bash", "-c", "ulimit -u"])).run();
        let direct = ["run", "--exec", "--max-processes", "5", "--"];
        let sbx = stage::sbx().to_str().unwrap();
        let nested = ["run", "--", sbx, "run", "--max-processes", "5", "--"];
        for words in [&direct[..], &nested] {
            let out = inner(words);
            if user.id == 0 {
                out.refused(125, &["limit processes", "does not hold for root"]);
            } else {
                let limit: u64 = out.success().out().trim().parse().expect("a number");
                assert!((5..5000).contains(&limit), "{limit}");
            }
        }
        inner(&["run", "--exec", "--max-processes", "none", "--"]).success();
    });
}

#[test]
fn one_process_is_refused_more_memory_and_all_together_are_ended() {
    in_worlds(|world| {
        let run = |profile: &str, script: &str| {
            world.sbx(["run", "-p", profile, "--max-memory", "256M", "--", "python3", "-c", script]).run()
        };
        for profile in ["workspace", "minimal"] {
            run(profile, "bytearray(400 << 20)").exited(1).says("MemoryError");
            run(profile, "bytearray(100 << 20)").success().silent();
        }
        // Each of them is small. Shared memory counts once.
        let four = |own: u32| {
            format!(
                "import os, time\nshared = bytearray(100 << 20)\nfor i in range(4):\n  if not os.fork():\n    \
                 own = bytearray({own} << 20)\n    time.sleep(2)\n    os._exit(0)\nfor i in range(4): os.wait()\n\
                 print('over')"
            )
        };
        run("workspace", &four(80)).exited(137).prints("").says("more than 256 MiB of memory");
        run("workspace", &four(10)).success().silent().prints("over\n");
    });
}

#[test]
fn a_process_that_hides_its_memory_counts_in_full() {
    let world = World::new(&User::ordinary());
    // One that may not be inspected, and one whose name is not UTF-8.
    for hide in ["prctl(4, 0)", r"prctl(15, b'\xff\xfe')"] {
        let script = format!(
            "import ctypes, os, time\nctypes.CDLL(None).{hide}\nfor i in range(4):\n  if not os.fork():\n    \
             own = bytearray(80 << 20)\n    time.sleep(20)\n    os._exit(0)\nfor i in range(4): os.wait()"
        );
        world.sbx(["run", "--max-memory", "256M", "--", "python3", "-c", &script]).run().exited(137);
    }
}

#[test]
fn memory_counts_once_for_all_threads_whichever_has_ended() {
    in_worlds(|world| {
        // Shared memory, since another limit would keep private memory small. A first thread that has ended has no
        // memory.
        let fill = |megabytes: u32| {
            format!(
                "import ctypes, mmap, os, threading, time\ndef fill():\n  time.sleep(0.3)\n  \
                 m = mmap.mmap(-1, {megabytes} << 20)\n  for at in range(0, len(m), 4096): m[at] = 1\n  \
                 time.sleep(2)\n  os.write(1, b'over')\n  os._exit(0)\nthreading.Thread(target=fill).start()\n\
                 ctypes.CDLL(None).syscall({})",
                libc::SYS_exit
            )
        };
        for profile in ["workspace", "no-exec"] {
            let run = |script: &str| {
                let flags = ["run", "-p", profile, "--max-memory", "256M", "--", "python3", "-c", script];
                world.sbx(flags).run()
            };
            run(&fill(400)).exited(137).prints("").says("more than 256 MiB of memory");
            run(&fill(150)).success().silent().prints("over");
        }
        // A child of vfork(2) has no memory of its own before its exec.
        let script = "import ctypes, os, time\nown = bytearray(180 << 20)\nlibc = ctypes.CDLL(None)\n\
                      STACK = ctypes.create_string_buffer(1 << 20)\npause = ctypes.cast(libc.pause, ctypes.c_void_p)\n\
                      if libc.clone(pause, ctypes.byref(STACK, 1 << 19), 0x100 | 17, None) < 0: raise OSError\n\
                      time.sleep(1)\nprint('over')";
        world
            .sbx(["run", "--max-memory", "256M", "--", "python3", "-c", script])
            .run()
            .success()
            .prints("over\n");
    });
}

#[test]
fn processes_that_cannot_be_listed_are_not_silently_unlimited() {
    in_worlds(|world| {
        let run = || world.sbx(["run", "-q", "--max-memory", "200M", "--", "/bin/sh", "-c", "echo over"]);
        let unlisted = run().answering(&[(libc::SYS_getdents64, libc::EPERM)]).run();
        match world.sbx(["run", "-v", "--max-memory", "200M", "--", "true"]).run().err().contains("(cgroup)")
        {
            true => drop(unlisted.success().prints("over\n")),
            false => drop(unlisted.refused(125, &["cannot limit memory here", "refuses to list it"])),
        }
        run().run().success().prints("over\n");
    });
}

#[test]
fn memory_that_proc_does_not_show_is_not_silently_unlimited() {
    need!("unshare", "mount");
    as_users(|user| {
        let world = World::new(user);
        let script = "import os, time\nfor i in range(3):\n  if not os.fork():\n    own = bytearray(100 << 20)\n    \
                      time.sleep(2)\n    os._exit(0)\nfor i in range(3): os.wait()\nprint('over')";
        let run = |option: &str, script: &str| {
            let sbx = stage::sbx().display();
            let mount =
                format!("mount -t proc -o {option} proc /proc && exec {sbx} run --max-memory 200M -- \"$@\"");
            let words = user.unshare(&["--pid", "--fork"]);
            world.bare([&words[..], &["sh", "-c", &mount, "sh", "python3", "-c", script]].concat()).run()
        };
        run("hidepid=off", "print('over')").success().silent().prints("over\n");
        run("hidepid=off", script).exited(137).prints("");
        let hidden = run("hidepid=invisible", script);
        // A control group works without /proc.
        match hidden.code {
            Some(137) => hidden.prints(""),
            _ => hidden.refused(125, &["cannot limit memory here", "hidepid"]).prints(""),
        };
    });
}

#[test]
fn processor_time_ends_with_sigxcpu_and_then_sigkill() {
    in_worlds(|world| {
        let busy = |trap: &str| format!("{trap}while :; do :; done");
        for (script, code) in [(busy(""), 128 + libc::SIGXCPU), (busy("trap : XCPU; "), 128 + libc::SIGKILL)]
        {
            let out = world.sbx(["run", "--max-cpu", "1s", "--", "bash", "-c", &script]).run().exited(code);
            out.says("more than 1s of processor time; allow more with --max-cpu");
        }
        let killed = world.sbx(["run", "--max-cpu", "1s", "--", "sh", "-c", "kill -9 $$"]).run();
        let killed = killed.exited(128 + libc::SIGKILL);
        assert!(!killed.err().contains("processor time"), "{killed}");
        world.sbx(["run", "--max-cpu", "1s", "--", "sleep", "2"]).run().success().silent();
    });
}

#[test]
fn size_and_number_of_files_are_limited() {
    in_worlds(|world| {
        let write = |bytes: &str| {
            world.sbx(["run", "--max-file-size", "64K", "--", "head", "-c", bytes, "/dev/zero"])
        };
        // The limit does not apply to the caller's streams, which are pipes here.
        write("1000000").run().success();
        let script = "head -c $1 /dev/zero >big";
        let run = |bytes: &str| {
            world.sbx(["run", "--max-file-size", "64K", "--", "sh", "-c", script, "sh", bytes]).run()
        };
        run("65537").exited(128 + libc::SIGXFSZ);
        assert_eq!(world.path("big").metadata().unwrap().len(), 65_536);
        // The command itself reaches the limit, not a child of a shell.
        let dd = ["dd", "if=/dev/zero", "of=big", "bs=65537", "count=1", "status=none"];
        let out = world.sbx([&["run", "--max-file-size", "64K", "--"], &dd[..]].concat()).run();
        out.exited(128 + libc::SIGXFSZ).says("64 KiB; allow more with --max-file-size");
        run("65536").success().silent();
        for limit in ["8", "10", "64"] {
            let open = "import os\nfor n in range(3, 100):\n  try: os.open('/dev/null', 0)\n  \
                        except OSError as e: break\nprint(n)";
            let out = world.sbx(["run", "--max-open-files", limit, "--", "python3", "-c", open]).run();
            out.success().prints(&format!("{limit}\n"));
        }
        for profile in ["workspace", "minimal"] {
            world.sbx(["run", "-p", profile, "--max-open-files", "4", "--", "true"]).run().success().silent();
        }
        for extends in ["workspace", "minimal"] {
            let own = format!(r#"{{"extends": "{extends}", "limits": {{"open_files": 4}}}}"#);
            world.write("own.json", own);
            world.run("./own.json", ["true"]).run().success().silent();
        }
        let few = ["no command starts with 3", "are 4"];
        world.sbx(["run", "--max-open-files", "3", "--", "true"]).run().refused(125, &few);
        world.write("own.json", r#"{"extends": "workspace", "limits": {"open_files": 3}}"#);
        let checked = world.sbx(["profile", "check", "./own.json"]).run();
        assert!(checked.err().contains("limits.open_files"), "{checked}");
        world.run("./own.json", ["true"]).run().refused(125, &few);
    });
}

#[test]
fn verbose_names_the_mechanism_of_each_limit() {
    let world = World::new(&User::ordinary());
    let flags = ["-t", "90s", "--max-processes", "50", "--max-memory", "1G", "--max-open-files", "64"];
    let out = world.sbx(["run", "-v"]).args(flags).args(["--", "true"]).run().success();
    for (limit, means) in [
        ("timeout 90s", &["supervisor"][..]),
        ("processes 50", &["notification", "cgroup"]),
        ("memory 1073741824", &["supervisor", "cgroup"]),
        ("open files 64", &["rlimit"]),
    ] {
        let found = means.iter().any(|means| out.err().contains(&format!("{limit} ({means})")));
        assert!(found, "{limit}: {out}");
    }
}

#[test]
fn limits_that_make_no_sense_are_refused_in_one_sentence() {
    let world = World::new(&User::ordinary());
    let refused = |flags: &[&str], words: &[&str]| {
        let out = world.sbx(["run"]).args(flags).args(["--", "touch", "ran"]).run();
        let out = out.refused(125, words);
        assert_eq!((out.sbx_lines().len(), out.own_lines().len()), (1, 0), "{out}");
        assert!(!world.exists("ran"), "{out}");
    };
    for flag in [
        "--timeout",
        "--max-output",
        "--max-processes",
        "--max-memory",
        "--max-cpu",
        "--max-open-files",
        "--max-file-size",
    ] {
        for value in ["0", "-5", "x", "1X", "99999999999999999999999999", "1 ", "\u{1b}[31m", "1.2.3"] {
            refused(&[flag, value], &[flag]);
        }
        world.sbx(["run", flag, "none", "--", "true"]).run().success().silent();
    }
    refused(&["-t", "0"], &["--timeout", "zero", "none"]);
    for value in ["5s", "none"] {
        world.sbx(["run", "--kill-after", value, "--", "true"]).run().success().silent();
    }
    refused(&["-t", "5s", "--kill-after", "none"], &["--kill-after", "SIGTERM"]);
    refused(&["-t", "5s", "--kill-after", "0"], &["--kill-after", "greater than zero", "1ms"]);
    for flag in [["-t", "5s"], ["--kill-after", "5s"], ["--max-output", "1M"], ["--max-memory", "1G"]] {
        refused(&["--exec", flag[0], flag[1]], &["--exec", "supervisor"]);
    }
    for flag in [["--max-processes", "5"], ["--max-output", "1M"], ["--max-memory", "1G"]] {
        refused(&["--keep-background", flag[0], flag[1]], &["--keep-background", flag[0]]);
    }
    refused(&["--keep-background", "--exec"], &["contradict"]);
    world.write("zero.json", r#"{"extends": "workspace", "limits": {"processes": 0}}"#);
    refused(&["-p", "./zero.json"], &["limits.processes", "zero"]);
}
