//! What this kernel cannot enforce, so that tests require exactly what is promised on it.

use std::sync::OnceLock;

use crate::command::Cmd;
use crate::stage;

/// The Landlock ABI that has rules for files and directories.
pub const PATHS: i64 = 1;
/// The one that has a right to truncate files.
pub const TRUNCATION: i64 = 3;
/// The one that has rules for TCP ports.
pub const TCP_PORTS: i64 = 4;
/// The one that has a right to the ioctl(2) commands of devices.
pub const DEVICE_COMMANDS: i64 = 5;
/// The one that has scopes: for signals and for abstract Unix sockets.
pub const SCOPES: i64 = 6;

/// The kernel's Landlock ABI from `sbx status`: 0 where there is none.
pub fn landlock() -> i64 {
    static ABI: OnceLock<i64> = OnceLock::new();
    *ABI.get_or_init(|| {
        let out = Cmd::new(stage::sbx()).args(["status", "--json"]).run().success();
        let found: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        found["layers"]["landlock"]["abi"].as_i64().unwrap()
    })
}

/// The kernel's name, for the tables in docs.
pub fn named() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}, Landlock ABI {}", release.trim().split('-').next().unwrap_or("?"), landlock())
}

/// Whether this machine gives an ordinary user namespaces in which file systems can be mounted, as unshare(1) finds it.
pub fn gives_namespaces() -> bool {
    static GIVES: OnceLock<bool> = OnceLock::new();
    let words =
        ["--user", "--map-current-user", "--mount", "--pid", "--ipc", "--uts", "--fork", "--mount-proc"];
    *GIVES.get_or_init(|| Cmd::new("unshare").args(words).args(["true"]).run().code == Some(0))
}

/// The level of runs that may use everything.
pub fn level() -> &'static str {
    match landlock() {
        0 => "minimal",
        4.. if gives_namespaces() => "full",
        _ => "standard",
    }
}

/// The level of runs without namespaces.
pub fn level_without_namespaces() -> &'static str {
    if landlock() == 0 { "minimal" } else { "standard" }
}

/// Whether a promise is made that needs this Landlock ABI; reported where it is not. Where the kernel is known
/// beforehand, `tests/vm/job` makes sure that `sbx status` does not report less than the kernel has.
pub fn promises(least: i64) -> bool {
    let has = landlock();
    if has < least {
        let line = format!("NOT PROMISED: needs Landlock ABI {least}, and this kernel has {has}\n");
        crate::sys::write_stderr(line.as_bytes());
    }
    has >= least
}

/// Whether promises are made that need namespaces; reported where they are not.
pub fn promises_namespaces() -> bool {
    let gives = promises(PATHS) && gives_namespaces();
    if !gives {
        crate::sys::write_stderr(b"NOT PROMISED: needs namespaces\n");
    }
    gives
}

/// Returns from the test, and says so, where a promise is not made on this kernel: for want of a Landlock ABI, as in
/// `promise!(kernel::PATHS)`, or of `promise!(namespaces)`.
#[macro_export]
macro_rules! promise {
    (namespaces) => {
        if !$crate::kernel::promises_namespaces() {
            return;
        }
    };
    ($least:expr) => {
        if !$crate::kernel::promises($least) {
            return;
        }
    };
}

/// Whether a line is the warning that each run prints on this kernel, if its level is minimal.
pub fn owes(line: &str) -> bool {
    let warns = line.starts_with("sbx: warning: ")
        && line.ends_with("files are not restricted by this run, only system calls");
    warns && landlock() == 0
}
