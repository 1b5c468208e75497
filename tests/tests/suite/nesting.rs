//! `sbx` inside `sbx`, and `sbx` where user namespaces, ptrace and pidfd_getfd are denied.

use sbx_tests::servers::{BODY, HttpServer};
use sbx_tests::{in_worlds, kernel, need, processes, promise, stage};
use std::net::TcpListener;

#[test]
fn sbx_nests() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let sbx = stage::sbx().to_str().unwrap();
        let outer = ["run", "--rox", stage::base().to_str().unwrap(), "--"];
        let nested = |words: &[&str]| world.sbx([&outer[..], &[sbx], words].concat()).run();
        nested(&["run", "--", "true"]).success();
        nested(&["run", "--", "sh", "-c", "exit 7"]).exited(7);
        world.write("file", "text\n");
        nested(&["run", "-p", "minimal", "--", "cat", "file"]).success().prints("text\n");
        nested(&["run", "-p", "minimal", "--", "touch", "made"]).failed();
        assert!(!world.exists("made"));
        nested(&["run", "--", sbx, "run", "--", "true"]).success();
    });
}

/// What `sbx` does to start faster where nothing else runs is no reason for a line of the one around it.
#[test]
fn an_inner_run_has_the_outer_one_tell_nothing() {
    promise!(namespaces);
    need!("python3");
    in_worlds(|world| {
        let sbx = stage::sbx().to_str().unwrap();
        let outer =
            ["run", "--rox", stage::base().to_str().unwrap(), "--deny-calls", "sched_setaffinity", "--"];
        for _ in 0..6 {
            let out = world.sbx([&outer[..], &[sbx, "run", "-q", "--", "true"]].concat()).run().success();
            assert!(!out.err().contains("sched_setaffinity"), "{out}");
        }
        // kcmp(2) would tell whether output and errors are one open file.
        let script = format!(
            "{} {} {sbx} run -q -- true > log 2>&1 < /dev/null",
            stage::sbx().display(),
            outer.join(" ")
        );
        world.bare(["sh", "-c", &script]).run().success();
        assert!(!world.read("log").unwrap().contains("kcmp"));
        let affinity = "import os; os.sched_setaffinity(0, os.sched_getaffinity(0))";
        let out = world.sbx([&outer[..], &["/usr/bin/python3", "-c", affinity]].concat()).run();
        out.failed().says("sched_setaffinity");
    });
}

#[test]
fn an_inner_run_has_no_more_rights() {
    promise!(kernel::PATHS);
    let server = HttpServer::start();
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let sbx = stage::sbx().to_str().unwrap();
        let port = server.port.to_string();
        let outer = ["run", "--rox", stage::base().to_str().unwrap(), "--", sbx];
        let nested = |words: &[&str]| world.sbx([&outer[..], words].concat()).run();
        nested(&["run", "-p", "network", "--", &attempt, "connect", &port]).failed();
        let outside = world.outside.to_str().unwrap().to_owned();
        nested(&["run", "--rw", &outside, "--", "touch", &format!("{outside}/made")]).failed();
        assert!(!world.outside.join("made").exists());
    });
    assert_eq!(server.connections(), 0);
}

/// Restricts itself by Landlock: the words are the handled rights of files, of the network, and the scopes. The rest is
/// done by a grandchild whose parent has ended, after an exec.
const OWN_DOMAIN: &str = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
rights = struct.pack('QQQ', *(int(word, 0) for word in sys.argv[1:4]))
libc.prctl(38, 1, 0, 0, 0)
if any(rights):
    fd = libc.syscall(444, rights, len(rights), 0)
    assert fd >= 0 and libc.syscall(446, fd, 0) == 0, ctypes.get_errno()
    os.close(fd)
reader, writer = os.pipe()
if os.fork() == 0:
    parent = os.getpid()
    if os.fork() == 0:
        os.dup2(writer, 1)
        os.close(writer)
        while os.getppid() == parent:
            pass
        os.execvp('python3', ['python3', '-c', sys.argv[-1]])
    os._exit(0)
os.close(writer)
os.wait()
sys.stdout.write(os.fdopen(reader).read())
";

