//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Result;
use crate::network::{Work, child, named, relay};

/// What `--help` prints, and what follows a usage error.
pub(crate) const USAGE: &str = "\
usage: sbx-bench startup [--rounds N] [--warm-up N] [--seed N] [--sbx PATH] [--json]
       sbx-bench calls   [--rounds N] [--warm-up N] [--seed N] [--sbx PATH] [--json] [--file PATH]
       sbx-bench load    [--rounds N] [--warm-up N] [--seed N] [--sbx PATH] [--json] [--seconds N]
       sbx-bench memory  [--rounds N] [--warm-up N] [--seed N] [--sbx PATH] [--json]
       sbx-bench network [--rounds N] [--warm-up N] [--seed N] [--sbx PATH] [--json] [--small]
                         [--name HOST:PORT]
       sbx-bench morning [--rounds N] [--warm-up N] [--seed N] [--sbx PATH] [--json] [--small]
       sbx-bench peers   [--rounds N] [--warm-up N] [--seed N] [--sbx PATH] [--json] [--seconds N] [--as UID]
                         [--update FILE] [--small]

startup   starts /bin/true under each contestant, shuffled anew every round
calls     times getppid, openat+close and stat inside and outside the sandbox
load      counts the runs of /bin/true that 1, 2, 8 and 32 threads start one after another
memory    looks at the private memory and the threads of sbx while a command waits; needs root
network   connects to a server outside, through the broker and without it
morning   gives a hundred commands of an agent's in a row, with and without a pool
peers     does the first three and everyday commands under every sandbox that is installed

--sbx PATH    the sbx to measure; else $SBX_BIN, else the one built beside this program
--rounds N    rounds that count (startup: 500, calls: 20, load: 3, memory: 5, network: 9,
              morning: 5, peers: 300 starts and fewer of what takes longer)
--warm-up N   rounds thrown away first (startup: 20, calls: 1, load: 0, memory: 1, network: 1,
              morning: 1, peers: 10)
--seed N      the order of the contestants, to repeat a run
--seconds N   how long each contestant runs at each width in a round (1); every thread starts one run at least
--file PATH   the file that openat and stat are asked for (/usr/bin/env)
--small       few files to work on: the figures mean nothing then, the command is tried
--name HOST:PORT  connects by this name, which leads to an echo server on another machine
--as UID      gives up root for this user first
--update FILE puts the tables into this document too, between the markers for this kind of user
--json        every figure, for programs";

const MAX_ROUNDS: u64 = 1_000_000;

/// What was asked for.
#[derive(Debug, PartialEq)]
pub(crate) enum Job {
    Help,
    Startup(Options),
    Calls(Options),
    Load(Options),
    Memory(Options),
    Network(Options),
    Morning(Options),
    Relay(u16),
    Hold(u16),
    Connect(u16, Work),
    Named(String, usize),
    Peers(Options),
    Child(Child),
    Probe(Probe),
}

/// The flags of all drivers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) rounds: u64,
    pub(crate) warm_up: u64,
    pub(crate) seed: Option<u64>,
    pub(crate) sbx: Option<PathBuf>,
    pub(crate) file: PathBuf,
    pub(crate) seconds: u64,
    pub(crate) json: bool,
    pub(crate) small: bool,
    pub(crate) name: Option<String>,
    pub(crate) user: Option<u32>,
    pub(crate) update: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rounds: 1,
            warm_up: 0,
            seed: None,
            sbx: None,
            file: "/usr/bin/env".into(),
            seconds: 1,
            json: false,
            small: false,
            name: None,
            user: None,
            update: None,
        }
    }
}

impl Options {
    fn new(rounds: u64, warm_up: u64) -> Self {
        Self { rounds, warm_up, ..Self::default() }
    }
}

/// The arguments with which `calls` starts this program again inside a contestant.
#[derive(Debug, PartialEq)]
pub(crate) struct Child {
    pub(crate) file: PathBuf,
}

/// The arguments with which `peers` starts this program again inside a contestant.
#[derive(Debug, PartialEq)]
pub(crate) struct Probe {
    pub(crate) home: PathBuf,
    pub(crate) port: u16,
}

