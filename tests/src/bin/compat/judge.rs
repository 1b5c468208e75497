//! Runs one command with and without `sbx` and compares the results.

use std::path::Path;

use sbx_tests::tools::is_there;
use sbx_tests::tree::{Tree, differences, snapshot};
use sbx_tests::{Cmd, Output};

use crate::list::{Case, argv};
use crate::place::{Place, surroundings};
use crate::seen::{Seen, Varies, unlike, without_private_names};

/// How often a command is run without `sbx` to see which parts vary.
const TRIES: usize = 3;
/// How many of the lines that explain a failure are shown.
const MOST_EXPLAINED: usize = 4;

/// The result for one command.
pub enum Verdict {
    /// It behaved as without `sbx` (or, for a refused one, had no effect); with what else is counted.
    Passed(Passed),
    /// It behaved differently; the differences.
    Failed(String),
    /// A tool is missing.
    Skipped(String),
    /// The corpus is wrong: even without `sbx` the command does not do what it says.
    Wrong(String),
}

/// How a command passed.
#[derive(Default)]
pub struct Passed {
    /// Part of its output or files varies without `sbx` too and was compared by kind only.
    pub varies: bool,
    /// Something was refused all the same; the lines about it.
    pub refusals: Vec<String>,
}

/// How the commands of a list are started.
pub struct Way<'a> {
    /// The profile; `None` is the default, whose commands are shell lines. Those of others are words.
    pub profile: Option<&'a str>,
    /// Additional flags.
    pub flags: &'a [String],
    /// Files whose contents differ in each run.
    pub varies: &'a [String],
}

impl Way<'_> {
    fn words(&self, line: &str) -> Result<Vec<String>, String> {
        match self.profile {
            None => Ok(["bash", "-c", line].map(str::to_owned).to_vec()),
            Some(_) => argv(line),
        }
    }

    fn confined(&self, place: &Place, line: &str, more: &[&str]) -> Result<Cmd, String> {
        let mut words = vec!["run".to_owned()];
        words.extend(self.profile.into_iter().flat_map(|profile| ["-p", profile]).map(str::to_owned));
        words.extend(self.flags.iter().cloned());
        words.extend(more.iter().map(|flag| (*flag).to_owned()));
        words.push("--".to_owned());
        words.extend(self.words(line)?);
        Ok(surroundings(place.world.sbx(words)))
    }

    fn bare(&self, place: &Place, line: &str) -> Result<Cmd, String> {
        Ok(surroundings(place.world.bare(self.words(line)?)))
    }
}

/// Why a command cannot be tried, if so.
fn missing(case: &Case) -> Option<Verdict> {
    let missing: Vec<&str> = case.needs.iter().map(String::as_str).filter(|tool| !is_there(tool)).collect();
    (!missing.is_empty()).then(|| Verdict::Skipped(format!("needs {}", missing.join(", "))))
}

/// Prepares the place for a command.
fn lay(place: &Place, case: &Case) -> Result<(), String> {
    place.lay();
    let setup = case.setup.as_deref().map(|setup| place.script(&place.fill_in(setup)));
    setup.transpose().map(drop).map_err(|error| format!("setup: {error}"))
}

/// Runs a command to its end.
fn finish(cmd: Cmd) -> Result<Output, String> {
    cmd.start().wait_or_kill().map_err(|out| format!("took too long: {out}"))
}

/// Prepares the place and runs a command in it.
fn run(place: &Place, case: &Case, cmd: Cmd) -> Result<(Output, Seen), String> {
    lay(place, case)?;
    let out = finish(cmd)?;
    let code = out.code.unwrap_or_else(|| 128 + out.signal.unwrap_or_default());
    let seen = Seen { code, stdout: out.out(), tree: snapshot(&place.world.workspace) };
    Ok((out, seen))
}

/// Judges a command that has to behave as without `sbx`.
pub fn allowed(place: &Place, way: &Way<'_>, case: &Case) -> Verdict {
    missing(case).unwrap_or_else(|| compare(place, way, case).unwrap_or_else(Verdict::Wrong))
}

