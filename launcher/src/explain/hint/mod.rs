//! Why a call was refused, and which flag would allow it.
//!
//! The answer is not a table of opinions: each hint is tried, by building the calls that the run would have
//! with it and asking their program about this very call with these very arguments. What would not help is
//! not proposed, and where nothing would, nothing is.

mod attempt;
pub mod capability;
mod files;
mod flags;
mod given;
mod host;
mod key_agent;
mod limit;
mod place;
mod reason;
#[cfg(test)]
mod tests;
mod together;
mod topic;

use crate::explain::caller;
use crate::explain::decode::{Decoded, PathArgument};
use crate::explain::infer::Beyond;
use crate::host::landlock::Version;
use crate::hosts::HostRules;
use crate::plan::Plan;
use crate::plan::by_proxy::Proxy;
use crate::plan::calls::Unix;
use crate::plan::commands::Commands;
use crate::plan::limits::{Applied, LimitKey};
use crate::plan::namespaces::Layout;
use crate::profile::{Grants, NetworkMode, Source, Text};
use crate::sys::path::canonical;
use crate::sys::privilege::CapabilitySet;
use crate::sys::process::{self, Pid};
use crate::text::escape;
use attempt::{Attempts, Change};
use capability::Lacking;
pub use flags::includes_restriction;
use given::{changing, closed_home, denied_hosts, devices};
pub use host::{Host, Outside, bracketed};
pub use key_agent::KeyAgent;
pub use place::{CHANGES, is_opened_alone, is_whole, repository_at};
pub use reason::{Hint, Reason, Rule};
use sbx_policy::calls::Call;
use sbx_policy::interpret::Data;
use sbx_policy::list::{self, Target};
use sbx_policy::program::X32_BIT;
use sbx_policy::restrictions::{Condition, RESTRICTIONS};
use sbx_policy::shadow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
pub use together::{Access, Together, covers_calls, shell_word};
use topic::Topic;

/// Knows the profile in force and the other ones.
pub struct Explainer {
    profile: Text,
    network: NetworkMode,
    /// Whether the run reaches other machines.
    leads_out: bool,
    /// Why the run has no loopback of its own, though its profile asks for one.
    lacks: Option<String>,
    /// Hosts that the profile denies.
    denied_hosts: HostRules,
    /// How the run reaches its hosts, if it has no network of its own.
    proxy: Option<Proxy>,
    /// Whether the kernel keeps signals in the sandbox.
    has_scopes: bool,
    /// Where files may be changed, by the names inside.
    changing: Vec<PathBuf>,
    /// Devices that may be written to, and directories of such.
    devices: Vec<PathBuf>,
    denied_calls: Vec<String>,
    /// The limits in force.
    limits: Vec<Applied>,
    /// The paths that are denied.
    denied: Vec<PathBuf>,
    /// Those that flags name, as given and in full.
    denied_by_flag: Vec<(PathBuf, PathBuf)>,
    workspace: Option<PathBuf>,
    /// The user's home directory.
    home: Option<PathBuf>,
    /// The home directory, where the run could have one of its own and has none.
    closed_home: Option<PathBuf>,
    key_agent: Option<KeyAgent>,
    commands: Option<Rc<Commands>>,
    layout: Option<Rc<Layout>>,
    /// The capabilities that the user has outside.
    outside: CapabilitySet,
    attempts: Attempts,
}

/// A refused call, with everything that is known about it.
struct Refused<'r> {
    name: &'r str,
    data: &'r Data,
    decoded: &'r Decoded,
    /// Whose call it is, to find out where its relative paths start.
    thread: Option<Pid>,
    topic: Topic,
}

impl Explainer {
    /// For the run of a plan.
    pub fn of(plan: &Plan) -> Explainer {
        let own = (plan.profile.source != Source::BuiltIn).then(|| plan.profile.clone());
        Explainer {
            profile: plan.profile.name.clone(),
            network: plan.network.mode,
            leads_out: plan.network.leads_out(),
            lacks: plan.network.lacks.clone(),
            denied_hosts: denied_hosts(plan),
            proxy: plan.network.proxy().cloned(),
            has_scopes: plan.paths.is_some() && plan.landlock >= Version::SCOPES,
            changing: changing(plan),
            devices: devices(plan),
            denied_calls: plan.denied_calls.clone(),
            limits: plan.limits.applied.clone(),
            denied: plan.denied.clone(),
            denied_by_flag: {
                let flags = plan.denied_by_flag.iter();
                flags.map(|given| (given.clone(), canonical(&plan.directory.join(given)))).collect()
            },
            workspace: plan.workspace.clone(),
            home: plan.home.clone(),
            closed_home: closed_home(plan),
            key_agent: None,
            commands: plan.commands.clone(),
            layout: plan.namespaces.as_ref().ok().cloned(),
            outside: plan.outside,
            attempts: Attempts::new(
                &plan.profile.name,
                own,
                (plan.network.mode, plan.calls.unix()),
                plan.landlock,
            )
            .inside(plan.namespaces.is_ok(), plan.own.is_some()),
        }
    }

