//! Calls that Landlock judges.

/// Their names.
pub(super) const CALLS: [&str; 26] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "truncate",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "rmdir",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "execve",
    "execveat",
    "bind",
    "connect",
    "kill",
    "tkill",
    "tgkill",
];

/// Whether Landlock has a say in what a call does with a path.
pub fn takes_paths(name: &str) -> bool {
    CALLS.contains(&name)
}
