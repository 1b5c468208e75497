//! Checks documents against a JSON Schema, as far as ours use it. A keyword that is not known here is a mistake of
//! the test, not something to be passed over; objects may hold what the schema names and nothing else.

use serde_json::Value;

/// What is wrong with a document, each with its place; empty where it fits.
pub fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    Check { root: schema, faults: &mut faults }.value(schema, document, "$");
    faults
}

struct Check<'a> {
    root: &'a Value,
    faults: &'a mut Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, place: &str) {
        for (keyword, wanted) in schema.as_object().expect("a schema is an object") {
            let fits = match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" => true,
                "$ref" => {
                    let pointer = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                    let target = self.root.pointer(pointer).unwrap_or_else(|| panic!("no {wanted}"));
                    self.value(target, value, place);
                    true
                }
                "type" => match wanted {
                    Value::Array(types) => types.iter().any(|name| is_a(value, name)),
                    name => is_a(value, name),
                },
                "enum" => wanted.as_array().unwrap().contains(value),
                "const" => wanted == value,
                "required" => {
                    let names = wanted.as_array().unwrap();
                    names.iter().all(|name| value.get(name.as_str().unwrap()).is_some())
                }
                "properties" => self.properties(wanted, value, place),
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.value(wanted, item, &format!("{place}[{index}]"));
                    }
                    true
                }
                "anyOf" => self.fitting(wanted, value) >= 1,
                "oneOf" => self.fitting(wanted, value) == 1,
                "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
                "pattern" => value.as_str().is_none_or(|text| matches(wanted.as_str().unwrap(), text)),
                "format" => value.as_str().is_none_or(|text| wanted == "date-time" && is_time(text)),
                other => panic!("the schema has a keyword that the test does not know: {other}"),
            };
            if !fits {
                self.faults.push(format!("{place}: {keyword} {wanted} does not fit {value}"));
            }
        }
    }

    fn properties(&mut self, wanted: &Value, value: &Value, place: &str) -> bool {
        let known = wanted.as_object().unwrap();
        for (name, property) in value.as_object().into_iter().flatten() {
            match known.get(name) {
                Some(schema) => self.value(schema, property, &format!("{place}.{name}")),
                None => self.faults.push(format!("{place}: '{name}' is not described")),
            }
        }
        true
    }

    fn fitting(&self, schemas: &Value, value: &Value) -> usize {
        let fits = |schema: &&Value| {
            let mut faults = Vec::new();
            Check { root: self.root, faults: &mut faults }.value(schema, value, "");
            faults.is_empty()
        };
        schemas.as_array().unwrap().iter().filter(fits).count()
    }
}

fn is_a(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the schema has a type that the test does not know: {other}"),
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern {
        "^sha256:[0-9a-f]{64}$" => text.strip_prefix("sha256:").is_some_and(|digits| {
            digits.len() == 64 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        }),
        "^[A-Za-z0-9+/]*={0,2}$" => {
            let digits = text.trim_end_matches('=');
            text.len() - digits.len() <= 2
                && digits.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/".contains(&b))
        }
        other => panic!("the schema has a pattern that the test does not know: {other}"),
    }
}

/// 2026-01-31T12:34:56.123456789Z
fn is_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00.000000000Z"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_fit_is_found() {
        let schema = json!({
            "type": "object",
            "required": ["a"],
            "properties": { "a": { "enum": [1, null] }, "b": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/list" }] } },
            "$defs": { "list": { "type": "array", "items": { "type": "integer", "minimum": 2 } } }
        });
        for fitting in [json!({ "a": 1 }), json!({ "a": null, "b": "x" }), json!({ "a": 1, "b": [2, 3] })] {
            assert_eq!(faults(&schema, &fitting), Vec::<String>::new());
        }
        for wrong in
            [json!({}), json!(1), json!({ "a": 2 }), json!({ "a": 1, "b": [1] }), json!({ "a": 1, "c": 1 })]
        {
            assert!(!faults(&schema, &wrong).is_empty(), "{wrong}");
        }
    }
}
