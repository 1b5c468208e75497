//! What flags and profile ask for, against each other and against what the kernel has. Whatever cannot be
//! enforced is refused here.

use crate::cli::{self, Run};
use crate::launch::guard::OnViolation;
use crate::launch::landlock::Version;
use crate::launch::namespaces::Choice;
use crate::launch::policy::{Mode, Network};
use crate::launch::resolve;
use crate::profile::{DefaultAction, Endpoint, Level, Profile, Variable};
use crate::refusal::Refusal;
use crate::status;
use crate::supervise::decode::shown;
use crate::sys::{seccomp, socket};
use std::path::Path;

pub fn contradictions(flags: &Run) -> Result<(), Refusal> {
    let given = |yes: bool, what: &'static str| yes.then_some(what);
    // With --exec nobody is left to write one.
    let reports = given(flags.report.is_some(), "--report")
        .or(given(flags.report_fd.is_some(), "--report-fd"))
        .or(given(flags.audit_log.is_some(), "--audit-log"));
    let unheard = flags.quiet && reports.is_none();
    let pairs = [
        (given(flags.log_violations, "--log-violations"), given(flags.exec, "--exec")),
        (
            given(flags.log_violations, "--log-violations"),
            given(
                matches!(flags.on_violation, Some(v) if v != cli::OnViolation::Log),
                "--on-violation kill or errno",
            ),
        ),
        (given(flags.log_violations, "--log-violations"), given(unheard, "--quiet")),
        (given(flags.verify, "--verify"), given(flags.log_violations, "--log-violations")),
        (given(flags.verify, "--verify"), given(flags.dangerously_unconfined, "--dangerously-unconfined")),
        (given(flags.explain, "--explain"), given(flags.exec, "--exec")),
        (given(flags.explain, "--explain"), given(unheard, "--quiet")),
        (given(flags.exec, "--exec"), reports),
        (given(flags.explain, "--explain"), given(flags.log_violations, "--log-violations")),
        (given(flags.keep_background, "--keep-background"), given(flags.exec, "--exec")),
        (given(flags.keep_background, "--keep-background"), given(flags.log_violations, "--log-violations")),
        (given(flags.keep_background, "--keep-background"), given(flags.explain, "--explain")),
        (
            given(flags.net == Some(cli::Net::Host), "--net host"),
            given(!flags.connect.is_empty(), "--connect"),
        ),
        (given(flags.net == Some(cli::Net::Host), "--net host"), given(!flags.bind.is_empty(), "--bind")),
        (
            given(flags.net == Some(cli::Net::None), "--net none"),
            given(!flags.connect.is_empty(), "--connect"),
        ),
        (given(flags.net == Some(cli::Net::None), "--net none"), given(!flags.bind.is_empty(), "--bind")),
        (
            given(flags.net == Some(cli::Net::Private), "--net private"),
            given(!flags.connect.is_empty(), "--connect"),
        ),
        (
            given(flags.net == Some(cli::Net::Private), "--net private"),
            given(!flags.bind.is_empty(), "--bind"),
        ),
        (given(flags.net == Some(cli::Net::Private), "--net private"), given(flags.exec, "--exec")),
        (
            given(flags.dangerously_unconfined, "--dangerously-unconfined"),
            given(restricts(flags), "flags that confine"),
        ),
    ];
    match pairs.into_iter().find_map(|(a, b)| a.zip(b)) {
        Some((a, b)) => {
            Err(Refusal::new(format!("{a} and {b} contradict each other: leave one of them out")))
        }
        None => Ok(()),
    }
}

fn restricts(flags: &Run) -> bool {
    let lists = [&flags.deny, &flags.ro, &flags.rox, &flags.rw, &flags.rwx, &flags.unix];
    lists.iter().any(|list| !list.is_empty())
        || !flags.allow_command.is_empty()
        || !flags.block_command.is_empty()
        || !flags.deny_calls.is_empty()
        || !flags.allow_calls.is_empty()
        || flags.net.is_some()
        || flags.on_violation.is_some()
        || flags.log_violations
        || flags.require.is_some()
}