    /// The same for a command, which may do without a key of ssh's: a question about the key is about nothing else.
    pub fn of_command(plan: &Plan) -> Explainer {
        Explainer { key_agent: KeyAgent::of(plan), ..Explainer::of(plan) }
    }

    /// For a run of a profile in a workspace, without a plan: for tests and the fuzzer. The user is root.
    pub fn of_profile(profile: &'static str, network: NetworkMode, workspace: &Path) -> Explainer {
        Explainer {
            profile: profile.into(),
            network,
            leads_out: true,
            lacks: None,
            denied_hosts: HostRules::default(),
            proxy: None,
            has_scopes: true,
            changing: Vec::new(),
            devices: Vec::new(),
            denied_calls: Vec::new(),
            limits: Vec::new(),
            denied: Vec::new(),
            denied_by_flag: Vec::new(),
            workspace: Some(workspace.to_path_buf()),
            home: None,
            closed_home: None,
            key_agent: None,
            commands: None,
            layout: None,
            outside: CapabilitySet::all(),
            attempts: Attempts::new(profile, None, (network, Unix::Refused), Version::SCOPES),
        }
    }

    /// Why a call was refused and what would allow it. Without a thread, relative paths are taken to start
    /// at the workspace; a thread must still be waiting for its answer.
    pub fn reason_of(&mut self, thread: Option<Pid>, name: &str, data: &Data, decoded: &Decoded) -> Reason {
        if data.nr & X32_BIT != 0 {
            return Reason::always("it is an x32 call, which is never allowed");
        }
        let Some(call) = Call::named(name.as_bytes()) else {
            return Reason::always("sbx does not know this call, so no profile allows it");
        };
        if self.denies(call, data) {
            let text = "--deny-calls refuses it".to_string();
            return Reason::of(Rule { text, profile: None, key: Some("--deny-calls") }, None);
        }
        if let Some(process) = thread.and(decoded.process).filter(|process| self.is_apart(name, *process)) {
            return self.beyond_reason(Beyond::Process(process));
        }
        let refused = Refused { name, data, decoded, thread, topic: topic::of(call, data, decoded) };
        let (why, key) = (self.why(&refused), self.key(call, &refused));
        if let Some(lacking) = self.lacks_capability(&refused) {
            let fails_outside = lacking == Lacking::OutsideToo;
            let text = format!("{why}; it takes a capability, and {}", lacking.who());
            return Reason { fails_outside, ..Reason::of(self.rule(&text, key), None) };
        }
        let why = match &self.lacks {
            Some(lacks) if key == "network.mode" => format!("{why}, and no loopback of its own: {lacks}"),
            _ => why.to_string(),
        };
        if decoded.paths.iter().any(PathArgument::names_nothing) {
            let text = format!("{why}; its path is empty, so it fails in any case");
            return Reason::of(self.rule(&text, key), None);
        }
        if self.is_closed(&refused) {
            let text = format!("{why}; permissions close it to this user as well");
            return Reason { fails_outside: true, ..Reason::of(self.rule(&text, key), None) };
        }
        let is_done_without = is_done_without(name, &data.args);
        Reason { is_done_without, ..Reason::of(self.rule(&why, key), self.hint(&refused)) }
    }

    /// Why a UNIX socket without a file is not there. Landlock keeps such apart in every network.
    pub fn name_reason(&self) -> Reason {
        let what = "has a network of its own, and reaches no UNIX sockets without a file outside";
        Reason::of(self.rule(what, "network.mode"), None)
    }

    /// Why a socket may not wait for connections, though sockets may.
    pub fn waiting_reason(&self) -> Reason {
        let (what, key) = match self.network {
            NetworkMode::Private => ("waits for connections in the run's own network alone", "network.mode"),
            NetworkMode::Ports => {
                ("waits for connections at the ports alone that were named", "network.bind")
            }
            NetworkMode::None | NetworkMode::Loopback | NetworkMode::Host => {
                ("has no network", "network.mode")
            }
        };
        Reason::of(self.rule(what, key), None)
    }

