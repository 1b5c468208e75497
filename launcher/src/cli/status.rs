//! `sbx status`: what this machine can enforce.

use super::flags::Status;
use super::{coloured, print};
use crate::refusal::Refusal;
use crate::status;

/// Tries every layer. Status 1 where nothing could be run.
pub fn run(flags: &Status) -> Result<i32, Refusal> {
    let found = status::collect();
    let text = if flags.json { status::json(&found) } else { status::human(&found, coloured()) };
    print(text.as_bytes())?;
    Ok(i32::from(found.level.is_none()))
}
