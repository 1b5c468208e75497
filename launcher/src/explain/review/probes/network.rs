//! Where data can go, and whom a command can ask.

use crate::error::Refusal;
use crate::explain::query::{self, Destination, Question};
use crate::explain::review::probes::{Gain, Side, is_given, place, places};
use crate::explain::sensitive::Sensitive;
use crate::explain::sensitive::table::SOCKETS;
use crate::hosts::{HostName, HostPattern, HostRule};
use crate::profile::NetworkMode;
use crate::sys::path::is_there;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Places of every kind: what is there, a host's name if it has one, its address, and a port.
const ANYWHERE: [(&str, &str, &str, u16); 3] = [
    ("any host of the internet", "example.com", "93.184.216.34", 443),
    ("metadata services, which give out keys", "", "169.254.169.254", 80),
    ("machines of private networks", "", "10.0.0.1", 22),
];
/// A port that everybody may listen on.
const SOME_PORT: u16 = 8080;
const LEAVES: &str = "what can be read can leave to it, and to whom it passes that on";
const ASKED: &str = "the command can ask it for whatever it does";

/// Hosts, and sockets of services.
pub fn ask(side: Side<'_>, sensitive: &Sensitive) -> Result<Vec<Gain>, Refusal> {
    let mut gains = Vec::new();
    let network = &side.profile.network;
    let entries = network.connect.iter().filter(|_| side.about.plan.network.mode != NetworkMode::Host);
    for entry in entries {
        let why = HostRule::parse(&entry.value).ok().and_then(|rule| sensitive.host(&rule));
        let about = why.map_or(entry.value.to_string(), |why| format!("{} ({why})", entry.value));
        let rules = vec![entry.origin.to_string()];
        gains.push(Gain { topic: "network", about, meaning: LEAVES.to_string(), rules });
    }
    for (what, name, address, port) in ANYWHERE {
        let address: Option<IpAddr> = address.parse().ok();
        // Where a rule names such a host, that has been told.
        let is_told =
            network.connect.iter().filter_map(|entry| HostRule::parse(&entry.value).ok()).any(|rule| {
                rule.hosts != HostPattern::Any
                    && address.is_some_and(|address| rule.is_about_address(address))
            });
        let destination = Destination {
            text: address.map_or(String::new(), |address| format!("{address}:{port}")),
            port,
            is_elsewhere: true,
            name: HostName::parse(name).ok().filter(|_| !name.is_empty()),
            address,
        };
        let answer = query::answer(side.about, &Question::Connect(destination))?;
        if is_given(&answer) && !is_told {
            let (about, meaning) = (what.to_string(), "what can be read can leave to it".to_string());
            gains.push(Gain { topic: "network", about, meaning, rules: places(&answer) });
        }
    }
    if let Some(mode) = side.profile.network.mode.as_ref().filter(|mode| mode.value == NetworkMode::Host) {
        let mut add = |about: &str, meaning: &str| {
            let (about, meaning, rules) =
                (about.to_string(), meaning.to_string(), vec![mode.origin.to_string()]);
            gains.push(Gain { topic: "network", about, meaning, rules });
        };
        add("services of this machine (127.0.0.1), which often ask for no password", ASKED);
        if is_given(&query::answer(side.about, &Question::Bind(SOME_PORT))?) {
            add("listening", "other machines can connect to what the command listens at");
        }
    }
    sockets(side, &mut gains)?;
    Ok(gains)
}

fn sockets(side: Side<'_>, gains: &mut Vec<Gain>) -> Result<(), Refusal> {
    let unix = &side.profile.network.unix;
    let mut add = |path: &str, what: &str, rules: Vec<String>| {
        let about = format!("{path} ({what})");
        gains.push(Gain { topic: "sockets", about, meaning: ASKED.to_string(), rules });
    };
    for entry in unix.iter() {
        let path = entry.value.to_string();
        let known =
            SOCKETS.iter().find(|(socket, _)| *socket == path || socket.replace("/var/run", "/run") == path);
        let what = known.map_or("a service outside, with rights of its own", |(_, what)| what);
        add(&path, what, vec![place(entry)]);
    }
    if let Some(workspace) = &side.about.plan.workspace {
        let answer = query::answer(side.about, &Question::Unix(workspace.join("socket")))?;
        if is_given(&answer) {
            let rules = places(&answer);
            add("any socket in the workspace", "whatever program outside listens there", rules);
        }
    }
    for (socket, what) in SOCKETS.iter().filter(|(socket, _)| is_there(Path::new(socket))) {
        let answer = query::answer(side.about, &Question::Unix(PathBuf::from(socket)))?;
        if is_given(&answer) && !unix.iter().any(|entry| entry.value.to_string() == **socket) {
            add(socket, what, places(&answer));
        }
    }
    Ok(())
}
