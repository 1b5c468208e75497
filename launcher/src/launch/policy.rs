//! The policy of one run: a profile with its variables expanded, flags merged and names resolved.

use crate::launch::namespaces::Layout;
use crate::launch::within::is_within;
use std::path::{Path, PathBuf};

/// What may be done below a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathRights {
    /// Files read, directories listed.
    pub read: bool,
    /// Files executed.
    pub execute: bool,
    /// Files changed, made, renamed and removed.
    pub write: bool,
    /// Devices below it controlled (ioctl(2)).
    pub devices: bool,
    /// UNIX sockets connected to (Landlock ABI 9).
    pub connect: bool,
}

impl PathRights {
    /// Everything.
    pub const ALL: PathRights =
        PathRights { read: true, execute: true, write: true, devices: true, connect: true };

    /// Whether files may be changed; what is written to a device changes none.
    pub fn changes_files(self) -> bool {
        self.write && !self.devices
    }

    /// Both.
    pub fn union(self, other: PathRights) -> PathRights {
        self.with(other, |a, b| a || b)
    }

    /// What is in both.
    pub fn common(self, other: PathRights) -> PathRights {
        self.with(other, |a, b| a && b)
    }

    /// What is not in the other.
    pub fn without(self, other: PathRights) -> PathRights {
        self.with(other, |a, b| a && !b)
    }

    fn with(self, other: PathRights, both: fn(bool, bool) -> bool) -> PathRights {
        PathRights {
            read: both(self.read, other.read),
            execute: both(self.execute, other.execute),
            write: both(self.write, other.write),
            devices: both(self.devices, other.devices),
            connect: both(self.connect, other.connect),
        }
    }
}

/// Rights on a path and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// Absolute.
    pub path: PathBuf,
    /// What may be done.
    pub rights: PathRights,
    /// From a built-in profile: passed over where it does not exist.
    pub optional: bool,
    /// Whether symbolic links lead on to what it is about. Where the path was looked up while the run was planned there
    /// are none, and one that is there by now is the work of somebody who may write there: the command of another run.
    pub follows: bool,
}

/// Whether rules let something at a path be changed that is no device.
pub fn may_change(rules: &[PathRule], layout: Option<&Layout>, path: &Path) -> bool {
    let mut changing = rules.iter().filter(|rule| rule.rights.changes_files());
    changing.any(|rule| holds(rule, layout, path))
}

/// Whether a rule is about a path.
pub fn holds(rule: &PathRule, layout: Option<&Layout>, path: &Path) -> bool {
    is_within(path, &rule.path) && !layout.is_some_and(|layout| layout.cuts(&rule.path, path))
}

/// Which sockets reach out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The mode.
    pub mode: Mode,
    /// TCP ports that may be connected to, with [`Mode::Ports`].
    pub connect: Vec<u16>,
    /// TCP ports that may be bound, with [`Mode::Ports`].
    pub bind: Vec<u16>,
}

/// How far the network is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// No IPv4 or IPv6 socket at all.
    #[default]
    None,
    /// TCP, and only to and from the listed ports.
    Ports,
    /// The host's network.
    Host,
    /// A network of the run's own, which has loopback and nothing else.
    Private,
}

impl Network {
    /// Whether Landlock's TCP rights are handled, so that what is not listed is refused.
    pub fn handles_tcp(&self) -> bool {
        matches!(self.mode, Mode::None | Mode::Ports)
    }
}
