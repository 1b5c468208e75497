//! What happened in a run, for programs: a JSON document for the caller, and a line for an audit log.
//!
//! A [`Reporter`] is made before anything else, so that a refused run is reported too. It records what
//! becomes known, whatever the run comes to. Without one of the flags there is no reporter, and nothing of
//! this module runs.

mod facts;
pub mod json;
mod layers;
mod place;
mod policy_hash;
mod read;
mod records;
mod show;

pub use read::{Source, read};
pub use show::{Show, act, effect, table};

use crate::error::{EndsRun, Refusal};
use crate::explain::decode::signal_name;
use crate::plan::Plan;
use crate::request::Request;
use crate::supervise::hosts::Hosts;
use crate::supervise::published::Published;
use crate::supervise::violation::Violations;
use crate::supervise::{Caller, Ending, Stderr, Summary};
use crate::sys::process::Pid;
use crate::sys::signal::{self, Disposition};
use crate::sys::usage;
use crate::text::wants_colours;
use place::{AuditLog, Passed, PlaceError, Replaced};
use sbx_client::report::{Bytes, Cause, Exit, Finding, Output, Report, VERSION};
use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// The JSON Schema (draft 2020-12) of a report. The build makes it from the types of `sbx-client`.
pub static SCHEMA: &str = include_str!(concat!(env!("OUT_DIR"), "/report.schema.json"));

/// How long the reader of a descriptor may pause, even if the run's time is over.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// How many refusals the table of a run lists. `sbx report show` lists all.
const MOST_ROWS: usize = 50;

/// A report that cannot be written. The caller could not tell what happened, so this is an error of its own.
#[derive(Debug, thiserror::Error)]
enum ReportError {
    #[error("cannot write the report: {0}")]
    Json(io::Error),
    #[error("{}", .0.iter().map(PlaceError::to_string).collect::<Vec<_>>().join("; and "))]
    Places(Vec<PlaceError>),
    #[error("{unwritten} (the command had ended, and sbx would have exited with {status})")]
    AfterRun { unwritten: Box<ReportError>, status: i32 },
    #[error("{refusal}; and {unwritten}")]
    AfterRefusal { refusal: Refusal, unwritten: Box<ReportError> },
    #[error("{refusal}; and {other}")]
    Misunderstood { refusal: Refusal, other: Refusal },
}

impl EndsRun for ReportError {}

/// Records what happens, and writes it where the caller wants it.
pub struct Reporter {
    report: Report,
    start: Instant,
    passed: Option<Passed>,
    replaced: Option<Replaced>,
    audit: Option<AuditLog>,
    /// Whether people are shown a table.
    shows: bool,
    /// The time limit of the run.
    time: Option<Duration>,
    /// Who asked for the run, if that is another process.
    caller: Option<Caller>,
}

impl Reporter {
    /// Opens the places that the request names. If one cannot be written to, the others report that refusal.
    /// Called before any descriptor is opened, since it could have the number that the caller means.
    pub fn open(request: &Request) -> (Option<Reporter>, Result<(), Refusal>) {
        let Request { report, report_fd, audit_log, summary, .. } = request;
        if !Reporter::is_wanted(request) {
            return (None, Ok(()));
        }
        let mut trouble = Ok(());
        let passed = kept(report_fd.map(|number| Passed::prepare(number, &request.pass_fd)), &mut trouble);
        let replaced = kept(report.as_deref().map(Replaced::prepare), &mut trouble);
        let audit = kept(audit_log.as_deref().map(AuditLog::prepare), &mut trouble);
        let (report, start) = (empty(&request.command), Instant::now());
        let shows = *summary;
        (Some(Reporter { report, start, passed, replaced, audit, shows, time: None, caller: None }), trouble)
    }

    /// For a run that somebody has asked for from elsewhere.
    pub fn answer_to(&mut self, caller: &Caller) {
        self.caller = Some(caller.clone());
    }

    /// Whether a request names any places, or people are to be shown a table.
    pub fn is_wanted(request: &Request) -> bool {
        let Request { report, report_fd, audit_log, summary, .. } = request;
        report.is_some() || report_fd.is_some() || audit_log.is_some() || *summary
    }

    /// Whether a table says what was refused, when the run has ended.
    pub fn shows(&self) -> bool {
        self.shows
    }

