//! The command line: one file for each subcommand.

mod env;
mod flags;
mod inspect;
mod profile;
mod shim;

pub use flags::{Cli, Command, Level, Net, OnViolation, Run, Static};

use crate::launch;
use crate::profile::Search;
use crate::refusal::{REFUSED, Refusal};
use clap::Parser;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};

/// Runs `sbx` with these arguments, the program's name first, and returns its exit status.
pub fn main(arguments: Vec<OsString>) -> i32 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let result = match cli.command {
        Command::Run(run) => launch::run(*run),
        Command::Env(flags) => env::run(&flags),
        Command::Shim(flags) => shim::run(&flags),
        Command::Inspect(flags) => inspect::run(&flags),
        Command::Profile(flags) => profile::run(&flags.action),
    };
    result.unwrap_or_else(|refusal| {
        eprintln!("sbx: {refusal}");
        refusal.code.into()
    })
}

/// Help and version go to stdout; anything else is one sentence on stderr.
fn usage(error: &clap::Error) -> i32 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let text = error.render();
        let coloured =
            std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let text = if coloured { text.ansi().to_string() } else { text.to_string() };
        return i32::from(std::io::stdout().write_all(text.as_bytes()).is_err());
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        eprintln!("sbx: no subcommand; try 'sbx --help'");
        return REFUSED.into();
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("error: unusable arguments");
    let sentence = first.strip_prefix("error: ").unwrap_or(first);
    // Where the sentence ends in a colon, its object stands on the lines below.
    let object = if sentence.ends_with(':') { lines.clone().next().unwrap_or("") } else { "" };
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let help = tip.map_or_else(|| "try 'sbx --help'".to_string(), |tip| tip.replace('\n', " "));
    eprintln!(
        "sbx: {}{}{object}; {help}",
        sentence.to_lowercase_first(),
        if object.is_empty() { "" } else { " " }
    );
    REFUSED.into()
}

trait LowercaseFirst {
    fn to_lowercase_first(&self) -> String;
}

impl LowercaseFirst for str {
    fn to_lowercase_first(&self) -> String {
        let mut letters = self.chars();
        letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
    }
}

/// Where profiles are looked for.
pub(crate) fn search() -> Search {
    let (home, config) = (std::env::var_os("HOME"), std::env::var_os("XDG_CONFIG_HOME"));
    Search::from_environment(home.as_deref(), config.as_deref())
}

/// Writes to stdout; a reader that is gone is not our failure.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Refusal> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Refusal::new(format!("cannot write to standard output: {}", launch::landlock::plain(&error))))
        }
        _ => Ok(()),
    }
}
