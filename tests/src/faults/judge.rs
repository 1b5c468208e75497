//! Whether a run handled a failing call well.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::follow::Seen;

/// The outcome of an injection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command was not started, and this sentence gives the reason.
    Refused(i32, String),
    /// The run went on, confined as before, and printed nothing.
    Same,
    /// The run went on, confined as before, and printed this.
    Said(Vec<String>),
    /// The run went on, and the command was refused more than usual.
    Tighter,
    /// The run went on with less, and reported that.
    Degraded(Vec<String>),
    /// The command had begun; it was ended, and this sentence gives the reason.
    Ended(i32, String),
    /// The call was not made this time.
    NotMade,
    /// None of these.
    Broken(String),
}

/// One injection, and its outcome.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The kind of run.
    pub scenario: &'static str,
    /// Who ran it.
    pub user: &'static str,
    /// The call's name.
    pub call: &'static str,
    /// Whether it is made after the command was executed.
    pub late: bool,
    /// The process, the call and the error.
    pub shown: String,
    /// The outcome.
    pub outcome: Outcome,
}

impl Verdict {
    /// Whether it was handled badly.
    pub fn is_broken(&self) -> bool {
        matches!(self.outcome, Outcome::Broken(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { scenario, user, shown, outcome, .. } = self;
        write!(f, "{scenario} [{user}]: {shown}: {outcome:?}")
    }
}

/// The output of an undisturbed run.
pub struct Usual {
    /// Its facts.
    pub facts: String,
    /// Its lines on standard error.
    pub lines: BTreeSet<String>,
    /// The layers and degradations in its report.
    pub confined: Option<(Value, Value)>,
}

/// The evidence to judge.
pub struct Evidence<'a> {
    /// The observations of the run.
    pub seen: &'a Seen,
    /// Its standard output.
    pub facts: String,
    /// Its lines on standard error.
    pub lines: Vec<String>,
    /// Its report, if it was to write one.
    pub report: Option<Option<Value>>,
    /// What it left.
    pub left: Option<String>,
    /// Whether the call is made after the command was executed.
    pub late: bool,
    /// Whether the library has to report before the command's own code runs.
    pub library: bool,
}

/// Whether no report could be expected: its place could not be opened, or was not reached.
fn is_without_report(code: i32, lines: &[String]) -> bool {
    let early = ["sbx: cannot write the report", "sbx: cannot make sure of standard input"];
    let early = lines.iter().all(|line| early.iter().any(|start| line.starts_with(start)));
    code == 125 && (early || is_about_report(lines))
}

/// Whether the run failed only because of its report.
fn is_about_report(lines: &[String]) -> bool {
    lines.iter().any(|line| line.starts_with("sbx: cannot write the report"))
}

/// The layers and degradations in a report.
pub fn confined(report: &Value) -> (Value, Value) {
    (report["layers"].clone(), report["degradations"].clone())
}

/// Judges.
pub fn judge(usual: &Usual, evidence: &Evidence<'_>) -> Outcome {
    let seen = evidence.seen;
    if !seen.failed {
        return Outcome::NotMade;
    }
    if seen.hung {
        return Outcome::Broken("hung, and was killed".into());
    }
    if seen.outlived > 0 {
        return Outcome::Broken(format!("{} of its processes outlived it", seen.outlived));
    }
    if let Some(signal) = seen.signal {
        return Outcome::Broken(format!("died of signal {signal}: {:?}", evidence.lines));
    }
    if let Some(left) = evidence.left.as_ref().filter(|left| !tells(&evidence.lines, left)) {
        return Outcome::Broken(format!("left something behind: {left}"));
    }
    let code = seen.output.code.unwrap_or(-1);
    match evidence.report {
        Some(None) if !is_without_report(code, &evidence.lines) => {
            return Outcome::Broken(format!("wrote no report; {code}: {:?}", evidence.lines));
        }
        Some(Some(ref report)) if report["exit_status"] != code && !is_about_report(&evidence.lines) => {
            return Outcome::Broken(format!("reported another exit status than {code}"));
        }
        _ => {}
    }
    let ran = evidence.facts.starts_with("ran") || (seen.started && !evidence.library);
    if evidence.late && code == 125 {
        return ended(usual, evidence);
    }
    if ran { went_on(usual, evidence, code) } else { refused(usual, evidence, code) }
}

/// Whether the run reports that it could not remove this.
fn tells(lines: &[String], left: &str) -> bool {
    let Some(name) = left.split('\'').nth(1) else { return false };
    lines.iter().any(|line| line.contains("could not be removed") && line.contains(&format!("/{name}'")))
}

fn refused(usual: &Usual, evidence: &Evidence<'_>, code: i32) -> Outcome {
    // Warnings are printed before the start; the existing filter may refuse what the library tries.
    let aside = |line: &String| {
        line.starts_with("sbx: warning: ") || (evidence.library && line.starts_with("sbx: blocked "))
    };
    let lines: Vec<&String> =
        evidence.lines.iter().filter(|line| !usual.lines.contains(*line) && !aside(line)).collect();
    let [line] = lines[..] else {
        return Outcome::Broken(format!("exit status {code} and not one sentence: {lines:?}"));
    };
    let of_library = line.strip_prefix("libsandbox.so: ").filter(|_| evidence.library);
    match line.strip_prefix("sbx: ").or(of_library) {
        _ if !evidence.facts.is_empty() => Outcome::Broken("something was written to standard output".into()),
        Some(_) if line.contains("panicked") => Outcome::Broken(format!("panicked: {line}")),
        Some(sentence) if matches!(code, 125..=127) => Outcome::Refused(code, sentence.into()),
        _ => Outcome::Broken(format!("exit status {code}: {line}")),
    }
}

fn ended(usual: &Usual, evidence: &Evidence<'_>) -> Outcome {
    let new = evidence.lines.iter().filter(|line| !usual.lines.contains(*line));
    let own: Vec<&str> = new.filter_map(|line| line.strip_prefix("sbx: ")).collect();
    match own.iter().find(|line| line.starts_with("cannot ") || line.starts_with("the supervisor's helper "))
    {
        Some(line) if !line.contains("panicked") => Outcome::Ended(125, (*line).into()),
        _ => Outcome::Broken(format!("ended, and did not say why: {:?}", evidence.lines)),
    }
}

fn went_on(usual: &Usual, evidence: &Evidence<'_>, code: i32) -> Outcome {
    let new: Vec<String> =
        evidence.lines.iter().filter(|line| !usual.lines.contains(*line)).cloned().collect();
    if code != 0 {
        return Outcome::Broken(format!("the command ran, and the exit status is {code}: {new:?}"));
    }
    let (before, now): (BTreeSet<&str>, BTreeSet<&str>) =
        (usual.facts.lines().collect(), evidence.facts.lines().collect());
    let difference: Vec<&&str> = before.symmetric_difference(&now).collect();
    let report = evidence.report.as_ref().and_then(Option::as_ref).map(confined);
    let told = report.is_some() && report != usual.confined;
    let reported = report.is_none() || told;
    match (difference.is_empty(), new.is_empty()) {
        (true, true) => Outcome::Same,
        (true, false) => Outcome::Said(new),
        (false, true) if is_tighter(&before, &now) => Outcome::Tighter,
        (false, false) if reported => Outcome::Degraded(new),
        (false, false) => Outcome::Broken(format!("the report does not tell: {new:?}, {difference:?}")),
        (false, true) if told => Outcome::Degraded(Vec::new()),
        (false, true) => Outcome::Broken(format!("confined otherwise, without a word: {difference:?}")),
    }
}

/// Whether the only difference is that something was refused, or mounted read-only or without devices.
fn is_tighter(before: &BTreeSet<&str>, now: &BTreeSet<&str>) -> bool {
    let is_error =
        |word: &str| word.len() > 2 && word.starts_with('E') && word.bytes().all(|b| b.is_ascii_uppercase());
    let is_shield = |line: &str| line.starts_with("mounted ") && line.contains(": ro,");
    let is_refused = |line: &str| line.rsplit_once(": ").is_some_and(|(_, word)| is_error(word));
    let lost_devices = |line: &str| before.contains(&*line.replacen(",nodev", "", 1));
    now.difference(before).all(|line| is_shield(line) || is_refused(line) || lost_devices(line))
}
