//! The promises of docs/security.md, a row each: what is tried, what has to be untouched outside, and whether a run
//! promises it at all.

use super::claims::{Claim, Claims};
use super::stage::Stage;

/// A question to the rules of a run.
type Ask = fn(&Claims, &Stage) -> Claim;

/// The command of ioctl(2) that types into a terminal.
const TIOCSTI: u64 = 0x5412;

/// One promise.
pub struct Row {
    /// Its name, the same in the documentation.
    pub name: &'static str,
    /// What is promised.
    pub promise: &'static str,
    /// What is tried, each of which has to be refused.
    pub acts: &'static [&'static str],
    /// What has to be untouched outside.
    pub evidence: &'static [&'static str],
    /// What has to succeed inside, or the refusal proves nothing.
    pub twin: Option<(&'static str, Ask)>,
    /// Whether it takes long, or ends the canary: not for `--verify`.
    pub slow: bool,
    /// Whether the run promises it.
    pub claim: Ask,
}

const fn row(
    name: &'static str,
    promise: &'static str,
    acts: &'static [&'static str],
    evidence: &'static [&'static str],
    claim: Ask,
) -> Row {
    Row { name, promise, acts, evidence, twin: None, slow: false, claim }
}

const fn slow(row: Row) -> Row {
    Row { slow: true, ..row }
}

/// With a twin that every confined run allows in which files can be opened.
const fn twin(row: Row, act: &'static str) -> Row {
    Row { twin: Some((act, |claims, _| claims.opens_files())), ..row }
}

fn always(claims: &Claims, _: &Stage) -> Claim {
    claims.always()
}

/// A socket of this family and type.
fn socket(claims: &Claims, family: i32, kind: i32, protocol: i32) -> Claim {
    claims.refuses("socket", &[family as u64, kind as u64, protocol as u64])
}

