//! `sbx mcp`: the flags of a server of the Model Context Protocol, which has the layer `mcp` do the work.

use crate::cli::complain;
use crate::cli::flags::{of_a_run, request};
use crate::cli::table::{GROUPS, Takes};
use crate::cli::why;
use crate::error::Refusal;
use crate::host::Host;
use crate::mcp::{self, Given, REFUSED, Settings, Start};
use crate::profile;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, value_parser};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

const EXAMPLES: &str = "\
Examples (a client of the protocol starts the server; the first line has one agent do so):
  claude mcp add sandbox -- sbx mcp                 in a project's directory
  sbx mcp --workspace ~/project --ro ~/data         for a client that starts servers elsewhere
  sbx mcp --connect registry.npmjs.org -t 15m       commands reach this host; 15 minutes for each
  sbx mcp --ask                                     you are asked for what a command was refused

The tools are execute (command, cwd, timeout, input), why and read_report. None of them changes the rules: the flags \
here do, which are those of sbx run that fit a server. --timeout is also the most that a call may ask for (without it: \
10m, and 2m where a call asks for nothing), --max-output is 64K for each stream if it is left out.

Exit status: 0 the client left; 125 sbx failed or refused to start; 128+n signal n ended the server.";

/// The names of the flags that `sbx run` does not have.
const ASK: &str = "ask";
const CONCURRENT: &str = "concurrent";

/// `sbx mcp`.
#[derive(Debug)]
pub struct McpFlags {
    request: crate::request::Request,
    given: Vec<Given>,
    asks: bool,
    concurrent: u8,
}

impl Args for McpFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        const HEADING: &str = "Server";
        let ask = Arg::new(ASK).long(ASK).action(ArgAction::SetTrue).help_heading(HEADING);
        let ask =
            ask.help("Ask the user, in the client, for single paths and hosts that a command was refused");
        let concurrent = Arg::new(CONCURRENT).long(CONCURRENT).value_name("N").help_heading(HEADING);
        let concurrent = concurrent.default_value("4").value_parser(value_parser!(u8).range(1..=32));
        let concurrent = concurrent.help("How many commands run at a time; others wait");
        // They are known, to say why not.
        let hide =
            |command: clap::Command, (name, _): &(&str, _)| command.mut_arg(name, |flag| flag.hide(true));
        REFUSED.iter().fold(of_a_run(command.args([ask, concurrent])), hide).after_help(EXAMPLES)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for McpFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(McpFlags {
            request: request(matches, |_| true)?,
            given: given(matches),
            asks: matches.get_flag(ASK),
            concurrent: matches.get_one(CONCURRENT).copied().unwrap_or(1),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flags of `sbx run` that were given, one by one.
fn given(matches: &ArgMatches) -> Vec<Given> {
    let mut all = Vec::new();
    for flag in GROUPS.iter().flat_map(|(_, flags)| *flags) {
        let (name, of_policy) = (flag.long, flag.asks);
        if let Takes::Switch(_) = flag.takes {
            if matches.get_flag(name) {
                all.push(Given { name, value: None, is_path: false, of_policy });
            }
            continue;
        }
        let takes_path = matches!(flag.takes, Takes::Path(_) | Takes::Paths(_));
        // Others take a name as well, which no directory changes.
        let is_path = |value: &OsString| match name {
            "profile" => profile::is_path(value),
            "allow-command" | "block-command" => value.as_bytes().contains(&b'/'),
            _ => takes_path,
        };
        let values = matches.get_many::<OsString>(name).into_iter().flatten();
        all.extend(values.map(|value| Given {
            name,
            value: Some(value.clone()),
            is_path: is_path(value),
            of_policy,
        }));
    }
    all
}

/// Serves.
pub fn run(flags: McpFlags) -> Result<i32, Refusal> {
    let McpFlags { request, given, asks, concurrent } = flags;
    let host = Host::of_this_process();
    let mut start = Start { request, flags: given, asks, concurrent: concurrent.into() };
    Settings::check(&start)?;
    Settings::pin_profile(&mut start, &host)?;
    // Mistakes in the flags or the profile are told here, and not in the answer of each call.
    let plan = why::plan(&start.request, &host)?;
    let settings = Settings::new(start, &plan, &host)?;
    plan.warnings.iter().for_each(|warning| complain(warning));
    mcp::serve(settings)
}
