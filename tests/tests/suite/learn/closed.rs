//! What permissions close to other users is learned where the user says so alone, whatever a command does with it.

use super::{learn, learned, under_learned};
use sbx_tests::{World, in_worlds, kernel, promise};
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
