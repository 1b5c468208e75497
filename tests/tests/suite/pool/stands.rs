//! What a run has, and a pool, may go or be taken for another's while it waits.

use super::{Pool, place, runtime};
use sbx_tests::{in_worlds, need, stage, sys};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

/// As soon as a run waits, and when it has kept a plan.
fn early_and_late(pool: &Pool<'_>, act: impl Fn()) {
    act();
    pool.sh("true").success();
    // Its successor starts, and has nothing to do for a while.
    std::thread::sleep(Duration::from_secs(1));
    act();
}

/// The same file by another entry: a mount goes with the entry that it is on.
#[test]
fn a_run_that_has_lost_a_mount_gets_no_command() {
    if !need(&["git"]) {
        return;
    }
    in_worlds(|world| {
        world.bare(["git", "init", "-q", "."]).run().success();
        let [config, keep] = ["config", "keep"].map(|name| world.path(".git").join(name));
        let pool = Pool::start(world, "1", &[]);
        let lost = "no warm start: something of what the run has mounted is gone";
        // Who asks at once comes with the change, or after it.
        let at_once = || {
            let run = pool.runs().first().copied();
            run.iter().for_each(|run| sys::kill(*run, libc::SIGSTOP));
            fs::hard_link(&config, &keep).unwrap();
            fs::remove_file(&config).unwrap();
            fs::rename(&keep, &config).unwrap();
            let asks = pool.cmd(&["-v"], "echo '#planted' >> .git/config").start();
            std::thread::sleep(Duration::from_millis(30));
            run.iter().for_each(|run| sys::kill(*run, libc::SIGCONT));
            let out = asks.wait().failed();
            assert!(!world.read(".git/config").unwrap().contains("planted"));
            pool.sh("true").success();
            out.err().contains(lost)
        };
        early_and_late(&pool, || assert!((0..10).any(|_| at_once()), "nobody was told that a mount is gone"));
    });
}

#[test]
fn a_run_whose_placeholder_is_gone_gets_no_command() {
    in_worlds(|world| {
        let first =
            Pool::start(world, "1", &["--deny", "none"]).cmd(&["-v"], "! echo x > none").run().success();
        assert!(!first.err().contains("no warm start"), "{first}");
        let pool = Pool::start(world, "1", &["--deny", "none"]);
        early_and_late(&pool, || {
            fs::rename(world.path("none"), world.path("moved")).unwrap();
            let out = pool.cmd(&["-v"], "echo x > none").run().failed();
            out.says("no warm start: ");
            assert_ne!(world.read("none").unwrap_or_default(), "x\n");
            fs::remove_dir(world.path("moved")).unwrap();
            pool.sh("! echo x > none").success();
        });
    });
}

/// Who is told that no run waits has sent its descriptors already.
#[test]
fn nobody_waits_for_the_output_of_who_was_turned_away() {
    in_worlds(|world| {
        let _pool = Pool::start(world, "1", &[]);
        // Who reads to the end of the pipe waits for all that have it open.
        let script = format!("{} run --pool -v -- sh -c 'echo hi' | cat", stage::sbx().display());
        let start = Instant::now();
        // Of those that ask at once, some find no run that waits.
        let is_turned_away = |_| {
            let start = || place(world.bare(["sh", "-c", &script]), world).start();
            let all = [start(), start(), start()].map(|running| running.wait().success().prints("hi\n"));
            all.iter().any(|out| out.err().contains("none of its runs waits just now"))
        };
        assert!((0..20).any(is_turned_away), "nobody was turned away");
        assert!(start.elapsed() < Duration::from_secs(30));
    });
}

#[test]
fn of_several_pools_that_start_at_once_there_is_one() {
    in_worlds(|world| {
        place(world.sbx(["pool", "start", "--pool"]), world).run().refused(125, &["unknown flag '--pool'"]);
        let words = ["pool", "start", "--size", "1", "--idle", "60s"];
        let starts: Vec<_> = (0..4).map(|_| place(world.sbx(words), world).start()).collect();
        let outs: Vec<_> = starts.into_iter().map(|start| start.wait().success()).collect();
        let began = outs.iter().filter(|out| out.out().contains("1 run waits")).count();
        place(world.sbx(["pool", "stop", "--all"]), world).run().success().prints("1 pool ended\n");
        assert_eq!(began, 1);
    });
}

/// What a script starts with `&` ignores the signals of the keyboard.
#[test]
fn a_pool_that_was_started_in_the_background_serves() {
    in_worlds(|world| {
        let sbx = stage::sbx().display();
        let script = format!("{sbx} pool start --size 1 --idle 60s & wait $!");
        place(world.bare(["sh", "-c", &script]), world).run().success();
        let out = super::warm(world, &["-v"], "true").run().success();
        place(world.sbx(["pool", "stop", "--all"]), world).run().success().prints("1 pool ended\n");
        assert!(!out.err().contains("no warm start"), "{out}");
    });
}

const SERVICE: &str = "\
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1])
s.listen()
print('ready', flush=True)
while True:
    print('got', s.accept()[0].recv(9), flush=True)
";
const CLIENT: &str = "\
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(b'lives')
";

#[test]
fn what_is_no_pool_is_not_ended_for_one() {
    if !need(&["python3"]) {
        return;
    }
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        let path = world.path("service").display().to_string();
        let service = world.bare(["python3", "-u", "-c", SERVICE, &path]).start();
        service.wait_for("ready");
        // Before and after the socket of the pool, in the order of names.
        for name in ["0.pool", "z.pool"] {
            symlink(&path, runtime(world).join("sbx").join(name)).unwrap();
        }
        let out = place(world.sbx(["pool", "stop", "--all"]), world).run().failed();
        out.says("who listens at its socket is no pool");
        assert!(pool.runs().is_empty(), "the pool itself has ended");
        world.bare(["python3", "-c", CLIENT, &path]).run().success();
        service.wait_for("lives");
        service.signal(libc::SIGKILL);
        service.wait();
    });
}
