//! What is said when a run has ended: why, and what it left behind.

use crate::launch::scratch::Scratch;
use crate::refusal::Refusal;
use crate::supervise::decode::shown;
use crate::supervise::violation::Violations;
use crate::supervise::{Ending, Summary};
use std::path::PathBuf;
use std::time::Duration;

/// Says why the command ended, where it is not plain to see.
pub fn conclude(
    summary: &Summary,
    violations: &Violations,
    scratch: Option<Scratch>,
) -> Result<i32, Refusal> {
    let limit =
        |name| summary.limits.iter().find(|applied| applied.limit == name).map_or(0, |applied| applied.value);
    match summary.ending {
        Ending::Lost => {
            violations.line(
                "the supervisor's helper was killed or could not go on, and so the command was ended too",
            );
        }
        Ending::Killed(libc::SIGSYS) => {
            violations.line("the filter ended the command: a system call of another architecture, or one that the profile kills for");
        }
        Ending::Killed(libc::SIGXCPU) if limit("cpu") > 0 => {
            let time = Duration::from_millis(limit("cpu"));
            violations.line(&format!(
                "the command used more than {time:?} of processor time; allow more with --max-cpu"
            ));
        }
        Ending::Killed(libc::SIGXFSZ) if limit("file_size") > 0 => {
            let bytes = limit("file_size");
            violations.line(&format!(
                "the command meant to write a file of more than {bytes} bytes; allow more with --max-file-size"
            ));
        }
        Ending::Timeout => {
            let time = Duration::from_millis(limit("timeout"));
            violations.line(&format!("ended the run: its time, {time:?}, was up; allow more with --timeout"));
        }
        Ending::Memory => {
            let bytes = limit("memory");
            violations.line(&format!(
                "ended the run: it used more than {bytes} bytes of memory; allow more with --max-memory"
            ));
        }
        Ending::Exited(_) | Ending::Killed(_) | Ending::Violation | Ending::OutputFailed => {}
    }
    if summary.kept_background
        && let Some(scratch) = scratch
    {
        violations.line(&format!(
            "what runs on in the background keeps its directory '{}'",
            shown(&scratch.keep())
        ));
    }
    match &summary.failure {
        Some(sentence) => Err(Refusal::new(format!("{sentence}; the command was ended"))),
        None => Ok(summary.ending.status()),
    }
}

/// Says which of the files that kept a name from being made are still there.
pub fn tell_stubs(violations: &Violations, left: &[PathBuf]) {
    for path in left {
        let path = shown(path);
        violations.line(&format!(
            "'{path}', which kept that name from being made, could not be removed; a later run here will try again"
        ));
    }
}
