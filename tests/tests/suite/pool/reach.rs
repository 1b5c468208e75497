//! Who can ask a pool for a run.

use super::{Pool, place, runtime, socket, warm};
use sbx_tests::{Cmd, World, in_worlds, need};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn nobody_inside_reaches_the_pool() {
    if !need(&["python3"]) {
        return;
    }
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        let socket = socket(world);
        let meta = socket.parent().unwrap().metadata().unwrap();
        assert_eq!((meta.mode() & 0o777, meta.uid()), (0o700, world.user.id));
        let connect = format!(
            "import socket,sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.connect('{}')\n\
             print('connected')\ns.send(b'x')\nprint(s.recv(100))",
            socket.display()
        );
        // The control: outside it can be connected to.
        let out = world.bare(["python3", "-c", &connect]).run().success();
        assert!(out.out().contains("connected"), "{out}");
        for flags in
            [&[][..], &["-p", "read-only"], &["-p", "no-exec"], &["--net", "host"], &["--namespaces", "none"]]
        {
            let command = ["--", "python3", "-c", &connect];
            let words = ["run"].iter().chain(flags).chain(&command);
            let out = place(world.sbx(words), world).run().failed();
            assert!(!out.out().contains("connected"), "{flags:?}: {out}");
        }
        // Where rules open its directory, who connects is refused for what it is.
        let runtime = runtime(world).display().to_string();
        let sbx = sbx_tests::stage::sbx().display().to_string();
        let ran = world.outside.join("ran").display().to_string();
        for flags in [&["--rw", &runtime][..], &["--rw", &runtime, "--unix", socket.to_str().unwrap()]] {
            let inner = format!("touch {ran}; id");
            let command = ["--", &sbx, "run", "--pool", "-v", "--", "sh", "-c", &inner];
            let confined = ["run", "--static", "confine", "--rox", &sbx];
            let words = confined.iter().chain(flags).chain(&command);
            let out = place(world.sbx(words), world).run();
            assert!(!Path::new(&ran).exists(), "{flags:?}: {out}");
        }
        pool.sh("true").success();
    });
}

#[test]
fn another_user_does_not_reach_the_pool() {
    let users = sbx_tests::User::all();
    let [root, nobody] = users[..] else { return };
    for (owner, other) in [(root, nobody), (nobody, root)] {
        let world = World::new(&owner);
        let pool = Pool::start(&world, "1", &[]);
        let path = socket(&world);
        let try_it = "import socket,sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
                      s.connect(sys.argv[1])\ns.send(b'x')\nprint(s.recv(100))";
        if !need(&["python3"]) {
            return;
        }
        let out = Cmd::new("python3").args(["-c", try_it]).arg(&path).user(&other).run();
        if other.is_root() {
            // Root gets everywhere, and is told that it is somebody else.
            assert!(out.out().contains("the caller is not what the pool is"), "{out}");
        } else {
            out.failed().says("PermissionError");
        }
        pool.sh("true").success();
    }
}

#[test]
fn a_stranger_that_listens_in_its_place_gets_nothing() {
    if !need(&["python3"]) {
        return;
    }
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        let path = socket(world);
        place(world.sbx(["pool", "stop"]), world).run().success();
        let runtime = runtime(world).display().to_string();
        let listen = format!(
            "import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.bind('{}')\ns.listen()\n\
             print('ready', flush=True)\nc, _ = s.accept()\nprint('got', c.recv(100000))",
            path.display()
        );
        let words = ["run", "--rw", &runtime, "--", "python3", "-u", "-c", &listen];
        let stranger = place(world.sbx(words), world).start();
        let until = Instant::now() + Duration::from_secs(10);
        while !stranger.so_far().contains("ready") && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let out = warm(world, &["-v"], "exit 3").env("TOKEN", "secret").run().exited(3);
        assert!(out.err().contains("no warm start"), "{out}");
        stranger.signal(libc::SIGTERM);
        let told = stranger.wait();
        assert!(!told.out().contains("exit 3") && !told.out().contains("secret"), "{told}");
        drop(pool);
    });
}
