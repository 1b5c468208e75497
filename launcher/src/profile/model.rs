//! A profile: the table of its keys.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::hosts::HostRule;
use crate::profile::calls::{DefaultAction, Syscalls};
use crate::profile::error::Fault;
use crate::profile::json::Fields;
use crate::profile::keys::{Author, Key, Part, Section, each, one, section, sections};
use crate::profile::location::Location;
use crate::profile::origin::{Given, List, Origin, Shared, Text};
use crate::profile::pattern::Pattern;
use crate::profile::syscalls;
use crate::profile::units::{self, Bound};
use crate::profile::values::{
    argument, command, copy, host_groups, hosts, limit, openable, path_entry, port, protection,
    variable_name, variables, word,
};
use crate::profile::words::{
    HomeMode, Level, Namespaces, NetworkMode, SettingsFormat, StaticMode, Variable, WhenMade,
};

/// Where a profile itself comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Embedded in `sbx`.
    #[default]
    BuiltIn,
    /// A file.
    File(PathBuf),
}

sections! {
    /// The rights of one kind of command.
    Profile "" [
        /// The name it was asked for by; for a path, the file's name without `.json`.
        name: Text,
        /// Built in, or a file.
        source: Source,
        /// The files that it was read from, by the names that led to them and by their real ones.
        files: Vec<PathBuf>,
        /// Its purpose.
        description: Text,
        /// The documents it was merged from, parents first, itself last.
        lineage: List<Shared<str>>,
    ] {
        /// System calls.
        "syscalls" syscalls: Syscalls = syscalls::read,
        /// Files.
        "paths" paths: Paths = section,
        /// The home directory.
        "home" home: Home = section,
        /// Sockets.
        "network" network: Network = section,
        /// Environment variables.
        "env" env: Env = section,
        /// Resource limits.
        "limits" limits: Limits = section,
        /// Which commands may be executed.
        "commands" commands: Commands = section,
        /// The treatment of programs that never load the shim.
        "static" static_programs: Option<Given<StaticMode>> = one(word(StaticMode::WORDS)),
        /// Whether the run gets its own namespaces; none if no document says so.
        "namespaces" namespaces: Option<Given<Namespaces>> = one(word(Namespaces::WORDS)),
        /// The lowest level that will do.
        "require" require: Option<Given<Level>> = one(word(Level::WORDS)),
        /// How `sbx agent` starts an agent under this profile. It gives no right to anybody.
        "agent" agent: Agent = section,
    }

    /// Files, by what may be done with them and what is below them.
    Paths "paths." {
        /// Reading.
        "read" read: List<PathEntry> = each(openable),
        /// Reading and executing.
        "execute" execute: List<PathEntry> = each(openable),
        /// Reading and changing.
        "write" write: List<PathEntry> = each(openable),
        /// No access, even below a path that is allowed.
        "deny" deny: List<PathEntry> = each(path_entry),
        /// Readable, but not changed, replaced, removed or created, even below a path that may be changed.
        "protect" protect: List<Given<Protection>> = each(protection),
    }

    /// The home directory.
    Home "home." {
        /// Whose it is.
        "mode" mode: Option<Given<HomeMode>> = one(word(HomeMode::WORDS)),
        /// Directories of packages. In a private home the user's own are below what the run writes, and stay unchanged.
        "stores" stores: List<PathEntry> = each(path_entry),
        /// Files of settings of which a private home has a copy with the harmless lines.
        "copies" copies: List<Given<SettingsCopy>> = each(copy),
        /// Variables that are set where the home is closed, sorted by name.
        "closed_env" closed_env: List<(Text, Given<Location>)> = variables,
    }

    /// Sockets.
    Network "network." {
        /// Which network there is.
        "mode" mode: Option<Given<NetworkMode>> = one(word(NetworkMode::WORDS)),
        /// Rules about hosts that a name stands for, sorted by it.
        "groups" groups: List<(Text, Given<HostGroup>)> = host_groups,
        /// Where TCP connections may go.
        "connect" connect: List<Given<Text>> = each(hosts(HostRule::parse)),
        /// Where they may not go, whatever else is allowed.
        "deny" deny: List<Given<Text>> = each(hosts(HostRule::parse_denial)),
        /// TCP ports that may be listened on.
        "bind" bind: List<Given<u16>> = each(port),
        /// AF_UNIX sockets that may be connected to.
        "unix" unix: List<PathEntry> = each(path_entry),
        /// Variables that are set where no other machine can be reached, sorted by name.
        "closed_env" closed_env: List<(Text, Given<Location>)> = variables,
    }

    /// Environment variables.
    Env "env." {
        /// Names that are passed on; `*` matches any text.
        "inherit" inherit: List<Given<Pattern>> = each(variable_name),
        /// Variables that are set, sorted by name.
        "set" set: List<(Text, Given<Location>)> = variables,
        /// Names whose values are addresses: passed on where the network is open, and nowhere with a password.
        "addresses" addresses: List<Given<Pattern>> = each(variable_name),
        /// Names that are never passed on, even if `inherit` names them.
        "deny" deny: List<Given<Pattern>> = each(variable_name),
    }

    /// Resource limits. A limit that a document lifts is there as [`Bound::Unlimited`].
    Limits "limits." {
        /// Running time of the command.
        "timeout" timeout: Option<Given<Bound<Duration>>> = one(limit(units::duration, "a duration")),
        /// Bytes that are passed on of what it writes to stdout, and to stderr.
        "output" output: Option<Given<Bound<u64>>> = one(limit(units::size, "a size")),
        /// Processes and threads at a time.
        "processes" processes: Option<Given<Bound<u64>>> = one(limit(units::count, "a number")),
        /// Descriptors of a process.
        "open_files" open_files: Option<Given<Bound<u64>>> = one(limit(units::descriptors, "a number")),
        /// Size of a file that the command writes.
        "file_size" file_size: Option<Given<Bound<u64>>> = one(limit(units::size, "a size")),
        /// Memory of all processes together.
        "memory" memory: Option<Given<Bound<u64>>> = one(limit(units::size, "a size")),
        /// Processor time of a process.
        "cpu" cpu: Option<Given<Bound<Duration>>> = one(limit(units::duration, "a duration")),
    }

    /// Which commands may be executed, by name or path; `*` matches any text.
    Commands "commands." {
        /// Only these, unless empty.
        "allow" allow: List<Given<Text>> = each(command),
        /// Not these.
        "block" block: List<Given<Text>> = each(command),
    }

    /// An agent: what `sbx agent` adds to a run under its profile.
    Agent "agent." {
        /// Names of its program. The first that `PATH` has counts.
        "programs" programs: List<Given<Text>> = each(command),
        /// Arguments before the user's, such as those that turn its own sandbox off.
        "arguments" arguments: List<Given<Text>> = each(argument),
        /// Variables with keys, which are passed on if they are set.
        "keys" keys: List<Given<Pattern>> = each(variable_name),
        /// Variables that move the agent's settings, sorted by name, with the place that this profile is about.
        "places" places: List<(Text, Given<Location>)> = variables,
        /// What is known not to work, and why that does no harm.
        "noise" noise: List<Given<Text>> = each(argument),
    }
}

