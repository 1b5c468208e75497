//! What a profile is once it is read and its parents are merged into it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sbx_policy::bpf;
use sbx_policy::calls::Call;
use sbx_policy::restrictions::{self, RESTRICTIONS};

use super::location::{Location, Variable};
use super::pattern::Pattern;
use super::units::Bound;

/// Something that many entries share: part of the program, for the built-in profiles, or counted.
pub enum Shared<T: ?Sized + 'static> {
    /// Part of the program.
    Fixed(&'static T),
    /// Read from a file, or from the command line.
    Counted(Arc<T>),
}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        match self {
            Shared::Fixed(value) => Shared::Fixed(value),
            Shared::Counted(value) => Shared::Counted(Arc::clone(value)),
        }
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Shared::Fixed(value) => value,
            Shared::Counted(value) => value,
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Shared<T> {
        Shared::Counted(Arc::new(value))
    }
}

/// A text: part of the program, or a copy.
pub type Text = Cow<'static, str>;

/// A list: part of the program, or memory of its own.
pub type List<T> = Cow<'static, [T]>;

/// Where an entry comes from.
#[derive(Debug)]
pub struct Origin {
    /// The profile's name, or the path of its file.
    pub profile: Shared<str>,
    /// Whether it is one of the built-in profiles: their paths may be missing on this machine.
    pub built_in: bool,
    /// The key: `syscalls.allow`.
    pub key: &'static str,
    /// The place in the list, where the key is one.
    pub index: Option<usize>,
    /// The entry of a list of calls, as it was written.
    pub entry: Text,
    /// The reason that the profile gives.
    pub why: Option<Text>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    pub origin: Shared<Origin>,
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
    pub name: Text,
    /// Built in, or a file.
    pub source: Source,
    /// The files that it was read from, by the names that led to them and by their real ones.
    pub files: Vec<PathBuf>,
    /// What it is for.
    pub description: Text,
    /// The documents it was put together from, parents first, itself last.
    pub lineage: List<Shared<str>>,
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
    /// Which commands may be executed.
    pub commands: Commands,
    /// What becomes of programs that never load the shim.
    pub static_programs: Option<Given<StaticMode>>,
    /// Whether the run gets namespaces of its own; none where nothing says it.
    pub namespaces: Option<Given<Namespaces>>,
    /// The least level that will do.
    pub require: Option<Given<Level>>,
}

/// System calls: what no entry names meets the default.
#[derive(Clone, Debug, Default)]
pub struct Syscalls {
    /// What a call meets that is not allowed.
    pub default: Option<Given<DefaultAction>>,
    /// The rules of each call that is named anywhere.
    pub calls: CallTable,
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

/// The calls that are named, each once, in the order of [`Call`].
#[derive(Clone, Debug, Default)]
pub struct CallTable(pub List<(Call, CallRules)>);

impl CallTable {
    fn place(&self, call: Call) -> Result<usize, usize> {
        self.0.binary_search_by_key(&call, |(known, _)| *known)
    }

    /// The rules of a call.
    pub fn get(&self, call: Call) -> Option<&CallRules> {
        let (_, rules) = self.0.get(self.place(call).ok()?)?;
        Some(rules)
    }

    /// Changes the rules of a call; it has none yet where nothing names it.
    pub fn change(&mut self, call: Call, change: impl FnOnce(&mut CallRules)) {
        let place = self.place(call);
        let rows = self.0.to_mut();
        let place = place.unwrap_or_else(|free| {
            rows.insert(free, (call, CallRules::default()));
            free
        });
        if let Some((_, rules)) = rows.get_mut(place) {
            change(rules);
        }
    }

    /// Every call with its rules.
    pub fn iter(&self) -> impl Iterator<Item = (Call, &CallRules)> {
        self.0.iter().map(|(call, rules)| (*call, rules))
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
    pub log: Option<Shared<Origin>>,
}

/// How far a call is allowed or denied.
#[derive(Clone, Debug, Default)]
pub enum Grants {
    /// Not at all.
    #[default]
    None,
    /// Whatever its arguments are.
    All(Shared<Origin>),
    /// Where one of these holds.
    Some(List<Alternative>),
}

impl Grants {
    /// Whether there is nothing.
    pub fn is_none(&self) -> bool {
        matches!(self, Grants::None)
    }