    /// Records what the run will be.
    pub fn planned(&mut self, plan: &mut Plan) {
        if self.audit.as_ref().is_some_and(|log| facts::is_exposed(log.path(), plan)) {
            plan.warnings
                .push("warning: the command may write where the audit log is, and so change it".to_string());
        }
        self.time = plan.limits.timeout;
        let report = &mut self.report;
        report.program = Some(plan.program.path.as_path().into());
        report.profile = Some(facts::profile(plan));
        report.policy_hash = policy_hash::of(plan);
        report.workspace = plan.workspace.as_deref().map(Into::into);
        report.home = plan.private_home.as_ref().map(facts::home);
        report.network = Some(facts::network(plan));
        report.level = Some(facts::level(plan));
        report.layers = layers::of(plan);
        report.degradations = plan.warnings.clone();
        let lacks = plan.network.lacks.iter().map(|why| format!("the run has no loopback of its own: {why}"));
        report.degradations.extend(lacks);
        report.limits = plan.limits.applied.iter().map(facts::limit).collect();
    }

    /// Records that the command runs, and why its violations cannot be observed, if so.
    pub fn started(&mut self, command: Pid, unheard: Option<&str>) {
        self.report.pid = Some(command);
        if let Some(why) = unheard {
            layers::unheard(&mut self.report.layers, why);
            self.report.degradations.push(format!("violations are refused, but not reported: {why}"));
        }
    }

    /// Records how the command and all that it started have ended. Without a summary, that is unknown.
    pub fn ended(&mut self, summary: Option<&Summary>, violations: &Violations) {
        let report = &mut self.report;
        let exited = |code, signal: Option<i32>| {
            Some(Exit { code, signal, signal_name: signal.and_then(signal_name).map(Into::into) })
        };
        (report.cause, report.exit) = match summary.map(|summary| summary.ending) {
            Some(Ending::Exited(code)) => (Cause::Exited, exited(Some(code), None)),
            Some(Ending::Killed(signal)) => (Cause::Signalled, exited(None, Some(signal))),
            Some(Ending::Timeout) => (Cause::Timeout, None),
            Some(Ending::Memory) => (Cause::MemoryLimit, None),
            Some(Ending::Violation) => (Cause::Violation, None),
            Some(Ending::OutputFailed) => (Cause::OutputFailed, None),
            Some(Ending::Lost) | None => (Cause::Lost, None),
        };
        report.output = facts::output(summary.map_or(&[], |summary| &summary.output));
        report.left = summary.iter().flat_map(|summary| &summary.left).map(|name| name[..].into()).collect();
        report.rusage = Some(facts::rusage(usage::of_children()));
        report.violations = records::of(violations);
        report.violations_unlisted = violations.unlisted();
        let listed: u64 = report.violations.iter().map(|record| record.count).sum();
        report.violations_total = listed + report.violations_unlisted;
    }

    /// Records what was found in the workspace afterwards, and what could not be done there.
    pub fn looked(&mut self, findings: Vec<Finding>, failures: Vec<String>) {
        self.report.findings = findings;
        self.report.degradations.extend(failures);
    }

    /// Records what the run had of the hosts that it reached.
    pub fn reached(&mut self, hosts: &Hosts) {
        if let Some(network) = &mut self.report.network {
            (network.hosts, network.hosts_unlisted) = (facts::hosts(hosts), hosts.unlisted());
        }
    }

    /// Records how the ports were used that this machine showed.
    pub fn showed(&mut self, published: &Published) {
        if let Some(network) = &mut self.report.network {
            network.published = facts::published(published);
            network.hosts_unlisted += published.unlisted();
        }
    }

    /// Records what was written to the home of the run's own.
    pub fn wrote_home(&mut self, paths: Vec<Bytes>, more: bool) {
        if let Some(home) = &mut self.report.home {
            (home.written, home.more_written) = (paths, more);
        }
    }

    /// Writes the report, and passes the result of the run on. A report that cannot be written is an error
    /// instead.
    pub fn finish(mut self, result: Result<i32, Refusal>) -> Result<i32, Refusal> {
        let duration = self.start.elapsed();
        self.report.duration_ms = facts::milliseconds(duration.as_micros() as f64);
        self.report.exit_status =
            result.as_ref().map_or_else(|refusal| refusal.status().into(), |status| *status);
        if let Err(refusal) = &result {
            self.report.error = Some(refusal.to_string());
            // A run that was started and then given up is lost, not refused.
            if self.report.pid.is_none() {
                self.report.cause = refusal.outcome.cause();
            }
        }
        // Of a run that did not start, the sentence of its refusal says all.
        let table = (self.shows && self.report.pid.is_some()).then(|| self.table());
        let written = self.write().map_err(Box::new);
        table.iter().for_each(|table| show_people(table));
        let Err(unwritten) = written else { return result };
        Err(match result {
            Ok(status) => ReportError::AfterRun { unwritten, status }.into(),
            Err(refusal) => ReportError::AfterRefusal { refusal, unwritten }.into(),
        })
    }