/// Reads the arguments, without the program's own name.
pub(crate) fn parse(args: Vec<OsString>) -> Result<Job> {
    let mut args = args.into_iter();
    let Some(command) = args.next() else { return Err("no command given".into()) };
    match command.to_str() {
        Some("-h" | "--help" | "help") => Ok(Job::Help),
        Some("startup") => flags(Options::new(500, 20), args).map(|o| o.map_or(Job::Help, Job::Startup)),
        Some("calls") => flags(Options::new(20, 1), args).map(|o| o.map_or(Job::Help, Job::Calls)),
        Some("load") => flags(Options::new(3, 0), args).map(|o| o.map_or(Job::Help, Job::Load)),
        Some("memory") => flags(Options::new(5, 1), args).map(|o| o.map_or(Job::Help, Job::Memory)),
        Some("network") => flags(Options::new(9, 1), args).map(|o| o.map_or(Job::Help, Job::Network)),
        Some("morning") => flags(Options::new(5, 1), args).map(|o| o.map_or(Job::Help, Job::Morning)),
        Some(relay::CHILD) => port(&mut args).map(Job::Relay),
        Some(child::HOLD) => port(&mut args).map(Job::Hold),
        Some(child::CHILD) => {
            let port = port(&mut args)?;
            Ok(Job::Connect(port, Work::new(args.next().is_some_and(|size| size == "small"))))
        }
        Some(named::CHILD) => {
            let place = args.next().ok_or("a host is missing")?.to_string_lossy().into_owned();
            let is_small = args.next().is_some_and(|size| size == "small");
            Ok(Job::Named(place, Work::new(is_small).connects))
        }
        Some("peers") => flags(Options::new(300, 10), args).map(|o| o.map_or(Job::Help, Job::Peers)),
        Some(crate::peers::CHILD) => probe(args).map(Job::Probe),
        Some(crate::calls::CHILD) => match args.next() {
            Some(file) => Ok(Job::Child(Child { file: file.into() })),
            None => Err(format!("{} needs a file", crate::calls::CHILD)),
        },
        _ => Err(format!("unknown command {command:?}")),
    }
}

fn port(args: &mut impl Iterator<Item = OsString>) -> Result<u16> {
    parse_number("the port", &args.next().ok_or("a port is missing")?)
}

fn probe(mut args: impl Iterator<Item = OsString>) -> Result<Probe> {
    let (Some(home), Some(port)) = (args.next(), args.next()) else {
        return Err(format!("{} needs a directory and a port", crate::peers::CHILD));
    };
    Ok(Probe { home: home.into(), port: parse_number("the port", &port)? })
}

/// `None` when help was asked for.
fn flags(mut options: Options, mut args: impl Iterator<Item = OsString>) -> Result<Option<Options>> {
    while let Some(arg) = args.next() {
        let (name, mut inline) = split(&arg);
        let mut value = || {
            inline.take().or_else(|| args.next()).ok_or_else(|| format!("{} needs a value", arg.display()))
        };
        match name {
            "-h" | "--help" => return Ok(None),
            "--json" => options.json = true,
            "--sbx" => options.sbx = Some(value()?.into()),
            "--file" => options.file = value()?.into(),
            "--seconds" => options.seconds = number("--seconds", &value()?, 0)?,
            "--rounds" => options.rounds = number("--rounds", &value()?, 1)?,
            "--warm-up" => options.warm_up = number("--warm-up", &value()?, 0)?,
            "--small" => options.small = true,
            "--name" => options.name = Some(value()?.to_string_lossy().into_owned()),
            "--as" => options.user = Some(parse_number("--as", &value()?)?),
            "--update" => options.update = Some(value()?.into()),
            "--seed" => options.seed = Some(parse_number("--seed", &value()?)?),
            _ => return Err(format!("unknown flag {}", arg.display())),
        }
    }
    Ok(Some(options))
}

/// `--flag=value` as its two parts; a flag that is not UTF-8 is no flag of ours.
fn split(arg: &OsString) -> (&str, Option<OsString>) {
    match arg.to_str().unwrap_or("") {
        text if text.starts_with("--") => match text.split_once('=') {
            Some((name, value)) => (name, Some(value.into())),
            None => (text, None),
        },
        text => (text, None),
    }
}

fn number(flag: &str, value: &OsString, least: u64) -> Result<u64> {
    let number: u64 = parse_number(flag, value)?;
    if (least..=MAX_ROUNDS).contains(&number) {
        return Ok(number);
    }
    Err(format!("{flag} must be {least} to {MAX_ROUNDS}, not {number}"))
}

fn parse_number<N: FromStr>(flag: &str, value: &OsString) -> Result<N> {
    let text = value.to_str().unwrap_or("");
    text.parse().map_err(|_| format!("{flag} needs a whole number, not {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Job> {
        parse(args.iter().map(OsString::from).collect())
    }

    #[test]
    fn flags_in_both_spellings() {
        let Ok(Job::Startup(options)) = parsed(&["startup", "--rounds=7", "--sbx", "/x/sbx", "--json"])
        else {
            panic!("not understood")
        };
        assert_eq!((options.rounds, options.json), (7, true));
        assert_eq!(options.sbx, Some(PathBuf::from("/x/sbx")));
    }

    #[test]
    fn nonsense_is_refused() {
        for args in [
            &["startup", "--rounds"][..],
            &["startup", "--rounds", "0"],
            &["calls", "--rounds", "-1"],
            &["calls", "--speed"],
            &["load", "--seconds", "-1"],
            &["launch"],
            &[],
        ] {
            assert!(parsed(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn help_wins() {
        assert_eq!(parsed(&["startup", "--help"]), Ok(Job::Help));
    }
}
