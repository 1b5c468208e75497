//! Profiles made of other tools' policies, and policies made of profiles: what they let through and what they refuse.

mod agents;
mod closed;
mod consumers;
mod hostile;
mod round_trips;
mod units;

use sbx_tests::users::User;
use sbx_tests::{World, as_users};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The profile that a document makes, with its losses, saved beside the workspace.
fn made_of(world: &World, language: &str, document: impl AsRef<[u8]>) -> PathBuf {
    world.write("document", document);
    let out = world.sbx(["profile", "import", "--lossy", "--from", language, "document"]).run().success();
    std::fs::remove_file(world.path("document")).unwrap();
    world.write(world.home.join(format!("{language}.json")), out.out())
}

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
fn imported(world: &World, document: &Value) -> PathBuf {
    world.write("filter.json", document.to_string());
    let out = world.sbx(["profile", "import", "--from", "docker", "filter.json"]).run().success();
    let mut profile: Value = serde_json::from_str(&out.out()).unwrap();
    // The document speaks of calls only.
    profile["paths"] = json!({ "write": ["${WORKSPACE}"] });
    world.write(world.home.join("imported.json"), profile.to_string())
}

/// Another tool gives its command a terminal of its own, or none; here it has the caller's.
#[test]
fn an_imported_filter_types_into_no_terminal() {
    as_users(|user| {
        let world = World::new(user);
        let listed = json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
            {"names": ["ioctl", "read", "openat", "close"], "action": "SCMP_ACT_ALLOW"},
        ]});
        for document in [listed, json!({"defaultAction": "SCMP_ACT_ALLOW"})] {
            let profile = imported(&world, &document);
            let ask = |request: &str| {
                let call = format!("ioctl,0,{request}");
                let out = world.sbx(["why", "-p"]).arg(&profile).args(["--json", "--call", &call]).run();
                serde_json::from_str::<Value>(&out.out()).unwrap()["answer"].clone()
            };
            // TIOCSTI, TIOCLINUX, TIOCSETD; and TCGETS, TIOCGWINSZ.
            assert_eq!(["0x5412", "0x541c", "0x5423"].map(ask), ["refused"; 3].map(Value::from));
            assert_eq!(["0x5401", "0x5413"].map(ask), ["allowed"; 2].map(Value::from));
        }
    });
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

/// libseccomp lays the mask over the value too, so a value with other bits is no rule that never matches.
#[test]
fn a_masked_value_may_have_other_bits() {
    as_users(|user| {
        let world = World::new(user);
        let script = "import os\ntry: os.getpgid(1); print('answered')\nexcept OSError as e: print(e.errno)";
        for (value, answer) in [(3, "42\n"), (2, "answered\n")] {
            let args = json!([{ "index": 0, "value": 1, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ" }]);
            let rule =
                json!({ "names": ["getpgid"], "action": "SCMP_ACT_ERRNO", "errnoRet": 42, "args": args });
            let profile = imported(&world, &json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": [rule] }));
            let out =
                world.sbx(["run", "-q", "-p"]).arg(&profile).args(["--", "python3", "-c", script]).run();
            assert_eq!(out.out(), answer, "{value}: {out}");
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
