//! `sbx pool`: runs that wait for their commands; and which way a command takes.

use crate::cli::flags::PoolFlags;
use crate::cli::print;
use crate::error::Refusal;
use crate::pool::{self, Started};
use crate::profile::units;
use crate::report::json::document;
use crate::request::Request;
use crate::run;
use crate::selftest;
use crate::text::{counted, escape};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  sbx pool start                       for 'sbx run --pool -- COMMAND' in this directory
  sbx pool start --profile read-only   for 'sbx run --pool --profile read-only -- COMMAND'
  sbx pool status                      which pools there are
  sbx pool stop --all                  ends them";

/// `sbx pool`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PoolCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: PoolAction,
}

/// The subcommands of `sbx pool`.
#[derive(Debug, Subcommand)]
pub enum PoolAction {
    /// Start a pool of runs with these flags, in this directory
    Start {
        /// How many runs wait
        #[arg(long, value_name = "N", default_value = "4", value_parser = size)]
        size: u8,
        /// The pool ends when nobody has asked for a run for this time
        #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = time)]
        idle: Duration,
        /// The flags.
        #[command(flatten)]
        flags: Box<PoolFlags>,
    },
    /// List the pools
    Status {
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// End the pool of runs with these flags, in this directory
    Stop {
        /// End every pool of yours
        #[arg(long)]
        all: bool,
        /// The flags.
        #[command(flatten)]
        flags: Box<PoolFlags>,
    },
}

fn size(text: &str) -> Result<u8, String> {
    let known = text.parse().ok().filter(|size| (1..=64).contains(size));
    known.ok_or_else(|| "not a number from 1 to 64".to_string())
}

fn time(text: &str) -> Result<Duration, String> {
    units::patience(text)?.limit().ok_or_else(|| "it is no duration, like 10m or 1h".to_string())
}

/// Runs a command, in a pool's run where that is asked for.
pub fn dispatch(request: Request) -> Result<i32, Refusal> {
    if request.pool || is_asked_for()? {
        return pool::run(request, selftest::verify);
    }
    run::run(request, selftest::verify)
}

/// Whether the variable asks for it.
fn is_asked_for() -> Result<bool, Refusal> {
    let Some(value) = std::env::var_os(pool::VARIABLE) else { return Ok(false) };
    match value.as_bytes() {
        b"" | b"0" => Ok(false),
        b"1" => Ok(true),
        other => Err(Refusal::new(format!(
            "invalid value '{}' for {}: expected 0 or 1; set it to one of them or unset it",
            escape(other, 100),
            pool::VARIABLE
        ))),
    }
}

/// Runs a subcommand.
pub fn run(action: &PoolAction) -> Result<i32, Refusal> {
    match action {
        PoolAction::Start { size, idle, flags } => {
            let line = match pool::start(&flags.0, usize::from(*size), *idle)? {
                Started::As(pid) => {
                    let wait = if *size == 1 { "waits" } else { "wait" };
                    format!("{} {wait}, kept by process {pid}\n", counted(usize::from(*size), "run"))
                }
                Started::Already(pid) => format!("there is one already, process {pid}\n"),
            };
            print(line.as_bytes())?;
        }
        PoolAction::Status { json } => list(*json)?,
        PoolAction::Stop { all, flags } => {
            let ended = pool::stop((!*all).then_some(&flags.0))?;
            print(format!("{} ended\n", counted(ended, "pool")).as_bytes())?;
        }
    }
    Ok(0)
}

fn list(json: bool) -> Result<(), Refusal> {
    let pools = pool::status();
    let directory = |pool: &pool::Known| {
        pool.directory.as_ref().map(|path| escape(path.as_os_str().as_bytes(), 400)).unwrap_or_default()
    };
    if json {
        let entries: Vec<Value> = pools
            .iter()
            .map(|pool| {
                json!({"pid": pool.pid, "directory": directory(pool), "words": pool.words, "runs": pool.runs})
            })
            .collect();
        return print(document(&Value::from(entries)).as_bytes());
    }
    let lines = pools.iter().map(|pool| line(pool, &directory(pool)));
    let text = if pools.is_empty() { "no pools\n".to_string() } else { lines.collect() };
    print(text.as_bytes())
}

/// A line about a pool. A pool that was started without words has no blank at its end.
fn line(pool: &pool::Known, directory: &str) -> String {
    let words = pool.words.iter().map(|word| format!(" {}", escape(word.as_bytes(), 100)));
    let (runs, words) = (counted(pool.runs, "run"), words.collect::<String>());
    format!("process {}: {runs} in '{directory}'{words}\n", pool.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_ends_in_a_blank() {
        let told = |words: &[&str], runs| {
            let words = words.iter().map(ToString::to_string).collect();
            line(&pool::Known { pid: 7, directory: None, words, runs }, "/work")
        };
        assert_eq!(told(&[], 4), "process 7: 4 runs in '/work'\n");
        assert_eq!(told(&["--profile", "write"], 1), "process 7: 1 run in '/work' --profile write\n");
    }
}
