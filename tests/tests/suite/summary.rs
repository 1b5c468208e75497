//! What people read when a run is over: the last line on a terminal, and the table of a report.

use std::time::Duration;

use sbx_tests::{Output, User, World, in_worlds, kernel, need, promise};
use serde_json::Value;

const TIME: Duration = Duration::from_secs(40);

/// The lines of a terminal on which `sbx run` with these flags ran a script.
fn on_terminal(world: &World, flags: &[&str], script: &str) -> Vec<String> {
    let words = [&["run"], flags, &["--", "sh", "-c", script]].concat();
    let (running, _terminal) = world.sbx(words).timeout(TIME).start_on_terminal();
    running.wait().out().lines().map(|line| line.trim_end().to_string()).collect()
}

/// The lines that sum up.
fn sums(lines: &[String]) -> Vec<&String> {
    lines.iter().filter(|line| line.starts_with("sbx: ") && line.contains("refusals (")).collect()
}

/// Has a shell run `sbx run` with the flags that a line ends in, and tells whether the command succeeded.
fn pasted(world: &World, last: &str, script: &str) -> bool {
    let flags = last.split_once(": --").unwrap_or_else(|| panic!("no flags: {last}")).1;
    world.write("script", script);
    let line = format!("{} run --{flags} -- sh script", sbx_tests::stage::sbx().display());
    let out = world.bare(["sh", "-c", &line]).run();
    eprintln!("{line}: {out}");
    out.code == Some(0)
}

#[test]
fn the_last_line_has_the_flags_that_would_have_allowed_everything() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let outside = world.outside.display();
        world.write(world.outside.join("odd name"), "odd\n");
        let script = format!(
            "cat {outside}/kept; cat '{outside}/odd name'; cat {outside}/dir/inner; echo x > {outside}/dir/new; \
             cat {outside}/dir/new"
        );
        let lines = on_terminal(world, &["--explain"], &script);
        assert!(!world.exists(world.outside.join("dir/new")), "{lines:#?}");
        assert!(
            !lines.iter().any(|line| line == "odd" || line == "outside" || line == "inner"),
            "{lines:#?}"
        );
        let last = lines.last().unwrap();
        let expected = format!(
            "sbx: 4 refusals (4 files); to allow all: --ro {outside}/kept --ro '{outside}/odd name' --rw {outside}/dir"
        );
        assert_eq!(*last, expected, "{lines:#?}");
        assert!(pasted(world, last, &script));
        assert_eq!(world.read(world.outside.join("dir/new")).unwrap(), "x\n");
        // One refusal has said everything in its own line.
        let lines = on_terminal(world, &["--explain"], &format!("cat {outside}/kept; cat {outside}/kept"));
        assert!(lines.iter().any(|line| line.contains("may not read")), "{lines:#?}");
        assert!(sums(&lines).is_empty(), "{lines:#?}");
    });
}

#[test]
fn different_profiles_and_networks_become_one() {
    need!("python3");
    in_worlds(|world| {
        let script = "id > /dev/null; python3 -c 'import socket; socket.socket()' && echo > made";
        let lines = on_terminal(world, &["--profile", "write", "--log-violations"], script);
        let last = lines.last().unwrap();
        assert!(last.contains(" all let through (") && last.contains("; to allow "), "{lines:#?}");
        assert_eq!(last.matches("--profile ").count(), 1, "{last}");
        assert!(last.contains("--profile workspace"), "{last}");
        std::fs::remove_file(world.path("made")).unwrap();
        assert!(pasted(world, last, script));
        assert!(world.exists("made"));
    });
}

#[test]
fn what_no_flag_allows_is_counted() {
    in_worlds(|world| {
        let script = "id; echo > file; sh -c id; unshare -U true; chroot / true; true";
        let flags = ["--deny-calls", "unshare:chroot"];
        let lines = on_terminal(world, &flags, script);
        let last = lines.last().unwrap();
        assert!(last.contains("2 refusals (2 system calls); no flag allows them"), "{lines:#?}");
    });
}

#[test]
fn only_a_terminal_gets_the_last_line() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let outside = world.outside.display();
        let script = format!("cat {outside}/kept {outside}/dir/inner; true");
        let lines = on_terminal(world, &["--explain"], &script);
        assert_eq!(sums(&lines).len(), 1, "{lines:#?}");
        assert!(sums(&on_terminal(world, &["--explain", "-q"], &script)).is_empty());
        assert!(sums(&on_terminal(world, &[], "true")).is_empty());
        let out = world.sbx(["run", "--explain", "--", "sh", "-c", &script]).run().success();
        let lines = out.sbx_lines();
        assert_eq!(lines.len(), 2, "{out}");
        assert!(sums(&lines).is_empty(), "{out}");
    });
}

