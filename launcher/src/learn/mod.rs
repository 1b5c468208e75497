//! Learning a profile: the command runs under a closed one, and what was refused becomes the narrowest rules, until it
//! passes.
//!
//! The rules of the profile are in force in every round. What would allow a call is what [`crate::explain`] has found
//! when the call was refused; it is in the report of the round. Here it is read strictly, judged, and joined.

mod candidate;
mod demand;
mod document;
mod given;
mod held;
mod learner;
mod output;
mod right;
mod rounds;
mod show;
#[cfg(test)]
mod tests;

use crate::error::{REFUSED, Refusal};
use crate::explain::hint::{is_whole, shell_word};
use crate::explain::sensitive::{KnownCalls, Sensitive};
use crate::host::Host;
use crate::plan::Plan;
use crate::profile::{HomeMode, is_path};
use crate::report::{self, Source};
use crate::request::Request;
use crate::sys::path::canonical;
use crate::sys::within::is_within;
use crate::text::{json_document, shown};
use candidate::{Candidate, Rule};
use document::{Frame, described};
pub use held::GivenFlag;
use held::{Beside, hold};
use learner::{Learner, LearnerRules};
use output::Output;
use right::Right;
use rounds::{Ended, Rounds};
use sbx_client::report::{Cause, Report};
use serde_json::{Value, json};
use show::Round;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The profiles that learning begins from where the user names none: the second where the first refuses what it does
/// not report.
const STARTS: [&str; 2] = ["minimal", "read-only"];
/// The exit status where the command does not pass.
const NOT_PASSED: i32 = 1;

/// What is asked.
pub struct Asked<'a> {
    /// The file for the profile.
    pub output: &'a Path,
    /// How often the command is run at most.
    pub rounds: usize,
    /// The exit status by which the command passes.
    pub status: i32,
    /// Whether sensitive rights are learned too.
    pub allow_sensitive: bool,
    /// Whether the result is also printed as JSON.
    pub json: bool,
    /// The profile to begin from.
    pub start: Option<OsString>,
    /// The flags that become rules.
    pub given: &'a Request,
    /// The flags that hold in every round.
    pub flags: &'a [GivenFlag],
    /// The command; empty where reports are read.
    pub command: &'a [OsString],
}

/// A round in which the command passed, though something was refused that can be learned: the next round may not pass,
/// because the command has done its work.
struct Passed {
    number: usize,
    /// The rules that were in force. What the round itself taught is not among them: the command passed without it,
    /// and nothing shows that it passes with it.
    candidate: Candidate,
}

/// Makes the plan of a run under a profile.
pub type Planner<'p> = &'p dyn Fn(&OsStr) -> Result<Plan, Refusal>;

/// What came of it.
pub struct Learned {
    /// The exit status.
    pub status: i32,
    /// All that there is to know.
    pub json: Value,
}

/// What learning begins with.
struct Start<'a> {
    name: String,
    frame: Frame<'a>,
    learner: Learner,
    /// The flags that each run takes besides the profile.
    beside: Vec<Beside>,
    /// The profile keeps a home of the run's own for later runs.
    keeps_home: bool,
}

impl Start<'_> {
    /// The profile of a round. A home would be kept for a profile that is gone afterwards, and the next command that
    /// learns here would find it.
    fn of_round(&self, document: &Value) -> Value {
        let mut round = document.clone();
        if self.keeps_home && round.get("home").is_none() {
            round["home"] = json!({ "mode": "temporary" });
        }
        round
    }

    /// The flags that each run takes besides the profile, as words.
    fn words(&self) -> Vec<OsString> {
        self.beside.iter().map(Beside::word).collect()
    }
}

