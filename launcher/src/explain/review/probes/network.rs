//! Where data can go, and whom a command can ask.

use crate::error::Refusal;
use crate::explain::query::{self, Destination, Question, Verdict};
use crate::explain::review::probes::{ABSENT, Gain, Side, files, is_given, place, places};
use crate::explain::sensitive::service_at;
use crate::explain::sensitive::table::{SERVICE, SOCKETS};
use crate::explain::sensitive::{DEVICES, Sensitive, Use};
use crate::hosts::{HostName, HostPattern, HostRule};
use crate::plan::Plan;
use crate::profile::NetworkMode;
use crate::sys::path::{canonical, is_socket, is_there};
use crate::sys::within::is_within;
use crate::text::shown;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{self, Data};
use std::net::IpAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Machines of every kind: what they are for a rule about ports, and for the whole network; a host's name if it has
/// one, its address, and a port.
const MACHINES: [Machine; 4] = [
    Machine {
        short: "this one",
        long: "services of this machine (127.0.0.1), which often ask for no password",
        name: "",
        address: "127.0.0.1",
        port: 8080,
    },
    Machine {
        short: "private networks",
        long: "machines of private networks",
        name: "",
        address: "10.0.0.1",
        port: 22,
    },
    Machine {
        short: "metadata services",
        long: "metadata services, which give out keys",
        name: "",
        address: "169.254.169.254",
        port: 80,
    },
    Machine {
        short: "the internet",
        long: "any host of the internet",
        name: "example.com",
        address: "93.184.216.34",
        port: 443,
    },
];
/// A port that everybody may listen on.
const SOME_PORT: u16 = 8080;
const LEAVES: &str = "what the command can read can be sent there, and from there to anybody";
const ASKED: &str = "the command can use this service";

struct Machine {
    short: &'static str,
    long: &'static str,
    name: &'static str,
    address: &'static str,
    port: u16,
}

impl Machine {
    /// Whether a run reaches it at a port.
    fn is_reached(&self, side: Side<'_>, port: u16) -> Result<bool, Refusal> {
        let Ok(address) = self.address.parse::<IpAddr>() else { return Ok(false) };
        let destination = Destination {
            text: format!("{address}:{port}"),
            port,
            is_elsewhere: !address.is_loopback(),
            name: HostName::parse(self.name).ok().filter(|_| !self.name.is_empty()),
            address: Some(address),
        };
        Ok(is_given(&query::answer(side.about, &Question::Connect(destination))?))
    }
}

/// Hosts, and sockets of services.
pub fn ask(side: Side<'_>, sensitive: &Sensitive) -> Result<Vec<Gain>, Refusal> {
    let mut gains = Vec::new();
    let network = &side.profile.network;
    match network.mode.as_ref().filter(|mode| mode.value == NetworkMode::Host) {
        Some(mode) => whole(side, &mode.origin.to_string(), &mut gains)?,
        None => {
            for entry in network.connect.iter() {
                let rules = vec![entry.origin.to_string()];
                let about = named(side, sensitive, &entry.value)?;
                gains.push(Gain { topic: "network", about, meaning: LEAVES.to_string(), rules });
            }
        }
    }
    if sends_packets(side.about.plan)? {
        let call = Call::named(b"socket").map(|call| query::answer(side.about, &Question::Call(call, None)));
        let rules = call.transpose()?.map(|answer| places(&answer)).unwrap_or_default();
        let about = "any host, by protocols that no rule holds (UDP, MPTCP)".to_string();
        gains.push(Gain { topic: "network", about, meaning: LEAVES.to_string(), rules });
    }
    listening(side, &mut gains)?;
    sockets(side, &mut gains)?;
    Ok(gains)
}

/// Whether calls lead out of a run that is in this machine's network without having it: Landlock's rules are about TCP
/// alone, and no call that is let through is held to any in log mode.
pub fn sends_packets(plan: &Plan) -> Result<bool, Refusal> {
    if plan.network.namespace || plan.network.mode == NetworkMode::Host {
        return Ok(false);
    }
    let made = makes_socket(plan, libc::SOCK_DGRAM)?;
    let is_used = passing(plan, &[b"connect", b"sendto", b"sendmsg", b"sendmmsg"], [0; 6])?;
    Ok(plan.calls.open_by().is_some() || made && is_used)
}

