//! The plainest command lines, `[-p NAME] [--exec] [-q] -- COMMAND...`, read without clap: building its parser is
//! a tenth of a start. Whatever is not plainly one of these is clap's, mistakes included.

use super::Run;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// What follows `sbx run`, where it is one of them.
pub(super) fn parse(arguments: &[OsString]) -> Option<Run> {
    let mut run = Run::default();
    let mut rest = arguments.iter();
    loop {
        match rest.next()?.as_bytes() {
            b"--" => break,
            b"--exec" => once(&mut run.exec)?,
            b"-q" | b"--quiet" => once(&mut run.quiet)?,
            b"-p" | b"--profile" if run.profile.is_none() => {
                run.profile = Some(rest.next().filter(|name| is_value(name))?.clone());
            }
            _ => return None,
        }
    }
    run.command = rest.cloned().collect();
    (!run.command.is_empty()).then_some(run)
}

/// Sets a flag that may be given once.
fn once(flag: &mut bool) -> Option<()> {
    (!std::mem::replace(flag, true)).then_some(())
}

fn is_value(word: &OsString) -> bool {
    !word.is_empty() && !word.as_bytes().starts_with(b"-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::RunOnly;
    use clap::Parser;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
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
        ];
        for line in lines {
            let clap = RunOnly::try_parse_from(words(&format!("run {line}"))).unwrap().run;
            assert_eq!(format!("{:?}", parse(&words(line)).unwrap()), format!("{clap:?}"), "{line}");
        }
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
            "-v -- true",
            "-qp a -- true",
            "-p --exec -- true",
        ];
        for line in lines {
            assert!(parse(&words(line)).is_none(), "{line}");
        }
        assert!(parse(&["-p".into(), "".into(), "--".into(), "true".into()]).is_none());
    }
}
