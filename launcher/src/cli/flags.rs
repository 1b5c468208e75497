//! The command line, as clap sees it. What the flags mean together is decided in [`crate::launch::plan`].
#![allow(rustdoc::broken_intra_doc_links)] // brackets in a flag's help are part of what the user types

use super::why::flags::Why;
use crate::profile::Bound;
use crate::profile::units;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  sbx run -- npm test                            build and test here; no network
  sbx run --profile network -- curl https://...  a client: writes no files, starts no programs
  sbx run --profile minimal -- jq . some.json    reads and prints
  sbx run --log-violations -- ./tool             lists what would be refused

Variables: SBX_PROFILE is the profile where no --profile is given, SBX_LOG (quiet, normal or verbose) stands for -q and -v.

Exit status: the command's own; 124 its time was up; 125 sbx refused or failed; 126 the command cannot be executed; 127 it was not found; 128+n a signal ended it (159: the filter).";

/// Runs a command that nobody should have to trust, with only the rights it needs.
#[derive(Debug, Parser)]
#[command(name = "sbx", version, about, after_help = EXAMPLES, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command under a profile
    Run(Box<Run>),
    /// Print the variables by which libsandbox.so alone enforces a profile's system calls
    Env(Env),
    /// Write libsandbox.so, for use without the launcher
    Shim(Shim),
    /// Tell what a program is and how sbx would treat it
    Inspect(Inspect),
    /// Ask a policy whether something is allowed, and by which rule; without a question: whether this process is confined
    Why(Box<Why>),
    /// List, show and check profiles
    Profile(ProfileCommand),
    /// Describe the reports of runs
    Report(ReportCommand),
    /// Tell what this machine can enforce, by trying it
    Status(Status),
    /// Try, inside the real sandbox, everything that profiles promise to refuse
    Test(Test),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        #[arg(value_name = "bash|zsh|fish", hide_possible_values = true)]
        shell: Shell,
    },
    /// Write the manual's pages into a directory
    #[command(hide = true)]
    Man {
        /// The directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// `sbx run` alone: clap builds every subcommand it knows before it reads the first word, and a run needs none of
/// the others.
#[derive(Debug, Parser)]
#[command(name = "sbx run", about = "Run a command under a profile", after_help = EXAMPLES, max_term_width = 110)]
pub struct RunOnly {
    /// Its flags.
    #[command(flatten)]
    pub run: Run,
}

/// `sbx run`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    /// Profile: a name ('sbx profile list') or a file
    #[arg(help_heading = "Profile", short, long, value_name = "NAME|FILE")]
    pub profile: Option<OsString>,
    /// The directory to work in [default: the current one]
    #[arg(help_heading = "Files", long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Allow reading PATH and below
    #[arg(help_heading = "Files", long, value_name = "PATH")]
    pub ro: Vec<PathBuf>,
    /// Allow reading and executing
    #[arg(help_heading = "Files", long, value_name = "PATH")]
    pub rox: Vec<PathBuf>,
    /// Allow reading and changing
    #[arg(help_heading = "Files", long, value_name = "PATH")]
    pub rw: Vec<PathBuf>,
    /// Allow reading, changing and executing
    #[arg(help_heading = "Files", long, value_name = "PATH")]
    pub rwx: Vec<PathBuf>,
    /// Deny PATH and below, whatever else allows it
    #[arg(help_heading = "Files", long, value_name = "PATH")]
    pub deny: Vec<PathBuf>,
    /// Let only this command be executed, and what else is named so: a name, or a path ('git', 'python3*', './tool')
    #[arg(help_heading = "Commands", long, value_name = "CMD")]
    pub allow_command: Vec<OsString>,
    /// Let this command not be executed, by none of its names
    #[arg(help_heading = "Commands", long, value_name = "CMD")]
    pub block_command: Vec<OsString>,
    /// Allow these system calls too: call, @group or call[restriction], separated by ':' or ','
    #[arg(help_heading = "System calls", long, value_name = "LIST")]
    pub allow_calls: Vec<OsString>,
    /// Deny these system calls
    #[arg(help_heading = "System calls", long, value_name = "LIST")]
    pub deny_calls: Vec<OsString>,
    /// What a refused call meets: it ends the run (status 159), fails, or goes on and is listed [default: the profile's]
    #[arg(help_heading = "System calls", long, value_name = "kill|errno|log", hide_possible_values = true)]
    pub on_violation: Option<OnViolation>,
    /// Let every system call through, and list those that would be refused; path rules stay in force
    #[arg(help_heading = "System calls", long)]
    pub log_violations: bool,
    /// Name refused paths too; everything stays refused (each call with a path takes longer)
    #[arg(help_heading = "System calls", long)]
    pub explain: bool,
    /// Network: none, one of the run's own with loopback alone, or the host's [default: the profile's]
    #[arg(help_heading = "Network", long, value_name = "none|private|host", hide_possible_values = true)]
    pub net: Option<Net>,
    /// Allow TCP connections to this port ('*:443'), and nothing else
    #[arg(help_heading = "Network", long, value_name = "HOST:PORT")]
    pub connect: Vec<String>,
    /// Allow listening on this TCP port, and no other
    #[arg(help_heading = "Network", long, value_name = "PORT", value_parser = units::port)]
    pub bind: Vec<u16>,
    /// Allow connecting to the UNIX socket at PATH
    #[arg(help_heading = "Network", long, value_name = "PATH")]
    pub unix: Vec<PathBuf>,
    /// Pass a variable on, or set it
    #[arg(help_heading = "Environment", long, value_name = "K[=V]")]
    pub env: Vec<OsString>,
    /// Pass every variable on, but secrets and loaders' hooks
    #[arg(help_heading = "Environment", long)]
    pub inherit_env: bool,
    /// Let --env name loaders' and interpreters' hooks (LD_PRELOAD, BASH_ENV ...)
    #[arg(help_heading = "Environment", long)]
    pub allow_dangerous_env: bool,
    /// End the command and all that it started after DURATION, with status 124 ('90s', '2m', 'none')
    #[arg(help_heading = "Limits", short, long, value_name = "DURATION", value_parser = units::duration, allow_negative_numbers = true)]
    pub timeout: Option<Bound<Duration>>,
    /// Time between SIGTERM and SIGKILL then [default: 5s]
    #[arg(help_heading = "Limits", long, value_name = "DURATION", value_parser = units::patience, allow_negative_numbers = true)]
    pub kill_after: Option<Bound<Duration>>,
    /// Pass on so much of stdout, and of stderr: the head and the tail ('64K', '1MiB', 'none')
    #[arg(help_heading = "Limits", long, value_name = "SIZE", value_parser = units::size, allow_negative_numbers = true)]
    pub max_output: Option<Bound<u64>>,
    /// Processes and threads at a time
    #[arg(help_heading = "Limits", long, value_name = "N", value_parser = units::count, allow_negative_numbers = true)]
    pub max_processes: Option<Bound<u64>>,
    /// Memory of all processes together
    #[arg(help_heading = "Limits", long, value_name = "SIZE", value_parser = units::size, allow_negative_numbers = true)]
    pub max_memory: Option<Bound<u64>>,
    /// Processor time of each process
    #[arg(help_heading = "Limits", long, value_name = "DURATION", value_parser = units::duration, allow_negative_numbers = true)]
    pub max_cpu: Option<Bound<Duration>>,
    /// Open files of each process
    #[arg(help_heading = "Limits", long, value_name = "N", value_parser = units::count, allow_negative_numbers = true)]
    pub max_open_files: Option<Bound<u64>>,
    /// Size of each file that is written
    #[arg(help_heading = "Limits", long, value_name = "SIZE", value_parser = units::size, allow_negative_numbers = true)]
    pub max_file_size: Option<Bound<u64>>,
    /// Leave alone what the command has left running when it ends
    #[arg(help_heading = "Running", long)]
    pub keep_background: bool,
    /// Start the command in DIR
    #[arg(help_heading = "Running", long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Pass descriptor N on
    #[arg(help_heading = "Running", long, value_name = "N", value_parser = units::descriptor)]
    pub pass_fd: Vec<i32>,
    /// Programs into which libsandbox.so cannot be loaded: refuse them, or run them under the launcher's rules alone [default: block]
    #[arg(
        help_heading = "Running",
        long = "static",
        value_name = "block|warn|allow|confine",
        hide_possible_values = true
    )]
    pub static_programs: Option<Static>,
    /// Refuse to run where the kernel can enforce less: full, standard or minimal
    #[arg(help_heading = "Running", long, value_name = "LEVEL", hide_possible_values = true)]
    pub require: Option<Level>,
    /// Namespaces of the run's own, where the machine gives them: as the profile says, or none [default: the profile's]
    #[arg(help_heading = "Running", long, value_name = "auto|none", hide_possible_values = true)]
    pub namespaces: Option<Namespaces>,
    /// First try what the run must refuse, on files and processes made for that; refuse to run if something is not
    #[arg(help_heading = "Running", long)]
    pub verify: bool,
    /// Become the command: no supervisor, no reports of what was refused, the fastest start
    #[arg(help_heading = "Running", long)]
    pub exec: bool,
    /// Run with profile 'unrestricted': no confinement at all
    #[arg(help_heading = "Running", long)]
    pub dangerously_unconfined: bool,
    /// Write what happened to FILE, as JSON ('sbx report schema')
    #[arg(help_heading = "Messages", long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write it to descriptor N, which the command does not get
    #[arg(help_heading = "Messages", long, value_name = "N", value_parser = units::descriptor)]
    pub report_fd: Option<i32>,
    /// Add it to FILE as one line
    #[arg(help_heading = "Messages", long, value_name = "FILE")]
    pub audit_log: Option<PathBuf>,
    /// Say what is enforced
    #[arg(help_heading = "Messages", short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Say nothing but errors
    #[arg(help_heading = "Messages", short, long)]
    pub quiet: bool,
    /// The command and its arguments, after '--'
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// `--on-violation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnViolation {
    /// The run ends, with status 159
    Kill,
    /// The call fails
    Errno,
    /// The call goes on and is listed
    Log,
}

