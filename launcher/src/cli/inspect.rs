//! `sbx inspect`: what a program is, and how it would be treated.

use crate::cli::flags::Inspect;
use crate::cli::print;
use crate::error::Refusal;
use crate::host::Host;
use crate::plan::static_programs::{self, Treatment};
use crate::program;
use crate::report::json::document;
use crate::text::escape;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// Inspects a program.
pub fn run(flags: &Inspect) -> Result<i32, Refusal> {
    let host = Host::of_this_process();
    let found = program::find(&flags.file, host.variable("PATH"), host.directory()?)?;
    let program = program::examine(&found)?;
    let treatment = match static_programs::of(&program) {
        // A run lets it through, static as it may be.
        Treatment::GuardAlone(_) if static_programs::is_own(&program, &host) => Treatment::Both,
        treatment => treatment,
    };
    if flags.json {
        let (word, explanation) = (treatment.word(), treatment.explain());
        let value = serde_json::json!({ "program": program, "treatment": word, "explanation": explanation });
        print(document(&value).as_bytes())?;
        return Ok(0);
    }
    let mut text = String::new();
    // As it was typed, where that was a path.
    let typed =
        if flags.file.as_bytes().contains(&b'/') { flags.file.as_os_str() } else { found.as_os_str() };
    let path = escape(typed.as_bytes(), 400);
    let _ = writeln!(text, "{path} is {}", program.describe());
    for link in program.chain.iter().skip(1) {
        let path = escape(link.path.as_os_str().as_bytes(), 400);
        let _ = writeln!(text, "  run by {path}: {}", link.kind);
    }
    let _ = writeln!(text, "{}", treatment.explain());
    if let Some(remark) = static_programs::without_effect(&program) {
        let _ = writeln!(text, "{remark}");
    }
    print(text.as_bytes())?;
    Ok(if matches!(treatment, Treatment::Never(_)) { crate::error::NOT_EXECUTABLE.into() } else { 0 })
}
