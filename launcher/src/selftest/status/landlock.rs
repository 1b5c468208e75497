//! Landlock: the features of its ABI, and a real refusal for files, TCP ports and scopes.

use crate::host::landlock::why_none;
use crate::selftest::status::trial::{Attempt, Fault, State, attempt};
use crate::sys::{SyscallError, memory, plain, process, seccomp};
use landlock::{
    AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetError, Scope,
};
use serde_json::{Value, json};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;

/// What each ABI adds: its number, the key in JSON, and the words in the table.
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

/// Landlock as a whole: its version, and a refusal.
pub fn whole() -> Attempt {
    match seccomp::landlock_abi() {
        Err(failed) => Err(Fault { state: state(&failed), why: why_none(&failed), errno: failed.errno() }),
        Ok(version) => attempt(refuses_files).map(|_| format!("ABI {version}: {}", words(version))),
    }
}

pub fn facts() -> Vec<(&'static str, Value)> {
    let version = seccomp::landlock_version();
    let features: Value = ADDED.iter().map(|(needs, key, _)| (*key, version >= *needs)).collect();
    vec![("abi", json!(version)), ("features", features)]
}

fn words(version: i32) -> String {
    let list = |there: bool| {
        let items = ADDED.iter().filter(|(needs, ..)| (version >= *needs) == there);
        items.map(|(.., words)| *words).collect::<Vec<_>>().join(", ")
    };
    let lacking = list(false);
    if lacking.is_empty() { list(true) } else { format!("{}; without {lacking}", list(true)) }
}

fn state(failed: &SyscallError) -> State {
    match failed.errno() {
        libc::ENOSYS | libc::EOPNOTSUPP => State::Missing,
        _ => State::Refused,
    }
}

/// Handles some accesses, and allows none of them.
fn confine(about: impl FnOnce(Ruleset) -> Result<Ruleset, RulesetError>) -> Result<(), Fault> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let confined = about(ruleset).and_then(Ruleset::create).and_then(RulesetCreated::restrict_self);
    confined.map(drop).map_err(|error| Fault::new(State::Refused, error.to_string()))
}

/// Checks that the act works without Landlock. Otherwise its failure would prove nothing.
fn before(what: &str, result: io::Result<()>) -> Result<(), Fault> {
    result.map_err(|error| {
        Fault::new(State::Untried, format!("{what} fails without Landlock too: {}", plain(&error)))
    })
}

/// Checks that the act fails now, with Landlock's error number.
fn refused(what: &str, result: io::Result<()>, errno: i32) -> Attempt {
    match result {
        Err(error) if error.raw_os_error() == Some(errno) => Ok(format!("{what} was refused")),
        Err(error) => Err(Fault::new(State::Untried, format!("{what} failed otherwise: {}", plain(&error)))),
        Ok(()) => Err(Fault::new(State::Missing, format!("{what} was not refused"))),
    }
}

pub fn refuses_files() -> Attempt {
    const WHAT: &str = "listing a directory";
    // An outer sbx may hide some of them.
    let place = ["/", ".", "/usr", "/proc"].into_iter().find(|place| Path::new(place).read_dir().is_ok());
    confine(|rules| rules.handle_access(AccessFs::ReadDir))?;
    match place {
        Some(place) => refused(WHAT, Path::new(place).read_dir().map(drop), libc::EACCES),
        None => Ok("rules were put in force; there is nothing to list that they could refuse".to_string()),
    }
}

pub fn refuses_tcp() -> Attempt {
    const WHAT: &str = "binding a TCP port";
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map(drop);
    before(WHAT, bind())?;
    confine(|rules| rules.handle_access(AccessNet::BindTcp))?;
    refused(WHAT, bind(), libc::EACCES)
}

pub fn refuses_signals() -> Attempt {
    const WHAT: &str = "a signal to a process outside";
    let parent = process::parent();
    let signal = || process::test_signal(parent).map_err(io::Error::from);
    before(WHAT, signal())?;
    confine(|rules| rules.scope(Scope::Signal))?;
    refused(WHAT, signal(), libc::EPERM)
}

pub fn refuses_abstract_sockets() -> Attempt {
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
