//! What a run promises, one row a promise: what is tried, what shows that it succeeded, and whether a run
//! promises it.
//!
//! There is one row at least for each layer that a machine could lack. What a layer refuses in detail is
//! tried by the escape suite (tests/escapes).

use crate::selftest::claims::{Claim, Claims};
use crate::selftest::hosts;
use crate::selftest::stage::Stage;

/// Whether a run promises something.
type Ask = fn(&Claims, &Stage) -> Claim;

/// One promise.
pub struct Row {
    /// Its name, the same in the documentation.
    pub name: &'static str,
    /// The promise in words.
    pub promise: &'static str,
    /// An act that has to be done for the evidence, whatever its outcome.
    pub prepare: Option<&'static str>,
    /// Acts that have to be refused.
    pub acts: &'static [&'static str],
    /// What must not be seen from outside.
    pub evidence: &'static [&'static str],
    /// An act that has to succeed where it is allowed; otherwise the refusals prove nothing.
    pub twin: Option<(&'static str, Ask)>,
    /// An act that has to succeed, and what has to be seen of it from outside. Such a promise is not about refusals.
    pub allowed: Option<(&'static str, &'static str)>,
    /// Whether `--verify` leaves the row out, since it takes long or replaces the self-test's program.
    pub slow: bool,
    /// Whether the run promises it.
    pub claim: Ask,
}

/// A promise whose acts have to be refused.
const fn row(
    name: &'static str,
    promise: &'static str,
    acts: &'static [&'static str],
    evidence: &'static [&'static str],
    claim: Ask,
) -> Row {
    Row { name, promise, prepare: None, acts, evidence, twin: None, allowed: None, slow: false, claim }
}

/// A promise that shows outside only, after an act that prepares it.
const fn evidence(
    name: &'static str,
    promise: &'static str,
    prepare: &'static str,
    evidence: &'static [&'static str],
    claim: Ask,
) -> Row {
    Row { prepare: Some(prepare), ..row(name, promise, &[], evidence, claim) }
}

fn always(claims: &Claims, _: &Stage) -> Claim {
    claims.always()
}

/// Every row, in the order of the table. The acts are tried in this order; those that change the process that
/// tries them come last.
pub const ROWS: &[Row] = &[
    Row {
        twin: Some(("read-workspace", |claims, _| claims.opens_files())),
        ..row(
            "read-secret",
            "files that no rule names cannot be read",
            &["read-secret"],
            &["secret-told"],
            |c, s| c.no_reading(&s.path("home/.ssh/id_rsa")),
        )
    },
    Row {
        twin: Some(("write-workspace", |claims, stage| claims.writes(&stage.path("home/project")))),
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
    row(
        "attributes",
        "modes of files outside cannot be changed",
        &["chmod-outside"],
        &["mode-changed-outside"],
        |c, s| c.no_change(&s.path("home/outside"), &["chmod", "fchmodat"]),
    ),
    row(
        "tcp",
        "no TCP connection leaves the run, to the host either",
        &["tcp"],
        &["tcp-connection"],
        |c, s| c.no_tcp(s.brief().ports.0),
    ),
    // The fifth argument of sendto(2) is an address.
    row("udp", "no UDP packet leaves the run", &["udp"], &["udp-packet"], |c, _| {
        c.no_socket_out(libc::SOCK_DGRAM, ("sendto", &[3, 1, 1, 0, 1, 16]))
    }),
    row("unix", "no UNIX socket of the host can be connected to", &["unix"], &["unix-connection"], |c, s| {
        c.no_unix(&s.path("home/outside/socket"))
    }),
    row(
        "abstract",
        "no abstract UNIX socket can be connected to",
        &["abstract"],
        &["abstract-connection"],
        |c, _| c.scoped("connect"),
    ),
    row(
        "proc",
        "memory and environment of processes outside stay closed",
        &["memory-outside", "environ-outside", "environ-supervisor"],
        &[],
        |c, _| c.with_landlock(),
    ),
    row(
        "signal",
        "no signal reaches a process outside",
        &["signal", "signal-thread"],
        &["signal-arrived"],
        |c, _| c.scoped("kill").and_then(|()| c.scoped("tgkill")),
    ),
    row("keyring", "keys of the kernel's keyrings are out of reach", &["keyring"], &[], |c, _| {
        c.refuses("keyctl", &[])
    }),
    row(
        "executable-memory",
        "memory that was written cannot be executed",
        &["write-execute", "write-then-execute"],
        &[],
        |c, _| {
            let at_once = [0, 4096, 7, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64];
            c.refuses("mmap", &at_once).and_then(|()| c.refuses("mprotect", &[0, 4096, 5]))
        },
    ),
    row("processes", "no process can be started", &["fork"], &[], |c, _| c.no_processes()),
    Row {
        slow: true,
        ..evidence("tree", "no process outlives the run", "daemon", &["process-left"], |c, _| c.ends_tree())
    },
    evidence("capabilities", "no capability is held", "pause", &["capabilities-held"], always),
    evidence("no-new-privs", "no program can give privileges", "pause", &["privileges-to-gain"], always),
    evidence("filter", "a filter is in force", "pause", &["no-filter"], always),
    evidence("core", "no core file can be written", "pause", &["core-file"], always),
    evidence(
        "descriptors",
        "no descriptor but standard ones is passed on",
        "pause",
        &["descriptor-passed"],
        always,
    ),
    evidence(
        "environment",
        "no secret is in the environment",
        "pause",
        &["secret-in-environment"],
        |c, _| c.no_secrets(),
    ),
    evidence(
        "scratch",
        "the scratch directory is gone after the run",
        "leave-scratch",
        &["scratch-left"],
        always,
    ),
    row("namespaces", "no namespace can be made", &["unshare"], &[], |c, _| {
        c.refuses("unshare", &[libc::CLONE_NEWUSER as u64])
    }),
    Row {
        slow: true,
        ..row("exec", "no other program can be executed", &["exec"], &[], |c, _| {
            c.refuses("execve", &[1, 1, 1])
        })
    },
];

/// A promise of a run with rules about hosts. Where the host that a rule names is out of reach, refusals prove nothing.
const fn host_row(
    name: &'static str,
    promise: &'static str,
    acts: &'static [&'static str],
    evidence: &'static [&'static str],
    claim: Ask,
) -> Row {
    Row {
        twin: Some(("reach-listed", |claims, _| claims.names_hosts())),
        slow: true,
        ..row(name, promise, acts, evidence, claim)
    }
}

