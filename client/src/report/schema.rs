//! The JSON Schema of a report, from its types.

use super::Report;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;

/// 2026-01-31T12:34:56.123456789Z
pub(super) const TIME: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{9}Z$";

/// The JSON Schema (draft 2020-12) of what this version of `sbx` writes, as text.
///
/// It leaves objects open, because a later version may add fields.
///
/// # Errors
///
/// None that is known: the schema depends on no input.
pub fn schema() -> Result<String, serde_json::Error> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Report>();
    RecursiveTransform(plain).transform(&mut schema);
    serde_json::to_string_pretty(&schema)
}

/// Removes what only Rust means: names of number types (`uint16`), which are no formats of JSON Schema, and the line
/// breaks of comments. The bounds of numbers stay.
fn plain(schema: &mut Schema) {
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format != "date-time") {
        schema.remove("format");
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}
