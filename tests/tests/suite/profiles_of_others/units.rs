//! Units of systemd: what a profile made of one lets through and what it refuses.

use super::made_of;
use sbx_tests::world::SECRET;
use sbx_tests::{World, as_users};

/// What a shell makes and shows under a unit with these lines. `WORKSPACE` stands for it, `%h` for the home.
fn shown(world: &World, lines: &str, script: &str) -> String {
    shown_in(world, &world.workspace.display().to_string(), lines, script)
}

/// The same where the command starts in a directory.
fn shown_in(world: &World, directory: &str, lines: &str, script: &str) -> String {
    let workspace = world.workspace.display().to_string();
    let unit = format!(
        "[Unit]\nAfter=x\n[Service]\nExecStart=/bin/true\n{}\n",
        lines.replace("WORKSPACE", &workspace)
    );
    let profile = made_of(world, "systemd", unit);
    let run = world.sbx(["run", "--cwd", directory, "-p"]).arg(&profile);
    run.args(["--", "/bin/sh", "-c", script]).run().out()
}

#[test]
fn filters_of_units_hold() {
    as_users(|user| {
        let world = World::new(user);
        let open = "ReadWritePaths=WORKSPACE\nSystemCallErrorNumber=EPERM\n";
        for (lines, made) in [
            ("SystemCallFilter=~mkdir mkdirat", false),
            ("SystemCallFilter=@system-service", true),
            ("SystemCallFilter=@system-service\nSystemCallFilter=~mkdir mkdirat", false),
            ("SystemCallFilter=mkdir\nSystemCallFilter=\nSystemCallFilter=~mkdir mkdirat", false),
            ("SystemCallFilter=~@mount\nRestrictSUIDSGID=yes", true),
        ] {
            let out = shown(&world, &format!("{open}{lines}"), "mkdir made 2>/dev/null; echo end");
            assert_eq!(out, "end\n", "{lines}");
            assert_eq!(world.path("made").is_dir(), made, "{lines}");
            let _ = std::fs::remove_dir(world.path("made"));
        }
    });
}

/// A path behind `-` may be missing, and one without it may not.
#[test]
fn a_path_that_may_be_missing_is_opened_where_it_is_there() {
    as_users(|user| {
        let world = World::new(user);
        let own = "ReadWritePaths=-WORKSPACE/made -/no/such/path\n";
        let script = "echo x > made/file; ls made; echo end";
        assert_eq!(shown(&world, own, script), "end\n");
        world.make_dir(&world.path("made"));
        assert_eq!(shown(&world, own, script), "file\nend\n");
        assert_eq!(shown(&world, "ReadWritePaths=/no/such/path\n", script), "");
    });
}

/// A unit that writes to /tmp has the run's own: what is on the machine is none of its business.
#[test]
fn the_tmp_of_a_unit_is_that_of_the_run() {
    as_users(|user| {
        let world = World::new(user);
        let name = format!("/tmp/sbx-test-of-a-unit-{}", std::process::id());
        let script = format!(
            "cd /; TMPDIR=${{TMPDIR:-/tmp}}; echo x > $TMPDIR/in-run && cat $TMPDIR/in-run; echo x > {name}"
        );
        for lines in ["ReadWritePaths=/tmp\n", "PrivateTmp=yes\nReadWritePaths=/tmp/\n"] {
            let out = shown_in(&world, "/", lines, &script);
            let is_there = std::fs::remove_file(&name).is_ok();
            assert_eq!((out.as_str(), is_there), ("x\n", false), "{lines}");
        }
        // The twin: a rule about the machine's.
        let profile = r#"{"extends": "workspace", "paths": {"write": ["/tmp"]}}"#;
        std::fs::write(world.outside.join("open.json"), profile).unwrap();
        world.sbx(["run", "-p"]).arg(world.outside.join("open.json")).args(["--", "touch", &name]).run();
        assert!(std::fs::remove_file(&name).is_ok());
    });
}

