//! `sbx test`: whether profiles keep what they promise, here.

use crate::cli::flags::Test;
use crate::cli::print;
use crate::error::Refusal;
use crate::selftest::{self, Report};
use crate::text::wants_colours;

/// Tests the profiles. The status is 1 if a promise does not hold.
pub fn run(flags: &Test) -> Result<i32, Refusal> {
    let reports = selftest::test(&flags.profile, flags.against.as_deref())?;
    let text = if flags.json { selftest::json(&reports) } else { human(&reports, flags.verbose) };
    print(text.as_bytes())?;
    Ok(i32::from(reports.iter().any(Report::is_broken)))
}

/// The rows of several profiles would be many screens, so they are only counted where not all are asked for.
fn human(reports: &[Report], all: bool) -> String {
    match all || reports.len() == 1 {
        true => selftest::table(reports, wants_colours(&std::io::stdout())),
        false => selftest::summary(reports, wants_colours(&std::io::stdout())),
    }
}
