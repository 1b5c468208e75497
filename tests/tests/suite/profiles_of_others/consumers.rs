//! What is exported, given to those who enforce it. These tests run on demand: their tools are not everywhere.

use sbx_tests::command::Cmd;
use sbx_tests::users::User;
use sbx_tests::{World, need};
use serde_json::{Value, json};

/// runc runs a shell that makes a user namespace and a directory, under the exported filter of a profile.
#[test]
#[ignore = "takes root, runc and control groups that it understands"]
fn runc_enforces_an_exported_filter() {
    need!("busybox");
    let user = User::current();
    let world = World::new(&user);
    let bundle = world.path("bundle");
    world.make_dir(&bundle.join("rootfs/bin"));
    std::fs::copy(sbx_tests::tools::have("busybox").unwrap(), bundle.join("rootfs/bin/busybox")).unwrap();
    Cmd::new("runc").args(["spec"]).cwd(&bundle).run().success();
    let spec: Value = serde_json::from_slice(&std::fs::read(bundle.join("config.json")).unwrap()).unwrap();
    let script = "/bin/busybox mkdir /dev/shm/made && echo made; /bin/busybox ls /dev/shm; \
                  /bin/busybox unshare -U /bin/busybox echo namespace";
    for (profile, shown) in [("read-only", "made\nmade\n"), ("unrestricted", "made\nmade\nnamespace\n")] {
        let out = world.sbx(["profile", "export", "--to", "oci", "--lossy", profile]).run().success();
        let mut spec = spec.clone();
        spec["linux"]["seccomp"] = serde_json::from_str(&out.out()).unwrap();
        spec["process"]["terminal"] = json!(false);
        spec["process"]["args"] = json!(["/bin/busybox", "sh", "-c", script]);
        world.write(bundle.join("config.json"), spec.to_string());
        let name = format!("sbx-{}-{profile}", std::process::id());
        let out = Cmd::new("runc").args(["run", &name]).cwd(&bundle).run();
        assert_eq!(out.out(), shown, "{profile}: {out}");
    }
}

/// bubblewrap runs a shell that makes a user namespace and an internet socket, under the exported filter of a profile.
#[test]
#[ignore = "takes bubblewrap and the namespaces that it makes"]
fn bubblewrap_enforces_an_exported_filter() {
    need!("bwrap");
    let world = World::new(&User::current());
    let script = "unshare -U echo namespace; \
                  python3 -c 'import socket; socket.socket(socket.AF_INET); print(\"socket\")'; echo end";
    for (profile, shown) in [("read-only", "end\n"), ("unrestricted", "namespace\nsocket\nend\n")] {
        let out = world.sbx(["profile", "export", "--to", "bpf", "--lossy", profile]).run().success();
        let program = world.write("filter.bpf", &out.stdout);
        let file = std::fs::File::open(&program).unwrap();
        let bind = ["--ro-bind", "/", "/", "--dev", "/dev", "--seccomp", "9", "/bin/sh", "-c", script];
        let out = Cmd::new("bwrap").args(bind).pass_fd(file.into(), 9).run();
        assert_eq!(out.out(), shown, "{profile}: {out}");
    }
}

/// systemd reads the directives of every built-in profile, and finds the services confined.
#[test]
#[ignore = "takes systemd-analyze"]
fn systemd_understands_exported_units() {
    need!("systemd-analyze");
    let world = World::new(&User::current());
    for profile in ["minimal", "network", "write", "read-only", "workspace", "no-exec"] {
        let out = world.sbx(["profile", "export", "--to", "systemd", "--lossy", profile]).run().success();
        let unit = out.out().replacen("[Service]\n", "[Service]\nExecStart=/bin/true\n", 1);
        let file = world.write(format!("sbx-{profile}.service"), unit);
        let out = Cmd::new("systemd-analyze").arg("verify").arg(&file).run().success();
        // A call that this systemd does not know is refused by it anyway, and a line of the export names what it takes
        // a newer one for.
        let odd = |line: &&str| {
            !line.contains("Failed to parse system call, ignoring") && !line.contains("'PrivatePIDs'")
        };
        let err = out.err();
        assert_eq!(err.lines().filter(odd).collect::<Vec<_>>(), Vec::<&str>::new(), "{profile}");
        let out = Cmd::new("systemd-analyze").args(["security", "--offline=yes"]).arg(&file).run();
        let level = out.out().lines().rev().find_map(|line| {
            line.split_once("level for")?.1.split_once(": ")?.1.split(' ').next()?.parse::<f64>().ok()
        });
        assert!(level.is_some_and(|level| level < 4.0), "{profile}: {level:?}: {out}");
    }
}
