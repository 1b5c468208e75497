//! Usage errors: what clap found, as one sentence.

use crate::supervise::decode::escape;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use sbx_policy::calls::nearest;
use std::ffi::OsString;

/// Longest word of the command line that is repeated.
const LONGEST: usize = 100;

/// The sentence for an error, without the program's name.
pub fn sentence(error: &clap::Error, arguments: &[OsString]) -> String {
    let command = Named::of(arguments);
    let what = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            return format!("no subcommand: name one of {}", command.subcommands().join(", "));
        }
        ErrorKind::InvalidSubcommand => return subcommand(error, &command),
        ErrorKind::UnknownArgument => return argument(error, &command),
        ErrorKind::MissingRequiredArgument if command.path == ["run"] => {
            return "no command: write it after '--', as in sbx run -- ls".to_string();
        }
        ErrorKind::MissingRequiredArgument => format!("{} is missing", word(error, ContextKind::InvalidArg)),
        ErrorKind::ArgumentConflict => conflict(error),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::InvalidUtf8 => value(error),
        _ => fallback(error),
    };
    format!("{what}; try '{} --help'", command.name())
}

/// The subcommand that an error is about.
struct Named {
    path: Vec<String>,
    command: Command,
}

impl Named {
    fn of(arguments: &[OsString]) -> Named {
        let mut named = Named { path: Vec::new(), command: super::Cli::command() };
        for argument in arguments.iter().skip(1) {
            let Some(next) = argument.to_str().and_then(|name| named.command.find_subcommand(name)) else {
                break;
            };
            named.path.push(next.get_name().to_string());
            named.command = next.clone();
        }
        named
    }

    fn name(&self) -> String {
        let words: Vec<&str> = ["sbx"].into_iter().chain(self.path.iter().map(String::as_str)).collect();
        words.join(" ")
    }

    fn subcommands(&self) -> Vec<&str> {
        self.command.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name).collect()
    }

    fn flags(&self) -> Vec<&str> {
        self.command.get_arguments().filter_map(clap::Arg::get_long).chain(["help"]).collect()
    }
}

fn subcommand(error: &clap::Error, command: &Named) -> String {
    let given = raw(error, ContextKind::InvalidSubcommand);
    let known = command.subcommands();
    let shown = escape(given.as_bytes(), LONGEST);
    let name = command.name();
    if let Some(near) = nearest(given.as_bytes(), known.iter().copied()) {
        return format!("unknown subcommand '{shown}'; did you mean '{name} {near}'?");
    }
    let known = known.join(", ");
    if command.path.is_empty() {
        return format!(
            "unknown subcommand '{shown}'; it is one of {known}; to run a command, write 'sbx run -- COMMAND'"
        );
    }
    format!("unknown subcommand '{shown}'; it is one of {known}")
}

fn argument(error: &clap::Error, command: &Named) -> String {
    let given = raw(error, ContextKind::InvalidArg);
    let shown = escape(given.as_bytes(), LONGEST);
    let name = command.name();
    let Some(long) = given.strip_prefix("--") else {
        let kind = if given.starts_with('-') { "flag" } else { "argument" };
        return format!("unknown {kind} '{shown}'; try '{name} --help'");
    };
    let long = long.split('=').next().unwrap_or(long);
    let suggested = raw(error, ContextKind::SuggestedArg);
    let near = suggested.strip_prefix("--").map(str::to_string);
    let near = near.or_else(|| nearest(long.as_bytes(), command.flags().into_iter()).map(str::to_string));
    match near {
        Some(near) => format!("unknown flag '{shown}'; did you mean '--{near}'?"),
        None => format!("unknown flag '{shown}'; try '{name} --help'"),
    }
}

fn conflict(error: &clap::Error) -> String {
    let (given, prior) = (word(error, ContextKind::InvalidArg), word(error, ContextKind::PriorArg));
    if given == prior {
        return format!("{given} is given twice: leave one out");
    }
    format!("{prior} and {given} contradict each other: leave one of them out")
}

fn value(error: &clap::Error) -> String {
    let (flag, given) = (word(error, ContextKind::InvalidArg), raw(error, ContextKind::InvalidValue));
    if error.kind() == ErrorKind::InvalidUtf8 {
        return "a word of the command line is not UTF-8, where only paths, commands and environment may be anything else".to_string();
    }
    if given.is_empty() {
        return format!("{flag} has no value");
    }
    let shown = escape(given.as_bytes(), LONGEST);
    let known = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(known)) if !known.is_empty() => {
            format!(": it is one of {}", known.join(", "))
        }
        _ => std::error::Error::source(error)
            .map_or_else(String::new, |cause| format!(": {}", escape(cause.to_string().as_bytes(), 200))),
    };
    format!("'{shown}' is no value for {flag}{known}")
}

