//! What a report holds. Every field is described in docs/report.md and in the schema; a test keeps the three
//! together.
//!
//! Embedding programs read the same types, perhaps from another version of `sbx`: fields and values that are not
//! known here are no mistake.

pub use super::bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::IpAddr;

/// The version of the format: fields are added without changing it, none is removed or changes its meaning.
pub const VERSION: u32 = 1;

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// The version of `sbx`.
    pub sbx: Cow<'static, str>,
    /// The command and its arguments.
    pub command: Vec<Bytes>,
    /// The file that was found for it.
    pub program: Option<Bytes>,
    /// The profile.
    pub profile: Option<ProfileUsed>,
    /// A hash over what was enforced.
    pub policy_hash: Option<String>,
    /// The workspace.
    pub workspace: Option<Bytes>,
    /// Which network there was.
    pub network: Option<NetworkUsed>,
    /// What was in force, in one word.
    pub level: Option<Level>,
    /// Each layer of it.
    pub layers: Vec<Layer>,
    /// What was less than usual, in sentences.
    pub degradations: Vec<String>,
    /// When `sbx` took up the run: RFC 3339, UTC.
    pub started: String,
    /// The same in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// From then until the command and all that it started had ended.
    pub duration_ms: f64,
    /// The command's process number, as `sbx` saw it.
    pub pid: Option<i32>,
    /// How the command itself ended, where nobody ended it from here.
    pub exit: Option<Exit>,
    /// The exit status of `sbx`.
    pub exit_status: i32,
    /// Why the run ended.
    pub cause: Cause,
    /// The sentence on standard error, where `sbx` did not start the command or lost it.
    pub error: Option<String>,
    /// What the command and its descendants used.
    pub rusage: Option<Rusage>,
    /// What was written, where it went through `sbx`.
    pub output: Output,
    /// Limits in force.
    pub limits: Vec<LimitUsed>,
    /// Distinct violations.
    pub violations: Vec<ViolationRecord>,
    /// How often something was refused or noted in all.
    pub violations_total: u64,
    /// How much of that is in no record.
    pub violations_unlisted: u64,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The command exited.
    Exited,
    /// A signal ended it.
    Signalled,
    /// A violation ended it.
    Violation,
    /// Its time was over.
    Timeout,
    /// It used more memory than it may.
    MemoryLimit,
    /// What it wrote could not be passed on.
    OutputFailed,
    /// `sbx` was called wrongly, or refused to run it with less than was asked for.
    Refused,
    /// It was not found.
    NotFound,
    /// It was found, but cannot be executed.
    NotExecutable,
    /// `sbx` could not go on looking after it.
    Lost,
    /// What a later version of `sbx` says here; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// The profile in force.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProfileUsed {
    /// Its name.
    pub name: String,
    /// Its file; `None` for a built-in one.
    pub file: Option<Bytes>,
    /// The documents it was put together from, itself last.
    pub lineage: Vec<String>,
}

/// The network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NetworkUsed {
    /// Which.
    pub mode: NetworkMode,
    /// TCP ports that could be connected to, with [`NetworkMode::Ports`].
    pub connect: Vec<u16>,
    /// TCP ports that could be listened on.
    pub bind: Vec<u16>,
    /// UNIX sockets that could be connected to.
    pub unix: Vec<Bytes>,
}

/// How far the network was open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// Not at all.
    None,
    /// To TCP ports.
    Ports,
    /// As the host's.
    Host,
    /// A network of the run's own: loopback, and nothing else.
    Private,
    /// What a later version of `sbx` says here; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// What was in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing: the run was to be unconfined.
    None,
    /// System calls.
    Minimal,
    /// And files.
    Standard,
    /// And namespaces of its own.
    Full,
    /// What a later version of `sbx` says here; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// One layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Which.
    pub name: Cow<'static, str>,
    /// Whether it was in force.
    pub state: LayerState,
    /// Why not, or not wholly.
    pub reason: Option<String>,
}

