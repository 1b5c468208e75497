//! The command line, as clap reads it. [`crate::cli::table`] has the flags of `sbx run`; [`crate::plan`] decides what
//! they mean together.
#![allow(rustdoc::broken_intra_doc_links)] // brackets in a flag's help are part of what the user types

use crate::cli::agent::AgentCommand;
use crate::cli::hook::HookCommand;
use crate::cli::learn::Learn;
use crate::cli::mcp::McpFlags;
use crate::cli::pool::PoolCommand;
use crate::cli::profile::ProfileCommand;
use crate::cli::report::ReportCommand;
use crate::cli::table::{Flag, GROUPS, Takes};
use crate::cli::why;
use crate::explain::query::{Destination, Wanted};
use crate::profile::units;
use crate::request::Request;
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  sbx run -- npm test                            build and test here; no network
  sbx run --profile network -- curl https://...  a client: writes no files, starts no programs
  sbx run --profile minimal -- jq . some.json    reads and prints
  sbx run --log-violations -- ./tool             lists what would be refused

Variables: SBX_PROFILE is the profile where no --profile is given, \
SBX_LOG (quiet, normal or verbose) stands for -q and -v.

Exit status: the command's own; 124 the run timed out; 125 sbx refused or failed; \
126 the command cannot be executed; 127 it was not found; \
128+n a signal ended it (159: the filter).";

const ANSWERS: &str = "\
Examples:
  sbx why ~/.ssh/id_ed25519               may a command read it, and which flag would allow it
  sbx why --path . --op rw -p read-only   the same of writing, under another profile
  sbx why --connect example.org:443       may it connect there
  sbx why --bind 3000 --publish 3000      may it listen there, and who reaches it
  sbx why --call ptrace                   may it make this system call

Exit status: 0 allowed; 1 refused; 2 it depends, or cannot be told; 125 sbx failed.";

const HOMES: &str = "\
Examples:
  sbx home list                        all of them, with what they take on the disk
  sbx home show                        those of the workspace here
  sbx home clear --older-than 30d      those that were not used for a month
  sbx home clear ~/project             those of a workspace, under every profile";

const CLEARED: &str = "\
Exit status: 0 all that were meant are gone, but for those in use; 1 one of a workspace that is named is in use, \
or there is none; 125 sbx failed.";

