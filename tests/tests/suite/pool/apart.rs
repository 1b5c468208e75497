//! Two commands of a pool share nothing; and the runs that wait live as long as their pool.

use super::{Pool, children, cold, place, socket, tree, warm};
use sbx_tests::{in_worlds, need, processes, sys};
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn two_commands_share_nothing_but_what_runs_share() {
    if !need(&["python3"]) {
        return;
    }
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        let leave = "
import os, socket, ctypes, subprocess, resource
open('/tmp/left', 'w').write('x'); open('/dev/shm/left', 'w').write('x')
libc = ctypes.CDLL(None, use_errno=True)
print(libc.shmget(4711, 4096, 0o1600))
s = socket.socket(socket.AF_UNIX); s.bind('\\0left'); s.listen()
libc.syscall(248, b'user', b'left', b'x', 1, -3)
os.umask(0); resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
os.chdir('/'); os.environ['LEFT'] = 'x'
open('kept' if False else os.path.join(os.environ['PWD'], 'kept'), 'w').write('x')
if os.fork() == 0:
    os.setsid()
    import time
    time.sleep(300)
print('left')
";
        let look = "
import os, socket, ctypes, resource
libc = ctypes.CDLL(None, use_errno=True)
found = [os.path.exists('/tmp/left'), os.path.exists('/dev/shm/left'), libc.shmget(4711, 4096, 0o600) >= 0]
s = socket.socket(socket.AF_UNIX)
found.append(s.connect_ex('\\0left') == 0)
found.append(libc.syscall(249, b'user', b'left', 0, 0) > 0)
found.append('LEFT' in os.environ)
m = os.umask(0)
found.append(m != 0o22)
found.append(resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 64)
found.append(len([p for p in os.listdir('/proc') if p.isdigit()]) > 3)
found.append(os.getcwd() != os.environ['PWD'])
found.append(sorted(os.listdir('/proc/self/fd')) != ['0', '1', '2', '3', '4'])
print(found, os.path.exists('kept'))
";
        world.write("leave.py", leave);
        world.write("look.py", look);
        // The control: in one run, all of it is found. What is left in the workspace is found by both.
        let both = "python3 leave.py >/dev/null & sleep 1; python3 look.py";
        let control = pool.sh(both);
        assert!(control.out().contains("[True, True, True, True"), "{control}");
        for _ in 0..3 {
            assert!(pool.sh("python3 leave.py").out().contains("left"));
            let nothing = format!("[{}] True\n", ["False"; 11].join(", "));
            pool.sh("python3 look.py").success().prints(&nothing);
        }
    });
}

#[test]
fn each_command_has_its_own_processes_and_session() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        let marker = processes::marker();
        for _ in 0..2 {
            // Nothing is seen of others, and nothing outlives its command.
            let script = format!("sh -c 'sleep 300; : {marker}' & echo $$ $(cut -d' ' -f6 /proc/self/stat)");
            let out = pool.sh(&script).success();
            let out = out.out();
            let (process, session) = out.trim().split_once(' ').unwrap();
            assert_eq!(process, session);
            processes::none_left(&marker);
        }
    });
}

#[test]
fn the_environment_is_the_callers_filtered() {
    in_worlds(|world| {
        let pool = Pool::start(world, "2", &["--inherit-env"]);
        for mode in ["one", "two"] {
            let cmd = || pool.cmd(&["-v"], "echo ${MODE-unset} ${AWS_SECRET_ACCESS_KEY-unset} .");
            let cmd = || cmd().env("MODE", mode).env("AWS_SECRET_ACCESS_KEY", "secret");
            let out = pool.within(|| cmd().run()).success();
            assert!(out.out().starts_with(&format!("{mode} unset ")), "{out}");
        }
    });
}

