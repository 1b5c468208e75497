//! JSON.

use super::*;
use SettingsFormat::Json;

pub const PIECES: [&str; 14] = [
    "{\"kept\": ",
    "\"kept\": {",
    "\"kept.x\": ",
    "\"other\": ",
    "{",
    "}",
    "}}",
    "[",
    ", ",
    "null",
    "\"\\u0061\"",
    "\"hunter2\"",
    "\"kept\\u002ey\": true",
    "1e3",
];

#[test]
fn what_is_kept_of_json() {
    let patterns = ["theme", "projects.*.trusted", "list", "n", "a.*"];
    for (text, expected) in [
        ("{}", "{}\n"),
        ("{\"theme\": \"dark\", \"other\": \"hunter2\"}", "{\n  \"theme\": \"dark\"\n}\n"),
        (
            "{\"projects\": {\"/a.b\": {\"trusted\": true, \"servers\": {\"x\": {\"command\": \"hunter2\"}}}}}",
            "{\n  \"projects\": {\n    \"/a.b\": {\n      \"trusted\": true\n    }\n  }\n}\n",
        ),
        ("{\"theme\": {\"x\": \"hunter2\"}, \"a\": {\"token\": \"hunter2\"}}", "{}\n"),
        ("{\"theme\": \"https://me:hunter2@host/\"}", "{}\n"),
        (
            "{\"list\": [1, \"x\", null, false]}",
            "{\n  \"list\": [\n    1,\n    \"x\",\n    null,\n    false\n  ]\n}\n",
        ),
        ("{\"list\": [1, {\"x\": \"hunter2\"}]}", "{}\n"),
        ("{\"list\": [\"me:hunter2@host\"]}", "{}\n"),
        ("{\"n\": \"hunter2\", \"n\": 1.5}", "{\n  \"n\": 1.5\n}\n"),
    ] {
        assert_eq!(copy_of(Json, &patterns, text), expected, "{text:?}");
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(20), "}".repeat(20));
    assert_eq!(copy_of(Json, &["*"], &deep), "{}\n");
    for broken in ["", "[]", "{\"a\": 1", "{\"a\": 1} x", "// c\n{}", "{\"a\": \"\0\"}", "\u{feff}{}"] {
        assert_eq!(filtered(Json, &keep(&["*"]), broken.as_bytes()), Err(Unreadable), "{broken:?}");
    }
    let endless = "[".repeat(200_000);
    assert_eq!(filtered(Json, &keep(&["*"]), endless.as_bytes()), Err(Unreadable));
}

/// What another reader finds in a copy, it finds in the file too.
#[test]
fn node_finds_nothing_else_in_a_copy() {
    const READER: &str = r#"
        const leaves = (value, way, found) => {
            if (value && typeof value === 'object' && !Array.isArray(value)) {
                for (const key of Object.keys(value)) leaves(value[key], way === '' ? key : way + '.' + key, found);
            } else found.push([way, JSON.stringify(value)]);
            return found;
        };
        const read = (text) => { try { return leaves(JSON.parse(text), '', []); } catch { return null; } };
        console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0)).map(read)));
    "#;
    let (mut random, kept) = (Random(0x2545_f491_4f6c_dd1d), keep(&["kept*"]));
    let texts = (0..2_000).map(|_| object(&mut random, 0));
    let copies: Vec<(String, String)> = texts
        .map(|text| {
            let copy = filtered(Json, &kept, text.as_bytes()).unwrap();
            assert_eq!(filtered(Json, &kept, &copy).as_deref(), Ok(&*copy), "{text}");
            (text, String::from_utf8(copy).unwrap())
        })
        .filter(|(_, copy)| copy != "{}\n")
        .collect();
    assert!(copies.len() > 500, "{}", copies.len());
    assert_parts(&copies, &["node", "-e", READER]);
}

/// An object as a settings file may have it, some of its keys twice.
fn object(random: &mut Random, depth: usize) -> String {
    const KEYS: [&str; 7] =
        ["kept", "kept.x", "ke\\u0070t", "other", "kept_token", "https://me:hunter2@host", "kept2"];
    const VALUES: [&str; 8] = [
        "1",
        "-2.5e3",
        "true",
        "null",
        "\"\\u00e9 x\"",
        "\"hunter2:x@host\"",
        "[1, \"x\"]",
        "[{\"kept\": \"hunter2\"}]",
    ];
    let member = |random: &mut Random| {
        let key = KEYS[random.below(KEYS.len())];
        let value = match random.below(3) {
            0 if depth < 4 => object(random, depth + 1),
            _ => VALUES[random.below(VALUES.len())].to_string(),
        };
        format!("\"{key}\": {value}")
    };
    let members: Vec<String> = (0..random.below(5)).map(|_| member(random)).collect();
    format!("{{{}}}", members.join(","))
}
