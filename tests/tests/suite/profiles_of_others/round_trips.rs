//! Profiles that are written in another language and read again.

use super::made_of;
use sbx_tests::users::User;
use sbx_tests::{World, as_users};
use serde_json::{Value, json};

fn exported(world: &World, language: &str, profile: &str) -> String {
    world.sbx(["profile", "export", "--lossy", "--to", language, profile]).run().success().out()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A profile of calls alone, which every language about calls can say.
fn calls(world: &World) -> String {
    let profile = json!({
        "extends": "custom",
        "syscalls": {
            "default": "errno",
            "allow": ["@basic-io", "openat", { "call": "socket", "args": [{ "index": 0, "value": 1 }] }],
            "deny": [{ "call": "mkdir", "errno": "EACCES" }],
        },
    });
    world.write(world.home.join("calls.json"), profile.to_string()).display().to_string()
}

#[test]
fn a_seccomp_profile_of_a_cluster_comes_back() {
    let world = World::new(&User::ordinary());
    let profile = calls(&world);
    let resource = value(&exported(&world, "spo", &profile));
    assert_eq!(resource["kind"], "SeccompProfile");
    assert_eq!(resource["metadata"]["name"], "calls");
    // Without the keys that an OCI document alone has, both say the same.
    let mut filter = value(&exported(&world, "oci", &profile));
    let filter = filter.as_object_mut().unwrap();
    filter.remove("defaultErrnoRet");
    filter.insert("architectures".into(), resource["spec"]["architectures"].clone());
    assert_eq!(resource["spec"], json!(filter));
    let of_resource = std::fs::read(made_of(&world, "spo", resource.to_string())).unwrap();
    let of_filter = std::fs::read(made_of(&world, "oci", json!(filter).to_string())).unwrap();
    assert_eq!(of_resource, of_filter);
}

/// The languages that both directions know.
const BOTH: [&str; 4] = ["oci", "docker", "spo", "systemd"];

#[test]
fn what_comes_back_starts_the_same_command_with_the_same_refusals() {
    as_users(|user| {
        let world = World::new(user);
        world.write("lines", "read\n");
        let syscalls = json!({ "deny": ["getpriority", { "call": "umask", "errno": "EACCES" }] });
        let profile = json!({ "extends": "read-only", "namespaces": "none", "syscalls": syscalls });
        let profile = world.write(world.home.join("some.json"), profile.to_string()).display().to_string();
        let script = "nice; mkdir made; ln -s lines link; cat lines; exit 7";
        let run = |profile: &str| {
            let run = world.sbx(["run", "-q", "--report", "report.json", "-p", profile]);
            let out = run.args(["--", "/bin/sh", "-c", script]).run();
            let report = value(&world.read("report.json").unwrap());
            let calls = report["violations"].as_array().unwrap().iter();
            let by_filter = calls.filter(|refused| refused["kind"] == "syscall");
            let calls: Vec<_> = by_filter.map(|refused| refused["call"].clone()).collect();
            (out.code, out.out(), out.err(), calls)
        };
        let expected = run(&profile);
        assert_eq!((expected.0, &*expected.1), (Some(7), "read\n"), "{expected:?}");
        assert_eq!(expected.3, [json!("getpriority")], "{expected:?}");
        assert!(!world.exists("made") && !world.exists("link"));
        for language in BOTH {
            let again = made_of(&world, language, exported(&world, language, &profile));
            assert_eq!(run(&again.display().to_string()), expected, "{language}");
            assert!(!world.exists("made") && !world.exists("link"), "{language}");
        }
    });
}

#[test]
fn every_built_in_profile_comes_back_as_one_that_starts_programs() {
    let world = World::new(&User::ordinary());
    world.write("lines", "read\n");
    for profile in ["minimal", "network", "write", "no-exec", "read-only", "workspace"] {
        for language in BOTH {
            let again = made_of(&world, language, exported(&world, language, profile));
            let out = world.sbx(["run", "-q", "-p"]).arg(&again).args(["--", "/bin/echo", "began"]).run();
            assert_eq!(out.success().out(), "began\n", "{profile} {language}");
            if ["minimal", "network", "write"].contains(&profile) && language != "systemd" {
                let diff = world.sbx(["profile", "diff", "--json", profile]).arg(&again).run();
                let diff = value(&diff.out());
                let calls = |side: &str| {
                    let all = diff[side].as_array().unwrap().iter();
                    all.filter(|effect| effect["kind"] == "call").cloned().collect::<Vec<_>>()
                };
                let sides = [calls("only_first"), calls("only_second")].concat();
                assert_eq!(sides, Vec::<Value>::new(), "{profile} {language}");
            }
        }
    }
}

#[test]
fn a_unit_comes_back() {
    let world = World::new(&User::ordinary());
    let unit = "[Service]\nSystemCallFilter=@system-service\nSystemCallFilter=~@privileged\n\
                SystemCallErrorNumber=EACCES\nRestrictNamespaces=yes\nMemoryDenyWriteExecute=yes\n\
                RestrictSUIDSGID=yes\nRestrictAddressFamilies=AF_UNIX AF_INET\nProtectSystem=strict\n\
                ReadWritePaths=/srv/a\nReadOnlyPaths=/srv/a/fixed\nInaccessiblePaths=/etc/ssl/private\n\
                LimitNOFILE=100\nMemoryMax=1G\nEnvironment=\"A=b c\"\n";
    let once = made_of(&world, "systemd", unit);
    let again = exported(&world, "systemd", &once.display().to_string());
    let first = value(&std::fs::read_to_string(&once).unwrap());
    let mut second = value(&std::fs::read_to_string(made_of(&world, "systemd", again)).unwrap());
    // A unit hides the machine's terminals and shared memory, which a run does not see.
    let of_run = |entry: &Value| entry.as_str().is_some_and(|path| path.starts_with("/dev/"));
    second["paths"]["deny"].as_array_mut().unwrap().retain(|entry| !of_run(entry));
    let parts = ["/syscalls", "/limits", "/env/set", "/paths/deny", "/paths/protect", "/network"];
    for part in parts {
        assert_eq!(first.pointer(part), second.pointer(part), "{part}");
    }
    for part in ["/paths/write", "/paths/execute"] {
        let has = |value: &Value, path: &str| {
            let mut entries = value.pointer(part).unwrap().as_array().unwrap().iter();
            entries.any(|entry| *entry == path || entry["path"] == path)
        };
        assert!(has(&first, "/srv/a") && has(&second, "/srv/a"), "{part}: {second}");
    }
}

#[test]
fn a_policy_of_landlockconfig_has_the_paths_and_ports() {
    let world = World::new(&User::ordinary());
    let profile = json!({
        "extends": "custom",
        "paths": { "read": ["/srv/a$b"], "write": ["${WORKSPACE}/out"] },
        "network": { "mode": "allow", "connect": ["*:443", "example.org"], "bind": [8080] },
    });
    let file = world.write(world.home.join("ports.json"), profile.to_string()).display().to_string();
    let strict = world.sbx(["profile", "export", "--to", "landlock", &file]).run();
    assert_eq!((strict.code, strict.out()), (Some(125), String::new()), "{strict}");
    let policy = value(&exported(&world, "landlock", &file));
    let rules = policy["pathBeneath"].as_array().unwrap();
    let of = |right: &str| {
        let rule = rules.iter().find(|rule| rule["allowedAccess"][0] == right).unwrap();
        rule["parent"].as_array().unwrap().clone()
    };
    assert!(of("read_file").contains(&json!("/srv/a$$b")), "{policy}");
    assert!(of("abi.read_execute").contains(&json!("/usr")), "{policy}");
    assert!(of("abi.read_write").contains(&json!("${WORKSPACE}/out")), "{policy}");
    assert_eq!(
        policy["netPort"],
        json!([{ "allowedAccess": ["connect_tcp"], "port": [443] }, { "allowedAccess": ["bind_tcp"], "port": [8080] }])
    );
    let err = world.sbx(["profile", "export", "--lossy", "--to", "landlock", &file]).run().err();
    assert!(err.contains("lost: network.connect[1]: Landlock has no rules about hosts"), "{err}");
}

#[test]
fn a_program_is_as_long_as_its_instructions() {
    let world = World::new(&User::ordinary());
    let out = world.sbx(["profile", "export", "--lossy", "--to", "bpf", &calls(&world)]).run().success();
    assert!(!out.stdout.is_empty() && out.stdout.len().is_multiple_of(8), "{}", out.stdout.len());
    // It begins with the architecture: a load of the word at 4.
    assert_eq!(out.stdout[..8], [0x20, 0, 0, 0, 4, 0, 0, 0]);
}

/// runc and crun skip a rule that does what happens anyway.
#[test]
fn a_refusal_that_is_the_default_takes_nothing_away() {
    as_users(|user| {
        let world = World::new(user);
        for (error, is_refused) in [(1, false), (13, true)] {
            let rules = json!([
                { "names": ["mkdir"], "action": "SCMP_ACT_ALLOW" },
                { "names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "errnoRet": error },
            ]);
            world
                .write("filter", json!({ "defaultAction": "SCMP_ACT_ERRNO", "syscalls": rules }).to_string());
            let out = world.sbx(["profile", "import", "--lossy", "--from", "oci", "filter"]).run().success();
            let profile = value(&out.out());
            let calls = |list: &str| profile["syscalls"][list].to_string().contains("mkdir");
            assert_eq!((calls("allow"), calls("deny")), (!is_refused, is_refused), "{profile}");
            assert_eq!(out.err().contains("rules that refuse it may hold at once"), is_refused, "{out}");
        }
    });
}