/// A flag or argument as it is written, without the name of its value.
fn word(error: &clap::Error, kind: ContextKind) -> String {
    let text = raw(error, kind);
    let flag = if text.starts_with('-') { text.split([' ', '=']).next().unwrap_or(&text) } else { &text };
    escape(flag.trim_end_matches("...").trim_matches(['<', '>', '[', ']']).as_bytes(), LONGEST)
}

fn raw(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        _ => String::new(),
    }
}

/// clap's own first line.
fn fallback(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("unusable arguments");
    escape(first.strip_prefix("error: ").unwrap_or(first).as_bytes(), 400)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn said(words: &[&[u8]]) -> String {
        use std::os::unix::ffi::OsStringExt;
        let all: Vec<OsString> =
            [&b"sbx"[..]].iter().chain(words).map(|word| OsString::from_vec(word.to_vec())).collect();
        super::super::Cli::try_parse_from(&all).map_or_else(|error| sentence(&error, &all), |_| String::new())
    }

    #[test]
    fn each_mistake_is_one_sentence_with_a_way_on() {
        let cases: &[(&[&[u8]], &str)] = &[
            (
                &[],
                "no subcommand: name one of run, env, shim, inspect, why, profile, report, status, test, completions",
            ),
            (&[b"profile"], "no subcommand: name one of list, show, check, schema"),
            (&[b"rnu"], "unknown subcommand 'rnu'; did you mean 'sbx run'?"),
            (&[b"profile", b"lst"], "unknown subcommand 'lst'; did you mean 'sbx profile list'?"),
            (&[b"run"], "no command: write it after '--', as in sbx run -- ls"),
            (&[b"run", b"--"], "no command: write it after '--', as in sbx run -- ls"),
            (&[b"run", b"-q", b"--"], "no command: write it after '--', as in sbx run -- ls"),
            (
                &[b"run", b"--profil", b"x", b"--", b"ls"],
                "unknown flag '--profil'; did you mean '--profile'?",
            ),
            (&[b"run", b"--profil=x", b"ls"], "unknown flag '--profil'; did you mean '--profile'?"),
            (&[b"run", b"-Z", b"--", b"ls"], "unknown flag '-Z'; try 'sbx run --help'"),
            (
                &[b"run", b"-q", b"-v", b"ls"],
                "--verbose and --quiet contradict each other: leave one of them out",
            ),
            (
                &[b"run", b"--net", b"host", b"--net", b"none", b"ls"],
                "--net is given twice: leave one out; try 'sbx run --help'",
            ),
            (
                &[b"run", b"--net", b"foo", b"ls"],
                "'foo' is no value for --net: it is one of none, private, host",
            ),
            (
                &[b"run", b"--require", b"all", b"ls"],
                "'all' is no value for --require: it is one of full, standard, minimal",
            ),
            (
                &[b"run", b"--bind", b"99999", b"ls"],
                "'99999' is no value for --bind: it is no port, like 8080: a number up to 65535 alone",
            ),
            (
                &[b"run", b"--bind", b"*:80", b"ls"],
                "'*:80' is no value for --bind: it is no port, like 8080: a number up to 65535 alone",
            ),
            (
                &[b"run", b"--report-fd", b"x", b"ls"],
                "'x' is no value for --report-fd: it is no descriptor's number, like 3",
            ),
            (&[b"run", b"-p"], "--profile has no value; try 'sbx run --help'"),
            (&[b"inspect"], "FILE is missing; try 'sbx inspect --help'"),
            (&[b"profile", b"show"], "NAME|FILE is missing; try 'sbx profile show --help'"),
            (&[b"inspect", b"a", b"b"], "unknown argument 'b'; try 'sbx inspect --help'"),
        ];
        for (words, expected) in cases {
            let said = said(words);
            assert!(said.starts_with(expected), "{words:?}: {said}");
        }
        assert!(said(&[b"ls"]).ends_with("write 'sbx run -- COMMAND'"));
    }

    #[test]
    fn odd_bytes_stay_on_one_line() {
        for word in [&b"a\nb"[..], b"--a\nb", b"--a\xffb", b"\xff", b"--\x1b[31m", b"-\xff"] {
            for words in [
                &[word][..],
                &[b"run", word],
                &[b"run", b"--net", word, b"ls"],
                &[b"run", b"--connect", word],
            ] {
                let said = said(words);
                assert!(!said.chars().any(char::is_control), "{words:?}: {said}");
            }
        }
    }
}
