//! `sbx test`: whether profiles keep what they promise, here.

use super::flags::Test;
use super::{coloured, print};
use crate::canary::{self, Report};
use crate::refusal::Refusal;

/// Lets the canaries loose. Status 1 where a promise does not hold.
pub fn run(flags: &Test) -> Result<i32, Refusal> {
    let reports = canary::test(&flags.profile, flags.against.as_deref())?;
    let text = if flags.json { canary::json(&reports) } else { human(&reports, flags.verbose) };
    print(text.as_bytes())?;
    Ok(i32::from(reports.iter().any(Report::is_broken)))
}

/// The rows of several profiles would be many screens, so they are only counted where not all are asked for.
fn human(reports: &[Report], all: bool) -> String {
    match all || reports.len() == 1 {
        true => canary::table(reports, coloured()),
        false => canary::summary(reports, coloured()),
    }
}