/// Runs an untrusted command with only the rights it needs.
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
    Run(Box<RunFlags>),
    /// Run $SHELL (or /bin/sh) under a profile, with the flags of run
    Shell(Box<ShellFlags>),
    /// Start a whole agent (claude, codex, gemini, opencode ...) under its profile
    Agent(Box<AgentCommand>),
    /// Have the shell commands of an agent that stays outside run in sbx
    Hook(HookCommand),
    /// Print the variables by which libsandbox.so alone enforces a profile's system calls
    Env(Env),
    /// Write libsandbox.so, for use without the launcher
    Shim(Shim),
    /// Tell what a program is and how sbx would treat it
    Inspect(Inspect),
    /// Ask a policy whether something is allowed, and by which rule; without a question: whether this process
    /// is confined
    Why(Box<Why>),
    /// Learn the profile that a command needs: run it under a closed one, and widen that until it passes
    Learn(Box<Learn>),
    /// List, show, check, review and compare profiles
    Profile(ProfileCommand),
    /// List, show and remove the private homes of runs
    Home(HomeCommand),
    /// Keep runs that wait for their commands, with all that confines them in force
    Pool(PoolCommand),
    /// Show the reports of runs as tables, or describe their format
    Report(ReportCommand),
    /// Let a model run commands: a server of the Model Context Protocol on standard input and output
    Mcp(Box<McpFlags>),
    /// Tell what this machine can enforce, by trying it
    Status(Status),
    /// Try, inside the real sandbox, everything that profiles promise to refuse
    Test(Test),
    /// Print a completion script for a shell
    Completions {
        /// The shell: bash, zsh or fish
        #[arg(value_name = "SHELL", hide_possible_values = true)]
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

/// Flags of the table, as clap reads them into a request: all of them and the command for `sbx run`, or only those
/// of the policy for `sbx why`.
#[derive(Clone, Debug, Default)]
pub struct Flags<const RUN: bool>(pub Request);

/// What `sbx run` takes.
pub type RunFlags = Flags<true>;
/// What `sbx why` takes to name a policy.
pub type PolicyFlags = Flags<false>;

impl<const RUN: bool> Args for Flags<RUN> {
    fn augment_args(command: clap::Command) -> clap::Command {
        let rows = GROUPS.iter().flat_map(|(heading, flags)| flags.iter().map(move |flag| (*heading, flag)));
        if !RUN {
            let rows = rows.filter(|(_, flag)| flag.asks);
            return command.args(rows.map(|(_, flag)| argument(flag, "Policy, as for sbx run")));
        }
        let what =
            Arg::new("command").value_name("COMMAND").help("The command and its arguments, after '--'");
        of_a_run(command)
            .arg(
                what.required(true)
                    .num_args(1..)
                    .trailing_var_arg(true)
                    .value_parser(ValueParser::os_string()),
            )
            .after_help(EXAMPLES)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

/// Adds the flags of `sbx run`, without its command.
pub fn of_a_run(command: clap::Command) -> clap::Command {
    those_of_a_run(command, |_| true)
}

/// Adds some of them.
fn those_of_a_run(command: clap::Command, which: fn(&Flag) -> bool) -> clap::Command {
    let rows = GROUPS.iter().flat_map(|(heading, flags)| flags.iter().map(move |flag| (*heading, flag)));
    command
        .args(rows.filter(|(_, flag)| which(flag)).map(|(heading, flag)| argument(flag, heading)))
        .mut_arg("verbose", |verbose| verbose.conflicts_with("quiet"))
}

/// The request that flags of the table make.
pub fn request(matches: &ArgMatches, which: fn(&Flag) -> bool) -> Result<Request, clap::Error> {
    let mut request = Request::default();
    for flag in GROUPS.iter().flat_map(|(_, flags)| *flags).filter(|flag| which(flag)) {
        if let Takes::Switch(field) = flag.takes {
            *field(&mut request) = matches.get_one(flag.long).is_some_and(|given| *given);
            continue;
        }
        for value in matches.get_many::<OsString>(flag.long).into_iter().flatten() {
            flag.set(&mut request, value).map_err(|why| clap::Error::raw(ErrorKind::ValueValidation, why))?;
        }
    }
    Ok(request)
}

/// What `sbx shell` takes: the flags of `sbx run`.
#[derive(Clone, Debug, Default)]
pub struct ShellFlags(pub Request);

impl Args for ShellFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        of_a_run(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ShellFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        request(matches, |_| true).map(ShellFlags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// What `sbx pool start` and `stop` take: the flags of the runs that wait.
#[derive(Clone, Debug, Default)]
pub struct PoolFlags(pub Request);

impl PoolFlags {
    /// Flags that may differ from command to command. A pool takes them, so that the words of a command find its pool,
    /// and only whether a quiet run has a report makes a difference to it. Help does not list them.
    const OF_EACH_COMMAND: [&str; 5] = ["report", "report-fd", "audit-log", "summary", "verbose"];

    fn has(flag: &Flag) -> bool {
        flag.long != "pool"
    }
}

impl Args for PoolFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        let command = those_of_a_run(command, PoolFlags::has);
        let hidden = PoolFlags::OF_EACH_COMMAND.into_iter();
        hidden.fold(command, |command, name| command.mut_arg(name, |flag| flag.hide(true)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PoolFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        request(matches, PoolFlags::has).map(PoolFlags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const RUN: bool> FromArgMatches for Flags<RUN> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut request = request(matches, |flag| RUN || flag.asks)?;
        if RUN {
            request.command = matches.get_many("command").into_iter().flatten().cloned().collect();
        }
        Ok(Flags(request))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A flag as clap's argument.
pub fn argument(flag: &'static Flag, heading: &'static str) -> Arg {
    let mut arg = Arg::new(flag.long).long(flag.long).help(flag.help).help_heading(heading);
    if let Some(letter) = flag.short {
        arg = arg.short(letter);
    }
    let check = move |value: OsString| flag.set(&mut Request::default(), &value).map(|()| value);
    let arg = match flag.takes {
        Takes::Switch(_) => return arg.action(ArgAction::SetTrue),
        Takes::OneOf(choices) => {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            // clap's names live as long as the program.
            let name: &'static str = words.join("|").leak();
            let parser = PossibleValuesParser::new(words).map(OsString::from);
            arg.value_name(name).hide_possible_values(true).value_parser(parser)
        }
        _ => arg.value_name(flag.value).value_parser(OsStringValueParser::new().try_map(check)),
    };
    // Where a negative number is wrong, that is said; it is not taken for another flag.
    let arg = arg.allow_negative_numbers(check("-1".into()).is_err());
    arg.action(if flag.repeats() { ArgAction::Append } else { ArgAction::Set })
}

/// `sbx run` alone: clap builds every subcommand it knows before it reads the first word, and a run needs none of the
/// others.
pub fn run_only() -> clap::Command {
    let command = clap::Command::new("sbx run").about("Run a command under a profile").max_term_width(110);
    RunFlags::augment_args(command)
}

/// The places for reports that a command line of `sbx run` names before its mistake.
pub fn places(arguments: &[OsString]) -> Request {
    let words = arguments.get(1..).unwrap_or_default();
    let matches = run_only().ignore_errors(true).try_get_matches_from(words);
    let known = matches.and_then(|matches| RunFlags::from_arg_matches(&matches));
    let Request { report, report_fd, audit_log, .. } = known.unwrap_or_default().0;
    Request { report, report_fd, audit_log, ..Request::default() }
}

/// `sbx why`.
#[derive(Debug, Args)]
#[command(after_help = ANSWERS)]
pub struct Why {
    /// A system call, with numbers for its arguments if they matter: openat, or socket,2,1
    #[arg(help_heading = "Question", long, value_name = "NAME[,ARG]...", group = "question", value_parser = why::call)]
    pub call: Option<why::Asked>,
    /// A file or directory
    #[arg(help_heading = "Question", long, value_name = "PATH", groups = ["question", "place"])]
    pub path: Option<PathBuf>,
    /// The same as --path PATH
    #[arg(help_heading = "Question", value_name = "PATH", groups = ["question", "place"])]
    pub file: Option<PathBuf>,
    /// Access wanted to PATH: r, w, x, d (removing or renaming it) or several [default: r]
    #[arg(help_heading = "Question", long, value_name = "rwxd", requires = "place", value_parser = why::access)]
    pub op: Option<Wanted>,
    /// A TCP connection
    #[arg(help_heading = "Question", long, value_name = "HOST:PORT", group = "question")]
    #[arg(value_parser = why::destination)]
    pub connect: Option<Destination>,
    /// Listening on a TCP port
    #[arg(help_heading = "Question", long, value_name = "PORT", group = "question", value_parser = units::port)]
    pub bind: Option<u16>,
    /// Connecting to a UNIX socket
    #[arg(help_heading = "Question", long, value_name = "PATH", group = "question")]
    pub unix: Option<PathBuf>,
    /// The policy.
    #[command(flatten)]
    pub policy: PolicyFlags,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
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

/// `sbx home`.
#[derive(Debug, Args)]
#[command(after_help = HOMES)]
pub struct HomeCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: HomeAction,
}

/// The subcommands of `sbx home`.
#[derive(Debug, Subcommand)]
pub enum HomeAction {
    /// List the private homes, the one that was used last first
    List {
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Show the private homes of a workspace, and what is largest in them
    Show {
        /// The workspace [default: that of a run that begins here]
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Remove private homes, but none that a run uses
    #[command(after_help = CLEARED)]
    Clear {
        /// Those of these workspaces
        #[arg(value_name = "WORKSPACE", conflicts_with = "all")]
        workspaces: Vec<PathBuf>,
        /// All
        #[arg(long)]
        all: bool,
        /// Only those in which no run began for this time: 30d, 12h
        #[arg(long, value_name = "DURATION", value_parser = units::age)]
        older_than: Option<Duration>,
        /// Only those whose workspace is not there any more
        #[arg(long)]
        gone: bool,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
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
