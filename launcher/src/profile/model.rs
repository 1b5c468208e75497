//! What a profile is once it is read and its parents are merged into it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use sbx_policy::bpf;
use sbx_policy::calls::Call;
use sbx_policy::restrictions::{self, RESTRICTIONS};

use super::location::{Location, Variable};

/// Where an entry comes from.
#[derive(Debug)]
pub struct Origin {
    /// The profile's name, or the path of its file.
    pub profile: Arc<str>,
    /// Whether it is one of the built-in profiles: their paths may be missing on this machine.
    pub built_in: bool,
    /// The key: `syscalls.allow`.
    pub key: &'static str,
    /// The place in the list, where the key is one.
    pub index: Option<usize>,
    /// The entry of a list of calls, as it was written.
    pub entry: Cow<'static, str>,
    /// The reason that the profile gives.
    pub why: Option<Cow<'static, str>>,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.key)?;
        if let Some(index) = self.index {
            write!(f, "[{index}]")?;
        }
        write!(f, " of profile '{}'", self.profile)
    }
}

/// A value, and where it comes from.
#[derive(Clone, Debug)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// The profile and key.
    pub origin: Arc<Origin>,
}

impl<T> Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Where a profile itself comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Embedded in `sbx`.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

/// Everything that one kind of command may do.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The name it was asked for by; for a path, the file's name without `.json`.
    pub name: String,
    /// Built in, or a file.
    pub source: Source,
    /// What it is for.
    pub description: String,
    /// The documents it was put together from, parents first, itself last.
    pub lineage: Vec<Arc<str>>,
    /// System calls.
    pub syscalls: Syscalls,
    /// Files.
    pub paths: Paths,
    /// Sockets.
    pub network: Network,
    /// Environment variables.
    pub env: Env,
    /// Resource limits.
    pub limits: Limits,
    /// Which commands may be the one that is run.
    pub commands: Commands,
    /// What becomes of programs that never load the shim.
    pub static_programs: Option<Given<StaticMode>>,
    /// The least level that will do.
    pub require: Option<Given<Level>>,
}

/// System calls: what no entry names meets the default.
#[derive(Clone, Debug, Default)]
pub struct Syscalls {
    /// What a call meets that is not allowed.
    pub default: Option<Given<DefaultAction>>,
    /// The rules of each call that is named anywhere.
    pub calls: BTreeMap<Call, CallRules>,
}

/// `syscalls.default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// No confinement but the denials: `unrestricted`.
    Allow,
    /// The process is killed.
    Kill,
    /// It is let through and noted.
    Log,
    /// It fails with this error number.
    Errno(u16),
}

impl DefaultAction {
    /// What a filter returns for a violation; `None` where there is none.
    pub fn violation(self) -> Option<u32> {
        match self {
            DefaultAction::Allow => None,
            DefaultAction::Kill => Some(bpf::RET_KILL_PROCESS),
            DefaultAction::Log => Some(bpf::RET_LOG),
            DefaultAction::Errno(number) => Some(bpf::RET_ERRNO | u32::from(number)),
        }
    }
}

/// The rules of one call.
#[derive(Clone, Debug, Default)]
pub struct CallRules {
    /// Where it is allowed.
    pub allow: Grants,
    /// Where it is denied, which wins over allowed.
    pub deny: Grants,
    /// The error number of a denial; `None`: the default action.
    pub errno: Option<u16>,
    /// Allowed calls are noted.
    pub log: Option<Arc<Origin>>,
}

/// How far a call is allowed or denied.
#[derive(Clone, Debug, Default)]
pub enum Grants {
    /// Not at all.
    #[default]
    None,
    /// Whatever its arguments are.
    All(Arc<Origin>),
    /// Where one of these holds.
    Some(Vec<Alternative>),
}

impl Grants {
    /// Whether there is nothing.
    pub fn is_none(&self) -> bool {
        matches!(self, Grants::None)
    }

    /// Where the entries come from.
    pub fn origins(&self) -> impl Iterator<Item = &Arc<Origin>> {
        let (all, some) = match self {
            Grants::None => (None, &[][..]),
            Grants::All(origin) => (Some(origin), &[][..]),
            Grants::Some(alternatives) => (None, alternatives.as_slice()),
        };
        all.into_iter().chain(some.iter().map(|alternative| &alternative.origin))
    }
}