    fn table(&self) -> String {
        table(&self.report, Show { coloured: wants_colours(&io::stderr()), most: Some(MOST_ROWS) })
    }

    fn write(self) -> Result<(), ReportError> {
        if self.replaced.is_none() && self.audit.is_none() && self.passed.is_none() {
            return Ok(());
        }
        let line = json::line(&self.report).map_err(ReportError::Json)?;
        // With these signals ignored, the write fails with an error that says why.
        let _ = signal::dispose(libc::SIGPIPE, Disposition::Ignore);
        let _ = signal::dispose(libc::SIGXFSZ, Disposition::Ignore);
        let patience = self.time.map(|time| time.saturating_sub(self.start.elapsed()).max(LEAST_PATIENCE));
        let written = [
            self.replaced.map(|place| place.write(&line)),
            self.audit.map(|place| place.write(&line)),
            // Last, so that a caller who waits for this one finds the others written.
            self.passed.map(|place| place.write(&line, patience, self.caller.as_ref())),
        ];
        let failures: Vec<PlaceError> = written.into_iter().flatten().filter_map(Result::err).collect();
        if failures.is_empty() { Ok(()) } else { Err(ReportError::Places(failures)) }
    }
}

/// Writes a table to standard error. A reader that takes nothing is not waited for without end.
fn show_people(table: &str) {
    Stderr::say_alone(&format!("\n{table}"));
}

/// Reports a command line that could not be understood to the places that it names.
pub fn misunderstood(request: &Request, refusal: Refusal) -> Result<i32, Refusal> {
    let (reporter, opened) = Reporter::open(request);
    let refusal = match opened {
        Ok(()) => refusal,
        Err(other) => ReportError::Misunderstood { refusal, other }.into(),
    };
    match reporter {
        Some(reporter) => reporter.finish(Err(refusal)),
        None => Err(refusal),
    }
}

/// A place that is ready. The first error is kept in `trouble`.
fn kept<T>(prepared: Option<Result<T, PlaceError>>, trouble: &mut Result<(), Refusal>) -> Option<T> {
    prepared?
        .map_err(|error| {
            if trouble.is_ok() {
                *trouble = Err(error.into())
            }
        })
        .ok()
}

/// The report of a run of which only the command is known.
fn empty(command: &[OsString]) -> Report {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Years have four digits: the kernel's clock ends in 2262.
    let started = humantime::format_rfc3339_nanos(SystemTime::UNIX_EPOCH + since_1970).to_string();
    Report {
        version: VERSION,
        sbx: env!("CARGO_PKG_VERSION").into(),
        command: command.iter().map(|word| word.as_os_str().into()).collect(),
        program: None,
        profile: None,
        policy_hash: None,
        workspace: None,
        home: None,
        network: None,
        level: None,
        layers: Vec::new(),
        degradations: Vec::new(),
        started,
        started_unix_ns: u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX),
        duration_ms: 0.0,
        pid: None,
        exit: None,
        exit_status: 0,
        cause: Cause::Lost,
        error: None,
        rusage: None,
        output: Output::default(),
        limits: Vec::new(),
        violations: Vec::new(),
        violations_total: 0,
        violations_unlisted: 0,
        findings: Vec::new(),
        left: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const GUIDE: &str = include_str!("../../../docs/report.md");

    /// The names of properties and the words of enumerations, at any depth.
    fn words(schema: &Value, all: &mut Vec<String>) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            all.extend(properties.keys().cloned());
        }
        let choices = schema.get("enum").and_then(Value::as_array);
        all.extend(choices.into_iter().flatten().filter_map(Value::as_str).map(str::to_string));
        all.extend(schema.get("const").and_then(Value::as_str).map(str::to_string));
        let children: Vec<&Value> = match schema {
            Value::Object(map) => map.values().collect(),
            Value::Array(list) => list.iter().collect(),
            _ => Vec::new(),
        };
        children.into_iter().for_each(|child| words(child, all));
    }

    #[test]
    fn the_guide_explains_every_word_of_the_schema() {
        let mut all = Vec::new();
        words(&serde_json::from_str(SCHEMA).unwrap(), &mut all);
        assert!(all.len() > 80, "{all:?}");
        let missing: Vec<_> = all
            .iter()
            .filter(|word| !GUIDE.contains(&format!("`{word}`")) && !GUIDE.contains(&format!("\"{word}\"")))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_report_has_exactly_the_fields_of_the_schema() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let line = json::line(&empty(&[])).unwrap();
        let report: Value = serde_json::from_slice(&line).unwrap();
        let names = |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        assert_eq!(names(&report), names(&schema["properties"]));
        let mut required: Vec<&str> =
            schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        required.sort_unstable();
        assert_eq!(required, names(&report));
    }
}
