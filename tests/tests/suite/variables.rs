//! SBX_PROFILE and SBX_LOG, the user's default profile, and what is printed without being asked for.

use sbx_tests::{User, World, in_worlds, kernel};

#[test]
fn the_variable_names_the_profile_and_a_flag_overrides_it() {
    in_worlds(|world| {
        let touch = |words: &[&str]| world.sbx([&["run"], words, &["--", "touch", "made"]].concat());
        touch(&[]).run().success();
        touch(&[]).env("SBX_PROFILE", "minimal").run().failed();
        touch(&["-p", "workspace"]).env("SBX_PROFILE", "minimal").run().success();
        touch(&["--dangerously-unconfined"]).env("SBX_PROFILE", "minimal").run().success();
        let own = world.outside.join("own.json");
        world.write(&own, r#"{ "description": "own", "extends": "minimal" }"#);
        touch(&[]).env("SBX_PROFILE", &own).run().failed();
        touch(&[]).env("SBX_PROFILE", "minimla").run().refused(125, &["'minimla'", "minimal", "SBX_PROFILE"]);
        touch(&[]).env("SBX_PROFILE", "").run().refused(125, &["SBX_PROFILE"]);
        touch(&[]).env("SBX_PROFILE", "unrestricted").run().refused(125, &["--dangerously-unconfined"]);
    });
}

/// A project can bring variables (`.env`), so that nothing in it is read that the command line does not name.
#[test]
fn the_variable_names_no_profile_of_the_workspace() {
    in_worlds(|world| {
        let kept = world.outside.join("kept");
        let text = r#"{ "description": "wide", "extends": "workspace", "paths": { "read": ["OUTSIDE"] } }"#;
        let text = text.replace("OUTSIDE", world.outside.to_str().unwrap());
        let planted = world.write("wide.json", &text);
        let own = world.write(world.outside.join("own.json"), &text);
        std::os::unix::fs::symlink(&own, world.path("link.json")).unwrap();
        let read = |flags: &[&str]| world.sbx([&["run"], flags, &["--", "cat"]].concat()).arg(&kept);
        let by_link = world.outside.join("by-link.json");
        std::os::unix::fs::symlink(&planted, &by_link).unwrap();
        let names = ["wide.json", "./link.json", planted.to_str().unwrap(), by_link.to_str().unwrap()];
        for name in names {
            let out = read(&[]).env("SBX_PROFILE", name).run();
            out.refused(125, &["SBX_PROFILE", "in the workspace", "--profile"]).prints("");
            read(&["--profile", name]).run().success().prints("outside\n");
        }
        // Nor a parent of one.
        let child = format!(r#"{{"description": "child", "extends": "{}"}}"#, planted.display());
        let child = world.write(world.outside.join("child.json"), &child);
        let out = read(&[]).env("SBX_PROFILE", &child).run();
        out.refused(125, &["SBX_PROFILE", "wide.json' is in the workspace", "--profile"]).prints("");
        read(&["--profile", child.to_str().unwrap()]).run().success().prints("outside\n");
        read(&[]).env("SBX_PROFILE", &own).run().success().prints("outside\n");
        // It stays what commands may have written.
        let elsewhere = read(&["--workspace", world.outside.join("dir").to_str().unwrap()]);
        let out = elsewhere.env("SBX_PROFILE", &planted).run();
        out.refused(125, &["SBX_PROFILE", "commands of other runs may have written it"]).prints("");
    });
}

#[test]
fn the_variable_overrides_the_users_default() {
    in_worlds(|world| {
        let text = r#"{ "description": "no writing", "extends": "read-only" }"#;
        world.write(world.home.join(".config/sbx/profiles/default.json"), text);
        let touch = || world.sbx(["run", "--", "touch", "made"]);
        touch().run().failed();
        assert!(!world.exists("made"));
        touch().env("SBX_PROFILE", "workspace").run().success();
        assert!(world.exists("made"));
    });
}

/// A command that changes its own variables cannot widen the rights of a run inside it.
#[test]
fn the_command_gains_nothing_by_setting_it() {
    in_worlds(|world| {
        let sbx = world.install(sbx_tests::stage::sbx(), "sbx");
        let inner = format!("SBX_PROFILE=workspace {} run -- mkdir inner", sbx.display());
        let within = |profile: &str| {
            let words = ["run", "-p", profile, "--rox", ".", "--", "sh", "-c", &inner];
            world.sbx(words).run()
        };
        within("read-only").failed();
        assert!(!world.exists("inner"));
        within("workspace").success();
        assert!(world.exists("inner"));
    });
}

#[test]
fn nothing_is_printed_unless_asked_for_or_refused() {
    in_worlds(|world| {
        let lines = |flags: &[&str], log: Option<&str>| {
            let cmd = world.sbx([&["run"], flags, &["--", "sh", "-c", "exit 3"]].concat());
            let cmd = log.into_iter().fold(cmd, |cmd, log| cmd.env("SBX_LOG", log));
            cmd.run().exited(3).prints("").sbx_lines()
        };
        for silent in
            [(&[][..], None), (&[], Some("quiet")), (&[], Some("normal")), (&["-q"], Some("verbose"))]
        {
            assert_eq!(lines(silent.0, silent.1), Vec::<String>::new(), "{silent:?}");
        }
        for loud in [(&["-v"][..], None), (&["-v"], Some("quiet")), (&[], Some("verbose"))] {
            let lines = lines(loud.0, loud.1);
            assert_eq!(lines.len(), 2, "{loud:?}: {lines:?}");
            let workspace = format!("workspace '{}'", world.workspace.display());
            let network = if kernel::gives_namespaces() { "a network of its own" } else { "no network" };
            for word in ["profile 'workspace'", &workspace, network] {
                assert!(lines[0].contains(word), "{lines:?}");
            }
            assert!(lines[1].starts_with("sbx: the command exited with 3 after "), "{lines:?}");
            assert!(lines[1].contains(" s, at level "), "{lines:?}");
        }
        let out = world
            .sbx(["run", "-v", "--", "true"])
            .env("PORT", "3000")
            .env("A_TOKEN", "secret")
            .env("PYTHONPATH", "/opt/lib")
            .run()
            .success();
        let list = "not passed on: A_TOKEN, PORT (--env NAME passes one on), \
                    PYTHONPATH (--env NAME --allow-dangerous-env passes one on)";
        assert!(out.sbx_lines()[1].contains(list), "{out}");
        let words = ["run", "-v", "-p", "no-exec", "--", "sh", "-c", "kill -9 $$"];
        let out = world.sbx(words).run().exited(137);
        assert!(out.sbx_lines()[1].contains("was ended by SIGKILL"), "{out}");
    });
}

/// Nobody sets one that leads into the workspace for all that is ever run.
#[test]
fn a_failing_command_may_have_missed_what_its_user_has_programs_load() {
    let world = World::new(&User::ordinary());
    world.write("lib/mine.py", "print('mine')\n");
    let run = |path: &str, script: &str, flags: &[&str]| {
        let words = [&["run"], flags, &["--", "python3", "-c", script]].concat();
        world.sbx(words).env("PYTHONPATH", path).run()
    };
    let inside = world.path("lib");
    for path in ["lib", "/opt/lib:lib", inside.to_str().unwrap()] {
        let out = run(path, "import mine", &[]).exited(1);
        let line = "'PYTHONPATH', which has programs load what is in the workspace, is set outside but not passed on; \
                    pass it with --env PYTHONPATH --allow-dangerous-env";
        assert!(out.err().contains(line), "{out}");
    }
    run("lib", "import mine", &["--env", "PYTHONPATH", "--allow-dangerous-env"]).success().prints("mine\n");
    // Nothing is said of what leads elsewhere, or where nothing failed.
    for (path, script) in [("/opt/lib:none:", "import mine"), ("lib", "print()")] {
        assert!(!run(path, script, &[]).err().contains("PYTHONPATH"), "{path}");
    }
}

#[test]
fn quiet_in_the_variable_does_not_silence_flags_that_ask() {
    let world = World::new(&User::ordinary());
    let refused = ["--", "sh", "-c", "id; true"];
    let run = |flags: &[&str]| world.sbx([&["run", "-p", "minimal"], flags, &refused].concat());
    assert!(run(&[]).env("SBX_LOG", "quiet").run().sbx_lines().is_empty());
    assert!(!run(&[]).run().sbx_lines().is_empty());
    assert!(!run(&["--log-violations"]).env("SBX_LOG", "quiet").run().sbx_lines().is_empty());
    for odd in ["", "loud", "-v", "quiet "] {
        run(&[]).env("SBX_LOG", odd).run().refused(125, &["SBX_LOG", "quiet, normal, verbose"]);
    }
}

/// Denied and protected paths there would be open, and nobody would notice.
#[test]
fn a_run_is_refused_if_denied_paths_are_below_an_unknown_home() {
    in_worlds(|world| {
        world.write("private/key", "secret\n");
        world.write("file", "x\n");
        let below = world.path("private").strip_prefix(&world.home).unwrap().display().to_string();
        for (name, key) in [("deny", "deny"), ("protect", "protect")] {
            let text =
                format!(r#"{{ "extends": "workspace", "paths": {{ "{key}": ["${{HOME}}/{below}"] }} }}"#);
            world.write(world.outside.join(format!("{name}.json")), text);
        }
        let run = |name: &str, file: &str| {
            let profile = world.outside.join(format!("{name}.json"));
            world.sbx(["run", "-p", profile.to_str().unwrap(), "--workspace", ".", "--", "cat", file])
        };
        run("deny", "private/key").run().failed().prints("");
        run("deny", "file").run().success().prints("x\n");
        for name in ["deny", "protect"] {
            let words = [&format!("cannot {name} '${{HOME}}/"), "HOME"];
            run(name, "private/key").no_env("HOME").run().refused(125, &words);
            for home in ["", "home", "./"] {
                run(name, "private/key").env("HOME", home).run().refused(125, &words);
            }
        }
        world.sbx(["run", "--workspace", ".", "--", "cat", "file"]).no_env("HOME").run().success();
    });
}

/// `--rw .` opens the directory that is nobody's workspace.
#[test]
fn a_denial_in_the_workspace_holds_in_a_directory_that_is_no_workspace() {
    in_worlds(|world| {
        let profile = world.outside.join("deny.json");
        world.write(&profile, r#"{ "extends": "workspace", "paths": { "deny": ["${WORKSPACE}/key"] } }"#);
        world.write(world.home.join("key"), "secret\n");
        world.write(world.home.join("file"), "x\n");
        let run = |flags: &[&str], file: &str| {
            let front = ["run", "-q", "-p", profile.to_str().unwrap(), "--rw", "."];
            world.sbx([&front, flags, &["--", "cat", file]].concat()).cwd(&world.home).run()
        };
        for flags in [&[][..], &["--namespaces", "none"]] {
            run(flags, "key").failed().prints("");
            run(flags, "file").success().prints("x\n");
        }
    });
}
