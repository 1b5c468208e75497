//! Sockets for a log: syslog(3) never says that there is none. Programs that gain no rights.

use super::{lines, none, one};
use sbx_tests::{World, in_worlds, need, promise};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};

const SOCKET: &str = "socket(AF_UNIX, SOCK_DGRAM";

/// The entries of a report about such sockets.
fn entries(world: &World, line: &str) -> Vec<String> {
    let report = world.path("report.json");
    world.sbx(["run", "-q", "--report", "report.json", "--", "sh", "-c", line]).run();
    let text = fs::read_to_string(report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entries = report["violations"].as_array().unwrap().iter();
    let entries = entries.filter(|entry| entry["args"].as_str().unwrap().starts_with("AF_UNIX, SOCK_DGRAM"));
    entries.map(|entry| entry["rule"]["text"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_program_that_writes_to_the_log_gets_no_line() {
    need!("python3");
    promise!(namespaces);
    in_worlds(|world| {
        let logs = "/usr/bin/python3 -c 'import syslog; syslog.syslog(\"word\")'";
        none(&lines(world, &[], logs));
        none(&lines(world, &["--explain"], logs));
        // Nor where it fails: what it logs is nobody's reason.
        none(&lines(world, &[], &format!("{logs}; exit 3")));
        assert_eq!(entries(world, logs).len(), 1);
        let loud = lines(world, &["-v"], logs);
        assert_eq!(loud.iter().filter(|line| line.contains(SOCKET)).count(), 1, "{loud:?}");
    });
}

#[test]
fn who_fails_without_such_a_socket_gets_one() {
    need!("python3");
    promise!(namespaces);
    in_worlds(|world| {
        let program = "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)";
        let line = format!("/usr/bin/python3 -c '{program}'");
        for flags in [&[][..], &["--explain"]] {
            one(&lines(world, flags, &line), &[SOCKET, "makes no UNIX sockets of this type"]);
            none(&lines(world, &[flags, &["--allow-calls", "socket"]].concat(), &line));
        }
        // Without the library nobody would tell it later.
        let said = lines(world, &["--no-explainer"], &format!("{line}; true"));
        one(&said, &[SOCKET]);
    });
}

/// tmux(1) and others have utempter(8) note who is logged in, and do without.
#[test]
fn a_helper_that_gains_no_rights_gets_no_line() {
    const HELPER: &str = "/usr/lib/x86_64-linux-gnu/utempter/utempter";
    need!(HELPER);
    promise!(namespaces);
    in_worlds(|world| {
        let fails = format!("{HELPER} add host; true");
        none(&lines(world, &[], &fails));
        let loud = lines(world, &["-v"], &fails);
        assert!(loud.iter().any(|line| line.contains("none gains rights in a sandbox")), "{loud:?}");
    });
}

/// su(1) writes to the log that it has failed. That is not why.
#[test]
fn no_flag_and_no_profile_is_to_blame_for_a_set_user_id_program() {
    need!("su");
    promise!(namespaces);
    in_worlds(|world| {
        let su = "exec su -s /bin/sh nobody -c true < /dev/null";
        let said = lines(world, &[], su);
        assert!(!said.is_empty() && said.iter().all(|line| line.contains("set-user-ID")), "{said:?}");
        assert!(entries(world, su).iter().all(|text| text.contains("gains no rights in a sandbox")));
    });
}

#[test]
fn a_refused_call_of_a_set_user_id_program_is_one_line() {
    need!("mount");
    promise!(namespaces);
    in_worlds(|world| {
        let said = lines(world, &[], "exec mount -t tmpfs none /mnt");
        assert!(said.iter().any(|line| line.contains("it takes a capability")), "{said:?}");
        assert!(!said.iter().any(|line| line.contains("none gains rights in a sandbox")), "{said:?}");
    });
}

/// The group of ssh-agent(1) only keeps others from tracing it.
#[test]
fn a_group_is_missed_where_nothing_else_explains_what_fails() {
    const NOBODYS: u32 = 54_321;
    promise!(namespaces);
    in_worlds(|world| {
        let own = world.path("own-shell");
        fs::copy("/bin/bash", &own).unwrap();
        // Only root gives a file to another group.
        if chown(&own, None, Some(NOBODYS)).is_err() {
            return;
        }
        fs::set_permissions(&own, Permissions::from_mode(0o2755)).unwrap();
        none(&lines(world, &[], "./own-shell -c 'exit 3'"));
        fs::set_permissions(world.write("closed", "x\n"), Permissions::from_mode(0o000)).unwrap();
        let closed = lines(world, &[], "./own-shell -c 'read line < closed'");
        let why = if world.user.is_root() { "permissions close " } else { "none gains rights in a sandbox" };
        one(&closed, &["own-shell", why]);
        let hidden = world.home.join("hidden");
        world.write(&hidden, "x\n");
        let reads = format!("./own-shell -c 'read line < {}'", hidden.display());
        one(&lines(world, &[], &reads), &["out of sight", "allow it with --ro "]);
    });
}