    fn rule(&self, what: &str, key: &'static str) -> Rule {
        let text = format!("profile '{}' {what}", escape(self.profile.as_bytes(), 100));
        Rule { text, profile: Some(self.profile.to_string()), key: Some(key) }
    }

    /// The key of the profile that decides. What no key names meets the default.
    fn key(&mut self, call: Call, refused: &Refused<'_>) -> &'static str {
        if self.attempts.rules(call).is_some_and(|said| holds(&said.deny, refused.data)) {
            return "syscalls.deny";
        }
        match (refused.topic, self.network) {
            (Topic::UnixConnection, _) => "network.unix",
            (Topic::Internet, NetworkMode::Ports) => "network.connect",
            (Topic::Internet, NetworkMode::Private) if refused.name == "connect" => "network.mode",
            (Topic::Internet | Topic::Packets | Topic::Socket | Topic::Netlink, NetworkMode::None) => {
                "network.mode"
            }
            _ => "syscalls.default",
        }
    }

    /// Whether the profile opens something below a directory.
    pub fn opens_below(&mut self, directory: &Path) -> bool {
        self.attempts.opens_below(directory)
    }

    /// Why something else was refused that Landlock decides about, and what would allow it.
    pub fn beyond_reason(&self, beyond: Beyond) -> Reason {
        let (what, key, hint) = match beyond {
            Beyond::Connect(_) if self.proxy.as_ref().is_some_and(|proxy| !proxy.is_supervised) => {
                let what = "reaches hosts by a proxy alone, at the address in HTTPS_PROXY";
                return Reason::of(self.rule(what, "network.connect"), None);
            }
            Beyond::Connect(port) => (
                format!("may not connect to TCP port {port}"),
                "network.connect",
                Some(Hint::of(["--connect", &format!("*:{port}")])),
            ),
            Beyond::Bind(port) => (
                format!("may not listen on TCP port {port}"),
                "network.bind",
                Some(Hint::of(["--bind", &port.to_string()])),
            ),
            Beyond::Signal(process) => {
                return Reason::always(&format!(
                    "process {process} is outside, and no signal leaves the sandbox, whatever the flags"
                ));
            }
            Beyond::Process(process) => {
                return Reason::always(&format!(
                    "process {process} is outside, and the run has its own processes"
                ));
            }
            Beyond::Limit(key) => return limit::reason(key, &self.limits),
            Beyond::Cores => {
                return Reason::always(
                    "no command writes core files: that limit is 0, and no flag raises it",
                );
            }
            Beyond::Capability(closed) => return capability::reason(&closed),
            Beyond::Datagram { hosts, port } => {
                let to = if hosts { Outside::ThisMachine } else { Outside::Unknown };
                return self.connection_reason(to, port, false);
            }
            Beyond::Gain { by_helper } => {
                let gains = Reason::always(
                    "this program is set-user-ID or set-group-ID, or has capabilities, which count for nothing: none \
                     gains rights in a sandbox",
                );
                // Who has started it does without, or says what it is missing.
                return Reason { is_done_without: by_helper, ..gains };
            }
        };
        Reason::of(self.rule(&what, key), hint)
    }

    /// Whether the run has this limit.
    pub fn has_limit(&self, key: LimitKey) -> bool {
        self.limits.iter().any(|applied| applied.limit == key)
    }

    /// Whether Landlock keeps a call from this process, whatever the filter allows: it is outside.
    fn is_apart(&self, name: &str, process: Pid) -> bool {
        const CLOSED: [&str; 3] = ["ptrace", "process_vm_readv", "process_vm_writev"];
        const SIGNALS: [&str; 4] = ["kill", "tkill", "tgkill", "rt_sigqueueinfo"];
        let closes = (CLOSED.contains(&name) && self.attempts.has_path_rules())
            || (SIGNALS.contains(&name) && self.has_scopes);
        closes && self.layout.is_none() && process::exists(process) && !caller::is_ours(process)
    }

    fn why(&mut self, refused: &Refused<'_>) -> &'static str {
        match refused.topic {
            _ if self.attempts.help(Change::Namespaces, refused.data) => {
                "allows this only where the run has namespaces of its own"
            }
            Topic::Namespaces if self.attempts.has_path_rules() => {
                "allows no namespaces, and no flag helps: under path rules a user namespace cannot map users"
            }
            Topic::Namespaces => "allows no namespaces",
            Topic::Mounts => "mounts nothing",
            Topic::Processes => "starts no programs",
            Topic::Threads => "starts no threads",
            Topic::DescriptorSignals => "has no descriptor send signals, which could reach others",
            Topic::Terminal => "does nothing to a terminal that acts outside the run",
            Topic::Kernel => "does not allow this part of the kernel",
            Topic::UnixConnection => "may not connect to this UNIX socket",
            Topic::UnixAbstract => "reaches no UNIX sockets without a file",
            Topic::UnixSocket if self.attempts.makes_unix_sockets() => "makes no UNIX sockets of this type",
            Topic::UnixSocket => "makes no UNIX sockets",
            Topic::Internet | Topic::Packets | Topic::Socket if self.network == NetworkMode::None => {
                "has no network"
            }
            Topic::Internet if self.proxy.is_some() => "reaches its hosts over TCP alone",
            Topic::Internet if self.network == NetworkMode::Ports => {
                "may only use TCP, on the ports that were named"
            }
            Topic::Internet if self.network == NetworkMode::Private && refused.name == "connect" => {
                "connects no sockets but those of the run's own network"
            }
            _ if refused.name == "listen" => "waits for no connections",
            Topic::Internet if refused.name.starts_with("send") => "connects no socket by what it sends",
            Topic::Internet => "makes no internet sockets of this type",
            Topic::Packets => "makes no sockets for ping and raw packets",
            Topic::Netlink => "allows no netlink sockets",
            Topic::SetId if self.attempts.has_path_rules() => {
                "makes no set-user-ID or set-group-ID files, and no flag helps"
            }
            Topic::SetId => "makes no set-user-ID or set-group-ID files",
            Topic::OtherFamily => "makes no sockets of this family",
            _ if self.changing.is_empty() && place::changed(refused.decoded).next().is_some() => {
                "writes no files"
            }
            _ => "does not allow this",
        }
    }

    /// Whether `--deny-calls` is what refuses the call.
    fn denies(&self, call: Call, data: &Data) -> bool {
        let lists = self.denied_calls.iter().flat_map(|list| list.split([':', ',']));
        lists.filter_map(|entry| list::parse(entry.as_bytes()).ok()).any(|entry| {
            let named = match entry.target {
                Target::Call(named) => named == call,
                Target::Group(group) => group.contains(call),
            };
            named && entry.restriction.is_none_or(|place| matches(place, data))
        })
    }
}

/// Whether programs do without a call: ss(8) and others ask the kernel for sockets, and read /proc where it does not
/// tell. readline(3) has a terminal go on at Ctrl-C, which nothing has stopped.
pub fn is_done_without(name: &str, args: &[u64; 6]) -> bool {
    let [first, request, third, ..] = *args;
    match name {
        "socket" => first == libc::AF_NETLINK as u64 && third == libc::NETLINK_SOCK_DIAG as u64,
        "ioctl" => {
            request as libc::Ioctl == libc::TCXONC && matches!(third as i32, libc::TCOON | libc::TCION)
        }
        _ => false,
    }
}

/// Whether it makes a socket as syslog(3) does, which never says that there is none. Who else makes such a one fails
/// without it.
pub fn is_for_log(name: &str, args: &[u64; 6]) -> bool {
    const TYPE: i32 = 0xf;
    let [family, kind, ..] = args.map(|argument| argument as i32);
    name == "socket" && family == libc::AF_UNIX && kind & TYPE == libc::SOCK_DGRAM
}

/// Whether a named restriction matches these arguments.
fn matches(place: usize, data: &Data) -> bool {
    RESTRICTIONS.get(place).is_some_and(|restriction| restriction.any.iter().any(|all| all_hold(all, data)))
}

/// Whether an entry of a profile is about these arguments.
fn holds(grants: &Grants, data: &Data) -> bool {
    match grants {
        Grants::None => false,
        Grants::All(_) => true,
        Grants::Some(entries) => {
            entries.iter().any(|entry| entry.when.any().iter().any(|all| all_hold(all, data)))
        }
    }
}

fn all_hold(conditions: &[Condition], data: &Data) -> bool {
    let holds =
        |c: &Condition| data.args.get(usize::from(c.arg)).is_some_and(|argument| shadow::holds(c, *argument));
    conditions.iter().all(holds)
}
