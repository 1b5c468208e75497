//! A command in a run of a pool is what it is in a run of its own.

use super::lasting::settled;
use super::{Pool, children, cold, place};
use sbx_client::Sandbox;
use sbx_tests::{User, World, in_worlds, need, processes, stage};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_command_runs_as_in_a_run_of_its_own() {
    in_worlds(|world| {
        world.write("file", "inside\n");
        let pool = Pool::start(world, "2", &[]);
        let script =
            "cat file; echo \"$0 $# $1\"; pwd; id -u; cat <&0; echo err >&2; echo made > made; exit 7";
        for _ in 0..5 {
            let words = ["run", "--pool", "-v", "--", "sh", "-c", script, "name", "a  b"];
            let out = pool.within(|| place(world.sbx(words), world).stdin("typed\n").run()).exited(7);
            let expected =
                format!("inside\nname 1 a  b\n{}\n{}\ntyped\n", world.workspace.display(), world.user.id);
            assert_eq!(out.out(), expected);
            assert!(out.own_lines() == ["err"], "{out}");
        }
        assert_eq!(world.read("made").unwrap(), "made\n");
        // Who it belongs to is who asked.
        assert_eq!(world.path("made").metadata().unwrap().uid(), world.user.id);
        // A secret stays one.
        let secret = format!("cat {}/.ssh/id_rsa", world.home.display());
        let out = pool.sh(&secret).failed();
        assert!(!out.out().contains(sbx_tests::world::SECRET), "{out}");
    });
}

#[test]
fn programs_are_examined_when_the_command_comes() {
    if !need(&["busybox"]) {
        return;
    }
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &["--static", "block"]);
        // Also where its run is planned already, for any program of the system.
        settled(&pool);
        let busybox = ["run", "--pool", "-v", "--static", "block", "--", "busybox", "true"];
        cold(place(world.sbx(busybox), world), "statically linked").exited(126);
        cold(
            place(world.sbx(["run", "--pool", "-v", "--static", "block", "--", "no-such"]), world),
            "no-such",
        )
        .exited(127);
        world.write("text", "no program\n");
        cold(place(world.sbx(["run", "--pool", "-v", "--static", "block", "--", "./text"]), world), "text")
            .exited(126);
        let program = world.subject("attempt-static");
        let words = ["run", "--pool", "-v", "--static", "block", "--", program.to_str().unwrap()];
        cold(place(world.sbx(words), world), "statically linked").exited(126);
        world.script("own", "#!/bin/sh\necho own $1\n");
        let words = ["run", "--pool", "-v", "--static", "block", "--", "./own", "x"];
        pool.within(|| place(world.sbx(words), world).run()).success().prints("own x\n");
    });
}

#[test]
fn reports_lines_and_limits_are_those_of_the_command() {
    in_worlds(|world| {
        let pool = Pool::start(world, "2", &["--timeout", "2s", "--max-output", "10"]);
        // Longer than the command may take: the time begins with it.
        std::thread::sleep(Duration::from_millis(2500));
        pool.sh("sleep 1").success();
        let started = Instant::now();
        pool.sh("sleep 60").exited(124).says("timed out after 2s");
        assert!(started.elapsed() < Duration::from_secs(20));
        let out = pool.sh("head -c 1000 /dev/zero | tr '\\0' x");
        assert!(out.stdout.len() < 200, "{out}");
        let report = world.outside.join("report.json");
        let place = report.to_str().unwrap().to_string();
        let script = "unshare -U true 2>/dev/null; exit 3";
        pool.within(|| pool.cmd(&["-v", "--report", &place], script).run()).exited(3).says("blocked");
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
        assert_eq!((json["exit_status"].as_i64(), json["cause"].as_str()), (Some(3), Some("exited")));
        assert_eq!(json["command"][2], script);
        assert!(json["violations_total"].as_i64().unwrap() > 0, "{json}");
        assert!(json["duration_ms"].as_f64().unwrap() < 2000.0, "{json}");
        let pid = json["pid"].as_i64();
        assert!(pid.is_some_and(|pid| pid > 1), "{json}");
    });
}

#[test]
fn a_report_goes_to_the_callers_descriptor() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        pool.within(|| {
            let (reader, writer) = std::io::pipe().unwrap();
            let cmd = pool.cmd(&["-v", "--report-fd", "9"], "exit 4").pass_fd(OwnedFd::from(writer), 9);
            let out = cmd.run();
            if out.err().contains("no warm start") {
                return out;
            }
            let json: serde_json::Value = serde_json::from_reader(reader).unwrap();
            assert_eq!(json["exit_status"], 4);
            out
        })
        .exited(4);
    });
}

