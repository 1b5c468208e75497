//! Where reports go: files, descriptors, the audit log.

use crate::report::parsed;
use sbx_tests::{Cmd, User, World, as_users, stage, sys};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::time::Duration;

#[test]
fn the_file_is_the_users_alone_and_replaces_what_was_there() {
    as_users(|user| {
        let world = World::new(user);
        let run =
            |script: &str| world.sbx(["run", "--report", "report.json", "--", "sh", "-c", script]).run();
        let kept = || fs::read_to_string(world.outside.join("kept")).unwrap();
        let path = world.path("report.json");
        run("true").success().silent();
        let meta = path.symlink_metadata().unwrap();
        assert_eq!((meta.mode() & 0o7777, meta.uid(), meta.nlink()), (0o600, user.id, 1));
        // Whatever stands there by the end, before or during the run, makes room.
        let target = world.outside.join("kept");
        let link = format!("ln -sf {} report.json", target.display());
        let planted = [
            link.as_str(),
            "rm report.json; mkfifo report.json",
            "rm report.json; ln -s /nowhere report.json",
            "echo forged > report.json",
            "chmod 666 report.json",
        ];
        for script in planted {
            run(script).success();
            assert!(path.symlink_metadata().unwrap().is_file(), "{script}");
            assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600, "{script}");
            assert_eq!(parsed(&world.read("report.json").unwrap())["cause"], "exited", "{script}");
        }
        fs::remove_file(&path).unwrap();
        symlink(&target, &path).unwrap();
        run("true").success();
        assert!(path.symlink_metadata().unwrap().is_file());
        assert_eq!(kept(), "outside\n");
        // A directory in its place is in the way, and is said to be.
        run("rm report.json; mkdir report.json").refused(125, &["report.json", "directory", "exited with 0"]);
    });
}

#[test]
fn a_directory_that_is_swapped_leads_nowhere_else() {
    as_users(|user| {
        let world = World::new(user);
        world.make_dir(&world.path("logs"));
        let victim = world.write(world.outside.join("logs/report.json"), "mine\n");
        let script = format!("mv logs old; ln -s {} logs", world.outside.join("logs").display());
        let out = world.sbx(["run", "--report", "logs/report.json", "--", "sh", "-c", &script]).run();
        out.refused(125, &["logs/report.json", "its directory was moved or replaced"]);
        assert_eq!(fs::read_to_string(victim).unwrap(), "mine\n");
        parsed(&world.read("old/report.json").unwrap());
        // The control: the command did swap them.
        assert!(world.path("logs").symlink_metadata().unwrap().is_symlink());
    });
}

/// At the end nothing is left of what lets root write there.
#[test]
fn root_is_told_of_anothers_directory_before_anything_is_started() {
    let user = User::current();
    if !user.is_root() {
        return;
    }
    let world = World::new(&user);
    let others = User::ordinary().id;
    world.make_dir(&world.path("theirs"));
    std::os::unix::fs::chown(world.path("theirs"), Some(others), None).unwrap();
    let run = |file: &str| world.sbx(["run", "--report", file, "--", "touch", "made"]).run();
    run("theirs/report.json").refused(125, &[&format!("belongs to user {others}"), "--report-fd"]);
    assert!(!world.exists("made") && !world.exists("theirs/report.json"));
    Cmd::new("chmod").arg("777").arg(world.path("theirs")).run().success();
    run("theirs/report.json").success();
    assert!(world.exists("made") && world.exists("theirs/report.json"));
}

