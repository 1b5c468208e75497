//! Documents that nobody should believe: each ends with one sentence that has its place.

use sbx_tests::{World, as_users};

/// What comes of a document: the only line of standard error.
fn refusal(world: &World, language: &str, text: &[u8]) -> String {
    world.write("hostile", text);
    let out = world.sbx(["profile", "import", "--lossy", "--from", language, "hostile"]).run();
    assert_eq!((out.code, out.out()), (Some(125), String::new()), "{language}: {out}");
    assert_eq!(out.err().lines().count(), 1, "{language}: {out}");
    out.err()
}

const JSON: [&str; 5] = ["oci", "spo", "srt", "claude", "cursor"];

#[test]
fn hostile_json_ends_with_a_place() {
    as_users(|user| {
        let world = World::new(user);
        for language in JSON {
            for (text, place) in [
                ([&b"{\"network\":"[..], &b"[".repeat(5000)].concat(), "line 1 column"),
                (format!("{{\"x\":\"{}\"}}", "y".repeat(2 << 20)).into_bytes(), "1048576"),
                (
                    b"{\"network\":{},\n\"network\":{}}".to_vec(),
                    "key 'network' stands twice at line 2 column",
                ),
                (b"{\"a\":\"\0\"}".to_vec(), "line 1 column"),
                (b"{\"a\":\"\xff\"}".to_vec(), "line 1 column"),
                (b"{} {}".to_vec(), "line 1 column"),
                (b"[]".to_vec(), "a list instead of an object"),
                (b"".to_vec(), "the file is empty\n"),
            ] {
                let err = refusal(&world, language, &text);
                assert!(err.contains(place), "{language}: {place}: {err}");
            }
        }
    });
}

/// What is quoted of a document moves no cursor.
#[test]
fn a_document_writes_nothing_to_a_terminal() {
    as_users(|user| {
        let world = World::new(user);
        world.write(
            "hostile",
            r#"{"permissions": {"allow": ["WebFetch(domain:e\u001b[31mil\u007f.example.org)"]}}"#,
        );
        let out = world.sbx(["profile", "import", "--lossy", "--from", "claude", "hostile"]).run().success();
        assert!(out.err().contains("e?[31mil?.example.org"), "{out}");
        assert!(out.err().lines().all(|line| !line.contains(char::is_control)), "{out}");
        let odd = "/srv/a\u{7f}\u{85}\u{202e}b";
        let rules = serde_json::json!({ "permissions": { "deny": [format!("Read(/{odd})")] } });
        world.write("hostile", rules.to_string());
        let out = world.sbx(["profile", "import", "--lossy", "--from", "claude", "hostile"]).run().success();
        assert!(out.out().contains(r"/srv/a\u007f\u0085\u202eb") && out.out().is_ascii(), "{out}");
        let profile = serde_json::json!({ "extends": "custom", "paths": { "read": [odd] } });
        world.write("odd.json", profile.to_string());
        for (language, shown) in [("landlock", true), ("systemd", false)] {
            let words = ["profile", "export", "--lossy", "--to", language, "./odd.json"];
            let out = world.sbx(words).run().success();
            assert_eq!(out.out().contains(r"/srv/a\u007f\u0085\u202eb"), shown, "{out}");
            assert!(out.out().is_ascii() && out.err().is_ascii(), "{out}");
        }
    });
}

