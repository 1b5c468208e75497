//! What a network adds to the calls of a profile.

use crate::error::Refusal;
use crate::plan::calls::{Calls, Unix};
use crate::plan::rows::{answer_quietly, bits, grant, replace, revoke, row, without};
use crate::plan::validation::Invalid;
use crate::profile::{Grants, NETWORK_CALLS, NetworkMode, Profile, When};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{self, Data};
use sbx_policy::list::List;
use sbx_policy::restrictions;
use sbx_policy::rules::{Grant, Rules};

/// What waiting for connections needs. A client names the address that it sends from by the first one.
const SERVER: [&str; 4] = ["bind", "listen", "accept", "accept4"];

/// What leads a socket past connect(2). Fast open connects without asking Landlock or the supervisor, and so does a
/// socket of TCP that was turned into one of SMC. Who chooses a device, or headers with a way of their own, has the
/// packets of an allowed connection go elsewhere. One run may do this to a socket for another one.
const OWN_WAYS: [(&str, &str); 4] = [
    ("sendto", "no-fastopen"),
    ("sendmsg", "no-fastopen"),
    ("sendmmsg", "no-fastopen"),
    ("setsockopt", "no-detour"),
];

fn own_ways(name: &str) -> Option<&'static str> {
    OWN_WAYS.into_iter().find(|(call, _)| *call == name).map(|(_, restriction)| restriction)
}

/// The network that a profile asks for. Where nobody settles it, [`NetworkMode::Loopback`] is as good as none.
pub fn mode(profile: &Profile) -> NetworkMode {
    profile.network.mode.as_deref().copied().unwrap_or_default()
}

impl Calls {
    /// Closes what would make sockets past the filter, where that is what keeps the run to its network. Returns what is
    /// to be said of it. What a flag allows is refused.
    pub fn stay_in_network(&mut self) -> Result<Option<&'static str>, Refusal> {
        const RING: &str = "io_uring_setup";
        if !self.network.mode.is_kept_by_filter() || !self.allows(RING) || self.makes_datagrams()? {
            return Ok(None);
        }
        if self.said(RING).is_some_and(|said| said.allow.origins().any(|origin| origin.key.starts_with("--")))
        {
            return Err(Invalid::NetworkWithRing.into());
        }
        self.add(List::Deny, "network.mode", b"io_uring_setup=ENOSYS")?;
        Ok(Some(
            "warning: the profile allows io_uring_setup(2), and the run does not: its operations pass no filter, which \
             is what keeps the run to its network",
        ))
    }

    /// Whether the filter lets sockets of UDP be made, which may send to any address.
    fn makes_datagrams(&self) -> Result<bool, Refusal> {
        let program = self.strict_program()?;
        let number = Call::named(b"socket").and_then(|call| call.number(Arch::HOST));
        let makes = |family: i32| {
            let args = [family as u64, libc::SOCK_DGRAM as u64, 0, 0, 0, 0];
            number.is_some_and(|nr| {
                interpret::lets_through(&program, &Data { nr, arch: Arch::HOST.audit(), args })
            })
        };
        Ok([libc::AF_INET, libc::AF_INET6].into_iter().any(makes))
    }

    pub(super) fn open_network(&self, rules: &mut Rules) {
        if self.unix == Unix::ByPath && row(rules, "socket").is_some_and(|row| row.allow != Grant::None) {
            grant(rules, "connect", None);
        }
        if matches!(self.network.mode, NetworkMode::None | NetworkMode::Loopback) {
            return self.keep_to_own_ways(rules);
        }
        let served = match self.network.mode {
            NetworkMode::Private => SERVER.len(),
            NetworkMode::Host if self.network.asked => SERVER.len(),
            // A profile with the host's network may be for clients. Those for servers allow listen(2) by themselves.
            NetworkMode::Host => 1,
            NetworkMode::Ports if !self.network.bind.is_empty() => SERVER.len(),
            NetworkMode::Ports | NetworkMode::None | NetworkMode::Loopback => 0,
        };
        // A filter cannot tell a connection inside from one to a socket file of the host: the supervisor does.
        let held_back = self.supervisor_connects();
        let names = NETWORK_CALLS.iter().chain(SERVER.iter().take(served));
        for name in names.filter(|name| !held_back || **name != "connect") {
            let restriction = match (*name, self.network.mode) {
                ("sendto", NetworkMode::Ports) => Some("connected"),
                ("setsockopt", NetworkMode::Ports) if self.network.proxy().is_some() => Some("common"),
                ("fcntl", _) => Some("basic"),
                (_, NetworkMode::Host) => None,
                _ => own_ways(name),
            };
            if *name != "fcntl" || !self.allows(name) {
                replace(rules, name, restriction);
            }
        }
        if served == 0
            && let Some(row) = row(rules, "listen")
        {
            // A TCP socket that was never bound listens on a port of the kernel's choice, and Landlock is not asked.
            row.allow = Grant::None;
        }
        self.pardon(rules);
        if self.unix == Unix::ByPath {
            // Landlock decides.
        } else if held_back || self.network.mode == NetworkMode::Private {
            keep_to_streams(rules);
        } else {
            answer_quietly(rules);
            // With connect(2) open, a UNIX socket reaches every service of the host that has one.
            revoke(rules, "socket", &["unix", "unix-stream"]);
        }
        if self.network.mode == NetworkMode::Ports {
            grant(rules, "socket", Some("tcp"));
        } else {
            grant(rules, "socket", Some("inet"));
            grant(rules, "socket", Some("netlink-route"));
        }
    }

    /// Without a network a program has the sockets that others hand it. What a user's profile or a flag says of a call
    /// holds.
    fn keep_to_own_ways(&self, rules: &mut Rules) {
        let is_ours = |name: &str| match self.said(name).map(|said| &said.allow) {
            Some(Grants::All(origin)) => origin.built_in || origin.key == "--unix",
            _ => false,
        };
        for (name, restriction) in OWN_WAYS.into_iter().filter(|(name, _)| is_ours(name)) {
            if row(rules, name).is_some_and(|row| row.allow == Grant::All) {
                replace(rules, name, Some(restriction));
            }
        }
    }

    /// Takes back what the built-in profiles answer quietly where there is no network. What a user's profile or
    /// a flag denies stays denied. Where sendto(2) takes no address, nothing could be asked by netlink: name lookups
    /// would be refused, and do without such a socket.
    fn pardon(&self, rules: &mut Rules) {
        let Some(Grants::Some(refusals)) = self.said("socket").map(|said| &said.deny) else { return };
        let quiet = refusals.iter().filter(|refusal| refusal.origin.built_in);
        let names: Vec<_> = quiet
            .filter_map(|refusal| match refusal.when {
                When::Named(place) => Some(restrictions::name(place)),
                When::Free(_) => None,
            })
            .filter(|name| {
                *name == "inet6" || *name == "netlink-route" && self.network.mode != NetworkMode::Ports
            })
            .collect();
        if let Some(row) = row(rules, "socket") {
            row.deny = without(row.deny, bits("socket", &names));
        }
    }
}

/// With sendto(2) and sendmsg(2) open, a datagram socket reaches every service of the host that has one.
fn keep_to_streams(rules: &mut Rules) {
    let any = bits("socket", &["unix"]);
    let datagrams =
        row(rules, "socket").is_some_and(|row| matches!(row.allow, Grant::Some(mask) if mask & any != 0));
    if datagrams {
        revoke(rules, "socket", &["unix"]);
        grant(rules, "socket", Some("unix-stream"));
    }
}
