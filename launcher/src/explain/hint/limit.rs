//! What is said of a limit that was reached.

use crate::explain::hint::{Hint, Reason, Rule};
use crate::plan::limits::{Applied, LimitKey};
use std::time::Duration;

/// That a limit in force was reached. How much would be enough nobody knows: twice as much is proposed.
pub fn reason(key: LimitKey, limits: &[Applied]) -> Reason {
    let value = limits.iter().find(|applied| applied.limit == key).map_or(0, |applied| applied.value);
    let more = value.saturating_mul(2);
    let (what, key, flag, more) = match key {
        LimitKey::Processes => (
            format!("the run may have {value} processes and threads"),
            "limits.processes",
            "--max-processes",
            more.to_string(),
        ),
        LimitKey::OpenFiles => (
            format!("a process may have {value} open files"),
            "limits.open_files",
            "--max-open-files",
            more.to_string(),
        ),
        LimitKey::FileSize => (
            format!("SIGXFSZ has ended a program: a file may have {value} bytes"),
            "limits.file_size",
            "--max-file-size",
            more.to_string(),
        ),
        LimitKey::Memory => (
            format!("the run may use {value} bytes of memory"),
            "limits.memory",
            "--max-memory",
            more.to_string(),
        ),
        LimitKey::Cpu => (
            format!(
                "SIGXCPU has ended a program: a process may use {:?} of processor time",
                Duration::from_millis(value)
            ),
            "limits.cpu",
            "--max-cpu",
            format!("{more}ms"),
        ),
        LimitKey::Timeout => (
            format!("the run may take {:?}", Duration::from_millis(value)),
            "limits.timeout",
            "--timeout",
            format!("{more}ms"),
        ),
        LimitKey::Output => (
            format!("{value} bytes of output are passed on"),
            "limits.output",
            "--max-output",
            more.to_string(),
        ),
    };
    let rule = Rule { text: what, profile: None, key: Some(key) };
    Reason { rule: Some(rule), hint: Some(Hint::of([flag, &more])) }
}
