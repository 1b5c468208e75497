//! `sbx status`: what this machine can enforce.

use crate::cli::flags::Status;
use crate::cli::print;
use crate::error::Refusal;
use crate::selftest::status;
use crate::text::wants_colours;

/// Tries every layer. Status 1 where nothing could be run.
pub fn run(flags: &Status) -> Result<i32, Refusal> {
    let found = status::collect();
    let text = if flags.json {
        status::json(&found)
    } else {
        status::human(&found, wants_colours(&std::io::stdout()))
    };
    print(text.as_bytes())?;
    Ok(i32::from(found.level.is_none()))
}
