//! Usage errors: what clap found, as one sentence.

use crate::text::escape;
use clap::builder::PossibleValue;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, Id};
use sbx_policy::calls::nearest;
use std::error::Error;
use std::ffi::OsString;

/// Longest word of the command line that is repeated.
const LONGEST: usize = 100;

/// The sentence for an error, without the program's name.
pub fn sentence(error: &clap::Error, arguments: &[OsString]) -> String {
    let command = meant(arguments);
    let name = command.get_bin_name().unwrap_or("sbx");
    let known: Vec<&str> =
        command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name).collect();
    let given = raw(error, ContextKind::InvalidArg);
    let (flag, argument) = (without_value(&given), as_help_shows(&given));
    let what = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            return format!("no subcommand: name one of {}", known.join(", "));
        }
        ErrorKind::InvalidSubcommand => {
            let given = raw(error, ContextKind::InvalidSubcommand);
            let run = if name == "sbx" { "; to run a command, write 'sbx run -- COMMAND'" } else { "" };
            let hint = match nearest(given.as_bytes(), known.iter().copied()) {
                Some(near) => format!("did you mean '{name} {near}'?"),
                None => format!("expected one of {}{run}", known.join(", ")),
            };
            return format!("unknown subcommand '{}'; {hint}", escape(given.as_bytes(), LONGEST));
        }
        ErrorKind::UnknownArgument => match similar(&command, &flag, raw(error, ContextKind::SuggestedArg)) {
            _ if name == "sbx agent" && flag.starts_with('-') => {
                format!("unknown flag '{flag}'; flags of the agent itself follow '--'")
            }
            _ if name == "sbx run" && flag == "--json" => {
                return "unknown flag '--json'; what happened in a run goes to a file as JSON with --report FILE"
                    .to_string();
            }
            _ if name == "sbx shell" && !flag.starts_with("--") => {
                return format!("unknown argument '{flag}'; to run one command, write 'sbx run -- COMMAND'");
            }
            near if !near.is_empty() => return format!("unknown flag '{flag}'; did you mean '{near}'?"),
            _ if flag.starts_with('-') => format!("unknown flag '{flag}'"),
            _ => format!("unknown argument '{flag}'"),
        },
        ErrorKind::MissingRequiredArgument if name == "sbx run" => {
            return "no command: write it after '--', as in sbx run -- ls".to_string();
        }
        ErrorKind::MissingRequiredArgument => missing(&command, error),
        ErrorKind::ArgumentConflict => match as_help_shows(&raw(error, ContextKind::PriorArg)) {
            prior if prior == argument => format!("{argument} is given twice: leave one out"),
            prior => format!("{prior} and {argument} contradict each other: leave one of them out"),
        },
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => value(error, &argument),
        _ => first_line(error),
    };
    format!("{what}; try '{name} --help'")
}

/// The subcommand that the command line names.
fn meant(arguments: &[OsString]) -> Command {
    let mut command = crate::cli::Cli::command().disable_help_subcommand(true);
    command.build();
    for word in arguments.iter().skip(1) {
        match command.find_subcommand(word) {
            Some(next) => command = next.clone(),
            None => break,
        }
    }
    command
}

/// What may be meant by an unknown flag; empty if nothing is. `near`: the flag that is spelled most like it. Who comes
/// from another tool knows another name for it, of which a part may be ours (`--no-net`), or a profile for a flag.
fn similar(command: &Command, flag: &str, near: String) -> String {
    let Some(name) = flag.strip_prefix("--") else { return near };
    let own = |name: &str| command.get_arguments().find(|arg| arg.get_long() == Some(name));
    if own("profile").is_some() && sbx_profiles::NAMES.contains(&name) {
        return format!("--profile {name}");
    }
    let Some(own) = name.split('-').find_map(own) else { return near };
    let values = own.get_possible_values();
    let values: Vec<&str> =
        values.iter().filter(|value| !value.is_hide_set()).map(PossibleValue::get_name).collect();
    let gap = if values.is_empty() { "" } else { " " };
    format!("--{}{gap}{}", own.get_long().unwrap_or_default(), values.join("|"))
}

