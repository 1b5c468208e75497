//! What is said of a limit that was reached.

use crate::explain::hint::{Reason, Rule};
use crate::plan::limits::{Applied, LimitKey};
use crate::text::exact_size;
use std::time::Duration;

/// That a limit in force was reached. How much would be enough, nobody knows: the flag is named without a value.
pub fn reason(key: LimitKey, limits: &[Applied]) -> Reason {
    let value = limits.iter().find(|applied| applied.limit == key).map_or(0, |applied| applied.value);
    let time = Duration::from_millis(value);
    let (what, key, flag) = match key {
        LimitKey::Processes => {
            (format!("the run may have {value} processes and threads"), "limits.processes", "--max-processes")
        }
        LimitKey::OpenFiles => {
            (format!("a process may have {value} open files"), "limits.open_files", "--max-open-files")
        }
        LimitKey::FileSize => {
            (format!("a file may have {}", exact_size(value)), "limits.file_size", "--max-file-size")
        }
        LimitKey::Memory => {
            (format!("the run may use {} of memory", exact_size(value)), "limits.memory", "--max-memory")
        }
        LimitKey::Cpu => (format!("a process may use {time:?} of processor time"), "limits.cpu", "--max-cpu"),
        LimitKey::Timeout => (format!("the run may take {time:?}"), "limits.timeout", "--timeout"),
        LimitKey::Output => {
            (format!("{} of output are passed on", exact_size(value)), "limits.output", "--max-output")
        }
    };
    let rule = Rule { text: format!("{what}; allow more with {flag}"), profile: None, key: Some(key) };
    Reason::of(rule, None)
}