/// LANDLOCK_ACCESS_FS_MAKE_CHAR, which no run has anyway.
const MAKE_DEVICES: &str = "64";

const CONNECT: &str = "
import socket
def to(address, family=socket.AF_INET):
    s = socket.socket(family)
    try:
        s.connect(address); print('connected')
    except OSError as e: print(e.strerror)
";

/// A server outside, of which only its connections matter.
fn listener() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

#[test]
fn what_a_process_takes_from_itself_the_supervisor_does_not_give_back() {
    promise!(kernel::TCP_PORTS);
    let listener = listener();
    let connections = || std::iter::from_fn(|| listener.accept().ok()).count();
    let port = listener.local_addr().unwrap().port();
    in_worlds(|world| {
        world.write("own.py", OWN_DOMAIN);
        let connect = format!("{CONNECT}\nto(('127.0.0.1', {port}))");
        let run = |flags: &[&str], rights: [&str; 3], what: &str| {
            let words = [&["run", "-q"], flags, &["--", "python3", "own.py"]].concat();
            world.sbx([&words[..], &rights, &[what]].concat()).run().success()
        };
        // LANDLOCK_ACCESS_NET_CONNECT_TCP.
        run(&["--net", "host"], ["0", "2", "0"], &connect).prints("Permission denied\n");
        assert_eq!(connections(), 0);
        // The twins: a domain that restricts something else, and none.
        run(&["--net", "host"], [MAKE_DEVICES, "1", "0"], &connect).prints("connected\n");
        run(&["--net", "host"], ["0", "0", "0"], &connect).prints("connected\n");
        assert_eq!(connections(), 2);
        // Sockets without a file, in a network of the run's own.
        let inside = format!(
            "{CONNECT}\nl = socket.socket(socket.AF_UNIX); l.bind('\\0there'); l.listen()\n\
             to('\\0there', socket.AF_UNIX)"
        );
        if kernel::gives_namespaces() {
            run(&[], [MAKE_DEVICES, "0", "1"], &inside).prints("Permission denied\n");
            run(&[], [MAKE_DEVICES, "0", "0"], &inside).prints("connected\n");
        }
        // One by its path is nothing that this domain restricts.
        let by_path = format!(
            "{CONNECT}\nl = socket.socket(socket.AF_UNIX); l.bind('there'); l.listen()\n\
             to('there', socket.AF_UNIX)\nimport os; os.remove('there')"
        );
        run(&["--net", "host"], [MAKE_DEVICES, "2", "1"], &by_path).prints("connected\n");
        // Whoever has no domain of its own is not held to that of another.
        let both = "python3 own.py 0 2 0 \"$1\"; python3 -c \"$1\"";
        let words = ["run", "-q", "--net", "host", "--", "sh", "-c", both, "sh", &connect];
        world.sbx(words).run().success().prints("Permission denied\nconnected\n");
        assert_eq!(connections(), 1);
    });
}

#[test]
fn an_inner_run_keeps_its_rules_about_ports_or_does_not_start() {
    promise!(kernel::TCP_PORTS);
    let listener = listener();
    let connections = || std::iter::from_fn(|| listener.accept().ok()).count();
    let port = listener.local_addr().unwrap().port();
    in_worlds(|world| {
        let sbx = stage::sbx().to_str().unwrap();
        let base = stage::base().to_str().unwrap();
        let connect = format!("{CONNECT}\nto(('127.0.0.1', {port}))");
        let nested = |outer: &[&str], inner: &[&str]| {
            let outer = [&["run", "-q", "--rox", base], outer, &["--", sbx, "run", "-q"]].concat();
            world.sbx([&outer[..], inner, &["--", "python3", "-c", &connect]].concat()).run()
        };
        let (this, other) = (format!("*:{port}"), format!("*:{}", port ^ 1));
        let connects = kernel::landlock() < 9;
        let out = nested(&["--net", "host"], &["--connect", &other]);
        if connects {
            out.refused(125, &["cannot restrict connections to some ports", "the sbx around"]);
        }
        nested(&["--net", "host"], &["--bind", &port.to_string()]).prints("Permission denied\n");
        assert_eq!(connections(), 0);
        // Where nobody connects for it, the kernel keeps to the ports.
        let tmp = format!("TMPDIR={}", world.workspace.display());
        let unsupervised = ["--net", "host", "--exec", "--env", &tmp];
        nested(&unsupervised, &["--connect", &other]).prints("Permission denied\n");
        assert_eq!(connections(), 0);
        // The twins.
        nested(&unsupervised, &["--connect", &this]).prints("connected\n");
        nested(&["--net", "host"], &["--net", "host"]).prints("connected\n");
        nested(&["--connect", &this], &["--net", "host"]).prints("connected\n");
        assert_eq!(connections(), 3);
        nested(&["--connect", &other], &["--net", "host"]).prints("Permission denied\n");
        assert_eq!(connections(), 0);
    });
}

