//! What `sbx profile show` says of a profile is all of it, and nothing but text.

use sbx::profile::{human, show};

use crate::Shelf;

#[test]
fn who_reads_a_protected_file_is_shown() {
    let shelf = Shelf::new();
    let text = r#"{"paths": {"protect": [{"path": "${WORKSPACE}/.x", "readers": ["/usr/bin/x", "${HOME}/y"]}, "/z"]}}"#;
    let profile = shelf.file(text).unwrap();
    let shown = &show(&profile)["paths"]["protect"];
    assert_eq!(shown[0]["readers"], serde_json::json!(["/usr/bin/x", "${HOME}/y"]));
    assert!(shown[1].get("readers").is_none());
    assert!(human(&profile).contains("${WORKSPACE}/.x read by /usr/bin/x, ${HOME}/y  ("));
}

#[test]
fn a_time_is_shown_to_the_nanosecond() {
    let shelf = Shelf::new();
    for (text, shown) in [
        ("0.0005ms", "0.0005ms"),
        ("1.5ms", "1.5ms"),
        ("0.000000001", "0.000001ms"),
        ("1m30s", "90000ms"),
        ("none", "none"),
    ] {
        let profile = shelf.file(&format!(r#"{{"limits": {{"timeout": "{text}"}}}}"#)).unwrap();
        assert_eq!(show(&profile)["limits"]["timeout"]["value"], shown, "{text}");
    }
}

#[test]
fn no_text_of_a_profile_makes_a_line_of_its_own() {
    let shelf = Shelf::new();
    let text = r#"{"description": "a\nb\u001b[31m", "paths": {"read": [{"path": "/a\n  /b\u202e", "why": "c\u009bd\re"}]}}"#;
    let shown = human(&shelf.file(text).unwrap());
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "p: a b?[31m");
    assert!(lines[3].contains("/a   /b?  (") && lines[3].ends_with("paths.read[0]: c?d e)"), "{}", lines[3]);
    assert_eq!(lines.len(), 4);
}