#[test]
fn what_cannot_be_written_is_said_before_anything_is_started() {
    as_users(|user| {
        let world = World::new(user);
        let refuses = |flags: &[&str], words: &[&str]| {
            world.sbx([&["run"], flags, &["--", "touch", "made"]].concat()).run().refused(125, words);
            assert!(!world.exists("made"), "{flags:?}");
        };
        world.write("file", "");
        world.make_dir(&world.path("dir"));
        symlink("elsewhere", world.path("link")).unwrap();
        Cmd::new("mkfifo").arg(world.path("fifo")).run().success();
        Cmd::new("chmod").arg("666").arg(world.path("fifo")).run().success();
        for flag in ["--report", "--audit-log"] {
            refuses(&[flag, "missing/report.json"], &["missing", "no such file or directory"]);
            refuses(&[flag, "file/report.json"], &["file", "not a directory"]);
            refuses(&[flag, "dir"], &["dir", "is a directory"]);
            refuses(&[flag, "fifo"], &["fifo", "no ordinary file"]);
            refuses(&[flag, "/dev/null"], &["/dev/null", "no ordinary file"]);
        }
        refuses(&["--report", ""], &[]);
        refuses(&["--report", "dir/.."], &["names no file"]);
        refuses(&["--report", "/dev/stdout"], &["use --report-fd"]);
        refuses(&["--report", "-"], &["'-'", "use --report-fd", "./-"]);
        assert!(!world.exists("-"));
        world.sbx(["run", "--report", "./-", "--", "true"]).run().success().silent();
        assert!(world.exists("-"));
        refuses(&["--audit-log", "link"], &["link", "symbolic link"]);
        assert!(!world.exists("elsewhere"));
        for number in ["-1", "0", "1", "2", "77", "x", "2147483648"] {
            refuses(&["--report-fd", number], &[]);
        }
        if !user.is_root() {
            refuses(&["--report", "/etc/report.json"], &["permission denied"]);
            refuses(&["--audit-log", "/etc/audit.log"], &["permission denied"]);
        }
        // The places that are in order hear of those that are not.
        let good = world.outside.join("report.json");
        refuses(&["--report", good.to_str().unwrap(), "--audit-log", "missing/log"], &["missing/log"]);
        assert_eq!(parsed(&fs::read_to_string(good).unwrap())["cause"], "refused");
        refuses(&["--report", "file", "--exec"], &["--report", "--exec"]);
        refuses(&["--report", "file", "--report", "file"], &["--report", "twice"]);
    });
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = std::io::pipe().unwrap();
    (reader.into(), writer.into())
}

fn read(reader: OwnedFd) -> String {
    std::io::read_to_string(File::from(reader)).unwrap()
}

#[test]
fn a_descriptor_gets_the_report_and_the_command_does_not_get_it() {
    as_users(|user| {
        let world = World::new(user);
        for profile in ["workspace", "minimal"] {
            let (reader, writer) = pipe();
            let script = "echo forged >&5; echo $?";
            let command = ["run", "-p", profile, "--report-fd", "5", "--", "sh", "-c", script];
            let out = world.sbx(command).pass_fd(writer, 5).run();
            assert!(!out.out().contains('0') && out.err().contains("5"), "{out}");
            let report = parsed(&read(reader));
            assert_eq!(report["cause"], "exited");
            // The control: without the flag, and passed on, it is the command's.
            let (reader, writer) = pipe();
            let command = ["run", "-p", profile, "--pass-fd", "5", "--", "sh", "-c", script];
            world.sbx(command).pass_fd(writer, 5).run().success();
            assert_eq!(read(reader), "forged\n");
        }
        let (_reader, writer) = pipe();
        let both = ["run", "--report-fd", "5", "--pass-fd", "5", "--", "touch", "made"];
        world.sbx(both).pass_fd(writer, 5).run().refused(125, &["descriptor 5", "--pass-fd"]);
        assert!(!world.exists("made"));
        let (reader, writer) = pipe();
        world
            .sbx(["run", "--report-fd", "5", "--bad", "--", "true"])
            .pass_fd(writer, 5)
            .run()
            .refused(125, &[]);
        assert_eq!(parsed(&read(reader))["cause"], "refused");
    });
}

