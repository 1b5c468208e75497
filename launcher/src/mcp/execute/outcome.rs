//! What a model learns of a run: the part of its report that matters, and what the command wrote.

use crate::explain::hint::Together;
use crate::report::act;
use crate::text::escape;
use rmcp::schemars::{self, JsonSchema};
use sbx_client::Output;
use sbx_client::report::{Fate, Report, ViolationRecord};
use serde::Serialize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// How many refusals one answer has.
const MOST: usize = 20;

/// How a command ended.
#[derive(Serialize, JsonSchema)]
pub struct Outcome {
    /// The number of the run, for read_report
    pub run: u64,
    /// Why it ended: exited, signalled, timeout, memory-limit, violation, output-failed, lost; or refused, not-found,
    /// not-executable where the command did not run
    cause: String,
    /// The exit status, as a shell tells it
    status: i32,
    /// The signal that ended the command, if one did
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    /// Why the command did not run, if it did not
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// How long it took, in seconds
    seconds: f64,
    /// What it wrote to standard output. Where that is long, the middle is left out, and a line says so
    stdout: String,
    /// What it wrote to standard error, likewise
    stderr: String,
    /// How many bytes of standard output were left out
    #[serde(default, skip_serializing_if = "is_zero")]
    stdout_left_out: u64,
    /// How many bytes of standard error were left out
    #[serde(default, skip_serializing_if = "is_zero")]
    stderr_left_out: u64,
    /// What was refused to it
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<Refused>,
    /// How many more kinds of refusals read_report has
    #[serde(default, skip_serializing_if = "is_zero")]
    refused_unlisted: u64,
    /// Flags of 'sbx mcp' that would allow all of it, as far as flags can. Only the user can give them
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allow_all_with: Option<String>,
    /// Flags that the user has just allowed: run the command again if it failed for want of them
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    /// What was less than usual, or was found in the workspace afterwards
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// One refusal.
#[derive(Serialize, JsonSchema)]
struct Refused {
    /// The system call, its arguments, and the process that made it; or what the words of the command name
    what: String,
    /// The rule that refused it
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// How often it happened
    count: u64,
    /// The flags that would allow it. Only the user can give them
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allow_with: Option<String>,
    /// What the user should know beforehand
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Outcome {
    /// Of a command that ran.
    pub fn of(run: u64, output: &Output) -> Outcome {
        let [stdout_left_out, stderr_left_out] = output.left_out;
        let counted = output.report.output;
        let left_out =
            |here, stream: Option<sbx_client::report::Stream>| here + stream.map_or(0, |s| s.left_out);
        Outcome {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            stdout_left_out: left_out(stdout_left_out, counted.stdout),
            stderr_left_out: left_out(stderr_left_out, counted.stderr),
            ..Outcome::of_report(run, &output.report)
        }
    }

    /// Of a command of which there is only a report.
    pub fn of_report(run: u64, report: &Report) -> Outcome {
        let blocked = || report.violations.iter().filter(|violation| violation.fate != Fate::Noted);
        let signal = report.exit.as_ref().and_then(|exit| exit.signal_name.as_deref().map(str::to_string));
        let findings = report.findings.iter().map(|finding| {
            let path = escape(&finding.path.0, 400);
            format!(
                "another program may act on '{path}', which the command made or changed; read_report has more"
            )
        });
        Outcome {
            run,
            cause: report.cause.to_string(),
            status: report.exit_status,
            signal,
            error: report.error.clone(),
            seconds: (report.duration_ms / 10.0).round() / 100.0,
            stdout: String::new(),
            stderr: String::new(),
            stdout_left_out: 0,
            stderr_left_out: 0,
            refused: blocked().take(MOST).map(Refused::of).collect(),
            refused_unlisted: blocked().skip(MOST).count() as u64,
            allow_all_with: all_together(blocked()),
            granted: Vec::new(),
            notes: report.degradations.iter().cloned().chain(findings).collect(),
        }
    }
}

impl Refused {
    fn of(violation: &ViolationRecord) -> Refused {
        let process = escape(&violation.process.0, 100);
        let suggestion = violation.suggestion.as_ref();
        Refused {
            what: format!("{} {process}", act(violation)),
            why: violation.rule.as_ref().map(|rule| rule.text.clone()),
            count: violation.count,
            allow_with: all_together([violation]),
            note: suggestion.and_then(|suggestion| suggestion.note.as_deref().map(str::to_string)),
        }
    }
}

/// One set of flags that allows what each of these was refused.
fn all_together<'r>(violations: impl IntoIterator<Item = &'r ViolationRecord>) -> Option<String> {
    let mut together = Together::default();
    for suggestion in violations.into_iter().filter_map(|violation| violation.suggestion.as_ref()) {
        together.add(suggestion.flags.iter().map(|flag| OsStr::from_bytes(&flag.0)));
    }
    together.for_shell()
}