/// `--net`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Net {
    /// No IPv4 or IPv6 sockets
    None,
    /// A network of the run's own: loopback, and nothing else
    Private,
    /// The host's network
    Host,
}

/// `--static`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Static {
    /// Refuse with 126
    Block,
    /// Run under the guard alone, and say so
    Warn,
    /// Run under the guard alone
    Allow,
    /// Run under the guard alone, as wished
    Confine,
}

/// `--namespaces`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Namespaces {
    /// Where the machine gives them.
    Auto,
    /// None.
    None,
}

/// `--require`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// System calls, files and namespaces
    Full,
    /// System calls and files
    Standard,
    /// System calls
    Minimal,
}

/// `sbx env`.
#[derive(Debug, Args)]
pub struct Env {
    /// Profile: a name or a file
    #[arg(short, long, value_name = "NAME|FILE", default_value = "minimal")]
    pub profile: OsString,
    /// Allow these system calls too
    #[arg(long, value_name = "LIST")]
    pub allow_calls: Vec<OsString>,
    /// Deny these system calls
    #[arg(long, value_name = "LIST")]
    pub deny_calls: Vec<OsString>,
    /// What a refused call meets [default: the profile's]
    #[arg(long, value_name = "kill|log|errno[=NAME]|trap")]
    pub action: Option<OsString>,
    /// NAME=value lines for systemd's EnvironmentFile=, instead of export lines for a shell
    #[arg(long)]
    pub file: bool,
}

