//! `sbx report`: the schema of reports, and reports as tables.

use crate::cli::print;
use crate::error::Refusal;
use crate::report::{self, SCHEMA, Show, Source};
use crate::text::wants_colours;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

const REPORTS: &str = "\
Examples:
  sbx run --report run.json -- npm test     writes a report when the run has ended
  sbx report show run.json                  what ran, what was refused, what would allow it
  tail -n 5 audit.log | sbx report show -   the last five runs of an audit log
  sbx run --summary -- npm test             the same table at once, without a file";

/// The word for standard input.
const STDIN: &str = "-";

/// `sbx report`.
#[derive(Debug, Args)]
#[command(after_help = REPORTS)]
pub struct ReportCommand {
    /// What to do.
    #[command(subcommand)]
    pub action: ReportAction,
}

/// The subcommands of `sbx report`.
#[derive(Debug, Subcommand)]
pub enum ReportAction {
    /// Show a report as a table
    #[command(after_help = REPORTS)]
    Show {
        /// A report, or an audit log; '-' is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the JSON Schema of a report
    Schema,
}

/// Runs a subcommand.
pub fn run(action: &ReportAction) -> Result<i32, Refusal> {
    match action {
        ReportAction::Schema => print(SCHEMA.as_bytes()),
        ReportAction::Show { file } => show(file),
    }
    .map(|()| 0)
}

/// One table after the other, where the file is an audit log.
fn show(file: &Path) -> Result<(), Refusal> {
    let source = if file == Path::new(STDIN) { Source::Stdin } else { Source::File(file) };
    let how = Show { coloured: wants_colours(&std::io::stdout()), most: None };
    let tables: Vec<String> = report::read(source)?.iter().map(|report| report::table(report, how)).collect();
    print(tables.join("\n").as_bytes())
}
