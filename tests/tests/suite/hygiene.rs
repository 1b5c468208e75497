//! A command inherits as little as possible.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;

use sbx_tests::world::SECRET;
use sbx_tests::{User, World, as_users, in_worlds, kernel, need, processes, promise};

fn status_field(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.starts_with(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).rsplit('\t').next().unwrap().to_owned()
}

#[test]
fn no_capability_is_left_and_none_can_be_regained() {
    as_users(|user| {
        let world = World::new(user);
        for profile in ["minimal", "workspace", "no-exec"] {
            for front in [&["run", "-p", profile, "--"][..], &["run", "--exec", "-p", profile, "--"]] {
                let out = world.sbx([front, &["cat", "/proc/self/status"]].concat()).run().success().out();
                for set in ["CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"] {
                    let value = status_field(&out, set);
                    // Without CAP_SETPCAP the bounding set stays; no_new_privs makes it harmless.
                    let may_stay = set == "CapBnd" && !user.is_root();
                    assert!(may_stay || value == "0000000000000000", "{set} is {value}");
                }
                assert_eq!(status_field(&out, "NoNewPrivs"), "1");
                assert_eq!(status_field(&out, "Seccomp"), "2");
            }
        }
    });
}

#[test]
fn capabilities_are_dropped_where_the_bounding_set_has_to_stay() {
    need!("setpriv");
    as_users(|user| {
        if !user.is_root() {
            return;
        }
        let world = World::new(user);
        let under = ["setpriv", "--bounding-set", "-setpcap"];
        let show = ["grep", "-E", "^Cap(Prm|Eff|Bnd)", "/proc/self/status"];
        // Without `sbx` root gets everything else that its bounding set has.
        let bare = world.bare([&under[..], &show].concat()).run().success().out();
        assert_eq!(status_field(&bare, "CapPrm"), status_field(&bare, "CapBnd"));
        let sbx = sbx_tests::stage::sbx();
        for more in [&["--namespaces", "none"][..], &["--namespaces", "none", "--exec"]] {
            let front = [&under[..], &[sbx.to_str().unwrap(), "run", "-p", "read-only"], more, &["--"]];
            let out = world.bare([&front.concat()[..], &show].concat()).run().success().out();
            for set in ["CapPrm", "CapEff"] {
                assert_eq!(status_field(&out, set), "0000000000000000");
            }
            assert_eq!(status_field(&out, "CapBnd"), status_field(&bare, "CapBnd"));
        }
    });
}

#[test]
fn descriptors_are_closed_unless_passed() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let open = || OwnedFd::from(File::open(world.home.join(".netrc")).unwrap());
        for profile in ["minimal", "workspace", "no-exec"] {
            for front in [&["run", "-p", profile, "--"][..], &["run", "--exec", "-p", profile, "--"]] {
                let words = [front, &[attempt.as_str(), "fds"]].concat();
                world.sbx(words).pass_fd(open(), 7).pass_fd(open(), 100).run().success().prints("0\n1\n2\n");
            }
        }
        let plain = world.bare([attempt.as_str(), "fds"]).pass_fd(open(), 7).run().success();
        assert!(plain.out().contains("\n7\n"), "the control does not have it either: {plain}");
        let words = ["run", "--pass-fd", "7", "--", &attempt, "fds"];
        world.sbx(words).pass_fd(open(), 7).pass_fd(open(), 100).run().success().prints("0\n1\n2\n7\n");
        let words = ["run", "--pass-fd", "7", "--", "sh", "-c", "cat <&7"];
        world.sbx(words).pass_fd(open(), 7).run().success().prints(&format!("{SECRET}\n"));
    });
}

