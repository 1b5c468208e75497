//! Reports fit the schema that `sbx report schema` prints, and wrong ones do not.

use std::sync::OnceLock;

use jsonschema::Validator;
use sbx_tests::{User, World};
use serde_json::{Value, json};

/// What does not fit in a report, each with its place; empty where all of it fits.
pub fn faults(report: &Value) -> Vec<String> {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    let validator = VALIDATOR.get_or_init(|| {
        let mut schema = described();
        close(&mut schema);
        jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
    });
    validator.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn described() -> Value {
    let out = World::new(&User::ordinary()).sbx(["report", "schema"]).run().success().silent();
    serde_json::from_slice(&out.stdout).unwrap()
}

/// Has objects hold what the schema names and nothing else. The schema itself leaves room for fields of later versions.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("properties").is_some_and(Value::is_object) && map.contains_key("type") {
                map.insert("additionalProperties".into(), false.into());
            }
            map.values_mut().for_each(close);
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

/// A real report with every kind of record in it.
fn report() -> Value {
    let world = World::new(&User::current());
    let file = world.outside.join("report.json");
    let script = "import socket\ntry: socket.socket()\nexcept OSError: pass\n\
                  try: socket.socket(socket.AF_UNIX).connect('\\0name')\nexcept OSError: pass";
    let flags = ["run", "-q", "--net", "none", "--max-output", "1K", "--report", file.to_str().unwrap()];
    let command = ["--", "python3", "-c", script];
    world.sbx([&flags[..], &command].concat()).run().success();
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
fn the_schema_is_one() {
    let schema = described();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(jsonschema::meta::is_valid(&schema));
}

#[test]
fn a_wrong_report_does_not_fit() {
    if !sbx_tests::need(&["python3"]) {
        return;
    }
    let report = report();
    assert_eq!(faults(&report), Vec::<String>::new());
    let wrong = [
        ("/version", json!(2)),
        ("/command/0", json!({ "base64": "_w==" })),
        ("/program", json!(["/bin/true"])),
        ("/policy_hash", json!("sha256:0")),
        ("/network/mode", json!("some")),
        ("/network/bind", json!([65536])),
        ("/level", json!("unknown")),
        ("/layers/0/state", json!("on")),
        ("/started", json!("2026-01-31T12:34:56Z")),
        ("/started", json!("2026-02-30T12:34:56.123456789Z")),
        ("/started_unix_ns", json!(-1)),
        ("/duration_ms", json!(-0.5)),
        ("/pid", json!(0)),
        ("/exit/code", json!(256)),
        ("/exit/signal", json!(65)),
        ("/exit_status", json!(1.5)),
        ("/cause", json!("bored")),
        ("/rusage/max_rss_kib", json!(-1)),
        ("/output/stdout", json!({ "bytes": 1 })),
        ("/limits/0/unit", json!("weeks")),
        ("/violations/0/count", json!(0)),
        ("/violations/0/fate", Value::Null),
        ("/violations/0/confidence", json!("guessed")),
        ("/violations/0/address", json!({ "family": "inet", "ip": "::1" })),
        ("/violations/0/address", json!({ "family": "post", "number": 1 })),
        ("/violations_total", json!("1")),
    ];
    for (place, value) in wrong {
        let mut changed = report.clone();
        *changed.pointer_mut(place).unwrap_or_else(|| panic!("no {place} in {report:#}")) = value;
        assert!(!faults(&changed).is_empty(), "{place}: {changed:#}");
    }
    let fields = report.as_object().unwrap();
    for name in fields.keys() {
        let mut fewer = fields.clone();
        fewer.remove(name);
        assert!(!faults(&fewer.into()).is_empty(), "without {name}");
    }
    let mut more = report.clone();
    more["rusage"]["swaps"] = json!(0);
    assert!(!faults(&more).is_empty(), "with another field");
}
