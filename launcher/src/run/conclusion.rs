//! What is said when a run has ended: why, and what it left behind.

use crate::enforce::scratch::Scratch;
use crate::error::Refusal;
use crate::explain::decode::signal_name;
use crate::plan::limits::LimitKey;
use crate::supervise::violation::Violations;
use crate::supervise::{Ending, Killed, Summary};
use crate::sys::usage;
use crate::text::{escape, exact_size, shown};
use std::collections::BTreeSet;
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
            violations
                .line("the reaper, a process of sbx in the run, was killed or failed: the run was ended");
        }
        Ending::Killed(libc::SIGSYS) => {
            violations.line(
                "SIGSYS ended the command: by the filter, at a system call of another architecture or one that \
                the profile kills for, or sent by a process",
            );
        }
        Ending::Killed(signal) if ended_by_cpu_limit(signal, summary, limit(LimitKey::Cpu)) => {
            let time = Duration::from_millis(limit(LimitKey::Cpu));
            violations.line(&format!(
                "the command used more than {time:?} of processor time; allow more with --max-cpu"
            ));
        }
        Ending::Killed(libc::SIGXFSZ) if limit(LimitKey::FileSize) > 0 => {
            let size = exact_size(limit(LimitKey::FileSize));
            violations.line(&format!(
                "the command tried to write a file of more than {size}; allow more with --max-file-size"
            ));
        }
        Ending::Killed(libc::SIGKILL) => summary.killed.iter().for_each(|why| violations.line(&killed(*why))),
        Ending::Timeout => {
            let time = Duration::from_millis(limit(LimitKey::Timeout));
            violations.line(&format!("ended the run: timed out after {time:?}; allow more with --timeout"));
        }
        Ending::Memory => {
            let size = exact_size(limit(LimitKey::Memory));
            violations.line(&format!(
                "ended the run: it used more than {size} of memory; allow more with --max-memory"
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

/// Whether the limit of processor time ended the command, in milliseconds. One that goes on after SIGXCPU is killed
/// (setrlimit(2)).
fn ended_by_cpu_limit(signal: i32, summary: &Summary, limit: u64) -> bool {
    let used = || {
        let used = usage::of_children();
        (used.user + used.system).cast_unsigned() / 1000
    };
    let is_killed = signal == libc::SIGKILL && summary.killed.is_none();
    limit > 0 && (signal == libc::SIGXCPU || is_killed && used() >= limit)
}

/// Names what a command had left running. That is no fault: a server and what asks it are often in one command.
pub fn ended(summary: &Summary) -> Option<String> {
    let names: BTreeSet<String> = summary.left.iter().map(|name| format!("'{}'", escape(name, 64))).collect();
    let names = Vec::from_iter(names).join(", ");
    (!names.is_empty()).then(|| {
        format!(
            "ended {names}, which the command had left in the background; --keep-background lets such go on, and takes \
             the run's namespaces away"
        )
    })
}

fn killed(why: Killed) -> String {
    match why {
        Killed::Late { signal, after } => format!(
            "killed the command: it had not ended {after:?} after {}; wait longer with --kill-after",
            signal_name(signal).unwrap_or_default()
        ),
        Killed::Again(signal) => {
            format!("killed the command: {} came a second time", signal_name(signal).unwrap_or_default())
        }
    }
}

/// Says which of the files that kept a name from being made are still there.
pub fn tell_placeholders(violations: &Violations, left: &[PathBuf]) {
    for path in left {
        let path = shown(path);
        violations.line(&format!(
            "'{path}', which kept that name from being made, could not be removed; a later run here will try again"
        ));
    }
}