#[test]
fn addresses_pass_with_an_open_network_and_without_passwords() {
    in_worlds(|world| {
        let passed = |flags: &[&str], secret: &str| {
            let out = world
                .sbx([&["run"], flags, &["--", "env"]].concat())
                .env("http_proxy", "http://proxy.example:3128")
                .env("NO_PROXY", "localhost,.example")
                .env("PIP_INDEX_URL", secret)
                .env("CARGO_REGISTRIES_OWN_INDEX", "sparse+https://crates.example/")
                .run()
                .success();
            assert!(
                flags.contains(&"--env") || !out.out().contains(SECRET),
                "a password came through: {out}"
            );
            let names = ["http_proxy", "NO_PROXY", "PIP_INDEX_URL", "CARGO_REGISTRIES_OWN_INDEX"];
            let printed = out.out();
            let has = |name: &&&str| printed.lines().any(|line| line.starts_with(&format!("{name}=")));
            (names.iter().filter(has).count(), out.sbx_lines().len())
        };
        let secret = format!("https://user:{SECRET}@index.example/simple");
        for open in [&["--net", "host"][..], &["-p", "network"], &["--connect", "example.org"]] {
            assert_eq!(passed(open, "https://index.example/simple"), (4, 0), "{open:?}");
            assert_eq!(passed(open, &secret), (3, 1), "{open:?}");
            assert_eq!(passed(&[open, &["--env", "PIP_INDEX_URL"]].concat(), &secret), (4, 0), "{open:?}");
        }
        assert_eq!(passed(&[], &secret), (0, 0));
        assert_eq!(passed(&["--host-port", "5432"], &secret), (0, 0));
        assert_eq!(passed(&["--inherit-env"], &secret).0, 3);
    });
}

/// They would wait longer each time for hosts that no run looks up.
#[test]
fn package_managers_try_once_where_no_machine_can_be_reached() {
    in_worlds(|world| {
        let tries = |flags: &[&str]| {
            let out = world.sbx([&["run"], flags, &["--", "env"]].concat()).run().success();
            out.out().lines().find_map(|line| line.strip_prefix("CARGO_NET_RETRY=")).map(str::to_string)
        };
        for closed in [&[][..], &["--net", "none"], &["-p", "read-only"], &["--host-port", "5432"]] {
            assert_eq!(tries(closed).as_deref(), Some("0"), "{closed:?}");
        }
        for open in [&["--net", "host"], &["--connect", "example.org"]] {
            assert_eq!(tries(open), None, "{open:?}");
        }
        assert_eq!(tries(&["--env", "CARGO_NET_RETRY=2"]).as_deref(), Some("2"));
        world.write(
            "Cargo.toml",
            "[package]\nname = \"a\"\nversion = \"0.1.0\"\n[dependencies]\nitoa = \"1\"\n",
        );
        world.write("src/lib.rs", "");
        let fetch =
            |flags: &[&str]| world.sbx([&["run"], flags, &["--", "cargo", "fetch"]].concat()).run().failed();
        let out = fetch(&[]);
        assert!(out.err().contains("resolve") && !out.err().contains("spurious"), "{out}");
        // Not every release of cargo tries a second time to look up a host.
        fetch(&["--env", "CARGO_NET_RETRY=many"]).says("`CARGO_NET_RETRY`: invalid digit");
    });
}

#[test]
fn the_environment_is_scrubbed() {
    in_worlds(|world| {
        let secrets = [
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "GITHUB_TOKEN",
            "OPENAI_API_KEY",
            "DB_PASSWORD",
            "MY_SECRET_X",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "PYTHONPATH",
            "NODE_OPTIONS",
            "PERL5OPT",
            "RUBYOPT",
            "BASH_ENV",
            "ENV",
            "GIT_SSH_COMMAND",
            "SOMETHING_ELSE",
        ];
        let kept = [("LC_ALL", "C.UTF-8"), ("TZ", "UTC"), ("LANG", "C.UTF-8")];
        for profile in ["minimal", "workspace", "network"] {
            let mut cmd = world.run(profile, ["env"]);
            for name in secrets {
                cmd = cmd.env(name, SECRET);
            }
            for (name, value) in kept {
                cmd = cmd.env(name, value);
            }
            let out = cmd.run().success();
            assert!(!out.out().contains(SECRET), "a secret came through: {out}");
            assert!(
                !out.out().contains("SECCOMP_") && !out.out().contains("LD_PRELOAD"),
                "ours came through: {out}"
            );
            for (name, value) in kept {
                assert!(out.out().contains(&format!("{name}={value}\n")), "{name} was lost: {out}");
            }
            for name in ["HOME=", "PATH=", "TERM="] {
                assert!(out.out().lines().any(|line| line.starts_with(name)), "{name} is missing: {out}");
            }
        }
    });
}

