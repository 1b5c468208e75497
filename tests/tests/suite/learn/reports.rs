//! Learning from reports of runs that were.

use super::{FILE, learned};
use sbx_tests::{World, in_worlds, need, promise};
use serde_json::{Value, json};

/// The report of a run under a profile.
fn report(world: &World, profile: &str, script: &str) -> Value {
    let run = world.sbx(["run", "-q", "-p", profile, "--report", "../report.json", "--explain"]);
    run.args(["--", "/bin/sh", "-c", script]).run();
    serde_json::from_str(&world.read("../report.json").unwrap()).unwrap()
}

#[test]
fn reports_teach_what_their_runs_were_refused() {
    in_worlds(|world| {
        let (kept, inner) = (world.outside.join("kept"), world.outside.join("dir/inner"));
        let one = report(world, "read-only", &format!("cat {}", kept.display()));
        let other = report(world, "read-only", &format!("cat {} ~/.netrc; echo x > made", inner.display()));
        world.write("../audit.log", format!("{one}\n{other}\n"));
        let out = world.sbx(["learn", "--from", "../audit.log", "-o", FILE]).run().success();
        assert!(!world.exists("made"), "{out}");
        let profile = learned(world).unwrap();
        assert_eq!(profile["extends"], "read-only");
        assert!(
            out.err().contains(".netrc") && !profile["paths"]["read"].to_string().contains("netrc"),
            "{out}"
        );
        let why = profile["paths"]["read"][1]["why"].as_str().unwrap();
        assert!(why.starts_with("refused in report 2"), "{why}");
        let script = format!("cat {} {} ~/.netrc; echo x > made", kept.display(), inner.display());
        let out = world.sbx(["run", "-p", FILE, "--", "/bin/sh", "-c", &script]).run();
        assert_eq!(out.out(), "outside\ninner\n", "{out}");
        assert!(world.exists("made"), "{out}");
    });
}

/// Under profiles that have no hosts to reach.
#[test]
fn hosts_that_reports_name_are_learned_with_their_network() {
    promise!(namespaces);
    need!("bash");
    in_worlds(|world| {
        for profile in ["workspace", "read-only"] {
            let report = report(world, profile, "bash -c ': < /dev/tcp/192.0.2.7/443'");
            world.write("../report.json", report.to_string());
            let file = format!("../learned-from-{profile}.json");
            world.sbx(["learn", "--from", "../report.json", "-o", &file]).run().success();
            let profile: Value = serde_json::from_str(&world.read(&file).unwrap()).unwrap();
            assert_eq!(profile["network"]["connect"][0]["host"], "192.0.2.7:443");
            world.sbx(["run", "-p", &file, "--", "true"]).run().success();
        }
    });
}

#[test]
fn a_hostile_report_is_refused_or_teaches_nothing() {
    in_worlds(|world| {
        let real = report(world, "read-only", &format!("cat {}/kept", world.outside.display()));
        let learn = |report: &str, flags: &[&str]| {
            world.write("../hostile.json", report);
            let _ = std::fs::remove_file(world.path(FILE));
            world.sbx(["learn", "--from", "../hostile.json", "-o", FILE]).args(flags).run()
        };
        // Which profile to begin from is not for a report to say, but for the built-in ones.
        let mut own = real.clone();
        own["profile"]["file"] = json!("/tmp/evil.json");
        let out = learn(&own.to_string(), &[]);
        assert_eq!((out.code, learned(world)), (Some(125), None), "{out}");
        let mut open = real.clone();
        open["profile"]["name"] = json!("unrestricted");
        let out = learn(&open.to_string(), &[]);
        assert_eq!((out.code, learned(world)), (Some(125), None), "{out}");
        for text in ["", "{", "[]", "{\"version\": 1}", &real.to_string()[..200]] {
            let out = learn(text, &[]);
            assert_eq!((out.code, learned(world)), (Some(125), None), "{text}: {out}");
        }
        // A flag that is not about what was refused.
        for flags in
            [json!(["--ro", "/var"]), json!(["--dangerously-unconfined"]), json!(["--rw", "/var/lib"])]
        {
            let mut forged = real.clone();
            forged["violations"][0]["suggestion"]["flags"] = flags.clone();
            let out = learn(&forged.to_string(), &[]).success();
            assert_eq!(learned(world).unwrap()["paths"], Value::Null, "{flags}: {out}");
            assert!(out.err().contains("not learned"), "{out}");
        }
        // The twin.
        learn(&real.to_string(), &[]).success();
        assert!(learned(world).unwrap()["paths"]["read"][0]["path"].to_string().contains("kept"));
    });
}

/// A refused call is about the paths that it names.
#[test]
fn a_forged_path_opens_no_other() {
    in_worlds(|world| {
        let made = world.outside.join("dir/made").display().to_string();
        let script = format!("echo x > {made}");
        let real = report(world, "minimal", &script);
        let rule = world.outside.join("dir").display().to_string();
        let forge = |kind: &str, path: &str, flag: &str| {
            let mut forged = real.clone();
            let record = &mut forged["violations"][0];
            (record["kind"], record["path"]) = (json!(kind), json!(path));
            record["args"] = json!(format!("\"{path}\", O_WRONLY|O_CREAT|O_TRUNC"));
            record["suggestion"]["flags"] = json!([flag, rule]);
            forged
        };
        for (text, is_learned) in [
            (forge("syscall", "/nowhere/x", "--rw"), false),
            (forge("path", "x", "--rwx"), false),
            (forge("syscall", "x", "--rw"), false),
            (forge("syscall", &made, "--rw"), true),
            (real.clone(), true),
        ] {
            world.write("../forged.json", text.to_string());
            let out = world.sbx(["learn", "--from", "../forged.json", "-o", FILE]).run().success();
            let run = world.sbx(["run", "-q", "-p", FILE, "--", "/bin/sh", "-c", &script]).run();
            assert_eq!(world.exists(&made), is_learned, "{text:#} {out} {run}");
            let _ = std::fs::remove_file(&made);
        }
    });
}

#[test]
fn a_report_where_commands_write_is_warned_of() {
    in_worlds(|world| {
        let real = report(world, "workspace", &format!("cat {}/kept", world.outside.display()));
        for (place, warned) in [("report.json", true), ("../kept.json", false)] {
            world.write(place, real.to_string());
            let out = world.sbx(["learn", "--from", place, "-o", FILE]).run().success();
            assert_eq!(out.err().contains("one of them may have written it"), warned, "{out}");
        }
    });
}
