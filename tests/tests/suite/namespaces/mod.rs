//! Namespaces of a run's own: what is masked and protected in them, what of the host is hidden, which processes signals
//! reach; and what holds, or is reported missing, where there are none.

mod across_runs;
mod aftermath;
mod alternates;
mod astray;
mod between_runs;
mod borrowed;
mod configuration;
mod exhausting;
mod git;
mod hidden_repositories;
mod home_paths;
mod hostile;
mod in_parts;
mod indexes;
mod links;
mod mounted;
mod moved;
mod odd_repositories;
mod own_directories;
mod placeholders;
mod pointers;
mod processes;
mod protected;
mod readers;
mod remotes;
mod renamed;
mod separate;
mod services;
mod set_aside;
mod stand_in;
mod states;
mod submodules;
mod ways;

use sbx_tests::{Cmd, User, World, kernel, skip};
use std::path::Path;

const PYTHON: &str = "/usr/bin/python3";

/// The calls without which there are no namespaces.
const REFUSING: &[(libc::c_long, i32)] =
    &[(libc::SYS_unshare, libc::EPERM), (libc::SYS_mount, libc::EPERM), (libc::SYS_open_tree, libc::EPERM)];

/// Whether this user can have namespaces here; a visible skip where not.
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

/// Runs a test that needs namespaces, for each user who can have them.
pub fn with_namespaces(body: impl Fn(&User)) {
    sbx_tests::as_users(|user| {
        if available(user) {
            body(user);
        }
    });
}

/// Runs such a test in a new world for each of them.
fn in_namespaces(body: impl Fn(&World)) {
    with_namespaces(|user| body(&World::new(user)));
}

/// A world with these directories in the home, as programs leave them that the user has.
fn user_of(user: &User, directories: &[&str]) -> World {
    let world = World::new(user);
    directories.iter().for_each(|name| world.make_dir(&world.home.join(name)));
    world
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

/// The mounts below a directory, as the host sees them.
fn mounted_below(directory: &Path) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let place = directory.to_str().unwrap();
    mounts.lines().filter(|line| line.contains(place)).map(str::to_owned).collect()
}
