//! Sockets for a log: syslog(3) never says that there is none.

use super::{lines, none, one};
use sbx_tests::{World, in_worlds, need, promise};

const SOCKET: &str = "socket(AF_UNIX, SOCK_DGRAM";

/// The entries of a report about such sockets.
fn entries(world: &World, line: &str) -> Vec<String> {
    let report = world.path("report.json");
    world.sbx(["run", "-q", "--report", "report.json", "--", "sh", "-c", line]).run();
    let text = std::fs::read_to_string(report).unwrap();
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
