//! Landlock: what its version adds, and a real refusal for files, TCP ports and scopes.

use super::trial::{Fault, Layer, State, attempt};
use crate::launch::landlock::Version;
use crate::sys::{Failed, memory, plain, process, seccomp};
use landlock::{
    AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetError, Scope,
};
use serde_json::{Map, Value};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;

/// What each version of the ABI adds: its number, a key in JSON, and in words.
const ADDED: [(i32, &str, &str); 9] = [
    (1, "files", "files"),
    (2, "refer", "renaming across directories"),
    (3, "truncate", "truncation"),
    (4, "tcp", "TCP ports"),
    (5, "ioctl", "ioctl on devices"),
    (6, "scopes", "signals and abstract sockets"),
    (7, "audit", "audit records"),
    (8, "threads", "all threads at once"),
    (9, "unix", "UNIX sockets by path"),
];

/// The layers.
pub fn layers() -> Vec<Layer> {
    let abi = seccomp::landlock_abi();
    let version = *abi.as_ref().unwrap_or(&0);
    let features: Map<String, Value> =
        ADDED.iter().map(|(needs, key, _)| (key.to_string(), (version >= *needs).into())).collect();
    let whole = match abi {
        Err(failed) => Err(Fault { state: state(&failed), why: why_none(&failed), errno: failed.errno() }),
        Ok(_) => attempt(refuses_files).map(|_| format!("ABI {version}: {}", words(version))),
    };
    let whole = Layer::of("landlock", whole).with("abi", version).with("features", features);
    if version == 0 {
        return vec![whole];
    }
    let needs = |least: Version, body: fn() -> Result<String, Fault>| {
        if Version(version) >= least {
            attempt(body)
        } else {
            Err(Fault::new(State::Missing, format!("needs ABI {}, and this kernel has {version}", least.0)))
        }
    };
    vec![
        whole,
        Layer::of("landlock-files", attempt(refuses_files)),
        Layer::of("landlock-tcp", needs(Version::TCP, refuses_tcp)),
        Layer::of("landlock-signals", needs(Version::SCOPES, refuses_signals)),
        Layer::of("landlock-abstract", needs(Version::SCOPES, refuses_abstract_sockets)),
    ]
}

fn words(version: i32) -> String {
    let list = |there: bool| {
        let items: Vec<&str> = ADDED
            .iter()
            .filter(|(needs, ..)| (version >= *needs) == there)
            .map(|(.., words)| *words)
            .collect();
        items.join(", ")
    };
    let lacking = list(false);
    if lacking.is_empty() { list(true) } else { format!("{}; without {lacking}", list(true)) }
}

fn state(failed: &Failed) -> State {
    match failed.errno() {
        libc::ENOSYS | libc::EOPNOTSUPP => State::Missing,
        _ => State::Refused,
    }
}

/// Why there is no Landlock, from the error of asking for its version, as the beginning of a sentence.
pub fn why_none(failed: &Failed) -> String {
    match failed.errno() {
        libc::EOPNOTSUPP => {
            "Landlock is turned off in this kernel (add 'landlock' to the security modules of its lsm= parameter)".to_string()
        }
        libc::ENOSYS => {
            "this kernel has no Landlock (Linux 5.13, and 'landlock' in the list of security modules), or a container's filter does not know it".to_string()
        }
        _ => format!("a sandbox around this one refuses Landlock ({failed})"),
    }
}

/// Rules under which nothing of what they are about is allowed.
fn confine(about: impl FnOnce(Ruleset) -> Result<Ruleset, RulesetError>) -> Result<(), Fault> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let confined = about(ruleset).and_then(Ruleset::create).and_then(RulesetCreated::restrict_self);
    confined.map(drop).map_err(|error| Fault::new(State::Refused, error.to_string()))
}

/// Fails before the rules are there: nothing could be concluded from a failure afterwards.
fn before(what: &str, result: io::Result<()>) -> Result<(), Fault> {
    result.map_err(|error| {
        Fault::new(State::Untried, format!("{what} fails without Landlock too: {}", plain(&error)))
    })
}

/// Demands that it fails now, in the way that Landlock refuses.
fn refused(what: &str, result: io::Result<()>, errno: i32) -> Result<String, Fault> {
    match result {
        Err(error) if error.raw_os_error() == Some(errno) => Ok(format!("{what} was refused")),
        Err(error) => Err(Fault::new(State::Untried, format!("{what} failed otherwise: {}", plain(&error)))),
        Ok(()) => Err(Fault::new(State::Missing, format!("{what} was not refused"))),
    }
}

fn refuses_files() -> Result<String, Fault> {
    const WHAT: &str = "listing a directory";
    // Under an sbx some of them are closed already.
    let place = ["/", ".", "/usr", "/proc"].into_iter().find(|place| Path::new(place).read_dir().is_ok());
    confine(|rules| rules.handle_access(AccessFs::ReadDir))?;
    match place {
        Some(place) => refused(WHAT, Path::new(place).read_dir().map(drop), libc::EACCES),
        None => Ok("rules were put in force; there is nothing to list that they could refuse".to_string()),
    }
}

fn refuses_tcp() -> Result<String, Fault> {
    const WHAT: &str = "binding a TCP port";
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map(drop);
    before(WHAT, bind())?;
    confine(|rules| rules.handle_access(AccessNet::BindTcp))?;
    refused(WHAT, bind(), libc::EACCES)
}

fn refuses_signals() -> Result<String, Fault> {
    const WHAT: &str = "a signal to a process outside";
    let parent = process::parent();
    let signal = || if process::can_signal(parent) { Ok(()) } else { Err(io::Error::last_os_error()) };
    before(WHAT, signal())?;
    confine(|rules| rules.scope(Scope::Signal))?;
    refused(WHAT, signal(), libc::EPERM)
}

fn refuses_abstract_sockets() -> Result<String, Fault> {
    const WHAT: &str = "connecting to an abstract socket outside";
    let address = SocketAddr::from_abstract_name(memory::random_name("sbx-status-")?);
    let listener = address.and_then(|address| UnixListener::bind_addr(&address).map(|held| (address, held)));
    let (address, _held) = listener.map_err(|error| {
        Fault::new(State::Untried, format!("no abstract socket can be made: {}", plain(&error)))
    })?;
    let connect = || UnixStream::connect_addr(&address).map(drop);
    before(WHAT, connect())?;
    confine(|rules| rules.scope(Scope::AbstractUnixSocket))?;
    refused(WHAT, connect(), libc::EPERM)
}