#[test]
fn hostile_toml_and_units_end_with_a_line() {
    as_users(|user| {
        let world = World::new(user);
        let deep = format!("sandbox_mode = {}", "[".repeat(5000));
        for (language, text, place) in [
            ("codex", deep.as_bytes(), "line 1: "),
            ("codex", b"sandbox_mode = \"read-only\"\nsandbox_mode = \"read-only\"\n", "line 2: "),
            ("codex", b"a = 1\nb = \"\xff\"\n", "line 2: it is no UTF-8"),
            ("codex", b"a = \"x\0y\"\n", "line 1: "),
            ("codex", b"sandbox_mode = \"read\"\n", "sandbox_mode: unknown value 'read'"),
            ("codex", b"sandbox_mod = \"read-only\"\n", "unknown key 'sandbox_mod' (did you mean 'sandbox_mode'?)"),
            ("codex", b"default_permissions = \"x\"\n", "permissions: there is no profile 'x'"),
            (
                "codex",
                b"default_permissions = \"a\"\n[permissions.a]\nextends = \"b\"\n[permissions.b]\nextends = \"a\"\n",
                "permissions.a: it extends itself",
            ),
            ("codex", b"sandbox_mode = \"danger-full-access\"\n", "'danger-full-access' confines nothing"),
            ("systemd", b"[Service]\nA=\0\n", "line 2: it has a NUL"),
            ("systemd", b"[Service]\n\nA=\xff\n", "line 3: it is no UTF-8"),
            ("systemd", b"[Service]\nReadWritePaths=\"/a\n", "line 2: ReadWritePaths: a quote is not closed"),
            ("systemd", b"[Service]\nPrivateNetwork=perhaps\n", "line 2: PrivateNetwork: 'perhaps' is neither"),
            ("systemd", b"[Service]\nSystemCallErrorNumber=EWHAT\n", "line 2: SystemCallErrorNumber: 'EWHAT'"),
            ("systemd", b"[Service]\nMemoryMax=much\n", "line 2: MemoryMax: 'much' is no size"),
            ("systemd", b"[Unit]\nA=b\n", "there is no section [Service]"),
            ("systemd", b"[Service]\nRestrictAddressFamilies=~AF_FOO\n", "'AF_FOO' is no address family"),
            ("systemd", b"[Service]\nRestrictAddressFamilies=AF_UNIX\x0cAF_INET\n", "is no address family"),
            ("systemd", b"[Service]\nLimitNOFILE=64\xc2\xa0:1024\n", "line 2: LimitNOFILE: '64"),
            ("systemd", b"[Service]\nProtectClock=perhaps\n", "line 2: ProtectClock: 'perhaps' is neither"),
        ] {
            let err = refusal(&world, language, text);
            assert!(err.contains(place), "{language}: {place}: {err}");
        }
        let long = format!("[Service]\nX={}\n", "y".repeat(2 << 20));
        assert!(refusal(&world, "systemd", long.as_bytes()).contains("1048576"));
    });
}

#[test]
fn unknown_words_end_with_a_place() {
    as_users(|user| {
        let world = World::new(user);
        let rule = |rule: &str| format!("{{\"defaultAction\":\"SCMP_ACT_LOG\",\"syscalls\":[{rule}]}}");
        for (language, text, place) in [
            ("oci", "{\"defaultAction\":\"SCMP_ACT_X\"}".into(), "defaultAction: unknown value 'SCMP_ACT_X'"),
            ("oci", rule("{\"names\":[\"read\"],\"action\":\"ALLOW\"}"), "syscalls[0].action: unknown value"),
            ("oci", rule("{\"names\":[],\"action\":\"SCMP_ACT_LOG\"}"), "syscalls[0]: it names no call"),
            (
                "oci",
                rule("{\"name\":\"mount\",\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\"}"),
                "syscalls[0]: unknown key 'name'",
            ),
            (
                "docker",
                rule("{\"name\":\"mount\",\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\"}"),
                "syscalls[0]: it has both 'name' and 'names'",
            ),
            (
                "srt",
                "{\"network\":{\"allowedDomains\":1},\"filesystem\":{}}".into(),
                "network.allowedDomains: a number",
            ),
            ("srt", "{\"network\":{}}".into(), "the key 'filesystem' is missing"),
            (
                "claude",
                "{\"permissions\":{\"deny\":[\"Read(x\"]}}".into(),
                "permissions.deny[0]: 'Read(x' lacks its ')'",
            ),
            (
                "claude",
                "{\"permission\":{}}".into(),
                "unknown key 'permission' (did you mean 'permissions'?)",
            ),
            ("cursor", "{\"type\":\"insecure_none\"}".into(), "type: 'insecure_none' confines nothing"),
            ("cursor", "{\"type\":\"workspace\"}".into(), "type: unknown value 'workspace'"),
            ("spo", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"spec\":{}}".into(), "apiVersion: 'v1' is not"),
            ("cursor", "{\"disableTmpWrite\":\"yes\"}".into(), "disableTmpWrite: a string instead of true"),
            (
                "oci",
                "{\"defaultAction\":\"SCMP_ACT_LOG\",\"architectures\":[\"SCMP_ARCH_ZZZ\"]}".into(),
                "architectures[0]: 'SCMP_ARCH_ZZZ' is no architecture",
            ),
            (
                "docker",
                rule(
                    "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_KILL\",\"includes\":{\"arches\":[\"amd46\"]}}",
                ),
                "syscalls[0].includes.arches[0]: 'amd46' is no architecture",
            ),
            (
                "oci",
                rule("{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ERRNO\",\"excludes\":{}}"),
                "syscalls[0]: unknown key 'excludes'",
            ),
        ] {
            let err = refusal(&world, language, text.as_bytes());
            assert!(err.contains(place), "{language}: {place}: {err}");
        }
    });
}

