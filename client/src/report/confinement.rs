//! What confined a run: its profile, its network, the layers and the limits.

use super::Bytes;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The profile of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ProfileUsed {
    /// The name of the profile.
    pub name: String,
    /// The file of the profile; null for a built-in one.
    pub file: Option<Bytes>,
    /// The documents that the profile was put together from, itself last.
    pub lineage: Vec<String>,
}

/// The network of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct NetworkUsed {
    /// How far the network was open.
    pub mode: NetworkMode,
    /// TCP ports that could be connected to, with mode ports.
    pub connect: Vec<u16>,
    /// TCP ports that could be listened on, with mode ports.
    pub bind: Vec<u16>,
    /// UNIX sockets that could be connected to.
    pub unix: Vec<Bytes>,
    /// The hosts that could be connected to, as rules name them, with mode hosts.
    #[serde(default)]
    pub allow: Vec<String>,
    /// The hosts that could not, whatever else is allowed.
    #[serde(default)]
    pub deny: Vec<String>,
    /// How the hosts were reached, where the run had no network of its own.
    #[serde(default)]
    pub proxy: Option<Proxy>,
    /// Ports of the host's loopback that were in the run's network.
    #[serde(default)]
    pub host_ports: Vec<u16>,
    /// Ports of the run's own loopback that the host's showed.
    #[serde(default)]
    pub published: Vec<PublishedPort>,
    /// What the run had of each host and port, with mode hosts, sorted by them.
    #[serde(default)]
    pub hosts: Vec<HostUsed>,
    /// How much is in none of these entries, or of those of published ports: a report has at most 4096.
    #[serde(default)]
    pub hosts_unlisted: u64,
}

/// The proxy of a run that had no network of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Proxy {
    /// The supervisor connected every program to it.
    Supervised,
    /// Programs had to connect to it themselves. TCP to its port was open to any host.
    ByPort,
    /// Another way, which this version does not know.
    #[serde(other)]
    Unknown,
}

/// A port of the run's own loopback that the host's showed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PublishedPort {
    /// The port of the host.
    pub port: u16,
    /// The port of the run.
    pub inside: u16,
    /// Connections that were made.
    #[serde(default)]
    pub connections: u64,
    /// Connections that could not be made, mostly because nobody listened in the run.
    #[serde(default)]
    pub failed: u64,
    /// Bytes that the run sent.
    #[serde(default)]
    pub sent: u64,
    /// Bytes that the run received.
    #[serde(default)]
    pub received: u64,
    /// When somebody first connected: RFC 3339, UTC. Null if nobody did.
    #[serde(default)]
    pub first: Option<String>,
    /// The same of the last time.
    #[serde(default)]
    pub last: Option<String>,
}

/// What the run had of a host at one port.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HostUsed {
    /// Its name, or its address where that was connected to without a name.
    pub host: String,
    /// The port; null for questions about a name that was refused.
    pub port: Option<u16>,
    /// Connections that were made.
    pub connections: u64,
    /// Connections that could not be made.
    pub failed: u64,
    /// Connections and questions that were refused.
    pub refused: u64,
    /// Bytes that the run sent.
    pub sent: u64,
    /// Bytes that the run received.
    pub received: u64,
    /// When it was first reached or tried: RFC 3339, UTC.
    pub first: String,
    /// The same of the last time.
    pub last: String,
}

/// How far the network was open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// No internet sockets.
    None,
    /// TCP, with the ports named.
    Ports,
    /// The host's network.
    Host,
    /// A network of the run's own, with loopback alone.
    Private,
    /// The same with ways to hosts that rules name.
    Hosts,
    /// A value of a later version of sbx; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// What was in force, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing: the run was to be unconfined.
    None,
    /// Rules for system calls.
    Minimal,
    /// Rules for system calls and files.
    Standard,
    /// Rules for system calls and files, and namespaces of the run's own.
    Full,
    /// A value of a later version of sbx; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// One layer of confinement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Layer {
    /// The name: seccomp, seal, notification, landlock, tcp, signal-scope, privileges, namespaces.
    pub name: Cow<'static, str>,
    /// Whether the layer was in force.
    pub state: LayerState,
    /// Why it was not, or not wholly.
    pub reason: Option<String>,
}

/// Whether a layer was in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LayerState {
    /// Wholly in force.
    Enforced,
    /// In force, with gaps.
    Partial,
    /// Not in force, although it would have had something to do.
    Absent,
    /// Not in force, and there was nothing for it to do.
    NotNeeded,
    /// A value of a later version of sbx; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct LimitUsed {
    /// The profile's key: open_files, file_size, cpu ...
    pub name: Cow<'static, str>,
    /// How much there may be, in `unit`.
    pub value: u64,
    /// What the value counts.
    pub unit: Unit,
    /// What enforces it: cgroup, rlimit, notification, supervisor.
    pub mechanism: Cow<'static, str>,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Ms,
    /// A value of a later version of sbx; never written.
    #[serde(other, skip_serializing)]
    Unknown,
}