#[test]
fn variables_are_passed_by_name_but_hooks_need_a_flag() {
    in_worlds(|world| {
        let out = world
            .sbx(["run", "--env", "GIVEN", "--env", "SET=here", "--", "env"])
            .env("GIVEN", "too")
            .run()
            .success();
        assert!(out.out().contains("GIVEN=too\n") && out.out().contains("SET=here\n"), "{out}");
        for hook in [
            "LD_PRELOAD=/x.so",
            "PYTHONPATH=/x",
            "NODE_OPTIONS=-r /x",
            "BASH_ENV=/x",
            "PERL5OPT=-Mx",
            "LD_AUDIT=/x",
        ] {
            world.sbx(["run", "--env", hook, "--", "env"]).run().refused(125, &["--allow-dangerous-env"]);
        }
        let words = ["run", "--allow-dangerous-env", "--env", "PYTHONPATH=/x", "--", "env"];
        assert!(world.sbx(words).run().success().out().contains("PYTHONPATH=/x\n"));
    });
}

#[test]
fn inheriting_everything_passes_neither_hooks_nor_what_the_profile_denies() {
    in_worlds(|world| {
        let hooks = ["LD_LIBRARY_PATH", "LD_AUDIT", "PYTHONPATH", "BASH_ENV", "NODE_OPTIONS"];
        let secrets = [
            "MY_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "DATABASE_URL",
            "TF_VAR_db_password",
            "SMTP_PASS",
            "REGISTRY_PSW",
            "COMPOSER_AUTH",
            "BUNDLE_GEMS__EXAMPLE__COM",
            "CACHE_REDIS_URL",
            "MONGODB_URI",
            "STORAGE_CONNECTION_STRING",
            "CHAT_WEBHOOK_URL",
        ];
        let given = |mut cmd: sbx_tests::Cmd| {
            for name in hooks.iter().chain(&secrets).chain(&["SOMETHING_ELSE"]) {
                cmd = cmd.env(name, "/given");
            }
            let out = cmd.run().success().out();
            let passed = out.lines().filter_map(|line| line.strip_suffix("=/given").map(str::to_owned));
            passed.collect::<std::collections::BTreeSet<_>>()
        };
        let flagged = given(world.sbx(["run", "--inherit-env", "--", "env"]));
        assert_eq!(flagged.into_iter().collect::<Vec<_>>(), ["SOMETHING_ELSE"]);
        // A profile that denies no variable still passes no hook.
        let text = r#"{ "description": "x", "syscalls": { "default": "errno", "allow": ["@system-service"] },
            "paths": { "execute": ["/"] }, "env": { "inherit": ["*"] } }"#;
        world.write("all.json", text);
        let all = given(world.run("./all.json", ["env"]));
        assert!(secrets.iter().chain(&["SOMETHING_ELSE"]).all(|name| all.contains(*name)), "{all:?}");
        assert!(!hooks.iter().any(|name| all.contains(*name)), "{all:?}");
    });
}

#[test]
fn the_launchers_own_environment_is_not_readable() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let script = "for p in /proc/[0-9]*; do cat $p/environ; done 2>/dev/null; \
                      cat /proc/$PPID/environ 2>/dev/null; exit 0";
        let out =
            world.run("workspace", ["sh", "-c", script]).env("AWS_SECRET_ACCESS_KEY", SECRET).run().success();
        assert!(!out.out().contains(SECRET), "{out}");
        let script = "for p in /proc/[0-9]*; do head -c 1 $p/mem; ls $p/fd/ | wc -l; done 2>/dev/null >/dev/null; \
                      exit 0";
        world.run("workspace", ["sh", "-c", script]).run().success();
    });
}

