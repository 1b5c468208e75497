//! What is asked of one run: plain data. Each field is a flag of `sbx run`; nothing is asked by default.

use crate::profile::{Bound, HomeMode, Level, Namespaces, NetworkMode, StaticMode};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A TCP port of this machine that stands for one of the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPair {
    /// The port of this machine.
    pub here: u16,
    /// The port of the run.
    pub inside: u16,
}

/// What is asked of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Name or file of the profile.
    pub profile: Option<OsString>,
    /// Directory to work in, if not the current one.
    pub workspace: Option<PathBuf>,
    /// Paths that may be read.
    pub ro: Vec<PathBuf>,
    /// Paths that may be read and executed.
    pub rox: Vec<PathBuf>,
    /// Paths that may be read and changed.
    pub rw: Vec<PathBuf>,
    /// Paths that may be read, changed and executed.
    pub rwx: Vec<PathBuf>,
    /// Paths that are denied, whatever else allows them.
    pub deny: Vec<PathBuf>,
    /// Names or paths of the only commands that may be executed.
    pub allow_command: Vec<OsString>,
    /// Names or paths of commands that are blocked under any of their names.
    pub block_command: Vec<OsString>,
    /// Lists of system calls to allow: call, `@group` or `call[restriction]`.
    pub allow_calls: Vec<OsString>,
    /// Lists of system calls to deny.
    pub deny_calls: Vec<OsString>,
    /// Action on a violation, if not the profile's.
    pub on_violation: Option<OnViolation>,
    /// Every system call is allowed, and those that would be denied are listed. Path rules stay in force.
    pub log_violations: bool,
    /// Denied paths are named too.
    pub explain: bool,
    /// Programs do not get the library that tells of refused calls on paths.
    pub no_explainer: bool,
    /// The network, if not the profile's.
    pub net: Option<NetworkMode>,
    /// The only hosts and ports that TCP connections may go to (`example.org:443`, `*:443`).
    pub connect: Vec<String>,
    /// Ports of this machine's loopback that a run with a network of its own reaches.
    pub host_port: Vec<u16>,
    /// Ports of the run's own loopback that this machine's shows.
    pub publish: Vec<PortPair>,
    /// The only TCP ports that may be listened on.
    pub bind: Vec<u16>,
    /// The home directory, if not the profile's.
    pub home: Option<HomeMode>,
    /// UNIX sockets that may be connected to.
    pub unix: Vec<PathBuf>,
    /// Variables that are passed on (`NAME`) or set (`NAME=VALUE`).
    pub env: Vec<OsString>,
    /// Every variable is passed on, except secrets and loader hooks.
    pub inherit_env: bool,
    /// `env` may name loader and interpreter hooks.
    pub allow_dangerous_env: bool,
    /// Time after which the command and all that it started is ended.
    pub timeout: Option<Bound<Duration>>,
    /// Time from SIGTERM to SIGKILL, after a timeout or a signal to `sbx`.
    pub kill_after: Option<Bound<Duration>>,
    /// Bytes of stdout, and of stderr, that are passed on.
    pub max_output: Option<Bound<u64>>,
    /// Processes and threads at a time.
    pub max_processes: Option<Bound<u64>>,
    /// Memory of all processes together.
    pub max_memory: Option<Bound<u64>>,
    /// Processor time of each process.
    pub max_cpu: Option<Bound<Duration>>,
    /// Open files of each process.
    pub max_open_files: Option<Bound<u64>>,
    /// Size of each file that is written.
    pub max_file_size: Option<Bound<u64>>,
    /// Background processes are left running when the command ends.
    pub keep_background: bool,
    /// Directory to start the command in.
    pub cwd: Option<PathBuf>,
    /// Descriptors that are passed on.
    pub pass_fd: Vec<i32>,
    /// How programs are treated that cannot load libsandbox.so.
    pub static_programs: Option<StaticMode>,
    /// Level that the kernel must be able to enforce at least.
    pub require: Option<Level>,
    /// Private namespaces, if not as the profile says.
    pub namespaces: Option<Namespaces>,
    /// Before the start, what the run must refuse is tried.
    pub verify: bool,
    /// `sbx` becomes the command: no supervisor, no reports of violations.
    pub exec: bool,
    /// A run of a pool takes the command, if one waits for such.
    pub pool: bool,
    /// Profile `unrestricted` may be used: no confinement at all.
    pub dangerously_unconfined: bool,
    /// File for the report.
    pub report: Option<PathBuf>,
    /// Descriptor for the report. The command does not get it.
    pub report_fd: Option<i32>,
    /// File to which the report is appended as one line.
    pub audit_log: Option<PathBuf>,
    /// When the run has ended, a table says what happened.
    pub summary: bool,
    /// What is enforced is printed.
    pub verbose: bool,
    /// Only errors are printed.
    pub quiet: bool,
    /// The command and its arguments.
    pub command: Vec<OsString>,
}

impl Request {
    /// Whether what is refused is to be let through, and listed.
    pub fn lists_violations(&self) -> bool {
        self.log_violations || self.on_violation == Some(OnViolation::Log)
    }
}

/// Action on a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnViolation {
    /// The run ends, with status 159.
    Kill,
    /// The call fails.
    Errno,
    /// The call is allowed, and listed.
    Log,
}
