//! Command lines of `sbx run` that say each thing plainly (`--flag`, `--option VALUE`, then `--` and the command), read
//! without clap: building its parser is a tenth of a start. Every other command line is left to clap, mistakes
//! included.

use crate::cli::table::{Flag, GROUPS, Takes};
use crate::request::Request;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The request, if what follows `sbx run` is such a command line.
pub(super) fn parse(arguments: &[OsString]) -> Option<Request> {
    let mut request = Request::default();
    let mut rest = arguments.iter();
    let mut seen = 0_u64;
    loop {
        let word = rest.next()?.as_bytes();
        if word == b"--" {
            break;
        }
        let (place, flag) = find(word)?;
        let bit = 1_u64.checked_shl(place)?;
        if seen & bit != 0 && !flag.repeats() {
            return None;
        }
        seen |= bit;
        let value = match flag.takes {
            Takes::Switch(_) => OsStr::new(""),
            _ => rest.next().filter(|value| is_value(value))?,
        };
        flag.set(&mut request, value).ok()?;
    }
    request.command = rest.cloned().collect();
    let contradicts = request.quiet && request.verbose;
    (!contradicts && !request.command.is_empty()).then_some(request)
}

/// The flag that a word names, and its place in the table.
fn find(word: &[u8]) -> Option<(u32, &'static Flag)> {
    let mut flags = (0..).zip(GROUPS.iter().flat_map(|(_, flags)| *flags));
    match word {
        [b'-', b'-', long @ ..] => flags.find(|(_, flag)| flag.long.as_bytes() == long),
        [b'-', short] => flags.find(|(_, flag)| flag.short == Some(char::from(*short))),
        _ => None,
    }
}

fn is_value(word: &OsString) -> bool {
    !word.is_empty() && !word.as_bytes().starts_with(b"-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::flags::{RunFlags, run_only};
    use crate::testing::Random;
    use clap::FromArgMatches;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn both(line: &[OsString]) -> (Option<String>, Option<String>) {
        let matches = run_only().try_get_matches_from([OsString::from("run")].iter().chain(line));
        let of_clap = matches.and_then(|matches| RunFlags::from_arg_matches(&matches));
        (parse(line).map(|run| format!("{run:?}")), of_clap.ok().map(|flags| format!("{:?}", flags.0)))
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
        let command = run_only();
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
        let command = run_only();
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