    /// Where the entries come from.
    pub fn origins(&self) -> impl Iterator<Item = &Shared<Origin>> {
        let (all, some) = match self {
            Grants::None => (None, &[][..]),
            Grants::All(origin) => (Some(origin), &[][..]),
            Grants::Some(alternatives) => (None, &**alternatives),
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
    pub origin: Shared<Origin>,
}

/// A condition on a call's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// A named restriction: its place in [`RESTRICTIONS`].
    Named(usize),
    /// All of these comparisons.
    Free(List<restrictions::Condition>),
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
    pub read: List<PathEntry>,
    /// Reading and executing.
    pub execute: List<PathEntry>,
    /// Reading and changing.
    pub write: List<PathEntry>,
    /// Neither, although something above is allowed.
    pub deny: List<PathEntry>,
    /// Read as ever, but not changed, replaced, removed or made, although something above may be changed.
    pub protect: List<Given<Protection>>,
}

/// One path of a list.
pub type PathEntry = Given<Location>;

/// One path of `protect`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Protection {
    /// Where.
    pub path: Location,
    /// Who reads it: where there is none of these, what does not exist may be made. Empty: it may not in any case.
    pub readers: List<Location>,
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

/// Sockets.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Which network there is.
    pub mode: Option<Given<NetworkMode>>,
    /// Where TCP connections may go.
    pub connect: List<Given<Endpoint>>,
    /// TCP ports that may be listened on.
    pub bind: List<Given<u16>>,
    /// AF_UNIX sockets that may be connected to.
    pub unix: List<PathEntry>,
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
    /// A network of the run's own: loopback, and nothing else.
    Private,
}

/// Where a connection may go: a host (any, where it is `*`) and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// A name, an address, or `*`.
    pub host: Text,
    /// The TCP port.
    pub port: u16,
}

/// Environment variables.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// Names that are passed on, `*` standing for anything.
    pub inherit: List<Given<Pattern>>,
    /// Variables that are set.
    pub set: List<(Text, Given<Location>)>,
    /// Names that are never passed on, whatever `inherit` says.
    pub deny: List<Given<Pattern>>,
}

/// Resource limits. What a document lifts explicitly is there as [`Bound::Unlimited`].
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// How long the command may run.
    pub timeout: Option<Given<Bound<Duration>>>,
    /// How many bytes of what it writes to stdout, and to stderr, are passed on.
    pub output: Option<Given<Bound<u64>>>,
    /// How many processes and threads there may be at a time.
    pub processes: Option<Given<Bound<u64>>>,
    /// How many descriptors a process may have.
    pub open_files: Option<Given<Bound<u64>>>,
    /// How big a file may be made.
    pub file_size: Option<Given<Bound<u64>>>,
    /// How much memory all processes together may use.
    pub memory: Option<Given<Bound<u64>>>,
    /// How much processor time a process may use.
    pub cpu: Option<Given<Bound<Duration>>>,
}

/// Which commands may be executed, by name or path; `*` stands for anything.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// Only these, unless empty.
    pub allow: List<Given<Text>>,
    /// Not these.
    pub block: List<Given<Text>>,
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

/// `namespaces`: whether the run gets user, mount, pid, ipc and uts namespaces of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Where the machine gives them; where it does not, that is said.
    Auto,
    /// None are made.
    None,
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
    pub(crate) fn empty(name: Text, source: Source) -> Profile {
        Profile {
            name,
            source,
            files: Vec::new(),
            description: Text::default(),
            lineage: List::default(),
            syscalls: Syscalls::default(),
            paths: Paths::default(),
            network: Network::default(),
            env: Env::default(),
            limits: Limits::default(),
            commands: Commands::default(),
            static_programs: None,
            namespaces: None,
            require: None,
        }
    }

    /// Whether something in it begins with a variable: a scratch directory that nothing names need not be made.
    pub fn uses(&self, variable: Variable) -> bool {
        let paths = &self.paths;
        let lists = [&paths.read, &paths.execute, &paths.write, &paths.deny];
        let mut entries = lists
            .into_iter()
            .flat_map(|list| list.iter())
            .chain(self.network.unix.iter())
            .chain(self.env.set.iter().map(|(_, value)| value));
        entries.any(|entry| entry.base == Some(variable))
            || paths.protect.iter().any(|entry| entry.path.base == Some(variable))
    }

    /// Whether it allows everything, so that it needs `--dangerously-unconfined`.
    pub fn is_unrestricted(&self) -> bool {
        self.syscalls.default.as_deref() == Some(&DefaultAction::Allow)
    }
}