pub fn network(flags: &Run, profile: &Profile, landlock: Version) -> Result<Network, Refusal> {
    let mut network = Network { mode: resolve::mode(profile), ..Network::default() };
    if network.mode == Mode::Ports {
        network.bind = profile.network.bind.iter().map(|port| port.value).collect();
        for endpoint in profile.network.connect.iter() {
            network.connect.push(any_host(&endpoint.host, endpoint.port)?);
        }
    }
    match flags.net {
        Some(cli::Net::Host) => network = Network { mode: Mode::Host, ..Network::default() },
        Some(cli::Net::Private) => network = Network { mode: Mode::Private, ..Network::default() },
        Some(cli::Net::None) => network = Network::default(),
        None => {}
    }
    if !flags.connect.is_empty() || !flags.bind.is_empty() {
        network.mode = Mode::Ports;
        for text in &flags.connect {
            let (host, port) = text.rsplit_once(':').unwrap_or(("*", text));
            let port = Endpoint::port(port).ok_or_else(|| {
                Refusal::new(format!("cannot read --connect '{text}': '{port}' is no port; write '*:443'"))
            })?;
            network.connect.push(any_host(host, port)?);
        }
        network.bind.extend(&flags.bind);
    }
    if network.mode == Mode::Private && flags.exec {
        return Err(Refusal::new(
            "cannot make a network of the run's own, which the profile asks for, together with --exec: nobody is left to look after it; leave --exec out, or name another network with --net",
        ));
    }
    if network.mode == Mode::Private {
        no_foreign_socket(flags)?;
    }
    if network.mode == Mode::Ports && landlock < Version::TCP {
        return Err(Refusal::new(format!(
            "cannot restrict TCP to some ports: that needs Landlock ABI 4 (Linux 6.7), and this kernel has {}; use --net none or --net host",
            landlock.0
        )));
    }
    Ok(network)
}

/// A socket stays in the network that it was made in: one of the host's, handed in, would lead out to it.
fn no_foreign_socket(flags: &Run) -> Result<(), Refusal> {
    let mut passed = (0..3).chain(flags.pass_fd.iter().copied());
    match passed.find(|number| socket::is_of_network(*number)) {
        None => Ok(()),
        Some(number) => Err(Refusal::new(format!(
            "cannot pass descriptor {number} into a network of the run's own: it is a socket of the host's network, and leads there; pass a pipe, or name another network with --net"
        ))),
    }
}

/// Landlock knows ports, not addresses.
fn any_host(host: &str, port: u16) -> Result<u16, Refusal> {
    if host == "*" {
        return Ok(port);
    }
    Err(Refusal::new(format!(
        "cannot restrict connections to the host '{host}': the kernel can check the port, not the address; allow the port on every host with '*:{port}'"
    )))
}

/// Whether UNIX sockets are named, by `--unix` or the profile, and can be told apart.
pub fn names_sockets(
    flags: &Run,
    profile: &Profile,
    network: &Network,
    landlock: Version,
) -> Result<bool, Refusal> {
    if flags.unix.is_empty() && profile.network.unix.is_empty() {
        return Ok(false);
    }
    if landlock < Version::UNIX && (flags.exec || matches!(network.mode, Mode::Ports | Mode::Host)) {
        let other = if flags.exec { "--exec" } else { "an open network" };
        return Err(Refusal::new(format!(
            "cannot allow one UNIX socket together with {other}: without Landlock ABI 9 (Linux 7.1; here it is {}) the supervisor has to make the connection itself",
            landlock.0
        )));
    }
    Ok(true)
}