#[test]
fn a_descriptor_that_cannot_take_it_is_said() {
    let world = World::new(&User::ordinary());
    let run = |command: &[&str]| world.sbx([&["run", "--report-fd", "5", "--"], command].concat());
    let (reader, writer) = pipe();
    drop(reader);
    run(&["touch", "made"]).pass_fd(writer, 5).run().refused(125, &["descriptor 5", "nobody"]);
    let (reader, writer) = pipe();
    drop(writer);
    run(&["touch", "made"]).pass_fd(reader, 5).run().refused(125, &["descriptor 5", "not open for writing"]);
    assert!(!world.exists("made"));
    let full = File::options().write(true).open("/dev/full").unwrap();
    run(&["sh", "-c", "exit 3"])
        .pass_fd(full.into(), 5)
        .run()
        .refused(125, &["descriptor 5", "no space left on device", "exited with 3"]);
    // A reader that goes away during the run.
    let (reader, writer) = pipe();
    let wait = "echo up; until [ -e go ]; do sleep 0.02; done; exit 3";
    let running = run(&["sh", "-c", wait]).pass_fd(writer, 5).start();
    running.wait_for("up\n");
    drop(reader);
    world.write("go", "");
    let out = running.wait().exited(125);
    out.says("descriptor 5").says("broken pipe").says("exited with 3");
}

/// A command whose report is more than a pipe or a socket takes at a time.
fn long_winded(flags: &[&str]) -> Vec<String> {
    let words = ["run", "-q", "--report-fd", "5"].iter().chain(flags).chain(&["--", "sh", "-c", "echo up"]);
    words.map(|word| word.to_string()).chain((0..8).map(|_| "x".repeat(60_000))).collect()
}

#[test]
fn a_reader_of_the_report_may_take_its_time_but_not_more_than_the_run_has() {
    as_users(|user| {
        let world = World::new(user);
        let socket = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (OwnedFd::from(ours), OwnedFd::from(theirs))
        };
        let moment = || std::thread::sleep(Duration::from_millis(500));
        for (ends, signal) in [(pipe as fn() -> _, libc::SIGTERM), (socket, libc::SIGINT)] {
            // Also where the descriptor is one that does not wait.
            let (reader, writer) = ends();
            sys::never_wait(&writer);
            let running = world.sbx(long_winded(&[])).pass_fd(writer, 5).start();
            running.wait_for("up\n");
            moment();
            assert_eq!(parsed(&read(reader))["command"].as_array().unwrap().len(), 11);
            running.wait().success();
            let (reader, writer) = ends();
            let running = world.sbx(long_winded(&[])).pass_fd(writer, 5).start();
            running.wait_for("up\n");
            moment();
            running.signal(signal);
            let out = running.wait().exited(125);
            out.says("descriptor 5: a signal ended the wait").says("exited with 0");
            drop(reader);
        }
        // Not one that the caller ignores.
        let (reader, writer) = pipe();
        let running = world.sbx(long_winded(&[])).pass_fd(writer, 5).ignoring(libc::SIGHUP).start();
        running.wait_for("up\n");
        moment();
        running.signal(libc::SIGHUP);
        moment();
        parsed(&read(reader));
        running.wait().success();
        let (_reader, writer) = pipe();
        let out = world.sbx(long_winded(&["-t", "1s"])).pass_fd(writer, 5).run();
        out.exited(125).says("descriptor 5: its reader takes nothing").says("exited with 0");
    });
}

#[test]
fn a_message_is_a_whole_report() {
    let world = World::new(&User::ordinary());
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    world.sbx(["run", "--report-fd", "5", "--", "true"]).pass_fd(theirs.into(), 5).run().success();
    let mut message = vec![0; 1 << 16];
    let length = ours.recv(&mut message).unwrap();
    parsed(std::str::from_utf8(&message[..length]).unwrap());
}

/// Lines of `sbx` that a limit of its caller's has no room for are no way to be rid of the supervisor.
#[test]
fn a_flood_of_lines_into_a_file_that_may_not_grow_loses_no_report() {
    as_users(|user| {
        let world = World::new(user);
        let program = world.write(
            "flood.py",
            "import ctypes\nfor n in range(300): ctypes.CDLL(None).mq_open(b'/queue%d' % n, 0)\n\
             open('survived', 'w')",
        );
        let (reader, writer) = pipe();
        let sbx = stage::sbx();
        let script = format!(
            "ulimit -f 4; exec {} run --report-fd 5 -- python3 {} 2>{}",
            sbx.display(),
            program.display(),
            world.path("lines").display()
        );
        let running = world.bare(["bash", "-c", &script]).pass_fd(writer, 5).start();
        let report = parsed(&read(reader));
        running.wait().success();
        assert_eq!((&report["cause"], &report["violations_total"]), (&json!("exited"), &json!(300)));
        assert_eq!(world.path("lines").metadata().unwrap().len(), 4096);
        assert!(world.exists("survived"));
    });
}

