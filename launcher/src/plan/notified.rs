//! System calls that the supervisor answers in a way of its own: which kinds there are, the calls of each,
//! and their order.
//!
//! `plan::calls` has the filter notify the supervisor of them, and `supervise::dispatch` makes its table from
//! these lists.

/// A kind of notified call. Each has one handler in `supervise::handlers`.
///
/// **The order** of the variants is the order in which handlers get a call, until one of them answers it.
/// What no handler answers gets the plain answer: an error, the end of the run, or "continue".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notified {
    /// Calls that make a task, where the supervisor counts tasks. First, because these calls are frequent,
    /// the answer takes nothing of the caller's memory, and no other handler has anything to say about
    /// them.
    Tasks,
    /// Requests for much memory at once, where the kernel limits each process, and the ends of processes.
    Memory,
    /// Calls that put a process into a further domain of Landlock. Before those that act in callers' places.
    Domains,
    /// Renames that may replace a configuration of git. Before `RefusedPaths`, which would blame the mount
    /// on the configuration for a rename that the supervisor makes.
    GitConfig,
    /// Sockets that are to wait for connections.
    Listen,
    /// Connections that the supervisor makes.
    Connect,
    /// Pairs of datagram sockets, for which other ones stand in.
    DatagramPairs,
    /// Opening `/dev/null` for writing, where the profile opens nothing for writing.
    NullDevice,
    /// Sockets and pipes that are to signal their owner.
    SignalDriven,
    /// Changes of modes, owners, times, extended attributes and flags.
    Attributes,
    /// TCP ports that Landlock is going to refuse, where nobody else looks at connections.
    Ports,
    /// The prctl(2) by which the explainer library asks for a hard link that leads to another mount.
    Links,
    /// The prctl(2) by which the explainer library says where it keeps refused calls.
    Told,
    /// Changes of files by static programs, which load no explainer library.
    StaticPrograms,
    /// Calls that Landlock is going to refuse, to be named. Last, because this is about what the kernel
    /// decides: a call that another handler answers never gets there.
    RefusedPaths,
}