/// Every row, in the order of the table. The acts are tried in this order too: those that end a canary or change
/// it come last.
pub const ROWS: &[Row] = &[
    twin(
        row(
            "read-secret",
            "files that no rule names cannot be read",
            &["read-secret", "read-through-link"],
            &["secret-told"],
            |c, s| c.no_reading(&s.path("home/.ssh/id_rsa")),
        ),
        "read-workspace",
    ),
    row("read-shadow", "/etc/shadow cannot be read", &["read-shadow"], &[], |c, _| {
        c.no_reading("/etc/shadow".as_ref())
    }),
    Row {
        twin: Some(("write-workspace", |c, s| match c.no_writing(&s.path("home/project")) {
            Ok(()) => Err("nothing can be written"),
            Err(_) => Ok(()),
        })),
        ..row(
            "write-outside",
            "files that no rule names cannot be made or changed",
            &["make-outside", "append-outside"],
            &["file-made-outside", "file-changed-outside"],
            |c, s| c.no_writing(&s.path("home/outside")),
        )
    },
    row(
        "write-workspace",
        "the workspace cannot be changed",
        &["write-workspace"],
        &["file-made-in-workspace"],
        |c, s| c.no_writing(&s.path("home/project")),
    ),
    twin(
        row(
            "write-read-only",
            "what may be read only cannot be changed",
            &["write-granted"],
            &["granted-file-changed"],
            |c, s| c.no_writing(&s.path("home/granted")),
        ),
        "read-granted",
    ),
    row(
        "truncate",
        "files outside cannot be emptied",
        &["truncate-outside"],
        &["file-emptied-outside"],
        |c, s| c.no_truncation(&s.path("home/outside")),
    ),
    row(
        "remove",
        "files outside cannot be removed or renamed",
        &["remove-outside", "rename-outside"],
        &["file-removed-outside", "file-renamed-outside"],
        |c, s| c.no_change(&s.path("home/outside"), &["unlink", "unlinkat"]),
    ),
    row(
        "hard-link",
        "files outside cannot be linked into the workspace",
        &["link-in"],
        &["link-made"],
        |c, s| c.no_change(&s.path("home/outside"), &["link", "linkat"]),
    ),
    row(
        "attributes",
        "modes, times and attributes of files outside cannot be changed",
        &["chmod-outside", "times-outside", "xattr-outside"],
        &["mode-changed-outside", "times-changed-outside"],
        |c, s| c.no_change(&s.path("home/outside"), &["chmod", "fchmodat"]),
    ),
    row(
        "set-id",
        "no file gets a set-user-ID bit",
        &["set-id-made", "set-id-changed"],
        &["set-id-bit"],
        |c, _| {
            c.refuses_to_open(libc::O_CREAT | libc::O_WRONLY, 0o4755)
                .and_then(|()| c.refuses_each(&[("chmod", &[0, 0o4755]), ("fchmodat", &[0, 0, 0o4755])]))
        },
    ),
    row("device", "no device node can be made", &["device"], &["device-made"], |c, _| {
        c.refuses("mknodat", &[0, 0, u64::from(libc::S_IFCHR | 0o600)])
    }),
    row("tcp", "no TCP connection can be made, to loopback either", &["tcp"], &["tcp-connection"], |c, s| {
        c.no_tcp(s.brief().ports.0)
    }),
    row("udp", "no UDP packet can be sent", &["udp"], &["udp-packet"], |c, _| {
        // With an address, which the fifth argument is.
        c.no_socket_out(libc::SOCK_DGRAM, ("sendto", &[3, 1, 1, 0, 1, 16]))
    }),
    row("inet6", "no IPv6 socket can be made", &["inet6"], &[], |c, _| {
        socket(c, libc::AF_INET6, libc::SOCK_STREAM, 0)
    }),
    row("unix", "no UNIX socket of the host can be connected to", &["unix"], &["unix-connection"], |c, s| {
        c.no_unix(&s.path("home/outside/socket"))
    }),
    row(
        "abstract",
        "no abstract UNIX socket can be connected to",
        &["abstract"],
        &["abstract-connection"],
        |c, _| c.scoped("connect", &[]),
    ),
    row("netlink", "no netlink socket for kernel events can be made", &["netlink"], &[], |c, _| {
        socket(c, libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT)
    }),
    row("raw", "no raw or packet socket can be made", &["raw", "packet"], &[], |c, _| {
        socket(c, libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)
            .and_then(|()| socket(c, libc::AF_PACKET, libc::SOCK_RAW, 0))
    }),
    row("vsock", "no socket to a hypervisor can be made", &["vsock"], &[], |c, _| {
        socket(c, libc::AF_VSOCK, libc::SOCK_STREAM, 0)
    }),
    row("alg", "no socket into the kernel's ciphers can be made", &["alg"], &[], |c, _| {
        socket(c, libc::AF_ALG, libc::SOCK_SEQPACKET, 0)
    }),
    row(
        "trace",
        "no process can be traced or have its memory read",
        &["trace", "read-memory"],
        &["memory-told"],
        |c, _| {
            c.refuses("ptrace", &[libc::PTRACE_SEIZE as u64])
                .and_then(|()| c.refuses("process_vm_readv", &[]))
        },
    ),
    row(
        "proc",
        "memory and environment of processes outside stay closed",
        &["memory-file", "environ-outside", "environ-supervisor"],
        &[],
        |c, _| c.with_landlock(),
    ),
    row(
        "take-descriptor",
        "no descriptor of another process can be taken",
        &["take-descriptor"],
        &[],
        |c, _| c.refuses("pidfd_getfd", &[]),
    ),
    row(
        "signal",
        "no signal reaches a process outside",
        &["signal", "signal-thread"],
        &["signal-arrived"],
        |c, _| c.scoped("kill", &[]).and_then(|()| c.scoped("tgkill", &[])),
    ),
    row(
        "other-processes",
        "priority and limits of other processes cannot be changed",
        &["priority", "limits"],
        &["priority-changed", "limit-changed"],
        |c, _| c.refuses("setpriority", &[0, 2]).and_then(|()| c.refuses("prlimit64", &[2, 7, 1])),
    ),
    row("keyring", "keys of the kernel's keyrings are out of reach", &["keyring", "add-key"], &[], |c, _| {
        c.refuses("keyctl", &[]).and_then(|()| c.refuses("add_key", &[]))
    }),
    row("io-uring", "io_uring, which no filter sees, cannot be used", &["io-uring"], &[], |c, _| {
        c.refuses("io_uring_setup", &[])
    }),
    row("bpf", "bpf(2) cannot be used", &["bpf"], &[], |c, _| c.refuses("bpf", &[])),
    row("perf", "performance events cannot be opened", &["perf"], &[], |c, _| {
        c.refuses("perf_event_open", &[])
    }),
    row("userfaultfd", "page faults cannot be handled by userfaultfd(2)", &["userfaultfd"], &[], |c, _| {
        c.refuses("userfaultfd", &[])
    }),
    row("module", "no kernel module can be loaded", &["module"], &[], |c, _| c.refuses("finit_module", &[])),
    row("mount", "nothing can be mounted", &["mount"], &[], |c, _| c.refuses("mount", &[])),
    row("clock", "the clock cannot be set", &["clock"], &[], |c, _| c.refuses("clock_settime", &[])),
    row("terminal", "nothing can be typed into the terminal", &["type", "type-high"], &[], |c, _| {
        c.refuses("ioctl", &[0, TIOCSTI])
    }),
    row(
        "executable-memory",
        "memory that was written cannot be executed",
        &["write-execute", "write-then-execute"],
        &[],
        |c, _| {
            c.refuses("mmap", &[0, 4096, 7, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64])
                .and_then(|()| c.refuses("mprotect", &[0, 4096, 5]))
        },
    ),
    row("x32", "no call goes through the x32 table", &["x32"], &[], always),
    row(
        "untie",
        "the command cannot give up the signal that ends it with its supervisor",
        &["untie"],
        &[],
        |c, _| c.no_processes(),
    ),
    row("processes", "no process can be started", &["fork"], &[], |c, _| c.no_processes()),
    slow(row("tree", "no process outlives the run", &[], &["process-left"], |c, _| c.ends_tree())),
    row("capabilities", "no capability is held", &[], &["capabilities-held"], always),
    row("no-new-privs", "no program can give privileges", &[], &["privileges-to-gain"], always),
    row("filter", "a filter is in force", &[], &["no-filter"], always),
    row("core", "no core file can be written", &[], &["core-file"], always),
    row("descriptors", "no descriptor but standard ones is passed on", &[], &["descriptor-passed"], always),
    row("environment", "no secret is in the environment", &[], &["secret-in-environment"], |c, _| {
        c.no_secrets()
    }),
    row("scratch", "the scratch directory is gone after the run", &[], &["scratch-left"], always),
    row("namespaces", "no namespace can be made", &["namespace", "unshare"], &[], |c, _| {
        c.refuses("clone", &[libc::CLONE_NEWUSER as u64 | 17])
            .and_then(|()| c.refuses("unshare", &[libc::CLONE_NEWUSER as u64]))
    }),
    slow(row("exec", "no other program can be executed", &["exec"], &[], |c, _| {
        c.refuses("execve", &[1, 1, 1])
    })),
    slow(row("narrow", "32-bit system calls end the command", &["narrow"], &[], always)),
];

/// What is tried for these rows, in order. The canary waits to be looked at where it has not changed itself yet.
pub fn acts(rows: &[&'static Row]) -> Vec<&'static str> {
    let mut all = Vec::new();
    let mut add = |act: &'static str| {
        if !all.contains(&act) {
            all.push(act);
        }
    };
    for row in rows {
        row.twin.iter().for_each(|(act, _)| add(act));
        match row.name {
            "scratch" => add("leave-scratch"),
            "tree" => add("daemon"),
            "namespaces" => add("pause"),
            _ => {}
        }
        row.acts.iter().for_each(|act| add(act));
    }
    all
}
