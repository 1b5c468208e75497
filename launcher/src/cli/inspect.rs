//! `sbx inspect`: what a program is, and how it would be treated.

use super::flags::Inspect;
use super::print;
use crate::launch::treatment::{self, Treatment};
use crate::program;
use crate::refusal::Refusal;
use std::fmt::Write;

/// Inspects a program.
pub fn run(flags: &Inspect) -> Result<i32, Refusal> {
    let cwd = std::env::current_dir()
        .map_err(|e| Refusal::new(format!("cannot find the working directory: {e}")))?;
    let found = program::find(&flags.file, std::env::var_os("PATH").as_deref(), &cwd)
        .map_err(|e| Refusal::with_code(e.exit_code(), e.to_string()))?;
    let program = program::examine(&found).map_err(|e| Refusal::with_code(e.exit_code(), e.to_string()))?;
    let treatment = treatment::of(&program);
    if flags.json {
        let value = serde_json::json!({ "program": program, "treatment": treatment.word(), "explanation": treatment.explain() });
        print(format!("{value:#}\n").as_bytes())?;
        return Ok(0);
    }
    let mut text = String::new();
    let _ = writeln!(text, "{}", program.describe());
    for link in program.chain.iter().skip(1) {
        let _ = writeln!(text, "  run by {}: {}", link.path.display(), link.kind);
    }
    let _ = writeln!(text, "{}", treatment.explain());
    print(text.as_bytes())?;
    Ok(if matches!(treatment, Treatment::Never(_)) { crate::refusal::NOT_EXECUTABLE.into() } else { 0 })
}
