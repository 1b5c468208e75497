//! `sbx learn`: a profile that a command needs, from watched runs or from reports.

use crate::cli::flags::{argument, request};
use crate::cli::table::{Flag, GROUPS, Takes};
use crate::cli::{print, why};
use crate::error::Refusal;
use crate::host::Host;
use crate::learn::{self, Asked, GivenFlag};
use crate::report::json::document;
use crate::request::Request;
use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Args, FromArgMatches};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

const LEARNING: &str = "\
Examples:
  sbx learn -o count.json -- wc -l /srv/data/*.csv   runs it until nothing new is refused
  sbx learn -o test.json --profile read-only -- npm test
  sbx learn --rounds 1 -o x.json -- ./install.sh     shows what the first round asks for, and gives none of it
  sbx learn --from audit.log -o daily.json           from the reports of days, without running anything

The rules are in force in every round, and each round runs the command anew: what it does stays done. \
What is sensitive (keys, secrets, settings of agents, what something outside executes later, sockets of \
services) is never learned unless --allow-sensitive says so, or a flag of run names it. All that is \
learned is shown on standard error.

Exit status: 0 the profile is written, and the command passed under it; 1 the command did not pass, and \
nothing is written; 125 sbx refused or failed; 126, 127 the command cannot be executed, or was not \
found; 128+n a signal ended sbx learn, and nothing is written.";

/// `sbx learn`.
#[derive(Debug, Args)]
#[command(after_help = LEARNING)]
pub struct Learn {
    /// Write the profile to FILE
    #[arg(short, long, value_name = "FILE", required = true)]
    pub output: PathBuf,
    /// Run the command at most N times
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub rounds: u16,
    /// The exit status by which the command passes
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=255))]
    pub status: i32,
    /// Learn what is sensitive, too
    #[arg(long)]
    pub allow_sensitive: bool,
    /// Learn from reports (or audit logs) of runs, and run nothing; '-' is standard input
    #[arg(long, value_name = "REPORT", num_args = 1.., conflicts_with = "command")]
    pub from: Vec<PathBuf>,
    /// JSON on standard output; the command writes to standard error then
    #[arg(long)]
    pub json: bool,
    /// The flags of run.
    #[command(flatten)]
    pub run: Given,
}

/// Flags of `sbx run` that `sbx learn` takes.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Those that become rules, the profile, and the command.
    pub request: Request,
    /// The others, in the order of the table.
    pub others: Vec<GivenFlag>,
}

impl Args for Given {
    fn augment_args(command: clap::Command) -> clap::Command {
        given_flags(command)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (request, others) = given_request(matches)?;
        Ok(Given { request, others })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Flags that make rules of a learned profile.
const RULES: [&str; 17] = [
    "ro",
    "rox",
    "rw",
    "rwx",
    "deny",
    "allow-command",
    "block-command",
    "allow-calls",
    "deny-calls",
    "net",
    "connect",
    "bind",
    "unix",
    "static",
    "require",
    "namespaces",
    "home",
];
/// Flags that hold in every round of learning. What a profile can say of them is written too.
const OF_ROUNDS: [&str; 15] = [
    "workspace",
    "cwd",
    "env",
    "inherit-env",
    "allow-dangerous-env",
    "pass-fd",
    "host-port",
    "timeout",
    "kill-after",
    "max-output",
    "max-processes",
    "max-memory",
    "max-cpu",
    "max-open-files",
    "max-file-size",
];

/// The rows of the table that `sbx learn` takes.
fn of_learning() -> impl Iterator<Item = (&'static str, &'static Flag)> {
    let rows = GROUPS.iter().flat_map(|(heading, flags)| flags.iter().map(move |flag| (*heading, flag)));
    rows.filter(|(_, flag)| {
        flag.long == "profile" || RULES.contains(&flag.long) || OF_ROUNDS.contains(&flag.long)
    })
}

/// Adds what `sbx learn` takes of the flags of `sbx run`, and the command.
fn given_flags(command: clap::Command) -> clap::Command {
    let what = Arg::new("command").value_name("COMMAND").help("The command and its arguments, after '--'");
    let what = what.num_args(1..).trailing_var_arg(true).value_parser(ValueParser::os_string());
    command
        .args(of_learning().map(|(heading, flag)| argument(flag, heading)))
        .arg(what.required_unless_present("from"))
}

/// What these flags ask for, and those that hold in every round.
fn given_request(matches: &ArgMatches) -> Result<(Request, Vec<GivenFlag>), clap::Error> {
    let mut request = request(matches, |flag| of_learning().any(|(_, known)| known.long == flag.long))?;
    request.command = matches.get_many("command").into_iter().flatten().cloned().collect();
    let mut others = Vec::new();
    for (_, flag) in of_learning().filter(|(_, flag)| OF_ROUNDS.contains(&flag.long)) {
        if let Takes::Switch(_) = flag.takes {
            let given = matches.get_one(flag.long).is_some_and(|given| *given);
            others.extend(given.then_some(GivenFlag { long: flag.long, value: None }));
            continue;
        }
        for value in matches.get_many::<OsString>(flag.long).into_iter().flatten() {
            others.push(GivenFlag { long: flag.long, value: Some(value.clone()) });
        }
    }
    Ok((request, others))
}

/// Learns.
pub fn run(flags: &Learn) -> Result<i32, Refusal> {
    let host = Host::of_this_process();
    let request = &flags.run.request;
    let plan = |start: &OsStr| {
        let request = Request {
            profile: Some(start.to_os_string()),
            workspace: request.workspace.clone(),
            cwd: request.cwd.clone(),
            ..Request::default()
        };
        why::plan(&request, &host)
    };
    let asked = Asked {
        output: &flags.output,
        rounds: flags.rounds.into(),
        status: flags.status,
        allow_sensitive: flags.allow_sensitive,
        json: flags.json,
        start: request.profile.clone(),
        given: request,
        flags: &flags.run.others,
        command: &request.command,
    };
    let learned = match flags.from.is_empty() {
        true => learn::by_running(&asked, &host, &plan)?,
        false => learn::from_reports(&asked, &host, &plan, &flags.from)?,
    };
    if flags.json {
        print(document(&learned.json).as_bytes())?;
    }
    Ok(learned.status)
}
