//! `sbx` inside `sbx`, and `sbx` where user namespaces, ptrace and pidfd_getfd are denied.

use sbx_tests::servers::{BODY, HttpServer};
use sbx_tests::{in_worlds, kernel, need, processes, promise, stage};

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