/// The calls that a handler is asked about.
#[derive(Clone, Copy, Debug)]
pub enum Answers {
    /// Those on these lists.
    These(&'static [&'static [&'static str]]),
    /// All that are notified, for whatever reason.
    Every,
}

impl Notified {
    /// All kinds, in their order.
    pub const ORDER: [Notified; 15] = [
        Notified::Tasks,
        Notified::Memory,
        Notified::Domains,
        Notified::GitConfig,
        Notified::Listen,
        Notified::Connect,
        Notified::DatagramPairs,
        Notified::NullDevice,
        Notified::SignalDriven,
        Notified::Attributes,
        Notified::Ports,
        Notified::Links,
        Notified::Told,
        Notified::StaticPrograms,
        Notified::RefusedPaths,
    ];

    /// Those that do not stand in it would never be registered.
    const COMPLETE: () = assert!(Notified::ORDER.len() == Notified::RefusedPaths as usize + 1);

    /// The calls that its handler is asked about.
    pub const fn answers(self) -> Answers {
        match self {
            Notified::Tasks => Answers::These(&[&TASKS]),
            Notified::Memory => Answers::These(&[&MEMORY, &["exit_group"]]),
            Notified::Domains => Answers::These(&[&DOMAINS]),
            Notified::GitConfig => Answers::These(&[&REPLACING]),
            Notified::Listen => Answers::These(&[&LISTENING]),
            Notified::Connect => Answers::These(&[&["connect"]]),
            Notified::DatagramPairs => Answers::These(&[&["socketpair"]]),
            Notified::NullDevice => Answers::These(&[&["open", "openat", "creat"]]),
            Notified::SignalDriven => Answers::These(&[&["fcntl", "ioctl"]]),
            Notified::Attributes => Answers::These(&[&ATTRIBUTES, &XATTRS, &["ioctl"]]),
            Notified::Ports => Answers::These(&[&PORTS]),
            Notified::Links => Answers::These(&[&["prctl"]]),
            Notified::Told => Answers::These(&[&["prctl"]]),
            Notified::StaticPrograms => Answers::These(&[&OPENING, &CHANGING, &["exit_group"]]),
            Notified::RefusedPaths => Answers::Every,
        }
    }

    /// Whether the filter notifies calls of this kind although the profile allows them, so that not every
    /// notified call is a violation.
    pub const fn notifies_allowed(self) -> bool {
        match self {
            Notified::Tasks
            | Notified::Memory
            | Notified::Domains
            | Notified::GitConfig
            | Notified::Listen
            | Notified::Attributes
            | Notified::Ports
            | Notified::StaticPrograms
            | Notified::RefusedPaths => true,
            Notified::Connect
            | Notified::DatagramPairs
            | Notified::NullDevice
            | Notified::SignalDriven
            | Notified::Links
            | Notified::Told => false,
        }
    }
}

/// The kinds of notified calls that a run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// The kinds of which this holds.
    pub fn of(has: impl Fn(Notified) -> bool) -> Kinds {
        const { Notified::COMPLETE };
        let bits = |all: u16, kind: Notified| all | u16::from(has(kind)) << kind as u8;
        Kinds(Notified::ORDER.into_iter().fold(0, bits))
    }

    /// These and one more.
    #[must_use]
    pub const fn and(self, kind: Notified) -> Kinds {
        Kinds(self.0 | 1 << kind as u8)
    }

    /// Whether the run has this kind.
    pub const fn has(self, kind: Notified) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// The kinds that the run has, in their order.
    pub fn iter(self) -> impl Iterator<Item = Notified> {
        Notified::ORDER.into_iter().filter(move |kind| self.has(*kind))
    }
}

/// The calls that change modes, owners and times.
pub const ATTRIBUTES: [&str; 12] = [
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "lchown",
    "fchown",
    "fchownat",
    "utime",
    "utimes",
    "futimesat",
    "utimensat",
];
/// The calls that change extended attributes and access lists. Attributes that the command may not change,
/// and all where no supervisor listens, get the answer of a file system without them, so that programs
/// which copy them go on.
pub const XATTRS: [&str; 8] = [
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "setxattrat",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "removexattrat",
];
/// The calls that always get that answer.
pub const UNSUPPORTED: [&str; 1] = ["file_setattr"];
/// The calls by which a process restricts itself further (landlock(7)).
pub const DOMAINS: [&str; 2] = ["landlock_create_ruleset", "landlock_restrict_self"];
/// The calls that put one file in the place of another, where both have to be files.
pub const REPLACING: [&str; 2] = ["rename", "renameat"];
/// The calls by which a socket waits for connections.
pub const LISTENING: [&str; 1] = ["listen"];
/// The calls that make one socket.
pub const SOCKETS: [&str; 1] = ["socket"];
/// The calls on TCP ports.
pub const PORTS: [&str; 2] = ["connect", "bind"];
/// The calls that ask for memory of any size.
pub const MEMORY: [&str; 2] = ["mmap", "mremap"];
/// The calls that make a task.
pub const TASKS: [&str; 4] = ["clone", "clone3", "fork", "vfork"];
/// The calls that open a file, with flags that say what for.
pub const OPENING: [&str; 2] = ["open", "openat"];
/// Those of the calls that change a directory that programs fail by.
pub const CHANGING: [&str; 8] =
    ["mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2"];
/// The calls that Landlock decides about.
pub const DECIDED_BY_LANDLOCK: [&str; 26] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "truncate",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "rmdir",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "execve",
    "execveat",
    "bind",
    "connect",
    "kill",
    "tkill",
    "tgkill",
];

/// All calls that change attributes.
pub fn attributes() -> impl Iterator<Item = &'static str> {
    ATTRIBUTES.into_iter().chain(XATTRS).chain(UNSUPPORTED)
}

/// Whether calls of this name, which change attributes, are the supervisor's to answer.
pub fn changes_attributes(name: &str) -> bool {
    ATTRIBUTES.contains(&name) || XATTRS.contains(&name)
}

/// The argument that holds the mode, of `chmod` and the calls like it.
pub fn mode_at(name: &str) -> usize {
    if matches!(name, "chmod" | "fchmod") { 1 } else { 2 }
}

/// Whether a call asks for the set-user-ID or the set-group-ID bit.
pub fn asks_for_id(name: &str, args: &[u64; 6]) -> bool {
    const ID_BITS: u64 = 0o6000;
    matches!(name, "chmod" | "fchmod" | "fchmodat" | "fchmodat2") && args[mode_at(name)] & ID_BITS != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_variants_and_a_run_keeps_it() {
        assert!(Notified::ORDER.is_sorted());
        let kinds = Kinds::of(|kind| matches!(kind, Notified::RefusedPaths | Notified::GitConfig));
        assert_eq!(kinds.iter().collect::<Vec<_>>(), [Notified::GitConfig, Notified::RefusedPaths]);
        assert!(Kinds::of(|_| true).iter().eq(Notified::ORDER));
    }
}
