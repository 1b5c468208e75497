//! What the tools have in common: arguments, schemas, answers.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use rmcp::schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// The schema of a tool's arguments or answer.
pub fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    let mut schema = Value::from(SchemaGenerator::default().into_root_schema_for::<T>());
    simplify(&mut schema);
    Arc::new(match schema {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    })
}

/// Takes out what some clients do not understand: names of number formats, and null as one of two types. What would be
/// null is left out of arguments and answers.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|key, value| !(key == "format" && value.is_string()));
            if let Some(Value::Array(types)) = object.get("type")
                && let [one, Value::String(null)] = &types[..]
                && null == "null"
            {
                let one = one.clone();
                object.insert("type".to_string(), one);
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(list) => list.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// The arguments of a call. An error is a sentence for the model.
pub fn arguments<T: DeserializeOwned>(given: Option<JsonObject>) -> Result<T, String> {
    serde_json::from_value(Value::Object(given.unwrap_or_default()))
        .map_err(|error| format!("cannot read the arguments of the tool: {error}"))
}

/// A call that did not do what it was for, in a sentence.
pub fn failed(sentence: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(sentence)])
}

/// An answer that matches the schema of the tool.
pub fn answer(value: &impl Serialize) -> CallToolResult {
    match serde_json::to_value(value) {
        Ok(value) => CallToolResult::structured(value),
        Err(error) => failed(format!("cannot write the answer: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::schemars;
    use serde_json::json;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Some {
        number: u64,
        text: Option<String>,
    }

    #[test]
    fn a_schema_has_plain_types() {
        let schema = schema::<Some>();
        assert_eq!(schema["properties"]["number"]["type"], "integer");
        assert_eq!(schema["properties"]["text"]["type"], "string");
        assert_eq!(schema["required"], json!(["number"]));
        assert!(!Value::Object((*schema).clone()).to_string().contains("format"), "{schema:?}");
    }
}
