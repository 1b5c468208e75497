//! The command line: one file for each subcommand.

mod agent;
mod as_shell;
mod env;
mod flags;
mod foreign;
mod home;
mod hook;
mod inspect;
mod learn;
mod mcp;
mod pages;
mod plain;
mod pool;
mod profile;
mod report;
mod shell;
mod shim;
mod status;
mod table;
mod test;
mod usage;
#[doc(hidden)]
pub mod why;

pub use flags::{Cli, Command};

use crate::cli::flags::RunFlags;
use crate::error::Refusal;
use crate::run;
use crate::selftest;
use crate::supervise::Stderr;
use crate::sys::{plain, process};
use crate::text::wants_colours;
use clap::error::ErrorKind;
use clap::{FromArgMatches, Parser};
use std::ffi::OsString;
use std::io::Write;

/// Runs `sbx` with these arguments, the program's name first, and returns its exit status.
pub fn main(arguments: Vec<OsString>) -> i32 {
    if as_shell::is_meant(&arguments) {
        return finish(as_shell::run(&arguments));
    }
    let is_run = arguments.get(1).is_some_and(|word| word == "run");
    match is_run.then(|| plain::parse(&arguments[2..])).flatten() {
        Some(request) => finish(pool::dispatch(request)),
        None => by_clap(&arguments),
    }
}

/// Anything that is not plainly a run. Out of the way: the start of a run touches few pages of code.
#[cold]
#[inline(never)]
fn by_clap(arguments: &[OsString]) -> i32 {
    // Inside a sandbox, with the calls of its profile alone.
    if arguments.get(1).is_some_and(|word| word == selftest::WORD) {
        process::exit_now(selftest::main(arguments.get(2..).unwrap_or(&[])));
    }
    // The errors of a run are for the whole command line.
    if arguments.get(1).is_some_and(|word| word == "run")
        && let Ok(matches) = flags::run_only().try_get_matches_from(&arguments[1..])
        && let Ok(flags) = RunFlags::from_arg_matches(&matches)
    {
        return finish(pool::dispatch(flags.0));
    }
    if let Err(refusal) = run::hear_of_children() {
        return finish(Err(refusal));
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, arguments),
    };
    finish(match cli.command {
        Command::Run(flags) => pool::dispatch(flags.0),
        Command::Pool(flags) => pool::run(&flags.action),
        Command::Shell(flags) => shell::run(flags.0),
        Command::Agent(command) => agent::run(*command),
        Command::Hook(command) => hook::run(&command.action),
        Command::Env(flags) => env::run(&flags),
        Command::Shim(flags) => shim::run(&flags),
        Command::Inspect(flags) => inspect::run(&flags),
        Command::Learn(flags) => learn::run(&flags),
        Command::Why(flags) => why::run(*flags),
        Command::Profile(flags) => profile::run(&flags.action),
        Command::Home(flags) => home::run(&flags.action),
        Command::Completions { shell } => pages::completions(shell),
        Command::Man { directory } => pages::man(&directory),
        Command::Report(flags) => report::run(&flags.action),
        Command::Mcp(flags) => mcp::run(*flags),
        Command::Status(flags) => status::run(&flags),
        Command::Test(flags) => test::run(&flags),
    })
}

/// The exit status, and the sentence of a refusal.
fn finish(result: Result<i32, Refusal>) -> i32 {
    result.unwrap_or_else(|refusal| {
        complain(&refusal.to_string());
        refusal.status().into()
    })
}

/// Help and version go to stdout; anything else is one sentence on stderr.
fn usage(error: &clap::Error, arguments: &[OsString]) -> i32 {
    if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let refusal = Refusal::new(usage::sentence(error, arguments));
        let runs = arguments.get(1).is_some_and(|word| word == "run");
        return finish(if runs {
            crate::report::misunderstood(&flags::places(arguments), refusal)
        } else {
            Err(refusal)
        });
    }
    let text = error.render();
    let text = if wants_colours(&std::io::stdout()) { text.ansi().to_string() } else { text.to_string() };
    match print(text.as_bytes()) {
        Ok(()) => 0,
        Err(refusal) => {
            complain(&refusal.to_string());
            refusal.status().into()
        }
    }
}

/// One line on stderr.
fn complain(sentence: &str) {
    Stderr::say_alone(&format!("sbx: {sentence}\n"));
}

/// Writes to stdout; a reader that is gone is not our failure.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Refusal> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Refusal::new(format!("cannot write to standard output: {}", plain(&error))))
        }
        _ => Ok(()),
    }
}
