//! Many runs, to find what goes wrong once in a hundred. They take minutes, and so have to be asked for by name:
//! `cargo test -p sbx-tests --test suite long:: -- --ignored --nocapture --test-threads 1`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use sbx_tests::{User, World, in_worlds, processes};

const TREES: usize = 100;
const RUNS: usize = 1_024;
const AT_A_TIME: usize = 32;

#[test]
#[ignore = "takes minutes"]
fn trees_of_two_hundred_processes_end_each_time() {
    let world = World::new(&User::ordinary());
    let attempt = world.program("attempt");
    let mut slowest = Duration::ZERO;
    for round in 0..TREES {
        let killed = round % 2 == 1;
        let marker = processes::marker();
        let script = format!(
            "i=0; while [ $i -lt 100 ]; do i=$((i+1)); (trap '' TERM; exec {attempt} sleep {marker}) & \
             (trap '' TERM HUP; setsid {attempt} sleep {marker} >/dev/null 2>&1 </dev/null &); done; \
             trap '' TERM; while :; do sleep 1; done"
        );
        let time = if killed { "50s" } else { "6s" };
        let running =
            world.sbx(["run", "-t", time, "--kill-after", "500ms", "--", "sh", "-c", &script]).start();
        // The shell that carries the script has the marker too.
        processes::wait_for(&marker, 200);
        let start = Instant::now();
        if killed {
            running.kill();
        } else {
            running.wait().exited(124);
        }
        let ended = Instant::now();
        processes::none_left(&marker);
        let since = if killed { start } else { ended };
        slowest = slowest.max(since.elapsed());
    }
    eprintln!("{TREES} trees of 200 processes: all gone, the slowest {slowest:?} after its end");
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_runs_leave_nothing() {
    in_worlds(|world| {
        let marker = processes::marker();
        let (scratch, groups) = (world.home.join("tmp"), control_groups());
        world.make_dir(&scratch);
        let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
        let (before, start) = (descriptors(), Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..AT_A_TIME {
                scope.spawn(|| {
                    for _ in 0..RUNS.div_ceil(AT_A_TIME) {
                        let script = format!("echo x >$TMPDIR/file; sh -c 'sleep 5; : {marker}' & echo done");
                        let run = world.sbx(["run", "--max-output", "1M", "--", "sh", "-c", &script]);
                        run.env("TMPDIR", &scratch).run().success().prints("done\n");
                    }
                });
            }
        });
        let took = start.elapsed();
        processes::none_left(&marker);
        let left: Vec<_> = fs::read_dir(&scratch).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "scratch directories were left: {left:?}");
        assert_eq!(descriptors(), before, "descriptors");
        assert_eq!(control_groups(), groups, "control groups");
        eprintln!("{RUNS} runs, {AT_A_TIME} at a time: nothing left, {took:?}");
    });
}

/// The number of control groups that runs have made.
fn control_groups() -> usize {
    fn count(directory: &Path) -> usize {
        let Ok(entries) = fs::read_dir(directory) else { return 0 };
        let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        directories
            .map(|entry| {
                let own = entry.file_name().to_string_lossy().starts_with("sbx");
                usize::from(own) + count(&entry.path())
            })
            .sum()
    }
    count(Path::new("/sys/fs/cgroup"))
}
