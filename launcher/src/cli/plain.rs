//! Command lines of `sbx run` that say each thing plainly (`--flag`, `--option VALUE`, then `--` and the command),
//! read without clap: building its parser is a tenth of a start. Whatever is not plainly one of these is clap's,
//! mistakes included.

use super::Run;
use crate::profile::units;
use clap::ValueEnum;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// What follows `sbx run`, where it is one of them.
pub(super) fn parse(arguments: &[OsString]) -> Option<Run> {
    let mut run = Run::default();
    let mut rest = arguments.iter();
    loop {
        let word = rest.next()?.as_bytes();
        if word == b"--" {
            break;
        }
        if let Some(flag) = flag(&mut run, word) {
            // Given twice, it is a mistake.
            if std::mem::replace(flag, true) {
                return None;
            }
            continue;
        }
        option(&mut run, word, rest.next().filter(|value| is_value(value))?)?;
    }
    run.command = rest.cloned().collect();
    let contradicts = run.quiet && run.verbose;
    (!contradicts && !run.command.is_empty()).then_some(run)
}

/// A flag that takes no value.
fn flag<'r>(run: &'r mut Run, word: &[u8]) -> Option<&'r mut bool> {
    Some(match word {
        b"--exec" => &mut run.exec,
        b"-q" | b"--quiet" => &mut run.quiet,
        b"-v" | b"--verbose" => &mut run.verbose,
        b"--log-violations" => &mut run.log_violations,
        b"--explain" => &mut run.explain,
        b"--inherit-env" => &mut run.inherit_env,
        b"--allow-dangerous-env" => &mut run.allow_dangerous_env,
        b"--keep-background" => &mut run.keep_background,
        b"--verify" => &mut run.verify,
        b"--dangerously-unconfined" => &mut run.dangerously_unconfined,
        _ => return None,
    })
}

/// An option with its value.
fn option(run: &mut Run, word: &[u8], value: &OsString) -> Option<()> {
    let text = || value.to_str();
    match word {
        b"-p" | b"--profile" => once(&mut run.profile, value.clone())?,
        b"--workspace" => once(&mut run.workspace, value.into())?,
        b"--cwd" => once(&mut run.cwd, value.into())?,
        b"--report" => once(&mut run.report, value.into())?,
        b"--audit-log" => once(&mut run.audit_log, value.into())?,
        b"--net" => once(&mut run.net, word_of(text()?)?)?,
        b"--on-violation" => once(&mut run.on_violation, word_of(text()?)?)?,
        b"--static" => once(&mut run.static_programs, word_of(text()?)?)?,
        b"--require" => once(&mut run.require, word_of(text()?)?)?,
        b"--namespaces" => once(&mut run.namespaces, word_of(text()?)?)?,
        b"-t" | b"--timeout" => once(&mut run.timeout, units::duration(text()?).ok()?)?,
        b"--kill-after" => once(&mut run.kill_after, units::patience(text()?).ok()?)?,
        b"--max-output" => once(&mut run.max_output, units::size(text()?).ok()?)?,
        b"--max-processes" => once(&mut run.max_processes, units::count(text()?).ok()?)?,
        b"--max-memory" => once(&mut run.max_memory, units::size(text()?).ok()?)?,
        b"--max-cpu" => once(&mut run.max_cpu, units::duration(text()?).ok()?)?,
        b"--max-open-files" => once(&mut run.max_open_files, units::count(text()?).ok()?)?,
        b"--max-file-size" => once(&mut run.max_file_size, units::size(text()?).ok()?)?,
        b"--report-fd" => once(&mut run.report_fd, text()?.parse().ok()?)?,
        b"--ro" => run.ro.push(value.into()),
        b"--rox" => run.rox.push(value.into()),
        b"--rw" => run.rw.push(value.into()),
        b"--rwx" => run.rwx.push(value.into()),
        b"--deny" => run.deny.push(value.into()),
        b"--unix" => run.unix.push(value.into()),
        b"--allow-command" => run.allow_command.push(value.clone()),
        b"--block-command" => run.block_command.push(value.clone()),
        b"--allow-calls" => run.allow_calls.push(value.clone()),
        b"--deny-calls" => run.deny_calls.push(value.clone()),
        b"--connect" => run.connect.push(text()?.to_owned()),
        b"--bind" => run.bind.push(text()?.parse().ok()?),
        b"--pass-fd" => run.pass_fd.push(text()?.parse().ok()?),
        b"--env" => run.env.push(value.clone()),
        _ => return None,
    }
    Some(())
}

/// What may be given once.
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

fn word_of<T: ValueEnum>(text: &str) -> Option<T> {
    T::from_str(text, false).ok()
}

