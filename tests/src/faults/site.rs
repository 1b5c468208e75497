//! Which calls are made to fail, and with which errors.

use std::collections::BTreeMap;

use libc::c_int;
use sbx_policy::calls::{Arch, Call as Known};

use super::follow::{Call, Fault, Index};

/// A call, and the errors that it is made to fail with.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its name.
    pub name: &'static str,
    /// The call.
    pub call: Call,
    /// Whether it is the first of its kind.
    pub is_first: bool,
}

/// Calls that are never made to fail, and why.
const EXCLUDED: &[(&[&str], &str)] = &[
    (
        &["getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "umask", "sched_yield"],
        "cannot fail",
    ),
    (&["close", "munmap"], "what is closed or unmapped is gone, whatever they answer"),
    (&["brk"], "answers with the end of the heap, not with an error; the allocator goes on with mmap"),
    (&["exit", "exit_group", "rt_sigreturn"], "do not return"),
    (&["madvise"], "is advice"),
    (
        &["rseq"],
        "is the C library's, which ends the process where a thread has none and the first one has; what is \
         linked with musl makes no such call",
    ),
    (
        &["kill"],
        "of the supervisor and its helper while the command runs: cannot fail for processes of one's own",
    ),
    (&["write"], "to standard error: then there is nobody to be told. Other writes are made to fail"),
];

/// The calls that never fail, for the document.
pub fn excluded() -> impl Iterator<Item = (String, &'static str)> {
    EXCLUDED.iter().map(|(names, why)| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        (names.join(", "), *why)
    })
}

fn is_excluded(name: &str, call: &Call) -> bool {
    let named = EXCLUDED.iter().any(|(names, _)| names.contains(&name));
    match name {
        "write" => call.arguments[0] == libc::STDERR_FILENO as u64,
        "kill" => call.late,
        _ => named,
    }
}

/// Errors that a call can well fail with.
pub fn errors(name: &str) -> &'static [c_int] {
    match name {
        "mmap" | "mremap" | "mprotect" => &[libc::ENOMEM],
        "openat" | "open" | "pipe2" | "socket" | "signalfd4" | "dup" | "dup3" => {
            &[libc::EMFILE, libc::EACCES]
        }
        "openat2" | "open_tree" | "pidfd_open" | "memfd_create" => &[libc::EMFILE, libc::EPERM, libc::ENOSYS],
        "read" | "pread64" | "write" | "getdents64" => &[libc::EIO, libc::EINTR],
        "landlock_create_ruleset" => &[libc::EOPNOTSUPP, libc::EMFILE],
        "landlock_add_rule" => &[libc::ENOMEM],
        "landlock_restrict_self" => &[libc::EPERM, libc::ENOMEM],
        "seccomp" => &[libc::EPERM, libc::ENOMEM, libc::EBUSY],
        "clone" | "clone3" | "fork" | "vfork" => &[libc::EAGAIN, libc::ENOMEM, libc::EPERM],
        "poll" | "ppoll" => &[libc::EINTR, libc::ENOMEM],
        "waitid" | "wait4" => &[libc::EINTR],
        "statx" | "newfstatat" | "stat" | "lstat" | "fstat" | "access" | "faccessat2" | "readlink"
        | "readlinkat" | "fgetxattr" | "getcwd" => &[libc::EACCES, libc::EIO],
        "mkdir" | "mkdirat" | "rmdir" | "unlink" | "rename" => &[libc::EACCES, libc::ENOSPC],
        "mount_setattr" | "move_mount" | "fsopen" | "fsmount" => &[libc::EPERM, libc::ENOSYS],
        "mount" | "umount2" => &[libc::EPERM, libc::ENOMEM],
        "prctl" => &[libc::EPERM, libc::EINVAL],
        "getrandom" => &[libc::EINTR, libc::ENOSYS],
        "close_range" => &[libc::ENOSYS, libc::ENOMEM],
        "execve" => &[libc::ENOENT, libc::EACCES, libc::ENOMEM],
        "keyctl" => &[libc::EDQUOT, libc::EPERM],
        _ => &[libc::EPERM, libc::ENOMEM],
    }
}

/// The index of a call's argument that is a path.
pub fn path_argument(number: u64) -> Option<usize> {
    match name(number) {
        "openat" | "openat2" | "statx" | "newfstatat" | "faccessat2" | "readlinkat" | "mkdirat"
        | "mount_setattr" => Some(1),
        "open" | "stat" | "lstat" | "access" | "readlink" | "mkdir" | "rmdir" | "unlink" | "chdir"
        | "execve" | "rename" => Some(0),
        "mount" => Some(1),
        _ => None,
    }
}