#[test]
fn the_supervisor_is_closed_to_the_users_other_processes() {
    let user = User::ordinary();
    let world = World::new(&user);
    let environment = |pid: i32| world.bare(["cat", &format!("/proc/{pid}/environ")]).run();
    let waiting = ["sh", "-c", "echo up; exec sleep 60"];
    let open = world.bare(waiting).env("PLANTED", SECRET).start();
    open.wait_for("up");
    assert!(environment(open.pid()).success().out().contains(SECRET));
    for profile in ["workspace", "read-only"] {
        let running = world.run(profile, waiting).env("PLANTED", SECRET).start();
        running.wait_for("up");
        environment(running.pid()).failed();
        running.signal(libc::SIGKILL);
    }
    open.signal(libc::SIGKILL);
}

#[test]
fn the_scratch_directory_is_private_and_removed() {
    in_worlds(|world| {
        let script = "echo \"$TMPDIR\"; stat -c %a \"$TMPDIR\"; echo x > \"$TMPDIR/file\"; mkdir -p \"$TMPDIR/a/b\"; \
                      chmod 000 \"$TMPDIR/a\"; ln -s / \"$TMPDIR/link\"";
        // Its path on the host: in namespaces of its own it has another one.
        let base = world.home.join("scratch");
        world.make_dir(&base);
        let scratch = || base.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        for mode in ["auto", "none"] {
            let run = || {
                let cmd = world.sbx(["run", "--namespaces", mode, "--", "sh", "-ec"]).env("TMPDIR", &base);
                cmd.arg(format!("{script}; echo up; until test -e go; do sleep 0.05; done")).start()
            };
            let (first, second) = (run(), run());
            first.wait_for("up");
            second.wait_for("up");
            assert_eq!(scratch().len(), 2, "two runs share a scratch directory");
            world.write("go", "");
            for running in [first, second] {
                let out = running.wait().success().out();
                assert!(out.ends_with("\n700\nup\n"), "{out}");
                let inside = mode == "auto" && kernel::level() != "minimal" && kernel::gives_namespaces();
                assert_eq!(out.starts_with("/tmp\n"), inside, "{out}");
            }
            assert!(scratch().is_empty(), "{:?} is still there", scratch());
            std::fs::remove_file(world.path("go")).unwrap();
        }
        assert!(world.outside.join("kept").exists());
    });
}

#[test]
fn two_runs_do_not_see_each_others_scratch_directories() {
    in_worlds(|world| {
        let script = "echo secret > \"$TMPDIR/file\"; echo \"at:$TMPDIR:\"; read -r line";
        let first = world.sbx(["run", "--", "sh", "-c", script]).start();
        first.wait_for("at:");
        // Whether the first run goes on or has ended, the second must not read it; the path is found by listing.
        let look = "cat /tmp/*/file /var/tmp/*/file \"$TMPDIR\"/../*/file 2>/dev/null; exit 0";
        let out = world.sbx(["run", "--", "sh", "-c", look]).run().success();
        assert!(!out.out().contains("secret"), "{out}");
        drop(first.wait());
    });
}

#[test]
fn the_session_keyring_is_not_inherited() {
    let world = World::new(&User::current());
    let attempt = world.program("attempt");
    let search = libc::SYS_request_key.to_string();
    let name = "sbx-test-secret";
    let words = [attempt.as_str(), "syscall", &search, "s:user", &format!("s:{name}"), "0", "0"];
    let (with_key, secret) = (|cmd: sbx_tests::Cmd| cmd.secret_in_keyring(c"sbx-test-secret").run(), words);
    with_key(world.bare(secret)).success();
    for profile in ["minimal", "workspace", "no-exec"] {
        with_key(world.run(profile, secret)).exited(1);
    }
    // Even where the call itself is allowed, the caller's keyring is not there.
    with_key(world.sbx(["run", "--allow-calls", "request_key", "--"]).args(secret)).exited(1);
}

