//! What flags and profile ask for, against each other and against what the kernel has. Whatever cannot be
//! enforced is refused here.

use crate::error::EndsRun;
use crate::host::Host;
use crate::host::landlock::Version;
use crate::hosts::RuleError;
use crate::plan::OnViolation;
use crate::plan::calls::Unix;
use crate::plan::namespaces::Choice;
use crate::plan::rules::Network;
use crate::profile::{DefaultAction, Level, NetworkMode, Profile, Variable};
use crate::request::{self, Request};
use crate::text::shown;
use std::path::Path;

/// What flags, profile and machine do not go together in.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each says what it is")]
pub enum Invalid {
    #[error("{0} and {1} contradict each other: leave one of them out")]
    Contradiction(&'static str, &'static str),
    #[error("cannot read the host '{text}': {why}")]
    NoHost { text: String, why: RuleError },
    #[error(
        "cannot reach the hosts of '@{name}': the profile has {}", match known.as_slice() {
            [] => "no groups in network.groups".to_string(),
            known => format!("the groups {}", known.join(", ")),
        }
    )]
    NoGroup { name: String, known: Vec<String> },
    #[error(
        "cannot reach named hosts together with --exec: nobody is left to connect to them; leave --exec out, or \
         allow the port on every host with '*:PORT'"
    )]
    HostsWithExec,
    #[error(
        "cannot restrict listening together with rules about hosts: the run has a network of its own, in which \
         listening needs no flag; leave --bind (profile key network.bind) out"
    )]
    HostsWithBind,
    #[error(
        "cannot reach named hosts: a sandbox around sbx refuses pidfd_getfd(2), which sbx needs to connect sockets \
         for the command; allow the port on every host with '*:PORT', or the whole network with --net host"
    )]
    HostsWithoutSockets,
    #[error(
        "cannot restrict the run to named hosts: it has no network of its own, and a rule of the profile or a flag \
         decides about {0} without a look at where it leads; leave that rule out"
    )]
    HostsWithCalls(&'static str),
    #[error(
        "cannot keep the run to its network: its filter does, and the operations of io_uring pass no filter; leave \
         io_uring_setup(2) out, or give the run a network of its own (--net private) or the whole one (--net host)"
    )]
    NetworkWithRing,
    #[error(
        "cannot show ports of the run on this machine (--publish): under '{profile}' it has {network}; give it a \
         network of its own with --net private"
    )]
    PublishElsewhere { profile: String, network: &'static str },
    #[error(
        "--publish and --host-port are both about port {0} of the run, so a connection would lead in a circle; \
         leave one of them out"
    )]
    PublishedHostPort(u16),
    #[error("'--host-port 0' names no port; expected 1 to 65535")]
    HostPortZero,
    #[error(
        "cannot bring port 53 of this machine inside (--host-port 53): at port 53 of the run sbx answers questions \
         about names; to ask a name server of this machine use --net host"
    )]
    HostPortOfNames,
    #[error("the rules about hosts have {0} ports together; {1} are possible")]
    ManyPorts(usize, usize),
    #[error("the rule '{rule}' never applies: {why}")]
    NeverApplies { rule: String, why: String },
    #[error(
        "cannot make a network of the run's own, which the profile asks for, together with --exec: \
         nobody is left to look after it; leave --exec out, or name another network with --net"
    )]
    PrivateWithExec,
    #[error(
        "network.deny of profile '{0}' holds only where rules say which hosts are reached, and this machine's network \
         is open: add rules, as in --connect '*:443' (profile key network.connect), or take network.deny out"
    )]
    DeniedInOpenNetwork(String),
    #[error(
        "cannot pass descriptor {0} into a network of the run's own: it is a socket of the host's network, \
         and leads there; pass a pipe, or name another network with --net"
    )]
    ForeignSocket(i32),
    #[error("cannot pass descriptor {0} on: it cannot be looked at: {1}; leave it out")]
    UnseenDescriptor(i32, String),
    #[error(
        "cannot restrict TCP to some ports: that needs Landlock ABI 4 (Linux 6.7), and this kernel has {}; \
         use --net none or --net host", .0.0
    )]
    PortsWithoutLandlock(Version),
    #[error(
        "cannot restrict connections to some ports: the supervisor of the sbx around this process makes its \
         connections, and knows no ports but its own; name the ports there, or use --net none or --net host"
    )]
    PortsInside,
    #[error(
        "cannot allow one UNIX socket together with {other}: without Landlock ABI 9 (Linux 7.1; here it is {}) \
         the supervisor has to make the connection itself, and cannot", .landlock.0
    )]
    SocketsWith { other: &'static str, landlock: Version },
    #[error("cannot enforce {what}: {missing}")]
    Missing { what: &'static str, missing: String },
    #[error("cannot deny '{path}' ({origin}): {missing}")]
    Deny { path: String, origin: String, missing: String },
    #[error(
        "refused to run under profile '{0}', which confines nothing; \
         add --dangerously-unconfined if that is meant"
    )]
    Unconfined(String),
    #[error("--dangerously-unconfined contradicts --profile {0}: name one of them")]
    Confined(String),
    #[error("cannot {verb} '{path}' ({origin}): HOME is not an absolute path; set it to one")]
    UnknownHome { verb: &'static str, path: String, origin: String },
}