/// One path of a list.
pub type PathEntry = Given<Location>;

/// One path of `protect`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Protection {
    /// The path.
    pub path: Location,
    /// The programs that read it. If there are some and none exists, the command may create the path.
    pub readers: List<Location>,
    /// What happens if something makes it.
    pub when_made: WhenMade,
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

/// One file of `copies`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SettingsCopy {
    /// The file.
    pub path: Location,
    /// How it is written.
    pub format: SettingsFormat,
    /// Names of settings that hold no secret, with their sections; `*` matches any text. All others are left out.
    pub keep: List<Pattern>,
}

impl fmt::Display for SettingsCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

/// The rules of one group of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostGroup {
    /// As they are written.
    pub rules: List<Text>,
}

impl Profile {
    /// Whether an entry begins with a variable: a scratch directory that nothing names need not be made.
    pub fn uses(&self, variable: Variable) -> bool {
        let paths = &self.paths;
        let lists = [&paths.read, &paths.execute, &paths.write, &paths.deny];
        let mut entries = lists
            .into_iter()
            .flat_map(|list| list.iter())
            .chain(self.network.unix.iter())
            .chain(self.set_for_some().chain(self.env.set.iter()).map(|(_, value)| value));
        entries.any(|entry| entry.base == Some(variable))
            || paths.protect.iter().any(|entry| entry.path.base == Some(variable))
    }

    /// The variables that some runs get.
    pub fn set_for_some(&self) -> impl Iterator<Item = &(Text, Given<Location>)> {
        self.home.closed_env.iter().chain(self.network.closed_env.iter())
    }

    /// Whether it allows everything, so that it needs `--dangerously-unconfined`.
    pub fn is_unrestricted(&self) -> bool {
        self.syscalls.default.as_deref() == Some(&DefaultAction::Allow)
    }
}
