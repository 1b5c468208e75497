//! Turns the output of `sbx profile show --json` back into a document.

use serde_json::{Map, Value, json};

/// A document with the same meaning, with groups and numbers written out.
pub fn from_shown(shown: &Value) -> Value {
    let mut document = json!({
        "description": shown["description"],
        "syscalls": calls(&shown["syscalls"]),
        "paths": {
            "read": entries(&shown["paths"]["read"], "path"),
            "execute": entries(&shown["paths"]["execute"], "path"),
            "write": entries(&shown["paths"]["write"], "path"),
            "deny": entries(&shown["paths"]["deny"], "path"),
            "protect": entries(&shown["paths"]["protect"], "path"),
        },
        "home": {
            "stores": entries(&shown["home"]["stores"], "path"),
            "copies": entries(&shown["home"]["copies"], "path"),
            "closed_env": map(&shown["home"]["closed_env"], |value| value["value"].clone()),
        },
        "network": {
            "connect": values(&shown["network"]["connect"]),
            "bind": values(&shown["network"]["bind"]).iter().map(number).collect::<Value>(),
            "unix": entries(&shown["network"]["unix"], "path"),
            "closed_env": map(&shown["network"]["closed_env"], |value| value["value"].clone()),
        },
        "env": {
            "inherit": values(&shown["env"]["inherit"]),
            "addresses": values(&shown["env"]["addresses"]),
            "deny": values(&shown["env"]["deny"]),
            "set": map(&shown["env"]["set"], |value| value["value"].clone()),
        },
        "limits": map(&shown["limits"], |value| value["value"].clone()),
        "commands": { "allow": values(&shown["commands"]["allow"]), "block": values(&shown["commands"]["block"]) },
        "agent": {
            "programs": values(&shown["agent"]["programs"]),
            "arguments": values(&shown["agent"]["arguments"]),
            "keys": values(&shown["agent"]["keys"]),
            "places": map(&shown["agent"]["places"], |value| value["value"].clone()),
            "noise": values(&shown["agent"]["noise"]),
        },
    });
    for key in ["static", "namespaces", "require"] {
        put(&mut document, key, &shown[key]["value"]);
    }
    for key in ["home", "network"] {
        put(&mut document[key], "mode", &shown[key]["mode"]["value"]);
    }
    document
}

fn put(object: &mut Value, key: &str, value: &Value) {
    if !value.is_null() {
        object[key] = value.clone();
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn values(shown: &Value) -> Vec<Value> {
    list(shown).iter().map(|entry| entry["value"].clone()).collect()
}

fn number(text: &Value) -> Value {
    text.as_str().and_then(|text| text.parse::<u64>().ok()).expect("a number").into()
}

/// The entries as objects, without their origin.
fn entries(shown: &Value, name: &str) -> Vec<Value> {
    let entry = |shown: &Value| {
        let mut entry = Map::new();
        entry.insert(name.to_string(), shown["value"].clone());
        for key in ["why", "optional", "readers", "when_made", "format", "keep"] {
            if let Some(value) = shown.get(key) {
                entry.insert(key.to_string(), value.clone());
            }
        }
        Value::Object(entry)
    };
    list(shown).iter().map(entry).collect()
}

fn map(shown: &Value, value: impl Fn(&Value) -> Value) -> Value {
    let pairs = shown.as_object().expect("an object").iter().filter(|(_, shown)| !shown.is_null());
    Value::Object(pairs.map(|(name, shown)| (name.clone(), value(shown))).collect())
}

fn calls(shown: &Value) -> Value {
    let mut lists = json!({ "allow": [], "log": [], "deny": [] });
    for (name, rules) in shown["calls"].as_object().expect("an object") {
        for key in ["allow", "log", "deny"] {
            let Some(grants) = rules.get(key) else { continue };
            let errno = rules.get("errno").filter(|_| key == "deny");
            let target = lists[key].as_array_mut().expect("a list");
            target.extend(list(grants).iter().map(|grant| call(name, grant, errno)));
        }
    }
    put(&mut lists, "default", &shown["default"]["value"]);
    lists
}

fn call(name: &str, grant: &Value, errno: Option<&Value>) -> Value {
    let restriction = grant.get("restriction").and_then(Value::as_str);
    let name = restriction.map_or(name.to_string(), |restriction| format!("{name}[{restriction}]"));
    let mut entry = json!({ "call": name });
    put(&mut entry, "args", grant.get("args").unwrap_or(&Value::Null));
    put(&mut entry, "needs", grant.get("needs").unwrap_or(&Value::Null));
    put(&mut entry, "why", grant.get("why").unwrap_or(&Value::Null));
    put(&mut entry, "errno", errno.unwrap_or(&Value::Null));
    entry
}