/// `sbx shim`.
#[derive(Debug, Args)]
pub struct Shim {
    /// Write it to FILE, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `sbx inspect`.
#[derive(Debug, Args)]
pub struct Inspect {
    /// A file, or a command to be found in PATH
    #[arg(value_name = "FILE")]
    pub file: OsString,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// `sbx status`.
#[derive(Debug, Args)]
pub struct Status {
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// `sbx test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Profile to test: a name or a file [default: every built-in one that promises anything]
    #[arg(short, long, value_name = "NAME|FILE")]
    pub profile: Vec<OsString>,
    /// Hold it to what another profile promises
    #[arg(long, value_name = "NAME|FILE")]
    pub against: Option<OsString>,
    /// Show every row, of several profiles too
    #[arg(short, long)]
    pub verbose: bool,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// `sbx profile`.
#[derive(Debug, Args)]
pub struct ProfileCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: ProfileAction,
}

/// The subcommands of `sbx profile`.
#[derive(Debug, Subcommand)]
pub enum ProfileAction {
    /// List the profiles that can be named
    List {
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Show a profile with its parents merged, and where each rule comes from
    Show {
        /// A name or a file
        #[arg(value_name = "NAME|FILE")]
        profile: OsString,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Check profiles: keys, names, rules that can never decide anything
    Check {
        /// Names or files
        #[arg(value_name = "NAME|FILE", required = true)]
        profiles: Vec<OsString>,
    },
    /// Print the JSON Schema of a profile
    Schema,
}

/// Shells that `sbx completions` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

/// `sbx report`.
#[derive(Debug, Args)]
pub struct ReportCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: ReportAction,
}

/// The subcommands of `sbx report`.
#[derive(Debug, Subcommand)]
pub enum ReportAction {
    /// Print the JSON Schema of a report
    Schema,
}