fn compare(place: &Place, way: &Way<'_>, case: &Case) -> Result<Verdict, String> {
    let line = place.fill_in(&case.line);
    let bare = || run(place, case, way.bare(place, &line)?);
    let (plain, expected) = bare()?;
    if expected.code != case.exits {
        return Err(format!("exits with {} by itself, not {}: {plain}", expected.code, case.exits));
    }
    let (out, mut found) = match run(place, case, way.confined(place, &line, &[])?) {
        Ok(result) => result,
        Err(error) => return Ok(Verdict::Failed(error)),
    };
    found.stdout = without_private_names(&found.stdout, &place.world.home);
    let mut varies = Varies::default();
    let mut wrong = unlike(&expected, &found, &varies);
    if !wrong.is_empty() {
        varies = Varies::known(way.varies);
    }
    for _ in 1..TRIES {
        if wrong.is_empty() {
            return Ok(Verdict::Passed(Passed { varies: varies.anything(), refusals: out.sbx_lines() }));
        }
        varies.learn(&expected, &bare()?.1);
        wrong = unlike(&expected, &found, &varies);
    }
    if wrong.is_empty() {
        return Ok(Verdict::Passed(Passed { varies: varies.anything(), refusals: out.sbx_lines() }));
    }
    Ok(Verdict::Failed(format!("{}\n{}{}", wrong.join("; "), tail(&out), explained(place, way, case, &line))))
}

/// The output of `--explain` for a command that failed.
fn explained(place: &Place, way: &Way<'_>, case: &Case, line: &str) -> String {
    let cmd = way.confined(place, line, &["--explain"]);
    let lines = cmd.and_then(|cmd| run(place, case, cmd)).map(|(out, _)| out.sbx_lines()).unwrap_or_default();
    lines.iter().take(MOST_EXPLAINED).map(|line| format!("      {line}\n")).collect()
}

fn tail(out: &Output) -> String {
    let lines = out.own_lines();
    lines[lines.len().saturating_sub(4)..].iter().map(|line| format!("      stderr: {line}\n")).collect()
}

/// Everything outside the command that shows what it did.
struct Effects {
    workspace: Tree,
    outside: Tree,
    home: Tree,
    connections: (usize, usize),
}

impl Effects {
    fn now(place: &Place, case: &Case) -> Effects {
        let mut home = snapshot(&place.world.home);
        // The workspace, and what is sbx's own: caches and records.
        let own = ["project", ".cache", ".local/state"];
        home.retain(|path, _| path != Path::new(".local") && !own.iter().any(|own| path.starts_with(own)));
        let http = if case.reaches_http { 0 } else { place.http.connections() };
        Effects {
            workspace: snapshot(&place.world.workspace),
            outside: snapshot(&place.world.outside),
            home,
            connections: (http, place.unix.connections()),
        }
    }

    /// The changes since then.
    fn since(&self, before: &Effects) -> Option<String> {
        let trees = [
            (&before.workspace, &self.workspace),
            (&before.outside, &self.outside),
            (&before.home, &self.home),
        ];
        let changed = trees.into_iter().flat_map(|(before, after)| differences(before, after)).next();
        match changed {
            Some((path, ..)) => Some(format!("{} changed", path.display())),
            None => (self.connections != before.connections).then(|| "somebody was connected to".to_owned()),
        }
    }
}

/// Runs a command; returns its effect.
fn effect(place: &Place, case: &Case, cmd: Cmd) -> Result<(Option<String>, Output), String> {
    lay(place, case)?;
    let before = Effects::now(place, case);
    let out = finish(cmd)?;
    let shown = case.shows.as_deref().is_some_and(|text| out.out().contains(text));
    let what = Effects::now(place, case).since(&before).or(shown.then(|| "it was shown".to_owned()));
    Ok((what, out))
}

/// Judges a command that must have no effect, though it has one without `sbx`.
pub fn refused(place: &Place, way: &Way<'_>, case: &Case) -> Verdict {
    missing(case).unwrap_or_else(|| no_effect(place, way, case).unwrap_or_else(Verdict::Wrong))
}

fn no_effect(place: &Place, way: &Way<'_>, case: &Case) -> Result<Verdict, String> {
    let line = place.fill_in(&case.line);
    let (control, plain) = effect(place, case, way.bare(place, &line)?)?;
    if control.is_none() {
        return Err(format!("has no effect without sbx either: {plain}"));
    }
    Ok(match effect(place, case, way.confined(place, &line, &[])?)? {
        (None, out) => Verdict::Passed(Passed { varies: false, refusals: out.sbx_lines() }),
        (Some(what), out) => Verdict::Failed(format!("{what}\n{}", tail(&out))),
    })
}