/// What is missing, and what help says about it where that is one argument.
fn missing(command: &Command, error: &clap::Error) -> String {
    let texts = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(texts)) => texts.as_slice(),
        _ => &[],
    };
    let name = |text: &String| alternatives(command, text).unwrap_or_else(|| as_help_shows(text));
    let names: Vec<String> = texts.iter().map(name).collect();
    match (names.as_slice(), texts) {
        ([name], [text]) => {
            let is_it = |arg: &&Arg| without_brackets(&arg.to_string()) == without_brackets(text);
            let help = command.get_arguments().find(is_it).and_then(Arg::get_help);
            let help = help.map(|help| format!(": {}", uncapitalized(&help.to_string())));
            format!("{name} is missing{}", help.unwrap_or_default())
        }
        _ => format!("{} are missing", names.join(" and ")),
    }
}

/// The arguments of a group, of which one is required. `text` is how clap writes the group.
fn alternatives(command: &Command, text: &str) -> Option<String> {
    let named = |arg: &Arg| match arg.is_positional() {
        true => without_brackets(&arg.to_string()).to_string(),
        false => arg.to_string(),
    };
    let mut groups = command.get_groups().map(|group| {
        let of_group = |id: &Id| command.get_arguments().find(|arg| arg.get_id() == id);
        group.get_args().filter_map(of_group).collect::<Vec<&Arg>>()
    });
    let is_it = |args: &Vec<&Arg>| {
        let names: Vec<String> = args.iter().map(|arg| named(arg)).collect();
        text == format!("<{}>", names.join("|"))
    };
    let mut args = groups.find(is_it)?;
    args.sort_by_key(|arg| !arg.is_positional());
    let shown = |arg: &&Arg| match arg.is_positional() {
        true => as_help_shows(&arg.to_string()),
        false => arg.to_string(),
    };
    Some(args.iter().map(shown).collect::<Vec<_>>().join(" or "))
}

/// A sentence of help, as it goes on behind a colon.
fn uncapitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().filter(|_| !letters.as_str().starts_with(char::is_uppercase));
    first.map_or_else(|| text.to_string(), |first| first.to_lowercase().chain(letters).collect())
}

fn value(error: &clap::Error, flag: &str) -> String {
    let given = raw(error, ContextKind::InvalidValue);
    let why = match error.source() {
        Some(cause) => format!(": {}", escape(cause.to_string().as_bytes(), 200)),
        None if given.is_empty() => return format!("{flag} has no value"),
        None => format!("; expected one of {}", raw(error, ContextKind::ValidValue)),
    };
    format!("invalid value '{}' for {flag}{why}", escape(given.as_bytes(), LONGEST))
}

/// A flag or argument as it is typed, without the name of its value.
fn without_value(text: &str) -> String {
    let flag = if text.starts_with('-') { text.split([' ', '=']).next().unwrap_or(text) } else { text };
    escape(without_brackets(flag).as_bytes(), LONGEST)
}

/// A flag without the name of its value, or the name of another argument in brackets.
fn as_help_shows(text: &str) -> String {
    let name = without_value(text);
    if text.starts_with('-') || text.is_empty() { name } else { format!("<{name}>") }
}

/// An argument as clap writes it, without what is around it.
fn without_brackets(text: &str) -> &str {
    text.trim_end_matches("...").trim_matches(['<', '>', '[', ']'])
}

fn raw(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    }
}

