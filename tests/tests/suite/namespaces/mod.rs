//! Namespaces of a run's own: what is masked and protected in them, what of the host is out of sight, whom signals
//! reach; and what is held, or said to be missing, where there are none.

mod configuration;
mod git;
mod hostile;
mod mounted;
mod processes;
mod services;
mod shielded;
mod stubs;

use sbx_tests::{Cmd, User, World, kernel, skip};
use std::path::Path;

const PYTHON: &str = "/usr/bin/python3";

/// The calls without which there are no namespaces.
const REFUSING: &[(libc::c_long, i32)] =
    &[(libc::SYS_unshare, libc::EPERM), (libc::SYS_mount, libc::EPERM), (libc::SYS_open_tree, libc::EPERM)];

/// Whether they can be had here, by this user; says so where not.
fn available(user: &User) -> bool {
    if kernel::landlock() < 4 {
        return false;
    }
    let world = World::new(user);
    let out = world.sbx(["run", "--require", "full", "--", "true"]).run();
    let made = out.code == Some(0);
    if !made {
        skip(&format!("no namespaces for {}: {}", user.name, out.err()));
    }
    made
}

/// A test of what namespaces hold: for each user who can have them.
fn with_namespaces(body: impl Fn(&User)) {
    sbx_tests::as_users(|user| {
        if available(user) {
            body(user);
        }
    });
}

/// `sbx run FLAGS -- bash -c SCRIPT`.
fn shell(world: &World, flags: &[&str], script: &str) -> Cmd {
    world.sbx(["run"]).args(flags).args(["--", "bash", "-c", script])
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What of a host's file system is mounted below a directory, for whoever looks from outside.
fn mounted_below(directory: &Path) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let place = directory.to_str().unwrap();
    mounts.lines().filter(|line| line.contains(place)).map(str::to_owned).collect()
}
