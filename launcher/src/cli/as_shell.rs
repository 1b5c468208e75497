//! `sbx-shell`: this program under the name of a shell, for everything that takes a shell's path and no flags.
//!
//! What follows is for the shell inside, word by word, so that `-c`, `-l`, `-s`, script files and everything else mean
//! what they mean to it. The policy comes from a variable, which whoever starts it sets; the commands inside do not
//! get the variable, and in a run that stands it could take nothing away from them.

use crate::cli::flags::ShellFlags;
use crate::cli::{pool, usage, why};
use crate::error::{Outcome, Refusal};
use crate::host::Host;
use crate::plan::variables::{self, SHELL_FLAGS as FLAGS, SHELL_PROGRAM as PROGRAM};
use crate::profile;
use crate::program;
use crate::request::Request;
use crate::sys::{path, plain, seccomp};
use crate::text::{escape, shown};
use clap::{Args, FromArgMatches};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A name that this program is started by, and the shell that it stands for; none for what the variable names.
type Name = (&'static [u8], Option<&'static str>);
const NAMES: [Name; 4] =
    [(b"sbx-shell", None), (b"sbx-bash", Some("bash")), (b"sbx-sh", Some("sh")), (b"sbx-zsh", Some("zsh"))];

/// The name that a program of this name has as a shell, if it has one; and whether it is to be a login shell.
fn named(argv0: &OsStr) -> Option<(&'static Name, bool)> {
    let bytes = argv0.as_bytes();
    let (bytes, is_login) = bytes.strip_prefix(b"-").map_or((bytes, false), |rest| (rest, true));
    let name = bytes.rsplit(|byte| *byte == b'/').next()?;
    NAMES.iter().find(|(known, _)| *known == name).map(|name| (name, is_login))
}

/// Whether the program was started as a shell.
pub fn is_meant(arguments: &[OsString]) -> bool {
    arguments.first().is_some_and(|argv0| named(argv0).is_some())
}

/// Runs the shell.
#[cold]
pub fn run(arguments: &[OsString]) -> Result<i32, Refusal> {
    let (argv0, rest) = arguments.split_first().map_or((OsStr::new(""), &[][..]), |(a, rest)| (a, rest));
    let (names, is_login) = match named(argv0) {
        Some(((_, Some(shell)), is_login)) => (vec![*shell], is_login),
        Some(((_, None), is_login)) => (program::USUAL_SHELLS.to_vec(), is_login),
        None => (program::USUAL_SHELLS.to_vec(), false),
    };
    let by_variable = (names.len() > 1).then(|| std::env::var_os(PROGRAM)).flatten();
    let program = match by_variable {
        Some(program) => by_path(program)?,
        None => find(&names)?,
    };
    let flags = std::env::var_os(FLAGS);
    // The rules around this process bind the shell as they are. A further run would only repeat them.
    if flags.is_none() && seccomp::is_confined() {
        return Err(become_shell(&program, is_login, rest));
    }
    let request = policy(flags.as_deref())?;
    let mut command = vec![program.clone().into_os_string()];
    // A name that begins with a dash says this to the shell otherwise.
    command.extend(is_login.then(|| login_flag(&program).into()));
    command.extend_from_slice(rest);
    let mut env = request.env.clone();
    if !env.iter().any(|entry| entry.as_bytes().split(|byte| *byte == b'=').next() == Some(b"SHELL")) {
        // Inside, programs start the shell itself.
        let mut shell = OsString::from("SHELL=");
        shell.push(&program);
        env.push(shell);
    }
    pool::dispatch(Request { command, env, ..request })
}

/// The long flag stands before others, as bash wants it.
fn login_flag(program: &Path) -> &'static str {
    let is_bash = program.file_name().is_some_and(|name| name == "bash");
    if is_bash { "--login" } else { "-l" }
}

fn by_path(program: OsString) -> Result<PathBuf, Refusal> {
    let file = PathBuf::from(&program);
    let why = if !file.is_absolute() {
        "it is no absolute path"
    } else if !path::is_program(&file) {
        "there is no program at that path"
    } else if Host::of_this_process().is_own_program(&file) {
        "it is sbx itself, and the shell inside is meant"
    } else {
        return Ok(file);
    };
    let program = escape(program.as_bytes(), 400);
    Err(Refusal::new(format!(
        "cannot use the shell '{program}', which {PROGRAM} names: {why}; name one like /bin/bash"
    )))
}