/// Whether sockets of this kind are made.
fn makes_socket(plan: &Plan, kind: i32) -> Result<bool, Refusal> {
    let args = |family: i32| [family as u64, kind as u64, 0, 0, 0, 0];
    Ok(passing(plan, &[b"socket"], args(libc::AF_INET))?
        || passing(plan, &[b"socket"], args(libc::AF_INET6))?)
}

/// Whether one of these calls goes through.
pub fn passing(plan: &Plan, names: &[&[u8]], args: [u64; 6]) -> Result<bool, Refusal> {
    let program = plan.calls.strict_program()?;
    let passes = |name: &&[u8]| {
        let Some(nr) = Call::named(name).and_then(|call| call.number(Arch::HOST)) else { return false };
        let data = Data { nr, arch: Arch::HOST.audit(), args };
        interpret::lets_through(&program, &data)
    };
    Ok(names.iter().any(passes))
}

/// Ports of this machine at which others connect.
fn listening(side: Side<'_>, gains: &mut Vec<Gain>) -> Result<(), Refusal> {
    let Side { about, profile } = side;
    let plan = about.plan;
    let listens = passing(plan, &[b"listen"], [0; 6])? && makes_socket(plan, libc::SOCK_STREAM)?;
    if plan.network.namespace || !(listens || plan.calls.open_by().is_some()) {
        return Ok(());
    }
    let mut add = |about: String, rules: Vec<String>| {
        let meaning = "other machines can connect to what the command listens at".to_string();
        gains.push(Gain { topic: "network", about, meaning, rules });
    };
    if plan.network.mode == NetworkMode::Host {
        let answer = query::answer(about, &Question::Bind(SOME_PORT))?;
        if is_given(&answer) {
            add("listening at any TCP port".to_string(), places(&answer));
        }
        return Ok(());
    }
    let mut rules = Vec::new();
    for entry in profile.network.bind.iter() {
        if is_given(&query::answer(about, &Question::Bind(entry.value))?) {
            add(format!("listening at TCP port {}", entry.value), vec![entry.origin.to_string()]);
            rules.push(entry.origin.to_string());
        }
    }
    // A socket that was never bound listens too, and Landlock is not asked.
    let call = Call::named(b"listen").filter(|_| rules.is_empty());
    if let Some(call) = call {
        rules = places(&query::answer(about, &Question::Call(call, None))?);
    }
    add("listening at a free TCP port that the kernel chooses".to_string(), rules);
    Ok(())
}

/// What a rule about hosts reaches. One that names a port alone is asked about machines of every kind: without rules
/// about hosts beside it, it is about no addresses at all.
fn named(side: Side<'_>, sensitive: &Sensitive, rule: &str) -> Result<String, Refusal> {
    let Ok(parsed) = HostRule::parse(rule) else { return Ok(rule.to_string()) };
    let (HostPattern::Any, Some(port)) = (&parsed.hosts, parsed.ports.first()) else {
        let why = sensitive.host(&parsed);
        return Ok(why.map_or(rule.to_string(), |why| format!("{rule} ({why})")));
    };
    let mut reached = Vec::new();
    for machine in &MACHINES {
        if machine.is_reached(side, *port)? {
            reached.push(machine.short);
        }
    }
    let ports: Vec<String> = parsed.ports.iter().map(ToString::to_string).collect();
    let whose = if reached.len() == MACHINES.len() { "every machine: " } else { "" };
    let what = if ports.len() == 1 { "port" } else { "ports" };
    Ok(format!("{rule} ({what} {} of {whose}{})", ports.join(", "), reached.join(", ")))
}

