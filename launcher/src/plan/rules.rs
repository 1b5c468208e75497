//! The policy of one run: a profile with its variables expanded, flags merged and names resolved.

use crate::plan::namespaces::Layout;
use crate::plan::network::Hosts;
use crate::profile::NetworkMode;
use crate::sys::path::canonical;
use crate::sys::within::is_within;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
    /// To read.
    pub const READ: PathRights =
        PathRights { read: true, execute: false, write: false, devices: false, connect: false };
    /// To read and execute.
    pub const EXECUTE: PathRights = PathRights { execute: true, ..PathRights::READ };
    /// To read and write.
    pub const WRITE: PathRights = PathRights { write: true, ..PathRights::READ };

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
    /// Passed over where the path does not exist.
    pub optional: bool,
    /// From a built-in profile: about what every system has, and no choice of the user's.
    pub built_in: bool,
    /// Whether a symbolic link at the path is followed. It is not where planning has resolved the path: a link that is
    /// there by now was made by the command of another run.
    pub follows: bool,
}

impl PathRule {
    /// A rule for a path that was looked up: it has to be there, and it is no link.
    pub fn new(path: PathBuf, rights: PathRights) -> PathRule {
        PathRule { path, rights, optional: false, built_in: false, follows: false }
    }

    /// Where it is. What planning has looked up is not looked up again: a command of another run may have put a link
    /// there by now, and it would be about what that leads to.
    pub fn place(&self) -> Cow<'_, Path> {
        if self.follows { canonical(&self.path).into() } else { Cow::from(&self.path) }
    }

    /// One rule a path.
    pub fn merged(rules: Vec<PathRule>) -> Vec<PathRule> {
        let mut merged: Vec<PathRule> = Vec::with_capacity(rules.len());
        let mut places: HashMap<OsString, usize> = HashMap::with_capacity(rules.len());
        for rule in rules {
            // By the names as they are written: few rules have the same path in other words.
            match places.get(rule.path.as_os_str()).and_then(|place| merged.get_mut(*place)) {
                Some(known) => {
                    known.rights = PathRights::union(known.rights, rule.rights);
                    known.optional &= rule.optional;
                    known.built_in &= rule.built_in;
                    known.follows &= rule.follows;
                }
                None => {
                    places.insert(rule.path.clone().into_os_string(), merged.len());
                    merged.push(rule);
                }
            }
        }
        merged
    }
}

/// Whether rules let something at a path be changed that is no device.
pub fn may_change(rules: &[PathRule], layout: Option<&Layout>, path: &Path) -> bool {
    let mut changing = rules.iter().filter(|rule| rule.rights.changes_files());
    changing.any(|rule| holds(rule, layout, path))
}

/// Whether a UNIX socket at a path may be connected to: one that is named, or lies where the command may write.
pub fn may_connect(rules: &[PathRule], named: &[PathBuf], layout: Option<&Layout>, path: &Path) -> bool {
    named.iter().any(|named| named == path) || may_change(rules, layout, path)
}

/// Whether a rule is about a path.
pub fn holds(rule: &PathRule, layout: Option<&Layout>, path: &Path) -> bool {
    is_within(path, &rule.path) && !layout.is_some_and(|layout| layout.cuts(&rule.path, path))
}

/// Which sockets reach out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The mode. A plan has no [`NetworkMode::Loopback`]: it has become one of the others.
    pub mode: NetworkMode,
    /// TCP ports that may be connected to, with [`NetworkMode::Ports`].
    pub connect: Vec<u16>,
    /// TCP ports that may be bound, with [`NetworkMode::Ports`].
    pub bind: Vec<u16>,
    /// Whether the user asks for the whole network, and not only a profile that may be for clients.
    pub asked: bool,
    /// Whether the run gets a network namespace. With [`NetworkMode::Private`] it does, except in log mode.
    pub namespace: bool,
    /// The hosts outside that the run reaches through the broker, out of a network of its own.
    pub hosts: Option<Rc<Hosts>>,
    /// Why the run does not have the loopback of its own that its profile asks for, where it does not.
    pub lacks: Option<String>,
}

impl Network {
    /// Whether a command may reach anything outside, be it by way of the broker.
    pub fn leads_out(&self) -> bool {
        matches!(self.mode, NetworkMode::Host | NetworkMode::Ports) || self.hosts.is_some()
    }

    /// Whether Landlock's TCP rights are handled, so that what is not listed is refused.
    pub fn handles_tcp(&self) -> bool {
        matches!(self.mode, NetworkMode::None | NetworkMode::Loopback | NetworkMode::Ports)
    }
}