/// One condition on a call's arguments.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// What must hold.
    pub when: When,
    /// Where the entry comes from.
    pub origin: Arc<Origin>,
}

/// A condition on a call's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A named restriction: its place in [`RESTRICTIONS`].
    Named(usize),
    /// All of these comparisons.
    Free(Vec<restrictions::Condition>),
}

impl When {
    /// The conditions: alternatives, each a list of which all must hold.
    pub fn any(&self) -> Vec<&[restrictions::Condition]> {
        match self {
            When::Named(place) => RESTRICTIONS.get(*place).map_or(Vec::new(), |r| r.any.to_vec()),
            When::Free(conditions) => vec![conditions],
        }
    }
}

/// Files, by what may be done with them and what is below them.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Reading.
    pub read: Vec<PathEntry>,
    /// Reading and executing.
    pub execute: Vec<PathEntry>,
    /// Reading and changing.
    pub write: Vec<PathEntry>,
    /// Neither, although something above is allowed.
    pub deny: Vec<PathEntry>,
}

/// One path of a list.
pub type PathEntry = Given<Location>;

/// Sockets.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Which network there is.
    pub mode: Option<Given<NetworkMode>>,
    /// Where TCP connections may go.
    pub connect: Vec<Given<Endpoint>>,
    /// TCP ports that may be listened on.
    pub bind: Vec<Given<u16>>,
    /// AF_UNIX sockets that may be connected to.
    pub unix: Vec<PathEntry>,
}

/// `network.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkMode {
    /// No internet sockets.
    None,
    /// The machine's own network.
    Host,
    /// The machine's network, but only to what `network.connect` names.
    Allow,
}

/// Where a connection may go: a host (any, where it is `*`) and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A name, an address, or `*`.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

/// Environment variables.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// Names that are passed on, `*` standing for anything.
    pub inherit: Vec<Given<Cow<'static, str>>>,
    /// Variables that are set.
    pub set: BTreeMap<Cow<'static, str>, Given<Location>>,
    /// Names that are never passed on, whatever `inherit` says.
    pub deny: Vec<Given<Cow<'static, str>>>,
}

/// Resource limits.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// How long the command may run.
    pub timeout: Option<Given<std::time::Duration>>,
    /// How many bytes it may write to stdout and stderr.
    pub output: Option<Given<u64>>,
    /// How many processes there may be.
    pub processes: Option<Given<u64>>,
    /// How many descriptors a process may have.
    pub open_files: Option<Given<u64>>,
    /// How big a file may be made.
    pub file_size: Option<Given<u64>>,
    /// How much memory a process may use.
    pub memory: Option<Given<u64>>,
    /// How much processor time a process may use.
    pub cpu: Option<Given<std::time::Duration>>,
}

/// Which commands may be the one that is run, by name or path; `*` stands for anything.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Only these, unless empty.
    pub allow: Vec<Given<Cow<'static, str>>>,
    /// Not these.
    pub block: Vec<Given<Cow<'static, str>>>,
}

/// `static`: what becomes of programs that never load the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticMode {
    /// Refused.
    Block,
    /// Run under the guard alone, with a line that says so.
    Warn,
    /// Run under the guard alone.
    Allow,
    /// Run under the guard alone, as the user wishes.
    Confine,
}

/// `require`: what the kernel must be able to enforce at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// System calls.
    Minimal,
    /// And files.
    Standard,
    /// And namespaces.
    Full,
}

impl Profile {
    pub(crate) fn empty(name: String, source: Source) -> Profile {
        Profile {
            name,
            source,
            description: String::new(),
            lineage: Vec::new(),
            syscalls: Syscalls::default(),
            paths: Paths::default(),
            network: Network::default(),
            env: Env::default(),
            limits: Limits::default(),
            commands: Commands::default(),
            static_programs: None,
            require: None,
        }
    }

    /// Whether something in it begins with a variable: a scratch directory that nothing names need not be made.
    pub fn uses(&self, variable: Variable) -> bool {
        let paths = &self.paths;
        let lists = [&paths.read, &paths.execute, &paths.write, &paths.deny, &self.network.unix];
        let mut entries = lists.into_iter().flatten().chain(self.env.set.values());
        entries.any(|entry| entry.base == Some(variable))
    }

    /// Whether it allows everything, so that it needs `--dangerously-unconfined`.
    pub fn is_unrestricted(&self) -> bool {
        self.syscalls.default.as_deref() == Some(&DefaultAction::Allow)
    }
}
