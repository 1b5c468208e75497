//! What the permissions of files say about a gain: of a directory, they say nothing about what is in it.

use super::attackers::{extended, has, run};
use super::reviews::review;
use sbx_tests::{in_worlds, kernel, promise};
use serde_json::json;

/// A directory of the kernel's settings takes no names from root, and its files take what root writes.
#[test]
fn settings_of_the_kernel_that_root_writes_are_found_below_closed_directories() {
    promise!(kernel::PATHS);
    const SETTING: &str = "/proc/sys/kernel/core_pattern";
    // The same as before, so that nothing changes.
    let write = format!("value=$(cat {SETTING}) && echo \"$value\" > {SETTING}");
    in_worlds(|world| {
        for path in ["/proc/sys/kernel", "/proc/sys", "/proc"] {
            let added = json!({ "namespaces": "none", "paths": { "write": [path, "/sys"] } });
            let reviewed = review(world, &extended("read-only", &added));
            let can = run(world, &["sh", "-c", &write]).code == Some(0);
            assert_eq!(has(&reviewed, "runs later", &format!("{SETTING} (")), can, "{path}: {reviewed:#}");
            let closed = reviewed["closed"].as_array().unwrap();
            let is_closed = |path: &str| closed.contains(&json!(path));
            assert!(!can || !(is_closed(path) || is_closed(SETTING)), "{path}: {closed:?}");
            // No names are made there, whatever the modes say.
            let out = run(world, &["mkdir", &format!("{path}/made"), "/sys/kernel/made"]);
            assert!(!out.out().contains("made") && out.code != Some(0), "{out}");
            assert!(!has(&reviewed, "runs later", &format!("\"{path}\"")), "{path}: {reviewed:#}");
            // Without the rule it is closed.
            let reads = json!({ "namespaces": "none", "paths": { "read": [path] } });
            let reads = review(world, &extended("read-only", &reads));
            assert!(!has(&reads, "runs later", SETTING), "{path}: {reads:#}");
            run(world, &["sh", "-c", &write]).failed();
        }
        let open = world.sbx(["profile", "review", "--json", "unrestricted"]).run().success();
        let open = serde_json::from_str(&open.out()).unwrap();
        let out = world.sbx(["run", "-q", "--dangerously-unconfined", "--", "sh", "-c", &write]).run();
        assert_eq!(has(&open, "runs later", &format!("{SETTING} (")), out.code == Some(0), "{open:#}");
    });
}

/// What is below a directory of root's may be the user's.
#[test]
fn what_the_user_owns_below_a_directory_of_others_is_open() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        // It belongs to whoever runs the tests.
        let base = world.outside.join("of-tester");
        std::fs::create_dir(&base).unwrap();
        let (text, own) = (base.to_str().unwrap().to_string(), base.join("deep/own"));
        let paths = json!({ "paths": { "write": [text], "execute": [text] } });
        for is_there in [false, true] {
            if is_there {
                std::fs::create_dir(base.join("deep")).unwrap();
                world.make_dir(&own);
            }
            let reviewed = review(world, &extended("read-only", &paths));
            let place = if is_there { &own } else { &base };
            let brings =
                format!("cp /bin/true {0}/program && {0}/program && rm {0}/program", place.display());
            let can = run(world, &["sh", "-c", &brings]).code == Some(0);
            assert_eq!(has(&reviewed, "programs", &text), can, "{reviewed:#}");
            let makes = format!("mkdir {0}/.git && rmdir {0}/.git", place.display());
            assert_eq!(run(world, &["sh", "-c", &makes]).code == Some(0), can);
            assert_eq!(has(&reviewed, "runs later", &text), can, "{reviewed:#}");
            assert!(can || !is_there, "{reviewed:#}");
        }
        let open = world.sbx(["profile", "review", "--json", "unrestricted"]).run().success();
        let open = serde_json::from_str(&open.out()).unwrap();
        let below = if world.user.is_root() { "\"/\"" } else { "\"/ (in /" };
        assert!(has(&open, "programs", "\"/\"") && has(&open, "runs later", below), "{open:#}");
    });
}

/// A directory that is closed goes away with its name, where the one around it is open.
#[test]
fn a_closed_directory_in_an_open_one_is_replaced() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let around = world.outside.join("around");
        world.make_dir(&around);
        let (closed, file) = (around.join("closed"), around.join("closed/.envrc"));
        std::fs::create_dir(&closed).unwrap();
        std::fs::write(&file, "old").unwrap();
        let script = format!(
            "mv {0} {0}.old && mkdir {0} && echo new > {0}/.envrc; rm -rf {0}; mv {0}.old {0}",
            closed.display()
        );
        for (rule, can) in [(&around, true), (&closed, world.user.is_root())] {
            let paths = json!({ "paths": { "write": [rule] } });
            let reviewed = review(world, &extended("workspace", &paths));
            assert_eq!(has(&reviewed, "runs later", ".envrc ("), can, "{reviewed:#}");
            let out = run(world, &["sh", "-c", &format!("echo new > {} || ({script})", file.display())]);
            assert_eq!(!out.err().contains("mv: "), can, "{out}");
        }
    });
}