fn find(names: &[&str]) -> Result<PathBuf, Refusal> {
    program::shell(names).ok_or_else(|| {
        let (names, directories) = (names.join(" or "), program::SHELL_DIRECTORIES.join(", "));
        Refusal::with(Outcome::NotFound, format!("cannot find the shell {names} in {directories}"))
    })
}

/// What the variable asks for; nothing of its own accord.
fn policy(flags: Option<&OsStr>) -> Result<Request, Refusal> {
    let Some(flags) = flags else { return Ok(Request::default()) };
    let refused = |why: String| Refusal::new(format!("invalid value of {FLAGS}: {why}"));
    let mut words = shlex::bytes::Shlex::new(flags.as_bytes());
    let split: Vec<OsString> = words.by_ref().map(OsString::from_vec).collect();
    if words.had_error {
        return Err(refused("a quote in it is not closed".to_string()));
    }
    let line: Vec<OsString> = ["sbx", "shell"].map(OsString::from).into_iter().chain(split).collect();
    let matches = ShellFlags::augment_args(clap::Command::new("sbx shell")).try_get_matches_from(&line[1..]);
    let parsed = matches.and_then(|matches| ShellFlags::from_arg_matches(&matches));
    let request = match parsed {
        Ok(flags) => flags.0,
        Err(error) if error.use_stderr() => return Err(refused(usage::sentence(&error, &line))),
        Err(_) => {
            return Err(refused("it is to have flags of sbx run alone; see 'sbx shell --help'".to_string()));
        }
    };
    if request.dangerously_unconfined {
        let why = "--dangerously-unconfined stands on a command line or nowhere: tools take variables from what they \
                   find in a project";
        return Err(refused(why.to_string()));
    }
    profile_is_out_of_reach(&request)?;
    Ok(request)
}

/// Refuses a profile that commands may have written, as for a profile that SBX_PROFILE names.
fn profile_is_out_of_reach(request: &Request) -> Result<(), Refusal> {
    let Some(named) = &request.profile else { return Ok(()) };
    let host = Host::of_this_process();
    let profile = profile::load(named, &host.search())?;
    if profile.files.is_empty() {
        return Ok(());
    }
    let plan = why::plan(request, &host)?;
    let roots = plan.writable();
    let roots: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
    let by = (&**named, FLAGS, "keep the file elsewhere");
    variables::is_out_of_reach(by, &profile, (host.directory()?, &host), &roots)
}

/// Becomes the shell; returns only if that fails.
fn become_shell(program: &Path, is_login: bool, rest: &[OsString]) -> Refusal {
    let mut command = Command::new(program);
    if is_login {
        command.arg(login_flag(program));
    }
    let error = command.args(rest).exec();
    let outcome =
        if error.kind() == std::io::ErrorKind::NotFound { Outcome::NotFound } else { Outcome::NotExecutable };
    Refusal::with(outcome, format!("cannot execute '{}': {}", shown(program), plain(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_which_shell_is_meant() {
        let name = |text: &str| named(OsStr::new(text)).map(|((_, shell), is_login)| (*shell, is_login));
        for (argv0, expected) in [
            ("sbx-shell", Some((None, false))),
            ("-sbx-shell", Some((None, true))),
            ("/usr/bin/sbx-bash", Some((Some("bash"), false))),
            ("-/usr/bin/sbx-zsh", Some((Some("zsh"), true))),
            ("./sbx-sh", Some((Some("sh"), false))),
            ("sbx", None),
            ("/sbx-shell/sbx", None),
            ("sbx-shell/", None),
            ("-sbx", None),
            ("", None),
        ] {
            assert_eq!(name(argv0), expected, "{argv0}");
        }
    }

    #[test]
    fn the_variable_has_flags_and_nothing_else() {
        let asked = |flags: &str| policy(Some(OsStr::new(flags)));
        let request = asked("--ro '/a b' -t 5s --profile=read-only").unwrap();
        assert_eq!(request.ro, [PathBuf::from("/a b")]);
        assert_eq!(request.profile.as_deref(), Some(OsStr::new("read-only")));
        assert!(asked("").is_ok() && policy(None).is_ok());
        for (flags, why) in [
            ("--ro 'a", "not closed"),
            ("--dangerously-unconfined", "--dangerously-unconfined"),
            ("--help", "flags of sbx run alone"),
            ("-- ls", "unknown argument"),
            ("ls", "unknown argument"),
            ("--profil minimal", "did you mean '--profile'"),
        ] {
            let said = asked(flags).map(|_| ()).unwrap_err().to_string();
            assert!(said.contains(why) && said.contains(FLAGS), "{flags}: {said}");
        }
    }
}
