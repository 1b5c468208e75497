//! The report of one run: the types that `sbx` writes and programs read.
//!
//! A reader may meet the report of a later `sbx`. It ignores fields that it does not know, and reads a value that it
//! does not know as `Unknown`. `sbx` never writes `Unknown`.
//!
//! Comments in this module are the descriptions in the JSON Schema, which `sbx report schema` prints.

mod bytes;
mod confinement;
mod finding;
mod home;
#[cfg(feature = "schema")]
mod schema;
mod violation;
mod words;

pub use bytes::Bytes;
pub use confinement::{
    HostUsed, Layer, LayerState, Level, LimitUsed, NetworkMode, NetworkUsed, ProfileUsed, Proxy,
    PublishedPort, Unit,
};
pub use finding::{Finding, FindingKind};
pub use home::HomeUsed;
#[cfg(feature = "schema")]
pub use schema::schema;
pub use violation::{Address, Confidence, Fate, Rule, Suggestion, ViolationKind, ViolationRecord};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The version of the format. Within a version, fields and values may be added; none is removed and none changes its
/// meaning.
pub const VERSION: u32 = 1;

/// What happened in one run of sbx. Fields and values may be added within a version; none is removed and none changes
/// its meaning. docs/report.md explains every field.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(title = "sbx report, version 1"))]
pub struct Report {
    /// The version of this format.
    #[cfg_attr(feature = "schema", schemars(extend("const" = VERSION)))]
    pub version: u32,
    /// The version of sbx.
    pub sbx: Cow<'static, str>,
    /// The command and its arguments, as they were given. Empty where the command line could not be understood.
    pub command: Vec<Bytes>,
    /// The file that was found for the command.
    pub program: Option<Bytes>,
    /// The profile in force.
    pub profile: Option<ProfileUsed>,
    /// SHA-256 of what was enforced.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^sha256:[0-9a-f]{64}$")))]
    pub policy_hash: Option<String>,
    /// The workspace; null where there was none.
    pub workspace: Option<Bytes>,
    /// The home directory; null where it was the user's own.
    #[serde(default)]
    pub home: Option<HomeUsed>,
    /// The network of the run.
    pub network: Option<NetworkUsed>,
    /// What was in force, in one word; null where nothing was started.
    pub level: Option<Level>,
    /// Each layer of confinement.
    pub layers: Vec<Layer>,
    /// What was less than usual, in sentences.
    pub degradations: Vec<String>,
    /// When sbx took up the run: RFC 3339, UTC, nanoseconds.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time", "pattern" = schema::TIME)))]
    pub started: String,
    /// The same in nanoseconds since 1970-01-01. More digits than a double holds.
    pub started_unix_ns: u64,
    /// Milliseconds from then until the command and all that it started had ended.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub duration_ms: f64,
    /// The command's process number, as sbx saw it.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub pid: Option<i32>,
    /// How the command itself ended; null where it was not started, or sbx ended it.
    pub exit: Option<Exit>,
    /// The exit status of sbx.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 255)))]
    pub exit_status: i32,
    /// Why the run ended.
    pub cause: Cause,
    /// The sentence on standard error, where sbx did not start the command or lost it.
    pub error: Option<String>,
    /// What the command and its descendants used.
    pub rusage: Option<Rusage>,
    /// The command's output, where it went through sbx.
    pub output: Output,
    /// The limits in force.
    pub limits: Vec<LimitUsed>,
    /// Distinct violations, in the order in which they first happened; at most 1,024.
    pub violations: Vec<ViolationRecord>,
    /// How often something was refused or noted in all.
    pub violations_total: u64,
    /// How much of that is in no record.
    pub violations_unlisted: u64,
    /// What was found in the workspace when the command had ended, which something outside would execute.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The names of processes that the command had left in the background, and that were ended; at most four.
    #[serde(default)]
    pub left: Vec<Bytes>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The command exited.
    Exited,
    /// A signal ended the command.
    Signalled,
    /// A violation ended the run.
    Violation,
    /// The run timed out.
    Timeout,
    /// The command used more memory than it may.
    MemoryLimit,
    /// The command's output could not be passed on.
    OutputFailed,
    /// sbx was called wrongly, or refused to run the command with less than was asked for.
    Refused,
    /// The command was not found.
    NotFound,
    /// The command was found, but cannot be executed.
    NotExecutable,
    /// sbx could not go on supervising the command.
    Lost,
    /// A value of a later version of sbx; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// How a process ended: either `code` or `signal` is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Exit {
    /// The exit status.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 255)))]
    pub code: Option<i32>,
    /// The number of the signal that ended the process.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 64)))]
    pub signal: Option<i32>,
    /// The name of the signal, such as SIGTERM; null where it has no name.
    pub signal_name: Option<Cow<'static, str>>,
}

/// The resources used, as getrusage(2) counts them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Rusage {
    /// Milliseconds of processor time in programs.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub user_ms: f64,
    /// Milliseconds of processor time in the kernel.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub system_ms: f64,
    /// The most memory that one process had at a time, in KiB.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub max_rss_kib: i64,
    /// Page faults that needed no reading.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub minor_faults: i64,
    /// Page faults that had to read the page.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub major_faults: i64,
    /// Context switches because a process waited.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub voluntary_switches: i64,
    /// Context switches because a time slice was over.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub involuntary_switches: i64,
    /// Blocks of 512 bytes read.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub blocks_read: i64,
    /// Blocks of 512 bytes written.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub blocks_written: i64,
}

/// The command's output. A stream is null where it did not go through sbx, so that nobody counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Output {
    /// Standard output. Where both streams are one file, it counts for both.
    pub stdout: Option<Stream>,
    /// Standard error.
    pub stderr: Option<Stream>,
}

/// One stream of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Stream {
    /// How many bytes the command wrote.
    pub bytes: u64,
    /// How many of them were left out.
    pub left_out: u64,
}