/// Learns by running the command.
pub fn by_running(asked: &Asked<'_>, host: &Host, plan: Planner<'_>) -> Result<Learned, Refusal> {
    let output = Output::prepare(asked.output, host)?;
    let mut starts = match &asked.start {
        Some(start) => vec![start.clone()],
        None => STARTS.map(OsString::from).to_vec(),
    }
    .into_iter();
    let first = starts.next().unwrap_or_default();
    let mut start = begin(asked, host, plan, &first, "round")?;
    let denied = asked.given.deny.iter().map(|path| (path.clone(), canonical(path)));
    let rounds = Rounds::new(asked.command, asked.json, denied.collect())?;
    let mut told: Vec<Round> = Vec::new();
    let mut said = BTreeSet::new();
    let mut passed_before: Option<Passed> = None;
    for number in 1..=asked.rounds {
        start.learner.settle();
        let in_force = start.learner.candidate.clone();
        let document = start.frame.document(&start.learner.candidate);
        let report = match rounds.run(&start.words(), &start.of_round(&document))? {
            Ended::Reported(report) => report,
            Ended::Asked(signal) => {
                let why = ["interrupted: nothing is written".to_string()];
                return Ok(unwritten(128 + signal, &why, &start, &told, document));
            }
        };
        show::beside(&report, &mut said);
        // Where the command has passed once, another profile is no way out.
        let has_next = starts.len() > 0 && passed_before.is_none();
        if report.pid.is_none() && !(has_next && report.cause == Cause::NotExecutable) {
            if passed_before.is_some() {
                told.push(Round::of(&report, number, &start.name));
                break;
            }
            // sbx run has said why.
            let why = ["nothing is learned: the command did not start".to_string()];
            return Ok(unwritten(report.exit_status, &why, &start, &told, document));
        }
        let learned = start.learner.learn(&report, number)?;
        let passed = report.cause == Cause::Exited && report.exit_status == asked.status;
        let may_prune = passed && learned.is_empty();
        let pruned = if may_prune { start.learner.prune(&report) } else { Vec::new() };
        let is_last = learned.is_empty() && pruned.is_empty();
        let round = Round { learned, pruned, ..Round::of(&report, number, &start.name) };
        show::round(&round, &show::ending(&report), &start.learner);
        told.push(round);
        if is_last && passed {
            return write(asked, &output, start, &told, Some(number), Vec::new());
        }
        if passed {
            passed_before = Some(Passed { number, candidate: in_force });
        } else if is_last {
            if passed_before.is_some() {
                break;
            }
            // What is sensitive, or takes a flag, is not learned from another profile either. A command that a signal
            // ended does not say that it lacks a file: under the next profile it may not be ended.
            let is_beyond = start.learner.is_sensitive_refused() || start.learner.is_beyond_profiles;
            let is_explained = report.cause == Cause::Exited && is_beyond;
            let Some(next) = starts.next().filter(|_| !is_explained) else {
                show::not_learned(&start.learner);
                let why = stuck(asked, &report, &start, &told);
                return Ok(unwritten(NOT_PASSED, &why, &start, &told, document));
            };
            show::say(&format!(
                "nothing that was refused under '{}' explains it, and it refuses some calls without a report; \
                 beginning again from '{}'",
                start.name,
                shown(Path::new(&next))
            ));
            start = begin(asked, host, plan, &next, "round")?;
        }
    }
    if let Some(passed) = passed_before {
        return write_passed(asked, &output, start, &told, passed);
    }
    let document = start.frame.document(&start.learner.candidate);
    show::not_learned(&start.learner);
    let rounds = if asked.rounds == 1 { "one round".to_owned() } else { format!("{} rounds", asked.rounds) };
    let why = format!("not passed within {rounds}: nothing is written; allow more with --rounds");
    Ok(unwritten(NOT_PASSED, &[why], &start, &told, document))
}

/// Learns from reports of runs that were.
pub fn from_reports(
    asked: &Asked<'_>,
    host: &Host,
    plan: Planner<'_>,
    files: &[PathBuf],
) -> Result<Learned, Refusal> {
    let output = Output::prepare(asked.output, host)?;
    let mut reports = Vec::new();
    for file in files {
        let source = if file == Path::new("-") { Source::Stdin } else { Source::File(file) };
        reports.extend(report::read(source)?);
    }
    let name = match &asked.start {
        Some(start) => start.clone(),
        None => profile_of(&reports)?.into(),
    };
    let mut start = begin(asked, host, plan, &name, "report")?;
    let made = plan(&name)?;
    for file in files {
        let place = canonical(file);
        let rules = made.paths.iter().flatten().filter(|rule| rule.rights.changes_files());
        if rules.into_iter().any(|rule| is_within(&place, &rule.place())) {
            show::say(&format!(
                "warning: '{}' is where commands under '{}' may write: one of them may have written it",
                shown(file),
                start.name
            ));
        }
    }
    let mut told = Vec::new();
    for (number, report) in (1..).zip(&reports) {
        let learned = start.learner.learn(report, number)?;
        told.push(Round { learned, ..Round::of(report, number, &start.name) });
    }
    start.learner.settle();
    write(asked, &output, start, &told, None, Vec::new())
}

