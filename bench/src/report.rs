//! The results, as Markdown for people and JSON for programs.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::options::Options;
use crate::sys;

/// A finished measurement.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) title: String,
    pub(crate) facts: Vec<(&'static str, String)>,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// Why a measured row has a blank.
    pub(crate) blanks: Vec<String>,
    pub(crate) targets: Vec<Target>,
}

/// A figure that every measured row has.
#[derive(Clone)]
pub(crate) struct Column {
    pub(crate) key: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) digits: usize,
}

/// One contestant.
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
}

/// The result of a contestant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// One figure for each column, where there is one.
    Measured(Vec<Option<f64>>),
    Absent(String),
    Failed(String),
}

impl Outcome {
    /// One for each column, if there are any.
    pub(crate) fn figures(&self) -> Option<&[Option<f64>]> {
        match self {
            Self::Measured(figures) => Some(figures),
            _ => None,
        }
    }

    /// Its text in a table.
    pub(crate) fn verdict(&self) -> &'static str {
        match self {
            Self::Measured(_) => "measured",
            Self::Absent(_) => "absent",
            Self::Failed(_) => "failed",
        }
    }

    /// Why there are no figures.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Measured(_) => "measured",
            Self::Absent(why) | Self::Failed(why) => why,
        }
    }

    /// The same in one line, for a list.
    pub(crate) fn short_reason(&self) -> &str {
        self.reason().lines().next().unwrap_or_default()
    }
}

/// A figure that the project wants to stay below.
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) limit: f64,
    pub(crate) measured: Option<f64>,
    pub(crate) unit: &'static str,
}

impl Target {
    fn verdict(&self) -> &'static str {
        match self.measured {
            Some(measured) if measured <= self.limit => "met",
            Some(_) => "missed",
            None => "not measured",
        }
    }
}

impl Report {
    /// Whether every present contestant could be measured.
    pub(crate) fn complete(&self) -> bool {
        !self.rows.iter().any(|row| matches!(row.outcome, Outcome::Failed(_)))
    }

    pub(crate) fn to_markdown(&self) -> String {
        let mut text = format!("### {}\n\n{}", self.title, listed(&self.facts));
        self.write_rows(&mut text);
        self.write_reasons(&mut text);
        self.write_targets(&mut text);
        text
    }

    fn write_rows(&self, text: &mut String) {
        let headings: Vec<&str> = self.columns.iter().map(|c| c.heading).collect();
        // Writing into a String cannot fail.
        let _ = writeln!(text, "| contestant | {} |", headings.join(" | "));
        let _ = writeln!(text, "|---|{}", "--:|".repeat(self.columns.len()));
        for row in &self.rows {
            let cells = match &row.outcome {
                Outcome::Measured(figures) => figures.iter().zip(&self.columns).map(cell).collect(),
                other => vec![other.verdict().to_owned()],
            };
            let blanks = " |".repeat(self.columns.len().saturating_sub(cells.len()));
            let _ = writeln!(text, "| {} | {} |{blanks}", row.name, cells.join(" | "));
        }
    }

    fn write_reasons(&self, text: &mut String) {
        let without = self.rows.iter().filter(|row| !matches!(row.outcome, Outcome::Measured(_)));
        let rows = without.map(|row| format!("{}: {}", row.name, row.outcome.short_reason()));
        let lines: Vec<String> =
            rows.chain(self.blanks.iter().cloned()).map(|line| format!("- {line}\n")).collect();
        if !lines.is_empty() {
            let _ = write!(text, "\nNot measured:\n\n{}", lines.concat());
        }
    }

