//! One attempt, without a sandbox or in one.

use std::ffi::CStr;
use std::time::Duration;

use super::across;
use super::place::Place;
use super::runs::{Level, Profile};
use super::table::{Attempt, Evidence};
use super::witness::Before;
use crate::world::SECRET;
use crate::{Cmd, Output, User, kernel, stage, subjects};

/// The key of the caller's session.
pub const KEY: &CStr = c"sbx-escape-key";
/// An attempt prints this when it did what only code outside can do.
const ESCAPED: &str = "escaped";
/// An attempt prints this before anything else.
const TRYING: &str = "trying";
/// Twice the output that a limited run may make, and more than its head and tail.
const MUCH: usize = 512 << 10;
/// No attempt takes so long, nor any run of one.
const ENOUGH: Duration = Duration::from_secs(20);
/// A shell that starts the words behind it and stays above them.
const SHELL: [&str; 4] = ["/bin/sh", "-c", "\"$@\"; exit $?", "sh"];

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    /// It succeeded; the evidence.
    Through(String),
    /// It failed; the error.
    Refused(String),
    /// It was not even started.
    Nowhere(String),
}

/// The names that the program of the attempts knows.
pub fn names() -> Vec<String> {
    let out = Cmd::new(subjects::program("escape")).arg("--list").run().success();
    out.out().lines().map(str::to_owned).collect()
}

/// Makes the attempt without a sandbox.
pub fn control(attempt: &Attempt, user: &User) -> Got {
    if !attempt.steps.is_empty() {
        return across::control(attempt, user);
    }
    let place = Place::new(attempt, user);
    let own = words(attempt, &place);
    let shells = if attempt.has("shells") { [SHELL, SHELL].concat() } else { Vec::new() };
    let all: Vec<&str> = shells.into_iter().chain(own.iter().map(String::as_str)).collect();
    observe(attempt, &place, place.world.bare(all))
}

/// Makes the attempt in a sandbox, in a place that is kept for the next one if nothing has changed there.
pub fn inside(
    attempt: &Attempt,
    user: &User,
    (profile, level): (&Profile, &Level),
    kept: &mut Option<Place>,
) -> Got {
    if !attempt.steps.is_empty() {
        return across::inside(attempt, user, profile, level);
    }
    let place = kept.take().unwrap_or_else(|| Place::new(attempt, user));
    let got = in_sandbox(attempt, user, (profile, level), &place);
    if matches!(got, Got::Refused(_)) && place.is_as_new() {
        *kept = Some(place);
    }
    got
}

fn in_sandbox(attempt: &Attempt, user: &User, (profile, level): (&Profile, &Level), place: &Place) -> Got {
    let mut flags = vec!["run"];
    flags.extend(profile.flags);
    flags.extend(level.flags);
    flags.extend(attempt.values("flags"));
    if attempt.has("report") {
        flags.extend(["--report-fd", "211"]);
    }
    flags.push("--");
    let cmd = Cmd::new(stage::sbx()).args(flags).args(words(attempt, place)).cwd(&place.world.workspace);
    let cmd = cmd.env("HOME", &place.world.home).env("USER", user.name).env("PWD", &place.world.workspace);
    observe(
        attempt,
        place,
        if level.lacks.is_empty() { cmd.user(user) } else { cmd.answering_as(level.lacks, user) },
    )
}

fn words(attempt: &Attempt, place: &Place) -> Vec<String> {
    [vec!["./escape".to_owned(), attempt.name.to_owned()], place.facts()].concat()
}

fn observe(attempt: &Attempt, place: &Place, cmd: Cmd) -> Got {
    let mut cmd = cmd.env("AGENT_API_TOKEN", SECRET);
    for variable in attempt.settings("env") {
        let (name, value) = variable.split_once('=').expect("a name and a value");
        let value = value.replace('@', &place.world.workspace.display().to_string()).replace('~', " ");
        cmd = cmd.env(name, value);
    }
    for (fd, number) in place.forgotten(attempt) {
        cmd = cmd.pass_fd(fd, number);
    }
    if attempt.has("keyring") {
        cmd = cmd.secret_in_keyring(KEY);
    }
    let before = Before::look(place);
    let cmd = cmd.timeout(ENOUGH);
    let (ended, _terminal) = if attempt.has("tty") {
        let (running, terminal) = cmd.start_on_terminal();
        (running.wait_or_kill(), Some(terminal))
    } else {
        (cmd.start().wait_or_kill(), None)
    };
    match ended {
        Ok(out) => conclude(attempt, place, &before, &out),
        Err(_) => Got::Through("the run did not end".into()),
    }
}

fn conclude(attempt: &Attempt, place: &Place, before: &Before, out: &Output) -> Got {
    let text = out.out();
    if !text.contains(TRYING) {
        return Got::Nowhere(out.to_string());
    }
    if let Some(change) = before.change(place) {
        return Got::Through(change);
    }
    for (said, meaning) in [(SECRET, "a secret was printed"), (ESCAPED, "it said so")] {
        let counts = attempt.evidence != Evidence::Output && attempt.name != "escape-sequences";
        if counts && text.contains(said) {
            return Got::Through(meaning.into());
        }
    }
    let through = match attempt.evidence {
        Evidence::Answer => out.code == Some(0),
        Evidence::Outside => false,
        Evidence::Mark => place.world.exists("mark"),
        Evidence::Output => out.stdout.len() > MUCH,
    };
    if through { Got::Through("the kernel did it".into()) } else { Got::Refused(reason(&text, out)) }
}

/// The last line of the attempt, or else of `sbx`.
fn reason(text: &str, out: &Output) -> String {
    let own = text.lines().map(str::trim).rfind(|line| !line.is_empty() && *line != TRYING);
    let err = out.err();
    let line = own.or(err.lines().rfind(|line| !kernel::owes(line))).unwrap_or("nothing was said");
    line.chars().take(100).collect()
}