/// What directives keep stays as it is, although the unit may write everywhere else.
#[test]
fn a_unit_that_writes_everywhere_keeps_what_directives_keep() {
    as_users(|user| {
        let world = World::new(user);
        let name = format!("sbx-test-of-a-unit-{}", std::process::id());
        // Nothing is written to what is opened.
        let script = format!(
            "for place in /etc /usr /root {0}; do mkdir $place/{name} && rmdir $place/{name} && echo $place; done\n\
             for file in /proc/sys/kernel/core_pattern $(find /sys/fs/cgroup -name cgroup.procs | head -n 1)\n\
             do (: >> $file) && echo $file; done",
            world.outside.display()
        );
        let outside = format!("{}\n", world.outside.display());
        let all = "ReadWritePaths=/\n";
        for lines in [
            "ProtectSystem=full\nProtectHome=read-only\nProtectKernelTunables=yes\nProtectControlGroups=yes\n",
            "ProtectSystem=full\nProtectHome=yes\nProtectKernelTunables=yes\nProtectControlGroups=strict\n",
        ] {
            assert_eq!(shown(&world, &format!("{lines}{all}"), &script), outside, "{lines}");
        }
        // Of two assignments about one place the stricter counts, whatever stands last.
        for lines in ["ProtectSystem=strict", "DynamicUser=yes", "ReadOnlyPaths=/", "InaccessiblePaths=/"] {
            assert_eq!(shown(&world, &format!("{lines}\n{all}"), &script), "", "{lines}");
        }
        // The twin: nothing is kept.
        let out = shown(&world, all, &script);
        assert!(out.ends_with(&outside) || out.contains(&outside), "{out}");
        assert_eq!(out.contains("/etc\n/usr\n/root\n"), user.is_root(), "{out}");
        assert_eq!(out.contains("core_pattern"), user.is_root(), "{out}");
    });
}

/// What is closed hides what is named in it, and a kernel's log and modules are closed.
#[test]
fn what_directives_close_stays_closed() {
    as_users(|user| {
        let world = World::new(user);
        let outside = world.outside.display();
        let script = format!("cat {outside}/dir/inner; ls /usr/lib/modules >/dev/null && echo modules");
        for (lines, out) in [
            (format!("InaccessiblePaths={outside}\nReadWritePaths={outside}/dir"), "modules\n"),
            (format!("ReadWritePaths={outside}\nProtectKernelModules=yes"), "inner\n"),
            (format!("ReadWritePaths={outside}\n"), "inner\nmodules\n"),
        ] {
            let out = out.replace("modules\n", if has_modules() { "modules\n" } else { "" });
            assert_eq!(shown(&world, &lines, &script), out, "{lines}");
        }
        // Whether the log may be read without a rule, the machine says.
        let script = "head -c 1 /dev/kmsg > /dev/null && echo log; test -e /dev/null && echo end";
        assert_eq!(shown(&world, "ProtectKernelLogs=yes", script), "end\n");
    });
}

fn has_modules() -> bool {
    std::fs::read_dir("/usr/lib/modules").is_ok()
}

/// Both directories of temporary files are hidden, and what the unit wants of them is lost with a line.
#[test]
fn private_directories_of_temporary_files_are_private() {
    as_users(|user| {
        let world = World::new(user);
        let directory = format!("/var/tmp/sbx-test-of-a-unit-{}-{}", std::process::id(), user.name);
        std::fs::create_dir(&directory).unwrap();
        sbx_tests::stage::give(directory.as_ref(), user);
        std::fs::write(format!("{directory}/kept"), "kept\n").unwrap();
        let script = format!("cat {directory}/kept; echo x > {directory}/made && echo made; echo end");
        let wanted = format!("ReadWritePaths={directory}\n");
        let shown: Vec<String> =
            ["PrivateTmp=no\n", "PrivateTmp=yes\n", "PrivateTmp=disconnected\n", "DynamicUser=yes\n"]
                .map(|lines| shown_in(&world, "/", &format!("{lines}{wanted}"), &script))
                .into();
        world.write("unit", format!("[Service]\nPrivateTmp=yes\n{wanted}"));
        let strict = world.sbx(["profile", "import", "--from", "systemd", "unit"]).run();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(shown, ["kept\nmade\nend\n", "end\n", "end\n", "end\n"]);
        assert_eq!(strict.code, Some(125), "{strict}");
        let line = "line 3: ReadWritePaths: '/var/tmp/sbx-test-of-a-unit";
        assert!(
            strict.err().contains(line) && strict.err().contains("PrivateTmp hides '/var/tmp'"),
            "{strict}"
        );
    });
}