/// `sbx report show` of a text on standard input.
fn shown(world: &World, text: &str) -> Output {
    world.sbx(["report", "show", "-"]).stdin(text).run()
}

/// A report of a run in which a file outside was not read and one was not made.
fn report(world: &World) -> String {
    let outside = world.outside.display();
    let script = format!("cat {outside}/kept; cat {outside}/kept; touch {outside}/new; exit 3");
    let words = ["run", "-q", "--report", "run.json", "--explain", "--", "sh", "-c", &script];
    // `--explain` contradicts `-q` unless there is a report; so nothing but the command writes to stderr.
    let out = world.sbx(words).run();
    assert!(out.code == Some(3) && out.sbx_lines().is_empty(), "{out}");
    assert!(!world.exists(world.outside.join("new")));
    world.read("run.json").unwrap()
}

#[test]
fn a_report_becomes_a_table() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let text = report(world);
        let out = world.sbx(["report", "show", "run.json"]).run().success();
        let (outside, workspace) = (world.outside.display(), world.workspace.display());
        let table = out.out();
        for part in [
            "command     sh -c 'cat ".to_string(),
            format!("workspace   {workspace}\n"),
            "profile     workspace\n".to_string(),
            "ended       exited with 3, after ".to_string(),
            "memory      ".to_string(),
            format!("may not read {outside}/kept (inferred)\n"),
            " 2 times in cat[".to_string(),
            format!("  allow it with --ro {outside}/kept\n"),
            format!("in all      2 refusals (2 files); to allow all: --rw {outside}\n"),
        ] {
            assert!(table.contains(&part), "no {part:?}: {out}");
        }
        assert_eq!(shown(world, &text).success().out(), table);
        // An audit log is several reports, and a report may have been laid out anew.
        assert_eq!(shown(world, &text.repeat(2)).success().out(), format!("{table}\n{table}"));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(shown(world, &format!("{value:#}")).success().out(), table);
    });
}

#[test]
fn nothing_of_a_report_steers_the_terminal() {
    promise!(kernel::PATHS);
    /// Puts a hostile text in the place of every text.
    fn poison(value: &mut Value) {
        match value {
            Value::String(text) => *text = "\x1b[2J\x07\u{9b}31m\r\u{202e}x\u{85}".to_string(),
            Value::Array(list) => list.iter_mut().for_each(poison),
            Value::Object(map) => map.values_mut().for_each(poison),
            _ => {}
        }
    }
    let world = World::new(&User::current());
    let mut value: Value = serde_json::from_str(&report(&world)).unwrap();
    value["network"]["allow"] = serde_json::json!(["x"]);
    value["network"]["mode"] = serde_json::json!("hosts");
    let poisoned = value.clone();
    poison(&mut value);
    // A word of a list that only sbx writes is no free text.
    value["network"]["mode"] = poisoned["network"]["mode"].clone();
    let out = shown(&world, &value.to_string()).success();
    let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!out.out().contains(harmful), "{:?}", out.out());
    assert!(out.out().lines().count() > 15, "{out}");
    // What is no report comes back in a sentence.
    let out = shown(&world, "{\"version\": \"\\u001b[2J\u{9b}\"}").exited(125);
    assert!(!out.err().contains(harmful), "{:?}", out.err());
}

#[test]
fn what_is_no_report_is_one_sentence() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let text = report(world);
        let cut = &text[..text.len() / 2];
        let newer = text.replacen("\"version\":1", "\"version\":2", 1);
        let without_cause = text.replacen("\"cause\":", "\"because\":", 1);
        for (text, part) in [
            ("", "standard input is empty"),
            ("\n \n", "standard input is empty"),
            (cut, "standard input is cut off"),
            (&newer, "report of version 2"),
            (&without_cause, "missing field `cause`"),
            ("{}", "standard input is no report of sbx"),
            (
                "{\n  \"extends\": \"workspace\"\n}\n",
                "standard input is no report of sbx: missing field `version`",
            ),
            ("{\n  \"version\": 1,\n", "standard input is cut off: "),
            ("root:x:0:0\n", "standard input is no report of sbx"),
            (&format!("{text}nonsense\n"), "in line 2"),
            (&format!("{text}{cut}"), "cut off in line 2"),
        ] {
            shown(world, text).refused(125, &[part]);
        }
        world.sbx(["report", "show", "nowhere"]).run().refused(125, &["'nowhere'", "no such file"]);
        world.sbx(["report", "show", "."]).run().refused(125, &["'.'", "is a directory"]);
        world.bare(["mkfifo", "pipe"]).run().success();
        world.sbx(["report", "show", "pipe"]).run().refused(125, &["'pipe'", "it is a FIFO"]);
        world.sbx(["report", "show"]).run().refused(125, &["FILE"]);
    });
}

