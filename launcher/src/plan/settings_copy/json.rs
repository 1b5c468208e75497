//! JSON, as JavaScript programs read it.

use crate::plan::settings_copy::{Keep, Unreadable};
use serde_json::{Map, Value};

/// Deeper than any setting is.
const DEEPEST: usize = 8;

/// What is kept, by the keys that lead to it with `.` between them. Of a key that stands twice, the last counts.
pub fn filtered(keep: Keep<'_>, text: &str) -> Result<String, Unreadable> {
    let Ok(Value::Object(settings)) = serde_json::from_str(text) else { return Err(Unreadable) };
    let kept = object(keep, settings, &mut Vec::new());
    Ok(format!("{:#}\n", Value::Object(kept)))
}

/// The part of an object that is kept. An object of which nothing is kept is left out.
fn object(keep: Keep<'_>, settings: Map<String, Value>, way: &mut Vec<String>) -> Map<String, Value> {
    let mut kept = Map::new();
    for (key, value) in settings {
        if way.len() == DEEPEST {
            break;
        }
        way.push(key.clone());
        let copied = match value {
            Value::Object(inner) => {
                Some(object(keep, inner, way)).filter(|inner| !inner.is_empty()).map(Value::Object)
            }
            value => Some(value).filter(|value| is_taken(keep, &way.join("."), value)),
        };
        way.pop();
        if let Some(copied) = copied {
            kept.insert(key, copied);
        }
    }
    kept
}

/// Whether a value is copied: a list only as a whole, and only one of plain values.
fn is_taken(keep: Keep<'_>, name: &str, value: &Value) -> bool {
    let takes = |text: &str| keep.takes(name.as_bytes(), text.as_bytes());
    match value {
        Value::Null => takes(""),
        Value::Bool(yes) => takes(&yes.to_string()),
        Value::Number(number) => takes(&number.to_string()),
        Value::String(text) => takes(text),
        Value::Array(items) => {
            let is_plain = |item: &Value| !item.is_array() && !item.is_object();
            // An empty one by its name.
            takes("") && items.iter().all(|item| is_plain(item) && is_taken(keep, name, item))
        }
        Value::Object(_) => false,
    }
}
