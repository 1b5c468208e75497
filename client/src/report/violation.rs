//! Violations of a run.

use super::Bytes;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::IpAddr;

/// One distinct violation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ViolationRecord {
    /// What decided.
    pub kind: ViolationKind,
    /// The name of the system call.
    pub call: String,
    /// Its arguments, decoded for people, shortened.
    pub args: String,
    /// For kind path the real path, else the first path as it was given.
    pub path: Option<Bytes>,
    /// The socket address in the arguments.
    pub address: Option<Address>,
    /// The name of the process that made the call, as it calls itself.
    pub process: Bytes,
    /// The first process of that name that made the call.
    pub pid: i32,
    /// The rule that decided; null where the call was only noted.
    pub rule: Option<Rule>,
    /// What would allow the call, where one change would.
    pub suggestion: Option<Suggestion>,
    /// How often it happened.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub count: u64,
    /// How the violation is known.
    pub confidence: Confidence,
    /// What happened to the call.
    pub fate: Fate,
}

/// What decided about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// The call itself, or its arguments in registers.
    Syscall,
    /// The path that the call is about.
    Path,
    /// The address that the call sends to or listens on.
    Address,
    /// A value of a later version of sbx; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// How a violation is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// sbx refused the call.
    Observed,
    /// The path rules refuse the call. The kernel applies them and does not report it.
    Inferred,
    /// Nobody has seen a call: the command has failed, and its words name what is closed to it.
    Named,
    /// A value of a later version of sbx; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// What happened to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// The call failed.
    Blocked,
    /// The call failed, and the run ended.
    Ended,
    /// The call was let through in log mode; it would have failed otherwise.
    WouldBlock,
    /// The call is allowed, and the profile wants to know of it.
    Noted,
    /// A value of a later version of sbx; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// The rule that decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Rule {
    /// The rule as a clause of a sentence.
    pub text: String,
    /// The profile that has the rule.
    pub profile: Option<String>,
    /// The profile's key, or the flag.
    pub key: Option<Cow<'static, str>>,
}

/// Flags that would allow a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Suggestion {
    /// Words for sbx run, one each: no shell has to take them apart.
    pub flags: Vec<Bytes>,
    /// What to know beforehand.
    pub note: Option<Cow<'static, str>>,
}

/// A socket address, by its family.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "family", rename_all = "kebab-case")]
pub enum Address {
    /// IPv4 or IPv6.
    Inet {
        /// The address as it was given.
        ip: IpAddr,
        /// The port.
        port: u16,
    },
    /// A UNIX socket with a file.
    Unix {
        /// The path as it was given.
        path: Bytes,
    },
    /// A UNIX socket with a name alone, or with none.
    UnixAbstract {
        /// The name, without its leading zero byte.
        name: Bytes,
    },
    /// Netlink.
    Netlink {
        /// The port; 0 is the kernel.
        port: u32,
        /// Multicast groups, as bits.
        groups: u32,
    },
    /// Any other family.
    Other {
        /// The number of the family.
        number: u16,
    },
    /// A value of a later version of sbx; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}
