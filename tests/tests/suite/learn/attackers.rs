//! What a review says that an attacker gets, a run gives, and nothing else is said.

use super::reviews::{about, review};
use sbx_tests::{in_worlds, kernel, need, promise};
use serde_json::json;

/// A call that makes or changes files by itself is as good as opening them for writing.
#[test]
fn every_call_that_changes_files_counts_as_writing() {
    promise!(kernel::PATHS);
    need!("python3");
    in_worlds(|world| {
        let script = |act: &str| {
            format!(
                "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nhome = os.environ['HOME']\n\
                 at = lambda name: (home + '/' + name).encode()\n{act}\n"
            )
        };
        let open = json!(["openat[read]", { "call": "openat", "args": [{ "index": 2, "op": "eq", "value": "0x241" }] }]);
        for (calls, act, made) in [
            (json!(["creat"]), "libc.syscall(85, at('.bashrc'), 0o644)", ".bashrc"),
            (json!(["symlink"]), "os.symlink('x', at('.bashrc'))", ".bashrc"),
            (json!(["rename"]), "os.rename(at('plain'), at('.bashrc'))", ".bashrc"),
            (json!(["link"]), "os.link(at('plain'), at('.bashrc'))", ".bashrc"),
            (json!(["mkdirat"]), "libc.mkdirat(-100, at('.emacs.d'), 0o755)", ".emacs.d"),
            (open, "libc.syscall(257, -100, at('.bashrc'), 0x241, 0o644)", ".bashrc"),
            // These change nothing.
            (json!(["getcwd"]), "", ""),
            (json!(["openat[read]", "fchdir"]), "", ""),
        ] {
            if cfg!(not(target_arch = "x86_64")) {
                return;
            }
            world.write(world.home.join("plain"), "echo ran\n");
            let profile = json!({
                "extends": "minimal", "static": "confine",
                "paths": { "write": ["${HOME}"] }, "syscalls": { "allow": calls },
            });
            let review = review(world, &profile);
            let found = about(&review, "runs later", ".bashrc");
            assert_eq!(found.is_some(), !made.is_empty(), "{calls}: {review:#}");
            let program = script(act);
            world
                .sbx(["run", "-q", "-p", "../reviewed.json", "--", "/usr/bin/python3", "-c", &program])
                .run();
            if made.is_empty() {
                continue;
            }
            let made = world.home.join(made);
            assert!(made.symlink_metadata().is_ok(), "{calls}");
            let _ = std::fs::remove_file(&made).or_else(|_| std::fs::remove_dir(&made));
        }
    });
}