impl EndsRun for Invalid {}

/// Refuses flags that contradict each other.
pub(crate) fn contradictions(request: &Request) -> Result<(), Invalid> {
    let given = |yes: bool, what: &'static str| yes.then_some(what);
    // With --exec nobody is left to write one.
    let reports = given(request.report.is_some(), "--report")
        .or(given(request.report_fd.is_some(), "--report-fd"))
        .or(given(request.audit_log.is_some(), "--audit-log"))
        .or(given(request.summary, "--summary"));
    let fails = request.on_violation.is_some_and(|action| action != request::OnViolation::Log);
    let fails = given(fails, "--on-violation kill or errno");
    let logs = if request.log_violations { "--log-violations" } else { "--on-violation log" };
    let logs = given(request.lists_violations(), logs);
    let quiet = given(request.quiet && reports.is_none(), "--quiet");
    let verify = given(request.verify, "--verify");
    let unconfined = given(request.dangerously_unconfined, "--dangerously-unconfined");
    let explain = given(request.explain, "--explain");
    let exec = given(request.exec, "--exec");
    let keep = given(request.keep_background, "--keep-background");
    let net = |mode, flag| given(request.net == Some(mode), flag);
    let host = net(NetworkMode::Host, "--net host");
    let none = net(NetworkMode::None, "--net none");
    let private = net(NetworkMode::Private, "--net private");
    let connect = given(!request.connect.is_empty(), "--connect");
    let bind = given(!request.bind.is_empty(), "--bind");
    let host_port = given(!request.host_port.is_empty(), "--host-port");
    let publish = given(!request.publish.is_empty(), "--publish");
    let pairs = [
        (verify, logs),
        (logs, exec),
        (logs, fails),
        (logs, quiet),
        (verify, unconfined),
        (explain, exec),
        (explain, quiet),
        (exec, reports),
        (explain, logs),
        (keep, exec),
        (keep, logs),
        (keep, explain),
        (host, connect),
        (host, bind),
        (host, host_port),
        (none, host_port),
        (exec, host_port),
        (host, publish),
        (none, publish),
        (exec, publish),
        (keep, publish),
        (none, connect),
        (none, bind),
        (private, bind),
        (private, exec),
        (unconfined, given(restricts(request), "flags that confine")),
    ];
    match pairs.into_iter().find_map(|(a, b)| a.zip(b)) {
        Some((a, b)) => Err(Invalid::Contradiction(a, b)),
        None => Ok(()),
    }
}

fn restricts(request: &Request) -> bool {
    let lists = [&request.deny, &request.ro, &request.rox, &request.rw, &request.rwx, &request.unix];
    lists.iter().any(|list| !list.is_empty())
        || !request.allow_command.is_empty()
        || !request.block_command.is_empty()
        || !request.deny_calls.is_empty()
        || !request.allow_calls.is_empty()
        || request.net.is_some()
        || !request.connect.is_empty()
        || !request.bind.is_empty()
        || request.home.is_some()
        || request.static_programs.is_some()
        || request.on_violation.is_some()
        || request.log_violations
        || request.require.is_some()
}

/// Whether UNIX sockets are named, by `--unix` or the profile, and can be told apart.
pub(crate) fn names_sockets(
    request: &Request,
    profile: &Profile,
    network: &Network,
    unix: Unix,
    landlock: Version,
) -> Result<bool, Invalid> {
    if request.unix.is_empty() && profile.network.unix.is_empty() {
        return Ok(false);
    }
    let open = matches!(network.mode, NetworkMode::Ports | NetworkMode::Host);
    let other = match unix {
        Unix::ByPath => return Ok(true),
        _ if request.exec => "--exec",
        Unix::Refused if open => "an open network in this place",
        _ => return Ok(true),
    };
    Err(Invalid::SocketsWith { other, landlock })
}