/// What is not known is an error by its name, or a line.
#[test]
fn an_unknown_rule_is_an_error_or_a_line() {
    as_users(|user| {
        let world = World::new(user);
        for (language, text, place) in [
            (
                "systemd",
                "[Service]\nReadWritePath=/x\n",
                "line 2: ReadWritePath: the directive is unknown (did you mean",
            ),
            (
                "systemd",
                "[Service]\nSystemCallFilter=opennat\n",
                "'opennat' is neither a call nor a group (did you mean",
            ),
            (
                "systemd",
                "[Service]\nRestrictNamespaces=user foo\n",
                "line 2: RestrictNamespaces: 'foo' is no namespace",
            ),
            ("systemd", "[Service]\nRestrictNamespaces=user\u{c}net\n", "' is no namespace"),
            ("systemd", "[Service]\n\u{a0}ProtectHome=yes\n", "ProtectHome: the directive is unknown"),
            (
                "systemd",
                "[Service]\nReadWritePaths=!/p\n",
                "line 2: ReadWritePaths: '!/p' is neither absolute",
            ),
            ("systemd", "[Service]\nSystemCallFilter=\"read\"\n", "is neither a call nor a group"),
            (
                "systemd",
                "[Service]\nSocketBindDeny=any\nSocketBindDeny=off\n",
                "line 3: SocketBindDeny: a profile",
            ),
            (
                "systemd",
                "[Service]\nBindPaths=/opt:/srv\n",
                "'/opt' has no other name in a run: '/srv' is closed",
            ),
            (
                "systemd",
                "[Service]\nPassEnvironment=AWS_SECRET LANG\n",
                "'AWS_SECRET' in env.inherit[0] of profile 'the profile made of it' has no effect",
            ),
            (
                "claude",
                "{\"permissions\":{\"deny\":[\"Read( ~/.ssh )\"]}}",
                "permissions.deny[0]: ' ~/.ssh ' has a blank at an end",
            ),
            (
                "claude",
                "{\"permissions\":{\"deny\":[\"Read(!x)\"]}}",
                "permissions.deny[0]: '!x' takes a rule back",
            ),
            (
                "claude",
                "{\"permissions\":{\"deny\":[\"Read(./x\\\\*)\"]}}",
                "escapes what no path of a profile has",
            ),
            (
                "claude",
                "{\"permissions\":{\"deny\":[\"Read(./~/.ssh)\"]}}",
                "permissions.deny[0]: './~/.ssh' has a '~' that is not at its beginning",
            ),
            (
                "srt",
                "{\"network\":{},\"filesystem\":{\"denyRead\":[\"~/.ssh \"]}}",
                "filesystem.denyRead[0]: '~/.ssh ' has a blank at an end",
            ),
            (
                "codex",
                "sandbox_mode = \"read-only\"\ndefault_permissions = \"x\"\n",
                "default_permissions: 'sandbox_mode' counts, and not the profile 'x'",
            ),
            (
                "claude",
                "{\"permissions\":{\"deny\":[\"Bash(eval:*)\"]}}",
                "permissions.deny[0]: 'eval': shells do it themselves",
            ),
            (
                "srt",
                "{\"network\":{\"allowDomains\":[]},\"filesystem\":{}}",
                "network.allowDomains: the key is unknown (did",
            ),
            (
                "claude",
                "{\"sandbox\":{\"filesystem\":{\"denyRea\":[\"x\"]}}}",
                "sandbox.filesystem.denyRea: the key is unknown",
            ),
            (
                "cursor",
                "{\"networkPolicy\":{\"defaults\":\"deny\"}}",
                "networkPolicy.defaults: the key is unknown (did you",
            ),
            (
                "oci",
                "{\"defaultAction\":\"SCMP_ACT_LOG\",\
                  \"syscalls\":[{\"names\":[\"opne\"],\"action\":\"SCMP_ACT_ALLOW\"}]}",
                "syscalls[0]: opne: there is no such call (did you mean 'open'?)",
            ),
        ] {
            world.write("odd", text);
            let strict = world.sbx(["profile", "import", "--from", language, "odd"]).run();
            assert_eq!((strict.code, strict.out()), (Some(125), String::new()), "{strict}");
            assert!(strict.err().contains(place), "{place}: {strict}");
            let lossy =
                world.sbx(["profile", "import", "--lossy", "--from", language, "odd"]).run().success();
            assert!(lossy.err().contains("lost: ") && lossy.err().contains(place), "{place}: {lossy}");
            assert!(lossy.out().contains("\"extends\""), "{lossy}");
        }
    });
}

