//! From a profile and flags to the calls of one run.

mod alone;
mod flags;
mod loader;
mod network;
mod of_run;
mod table;
#[cfg(test)]
mod tests;

use crate::error::Refusal;
use crate::plan::notified::{Kinds, Notified};
use crate::plan::rows::grant;
use crate::plan::rules::Network;
use crate::profile::{
    self, CallRules, DefaultAction, FreeConditions, Grants, NetworkMode, Origin, Profile, Search, Syscalls,
    Text, When,
};
use sbx_policy::bpf::{self, Insn};
use sbx_policy::calls::{Arch, Call};
use sbx_policy::env;
use sbx_policy::interpret::{self, Data};
use sbx_policy::list::List;
use sbx_policy::program::{self, TooLong};
use sbx_policy::rules::{Actions, Grant, Layout, Row, Rules};
use std::ffi::OsStr;

pub use alone::alone;
pub use loader::{Needs, Seal};
pub use network::mode;
pub use of_run::of_run as calls_of_run;
use table::Table;

/// Whether AF_UNIX sockets may be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unix {
    /// Landlock decides by their path (ABI 9).
    ByPath,
    /// The supervisor connects in the command's place, also where the network is open.
    Supervised,
    /// Under an open network, nobody could tell the sandbox's own sockets from those of the host.
    Refused,
}

/// The calls of one run.
#[derive(Clone)]
pub struct Calls {
    profile: Text,
    syscalls: Syscalls,
    network: Network,
    unix: Unix,
    /// Whether the run has namespaces of its own.
    namespaces: bool,
    arch: Arch,
}

/// What the guard allows beyond the calls of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// What the loader needs, to be taken away by the seal.
    pub loader: Needs,
    /// What the supervisor answers in a way of its own.
    pub notified: Kinds,
    /// Log mode: what is refused without a line stays so.
    pub logs: bool,
    /// So many bytes of memory at once are notified.
    pub large: Option<u64>,
    /// Whether processes stay open to the supervisor: PR_SET_DUMPABLE has no effect.
    pub dumpable: bool,
}

/// The calls of a profile with a network. `own_ipc`: in an IPC namespace of the run's own.
pub fn calls(
    profile: &Profile,
    network: &Network,
    own_ipc: bool,
    unix: Unix,
    arch: Arch,
) -> Result<Calls, Refusal> {
    let mut syscalls = profile.syscalls.clone();
    if !own_ipc {
        for call in SYSTEM_V.iter().filter_map(|name| Call::named(name.as_bytes())) {
            let built_in = |said: &CallRules| said.allow.origins().all(|origin| origin.built_in);
            if syscalls.calls.get(call).is_some_and(|said| !said.allow.is_none() && built_in(said)) {
                syscalls.calls.change(call, |said| said.allow = Grants::None);
            }
        }
    }
    Ok(Calls {
        profile: profile.name.clone(),
        syscalls,
        network: network.clone(),
        unix,
        namespaces: false,
        arch,
    })
}

/// The calls for queues, semaphores and memory that all processes of an IPC namespace share (sysvipc(7)). No rule can
/// tell those of the run from others, so what the built-in profiles say of them holds in a namespace of the run's own.
const SYSTEM_V: [&str; 12] = [
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "shmat",
    "shmctl",
    "shmdt",
    "shmget",
];

impl Calls {
    /// The calls in a run with or without namespaces of its own, a pid namespace among them. Without, what needs them
    /// is not allowed.
    #[must_use]
    pub fn inside(self, namespaces: bool) -> Calls {
        Calls { namespaces, ..self }
    }

    /// What a row of the table comes to: a default that lets calls through overrides it, but for an error of its own.
    pub fn in_effect(&self, row: Row) -> Row {
        let open = Row { allow: Grant::All, deny: Grant::None, ..row };
        match self.syscalls.default.as_deref() {
            Some(DefaultAction::Allow) => open,
            Some(DefaultAction::Log) if row.errno == 0 => open,
            Some(DefaultAction::Log) => Row { allow: Grant::All, ..row },
            Some(DefaultAction::Kill | DefaultAction::Errno(_)) | None => row,
        }
    }