/// The rows of runs with rules about hosts.
pub const HOST_ROWS: &[Row] = &[
    Row {
        allowed: Some(("reach-listed", "listed-host-reached")),
        ..host_row("host-listed", "a host that a rule names is reached", &[], &[], |c, _| c.names_hosts())
    },
    host_row(
        "host-unlisted",
        "a host that no rule names is not reached",
        &["reach-unlisted"],
        &["unlisted-host-reached"],
        |c, _| hosts::unlisted(c),
    ),
    host_row(
        "host-address",
        "an address that no rule has is not reached",
        &["reach-address", "reach-address-by-tls"],
        &["address-reached"],
        |c, _| hosts::nameless(c),
    ),
    host_row(
        "host-question",
        "nobody outside sees a question about a name that no rule has",
        &["ask", "ask-elsewhere", "ask-by-tcp"],
        &["question-about-an-unlisted-name"],
        |c, _| hosts::unlisted(c),
    ),
    host_row(
        "host-rebinding",
        "a name that a rule has leads to no private address, whatever it led to before",
        &["reach-rebound"],
        &["private-address-reached"],
        |c, _| hosts::private(c),
    ),
    host_row(
        "host-metadata",
        "the address of metadata services is not reached",
        &["reach-metadata", "reach-metadata-by-name"],
        &["metadata-service-reached"],
        |c, _| hosts::metadata(c),
    ),
    Row {
        twin: Some(("name-listed-by-tls", |claims, _| claims.names_hosts())),
        ..host_row(
            "host-said",
            "a connection that names another host (SNI, Host) does not get there",
            &["name-other-by-tls", "name-other-by-http"],
            &["other-host-named"],
            |c, _| hosts::said(c),
        )
    },
    host_row(
        "host-datagram",
        "no datagram leaves the run",
        &["send", "send-elsewhere"],
        &["datagram-arrived"],
        |c, _| c.names_hosts(),
    ),
];

/// What is tried for these rows, in order, each once.
pub fn acts(rows: &[&'static Row]) -> Vec<&'static str> {
    let mut all = Vec::new();
    for row in rows {
        let twin = row.twin.map(|(act, _)| act);
        let allowed = row.allowed.map(|(act, _)| act);
        for act in twin.into_iter().chain(allowed).chain(row.prepare).chain(row.acts.iter().copied()) {
            if !all.contains(&act) {
                all.push(act);
            }
        }
    }
    all
}
