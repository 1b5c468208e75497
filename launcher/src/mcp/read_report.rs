//! The tool `read_report`: the whole report of a run that this server made.

use crate::mcp::reports::Reports;
use crate::mcp::tool;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The name of the tool.
pub const NAME: &str = "read_report";

/// How many violations one answer has.
const MOST: usize = 50;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The number of the run, as execute gave it
    run: u64,
    /// The violation to begin with, from 0
    #[serde(default)]
    from: usize,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    /// The number of the run
    run: u64,
    /// The report, with at most 50 of its violations
    report: Map<String, Value>,
    /// The `from` of the next violations, where there are more
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// The tool, as clients list it.
pub fn definition() -> Tool {
    let about = "Reads the whole report of a command that execute ran: what confined it, limits, time and memory used, \
                 each refused call with its rule and the flags that would allow it, what it left for other programs to \
                 find.";
    Tool::new(NAME, about, tool::schema::<Arguments>())
        .with_title("Report of a run")
        .with_raw_output_schema(tool::schema::<Answer>())
        .with_annotations(ToolAnnotations::new().read_only(true).idempotent(true).open_world(false))
}

/// Answers.
pub fn call(reports: &Reports, given: Option<JsonObject>) -> CallToolResult {
    let found = tool::arguments(given)
        .and_then(|Arguments { run, from }| reports.of(run).map(|report| part(run, report, from)));
    match found {
        Ok(answer) => tool::answer(&answer),
        Err(sentence) => tool::failed(sentence),
    }
}

fn part(run: u64, report: &Value, from: usize) -> Answer {
    let mut report = report.as_object().cloned().unwrap_or_default();
    let mut next = None;
    if let Some(Value::Array(violations)) = report.get_mut("violations") {
        let end = from.saturating_add(MOST);
        next = (violations.len() > end).then_some(end);
        violations.truncate(end);
        violations.drain(..from.min(violations.len()));
    }
    Answer { run, report, next }
}
