//! Which tools a test needs, and visible skips where one is missing.

use crate::command::Cmd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Set to 1 where everything must run: a missing tool is then a failure.
const NO_SKIP: &str = "SBX_TEST_NO_SKIP";

/// The search path of every command in the suites. The tester's own may lead into a home that other users cannot enter.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Reports that a test, or a part of one, did not run and why; fails where skips are forbidden.
#[track_caller]
pub fn skip(reason: &str) {
    let forbidden = std::env::var_os(NO_SKIP).is_some_and(|value| value == "1");
    assert!(!forbidden, "must not be skipped while {NO_SKIP}=1: {reason}");
    // Straight to the descriptor: the test runner would swallow a captured line of a passing test.
    crate::sys::write_stderr(format!("SKIPPED: {reason}\n").as_bytes());
}

/// Where a program is on the suites' search path.
pub fn have(tool: &str) -> Option<PathBuf> {
    PATH.split(':').map(|dir| PathBuf::from(dir).join(tool)).find(|path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    })
}

/// Whether a tool of a list is there: a program, or python:MODULE of /usr/bin/python3.
pub fn is_there(tool: &str) -> bool {
    match tool.strip_prefix("python:") {
        Some(module) => {
            let program = format!("import {module}");
            Cmd::new("/usr/bin/python3").args(["-c", &program]).run().code == Some(0)
        }
        None => have(tool).is_some(),
    }
}

/// Whether all tools are there; skips visibly where one is not.
#[track_caller]
pub fn need(tools: &[&str]) -> bool {
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| !is_there(tool)).collect();
    if !missing.is_empty() {
        skip(&format!("needs {}", missing.join(", ")));
    }
    missing.is_empty()
}

/// Returns from the test where one of these tools is missing: a visible skip, as [`need()`] makes it.
#[macro_export]
macro_rules! need {
    ($($tool:expr),+) => {
        if !$crate::need(&[$($tool),+]) {
            return;
        }
    };
}