#[test]
fn signals_reach_the_command() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        for (number, status) in [(libc::SIGTERM, 9), (libc::SIGINT, 9), (libc::SIGUSR1, 5)] {
            let script =
                "trap 'exit 9' TERM INT; trap 'exit 5' USR1; echo ready; while :; do sleep 0.05; done";
            let running = pool.cmd(&[], script).start();
            running.wait_for("ready");
            running.signal(number);
            running.wait().exited(status);
        }
        // As a terminal does it.
        let running = pool.cmd(&[], "trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done").start();
        running.wait_for("ready");
        running.signal_group(libc::SIGINT);
        running.wait().exited(9);
        // Who asked is gone, and so is the command.
        let marker = processes::marker();
        let running = pool.cmd(&[], &format!("echo ready; sh -c 'sleep 300; : {marker}'; :")).start();
        running.wait_for("ready");
        processes::wait_for(&marker, 1);
        running.signal(libc::SIGKILL);
        drop(running.wait());
        processes::none_left(&marker);
        // A signal ends the command itself.
        pool.sh("kill -SEGV $$").exited(128 + libc::SIGSEGV);
    });
}

#[test]
fn what_cannot_be_served_starts_as_always() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        cold(pool.cmd(&["-v", "--exec"], "exit 3"), "--exec").exited(3);
        let file = fs::File::open("/dev/null").unwrap();
        cold(pool.cmd(&["-v", "--pass-fd", "9"], "exit 3").pass_fd(file.into(), 9), "descriptors").exited(3);
        // Without a word, unless one is asked for.
        pool.cmd(&["--net", "none"], "exit 3").run().exited(3).silent();
        let (running, _terminal) = pool.cmd(&["-v"], "exit 3").start_on_terminal();
        let out = running.wait().exited(3);
        assert!(out.out().contains("it has a terminal"), "{out}");
        // Without a pool nothing changes.
        world.sbx(["run", "-v", "--", "sh", "-c", "exit 3"]).env("SBX_POOL", "1").run().exited(3);
        world.sbx(["run", "--", "true"]).env("SBX_POOL", "yes").run().refused(125, &["SBX_POOL", "yes"]);
        for flags in [
            &["-p", "minimal"][..],
            &["--exec"],
            &["--pass-fd", "9"],
            &["--connect", "example.org"],
            &["--deny-calls", "read"],
        ] {
            place(world.sbx(["pool", "start"].iter().chain(flags)), world).run().refused(125, &["pool"]);
        }
    });
}

#[test]
fn the_library_keeps_a_pool() {
    let world = World::new(&User::current());
    let sandbox = Sandbox::new("workspace").program(stage::sbx()).workspace(&world.workspace);
    let pool = sandbox.warm(2).unwrap();
    let id = i32::try_from(pool.id()).unwrap();
    for number in 0..4 {
        // Two of them wait, and are not the same after each command.
        let until = Instant::now() + Duration::from_secs(20);
        while children(id).len() < 2 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let before = children(id);
        let script = format!("echo {number}; echo {number} > made; mkdir /usr/made; exit {number}");
        let command = pool.command("sh").args(["-c", &script]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let out = stage::starting(|| command.spawn()).unwrap().wait_with_output().unwrap();
        assert_eq!((out.report.exit_status, out.stdout), (number, format!("{number}\n").into_bytes()));
        assert_eq!(world.read("made").unwrap(), format!("{number}\n"));
        let is_gone = || before.iter().any(|run| !children(id).contains(run));
        while !is_gone() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_gone(), "no run of the pool took the command");
    }
    drop(pool);
    assert!(children(id).is_empty());
    let error = Sandbox::new("minimal").program(stage::sbx()).warm(1).unwrap_err();
    assert!(error.to_string().contains("cannot keep a pool"), "{error}");
}

/// A run that has just got a command is none that waits, even if the pool has not heard of that yet.
#[test]
fn a_pool_ends_without_the_commands_that_begin_just_then() {
    in_worlds(|world| {
        for delay in [0, 3, 6, 9, 12, 15, 20] {
            let pool = Pool::start(world, "1", &[]);
            let going = pool.cmd(&[], "echo begun; exec sleep 60").start();
            std::thread::sleep(Duration::from_millis(delay));
            let began = Instant::now();
            place(world.sbx(["pool", "stop"]), world).run().success();
            assert!(began.elapsed() < Duration::from_secs(5), "after {delay} ms");
            going.wait_for("begun");
            going.kill();
        }
    });
}