    fn write_targets(&self, text: &mut String) {
        if self.targets.is_empty() {
            return;
        }
        text.push_str("\n| target | at most | measured | |\n|---|--:|--:|---|\n");
        for target in &self.targets {
            let measured = target.measured.map_or("-".into(), |m| format!("{m:.2} {}", target.unit));
            let (what, limit, unit) = (&target.what, target.limit, target.unit);
            let _ = writeln!(text, "| {what} | {limit} {unit} | {measured} | {} |", target.verdict());
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let facts = facts_to_json(&self.facts);
        let rows: Vec<Value> = self.rows.iter().map(|row| self.row_to_json(row)).collect();
        let targets: Vec<Value> = self.targets.iter().map(target_to_json).collect();
        let (title, blanks) = (&self.title, &self.blanks);
        json!({ "title": title, "facts": facts, "rows": rows, "blanks": blanks, "targets": targets })
    }

    fn row_to_json(&self, row: &Row) -> Value {
        let mut object = Map::from_iter([("id".into(), json!(row.id)), ("name".into(), json!(row.name))]);
        match &row.outcome {
            Outcome::Measured(figures) => {
                let keys = self.columns.iter().map(|c| c.key.to_owned());
                object.extend(keys.zip(figures.iter().map(|f| json!(f))));
            }
            other => drop(object.insert(other.verdict().into(), json!(other.reason()))),
        }
        Value::Object(object)
    }
}

/// A list with a blank line after it; nothing if it is empty.
pub(crate) fn listed(facts: &[(&str, String)]) -> String {
    let lines: String = facts.iter().map(|(name, value)| format!("- {name}: {value}\n")).collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}

pub(crate) fn facts_to_json(facts: &[(&str, String)]) -> Value {
    Map::from_iter(facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value)))).into()
}

fn cell((figure, column): (&Option<f64>, &Column)) -> String {
    let scale = 10_f64.powi(column.digits as i32);
    // A number rounded to zero from below has no sign: -0.0 + 0.0 is 0.0.
    let rounded = |f: f64| (f * scale).round() / scale + 0.0;
    figure.map_or_else(String::new, |f| format!("{:.*}", column.digits, rounded(f)))
}

fn target_to_json(target: &Target) -> Value {
    json!({
        "what": target.what,
        "limit": target.limit,
        "unit": target.unit,
        "measured": target.measured,
        "verdict": target.verdict(),
    })
}

/// The facts that are needed to compare these figures with others.
pub(crate) fn facts(sbx: &Path, options: &Options, seed: u64) -> Vec<(&'static str, String)> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let release = kernel.trim();
    vec![
        ("date", date()),
        ("machine", format!("{}, Linux {release}, {processors} processors", std::env::consts::ARCH)),
        ("user", if sys::user() == 0 { "root".into() } else { "ordinary".into() }),
        ("sbx", describe_sbx(sbx)),
        ("priority", sys::priority().into()),
        ("bubblewrap", version("bwrap")),
        ("firejail", version("firejail")),
        (
            "rounds",
            format!("{} after {} thrown away, order from seed {seed}", options.rounds, options.warm_up),
        ),
    ]
}

fn describe_sbx(sbx: &Path) -> String {
    let size = std::fs::metadata(sbx).map_or(0, |m| m.len() / 1024);
    format!("{}, {size} KiB, {}", version_of(Command::new(sbx)), linkage(sbx))
}

/// Whether the program needs a dynamic loader, which decides most of its start-up time: an ELF file that does
/// not name the loader's path near its beginning is static.
fn linkage(path: &Path) -> &'static str {
    let beginning = std::fs::read(path).map(|bytes| bytes.get(..4096).unwrap_or(&bytes).to_vec());
    match beginning {
        Ok(bytes) if bytes.windows(4).any(|w| w == b"/ld-") => "dynamically linked",
        Ok(_) => "static",
        Err(_) => "unreadable",
    }
}

fn date() -> String {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    output.map_or_else(|_| "unknown".into(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

/// What a program in the path prints as its version.
pub(crate) fn version(program: &str) -> String {
    version_of(Command::new(program))
}

fn version_of(mut command: Command) -> String {
    let Ok(output) = command.arg("--version").output() else { return "not there".into() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map_or_else(|| "does not say which version".into(), |line| line.trim().to_owned())
}