/// A limit that no profile has is an error or a line, and so is one of nothing.
#[test]
fn a_limit_of_nothing_is_a_limit() {
    let limits = "LimitMEMLOCK LimitMSGQUEUE LimitSTACK MemoryHigh MemorySwapMax IOWriteIOPSMax";
    as_users(|user| {
        let world = World::new(user);
        for name in limits.split(' ') {
            for value in ["0", "1"] {
                world.write("unit", format!("[Service]\n{name}={value}\n"));
                let place = format!("line 2: {name}: a profile has no such limit");
                let strict = world.sbx(["profile", "import", "--from", "systemd", "unit"]).run();
                assert_eq!(
                    (strict.code, strict.out()),
                    (Some(125), String::new()),
                    "{name}={value}: {strict}"
                );
                assert!(strict.err().contains(&place), "{name}={value}: {strict}");
                let lossy =
                    world.sbx(["profile", "import", "--lossy", "--from", "systemd", "unit"]).run().success();
                assert!(lossy.err().contains(&place), "{name}={value}: {lossy}");
            }
        }
        // The twins: no limit, a no, and what every run has.
        let none = "LimitMEMLOCK=infinity\nRootEphemeral=0\nRootEphemeral=no\nLimitCORE=0\n";
        world.write("unit", format!("[Service]\n{none}"));
        world.sbx(["profile", "import", "--from", "systemd", "unit"]).run().success();
    });
}