#[test]
fn runs_end_with_their_pool_and_commands_do_not() {
    in_worlds(|world| {
        world.make_dir(&world.path(".git"));
        let before: Vec<_> =
            fs::read_dir(&world.workspace).unwrap().flatten().map(|e| e.file_name()).collect();
        for kill in [true, false] {
            let pool = Pool::start(world, "3", &[]);
            assert_eq!(pool.runs().len(), 3);
            let running = pool.cmd(&[], "echo ready; sleep 1; echo done").start();
            running.wait_for("ready");
            // Two runs of three processes wait, and a third one that takes the used one's place is under way.
            let all = tree(pool.pid);
            assert!(all.len() >= 6, "{all:?}");
            if kill {
                sys::kill(pool.pid, libc::SIGKILL);
            } else {
                place(world.sbx(["pool", "stop"]), world).run().success().prints("1 pool ended\n");
            }
            let out = running.wait().success();
            assert!(out.out().contains("done"), "{out}");
            let until = Instant::now() + Duration::from_secs(10);
            let alive = |pid: &i32| {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                (stat.contains(" (sbx) ") && !stat.contains(") Z")).then_some(stat)
            };
            while let Some(stat) = all.iter().find_map(alive) {
                assert!(Instant::now() < until, "a process outlived the pool of {all:?}: {stat}");
                std::thread::sleep(Duration::from_millis(10));
            }
            // Nothing stays in the workspace, and commands start as always.
            let after: Vec<_> =
                fs::read_dir(&world.workspace).unwrap().flatten().map(|e| e.file_name()).collect();
            assert_eq!(before, after);
            cold(warm(world, &["-v"], "exit 3"), "no pool").exited(3);
        }
        // What was left of one that was killed is no hindrance.
        Pool::start(world, "1", &[]).sh("true").success();
    });
}

#[test]
fn a_pool_ends_when_nobody_asks() {
    in_worlds(|world| {
        let words = ["pool", "start", "--size", "1", "--idle", "300ms"];
        place(world.sbx(words), world).run().success();
        let socket = socket(world);
        let until = Instant::now() + Duration::from_secs(20);
        while socket.exists() {
            assert!(Instant::now() < until, "the pool goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
        place(world.sbx(["pool", "status"]), world).run().success().prints("no pools\n");
    });
}

/// Runs that give way to others are no sign that somebody asks.
#[test]
fn a_pool_ends_beside_changes_when_nobody_asks() {
    in_worlds(|world| {
        let config = world.write(".git/config", "[core]\n");
        world.write(".git/HEAD", "ref: refs/heads/main\n");
        [".git/objects", ".git/refs"].iter().for_each(|name| world.make_dir(&world.path(name)));
        let words = ["pool", "start", "--size", "1", "--idle", "1s"];
        place(world.sbx(words), world).run().success();
        let socket = socket(world);
        let until = Instant::now() + Duration::from_secs(20);
        while socket.exists() {
            assert!(Instant::now() < until, "the pool goes on");
            fs::rename(world.write(".git/other", "[core]\n"), &config).unwrap();
            std::thread::sleep(Duration::from_millis(100));
        }
    });
}

#[test]
fn a_run_that_was_killed_while_it_waited_is_replaced() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        for depth in 0..3 {
            let run = (0..100).find_map(|_| {
                std::thread::sleep(Duration::from_millis(50));
                pool.runs().first().copied()
            });
            let run = run.unwrap();
            let chain = std::iter::successors(Some(run), |pid| children(*pid).first().copied());
            let victim = chain.take(depth + 1).last().unwrap();
            sys::kill(victim, libc::SIGKILL);
            // Until the kernel has taken it apart.
            std::thread::sleep(Duration::from_millis(500));
            // Whatever takes it, the command runs, once.
            pool.cmd(&[], "echo ran >> log").run().success();
            pool.sh("true").success();
        }
        assert_eq!(world.read("log").unwrap(), "ran\nran\nran\n");
    });
}

/// The process of a command waits with all that confines it in force.
#[test]
fn who_waits_is_confined() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        pool.sh("true").success();
        let is_confined = |pid: &i32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let has = |line: &str| status.lines().any(|found| found == line);
            has("Seccomp:\t2") && has("CapEff:\t0000000000000000") && has("NoNewPrivs:\t1")
        };
        let until = Instant::now() + Duration::from_secs(20);
        while !tree(pool.pid).iter().any(is_confined) {
            assert!(Instant::now() < until, "{:?}", tree(pool.pid));
            std::thread::sleep(Duration::from_millis(5));
        }
        pool.sh("exit 3").exited(3);
    });
}