#[test]
fn an_inner_run_does_not_change_git_s_configuration_by_the_outer_one() {
    promise!(kernel::PATHS);
    need!("git");
    in_worlds(|world| {
        world.bare(["git", "init", "-q", "."]).run().success();
        let sbx = stage::sbx().to_str().unwrap();
        let base = stage::base().to_str().unwrap();
        let rename =
            "cp .git/config .git/config.lock; printf '[user]\n\tname = inner\n' >>.git/config.lock; ";
        let inner = format!("exec '{sbx}' run -q -p read-only -- ");
        let run = |how: &str| {
            let script = format!("{rename}{how}mv .git/config.lock .git/config");
            world.sbx(["run", "-q", "--rox", base, "--", "sh", "-c", &script]).run()
        };
        let config = world.read(".git/config");
        run(&inner).failed();
        assert_eq!(world.read(".git/config"), config);
        // The twin: without an inner run it is a harmless change.
        run("").success();
        assert!(world.read(".git/config").unwrap().contains("inner"));
    });
}

/// A command that starts no processes ends with its supervisor only by a signal, whether it is notified or not.
#[test]
fn an_inner_run_stays_tied_to_its_supervisor() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let sbx = stage::sbx().to_str().unwrap();
        let (call, untie) = (libc::SYS_prctl.to_string(), libc::PR_SET_PDEATHSIG.to_string());
        let outer = ["run", "--rox", stage::base().to_str().unwrap(), "--", sbx, "run", "-p"];
        let nested = |profile: &str| {
            world.sbx([&outer[..], &[profile, "--", &attempt, "syscall", &call, &untie, "0"]].concat()).run()
        };
        nested("minimal").failed();
        nested("workspace").success();
    });
}

#[test]
fn a_container_without_namespaces_and_ptrace_is_enough() {
    promise!(kernel::PATHS);
    need!("curl");
    let server = HttpServer::start();
    in_worlds(|world| {
        world.write("file", "b\na\n");
        let attempt = world.program("attempt");
        let run = |profile: &str, command: &[&str]| world.run(profile, command).docker().run();
        run("minimal", &["sort", "file"]).success().silent().prints("a\nb\n");
        run("network", &["curl", "-sS", &server.url()]).success().silent().prints(BODY);
        run("write", &["mkdir", "-p", "made/deep"]).success().silent();
        assert!(world.path("made/deep").is_dir());
        run("workspace", &["bash", "-c", "cat <(sort file) | head -n 1"]).success().silent().prints("a\n");
        run("read-only", &["sh", "-c", "cat file | wc -l"]).success().prints("2\n");
        run(
            "no-exec",
            &[
                "/usr/bin/python3",
                "-c",
                "import threading as t; x = t.Thread(target=print); x.start(); x.join()",
            ],
        )
        .success();
        // Refusals are reported as anywhere else.
        let out = run("minimal", &["curl", "-sS", &server.url()]).failed();
        assert!(
            out.sbx_lines().iter().any(|line| line.contains("socket(") && line.contains("--profile network")),
            "{out}"
        );
        run("minimal", &[&attempt, "create", "mark"]).exited(1);
        run("no-exec", &[&attempt, "spawn", "/bin/touch", "mark"]).failed();
        run("workspace", &[&attempt, "connect", &server.port.to_string()]).exited(1);
        run("workspace", &["touch", world.outside.join("made").to_str().unwrap()]).failed();
        run("workspace", &["cat", world.home.join(".ssh/id_rsa").to_str().unwrap()]).exited(1).prints("");
        assert!(!world.exists("mark") && !world.outside.join("made").exists());
    });
    assert_eq!(server.connections(), 2);
}