/// Whether a layer was in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerState {
    /// Wholly.
    Enforced,
    /// With gaps.
    Partial,
    /// Not, although it would have had something to do.
    Absent,
    /// Not, and there was nothing for it to do.
    NotNeeded,
    /// What a later version of `sbx` says here; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// How the command ended: one of the two is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its exit status.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What that one is called.
    pub signal_name: Option<Cow<'static, str>>,
}

/// What was used, as getrusage(2) counts it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rusage {
    /// Processor time of programs.
    pub user_ms: f64,
    /// Processor time of the kernel for them.
    pub system_ms: f64,
    /// The most memory that one process had at a time.
    pub max_rss_kib: i64,
    /// Pages that were there already.
    pub minor_faults: i64,
    /// Pages that had to be read.
    pub major_faults: i64,
    /// Waits.
    pub voluntary_switches: i64,
    /// Ends of time slices.
    pub involuntary_switches: i64,
    /// Blocks of 512 bytes read.
    pub blocks_read: i64,
    /// Blocks of 512 bytes written.
    pub blocks_written: i64,
}

/// What went through `sbx` of the command's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// `None`: it went straight where it was to go, and nobody counted.
    pub stdout: Option<Stream>,
    /// The same for standard error.
    pub stderr: Option<Stream>,
}

/// One stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// What the command wrote.
    pub bytes: u64,
    /// What of it was left out.
    pub left_out: u64,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitUsed {
    /// What is limited, as the profile's key says.
    pub name: Cow<'static, str>,
    /// How much there may be.
    pub value: u64,
    /// Of what.
    pub unit: Unit,
    /// Who sees to it.
    pub mechanism: Cow<'static, str>,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Ms,
    /// What a later version of `sbx` says here; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// One distinct violation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ViolationRecord {
    /// What it was refused for.
    pub kind: Kind,
    /// The call.
    pub call: String,
    /// Its arguments, decoded for people.
    pub args: String,
    /// The path it was about.
    pub path: Option<Bytes>,
    /// The address in its arguments.
    pub address: Option<Address>,
    /// The name of the process.
    pub process: Bytes,
    /// The first process of that name that made it.
    pub pid: i32,
    /// What decided.
    pub rule: Option<Rule>,
    /// What would allow it.
    pub suggestion: Option<Suggestion>,
    /// How often it happened.
    pub count: u64,
    /// How that is known.
    pub confidence: Confidence,
    /// What happened to the call.
    pub fate: Fate,
}

/// What a call was refused for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// What it is.
    Syscall,
    /// A path.
    Path,
    /// An address.
    Address,
    /// What a later version of `sbx` says here; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// How it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// `sbx` refused it.
    Observed,
    /// The path rules say so.
    Inferred,
    /// What a later version of `sbx` says here; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// What happened to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It failed.
    Blocked,
    /// It failed, and the run ended.
    Ended,
    /// It was let through, in log mode.
    WouldBlock,
    /// It is allowed, and the profile wants to know.
    Noted,
    /// What a later version of `sbx` says here; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// What decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// As a clause of a sentence.
    pub text: String,
    /// Whose it is.
    pub profile: Option<String>,
    /// The key of the profile, or the flag.
    pub key: Option<Cow<'static, str>>,
}

/// Flags that would allow a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Suggestion {
    /// Words for `sbx run`.
    pub flags: Vec<Bytes>,
    /// What to know beforehand.
    pub note: Option<Cow<'static, str>>,
}

/// A socket address.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "kebab-case")]
pub enum Address {
    /// IPv4 or IPv6.
    Inet {
        /// As given.
        ip: IpAddr,
        /// The port.
        port: u16,
    },
    /// A UNIX socket with a file.
    Unix {
        /// As given.
        path: Bytes,
    },
    /// A UNIX socket with a name alone, or none.
    UnixAbstract {
        /// Without its leading zero byte.
        name: Bytes,
    },
    /// Netlink.
    Netlink {
        /// 0: the kernel.
        port: u32,
        /// Multicast groups, as bits.
        groups: u32,
    },
    /// Any other.
    Other {
        /// The number of the family.
        number: u16,
    },
    /// What a later version of `sbx` says here; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}