/// The name of a call.
pub fn name(number: u64) -> &'static str {
    let known = u32::try_from(number).ok().and_then(|number| Known::numbered(Arch::HOST, number));
    known.map_or("unknown", Known::name)
}

impl Site {
    /// The calls of a run that are made to fail: of each group that is alike the first, the middle and the last, or
    /// every one.
    pub fn choose(calls: &[Call], every: bool) -> Vec<Site> {
        let mut groups: BTreeMap<(bool, Index, &'static str, String), Vec<&Call>> = BTreeMap::new();
        for call in calls {
            let name = name(call.number);
            if !is_excluded(name, call) {
                groups.entry((call.late, call.process, name, kind(name, call))).or_default().push(call);
            }
        }
        let mut sites = Vec::new();
        for ((_, _, name, _), group) in groups {
            let mut chosen = vec![0, group.len() / 2, group.len() - 1];
            chosen.dedup();
            if every {
                chosen = (0..group.len()).collect();
            }
            let site = |at: usize| Site { name, call: group[at].clone(), is_first: at == 0 };
            sites.extend(chosen.into_iter().map(site));
        }
        sites
    }

    /// The call, failing with this error.
    pub fn fault(&self, errno: c_int) -> Fault {
        let Call { process, number, nth, late, .. } = self.call;
        Fault { process, number, nth, late, errno }
    }

    /// How it is shown: with the operation, if a number gives it, and the path.
    pub fn shown(&self) -> String {
        let kind = numbers(self.name, &self.call);
        let object = self.call.path.as_deref().filter(|path| !path.is_empty());
        let object = object.map(|path| format!(" '{path}'")).unwrap_or_default();
        format!("{}{kind}{object} #{}", self.name, self.call.nth)
    }
}

/// Calls with the same kind are alike.
fn kind(name: &str, call: &Call) -> String {
    let path = call.path.as_deref().unwrap_or_default();
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let rule = name == "openat" && call.arguments[2] & libc::O_PATH as u64 != 0;
    let object = match name {
        _ if rule => "",
        "statx" | "newfstatat" | "readlink" | "openat2" | "mkdir" => directory,
        _ => path,
    };
    // Scratch directories have another name each time.
    let object: String = object.chars().filter(|c| !c.is_ascii_hexdigit()).collect();
    format!("{}{object}", numbers(name, call))
}

/// PR_CAPBSET_READ or PR_CAPBSET_DROP.
fn is_of_bounding_set(option: u64) -> bool {
    [libc::PR_CAPBSET_READ, libc::PR_CAPBSET_DROP].into_iter().any(|known| known as u64 == option)
}

/// The arguments that determine what a call does.
fn numbers(name: &str, call: &Call) -> String {
    let set = |at: usize| u64::from(call.arguments[at] != 0);
    let arguments = call.arguments;
    let numbers: &[u64] = match name {
        "openat" => &[arguments[2]],
        "fcntl" | "ioctl" => &[arguments[1]],
        // One for each capability.
        "prctl" if is_of_bounding_set(arguments[0]) => &[arguments[0]],
        "prctl" => &[arguments[0], arguments[1]],
        "landlock_create_ruleset" => &[arguments[2]],
        "landlock_add_rule" => &[arguments[1]],
        "mmap" => &[arguments[2], arguments[3]],
        "rt_sigaction" => &[arguments[0], set(1)],
        "rt_sigprocmask" => &[arguments[0], set(1)],
        "prlimit64" => &[arguments[1], set(2)],
        "clone" => &[arguments[0]],
        "seccomp" => &[arguments[0], arguments[1]],
        "socket" => &[arguments[0], arguments[1]],
        _ => return String::new(),
    };
    let shown: Vec<String> = numbers.iter().map(|number| format!("{number:#x}")).collect();
    format!("({})", shown.join(", "))
}

/// The name of an error.
pub fn error_name(errno: c_int) -> &'static str {
    match errno {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::EINTR => "EINTR",
        libc::EIO => "EIO",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EACCES => "EACCES",
        libc::EBUSY => "EBUSY",
        libc::EINVAL => "EINVAL",
        libc::EMFILE => "EMFILE",
        libc::ENOSPC => "ENOSPC",
        libc::ENOSYS => "ENOSYS",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::EDQUOT => "EDQUOT",
        _ => "an error",
    }
}
