//! What permissions close to other users is learned where the user says so alone, whatever a command does with it.

use super::attackers::{extended, has, run};
use super::reviews::review;
use super::{learn, learned, under_learned};
use sbx_tests::{World, in_worlds, kernel, promise};
use serde_json::json;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn close(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What a script prints where it was learned from: without a word of the user's, and with one.
fn taught(world: &World, script: &str) -> [String; 2] {
    [&[][..], &["--allow-sensitive"]].map(|flags| {
        learn(world, flags, script).run().success();
        under_learned(world, script).out()
    })
}

#[test]
fn who_may_change_a_secret_may_read_it() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        let at = world.outside.join("data");
        for (file, mode) in
            [("plain", 0o644), ("deploy.pem", 0o644), ("keys/held", 0o600), ("open/file", 0o644)]
        {
            close(&world.write(at.join(file), "held\n"), mode);
        }
        close(&at.join("keys"), 0o700);
        let at = at.display();
        let both = |path: &str| format!("read line <> {at}/{path}; echo got $line");
        let beside = |path: &str, file: &str| format!("touch {at}/{path}/new; cat {at}/{path}/{file}; true");
        for (script, denied, given) in [
            (both("deploy.pem"), "got\n", "got held\n"),
            (both("keys/held"), "got\n", "got held\n"),
            (beside("keys", "held"), "", "held\n"),
            // The twins, which hold nothing that is closed.
            (both("plain"), "got held\n", "got held\n"),
            (beside("open", "file"), "held\n", "held\n"),
        ] {
            assert_eq!(taught(world, &script), [denied, given], "{script}: {:#?}", learned(world));
        }
    });
}

/// The mode of a file says nothing where nobody else gets to it.
#[test]
fn a_closed_directory_closes_what_is_in_it() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        for (at, mode, is_open) in [
            (world.outside.join("vault"), 0o700, false),
            (world.outside.join("group"), 0o750, false),
            (world.home.join("vault"), 0o700, false),
            (world.outside.join("box"), 0o755, true),
            // Others who know a name in it get there.
            (world.outside.join("letters"), 0o711, true),
            (world.home.join("box"), 0o755, true),
        ] {
            let file = world.write(at.join("in/data"), "held\n");
            close(&at, mode);
            // A home that is closed as a whole closes nothing that is known to be open.
            close(&world.home, 0o700);
            let (path, denied) = (file.display().to_string(), if is_open { "held\n" } else { "" });
            let script = format!("cat {path}; true");
            assert_eq!(taught(world, &script), [denied, "held\n"], "{script}: {:#?}", learned(world));
            let reviewed = review(world, &extended("read-only", &json!({ "paths": { "read": [path] } })));
            assert_eq!(has(&reviewed, "secrets", &path), !is_open, "{reviewed:#}");
            assert_eq!(run(world, &["cat", &path]).out(), "held\n");
        }
    });
}

#[test]
fn a_directory_that_holds_a_closed_one_is_closed() {
    promise!(kernel::PATHS);
    in_worlds(|world| {
        for (mode, listed) in [(0o700, false), (0o755, true)] {
            let at = world.outside.join("all");
            world.write(at.join("deep/in/db"), "held\n");
            close(&at.join("deep/in"), mode);
            let script = format!("ls -R {0}; cat {0}/deep/in/db; true", at.display());
            let [without, with] = taught(world, &script);
            assert_eq!([without.contains("held"), with.contains("held")], [listed, true], "{without} {with}");
        }
    });
}
