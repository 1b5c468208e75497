//! What happened in a run, for programs: a JSON document for whoever started it, and a line for an audit log.
//!
//! A [`Reporter`] is made before anything else, so that a run which is refused is reported too, and takes in
//! what becomes known. Without one of its flags there is none, and nothing of this runs.

mod bytes;
mod clock;
mod facts;
mod json;
mod layers;
pub mod model;
mod place;
mod policy_hash;
mod records;
mod words;

use crate::cli::{Run, RunOnly};
use crate::launch::plan::Plan;
use crate::refusal::Refusal;
use crate::supervise::decode::signal_name;
use crate::supervise::violation::Violations;
use crate::supervise::{Ending, Summary};
use crate::sys::process::Pid;
use crate::sys::signal::{self, Disposition};
use crate::sys::usage;
use clap::CommandFactory;
use model::{Cause, Exit, Output, Report};
use place::{AuditLog, Passed, Replaced};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// The JSON Schema (draft 2020-12) of a report.
pub static SCHEMA: &str = include_str!("../../schema/report.schema.json");

/// How long the reader of a descriptor may take nothing in any case.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// Takes in what happens, and writes it where it was asked for.
pub struct Reporter {
    report: Report,
    start: Instant,
    passed: Option<Passed>,
    replaced: Option<Replaced>,
    audit: Option<AuditLog>,
    /// How long the run may last, if that is limited.
    time: Option<Duration>,
}

/// Where reports are wanted.
struct Wanted<'a> {
    file: Option<&'a PathBuf>,
    descriptor: Option<i32>,
    audit: Option<&'a PathBuf>,
}

impl Reporter {
    /// A reporter where one is wanted, and whether all the places that were named can be written to: if not, the
    /// others are told of it. To be called before a descriptor is opened that could be taken for the caller's.
    pub fn open(flags: &Run) -> (Option<Reporter>, Result<(), Refusal>) {
        let wanted = Wanted {
            file: flags.report.as_ref(),
            descriptor: flags.report_fd,
            audit: flags.audit_log.as_ref(),
        };
        Reporter::for_command(&wanted, &flags.command, &flags.pass_fd)
    }

    fn for_command(
        wanted: &Wanted<'_>,
        command: &[OsString],
        passed_on: &[i32],
    ) -> (Option<Reporter>, Result<(), Refusal>) {
        if wanted.file.is_none() && wanted.descriptor.is_none() && wanted.audit.is_none() {
            return (None, Ok(()));
        }
        let mut trouble = Ok(());
        let passed = kept(wanted.descriptor.map(|number| Passed::prepare(number, passed_on)), &mut trouble);
        let replaced = kept(wanted.file.map(|path| Replaced::prepare(path)), &mut trouble);
        let audit = kept(wanted.audit.map(|path| AuditLog::prepare(path)), &mut trouble);
        let report = empty(command);
        (Some(Reporter { report, start: Instant::now(), passed, replaced, audit, time: None }), trouble)
    }

    /// What the run will be.
    pub fn planned(&mut self, plan: &mut Plan) {
        let seal =
            if plan.unconfined { None } else { plan.calls.seal(plan.on_violation.value()).ok().flatten() };
        if self.audit.as_ref().is_some_and(|log| facts::is_exposed(log.path(), plan)) {
            plan.remarks
                .push("warning: the command may write where the audit log is, and so change it".to_string());
        }
        self.time = plan.limits.timeout;
        let report = &mut self.report;
        report.program = Some(plan.program.path.as_path().into());
        report.profile = Some(facts::profile(plan));
        report.policy_hash = policy_hash::of(plan, seal.as_ref());
        report.workspace = plan.workspace.as_deref().map(Into::into);
        report.network = Some(facts::network(plan));
        report.level = Some(plan.level());
        report.layers = layers::of(plan, seal.is_some());
        report.degradations = plan.remarks.clone();
        report.limits = plan.limits.applied.iter().map(facts::limit).collect();
    }

    /// The command runs. Why refused calls are not told to us, if so.
    pub fn started(&mut self, command: Pid, unheard: Option<&str>) {
        self.report.pid = Some(command);
        if let Some(why) = unheard {
            layers::unheard(&mut self.report.layers, why);
            self.report.degradations.push(format!("violations are refused, but not reported: {why}"));
        }
    }