#[test]
fn the_other_ways_to_run_work_in_a_container_too() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let attempt = world.program("attempt");
        world.write("file", "text\n");
        world
            .sbx(["run", "--exec", "-p", "minimal", "--", "cat", "file"])
            .docker()
            .run()
            .success()
            .prints("text\n");
        world
            .sbx(["run", "--exec", "-p", "minimal", "--", &attempt, "create", "mark"])
            .docker()
            .run()
            .exited(1);
        let out =
            world.sbx(["run", "--log-violations", "-p", "minimal", "--", &attempt, "fork"]).docker().run();
        assert!(!out.sbx_lines().is_empty(), "{out}");
        let sbx = stage::sbx().to_str().unwrap();
        let base = stage::base().to_str().unwrap();
        world.sbx(["run", "--rox", base, "--", sbx, "run", "--", "true"]).docker().run().success();
        let fixed = world.subject("attempt-static");
        world
            .sbx([
                "run",
                "-p",
                "minimal",
                "--static",
                "confine",
                "--",
                fixed.to_str().unwrap(),
                "create",
                "mark",
            ])
            .docker()
            .run()
            .exited(1);
        assert!(!world.exists("mark"));
    });
}

#[test]
fn a_killed_supervisor_in_a_container_leaves_nothing() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let marker = processes::marker();
        let script = format!("{attempt} sleep {marker} & {attempt} sleep {marker}");
        let running = world.run("workspace", ["sh", "-c", &script]).docker().start();
        running.wait_for("sleeping\nsleeping\n");
        running.kill();
        processes::none_left(&marker);
    });
}

/// Installs a filter with a listener, and executes its arguments.
const LISTENING: &str = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_char_p)]
allow = struct.pack('HBBI', 6, 0, 0, 0x7fff0000)
assert libc.prctl(38, 1, 0, 0, 0) == 0
listener = libc.syscall(int(sys.argv[1]), 1, 8, ctypes.byref(Program(1, allow)))
assert listener >= 0
os.set_inheritable(listener, True)
os.execv(sys.argv[2], sys.argv[2:])
";

#[test]
fn under_another_listener_nothing_is_promised_that_needs_notifications() {
    in_worlds(|world| {
        let seccomp = libc::SYS_seccomp.to_string();
        let run = |flags: &[&str]| {
            let sbx = stage::sbx().to_str().unwrap();
            let outer = ["/usr/bin/python3", "-c", LISTENING, &seccomp, sbx, "run"];
            world.bare([&outer, flags, &["--", "sh", "-c", ": >mark"]].concat()).run()
        };
        run(&["--max-processes", "9"]).refused(125, &["processes cannot be counted", "--max-processes none"]);
        run(&["--log-violations"]).refused(125, &["nothing can be listed", "--on-violation errno"]);
        assert!(!world.exists("mark"));
        run(&[]).success().says("cannot be reported");
        assert!(world.exists("mark"));
    });
}

/// Without namespaces, protection by a built-in profile is given up with a warning, and by a user's profile is an
/// error.
#[test]
fn protection_by_a_users_profile_needs_namespaces() {
    in_worlds(|world| {
        world.write("kept", "as it was");
        world.write("own.json", r#"{"extends": "workspace", "paths": {"protect": ["${WORKSPACE}/kept"]}}"#);
        let run = |front: &[&str]| {
            let words = ["--", "sh", "-c", "echo changed > kept"];
            world.sbx([&["run", "-p", "./own.json"], front, &words].concat()).docker().run()
        };
        run(&[]).refused(125, &["cannot protect", "kept", "own.json", "--namespaces none"]);
        assert_eq!(world.read("kept").unwrap(), "as it was");
        run(&["--namespaces", "none"]).success();
        assert_eq!(world.read("kept").unwrap(), "changed\n");
    });
}
