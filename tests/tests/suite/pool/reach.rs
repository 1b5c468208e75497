//! Who can ask a pool for a run.

use super::{Pool, place, runtime, socket, warm};
use sbx_tests::{Cmd, World, in_worlds, kernel, need, promise};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

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
        // Nor does it take the socket of a pool away that it cannot see.
        let open =
            ["run", "--static", "confine", "--rox", &sbx, "--rw", &runtime, "--env", "XDG_RUNTIME_DIR"];
        let stop = ["--", &sbx, "pool", "stop", "--all"];
        let out = place(world.sbx(open.iter().chain(&stop)), world).run().failed();
        assert!(socket.exists(), "{out}");
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

/// A pool that has ended, and a program that listens in its place, says so, and prints what it gets.
fn stranger(world: &World) -> (Pool<'_>, String) {
    let pool = Pool::start(world, "1", &[]);
    let path = socket(world);
    place(world.sbx(["pool", "stop"]), world).run().success();
    let listen = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.bind('{}')\ns.listen()\n\
         print('ready', flush=True)\ns.settimeout(10)\nc, _ = s.accept()\nprint('got', c.recv(100000))",
        path.display()
    );
    (pool, listen)
}

#[test]
fn a_stranger_that_listens_in_its_place_gets_nothing() {
    if !need(&["python3"]) {
        return;
    }
    in_worlds(|world| {
        let (pool, listen) = stranger(world);
        let runtime = runtime(world).display().to_string();
        let words = ["run", "--rw", &runtime, "--", "python3", "-u", "-c", &listen];
        let stranger = place(world.sbx(words), world).start();
        stranger.wait_for("ready");
        let out = warm(world, &["-v"], "exit 3").env("TOKEN", "secret").run().exited(3);
        assert!(out.err().contains("no warm start"), "{out}");
        stranger.signal(libc::SIGTERM);
        let told = stranger.wait();
        assert!(!told.out().contains("exit 3") && !told.out().contains("secret"), "{told}");
        drop(pool);
    });
}

/// Restricts itself with Landlock, as the administrator may without no_new_privs, to write below these directories
/// only, and executes a command. No file of /proc tells of it.
const CLOSED: &str = "\
import ctypes, os, signal, struct, sys
for number in signal.SIGPIPE, signal.SIGXFSZ:
    signal.signal(number, signal.SIG_DFL)
call = ctypes.CDLL(None, use_errno=True).syscall
writes = (1 << 1) | sum(1 << bit for bit in range(4, 14))
rules = call(444, struct.pack('QQQ', writes, 0, 0), 8, 0)
for path in sys.argv[1].split(':'):
    assert call(445, rules, 1, struct.pack('=Qi', writes, os.open(path, os.O_PATH)), 0) == 0
if sys.argv[2] == 'closed':
    assert call(446, rules, 0) == 0
os.closerange(3, 100)
os.execv(sys.argv[3], sys.argv[3:])
";

#[test]
fn who_is_confined_without_a_sign_of_it_is_refused() {
    promise!(kernel::PATHS);
    let root = sbx_tests::User::current();
    if !root.is_root() || !need(&["python3"]) {
        return;
    }
    let world = World::new(&root);
    world.make_dir(&world.path("open"));
    let pool = Pool::start(&world, "2", &[]);
    // What sbx itself writes to, and a directory of the workspace.
    let open = [world.home.join(".local"), runtime(&world), world.path("open")];
    let open = format!("{}:/tmp:/dev:/proc:/sys", open.map(|path| path.display().to_string()).join(":"));
    let sbx = sbx_tests::stage::sbx().display().to_string();
    let run = |how: &str| {
        let inner = ["run", "--pool", "-v", "--", "sh", "-c", "echo x > written"];
        let words = ["python3", "-c", CLOSED, &open, how, &sbx];
        place(world.bare(words.iter().chain(&inner)), &world).run()
    };
    let out = run("closed");
    assert!(!world.exists("written") && out.err().contains("something confines it"), "{out}");
    // The control: the same way to a pool that serves it.
    let out = pool.within(|| run("free")).success();
    assert!(world.exists("written"), "{out}");
}

#[test]
fn a_listener_that_is_no_pool_learns_nothing() {
    if !need(&["python3"]) {
        return;
    }
    in_worlds(|world| {
        // It is as free as the caller.
        let (pool, listen) = stranger(world);
        let stranger = world.bare(["python3", "-u", "-c", &listen]).start();
        stranger.wait_for("ready");
        let out = warm(world, &["-v"], "exit 3").env("TOKEN", "secret").run().exited(3);
        assert!(out.err().contains("not a pool of this user's"), "{out}");
        let told = stranger.wait();
        assert!(told.out().contains("got b''"), "{told}");
        drop(pool);
    });
}

#[test]
fn callers_of_a_pool_that_was_killed_wait_for_nobody() {
    in_worlds(|world| {
        let pool = Pool::start(world, "1", &[]);
        let going = pool.cmd(&["-v"], "echo begun; sleep 60").start();
        going.wait_for("begun");
        sbx_tests::sys::kill(pool.pid, libc::SIGKILL);
        let ask = || warm(world, &["-v"], "exit 3").run().exited(3);
        // More than there is room for in the queue of a socket.
        for _ in 0..20 {
            let out = ask();
            assert!(out.err().contains("no warm start"), "{out}");
        }
        // Whoever has a command of it keeps nobody from having another pool.
        let other = Pool::start(world, "1", &[]);
        assert_ne!(other.pid, pool.pid);
        other.sh("true").success();
        going.kill();
    });
}