/// The profile of all reports: a built-in one. A file that a report names is whatever its writer wanted.
fn profile_of(reports: &[Report]) -> Result<String, Refusal> {
    let mut names: Vec<String> = Vec::new();
    for report in reports {
        let used = report.profile.as_ref().filter(|used| used.file.is_none());
        let name =
            used.map(|used| used.name.to_string()).filter(|name| sbx_profiles::NAMES.contains(&&**name));
        let name = name.ok_or_else(|| {
            let why = "a report names no built-in one; name it with --profile";
            Refusal::new(format!("cannot tell which profile to begin from: {why}"))
        })?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match &names[..] {
        [name] => Ok(name.clone()),
        _ => Err(Refusal::new(format!(
            "cannot tell which profile to begin from: the reports are of {}; name one with --profile",
            names.join(" and ")
        ))),
    }
}

fn begin<'a>(
    asked: &Asked<'a>,
    host: &Host,
    plan: Planner<'_>,
    name: &OsStr,
    counted: &'static str,
) -> Result<Start<'a>, Refusal> {
    let plan = plan(name)?;
    let workspace = plan.workspace.as_deref().map(canonical);
    let changing = plan.paths.iter().flatten().filter(|rule| rule.rights.changes_files());
    let writable = changing.map(|rule| rule.place().into_owned()).collect();
    let mut candidate = Candidate::new(writable);
    given::add(&mut candidate, asked.given, &plan.directory);
    let rules = LearnerRules {
        allow_sensitive: asked.allow_sensitive,
        network_is_given: asked.given.net.is_some(),
        at_once: counted == "report",
    };
    let sensitive = Sensitive::of(host, workspace.as_deref())?;
    let learner = Learner::new(candidate, sensitive, KnownCalls::new()?.beside(&plan.profile), rules);
    // A name stays one; the file of a path is named wherever the profile is.
    let extends = if is_path(name) {
        canonical(&plan.directory.join(name)).into_os_string()
    } else {
        name.to_os_string()
    };
    let extends = extends.into_string().map_err(|_| {
        Refusal::new(
            "cannot extend the profile to begin from: its path is not UTF-8, and no profile can name it",
        )
    })?;
    let description = match asked.command.is_empty() {
        true => "learned from reports".to_string(),
        false => format!("learned: {}", described(asked.command)),
    };
    let held = hold(asked.flags, &plan);
    let frame = Frame {
        extends,
        description,
        given: asked.given,
        keys: held.keys,
        workspace,
        home: host.home().map(canonical),
        counted,
    };
    let keeps_home = plan.profile.home.mode.as_deref() == Some(&HomeMode::Private);
    Ok(Start { name: shown(Path::new(name)), frame, learner, beside: held.flags, keeps_home })
}

/// Why there is nothing more to learn, though the command does not pass.
fn stuck(asked: &Asked<'_>, report: &Report, start: &Start<'_>, told: &[Round]) -> Vec<String> {
    let expected = match report.cause {
        Cause::Exited => format!(", and passes with {} (--status)", asked.status),
        _ => String::new(),
    };
    let passes = format!("the command does not pass: it ends with {}{expected}", show::ending(report));
    let needs = match (start.learner.is_sensitive_refused(), start.learner.is_beyond_profiles) {
        (true, _) => {
            "it may need what was not learned because it is sensitive: allow that with its flag, or all of it with \
             --allow-sensitive"
        }
        (false, true) => "it may need what no profile can give: run it with the flags that are named above",
        (false, false) => "nothing more that was refused can be learned",
    };
    // Only this profile refuses calls that it does not report. Where the user names none, the next one comes after it.
    let other = (start.name == STARTS[0]).then(|| {
        format!(
            "'{}' refuses some calls without a report: begin from another profile with --profile {}",
            start.name, STARTS[1]
        )
    });
    let writes = |rule: &Rule| matches!(&rule.right, Right::Path(_, access) if access.write);
    let has_left = told.iter().flat_map(|round| &round.learned).any(writes);
    let left = has_left.then(|| {
        "what earlier rounds have left, half made, may be why: remove it, and begin from a profile that may write \
         there (--profile read-only --rw .)"
            .to_string()
    });
    let last = "nothing is written".to_string();
    [passes, needs.to_string()].into_iter().chain(left).chain(other).chain([last]).collect()
}