/// clap's own first line.
fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
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
        crate::cli::Cli::try_parse_from(&all).map_or_else(|error| sentence(&error, &all), |_| String::new())
    }

    #[test]
    fn each_mistake_is_one_sentence_with_a_way_on() {
        let cases: &[(&[&[u8]], &str)] = &[
            (
                &[],
                "no subcommand: name one of run, shell, agent, hook, env, shim, inspect, why, learn, profile, home, \
                 pool, report, mcp, status, test, completions",
            ),
            (&[b"profile"], "no subcommand: name one of list, show, check, review, diff, schema"),
            (&[b"rnu"], "unknown subcommand 'rnu'; did you mean 'sbx run'?"),
            (&[b"profile", b"lst"], "unknown subcommand 'lst'; did you mean 'sbx profile list'?"),
            (&[b"run"], "no command: write it after '--', as in sbx run -- ls"),
            (&[b"run", b"--"], "no command: write it after '--', as in sbx run -- ls"),
            (&[b"run", b"-q", b"--"], "no command: write it after '--', as in sbx run -- ls"),
            (
                &[b"run", b"--profil", b"x", b"--", b"ls"],
                "unknown flag '--profil'; did you mean '--profile'?",
            ),
            (
                &[b"run", b"--json", b"ls"],
                "unknown flag '--json'; what happened in a run goes to a file as JSON with --report FILE",
            ),
            (
                &[b"run", b"--no-net", b"ls"],
                "unknown flag '--no-net'; did you mean '--net none|private|host'?",
            ),
            (&[b"run", b"--ro-bind", b"/", b"/", b"ls"], "unknown flag '--ro-bind'; did you mean '--ro'?"),
            (
                &[b"run", b"--read-only", b"ls"],
                "unknown flag '--read-only'; did you mean '--profile read-only'?",
            ),
            (&[b"run", b"--profil=x", b"ls"], "unknown flag '--profil'; did you mean '--profile'?"),
            (
                &[b"agent", b"claude", b"--version"],
                "unknown flag '--version'; flags of the agent itself follow '--'",
            ),
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
                "invalid value 'foo' for --net; expected one of none, private, host; try 'sbx run --help'",
            ),
            (
                &[b"run", b"--require", b"all", b"ls"],
                "invalid value 'all' for --require; expected one of full, standard, minimal",
            ),
            (
                &[b"run", b"--bind", b"99999", b"ls"],
                "invalid value '99999' for --bind: not a port (0 to 65535, such as 8080)",
            ),
            (
                &[b"run", b"--bind", b"*:80", b"ls"],
                "invalid value '*:80' for --bind: not a port (0 to 65535, such as 8080)",
            ),
            (
                &[b"run", b"--report-fd", b"x", b"ls"],
                "invalid value 'x' for --report-fd: not a descriptor (such as 3)",
            ),
            (&[b"run", b"-p"], "--profile has no value; try 'sbx run --help'"),
            (
                &[b"shell", b"-c", b"ls"],
                "unknown argument '-c'; to run one command, write 'sbx run -- COMMAND'",
            ),
            (
                &[b"inspect"],
                "<FILE> is missing: a file, or a command to be found in PATH; try 'sbx inspect --help'",
            ),
            (
                &[b"profile", b"show"],
                "<NAME|FILE> is missing: a name or a file; try 'sbx profile show --help'",
            ),
            (
                &[b"profile", b"check"],
                "<NAME|FILE> is missing: names or files; try 'sbx profile check --help'",
            ),
            (&[b"profile", b"diff"], "<A> and <B> are missing; try 'sbx profile diff --help'"),
            (
                &[b"profile", b"diff", b"a"],
                "<B> is missing: another name or file; try 'sbx profile diff --help'",
            ),
            (&[b"profile", b"export", b"a"], "--to is missing: whose policy it is to be; try"),
            (&[b"why", b"--op", b"w"], "<PATH> or --path <PATH> is missing; try 'sbx why --help'"),
            (
                &[b"completions"],
                "<SHELL> is missing: the shell: bash, zsh or fish; try 'sbx completions --help'",
            ),
            (
                &[b"completions", b"foo"],
                "invalid value 'foo' for <SHELL>; expected one of bash, zsh, fish; try 'sbx completions --help'",
            ),
            (
                &[b"home", b"clear", b"a", b"--all"],
                "--all and <WORKSPACE> contradict each other: leave one of them out; try 'sbx home clear --help'",
            ),
            (&[b"pool", b"start", b"--pool"], "unknown flag '--pool'"),
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
