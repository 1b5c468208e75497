//! Warm starts: a run of a pool does what a run that starts cold does, shares nothing with another one, and takes no
//! command of another policy.

mod apart;
mod commands;
mod ends;
mod handed;
mod lasting;
mod policy;
mod reach;
mod stands;

use sbx_tests::{Cmd, Output, World};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A pool, which is ended when it is dropped.
pub struct Pool<'w> {
    world: &'w World,
    flags: Vec<&'w str>,
    pub pid: i32,
}

impl<'w> Pool<'w> {
    pub fn start(world: &'w World, size: &str, flags: &[&'w str]) -> Pool<'w> {
        let words = ["pool", "start", "--size", size, "--idle", "60s"];
        let out = place(world.sbx(words.iter().chain(flags)), world).run().success();
        let pid = out.out().trim().rsplit(' ').next().and_then(|pid| pid.parse().ok());
        Pool { world, flags: flags.to_vec(), pid: pid.unwrap_or_else(|| panic!("no pool: {out}")) }
    }

    /// A command, with the flags of the pool and others.
    pub fn cmd(&self, more: &[&str], script: &str) -> Cmd {
        warm(self.world, &[&self.flags, more].concat(), script)
    }

    /// Runs a command of the pool, which has to take it.
    #[track_caller]
    pub fn sh(&self, script: &str) -> Output {
        self.within(|| self.cmd(&["-v"], script).run())
    }

    /// Until a run of the pool takes the command: the one that replaces the last may not wait yet, and those that wait
    /// may be of before something changed.
    #[track_caller]
    pub fn within(&self, run: impl Fn() -> Output) -> Output {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let out = run();
            if !out.err().contains("no warm start") {
                return out;
            }
            assert!(Instant::now() < until, "no run of the pool takes it: {out}");
        }
    }

    pub fn runs(&self) -> Vec<i32> {
        children(self.pid)
    }
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        let words = ["pool", "stop"].iter().chain(&self.flags);
        place(self.world.sbx(words), self.world).run();
    }
}

/// With a directory for sockets of the world's own.
pub fn place(cmd: Cmd, world: &World) -> Cmd {
    let runtime = runtime(world);
    // A run that waits would notice if its permissions were set once more.
    if !runtime.exists() {
        world.make_dir(&runtime);
        fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
    }
    cmd.env("XDG_RUNTIME_DIR", runtime)
}

pub fn runtime(world: &World) -> PathBuf {
    world.home.join("runtime")
}

pub fn warm(world: &World, flags: &[&str], script: &str) -> Cmd {
    let command = ["--", "sh", "-c", script];
    place(world.sbx(["run", "--pool"].iter().chain(flags).chain(&command)), world)
}

pub fn children(pid: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// All descendants.
pub fn tree(pid: i32) -> Vec<i32> {
    children(pid).into_iter().flat_map(|child| [vec![child], tree(child)].concat()).collect()
}

pub fn socket(world: &World) -> PathBuf {
    let entries = fs::read_dir(runtime(world).join("sbx")).unwrap().flatten();
    entries.map(|entry| entry.path()).next().unwrap()
}

/// Requires that the pool did not take the command, and that this was said.
#[track_caller]
pub fn cold(cmd: Cmd, why: &str) -> Output {
    let out = cmd.run();
    assert!(out.err().contains("no warm start") && out.err().contains(why), "lacks {why:?}: {out}");
    out
}