/// A restriction where its tool passes over it would be left out without a word.
#[test]
fn what_stands_at_the_wrong_place_is_an_error() {
    as_users(|user| {
        let world = World::new(user);
        let modes = "sandbox_mode = \"workspace-write\"\n";
        let sunken = format!("{modes}[tui]\nshell_environment_policy = {{ exclude = [\"A\"] }}\n");
        for (language, text, place) in [
            (
                "claude",
                "{\"filesystem\":{\"denyRead\":[\"~/.ssh\"]}}",
                "filesystem: the key belongs into 'sandbox'",
            ),
            ("claude", "{\"network\":{\"allowedDomains\":[]}}", "network: the key belongs into 'sandbox'"),
            ("claude", "{\"deny\":[\"Read(~/.aws/**)\"]}", "deny: the key belongs into 'permissions'"),
            ("claude", "{\"denyRead\":[\"~/.ssh\"]}", "denyRead: the key belongs into 'sandbox.filesystem'"),
            (
                "codex",
                &format!("{modes}exclude = [\"A\"]\n"),
                "exclude: the key belongs into 'shell_environment",
            ),
            (
                "codex",
                &format!("{modes}[filesystem]\n\"~/.ssh\" = \"deny\"\n"),
                "filesystem: the key belongs into",
            ),
            ("codex", &sunken, "tui.shell_environment_policy: the key belongs to the top"),
            (
                "codex",
                &format!("{modes}[features]\nsandbox_mode = \"read-only\"\n"),
                "features.sandbox_mode: the key",
            ),
            (
                "systemd",
                "[Unit]\nProtectHome=yes\n[Service]\n",
                "line 2: ProtectHome: it belongs into [Service]",
            ),
        ] {
            let err = refusal(&world, language, text.as_bytes());
            assert!(err.contains(place), "{language}: {place}: {err}");
        }
        // The twins: keys that are about the agent, and sections about other units.
        let agent = "{\"model\":\"opus\",\"env\":{\"A\":\"b\"},\"hooks\":{},\"statusLine\":{\"type\":\"command\"},\
                     \"enabledPlugins\":{},\"disableAllHooks\":false,\"cleanupPeriodDays\":3,\"attribution\":{},\
                     \"permissions\":{\"deny\":[\"Read(~/.ssh)\"]}}";
        let codex = format!("{modes}model = \"x\"\n[features]\nweb_search = true\n[tui]\ntheme = \"x\"\n");
        let unit =
            "[Unit]\nAfter=x\nStartLimitBurst=3\n[Service]\nProtectHome=yes\n[Socket]\nProtectHome=no\n";
        for (language, text) in [("claude", agent), ("codex", &codex), ("systemd", unit)] {
            world.write("usual", text);
            world.sbx(["profile", "import", "--from", language, "usual"]).run().success();
        }
    });
}

/// What an import prints, `sbx profile check` accepts.
#[test]
fn a_variable_that_is_never_passed_on_is_left_out() {
    as_users(|user| {
        let world = World::new(user);
        world.write("unit", "[Service]\nPassEnvironment=AWS_SECRET LANG LD_PRELOAD GREETING\n");
        let out = world.sbx(["profile", "import", "--lossy", "--from", "systemd", "unit"]).run().success();
        assert_eq!(out.err().lines().filter(|line| line.contains("never passed on")).count(), 2, "{out}");
        world.write("made.json", out.out());
        world.sbx(["profile", "check", "./made.json"]).run().success();
        let words = ["run", "-p", "./made.json", "--", "sh", "-c", "echo $GREETING$AWS_SECRET"];
        let run = world.sbx(words).env("GREETING", "hello").env("AWS_SECRET", "held").run().success();
        assert_eq!(run.out(), "hello\n", "{run}");
    });
}

/// Documents that are as long as they may be end soon.
#[test]
fn long_documents_end_soon() {
    as_users(|user| {
        let world = World::new(user);
        let list = |entry: &dyn Fn(usize) -> String| (0..60_000).map(entry).collect::<Vec<_>>().join(",");
        let paths = list(&|number| format!("\"/srv/{number}\""));
        let hosts = list(&|number| format!("\"h{number}.org\""));
        let words = (0..150_000).map(|number| format!("{number}x ")).collect::<String>();
        let lines = (0..60_000).map(|number| format!("Read{number}=x\n")).collect::<String>();
        for (language, text, place) in [
            (
                "srt",
                format!("{{\"network\":{{}},\"filesystem\":{{\"denyRead\":[{paths}]}}}}"),
                "more than 2000 paths",
            ),
            (
                "srt",
                format!("{{\"network\":{{\"allowedDomains\":[{hosts}]}},\"filesystem\":{{}}}}"),
                "more than 2000",
            ),
            ("systemd", format!("[Service]\nSystemCallFilter={words}\n"), ""),
            ("systemd", format!("[Service]\n{lines}"), ""),
        ] {
            world.write("long", &text);
            let begun = std::time::Instant::now();
            let out = world.sbx(["profile", "import", "--from", language, "long"]).run();
            assert!(out.code == Some(125) && out.err().contains(place), "{out}");
            assert!(begun.elapsed().as_secs() < 20, "{language}: {:?}", begun.elapsed());
        }
    });
}