#[test]
fn namespaces_of_units_are_refused() {
    as_users(|user| {
        let world = World::new(user);
        let script = "python3 -c 'import ctypes, os\n\
                      print(ctypes.CDLL(None, use_errno=True).unshare(0x10000000), ctypes.get_errno())'";
        let lines = "SystemCallErrorNumber=EPERM\nSystemCallFilter=@system-service unshare\n";
        let refused = shown(&world, &format!("{lines}RestrictNamespaces=yes"), script);
        assert_eq!(refused, "-1 1\n");
        let other = shown(&world, &format!("{lines}RestrictNamespaces=~net"), script);
        assert!(!other.is_empty() && other != refused, "{other}");
    });
}

#[test]
fn a_refused_call_ends_the_run_or_fails() {
    as_users(|user| {
        let world = World::new(user);
        let lines = "ReadWritePaths=WORKSPACE\nSystemCallFilter=~mkdir mkdirat\n";
        let script = "mkdir made; echo still";
        assert_eq!(shown(&world, lines, script), "");
        let lines = format!("{lines}SystemCallErrorNumber=EROFS\n");
        assert_eq!(shown(&world, &lines, script), "still\n");
        assert!(!world.exists("made"));
    });
}

#[test]
fn paths_of_units_hold() {
    as_users(|user| {
        let world = World::new(user);
        let script = "cat \"$HOME/.ssh/id_rsa\"; echo x > made; echo x > fixed/made; echo x > \"$HOME/made\"; echo end";
        world.make_dir(&world.path("fixed"));
        for (lines, secret, made, fixed) in [
            ("ReadWritePaths=WORKSPACE", true, true, true),
            (
                "ReadWritePaths=WORKSPACE\nReadOnlyPaths=WORKSPACE/fixed\nInaccessiblePaths=-%h/.ssh",
                false,
                true,
                false,
            ),
            ("ProtectSystem=strict", true, false, false),
            ("TemporaryFileSystem=/:ro\nBindPaths=WORKSPACE", false, true, true),
        ] {
            let out = shown(&world, lines, script);
            assert_eq!(out.contains(SECRET), secret, "{lines}: {out}");
            assert!(out.ends_with("end\n"), "{lines}: {out}");
            assert_eq!((world.exists("made"), world.exists("fixed/made")), (made, fixed), "{lines}");
            assert!(!world.home.join("made").exists(), "{lines}");
            for name in ["made", "fixed/made"] {
                let _ = std::fs::remove_file(world.path(name));
            }
        }
    });
}

/// systemd leaves a backslash out of a path and passes over a prefix that it does not know.
#[test]
fn a_path_of_a_unit_is_what_systemd_reads() {
    as_users(|user| {
        let world = World::new(user);
        world.write("ax41", "a\n");
        world.write("aA", "b\n");
        world.write("b:", "c\n");
        world.write("b", "d\n");
        let script = "cat ax41 aA b: b; echo end";
        let lines = "InaccessiblePaths=WORKSPACE/a\\x41 WORKSPACE/b:";
        assert_eq!(shown(&world, lines, script), "b\nd\nend\n");
        for word in ["!WORKSPACE", "+-WORKSPACE", "--WORKSPACE", "WORKSPACE:"] {
            let out = shown(&world, &format!("ReadWritePaths={word}"), "echo x > made; echo end");
            assert!(!world.exists("made"), "{word}: {out}");
        }
        let out = shown(&world, "BindReadOnlyPaths=/usr:WORKSPACE/b", script);
        assert_eq!(out, "a\nb\nc\nend\n");
    });
}

