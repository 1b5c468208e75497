//! YAML: what is kept of it, what is not understood, and what its readers make of a copy.

use super::*;

/// Pieces of which files are made that are nearly right.
pub const PIECES: [&str; 20] = [
    "kept: a",
    "kept2:\n",
    "other:\n",
    "  - b\n",
    "- c",
    "  name: d\n",
    ": ",
    ":",
    "'",
    "  ",
    "\n  ",
    "- ",
    "---\n",
    "\\",
    "'x' # y\n",
    "\"z\"\n",
    "[",
    "| ",
    "&a ",
    "!x ",
];

#[test]
fn what_is_kept_of_yaml() {
    let patterns = ["kept*", ":sources"];
    for (text, expected) in [
        ("kept: a\n", "kept: a\n"),
        ("---\r\nkept:   true # hunter2\r\n", "kept: true\n"),
        ("kept: 'a b' # x\n\"kept2\": \"c: #d\"\n", "kept: 'a b'\nkept2: \"c: #d\"\n"),
        ("kept:\n- a\n- 'b'\nother: c\n", "kept:\n  - a\n  - 'b'\n"),
        ("kept: # x\n\n    - a\n    # y\n    - --b\n", "kept:\n  - a\n  - --b\n"),
        (":sources:\n- https://rubygems.org/\n", ":sources:\n  - https://rubygems.org/\n"),
        (":sources:\n- https://rubygems.org/\n- https://me:hunter2@host/\n", ""),
        ("kept: https://me:hunter2@host/\n", ""),
        ("kept:\n  kept: hunter2\nkept2: a\n", "kept2: a\n"),
        ("other:\n  a:\n    kept: hunter2\n  b:\n  - x\n  c: y\nkept: z\n", "kept: z\n"),
        ("other: hunter2\nkept:\nkeptToken: hunter2\n", ""),
    ] {
        assert_eq!(copy_of(Yaml, &patterns, text), expected, "{text:?}");
    }
    for broken in [
        // One value, or so it seems.
        "other: \"a\nkept: hunter2\"\n",
        "other: 'a\nkept: hunter2'\n",
        "other: 'a'' \nkept: hunter2'\n",
        "other: \"a\\\"\nkept: hunter2\"\n",
        "other: [a,\nkept: hunter2]\n",
        "other: {a: b,\nkept: hunter2}\n",
        "other: &a hunter2\nkept: *a\n",
        "other: |\n  a\nkept: b\n",
        "<<: *x\nkept: b\n",
        "other: a\n  b\nkept: c\n",
        "other: !!binary aHVudGVyMg==\nkept: a\n",
        "? other\n: hunter2\nkept: a\n",
        "%YAML 1.2\n---\nkept: a\n",
        "kept: a\n---\nkept2: b\n",
        "kept: a\n...\n",
        // No reader, or not all.
        "kept: a\nkept: b\n",
        "kept: a\n  name: b\n",
        "other:\n    a: b\n  c: d\nkept: e\n",
        "kept: a: b\n",
        "kept: \"a\" b\n",
        "kept:\ta\n",
        "kept: a\u{2028}b\n",
        " kept: a\n",
        "- kept: a\n",
        "kept: @a\n",
    ] {
        assert_eq!(filtered(Yaml, &keep(&patterns), broken.as_bytes()), Err(Unreadable), "{broken:?}");
    }
}

#[test]
fn readers_of_yaml_find_nothing_else_in_a_copy() {
    const PYTHON: &str = r#"
import json, sys, yaml
def read(text):
    try:
        found = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return None
    shown = lambda value: value if isinstance(value, str) else json.dumps(value)
    return [[k, shown(v)] for k, v in found.items()] if isinstance(found, dict) else []
print(json.dumps([read(text) for text in json.load(sys.stdin)]))
"#;
    const RUBY: &str = r#"
require "json"; require "yaml"
read = lambda do |text|
  found = begin YAML.parse(text)&.to_ruby rescue return nil end
  found.is_a?(Hash) ? found.map { |k, v| [k.to_s, v.inspect] } : []
end
puts JSON.generate(JSON.parse($stdin.read).map { |text| read.call(text) })
"#;
    let copies = copies(Yaml, 40_000);
    assert!(copies.len() > 80, "{}", copies.len());
    // Debian's own, which has the module; and where it is missing, there is no reader.
    let has =
        |program: &[&str]| Command::new(program[0]).args(&program[1..]).status().is_ok_and(|s| s.success());
    if has(&["/usr/bin/python3", "-c", "import yaml"]) {
        assert_parts(&copies, &["/usr/bin/python3", "-c", PYTHON]);
    }
    if has(&["ruby", "-ryaml", "-e", ""]) {
        assert_parts(&copies, &["ruby", "-e", RUBY]);
    }
}
