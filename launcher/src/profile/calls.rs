//! The rules of a profile about system calls.

use sbx_policy::calls::Call;
use sbx_policy::restrictions::{self, Condition, RESTRICTIONS};
use sbx_policy::{bpf, errno};

use crate::profile::origin::{Given, List, Origin, Shared};
use std::fmt;

/// The calls that a network brings beside those of the profile.
pub const NETWORK_CALLS: [&str; 24] = [
    "connect",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "shutdown",
    "setsockopt",
    "getsockopt",
    "getsockname",
    "getpeername",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "epoll_create",
    "fcntl",
    "pipe2",
    "eventfd2",
];

/// System calls. The default applies to those that no entry names.
#[derive(Clone, Debug, Default)]
pub struct Syscalls {
    /// The action on a call that is not allowed.
    pub default: Option<Given<DefaultAction>>,
    /// The rules of each call that is named anywhere.
    pub calls: CallTable,
}

/// `syscalls.default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// It is allowed: nothing but the denials confines (`unrestricted`).
    Allow,
    /// The process is killed.
    Kill,
    /// It is allowed and logged.
    Log,
    /// It fails with this error number.
    Errno(u16),
}

impl DefaultAction {
    /// The return value of a filter for a violation; `None` if there are no violations.
    pub fn violation(self) -> Option<u32> {
        match self {
            DefaultAction::Allow => None,
            DefaultAction::Kill => Some(bpf::RET_KILL_PROCESS),
            DefaultAction::Log => Some(bpf::RET_LOG),
            DefaultAction::Errno(number) => Some(bpf::RET_ERRNO | u32::from(number)),
        }
    }
}

impl fmt::Display for DefaultAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultAction::Allow => f.write_str("allow"),
            DefaultAction::Kill => f.write_str("kill"),
            DefaultAction::Log => f.write_str("log"),
            DefaultAction::Errno(number) => write!(f, "errno={}", errno_word(*number)),
        }
    }
}

/// The name of an error, or its number.
pub(crate) fn errno_word(number: u16) -> String {
    errno::name(number).map_or(number.to_string(), str::to_string)
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
        Some(&self.0.get(self.place(call).ok()?)?.1)
    }

    /// Changes the rules of a call, which has none yet if nothing names it.
    pub fn change(&mut self, call: Call, change: impl FnOnce(&mut CallRules)) {
        let place = self.place(call);
        let rows = self.0.to_mut();
        let place = place.unwrap_or_else(|free| {
            rows.insert(free, (call, CallRules::default()));
            free
        });
        change(&mut rows[place].1);
    }

    /// Every call with its rules.
    pub fn iter(&self) -> impl Iterator<Item = (Call, &CallRules)> {
        self.0.iter().map(|(call, rules)| (*call, rules))
    }
}

/// The rules of one call.
#[derive(Clone, Debug, Default)]
pub struct CallRules {
    /// How far it is allowed.
    pub allow: Grants,
    /// How far it is allowed where the run has namespaces of its own, `allow` included. Nothing: as `allow` says.
    pub inside: Grants,
    /// How far it is denied. A denial wins over a permission.
    pub deny: Grants,
    /// The error number of a denial; `None`: the default action.
    pub errno: Option<u16>,
    /// The entry that has it logged.
    pub log: Option<Shared<Origin>>,
}

impl CallRules {
    /// How far it is allowed in a run with or without namespaces of its own.
    pub fn allowed(&self, namespaces: bool) -> &Grants {
        if namespaces && !self.inside.is_none() { &self.inside } else { &self.allow }
    }

    /// Whether a profile of the user's denies some of it, or a flag does.
    pub fn is_denied_by_user(&self) -> bool {
        self.deny.origins().any(|origin| !origin.built_in)
    }

    /// What of `inside` goes beyond `allow`.
    pub fn only_inside(&self) -> Grants {
        let Grants::Some(inside) = &self.inside else { return self.inside.clone() };
        let known = |one: &Alternative| self.allow.alternatives().iter().any(|other| other.when == one.when);
        Grants::Some(inside.iter().filter(|one| !known(one)).cloned().collect())
    }
}

/// How far a call is allowed or denied.
#[derive(Clone, Debug, Default)]
pub enum Grants {
    /// Not at all.
    #[default]
    None,
    /// Whatever its arguments are.
    All(Shared<Origin>),
    /// If one of these conditions holds.
    Some(List<Alternative>),
}

impl Grants {
    /// Whether there is nothing.
    pub fn is_none(&self) -> bool {
        matches!(self, Grants::None)
    }

    /// The conditions, where there are some.
    pub fn alternatives(&self) -> &[Alternative] {
        if let Grants::Some(alternatives) = self { alternatives } else { &[] }
    }

    /// Where the entries come from.
    pub fn origins(&self) -> impl Iterator<Item = &Shared<Origin>> {
        let all = if let Grants::All(origin) = self { Some(origin) } else { None };
        all.into_iter().chain(self.alternatives().iter().map(|alternative| &alternative.origin))
    }
}

/// One condition on a call's arguments.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// The condition.
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
    Free(List<Condition>),
}

impl When {
    /// A named restriction of a call; one that does not exist is never met.
    pub fn named(call: &str, restriction: &str) -> When {
        let among =
            |call| restrictions::of_call(call).find(|place| restrictions::name(*place) == restriction);
        When::Named(Call::named(call.as_bytes()).and_then(among).unwrap_or(usize::MAX))
    }

    /// The conditions: alternatives, each a list of which all must hold.
    pub fn any(&self) -> Vec<&[Condition]> {
        match self {
            When::Named(place) => RESTRICTIONS.get(*place).map_or(Vec::new(), |r| r.any.to_vec()),
            When::Free(conditions) => vec![conditions],
        }
    }
}