#[test]
fn colours_are_for_terminals() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        report(world);
        let on_terminal = |name: &str, value: &str| {
            let show = world.sbx(["report", "show", "run.json"]).env("TERM", "xterm").env(name, value);
            let (running, _terminal) = show.timeout(TIME).start_on_terminal();
            running.wait().success().out()
        };
        assert!(on_terminal("X", "").contains("\x1b[31mrefused"));
        assert!(!on_terminal("NO_COLOR", "1").contains('\x1b'));
        let out = world.sbx(["report", "show", "run.json"]).env("TERM", "xterm").run().success();
        assert!(!out.out().contains('\x1b'), "{out}");
    });
}

#[test]
fn a_summary_is_that_table_after_the_run() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let outside = world.outside.display();
        let script = format!("echo said; cat {outside}/kept {outside}/dir/inner; exit 3");
        let run = |flags: &[&str]| {
            let words = [&["run", "--summary", "--explain"], flags, &["--", "sh", "-c", &script]].concat();
            world.sbx(words)
        };
        let out = run(&[]).run().exited(3).prints("said\n");
        let (lines, table) =
            out.err().split_once("\n\ncommand ").map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
        assert_eq!(lines.matches("allow it with").count(), 2, "{out}");
        assert!(table.contains("ended       exited with 3, after "), "{out}");
        assert!(
            table.contains(&format!("to allow all: --ro {outside}/kept --ro {outside}/dir/inner\n")),
            "{out}"
        );
        // Quiet, it is all there is; and a report has the same.
        let out = run(&["-q", "--report", "run.json"]).run().exited(3);
        assert!(out.sbx_lines().is_empty() && out.err().contains("\ncommand "), "{out}");
        let shown = world.sbx(["report", "show", "run.json"]).run().success().out();
        assert!(out.err().ends_with(&shown), "{out}{shown}");
        // The table has the last line in it.
        let (running, _terminal) = run(&[]).timeout(TIME).start_on_terminal();
        let out = running.wait().out();
        assert!(out.contains("in all ") && !out.contains("sbx: 2 refusals"), "{out}");
        // A run that does not start has none.
        world.sbx(["run", "--summary", "--", "no-such-command"]).run().refused(127, &["no-such-command"]);
        world.sbx(["run", "--summary", "--exec", "--", "true"]).run().refused(125, &["--summary", "--exec"]);
    });
}

#[test]
fn explained_repeats_of_several_processes_are_one_line() {
    need!("head", "wc");
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let outside = world.outside.display();
        let script = format!(
            "cd {outside} || cd /; for i in 1 2 3; do cat {outside}/kept; done; head {outside}/kept; \
             wc -l < {outside}/kept; test -w {outside}/kept; echo x > {outside}/kept; true"
        );
        let words = ["run", "--explain", "--report", "run.json", "--", "sh", "-c", &script];
        let out = world.sbx(words).run().success().prints("");
        assert_eq!(world.read(world.outside.join("kept")).unwrap(), "outside\n");
        let lines = out.sbx_lines();
        let about = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
        assert_eq!(about(&format!("may not read {outside}/kept (inferred)")), 1, "{out}");
        // Another reason is another line.
        assert_eq!(about(&format!("may not change {outside}/kept (inferred)")), 1, "{out}");
        assert_eq!(about(" 5 times in cat, head and sh"), 1, "{out}");
        // The report tells the processes apart.
        let report: Value = serde_json::from_str(&world.read("run.json").unwrap()).unwrap();
        let records = report["violations"].as_array().unwrap();
        let processes: Vec<&str> = records
            .iter()
            .filter(|record| record["rule"]["text"].as_str().unwrap().contains("may not read"))
            .filter(|record| record["path"].as_str().unwrap().ends_with("/kept"))
            .map(|record| record["process"].as_str().unwrap())
            .collect();
        assert_eq!(processes, ["cat", "head", "sh"], "{report:#}");
    });
}
