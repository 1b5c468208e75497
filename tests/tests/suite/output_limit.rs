//! The output limit: head, tail and a count, and nobody is blocked.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use sbx_tests::{Output, User, World, as_users, in_worlds, need, stage};

/// `sbx run FLAGS -- sh -c SCRIPT`, inside a shell's line.
fn line(flags: &str, script: &str) -> String {
    format!("{} run {flags} -- sh -c '{script}'", stage::sbx().display())
}

fn bash(world: &World, line: &str) -> Output {
    world.bare(["bash", "-c", line]).run()
}

/// The most memory that a process has had, without what it has of files: its code, which is large unless optimised.
fn peak_kilobytes(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        value.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    field("VmHWM:") - field("RssFile:")
}

#[track_caller]
fn wait_for_file(world: &World, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(50);
    while !world.exists(name) {
        assert!(Instant::now() < deadline, "{name} never appeared");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_flood_leaves_head_and_tail_in_little_memory() {
    in_worlds(|world| {
        let script = "yes 0123456 | head -c 200000000; echo >flooded; while [ ! -e go ]; do sleep 0.02; done";
        let running = world.sbx(["run", "--max-output", "1MiB", "--", "sh", "-c", script]).start();
        wait_for_file(world, "flooded");
        let peak = peak_kilobytes(running.pid());
        world.write("go", "");
        let out = running.wait().success();
        let half = "0123456\n".repeat(65_536);
        let expected = format!("{half}[sbx: {} bytes left out]\n{half}", 200_000_000 - (1 << 20));
        assert!(out.out() == expected, "wrong output: {} bytes", out.stdout.len());
        // A mebibyte of output at each end of the pipe, and what a run takes anyway.
        assert!(peak < 5 * 1024, "the supervisor used {peak} kB");
    });
}

#[test]
fn output_below_the_limit_is_not_changed() {
    let world = World::new(&User::ordinary());
    let all: String = (1..=1000).map(|n| format!("{n}\n")).collect();
    for limit in ["3893", "1M", "none", "8388607T"] {
        let out = world.sbx(["run", "--max-output", limit, "--", "seq", "1000"]).run();
        out.success().silent().prints(&all);
    }
    let out = world.sbx(["run", "--max-output", "3892", "--", "seq", "1000"]).run().success();
    assert!(out.out().contains("[sbx: 1 byte left out]\n"), "{out}");
}

#[test]
fn each_stream_has_its_own_limit() {
    in_worlds(|world| {
        for profile in ["workspace", "network"] {
            let python = "import os\nos.write(1, b'o' * 3000)\nos.write(2, b'e' * 30)";
            let out =
                world.sbx(["run", "-p", profile, "--max-output", "100", "--", "python3", "-c", python]).run();
            let half = "o".repeat(50);
            let out = out.success().prints(&format!("{half}\n[sbx: 2900 bytes left out]\n{half}"));
            assert_eq!(out.err(), "e".repeat(30));
        }
    });
}

#[test]
fn streams_to_one_file_have_one_limit_and_keep_their_order() {
    let world = World::new(&User::ordinary());
    let script = "i=0; while [ $i -lt 200 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";
    let ordered: String = (0..200).map(|n| format!("o{n}\ne{n}\n")).collect();
    bash(&world, &format!("{} 2>&1", line("--max-output 1M", script))).success().prints(&ordered);
    let out = bash(&world, &format!("{} 2>&1", line("--max-output 100", script))).success();
    let left_out = format!("[sbx: {} bytes left out]", ordered.len() - 100);
    assert_eq!(out.out().matches("left out]").count(), 1, "{out}");
    assert!(out.out().contains(&left_out) && out.out().ends_with("o199\ne199\n"), "{out}");
    // One file that both append to, and two files.
    bash(&world, &format!("{} >both 2>&1; cat both", line("--max-output 1M", script)))
        .success()
        .prints(&ordered);
    let apart = format!("{} >out 2>err; cat out err", line("--max-output 1M", "echo o; echo e >&2"));
    bash(&world, &apart).success().prints("o\ne\n");
}

#[test]
fn the_head_does_not_wait_for_the_end() {
    let world = World::new(&User::ordinary());
    let script = "echo early; while [ ! -e go ]; do sleep 0.02; done; echo late";
    let running = world.sbx(["run", "--max-output", "1K", "--", "sh", "-c", script]).start();
    running.wait_for("early\n");
    world.write("go", "");
    running.wait().success().prints("early\nlate\n");
}

#[test]
fn output_after_the_end_of_the_command_is_passed_on() {
    let world = World::new(&User::ordinary());
    let script = "(sleep 0.1; echo late; echo later >&2) & echo early";
    let out = world.sbx(["run", "--max-output", "20", "--", "sh", "-c", script]).run().success();
    assert_eq!((out.out(), out.err()), ("early\nlate\n".to_string(), "later\n".to_string()));
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_usual() {
    need!("bash");
    in_worlds(|world| {
        // In the head, at its end, and in the tail.
        for reader in ["head -n 1", "head -c 5120", "head -c 5000"] {
            for profile in ["minimal", "workspace"] {
                let sbx = stage::sbx().display().to_string();
                let line = format!(
                    "{sbx} run -p {profile} --max-output 10K -- yes | {reader} >/dev/null; echo ${{PIPESTATUS[0]}}"
                );
                bash(world, &line).success().prints("141\n");
            }
        }
    });
}

#[test]
fn a_full_disk_ends_the_run_with_a_sentence() {
    in_worlds(|world| {
        let script = "yes | head -c 100000; sleep 0.3; echo >survived; sleep 50";
        let out = bash(world, &format!("{} >/dev/full", line("--max-output 10K", script)));
        out.exited(125).says("sbx: cannot pass stdout on: write: no space left on device");
        assert!(!world.exists("survived"));
        // Where only the tail is refused, the command has ended by then.
        let out = bash(world, &format!("{} >/dev/full", line("-q --max-output 10", "printf 123456")));
        out.exited(125).says("no space left on device");
        bash(world, &format!("{} >/dev/null", line("--max-output 10K", "seq 10000"))).success().silent();
    });
}

#[test]
fn a_slow_reader_blocks_no_other_stream() {
    in_worlds(|world| {
        world.write("file", "");
        // A short wait, so that the pipe has some room when more comes than it holds; the supervisor answers chmod.
        let script =
            "printf x; sleep 0.2; (yes | head -c 1000000) & sleep 0.2; chmod 600 file && echo >changed; wait";
        let reader = "{ while [ ! -e changed ]; do sleep 0.02; done; wc -c; }";
        let out = bash(world, &format!("{} | {reader}", line("--max-output 1G", script)));
        out.success().prints("1000001\n");
    });
}

#[test]
fn a_command_is_not_blocked_beyond_the_head() {
    let world = World::new(&User::ordinary());
    let script = "yes | head -c 10000000; echo >written";
    let reader = "{ while [ ! -e written ]; do sleep 0.02; done; wc -c; }";
    let out = bash(&world, &format!("{} | {reader}", line("--max-output 20K", script))).success();
    let marker = "[sbx: 9979520 bytes left out]\n".len();
    assert_eq!(out.out().trim(), (20_480 + marker).to_string());
}

#[test]
fn after_a_timeout_an_absent_reader_is_not_waited_for() {
    let world = World::new(&User::ordinary());
    let flood = line("-t 1s --kill-after 1s --max-output 1M", "yes");
    let out = bash(
        &world,
        &format!("({flood}; echo $? >status) | {{ while [ ! -e status ]; do sleep 0.02; done; }}"),
    );
    out.success();
    assert_eq!(world.read("status").as_deref(), Some("124\n"));
}

#[test]
fn an_absent_reader_is_not_waited_for_where_the_command_has_ended_in_time() {
    in_worlds(|world| {
        // Head and tail are more than a pipe holds; the head alone fits, so the command ends at once.
        let flags = ["run", "-t", "2s", "--kill-after", "1s", "--max-output", "100K"];
        let command = [&flags[..], &["--", "head", "-c", "900000", "/dev/zero"]].concat();
        let (mut reader, writer) = std::io::pipe().unwrap();
        world.sbx(&command).pass_fd(writer.into(), 1).run().exited(124).says("timed out after 2s");
        let mut out = Vec::new();
        reader.read_to_end(&mut out).unwrap();
        assert!(out.len() <= 65_536, "{}", out.len());
        // A reader that takes something now and then is waited for.
        let (mut reader, writer) = std::io::pipe().unwrap();
        let running = world.sbx(&command).pass_fd(writer.into(), 1).start();
        let mut out = Vec::new();
        for _ in 0..6 {
            std::thread::sleep(Duration::from_millis(700));
            let mut some = vec![0; 8192];
            reader.read_exact(&mut some).unwrap();
            out.extend(some);
        }
        reader.read_to_end(&mut out).unwrap();
        running.wait().success();
        assert!(out.len() > 102_400, "{}", out.len());
    });
}

#[test]
fn a_terminal_is_not_limited_and_that_is_reported() {
    let world = World::new(&User::ordinary());
    let words = ["run", "--max-output", "10", "--", "sh", "-c", "test -t 1 && test -t 2 && seq 20"];
    let (running, terminal) = world.sbx(words).start_on_terminal();
    running.wait_for("20");
    let out = running.wait().success();
    drop(terminal);
    assert!(out.out().contains("stdout is a terminal") && !out.out().contains("left out"), "{out}");
}

#[test]
fn closed_streams_stay_closed() {
    let world = World::new(&User::ordinary());
    let script = "ls -l /proc/self/fd >seen";
    bash(&world, &format!("{} >&-", line("--max-output 10K", "echo x || echo closed >&2"))).says("closed");
    bash(&world, &format!("{} 2>&-", line("--max-output 10K", script))).success();
    let seen = world.read("seen").unwrap();
    // The command inherits nothing of the supervisor's, so the first free number is the listing's own.
    assert!(seen.contains(" 2 -> /proc/") && !seen.contains(" 3 -> "), "{seen}");
}

#[test]
fn a_signal_ends_the_wait_for_a_slow_reader() {
    need!("bash");
    as_users(|user| {
        for signal in ["TERM", "INT", "HUP"] {
            let world = World::new(user);
            // Head and tail are more than a pipe holds, and nobody reads; the head alone fits, so the command ends.
            let run = line("--max-output 100K", "head -c 900000 /dev/zero; : >ended");
            let script = format!(
                "mkfifo slow; exec 3<>slow; set -m; {run} >&3 & pid=$!; \
                 for i in $(seq 1000); do [ -e ended ] && break; sleep 0.02; done; sleep 1; \
                 kill -{signal} $pid && echo waited; wait $pid; echo $?"
            );
            bash(&world, &script).success().prints("waited\n0\n");
        }
    });
}

#[test]
fn a_socket_that_is_also_standard_input_is_reported() {
    in_worlds(|world| {
        let run = |input: bool| {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let (other, _its_end) = UnixStream::pair().unwrap();
            let first = if input { theirs.try_clone().unwrap() } else { other };
            let cmd = world.sbx(["run", "--max-output", "1K", "--", "head", "-c", "5000", "/dev/zero"]);
            let running = cmd.pass_fd(first.into(), 0).pass_fd(theirs.into(), 1).start();
            let mut out = Vec::new();
            ours.read_to_end(&mut out).unwrap();
            assert!(out.len() < 1100, "{}", out.len());
            running.wait().success()
        };
        run(true).says("stdout shares a socket with standard input");
        run(false).silent();
        let run = |redirections: &str| {
            let words = line("--max-output 1K", "head -c 5000 /dev/zero");
            bash(
                world,
                &format!(
                    "[ -e fifo ] || mkfifo fifo; exec 5<>fifo; {words} {redirections}; cat file other 2>/dev/null"
                ),
            )
        };
        run("<&5 >&5").says("stdout shares a pipe with standard input");
        run("<>file >&0").says("stdout shares a file with standard input");
        assert!(run("</dev/null >&5").err().is_empty());
        assert!(run("<file >other").err().is_empty());
        assert!(run("<file >>file").err().is_empty());
    });
}
