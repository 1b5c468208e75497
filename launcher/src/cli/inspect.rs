//! `sbx inspect`: what a program is, and how it would be treated.

use super::flags::Inspect;
use super::print;
use crate::launch::plan;
use crate::launch::treatment::{self, Treatment};
use crate::program;
use crate::refusal::Refusal;
use crate::supervise::decode::escape;
use crate::sys::plain;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// Inspects a program.
pub fn run(flags: &Inspect) -> Result<i32, Refusal> {
    let cwd = std::env::current_dir()
        .map_err(|e| Refusal::new(format!("cannot find the working directory: {}", plain(&e))))?;
    let found = program::find(&flags.file, std::env::var_os("PATH").as_deref(), &cwd)
        .map_err(|e| Refusal::with_code(e.exit_code(), e.to_string()))?;
    let program = program::examine(&found).map_err(|e| Refusal::with_code(e.exit_code(), e.to_string()))?;
    let treatment = match treatment::of(&program) {
        // A run lets it through, static as it may be.
        Treatment::GuardAlone(_) if plan::is_own(&program) => Treatment::Both,
        treatment => treatment,
    };
    if flags.json {
        let value = serde_json::json!({ "program": program, "treatment": treatment.word(), "explanation": treatment.explain() });
        print(format!("{value:#}\n").as_bytes())?;
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
    if let Some(remark) = treatment::without_effect(&program) {
        let _ = writeln!(text, "{remark}");
    }
    print(text.as_bytes())?;
    Ok(if matches!(treatment, Treatment::Never(_)) { crate::refusal::NOT_EXECUTABLE.into() } else { 0 })
}