#[test]
fn processes_outside_cannot_be_touched() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        let marker = processes::marker();
        let victim = world.bare([&attempt, "sleep", &marker]).start();
        victim.wait_for("sleeping");
        let pid = victim.pid().to_string();
        let scoped = kernel::promises(kernel::SCOPES);
        for profile in ["minimal", "workspace", "no-exec"] {
            // On every kernel, `minimal` has no call for the first.
            if scoped || profile == "minimal" {
                let kill = libc::SYS_kill.to_string();
                world.run(profile, [&attempt, "syscall", &kill, &pid, "15"]).run().exited(1);
            }
            if scoped {
                let tgkill = libc::SYS_tgkill.to_string();
                world.run(profile, [&attempt, "syscall", &tgkill, &pid, &pid, "15"]).run().exited(1);
            }
            let prlimit = libc::SYS_prlimit64.to_string();
            world.run(profile, [&attempt, "syscall", &prlimit, &pid, "7", "z:16", "0"]).run().exited(1);
            let ptrace = libc::SYS_ptrace.to_string();
            world.run(profile, [&attempt, "syscall", &ptrace, "16", &pid]).run().exited(1);
            let nice = libc::SYS_setpriority.to_string();
            world.run(profile, [&attempt, "syscall", &nice, "0", &pid, "19"]).run().exited(1);
        }
        if scoped {
            world.run("workspace", ["sh", "-c", &format!("kill -9 {pid}")]).run().failed();
            world.run("workspace", ["sh", "-c", "kill -9 -1; true"]).run();
        }
        assert_eq!(processes::with_marker(&marker).len(), 1, "the process outside is gone");
        victim.signal(libc::SIGTERM);
        victim.wait().died_of(libc::SIGTERM);
    });
}

#[test]
fn the_launcher_cannot_be_reached_from_inside() {
    // Path rules close every process outside. Without them, the launcher has closed itself; others have not.
    let which = if kernel::promises(kernel::PATHS) {
        "os.listdir('/proc')"
    } else {
        "(line.split()[1] for name in [os.getppid()] for line in open(f'/proc/{name}/status') \
         if line[:4] in ('Pid:', 'PPid'))"
    };
    in_worlds(|world| {
        let script = format!(
            "import os\nfor name in {which}:\n if not name.isdigit() or int(name) == os.getpid(): continue\n \
             try:\n  open(f'/proc/{{name}}/mem', 'r+b').close()\n  print(open(f'/proc/{{name}}/comm').read())\n except OSError: pass\n"
        );
        let out = world.run("workspace", ["/usr/bin/python3", "-c", &script]).run().success();
        assert!(!out.out().contains("sbx"), "the launcher's memory is open: {out}");
    });
}

#[test]
fn stdin_cannot_be_reopened_for_writing() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let file = world.write(world.outside.join("input"), "as before\n");
        let script = "echo overwritten > /proc/self/fd/0; cat";
        let out = format!(
            "exec < {}; exec {} run -- sh -c '{script}'",
            file.display(),
            sbx_tests::stage::sbx().display()
        );
        world.bare(["sh", "-c", &out]).run();
        assert_eq!(world.read(&file).as_deref(), Some("as before\n"));
    });
}

#[test]
fn system_v_and_posix_queues_of_the_host_are_out_of_reach() {
    in_worlds(|world| {
        let attempt = world.program("attempt");
        for profile in ["minimal", "network", "write", "no-exec"] {
            for number in [libc::SYS_shmget, libc::SYS_msgget, libc::SYS_semget] {
                // With an IPC namespace of its own, a run has some of its own.
                let front = ["run", "-p", profile, "--namespaces", "none", "--"];
                let call = [&attempt, "syscall", &number.to_string(), "4242", "1", "01666"];
                world.sbx(front).args(call).run().exited(1);
            }
            let open = libc::SYS_mq_open.to_string();
            world
                .run(profile, [&attempt, "syscall", &open, "s:sbx-test", "0101", "0600", "0"])
                .run()
                .exited(1);
        }
    });
}

#[test]
fn modes_of_new_files_follow_the_callers_umask() {
    in_worlds(|world| {
        let script = format!("umask 027; exec {} run -- touch made", sbx_tests::stage::sbx().display());
        world.bare(["sh", "-c", &script]).run().success();
        assert_eq!(world.path("made").metadata().unwrap().permissions().mode() & 0o777, 0o640);
    });
}