    /// The entry that lets calls through which no list names, if one does.
    pub fn open_by(&self) -> Option<&Origin> {
        let default = self.syscalls.default.as_ref()?;
        matches!(default.value, DefaultAction::Allow | DefaultAction::Log).then_some(&*default.origin)
    }

    /// Adds what changing files takes, for a profile that only reads.
    pub fn add_writing(&mut self) -> Result<(), Refusal> {
        let write = profile::load(OsStr::new("write"), &Search::default())?;
        for (call, rules) in write.syscalls.calls.iter() {
            self.syscalls.calls.change(call, |said| {
                let opens = matches!(call.name(), "open" | "openat") && !matches!(said.allow, Grants::All(_));
                if (said.allowed(self.namespaces).is_none() && said.deny.is_none()) || opens {
                    let denied = (!said.deny.is_none()).then(|| (said.deny.clone(), said.errno));
                    *said = rules.clone();
                    if let Some(denied) = denied {
                        (said.deny, said.errno) = denied;
                    }
                }
            });
        }
        Ok(())
    }

    /// Adds what `--unix` takes, unless a profile of the user's denies the call, or a flag does.
    fn add_undenied(&mut self, entry: &str) -> Result<(), Refusal> {
        if self.said(name_of(entry)).is_some_and(CallRules::is_denied_by_user) {
            return Ok(());
        }
        self.add(List::Allow, "--unix", entry.as_bytes())
    }

    /// Adds what connecting to a UNIX socket takes. `brokered`: the supervisor makes the connection, so connect(2)
    /// itself stays refused. So does what is denied.
    pub fn add_sockets(&mut self, brokered: bool) -> Result<(), Refusal> {
        const CALLS: &str = "sendmsg:sendto[connected]:recvfrom:recvmsg:shutdown:setsockopt:getsockopt:\
            getsockname:getpeername:poll:ppoll:fcntl[basic]";
        if !self.allows("socket") {
            self.add_undenied("socket[unix-stream]")?;
        }
        if !brokered {
            self.add_undenied("connect")?;
        }
        for entry in CALLS.split(':') {
            if !self.allows(name_of(entry)) {
                self.add_undenied(entry)?;
            }
        }
        Ok(())
    }

    /// Whether connections to UNIX sockets are the supervisor's business. Where there is a network, all connections
    /// are: a filter cannot tell which kind of socket a number stands for.
    pub fn supervisor_connects(&self) -> bool {
        let makes = match self.network.mode {
            NetworkMode::None => self.allows("socket"),
            NetworkMode::Private => true,
            NetworkMode::Loopback => false,
            _ if self.network.is_supervised_proxy() => true,
            NetworkMode::Ports | NetworkMode::Host => self.unix == Unix::Supervised && self.allows("socket"),
        };
        makes && self.unix != Unix::ByPath && !self.allows("connect") && !self.denies_connections()
    }

    /// Whether connections are denied in words. Conditions of a denial are the filter's to look at: with an open
    /// network it can, and then has no UNIX sockets to tell apart.
    fn denies_connections(&self) -> bool {
        let open = matches!(self.network.mode, NetworkMode::Ports | NetworkMode::Host);
        self.said("connect").is_some_and(|said| match said.deny {
            Grants::None => false,
            Grants::All(_) => true,
            Grants::Some(_) => open,
        })
    }

    /// Whether it is the network alone that has the filter refuse listen(2): no port may be listened on.
    pub fn network_refuses_listening(&self) -> bool {
        let none = self.network.mode == NetworkMode::Ports && self.network.bind.is_empty();
        none && self.allows_fully("listen")
    }

    /// Who tells UNIX sockets apart.
    pub fn unix(&self) -> Unix {
        self.unix
    }