/// A backslash continues a line only as its very last character, and only if no other one escapes it.
#[test]
fn what_stands_behind_an_ended_line_holds() {
    as_users(|user| {
        let world = World::new(user);
        let script = "cat \"$HOME/.ssh/id_rsa\"; echo end";
        let rule = "InaccessiblePaths=-%h/.ssh";
        for before in [
            "ExecStart=/bin/echo a \\ \n",
            "ExecStart=/bin/echo a \\\t\r\n",
            "SyslogIdentifier=x\\\\\n",
            "SyslogIdentifier=x \\\u{a0}\n",
            "# A comment\r",
            "Type=simple\r",
        ] {
            assert_eq!(shown(&world, &format!("{before}{rule}"), script), "end\n", "{before:?}");
        }
        // The twins: a line that goes on takes the next one with it.
        for before in ["ExecStart=/bin/echo a \\\n", "SyslogIdentifier=x\\\\\\\n", "ExecStart=x \\\r\n"] {
            let out = shown(&world, &format!("{before}{rule}"), script);
            assert!(out.contains(SECRET) && out.ends_with("end\n"), "{before:?}: {out}");
        }
    });
}

/// Words end at the blanks of systemd. Any other is part of a path.
#[test]
fn a_path_of_a_unit_may_have_other_blanks() {
    as_users(|user| {
        let world = World::new(user);
        world.make_dir(&world.path("a"));
        world.make_dir(&world.path("b"));
        let script = "echo x > a/made; echo x > b/made; echo end";
        for (blank, made) in
            [("\u{a0}", false), ("\u{2003}", false), ("\u{c}", false), (" ", true), ("\t", true)]
        {
            let lines = format!("ReadWritePaths=-WORKSPACE/a{blank}-WORKSPACE/b");
            assert_eq!(shown(&world, &lines, script), "end\n", "{blank:?}");
            assert_eq!((world.exists("a/made"), world.exists("b/made")), (made, made), "{blank:?}");
            for name in ["a/made", "b/made"] {
                let _ = std::fs::remove_file(world.path(name));
            }
        }
    });
}

#[test]
fn the_network_of_units_is_closed_or_open() {
    let script = "python3 -c 'import socket\n\
                  for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):\n\
                  \x20   try: socket.socket(family); print(int(family))\n\
                  \x20   except OSError: print(\"no\")'";
    as_users(|user| {
        let world = World::new(user);
        for (lines, sockets) in [
            ("RestrictAddressFamilies=AF_UNIX", "1\nno\nno\n"),
            ("RestrictAddressFamilies=none", "no\nno\nno\n"),
            ("RestrictAddressFamilies=AF_UNIX AF_INET", "1\n2\nno\n"),
            ("RestrictAddressFamilies=AF_UNIX AF_INET6", "1\nno\n10\n"),
            ("RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6", "1\n2\n10\n"),
            ("RestrictAddressFamilies=~AF_UNIX", "no\n2\n10\n"),
            ("RestrictAddressFamilies=~AF_INET", "1\nno\n10\n"),
            ("RestrictAddressFamilies=~AF_INET AF_INET6", "1\nno\nno\n"),
            ("RestrictAddressFamilies=~AF_INET6\nPrivateNetwork=yes", "1\n2\nno\n"),
            ("RestrictAddressFamilies=AF_UNIX\nRestrictAddressFamilies=", "1\n2\n10\n"),
            ("PrivateNetwork=yes", "1\n2\n10\n"),
        ] {
            // Without a filter as well as with one.
            for filter in ["", "SystemCallFilter=@system-service\nSystemCallErrorNumber=EAFNOSUPPORT\n"] {
                assert_eq!(shown(&world, &format!("{filter}{lines}"), script), sockets, "{filter}{lines}");
            }
        }
        // What comes with a network does not undo what a filter refuses.
        let lines = "SystemCallErrorNumber=EAFNOSUPPORT\nSystemCallFilter=~@network-io\n";
        assert_eq!(shown(&world, lines, script), "no\nno\nno\n");
    });
}

#[test]
fn limits_and_variables_of_units_hold() {
    as_users(|user| {
        let world = World::new(user);
        let lines = "LimitNOFILE=64:1024\nEnvironment=A=1 \"B=two words\"\nEnvironment=A=2\n";
        assert_eq!(shown(&world, lines, "ulimit -n; echo $A $B"), "64\n2 two words\n");
        assert_ne!(shown(&world, "", "ulimit -n"), "64\n");
        // systemd passes over an empty word, and begins a list anew with one.
        for empty in ["", "PrivateNetwork=\n", "ProtectSystem=\nPrivateNetwork=\n"] {
            let unit = format!("[Service]\nProtectSystem=strict\nPrivateNetwork=yes\n{empty}");
            let profile = std::fs::read_to_string(made_of(&world, "systemd", unit)).unwrap();
            assert!(profile.contains("\"mode\": \"private\""), "{empty}: {profile}");
        }
        // Of two limits of the same the smaller one counts, whatever their order.
        for lines in ["LimitNPROC=50\nTasksMax=90\n", "TasksMax=50\nLimitNPROC=90\n"] {
            let profile =
                std::fs::read_to_string(made_of(&world, "systemd", format!("[Service]\n{lines}"))).unwrap();
            assert!(profile.contains("\"processes\": \"50\""), "{lines}: {profile}");
        }
    });
}

