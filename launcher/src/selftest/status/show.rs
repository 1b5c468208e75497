//! The status for people and for programs.

use crate::profile::Level;
use crate::report::json::document;
use crate::selftest::status::{Layer, State, Status, VERSION};
use crate::text::{escape, paint};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Maximum length of a detail.
const LONGEST: usize = 400;

/// The name of a level, its colour on a terminal, and what it means.
fn words(level: Option<Level>) -> (&'static str, &'static str, &'static str) {
    match level {
        Some(Level::Full) => ("full", GREEN, "system calls and files are restricted"),
        Some(Level::Standard) => ("standard", GREEN, "system calls and files are restricted"),
        Some(Level::Minimal) => ("minimal", YELLOW, "system calls are restricted, files are not"),
        None => ("none", RED, "nothing can be enforced, so nothing is run"),
    }
}

/// A versioned object.
pub fn json(status: &Status) -> String {
    let layers: Map<String, Value> =
        status.layers.iter().map(|layer| (layer.name.to_string(), of_layer(layer))).collect();
    let value = json!({
        "version": VERSION,
        "sbx": env!("CARGO_PKG_VERSION"),
        "level": words(status.level).0,
        "system": status.system,
        "around": status.around,
        "layers": layers,
        "raise": status.raise,
    });
    document(&value)
}

fn of_layer(layer: &Layer) -> Value {
    let mut object = layer.facts.clone();
    object.insert("state".to_string(), layer.state.word().into());
    object.insert("detail".to_string(), layer.detail.as_str().into());
    Value::Object(object)
}

/// An aligned table.
pub fn human(status: &Status, coloured: bool) -> String {
    let mut text = String::new();
    let (level, colour, meaning) = words(status.level);
    let _ = writeln!(text, "level {}: {meaning}", paint(level, colour, coloured));
    for line in &status.raise {
        let _ = writeln!(text, "  {}", escape(line.as_bytes(), 2 * LONGEST));
    }
    text.push('\n');
    let names = status.layers.iter().map(|layer| layer.name);
    let keys = status.system.keys().chain(status.around.keys()).map(|key| label(key));
    let width = names.chain(keys).map(str::len).max().unwrap_or(0);
    for layer in &status.layers {
        let state = paint(&format!("{:<7}", layer.state.word()), state_colour(layer.state), coloured);
        let detail = escape(layer.detail.as_bytes(), LONGEST);
        let _ = writeln!(text, "{:<width$}  {state}  {detail}", layer.name);
    }
    text.push('\n');
    for (key, value) in status.system.iter().chain(&status.around) {
        let value = match value {
            Value::String(text) => escape(text.as_bytes(), LONGEST),
            Value::Bool(true) => "yes".to_string(),
            Value::Bool(false) => "no".to_string(),
            Value::Null => "unknown".to_string(),
            other => other.to_string(),
        };
        let _ = writeln!(text, "{:<width$}  {value}", label(key));
    }
    text
}

/// The label of a fact. Those of `around` need another word than their key.
fn label(key: &str) -> &str {
    match key {
        "sbx" => "inside sbx",
        "seccomp" => "under a filter",
        "seccomp-filters" => "filters",
        "no-new-privs" => "no_new_privs",
        "proc" => "/proc",
        other => other,
    }
}

const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";

fn state_colour(state: State) -> &'static str {
    match state {
        State::Works => GREEN,
        State::Missing | State::Untried => YELLOW,
        State::Refused => RED,
    }
}