/// Writes the profile of a round that passed, where no later one did.
fn write_passed(
    asked: &Asked<'_>,
    output: &Output,
    mut start: Start<'_>,
    told: &[Round],
    passed: Passed,
) -> Result<Learned, Refusal> {
    let Passed { number, candidate } = passed;
    let has_more = candidate.rules().iter().all(|rule| start.learner.candidate.has(&rule.right));
    start.learner.take_back(candidate, &format!("the command passed without it in round {number}"));
    let last = told.last().map_or(number, |round| round.number);
    let later = if has_more { "more" } else { "other" };
    let is_taught = told.last().is_some_and(|round| !round.learned.is_empty());
    let what = match (last > number, is_taught) {
        (true, false) => format!(
            "the command passed in round {number}, and not in round {last} with {later} rules: it seems to change \
             what it works on, so that it does something else when it runs again"
        ),
        (true, true) => format!(
            "the command passed in round {number}, and not in round {last} with {later} rules; no round is left to \
             try it with what was refused there: allow more with --rounds"
        ),
        (false, _) => format!(
            "the command passed in round {number}; no round is left to try it with what was refused there: allow more \
             with --rounds"
        ),
    };
    let next = format!(
        "the profile has the rules that were in force in round {number}, and none that was learned in it or later; \
         try it, or put back what the command works on and learn again"
    );
    write(asked, output, start, told, Some(number), vec![what, next])
}

/// Writes the profile. `passed_in`: the round in which the command passed under it.
fn write(
    asked: &Asked<'_>,
    output: &Output,
    mut start: Start<'_>,
    told: &[Round],
    passed_in: Option<usize>,
    mut notes: Vec<String>,
) -> Result<Learned, Refusal> {
    // What the last round left in the place of a path would be followed by the next run.
    start.learner.settle();
    let document = start.frame.document(&start.learner.candidate);
    show::not_learned(&start.learner);
    output.write(&json_document(&document))?;
    let flags: Vec<String> = start.beside.iter().map(Beside::shown).collect();
    if !flags.is_empty() {
        notes.push(format!(
            "not in the profile, so that each run needs it on the command line as well: {}",
            flags.join(" ")
        ));
    }
    if start.frame.workspace.as_deref().is_some_and(|own| output.is_in(own)) {
        notes.push(
            "it lies in the workspace, where other commands may change it before it is used: keep it elsewhere, as in \
             ~/.config/sbx/profiles"
                .to_string(),
        );
    }
    let rules = start.learner.candidate.rules();
    let by = match rules.len() {
        0 => "by no rule".to_string(),
        1 => "by 1 rule:".to_string(),
        count => format!("by {count} rules:"),
    };
    show::say(&format!("wrote '{}': it extends '{}' {by}", shown(asked.output), start.name));
    show::table(rules, &start.learner);
    for note in &notes {
        show::say(note);
    }
    let way = way_to_run(asked, flags);
    show::say(&format!("run it with: {way}"));
    let mut json = show::json(Some(asked.output), passed_in, &notes, &start.learner, told, &document);
    json["run"] = json!(way);
    Ok(Learned { status: 0, json })
}

/// How the command is run under the profile, for a shell.
fn way_to_run(asked: &Asked<'_>, flags: Vec<String>) -> String {
    // What is neither a path nor ends in `.json` would be a name of a profile.
    let is_file = is_path(asked.output.as_os_str());
    let file = if is_file { asked.output.to_path_buf() } else { Path::new(".").join(asked.output) };
    let mut words = vec!["sbx run -p".to_string(), shell_word(file.as_os_str())];
    words.extend(flags);
    words.push("--".to_string());
    // A long word would be cut, and be another command.
    match asked.command.iter().all(|word| is_whole(word)) && !asked.command.is_empty() {
        true => words.extend(asked.command.iter().map(|word| shell_word(word))),
        false => words.push("COMMAND".to_string()),
    }
    words.join(" ")
}

/// Says why nothing is written.
fn unwritten(status: i32, why: &[String], start: &Start<'_>, told: &[Round], document: Value) -> Learned {
    why.iter().for_each(|sentence| show::say(sentence));
    let status = if (0..=255).contains(&status) { status } else { REFUSED.into() };
    Learned { status, json: show::json(None, None, why, &start.learner, told, &document) }
}
