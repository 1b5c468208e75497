//! /dev/null, which everybody may write to, and device nodes that only look like it.

use sbx_tests::{User, World, in_worlds, need, promise, skip};

const PYTHON: &str = "/usr/bin/python3";

/// Opens devices in the ways that programs do, and prints what can be done with them.
const ACT: &str = r#"
import ctypes, fcntl, os
def say(*words): print(*words)
fd = os.open("/dev/null", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
kept = ctypes.CDLL(None).open(b"/dev/null", os.O_WRONLY)
say("kept", fcntl.fcntl(kept, fcntl.F_GETFD))
say("null", os.write(fd, b"x"), os.major(os.fstat(fd).st_rdev), os.minor(os.fstat(fd).st_rdev), fcntl.fcntl(fd, fcntl.F_GETFD))
fd = os.open("/dev/null", os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
say("both", os.read(fd, 2), fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND != 0)
for path, flags in [("/dev/../dev/null", 0), ("/dev/null/", 0), ("/dev/null", os.O_CREAT | os.O_EXCL), ("/dev/mem", 0), ("/dev/zero", 0), ("/etc/hostname", 0), ("lines", 0)]:
    try: os.open(path, os.O_WRONLY | flags); say("opened", path)
    except OSError as e: pass
"#;

#[test]
fn the_null_device_can_be_written_where_nothing_else_can() {
    need!(PYTHON);
    in_worlds(|world| {
        for profile in ["minimal", "network"] {
            let before = world.read("lines");
            let out = world.run(profile, [PYTHON, "-c", ACT]).run().success();
            out.prints("kept 0\nnull 1 1 3 1\nboth b'' True\n");
            assert_eq!(world.read("lines"), before);
        }
        // Even the null device can be denied.
        for denied in ["/dev/null", "/dev"] {
            let deny = world.sbx(["run", "-p", "minimal", "--deny", denied, "--"]);
            deny.args([PYTHON, "-c", "open('/dev/null', 'w')"]).run().exited(1).says("PermissionError");
        }
        // The same where a violation ends the run.
        let kill = world.sbx(["run", "-p", "minimal", "--on-violation", "kill", "--"]);
        kill.args([PYTHON, "-c", "open('/dev/null', 'w').write('x')"]).run().success();
    });
}

#[test]
fn without_a_network_no_socket_families_are_allowed() {
    need!(PYTHON);
    in_worlds(|world| {
        for profile in ["minimal", "workspace", "read-only"] {
            let act = "import socket\ntry: socket.socket()\nexcept OSError as e: print(e.errno)";
            let out =
                world.sbx(["run", "-p", profile, "--net", "none", "--", PYTHON, "-c", act]).run().success();
            out.prints("97\n").says("has no network");
        }
    });
}

/// As in the unpacked tree of another system. Only root can make device nodes, and needs no capability to
/// open one.
#[test]
fn root_opens_no_device_nodes_that_lie_in_the_workspace() {
    let user = User::current();
    if !user.is_root() {
        return;
    }
    promise!(namespaces);
    let world = World::new(&user);
    let other = world.path("elsewhere");
    world.make_dir(&other);
    world.bare(["mknod", "-m", "600", "zero", "c", "1", "5"]).run().success();
    world.bare(["mknod", "-m", "600", "elsewhere/zero", "c", "1", "5"]).run().success();
    let read = |file: &'static str| ["head", "-c", "3", file];
    if world.bare(read("zero")).run().code != Some(0) {
        return skip("the file system of this machine's tests has no devices");
    }
    let flags: [&[&str]; 4] = [
        &["-p", "workspace"],
        &["-p", "read-only"],
        &["-p", "write", "--namespaces", "auto"],
        &["-p", "workspace", "--net", "private"],
    ];
    for flags in flags {
        let run = |file| world.sbx(["run"]).args(flags).arg("--").args(read(file)).run();
        for file in ["zero", "elsewhere/zero"] {
            let out = run(file).failed().says("Permission denied");
            assert!(out.stdout.is_empty(), "{out}");
        }
        run("/dev/zero").success().prints("\0\0\0");
    }
    let named = world.sbx(["run", "-p", "minimal", "--namespaces", "auto", "--workspace", "elsewhere", "--"]);
    named.args(read("zero")).run().failed().says("Permission denied");
    // What a profile of the user's names, whether it has to be there or not.
    let outside = world.outside.join("zero");
    world.bare(["mknod", "-m", "600"]).arg(&outside).args(["c", "1", "5"]).run().success();
    for optional in [false, true] {
        let read = serde_json::json!([{ "path": world.outside, "optional": optional }]);
        let profile = serde_json::json!({ "extends": "read-only", "paths": { "read": read } });
        world.write("../named.json", profile.to_string());
        let run = world.sbx(["run", "-p", "../named.json", "--", "head", "-c", "3"]).arg(&outside).run();
        assert!(run.failed().says("Permission denied").stdout.is_empty(), "{optional}");
    }
    // This cannot be promised without namespaces.
    world.sbx(["run", "--namespaces", "none", "--"]).args(read("zero")).run().success().prints("\0\0\0");
}

/// The file system of the workspace is mounted two directories above it, and is not the one of anything else. It lies
/// outside of the home: what a run keeps of that has mounts without devices.
#[test]
fn root_opens_none_on_another_file_system_either() {
    let user = User::current();
    if !user.is_root() {
        return;
    }
    promise!(namespaces);
    need!("unshare");
    let world = World::new(&user);
    let made = "mkdir other && mount -t tmpfs other other && mkdir -p other/a/b && cd other/a/b && \
                mknod -m 600 zero c 1 5 && exec \"$@\"";
    let read = |file: &str| {
        let words = ["unshare", "-m", "bash", "-ec", made, "bash"];
        let run = world.bare(words).arg(sbx_tests::stage::sbx()).args(["run", "--", "head", "-c", "3", file]);
        let out = run.cwd(&world.outside).run();
        world.bare(["rmdir"]).arg(world.outside.join("other")).run().success();
        out
    };
    let out = read("zero").failed().says("Permission denied");
    assert!(out.stdout.is_empty(), "{out}");
    read("/dev/zero").success().prints("\0\0\0");
}