/// A family that is denied is not among those of the unit, whatever the network brings.
#[test]
fn an_exported_unit_leaves_denied_families_out() {
    let world = World::new(&sbx_tests::users::User::ordinary());
    let four = r#"{ "call": "socket", "args": [{ "index": 0, "value": 2, "width": 32 }] }"#;
    for (denied, is_there, is_not) in
        [("\"socket[inet6]\"", "AF_INET", "AF_INET6"), (four, "AF_INET6", "AF_INET")]
    {
        for mode in ["private", "host"] {
            let profile = format!(
                r#"{{"extends": "read-only", "network": {{"mode": "{mode}"}}, "syscalls": {{"deny": [{denied}]}}}}"#
            );
            world.write("some.json", profile);
            let words = ["profile", "export", "--lossy", "--to", "systemd", "./some.json"];
            let out = world.sbx(words).run().success().out();
            let said = out.lines().find_map(|line| line.strip_prefix("RestrictAddressFamilies=")).unwrap();
            let has = |name: &str| said.split(' ').any(|word| word == name);
            assert!(has(is_there) && !has(is_not), "{mode} {denied}: {said}");
        }
    }
}

/// A unit says what a run has of its own and leaves alone, and a line what it cannot say.
#[test]
fn an_exported_unit_leaves_alone_what_a_run_leaves_alone() {
    let world = World::new(&sbx_tests::users::User::ordinary());
    let export = |profile: &str| {
        world.write("some.json", profile);
        let out =
            world.sbx(["profile", "export", "--lossy", "--to", "systemd", "./some.json"]).run().success();
        let lines: Vec<String> = out.out().lines().map(str::to_string).collect();
        (lines, out.err())
    };
    let has = |lines: &[String], name: &str| lines.iter().any(|line| line == name);
    let kept = ["ProtectKernelTunables=yes", "ProtectControlGroups=yes", "PrivateDevices=yes"];
    let own = ["ProtectProc=invisible", "PrivateIPC=yes", "PrivatePIDs=yes"];
    let denied =
        r#"{"extends": "workspace", "paths": {"execute": ["/"]}, "env": {"deny": ["CARGO_HOME", "JAVA_*"]}}"#;
    let (lines, err) = export(denied);
    for name in kept.iter().chain(&own) {
        assert!(has(&lines, name), "{name}: {lines:?}");
    }
    assert!(err.contains("lost: namespaces: before systemd 257"), "{err}");
    assert!(err.contains("lost: /dev/pts: "), "{err}");
    let passed =
        lines.iter().filter_map(|line| line.strip_prefix("PassEnvironment=")).collect::<Vec<_>>().join(" ");
    let passes = |name: &str| passed.split(' ').any(|passed| passed == name);
    assert!(passes("RUSTUP_HOME") && !passes("CARGO_HOME") && !passes("JAVA_HOME"), "{passed}");
    let machines = |line: &String| line.starts_with("Bind") && line.contains("/dev/shm");
    assert!(
        !lines.iter().any(machines) && has(&lines, "TemporaryFileSystem=/dev/shm:mode=1777"),
        "{lines:?}"
    );
    // The twin: a profile that writes there, and has no namespaces.
    let open =
        r#"{"extends": "read-only", "namespaces": "none", "paths": {"execute": ["/"], "write": ["/"]}}"#;
    let (lines, err) = export(open);
    for name in kept.iter().chain(&own).chain(&["ProtectSystem=strict"]) {
        assert!(!has(&lines, name), "{name}: {lines:?}");
    }
    assert!(!err.contains("lost: namespaces"), "{err}");
}
