//! How runs of a pool end, and pools.

use super::{Pool, cold, place, tree, warm};
use sbx_tests::{in_worlds, promise, sys};
use std::fs::File;
use std::io::{PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A pipe that takes nothing until somebody reads.
fn full_pipe() -> (PipeReader, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    let writer = OwnedFd::from(writer);
    sys::never_wait(&writer);
    let mut file = File::from(writer);
    while file.write(&[0; 4096]).is_ok() {}
    (reader, file.into())
}

/// Requires that soon nobody can write to a pipe any more.
#[track_caller]
fn nobody_has(reader: PipeReader) {
    let reader = OwnedFd::from(reader);
    sys::never_wait(&reader);
    let mut reader = File::from(reader);
    let until = Instant::now() + Duration::from_secs(10);
    while !matches!(reader.read(&mut [0; 65536]), Ok(0)) {
        assert!(Instant::now() < until, "somebody still has the pipe");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The reader of the report, and that of the output.
#[test]
fn a_slow_reader_is_not_waited_for_where_the_caller_wants_an_end() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &["--max-output", "1M"]);
        for (flags, number) in [(&["--report-fd", "9"][..], 9), (&[], 2)] {
            for signal in [libc::SIGTERM, libc::SIGKILL] {
                std::thread::sleep(Duration::from_millis(300));
                let (reader, writer) = full_pipe();
                let running = pool.cmd(flags, "echo up; echo end >&2").pass_fd(writer, number).start();
                running.wait_for("up");
                std::thread::sleep(Duration::from_millis(300));
                running.signal(signal);
                let out = running.wait();
                assert_eq!(out.code == Some(125), number == 9 && signal == libc::SIGTERM, "{out}");
                nobody_has(reader);
            }
        }
    });
}

/// What comes when the command has ended, and its status is not told yet.
#[test]
fn a_signal_that_comes_too_late_changes_no_status() {
    in_worlds(|world| {
        let pool = Pool::start(world, "2", &[]);
        for _ in 0..30 {
            let running = pool.cmd(&[], "exit 7").start();
            let pid = running.pid();
            for _ in 0..100 {
                sys::kill(pid, libc::SIGWINCH);
                std::thread::sleep(Duration::from_micros(500));
            }
            running.wait().exited(7);
        }
    });
}

#[test]
fn no_pool_that_starts_while_another_one_ends_is_lost() {
    in_worlds(|world| {
        for round in 0..8 {
            let first = Pool::start(world, "2", &[]);
            let stop = place(world.sbx(["pool", "stop"]), world).start();
            std::thread::sleep(Duration::from_millis(round * 4));
            let second = place(world.sbx(["pool", "start", "--size", "1"]), world).run().success();
            stop.wait().success();
            // It was stopped, or there is one that takes commands and can be stopped.
            let pid = second.out().trim().rsplit(' ').next().and_then(|pid| pid.parse::<i32>().ok()).unwrap();
            let known = place(world.sbx(["pool", "status"]), world).run().success();
            assert_eq!(tree(pid).is_empty(), !known.out().contains(&pid.to_string()), "{second} {known}");
            drop(first);
            assert!(tree(pid).is_empty());
        }
        cold(warm(world, &["-v"], "exit 3"), "no pool").exited(3);
    });
}

/// They have parts of their own of the package stores.
#[test]
fn runs_that_wait_leave_stores_to_others() {
    promise!(namespaces);
    in_worlds(|world| {
        world.write(world.home.join(".konan/package"), "theirs\n");
        let pool = Pool::start(world, "20", &[]);
        let until = Instant::now() + Duration::from_secs(60);
        while pool.runs().len() < 20 {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(20));
        }
        world.sbx(["run", "--", "sh", "-c", ": > ~/.konan/new"]).run().success();
    });
}