/// The whole network of this machine.
fn whole(side: Side<'_>, rule: &str, gains: &mut Vec<Gain>) -> Result<(), Refusal> {
    let mut add = |about: &str, meaning: &str| {
        let (about, meaning) = (about.to_string(), meaning.to_string());
        gains.push(Gain { topic: "network", about, meaning, rules: vec![rule.to_string()] });
    };
    for machine in MACHINES.iter().rev() {
        if machine.is_reached(side, machine.port)? {
            add(machine.long, "what can be read can leave to it");
        }
    }
    // Landlock's rules about ports are of TCP.
    let bind = Call::named(b"bind").map(|call| query::answer(side.about, &Question::Call(call, None)));
    if bind.transpose()?.is_some_and(|answer| answer.verdict != Verdict::Refused) {
        add("UDP ports", "other machines can send packets to the ports that the command takes");
    }
    Ok(())
}

/// Sockets that entries name, those in writable directories, and services that are known.
fn sockets(side: Side<'_>, gains: &mut Vec<Gain>) -> Result<(), Refusal> {
    let unix = &side.profile.network.unix;
    let mut told: Vec<PathBuf> = Vec::new();
    let mut add = |about: String, rules: Vec<String>| {
        gains.push(Gain { topic: "sockets", about, meaning: ASKED.to_string(), rules });
    };
    for entry in unix.iter() {
        let path = entry.value.to_string();
        add(format!("{path} ({})", service(Path::new(&path))), vec![place(entry)]);
        told.push(path.into());
    }
    let reaches = |path: &Path| {
        query::answer(side.about, &Question::Unix(path.to_path_buf())).map(|answer| is_given(&answer))
    };
    let workspace = side.about.plan.workspace.as_deref();
    for (path, entry) in files::granted(side, Use::Write) {
        let is_told = told.iter().any(|above| is_within(&path, above));
        if is_told || WITHOUT.iter().any(|place| is_within(&path, Path::new(place))) {
            continue;
        }
        let (is_directory, is_known) = (path.is_dir(), service_at(&path).is_some());
        let asked = if is_directory { path.join("socket") } else { path.clone() };
        // What an entry names is given when it comes.
        let comes = is_known && !is_there(&path);
        if !comes && (!(is_directory || is_socket(&path)) || !reaches(&asked)?) {
            continue;
        }
        let about = match is_directory {
            false if comes => format!("{} ({}, {ABSENT})", shown(&path), service(&path)),
            false => format!("{} ({})", shown(&path), service(&path)),
            true => {
                let what = match workspace {
                    Some(own) if own == path => "the workspace".to_string(),
                    _ => shown(&path),
                };
                format!("any socket in {what} ({})", there_now(side, &path)?)
            }
        };
        add(about, vec![place(entry)]);
        told.push(path);
    }
    for (socket, what) in SOCKETS.iter().filter(|(socket, _)| is_there(Path::new(socket))) {
        let path = Path::new(socket);
        // Among the many of a directory it would not be seen.
        let is_told = told.iter().any(|known| known == path || *known == canonical(path));
        if !is_told && reaches(path)? {
            let answer = query::answer(side.about, &Question::Unix(path.to_path_buf()))?;
            add(format!("{socket} ({what})"), places(&answer));
        }
    }
    Ok(())
}

/// Where no program makes sockets: devices are not asked about, and the kernel's own file systems take no names.
const WITHOUT: [&str; 3] = [DEVICES, "/proc", "/sys"];

/// Maximum number of sockets that are named of one directory.
const MOST_NAMED: usize = 4;

/// Which sockets are in a directory, each with what listens there.
fn there_now(side: Side<'_>, directory: &Path) -> Result<String, Refusal> {
    let mut there = Vec::new();
    for path in files::below(directory, FileTypeExt::is_socket) {
        if is_given(&query::answer(side.about, &Question::Unix(path.clone()))?) {
            there.push(path);
        }
    }
    if there.is_empty() {
        return Ok("whatever program outside listens there".to_string());
    }
    there.sort_by_key(|path| service_at(path).is_none());
    let more = there.len().saturating_sub(MOST_NAMED);
    let named = there.iter().take(MOST_NAMED).map(|path| {
        let name = path.strip_prefix(directory).unwrap_or(path);
        format!("{}: {}", shown(name), service(path))
    });
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Ok(format!("there now: {}{more}", named.collect::<Vec<_>>().join(", ")))
}

/// What listens at a socket.
fn service(path: &Path) -> &'static str {
    service_at(path).unwrap_or(SERVICE)
}
