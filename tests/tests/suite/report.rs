//! What is reported is what happened, and reports get where they were to go, whole, or the run says so.

use std::ffi::OsStr;
use std::fs::{self};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use crate::schema;
use sbx_tests::{Output, User, World, as_users, kernel, stage};
use serde_json::{Value, json};

/// A report that fits the schema.
#[track_caller]
pub fn parsed(text: &str) -> Value {
    assert!(text.ends_with('\n') && text.lines().count() == 1, "not one line: {text:?}");
    assert!(text.trim_end().bytes().all(|byte| (b' '..=b'~').contains(&byte)), "not plain ASCII: {text}");
    let report: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let faults = schema::faults(&report);
    assert!(faults.is_empty(), "{faults:#?}\n{report:#}");
    report
}

/// Runs a command with a report in a file that the command cannot reach.
#[track_caller]
pub fn reported(world: &World, flags: &[&str], command: &[&str]) -> (Value, Output) {
    let file = world.outside.join("report.json");
    let place = file.to_str().unwrap();
    let out = world.sbx([&["run", "--report", place], flags, &["--"], command].concat()).run();
    let report = parsed(&fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}: {out}")));
    let status = out.code.map_or(Value::Null, Value::from);
    assert_eq!(report["exit_status"], status, "{out}");
    fs::remove_file(file).unwrap();
    let left: Vec<_> =
        fs::read_dir(&world.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "kept" || name == "dir"), "something is left: {left:?}");
    (report, out)
}