    /// Whether the supervisor makes the connections of an open network.
    pub fn connects_outside(&self) -> bool {
        matches!(self.network.mode, NetworkMode::Ports | NetworkMode::Host) && self.supervisor_connects()
    }

    /// Whether the supervisor is all that keeps an open network to the hosts that rules name.
    pub fn keeps_to_hosts(&self) -> bool {
        self.network.is_supervised_proxy() && self.connects_outside()
    }

    /// The same calls for a run in which nobody is notified after all. An open network needs its connections more than
    /// its UNIX sockets.
    #[must_use]
    pub fn without_supervisor(&self) -> Calls {
        let unix = if self.unix == Unix::Supervised { Unix::Refused } else { self.unix };
        Calls { unix, ..self.clone() }
    }

    /// Whether a pair of sockets that keep packets apart may stand in for one of datagram sockets. The supervisor
    /// writes their numbers to where the caller says, and the kernel lets it write to memory that is only
    /// executable: so not where the profile guards such memory.
    pub fn packets_stand_in(&self) -> bool {
        self.allows("socketpair") && !self.allows_fully("socketpair") && self.allows_fully("mprotect")
    }

    /// Whether a call is allowed, at least with some arguments.
    pub fn allows(&self, name: &str) -> bool {
        let allows = |said: &CallRules| !said.allowed(self.namespaces).is_none();
        self.said(name).is_some_and(|said| allows(said) && !matches!(said.deny, Grants::All(_)))
            || self.syscalls.default.as_deref() == Some(&DefaultAction::Allow)
    }

    /// Whether a call is allowed whatever its arguments are.
    pub fn allows_fully(&self, name: &str) -> bool {
        let allows = |said: &CallRules| matches!(said.allowed(self.namespaces), Grants::All(_));
        self.said(name).is_some_and(|said| allows(said) && said.deny.is_none())
            || self.syscalls.default.as_deref() == Some(&DefaultAction::Allow)
    }

    /// Whether nothing happens at a call, whatever its arguments are: it is allowed and not noted, or this architecture
    /// has none of the name.
    pub fn allows_silently(&self, name: &str) -> bool {
        let is_noted = self.said(name).is_some_and(|said| said.log.is_some());
        let exists = Call::named(name.as_bytes()).is_some_and(|call| call.number(Arch::HOST).is_some());
        !exists || self.allows_fully(name) && !is_noted
    }

    fn said(&self, name: &str) -> Option<&CallRules> {
        Call::named(name.as_bytes()).and_then(|call| self.syscalls.calls.get(call))
    }

    /// What the profile and the flags say about a call.
    pub fn rules_of(&self, call: Call) -> Option<&CallRules> {
        self.syscalls.calls.get(call)
    }

    /// How far they allow a call in this run.
    pub fn allowed(&self, call: Call) -> &Grants {
        self.rules_of(call).map_or(&Grants::None, |said| said.allowed(self.namespaces))
    }

    /// Whether the command can start processes, so that there is a tree to look after.
    pub fn starts_processes(&self) -> bool {
        // A tracer shares all but its number with the thread that makes it, and ends with the namespaces.
        let (thread, tracer) = (When::named("clone", "thread"), When::named("clone", "tracer"));
        let kept = |when: &When| *when == thread || (self.namespaces && *when == tracer);
        let thread_only = |said: &CallRules| match said.allowed(self.namespaces) {
            Grants::Some(all) => all.iter().all(|a| kept(&a.when)),
            _ => false,
        };
        let clone = self.said("clone").is_some_and(|said| !thread_only(said)) && self.allows("clone");
        clone || self.allows("fork") || self.allows("vfork") || self.allows("clone3")
    }

    /// Whether only a reaper sees to it that nothing outlives the run: there can be a tree, or the command
    /// can lose the signal that ties it to the supervisor. That belongs to its first thread, and an exec by
    /// another one puts that in its place.
    pub fn needs_reaper(&self) -> bool {
        self.starts_processes() || self.allows("execve") || self.allows("execveat")
    }