/// The action on a violation.
pub fn on_violation(request: &Request, profile: &Profile) -> OnViolation {
    let by_profile = match profile.syscalls.default.as_deref() {
        Some(DefaultAction::Kill) => OnViolation::Kill,
        Some(DefaultAction::Log) => OnViolation::Log,
        Some(DefaultAction::Errno(number)) => OnViolation::Errno(*number),
        Some(DefaultAction::Allow) | None => OnViolation::Errno(sbx_policy::errno::EPERM),
    };
    match (request.on_violation, by_profile) {
        _ if request.log_violations => OnViolation::Log,
        (None, by_profile) => by_profile,
        (Some(request::OnViolation::Kill), _) => OnViolation::Kill,
        (Some(request::OnViolation::Log), _) => OnViolation::Log,
        (Some(request::OnViolation::Errno), OnViolation::Errno(number)) => OnViolation::Errno(number),
        (Some(request::OnViolation::Errno), _) => OnViolation::Errno(sbx_policy::errno::EPERM),
    }
}

/// Refuses a run for which this machine has less than it demands. Says what else is missing.
pub(crate) fn level(
    request: &Request,
    profile: &Profile,
    host: &Host,
    landlock: Version,
    namespaces: &Choice,
    warnings: &mut Vec<String>,
) -> Result<(), Invalid> {
    let required = request.require.max(profile.require.as_deref().copied());
    let (files, tcp) = (landlock >= Version::FILES, landlock >= Version::TCP);
    if required.is_some_and(|required| required > Level::of(files, tcp, *namespaces == Choice::Made)) {
        let missing = match namespaces {
            _ if !files => host.why_no_landlock(),
            Choice::Made => {
                format!("Landlock's rules for TCP need ABI 4, and this kernel has {}", landlock.0)
            }
            Choice::None(why) => format!("it takes namespaces, and {why}"),
        };
        return Err(Invalid::Missing { what: "the level that --require or the profile asks for", missing });
    }
    if !files && !profile.is_unrestricted() {
        without_path_rules(request, profile, &host.why_no_landlock())?;
        warnings.push(format!(
            "warning: {}, so files are not restricted by this run, only system calls",
            host.why_no_landlock()
        ));
    }
    Ok(())
}

/// Refuses what only path rules can do. A rule that allows may be wider than it says; a denial has to hold.
fn without_path_rules(request: &Request, profile: &Profile, why: &str) -> Result<(), Invalid> {
    let lists = [&request.ro, &request.rox, &request.rw, &request.rwx, &request.deny];
    if lists.iter().any(|list| !list.is_empty()) {
        return Err(Invalid::Missing { what: "path rules", missing: why.to_string() });
    }
    match profile.paths.deny.first() {
        Some(denied) => Err(Invalid::Deny {
            path: denied.to_string(),
            origin: denied.origin.to_string(),
            missing: why.to_string(),
        }),
        None => Ok(()),
    }
}

/// Refuses a run that nothing confines, unless it is asked for twice.
pub(crate) fn unconfined_on_purpose(request: &Request, profile: &Profile) -> Result<(), Invalid> {
    let name = &profile.name;
    match (profile.is_unrestricted(), request.dangerously_unconfined) {
        (true, false) => Err(Invalid::Unconfined(name.to_string())),
        (false, true) => Err(Invalid::Confined(name.to_string())),
        _ => Ok(()),
    }
}

/// Refuses a denial or protection below a home directory that is not known: the path would stay open.
pub(crate) fn home(profile: &Profile, home: Option<&Path>) -> Result<(), Invalid> {
    if profile.is_unrestricted() {
        return Ok(());
    }
    let denied = profile.paths.deny.iter().map(|entry| ("deny", &entry.value, &entry.origin));
    let own = profile.paths.protect.iter().filter(|entry| !entry.origin.built_in);
    let protected = own.map(|entry| ("protect", &entry.path, &entry.origin));
    let mut unknown = denied.chain(protected).filter(|(_, path, _)| path.base == Some(Variable::Home));
    match unknown.next().filter(|_| home.is_none()) {
        Some((verb, path, origin)) => Err(Invalid::UnknownHome {
            verb,
            path: shown(Path::new(&path.to_string())),
            origin: origin.to_string(),
        }),
        None => Ok(()),
    }
}