/// Flags, command, exit status, cause, the command's own code and signal.
type Ending<'a> = (&'a [&'a str], Vec<&'a str>, i32, &'a str, Value);

#[test]
fn every_ending_has_its_cause() {
    as_users(|user| {
        let world = World::new(user);
        world.write("no-program", "text");
        fs::set_permissions(world.path("no-program"), fs::Permissions::from_mode(0o644)).unwrap();
        let fixed = world.subject("attempt-static").into_os_string().into_string().unwrap();
        let shell = |script: &'static str| vec!["sh", "-c", script];
        let kill: &[&str] = &["-p", "minimal", "--on-violation", "kill"];
        let cases: Vec<Ending> = vec![
            (&[], vec!["true"], 0, "exited", json!([0, null])),
            (&[], shell("exit 3"), 3, "exited", json!([3, null])),
            (&[], shell("exit 124"), 124, "exited", json!([124, null])),
            (&[], shell("exit 127"), 127, "exited", json!([127, null])),
            (&["-p", "minimal"], vec!["false"], 1, "exited", json!([1, null])),
            (&[], shell("kill -TERM $$"), 143, "signalled", json!([null, "SIGTERM"])),
            (&[], shell("kill -KILL $$"), 137, "signalled", json!([null, "SIGKILL"])),
            (&[], shell("kill -SYS $$"), 159, "signalled", json!([null, "SIGSYS"])),
            (&[], shell("kill -PIPE $$"), 141, "signalled", json!([null, "SIGPIPE"])),
            (kill, shell("id; true"), 159, "violation", Value::Null),
            (&[], vec!["no-such-command"], 127, "not-found", Value::Null),
            (&[], vec!["./no-program"], 126, "not-executable", Value::Null),
            (&["--static", "block"], vec![&fixed, "argv0"], 126, "refused", Value::Null),
            (&["--static", "confine"], vec![&fixed, "argv0"], 0, "exited", json!([0, null])),
            (&["-p", "unrestricted"], vec!["true"], 125, "refused", Value::Null),
            (&["-p", "no-such-profile"], vec!["true"], 125, "refused", Value::Null),
            (&["--rw", "not/there"], vec!["true"], 125, "refused", Value::Null),
            (&["--pass-fd", "77"], vec!["true"], 125, "refused", Value::Null),
            (&["--exec"], vec!["true"], 125, "refused", Value::Null),
            (&["--no-such-flag"], vec!["true"], 125, "refused", Value::Null),
            (&["--net", "some"], vec!["true"], 125, "refused", Value::Null),
        ];
        for (flags, command, status, cause, exit) in &cases {
            let (report, out) = reported(&world, flags, command);
            assert_eq!(out.code, Some(*status), "{out}");
            assert_eq!(report["cause"], *cause, "{out}");
            let found = &report["exit"];
            let found =
                if found.is_null() { Value::Null } else { json!([found["code"], found["signal_name"]]) };
            assert_eq!(found, *exit, "{out}");
            let started = matches!(*cause, "exited" | "signalled" | "violation");
            assert_eq!(report["pid"].is_number() && report["rusage"].is_object(), started, "{out}");
            match report["error"].as_str() {
                Some(error) => assert!(!started && out.err().contains(error), "{out}"),
                None => assert!(started, "no reason is given: {out}"),
            }
        }
    });
}

#[test]
fn what_was_run_and_how_is_told() {
    as_users(|user| {
        let world = World::new(user);
        let (report, _) = reported(&world, &[], &["sh", "-c", "sleep 0.1; exit 0"]);
        assert_eq!(report["command"], json!(["sh", "-c", "sleep 0.1; exit 0"]));
        assert!(report["program"].as_str().unwrap().ends_with("/sh"));
        assert_eq!(report["profile"]["name"], "workspace");
        assert_eq!(report["workspace"], world.workspace.to_str().unwrap());
        let mode = if kernel::gives_namespaces() { "private" } else { "none" };
        assert_eq!(report["network"]["mode"], mode);
        assert!(report["duration_ms"].as_f64().unwrap() >= 100.0);
        assert!(report["rusage"]["max_rss_kib"].as_u64().unwrap() > 100);
        let layer = |report: &Value, name: &str| {
            let layers = report["layers"].as_array().unwrap();
            layers.iter().find(|layer| layer["name"] == name).unwrap()["state"].clone()
        };
        assert_eq!(layer(&report, "seccomp"), "enforced");
        assert_eq!(layer(&report, "notification"), "enforced");
        assert_eq!(layer(&report, "seal"), "not-needed");
        let (report, _) = reported(&world, &["-q", "-p", "custom", "--allow-calls", "@basic-io"], &["true"]);
        assert_eq!(layer(&report, "seal"), "enforced");
        let free = ["-p", "unrestricted", "--dangerously-unconfined"];
        let (report, _) = reported(&world, &free, &["true"]);
        assert_eq!((&report["level"], layer(&report, "seccomp")), (&json!("none"), json!("not-needed")));
        let (report, _) = reported(&world, &["--log-violations", "-q"], &["true"]);
        assert_eq!(layer(&report, "seccomp"), "partial");
    });
}

#[test]
fn equal_policies_have_equal_hashes() {
    let world = World::new(&User::ordinary());
    let hash = |flags: &[&str], command: &[&str]| {
        reported(&world, flags, command).0["policy_hash"].as_str().unwrap().to_owned()
    };
    let plain = hash(&[], &["true"]);
    assert_eq!(plain, hash(&[], &["sh", "-c", "exit 1"]));
    assert_eq!(plain, hash(&["-p", "workspace", "-q"], &["true"]));
    world.write("own.json", r#"{"description": "the same", "extends": "workspace"}"#);
    assert_eq!(plain, hash(&["-p", "./own.json"], &["true"]));
    let others: &[&[&str]] = &[
        &["-p", "minimal"],
        &["--net", "host"],
        &["--ro", "/var"],
        &["--deny-calls", "mkdir"],
        &["--deny", "/usr/share"],
        &["--deny", "/usr/include"],
        &["--namespaces", "none"],
        &["--on-violation", "kill"],
        &["--env", "NAME=value"],
    ];
    let mut seen = vec![plain];
    for flags in others {
        let other = hash(flags, &["true"]);
        assert!(!seen.contains(&other), "{flags:?} changes nothing");
        seen.push(other);
    }
}

#[test]
fn violations_are_records_with_their_counts() {
    as_users(|user| {
        let world = World::new(user);
        let script = "import socket\nfor i in range(5):\n try: socket.socket()\n except OSError: pass\n\
                      try: open('/etc/shadow')\nexcept OSError: pass\n\
                      try: socket.socket(socket.AF_UNIX).connect('\\0name')\nexcept OSError: pass";
        let (report, out) =
            reported(&world, &["--net", "none", "--explain", "-q"], &["python3", "-c", script]);
        out.success().silent();
        let records = report["violations"].as_array().unwrap();
        let named = |call: &str| records.iter().find(|record| record["call"] == call).unwrap();
        let socket = named("socket");
        assert_eq!((&socket["count"], &socket["kind"]), (&json!(5), &json!("syscall")));
        assert_eq!((&socket["fate"], &socket["confidence"]), (&json!("blocked"), &json!("observed")));
        let connect = named("connect");
        assert_eq!(connect["kind"], "address");
        assert_eq!(connect["address"], json!({"family": "unix-abstract", "name": "name"}));
        assert_eq!(socket["rule"]["key"], "network.mode");
        assert_eq!(socket["suggestion"]["flags"], json!(["--net", "host"]));
        let total: u64 = records.iter().map(|record| record["count"].as_u64().unwrap()).sum();
        assert_eq!(report["violations_total"], total);
        let path = records.iter().find(|record| record["path"] == "/etc/shadow");
        // Root without capabilities is refused by the rules; for others the file's own mode comes first or with them.
        if let Some(path) = path {
            assert_eq!((&path["kind"], &path["confidence"]), (&json!("path"), &json!("inferred")));
        }
        // What is suggested, word by word, lets it through.
        let flags: Vec<&str> = socket["suggestion"]["flags"]
            .as_array()
            .unwrap()
            .iter()
            .map(|flag| flag.as_str().unwrap())
            .collect();
        let (report, _) = reported(&world, &flags, &["python3", "-c", "import socket; socket.socket()"]);
        assert_eq!((&report["violations_total"], &report["exit_status"]), (&json!(0), &json!(0)));
    });
}

#[test]
fn the_line_and_the_record_say_the_same() {
    let world = World::new(&User::ordinary());
    let (report, out) = reported(&world, &["-p", "minimal"], &["sh", "-c", "id; true"]);
    let record = &report["violations"][0];
    let text = |key: &str| record[key].as_str().unwrap();
    let flags: Vec<&str> =
        record["suggestion"]["flags"].as_array().unwrap().iter().map(|flag| flag.as_str().unwrap()).collect();
    let line = format!(
        "sbx: blocked {}({}) in {}[{}]: {}; allow it with {}",
        text("call"),
        text("args"),
        text("process"),
        record["pid"],
        record["rule"]["text"].as_str().unwrap(),
        flags.join(" ")
    );
    assert_eq!(out.sbx_lines(), [line]);
}

#[test]
fn bytes_that_are_no_text_are_kept() {
    let world = World::new(&User::ordinary());
    let file = world.outside.join("report.json");
    let odd = OsStr::from_bytes(b"a\xffb");
    let words = ["run", "--report", file.to_str().unwrap(), "--", "echo"].map(OsStr::new);
    world.sbx(words).arg(odd).arg("\u{202e}").run().success();
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(parsed(&text)["command"], json!(["echo", {"base64": "Yf9i"}, "\u{202e}"]));
}

#[test]
fn nested_runs_report_too() {
    let world = World::new(&User::ordinary());
    let sbx = stage::sbx().to_str().unwrap();
    let outer = ["run", "--rox", stage::base().to_str().unwrap(), "--", sbx];
    world.sbx([&outer[..], &["run", "--report", "report.json", "--", "true"]].concat()).run().success();
    let report = parsed(&world.read("report.json").unwrap());
    let layers = report["layers"].as_array().unwrap();
    let heard = layers.iter().find(|layer| layer["name"] == "notification").unwrap();
    assert_eq!((&report["cause"], &heard["state"]), (&json!("exited"), &json!("absent")));
    assert_eq!(report["degradations"].as_array().unwrap().len(), 2, "{report:#}");
}