    /// The table of rules, and the conditions beside it.
    pub fn rules(&self, actions: Actions, extras: Extras) -> Result<(Box<Rules>, FreeConditions), Refusal> {
        let (mut rules, mut free) = self.syscalls.to_rules(self.arch, actions, self.namespaces)?;
        self.open_network(&mut rules);
        if !extras.loader.is_empty() {
            for (call, restriction) in extras.loader.iter() {
                grant(&mut rules, call, restriction);
            }
            grant(&mut rules, "seccomp", None);
        }
        let listens = actions.violation == bpf::RET_USER_NOTIF;
        let mut table = Table { arch: self.arch, log: actions.log, rules: &mut rules, free: &mut free };
        extras.notified.iter().for_each(|kind| table.notify(kind, listens));
        if listens && !extras.logs && extras.notified.has(Notified::RefusedPaths) {
            table.tell_of_sockets();
        }
        if let Some(bytes) = extras.large {
            table.note_large(bytes);
        }
        Ok((rules, free))
    }

    /// The variables by which the shim alone enforces the calls.
    pub fn text(&self, action: u32) -> Result<env::Text, Refusal> {
        let (rules, free) = self.rules(self.plain_actions(action), Extras::default())?;
        let conditions = "it has conditions on arguments without a name, which no variable can hold";
        let cannot =
            |why: &str| Refusal::new(format!("cannot write profile '{}' as variables: {why}", self.profile));
        if !free.is_empty() {
            return Err(cannot(conditions));
        }
        // The action has a name: it comes from the command line, by name.
        env::text(&rules).ok_or_else(|| {
            cannot(
                "it allows a call under conditions beside everything that it does not name, which no \
                variable can say",
            )
        })
    }

    fn plain_actions(&self, violation: u32) -> Actions {
        Actions { violation, log: bpf::RET_LOG, unknown: None }
    }

    /// The program that tells allowed, noted and refused apart: it allows, logs or traps.
    pub fn strict_program(&self) -> Result<Vec<Insn>, Refusal> {
        self.strict_program_with(Needs::default())
    }

    /// As [`Self::strict_program`], but allows what only the loader needs too, which a seal with this action takes away
    /// once it has run.
    pub fn unsealed_program(&self, violation: u32) -> Result<Vec<Insn>, Refusal> {
        self.strict_program_with(self.seal(violation)?.map(|seal| seal.needs).unwrap_or_default())
    }

    fn strict_program_with(&self, loader: Needs) -> Result<Vec<Insn>, Refusal> {
        let extras = Extras { loader, ..Extras::default() };
        let (rules, free) = self.rules(self.plain_actions(bpf::RET_TRAP), extras)?;
        program::assemble(&Layout { rules: &rules, extra: Some(&free) })
            .map_err(|TooLong| too_long(&self.profile))
    }

    /// Whether the filter lets all of these calls through with these arguments, and notes none.
    pub fn let_through(&self, all: &[(&str, [u64; 6])]) -> bool {
        let Ok(program) = self.strict_program() else { return false };
        all.iter().all(|(name, args)| {
            let number = Call::named(name.as_bytes()).and_then(|call| call.number(Arch::HOST));
            number.is_some_and(|nr| {
                let data = Data { nr, arch: Arch::HOST.audit(), args: *args };
                interpret::run(&program, &data) == Some(bpf::RET_ALLOW)
            })
        })
    }

    /// Whether some calls are allowed, but noted.
    pub fn notes(&self) -> bool {
        self.syscalls.calls.iter().any(|(_, said)| said.log.is_some())
    }
}

/// The call of an entry.
fn name_of(entry: &str) -> &str {
    entry.split('[').next().unwrap_or(entry)
}

/// The sentence for a filter without room.
pub fn too_long(profile: &str) -> Refusal {
    Refusal::new(format!(
        "cannot build the filter: profile '{profile}' has more rules than {} instructions can hold",
        bpf::MAX_INSNS
    ))
}
