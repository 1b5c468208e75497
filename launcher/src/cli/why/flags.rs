//! The command line of `sbx why`. Its policy flags are those of `sbx run`; what that asks for a network with, this asks about.

use crate::cli::Net;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const STATUS: &str = "\
Exit status: 0 allowed; 1 refused; 2 it depends, or cannot be told; 125 sbx failed.";

/// `sbx why`.
#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub struct Why {
    /// A system call, with numbers for its arguments if they matter: openat, or socket,2,1
    #[arg(help_heading = "Question", long, value_name = "NAME[,ARG]...", group = "question")]
    pub call: Option<OsString>,
    /// A file or directory
    #[arg(help_heading = "Question", long, value_name = "PATH", group = "question")]
    pub path: Option<PathBuf>,
    /// What is wanted of PATH: r, w, x or several [default: r]
    #[arg(help_heading = "Question", long, value_name = "rwx", requires = "path")]
    pub op: Option<String>,
    /// A TCP connection
    #[arg(help_heading = "Question", long, value_name = "HOST:PORT", group = "question")]
    pub connect: Option<String>,
    /// Listening on a TCP port
    #[arg(help_heading = "Question", long, value_name = "PORT", group = "question")]
    pub bind: Option<u16>,
    /// Connecting to a UNIX socket
    #[arg(help_heading = "Question", long, value_name = "PATH", group = "question")]
    pub unix: Option<PathBuf>,
    /// Profile: a name or a file [default: as for sbx run]
    #[arg(help_heading = "Policy, as for sbx run", short, long, value_name = "NAME|FILE")]
    pub profile: Option<OsString>,
    /// The directory to work in
    #[arg(help_heading = "Policy, as for sbx run", long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Allow reading PATH and below
    #[arg(help_heading = "Policy, as for sbx run", long, value_name = "PATH")]
    pub ro: Vec<PathBuf>,
    /// Allow reading and executing
    #[arg(help_heading = "Policy, as for sbx run", long, value_name = "PATH")]
    pub rox: Vec<PathBuf>,
    /// Allow reading and changing
    #[arg(help_heading = "Policy, as for sbx run", long, value_name = "PATH")]
    pub rw: Vec<PathBuf>,
    /// Allow reading, changing and executing
    #[arg(help_heading = "Policy, as for sbx run", long, value_name = "PATH")]
    pub rwx: Vec<PathBuf>,
    /// Deny PATH and below
    #[arg(help_heading = "Policy, as for sbx run", long, value_name = "PATH")]
    pub deny: Vec<PathBuf>,
    /// Let only this command be executed, and what else is named so
    #[arg(help_heading = "Policy, as for sbx run", long, value_name = "CMD")]
    pub allow_command: Vec<OsString>,
    /// Let this command not be executed
    #[arg(help_heading = "Policy, as for sbx run", long, value_name = "CMD")]
    pub block_command: Vec<OsString>,
    /// Allow these system calls too
    #[arg(help_heading = "Policy, as for sbx run", long, value_name = "LIST")]
    pub allow_calls: Vec<OsString>,
    /// Deny these system calls
    #[arg(help_heading = "Policy, as for sbx run", long, value_name = "LIST")]
    pub deny_calls: Vec<OsString>,
    /// Network: none, one of the run's own, or the host's
    #[arg(
        help_heading = "Policy, as for sbx run",
        long,
        value_name = "none|private|host",
        hide_possible_values = true
    )]
    pub net: Option<Net>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}