fn is_value(word: &OsString) -> bool {
    !word.is_empty() && !word.as_bytes().starts_with(b"-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::RunOnly;
    use crate::fuzzing::tests::Random;
    use clap::{CommandFactory, Parser};

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn both(line: &[OsString]) -> (Option<String>, Option<String>) {
        let of_clap = RunOnly::try_parse_from([OsString::from("run")].iter().chain(line));
        (parse(line).map(|run| format!("{run:?}")), of_clap.ok().map(|only| format!("{:?}", only.run)))
    }

    #[test]
    fn what_is_understood_means_what_clap_says() {
        let lines = [
            "-- true",
            "--exec -- true",
            "-p minimal -- true -x",
            "--profile minimal --exec -- ls -- -p",
            "--exec --profile ./a.json -q -- ls --exec",
            "--quiet -- -- x",
            "--net private --rw a --rw b -t 2m30s --report r.json -- make -j2",
        ];
        for line in lines {
            let (plain, clap) = both(&words(line));
            assert!(plain.is_some() && plain == clap, "{line}: {plain:?} {clap:?}");
        }
    }

    /// Values that some options take, and others refuse.
    const VALUES: [&str; 26] = [
        "a",
        "1",
        "0",
        "007",
        "+5",
        "65536",
        "4294967296",
        "none",
        "None",
        "auto",
        "host",
        "private",
        "log",
        "kill",
        "allow",
        "full",
        "90s",
        "1m30s",
        "64K",
        "1MiB",
        "1.5",
        " 1",
        "a=b",
        "*:443",
        "é",
        "",
    ];

    #[test]
    fn every_option_is_read_as_by_clap() {
        let command = RunOnly::command();
        for argument in command.get_arguments().filter(|argument| argument.get_id() != "command") {
            let long = argument.get_long().map(|long| format!("--{long}"));
            let names = long.into_iter().chain(argument.get_short().map(|short| format!("-{short}")));
            for name in names.filter(|name| !["--help", "-h"].contains(&name.as_str())) {
                let takes = argument.get_action().takes_values();
                let values = if takes { &VALUES[..] } else { &[] };
                let lines = values.iter().map(|value| vec![name.clone(), (*value).to_string()]);
                let lines = lines.chain((!takes).then(|| vec![name.clone()]));
                let mut understood = 0;
                for mut line in lines {
                    line.extend(["--".into(), "true".into()]);
                    let line: Vec<OsString> = line.into_iter().map(OsString::from).collect();
                    let (plain, clap) = both(&line);
                    assert!(plain.is_none() || plain == clap, "{line:?}: {plain:?} {clap:?}");
                    understood += usize::from(plain.is_some());
                }
                assert!(understood > 0, "{name}");
            }
        }
    }

    #[test]
    fn no_mixture_means_anything_else_than_to_clap() {
        let command = RunOnly::command();
        let mut pieces: Vec<String> = command
            .get_arguments()
            .filter_map(|argument| argument.get_long().map(|long| format!("--{long}")))
            .chain(VALUES.map(String::from))
            .chain(["--", "--", "-p", "-t", "-q", "-v", "-", "-qv", "--ro=a", "-pa"].map(String::from))
            .collect();
        pieces.retain(|piece| piece != "--help");
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let mut understood = 0;
        for _ in 0..20_000 {
            let mut line: Vec<OsString> =
                (0..random.below(7)).map(|_| pieces[random.below(pieces.len())].clone().into()).collect();
            line.extend(["--".into(), "true".into()]);
            let plain = parse(&line).map(|run| format!("{run:?}"));
            if plain.is_some() {
                understood += 1;
                assert_eq!(plain, both(&line).1, "{line:?}");
            }
        }
        assert!(understood > 500, "{understood}");
    }

    #[test]
    fn everything_else_is_left_to_clap() {
        let lines = [
            "",
            "--",
            "true",
            "-p minimal",
            "-p minimal true",
            "-p -- true",
            "-p a -p b -- true",
            "--exec --exec -- true",
            "--profile=minimal -- true",
            "-pminimal -- true",
            "--exe -- true",
            "-v -q -- true",
            "-v -v -- true",
            "--net host --net host -- true",
            "--net all -- true",
            "--timeout soon -- true",
            "--rw -- true",
            "--rw=a -- true",
            "--bind 70000 -- true",
            "-qp a -- true",
            "-p --exec -- true",
        ];
        for line in lines {
            assert!(parse(&words(line)).is_none(), "{line}");
        }
        assert!(parse(&["-p".into(), "".into(), "--".into(), "true".into()]).is_none());
    }
}