pub fn on_violation(flags: &Run, profile: &Profile) -> OnViolation {
    let by_profile = match profile.syscalls.default.as_deref() {
        Some(DefaultAction::Kill) => OnViolation::Kill,
        Some(DefaultAction::Log) => OnViolation::Log,
        Some(DefaultAction::Errno(number)) => OnViolation::Errno(*number),
        Some(DefaultAction::Allow) | None => OnViolation::Errno(sbx_policy::errno::EPERM),
    };
    match (flags.on_violation, by_profile) {
        _ if flags.log_violations => OnViolation::Log,
        (None, by_profile) => by_profile,
        (Some(cli::OnViolation::Kill), _) => OnViolation::Kill,
        (Some(cli::OnViolation::Log), _) => OnViolation::Log,
        (Some(cli::OnViolation::Errno), OnViolation::Errno(number)) => OnViolation::Errno(number),
        (Some(cli::OnViolation::Errno), _) => OnViolation::Errno(sbx_policy::errno::EPERM),
    }
}

/// What the kernel can enforce against what is asked for.
pub fn level(
    flags: &Run,
    profile: &Profile,
    landlock: Version,
    namespaces: &Choice,
    remarks: &mut Vec<String>,
) -> Result<(), Refusal> {
    let required = flags.require.map(|level| match level {
        cli::Level::Full => Level::Full,
        cli::Level::Standard => Level::Standard,
        cli::Level::Minimal => Level::Minimal,
    });
    let required = required.or(profile.require.as_deref().copied());
    let files = landlock >= Version::FILES;
    let has = match namespaces {
        _ if !files => Level::Minimal,
        Choice::Made if landlock >= Version::TCP => Level::Full,
        _ => Level::Standard,
    };
    if required.is_some_and(|required| required > has) {
        let missing = match namespaces {
            _ if !files => no_landlock(),
            Choice::Made => {
                format!("Landlock's rules for TCP need ABI 4, and this kernel has {}", landlock.0)
            }
            Choice::None(why) => format!("it takes namespaces, and {why}"),
        };
        return Err(Refusal::new(format!(
            "cannot enforce the level that --require or the profile asks for: {missing}"
        )));
    }
    if !files && !profile.is_unrestricted() {
        let lists = [&flags.ro, &flags.rox, &flags.rw, &flags.rwx, &flags.deny];
        if lists.iter().any(|list| !list.is_empty()) {
            return Err(Refusal::new(format!("cannot enforce path rules: {}", no_landlock())));
        }
        // What is allowed may be wider than it says, with a warning; a denial that does not hold is none.
        if let Some(denied) = profile.paths.deny.first() {
            let why = no_landlock();
            return Err(Refusal::new(format!("cannot deny '{}' ({}): {why}", **denied, denied.origin)));
        }
        remarks.push(format!(
            "warning: {}, so files are not restricted by this run, only system calls",
            no_landlock()
        ));
    }
    Ok(())
}

/// Why there is none: the kernel, its settings, or a sandbox around this one.
/// Landlock's version here: none where the kernel, or a sandbox around, does not have it or let it be used.
pub fn landlock() -> Result<Version, Refusal> {
    match seccomp::landlock_abi() {
        Err(failed) if failed.is_passing() => {
            Err(Refusal::new(format!("cannot ask for the version of Landlock: {failed}")))
        }
        version => Ok(Version(version.unwrap_or(0))),
    }
}

fn no_landlock() -> String {
    let why = seccomp::landlock_abi().err().map(|failed| status::why_none(&failed));
    why.unwrap_or_else(|| "the kernel did not say which Landlock it has when it was first asked".to_string())
}

/// What is denied, or is to be protected, below a home directory that nobody knows would be open.
pub fn home(profile: &Profile, home: Option<&Path>) -> Result<(), Refusal> {
    let denied = profile.paths.deny.iter().map(|entry| ("deny", &entry.value, &entry.origin));
    let own = profile.paths.protect.iter().filter(|entry| !entry.origin.built_in);
    let protected = own.map(|entry| ("protect", &entry.path, &entry.origin));
    let mut unknown = denied.chain(protected).filter(|(_, path, _)| path.base == Some(Variable::Home));
    match unknown.next().filter(|_| home.is_none()) {
        Some((verb, path, origin)) => Err(Refusal::new(format!(
            "cannot {verb} '{}' ({}): nobody knows where that is, for the variable HOME holds no absolute path; set it",
            shown(Path::new(&path.to_string())),
            **origin
        ))),
        None => Ok(()),
    }
}
