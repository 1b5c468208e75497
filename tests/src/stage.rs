//! The directory with everything of one test process, readable for every user.
//!
//! Build directories may lie below a home that only its owner can enter, so `sbx` is copied out of there. The place is
//! /var/tmp rather than /tmp, because a profile may give a command its own /tmp.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::command::Cmd;
use crate::sys;
use crate::users::User;

const PREFIX: &str = "sbx-tests-";

/// The staging directory of this process: made once, removed at exit.
pub fn base() -> &'static Path {
    static BASE: OnceLock<PathBuf> = OnceLock::new();
    BASE.get_or_init(|| {
        let parent =
            std::env::var_os("SBX_TEST_DIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
        remove_left_over(&parent);
        let dir = parent.join(format!("{PREFIX}{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap_or_else(|error| panic!("cannot create {}: {error}", dir.display()));
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        sys::at_exit(remove_base);
        dir
    })
}

extern "C" fn remove_base() {
    if IN_MEMORY.load(Ordering::Relaxed) {
        sys::unmount(&c_path(base()));
    }
    let _ = fs::remove_dir_all(base());
}

/// Whether [`base`] is a file system of its own.
static IN_MEMORY: AtomicBool = AtomicBool::new(false);

/// Puts [`base`] into memory, and this thread into a mount namespace of its own, where that is allowed. For suites that
/// make and remove more files than a disk likes, or mount something; to be called before there are other threads.
pub fn in_memory() {
    IN_MEMORY.store(sys::own_memory_at(&c_path(base())).is_ok(), Ordering::Relaxed);
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path without a NUL byte")
}

/// Removes what killed test runs have left.
fn remove_left_over(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Held while a file is open for writing here and while a process is started: a child between fork and exec would
/// otherwise hold the file open, and whoever runs it would be told that it is busy.
static NOT_BOTH: Mutex<()> = Mutex::new(());

fn not_both() -> MutexGuard<'static, ()> {
    NOT_BOTH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a whole file.
pub fn write(path: &Path, content: &[u8]) {
    let _guard = not_both();
    fs::write(path, content).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

/// Copies a file.
pub fn copy(from: &Path, to: &Path) {
    let _guard = not_both();
    fs::copy(from, to).unwrap_or_else(|error| panic!("cannot copy {}: {error}", from.display()));
}

/// Runs something that starts processes without [`spawn`].
pub fn starting<T>(start: impl FnOnce() -> T) -> T {
    let _guard = not_both();
    start()
}

/// Starts a process.
pub fn spawn(command: &mut Command) -> Child {
    let _guard = not_both();
    command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))
}

/// A new directory of its own below [`base`], owned by `user`.
pub fn fresh_dir(user: &User) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let dir = base().join(format!("w{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    give(&dir, user);
    dir
}

/// A file, or a directory with all that is in it, that is removed in the end.
pub struct Removed(pub PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = if self.0.is_dir() { fs::remove_dir_all(&self.0) } else { fs::remove_file(&self.0) };
    }
}

/// Makes `user` the owner of `path`.
pub fn give(path: &Path, user: &User) {
    if user.switch {
        chown(path, Some(user.id), Some(user.id)).unwrap();
    }
}

/// Copies a program to where every user can run it.
pub fn publish(program: &Path, name: &str) -> PathBuf {
    let dir = base().join("bin");
    fs::create_dir_all(&dir).unwrap();
    let target = dir.join(name);
    copy(program, &target);
    fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
    target
}

/// The `sbx` under test.
pub fn sbx() -> &'static Path {
    static SBX: OnceLock<PathBuf> = OnceLock::new();
    SBX.get_or_init(|| publish(&find_sbx(), "sbx"))
}

fn find_sbx() -> PathBuf {
    if let Some(path) = std::env::var_os("SBX_BIN") {
        return PathBuf::from(path);
    }
    // This is target/PROFILE/deps/suite-HASH or target/PROFILE/escapes: beside it, or one level up.
    let own = std::env::current_exe().unwrap();
    let found = own.ancestors().skip(1).take(2).map(|dir| dir.join("sbx")).find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("no sbx near {}: run `cargo build -p sbx` first, or set SBX_BIN", own.display())
    })
}

/// The library for use without the launcher, as `sbx shim` writes it.
pub fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let path = base().join("libsandbox.so");
        Cmd::new(sbx()).args(["shim", "-o"]).arg(&path).run().success();
        assert!(path.exists(), "`sbx shim -o` reported success and wrote nothing");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    })
}