    /// The command and all that it started have ended; without a summary, nobody knows how.
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
        report.rusage = Some(facts::rusage(usage::of_children()));
        report.violations = records::of(violations);
        report.violations_unlisted = violations.unlisted();
        let listed: u64 = report.violations.iter().map(|record| record.count).sum();
        report.violations_total = listed + report.violations_unlisted;
    }

    /// Writes the report, and passes the result of the run on if that succeeds. Where it fails, the caller could
    /// not tell what happened: that is a failure of its own.
    pub fn finish(mut self, result: Result<i32, Refusal>) -> Result<i32, Refusal> {
        let duration = self.start.elapsed();
        self.report.duration_ms = facts::milliseconds(duration.as_micros() as f64);
        self.report.exit_status =
            result.as_ref().map_or_else(|refusal| refusal.code.into(), |status| *status);
        if let Err(refusal) = &result {
            self.report.error = Some(refusal.sentence.clone());
            // What was started and then given up is lost, not refused.
            if self.report.pid.is_none() {
                self.report.cause = refusal.cause;
            }
        }
        let Err(why) = self.write() else { return result };
        Err(Refusal::new(match result {
            Ok(status) => format!("{why} (the command had ended, and sbx would have exited with {status})"),
            Err(refusal) => format!("{refusal}; and {why}"),
        }))
    }

    fn write(self) -> Result<(), String> {
        let line = json::line(&self.report).map_err(|error| format!("cannot write the report: {error}"))?;
        // An error says it better than a signal, but a signal says it too.
        let _ = signal::dispose(libc::SIGPIPE, Disposition::Ignore);
        let _ = signal::dispose(libc::SIGXFSZ, Disposition::Ignore);
        let patience = self.time.map(|time| time.saturating_sub(self.start.elapsed()).max(LEAST_PATIENCE));
        let written = [
            self.replaced.map(|place| place.write(&line)),
            self.audit.map(|place| place.write(&line)),
            // Whoever waits for it finds the others done.
            self.passed.map(|place| place.write(&line, patience)),
        ];
        let failures: Vec<String> = written.into_iter().flatten().filter_map(Result::err).collect();
        if failures.is_empty() { Ok(()) } else { Err(failures.join("; and ")) }
    }
}

/// Reports a command line that could not be understood, as far as it could: to the places that are named before
/// the mistake.
pub fn misunderstood(arguments: &[OsString], refusal: Refusal) -> Result<i32, Refusal> {
    let command = RunOnly::command().ignore_errors(true);
    let Ok(matches) = command.try_get_matches_from(arguments.get(1..).unwrap_or_default()) else {
        return Err(refusal);
    };
    let path = |name| matches.try_get_one::<PathBuf>(name).ok().flatten();
    let wanted = Wanted {
        file: path("report"),
        descriptor: matches.try_get_one::<i32>("report_fd").ok().flatten().copied(),
        audit: path("audit_log"),
    };
    let (reporter, opened) = Reporter::for_command(&wanted, &[], &[]);
    let refusal = match opened {
        Ok(()) => refusal,
        Err(other) => Refusal::new(format!("{refusal}; and {other}")),
    };
    match reporter {
        Some(reporter) => reporter.finish(Err(refusal)),
        None => Err(refusal),
    }
}

/// A place that is ready; what is wrong with the first that is not, is remembered.
fn kept<T>(prepared: Option<Result<T, Refusal>>, trouble: &mut Result<(), Refusal>) -> Option<T> {
    prepared?
        .map_err(|refusal| {
            if trouble.is_ok() {
                *trouble = Err(refusal)
            }
        })
        .ok()
}

/// Of a run of which nothing else is known yet.
fn empty(command: &[OsString]) -> Report {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Report {
        version: model::VERSION,
        sbx: env!("CARGO_PKG_VERSION").into(),
        command: command.iter().map(|word| word.as_os_str().into()).collect(),
        program: None,
        profile: None,
        policy_hash: None,
        workspace: None,
        network: None,
        level: None,
        layers: Vec::new(),
        degradations: Vec::new(),
        started: clock::rfc3339(now),
        started_unix_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const GUIDE: &str = include_str!("../../../docs/report.md");

    /// The names of properties and the words of enumerations, wherever they are.
    fn words(schema: &Value, all: &mut Vec<String>) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            all.extend(properties.keys().cloned());
        }
        let choices = schema.get("enum").and_then(Value::as_array);
        all.extend(choices.into_iter().flatten().filter_map(Value::as_str).map(str::to_string));
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