#[test]
fn the_audit_log_has_one_whole_line_for_each_run() {
    as_users(|user| {
        let world = World::new(user);
        let log = world.outside.join("audit.log");
        let flags = ["run", "-q", "--audit-log", log.to_str().unwrap()];
        let running: Vec<_> = (0..20)
            .map(|number| {
                let command = match number % 4 {
                    0 => vec!["--", "no-such-command"],
                    1 => vec!["-p", "minimal", "--", "sh", "-c", "id; true"],
                    2 => vec!["--no-such-flag", "--", "true"],
                    _ => vec!["--", "sh", "-c", "exit 3"],
                };
                world.sbx([&flags[..], &command].concat()).start()
            })
            .collect();
        for run in running {
            run.wait();
        }
        let text = fs::read_to_string(&log).unwrap();
        let reports: Vec<Value> = text.lines().map(|line| parsed(&format!("{line}\n"))).collect();
        let caused = |cause: &str| reports.iter().filter(|report| report["cause"] == cause).count();
        assert_eq!((caused("not-found"), caused("refused"), caused("exited")), (5, 5, 10));
        let meta = log.metadata().unwrap();
        assert_eq!((meta.mode() & 0o7777, meta.uid()), (0o600, user.id));
    });
}

#[test]
fn an_audit_log_that_the_command_may_change_is_warned_of() {
    let world = World::new(&User::ordinary());
    let run = |log: &Path| world.sbx(["run", "--audit-log"]).arg(log).args(["--", "true"]).run().success();
    run(&world.outside.join("audit.log")).silent();
    run(Path::new("audit.log")).says("the command may write where the audit log is");
    let report = parsed(&world.read("audit.log").unwrap());
    assert_eq!(report["degradations"].as_array().unwrap().len(), 1);
}

#[test]
fn what_does_not_fit_is_not_written_at_all() {
    as_users(|user| {
        let world = World::new(user);
        let run = |flag: &str, limit: &str| {
            let script =
                format!("ulimit -f {limit}; exec {} run {flag} -- sh -c 'exit 3'", stage::sbx().display());
            world.bare(["sh", "-c", &script]).run()
        };
        let (report, log) = (world.outside.join("report.json"), world.outside.join("audit.log"));
        let to_log = format!("--audit-log {}", log.display());
        let to_file = format!("--report {}", report.display());
        run(&to_log, "1").refused(125, &["audit.log", "taken back", "exited with 3"]);
        assert_eq!(log.metadata().unwrap().len(), 0);
        run(&to_file, "1").refused(125, &["report.json", "file too large", "exited with 3"]);
        assert!(report.symlink_metadata().is_err());
        run(&to_log, "100").exited(3);
        run(&to_file, "100").exited(3);
        parsed(&fs::read_to_string(log).unwrap());
        parsed(&fs::read_to_string(report).unwrap());
    });
}

#[test]
fn a_directory_that_was_moved_away_with_the_report_is_told() {
    as_users(|user| {
        let world = World::new(user);
        world.make_dir(&world.path("logs"));
        let run =
            |script: &str| world.sbx(["run", "--report", "logs/r.json", "--", "sh", "-c", script]).run();
        let swap = "mv logs away; mkdir logs; echo '{\"cause\": \"forged\"}' >logs/r.json";
        run(swap).refused(125, &["logs/r.json", "its directory was moved or replaced"]);
        assert_eq!(parsed(&world.read("away/r.json").unwrap())["cause"], "exited");
        run("mv logs gone").refused(125, &["its directory was moved or replaced"]);
        // Moved there and back, or with another mode, it is the same one.
        world.make_dir(&world.path("logs"));
        run("mv logs more; chmod 711 more; mv more logs").success();
        assert_eq!(parsed(&world.read("logs/r.json").unwrap())["cause"], "exited");
    });
}
