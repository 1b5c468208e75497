//! Profiles made of other tools' policies, and policies made of profiles: what they let through and what they refuse.

use sbx_tests::command::Cmd;
use sbx_tests::users::User;
use sbx_tests::{World, as_users, need};
use serde_json::{Value, json};

/// A filter that does this about mkdir, and refuses links that follow links.
fn filter(about_mkdir: &str) -> Value {
    let follows = json!([{ "index": 4, "value": 0x400, "valueTwo": 0x400, "op": "SCMP_CMP_MASKED_EQ" }]);
    json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [
            { "names": ["mkdir", "mkdirat"], "action": about_mkdir },
            { "names": ["linkat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13, "args": follows },
        ],
    })
}

/// The profile that a document makes, saved in the workspace's parent.
fn imported(world: &World, document: &Value) -> std::path::PathBuf {
    world.write("filter.json", document.to_string());
    let out = world.sbx(["profile", "import", "--from", "docker", "filter.json"]).run().success();
    let mut profile: Value = serde_json::from_str(&out.out()).unwrap();
    // The document speaks of calls only.
    profile["paths"] = json!({ "write": ["${WORKSPACE}"] });
    world.write(world.home.join("imported.json"), profile.to_string())
}

#[test]
fn an_imported_filter_refuses_what_the_document_refuses() {
    as_users(|user| {
        let world = World::new(user);
        let script = "mkdir made; ln -P lines plain; ln -L lines followed; cat lines";
        world.write("lines", "read\n");
        for (about_mkdir, made) in [("SCMP_ACT_ERRNO", false), ("SCMP_ACT_ALLOW", true)] {
            let profile = imported(&world, &filter(about_mkdir));
            let out = world.sbx(["run", "-p"]).arg(&profile).args(["--", "/bin/sh", "-c", script]).run();
            assert_eq!(out.out(), "read\n", "{out}");
            assert_eq!(world.path("made").is_dir(), made, "{out}");
            assert!(world.exists("plain") && !world.exists("followed"), "{out}");
            std::fs::remove_file(world.path("plain")).unwrap();
        }
    });
}

#[test]
fn hostile_documents_end_with_a_place() {
    as_users(|user| {
        let world = World::new(user);
        let deep = format!("{{\"defaultAction\":\"SCMP_ACT_LOG\",\"syscalls\":{}", "[".repeat(5000));
        let huge = format!("{{\"x\":\"{}\"}}", "y".repeat(2 << 20));
        let rule = |rule: &str| format!("{{\"defaultAction\":\"SCMP_ACT_LOG\",\"syscalls\":[{rule}]}}");
        for (text, place) in [
            (deep, "line 1 column"),
            (huge, "1048576"),
            ("{\"defaultAction\":1,\"defaultAction\":2}".into(), "'defaultAction' stands twice at line 1"),
            ("{\"defaultAction\":\"SCMP_ACT_X\"}".into(), "defaultAction: unknown value 'SCMP_ACT_X'"),
            (rule("{\"names\":[\"read\"],\"action\":\"ALLOW\"}"), "syscalls[0].action: unknown value"),
            (rule("{\"names\":[],\"action\":\"SCMP_ACT_LOG\"}"), "syscalls[0]: it names no call"),
            (
                rule("{\"names\":[\"opne\"],\"action\":\"SCMP_ACT_ALLOW\"}"),
                "syscalls[0]: opne: there is no such call",
            ),
        ] {
            world.write("hostile.json", text);
            let out = world.sbx(["profile", "import", "--from", "oci", "hostile.json"]).run();
            assert_eq!(out.code, Some(125), "{out}");
            assert!(out.err().contains(place) && out.err().lines().count() == 1, "{place}: {out}");
        }
    });
}

#[test]
fn a_loss_is_an_error_or_a_line() {
    let world = World::new(&User::ordinary());
    let strict = world.sbx(["profile", "export", "--to", "oci", "minimal"]).run();
    assert_eq!(strict.code, Some(125), "{strict}");
    assert_eq!(strict.out(), "", "{strict}");
    let lossy = world.sbx(["profile", "export", "--to", "oci", "--lossy", "minimal"]).run().success();
    assert!(lossy.err().contains("lost: paths.read: "), "{lossy}");
}

/// runc runs a shell that makes a user namespace and a directory, under the exported filter of a profile.
#[test]
#[ignore = "takes root, runc and control groups that it understands"]
fn runc_enforces_an_exported_filter() {
    need!("busybox");
    let user = User::current();
    let world = World::new(&user);
    let bundle = world.path("bundle");
    world.make_dir(&bundle.join("rootfs/bin"));
    std::fs::copy(sbx_tests::tools::have("busybox").unwrap(), bundle.join("rootfs/bin/busybox")).unwrap();
    Cmd::new("runc").args(["spec"]).cwd(&bundle).run().success();
    let spec: Value = serde_json::from_slice(&std::fs::read(bundle.join("config.json")).unwrap()).unwrap();
    let script = "/bin/busybox mkdir /dev/shm/made && echo made; /bin/busybox ls /dev/shm; \
                  /bin/busybox unshare -U /bin/busybox echo namespace";
    for (profile, shown) in [("read-only", "made\nmade\n"), ("unrestricted", "made\nmade\nnamespace\n")] {
        let out = world.sbx(["profile", "export", "--to", "oci", "--lossy", profile]).run().success();
        let mut spec = spec.clone();
        spec["linux"]["seccomp"] = serde_json::from_str(&out.out()).unwrap();
        spec["process"]["terminal"] = json!(false);
        spec["process"]["args"] = json!(["/bin/busybox", "sh", "-c", script]);
        world.write(bundle.join("config.json"), spec.to_string());
        let name = format!("sbx-{}-{profile}", std::process::id());
        let out = Cmd::new("runc").args(["run", &name]).cwd(&bundle).run();
        assert_eq!(out.out(), shown, "{profile}: {out}");
    }
}
