//! The results for people and for programs.

use crate::report::json::document;
use crate::selftest::rows::Row;
use crate::selftest::{Report, Subject, VERSION, Verdict};
use crate::text::{escape, paint};
use serde_json::{Value, json};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

fn parts(verdict: &Verdict) -> (&'static str, &'static str, Option<&str>) {
    match verdict {
        Verdict::Holds => ("holds", "32", None),
        Verdict::Broken(why) => ("broken", "31", Some(why)),
        Verdict::NotPromised(why) => ("not promised", "2", Some(why)),
        Verdict::Untried(why) => ("untried", "33", Some(why)),
    }
}

fn about(report: &Report) -> &'static str {
    match report.subject {
        Subject::Profile => "",
        Subject::Hosts => ", with rules about hosts",
    }
}

fn name(report: &Report) -> String {
    escape(report.profile.as_bytes(), 200)
}

/// A versioned object.
pub fn json(reports: &[Report]) -> String {
    let row = |(row, verdict): &(&Row, Verdict)| {
        let (word, _, why) = parts(verdict);
        json!({ "name": row.name, "promise": row.promise, "result": word.replace(' ', "-"), "reason": why })
    };
    let profile = |report: &Report| {
        json!({
            "profile": report.profile.to_string_lossy(),
            "broken": report.is_broken(),
            "added_calls": report.added,
            "rows": report.rows.iter().map(row).collect::<Value>(),
        })
    };
    let about = |subject| -> Value {
        reports.iter().filter(|report| report.subject == subject).map(profile).collect()
    };
    let (profiles, hosts) = (about(Subject::Profile), about(Subject::Hosts));
    let sbx = env!("CARGO_PKG_VERSION");
    let value = json!({ "version": VERSION, "sbx": sbx, "profiles": profiles, "hosts": hosts });
    document(&value)
}

/// A table for each profile, with its counts.
pub fn table(reports: &[Report], coloured: bool) -> String {
    let mut text = String::new();
    for report in reports {
        let _ = writeln!(text, "profile '{}'{}{}", name(report), about(report), added(report));
        for (row, verdict) in &report.rows {
            line(&mut text, row, verdict, coloured);
        }
        let _ = writeln!(text, "  {}\n", counts(report));
    }
    text
}

/// The counts of each profile, its broken rows, and the names of the rows that could not be tried.
pub fn summary(reports: &[Report], coloured: bool) -> String {
    let mut text = String::new();
    let mut untried = Vec::new();
    for report in reports {
        let (name, about) = (name(report), about(report));
        let _ = writeln!(text, "profile '{name}'{about}: {}{}", counts(report), added(report));
        for (row, verdict) in &report.rows {
            match verdict {
                Verdict::Broken(_) => line(&mut text, row, verdict, coloured),
                Verdict::Untried(_) if !untried.contains(&row.name) => untried.push(row.name),
                _ => {}
            }
        }
    }
    if !untried.is_empty() {
        let _ = writeln!(text, "untried: {}", untried.join(", "));
    }
    text.push_str("'sbx test -v' shows all rows, 'sbx test -p NAME' those of one profile\n");
    text
}

fn line(text: &mut String, row: &Row, verdict: &Verdict, coloured: bool) {
    let (word, colour, why) = parts(verdict);
    let word = paint(&format!("{word:<12}"), colour, coloured);
    let why = why.map_or_else(String::new, |why| format!(" ({})", escape(why.as_bytes(), 300)));
    let _ = writeln!(text, "  {:<17}  {word}  {}{why}", row.name, row.promise);
}

/// The calls that the self-test needs and the profile refuses, in words.
fn added(report: &Report) -> String {
    match report.added.is_empty() {
        true => String::new(),
        false => format!(" (only the self-test was allowed {}, to say what it met)", report.added.join(", ")),
    }
}

fn counts(report: &Report) -> String {
    let words = ["holds", "broken", "not promised", "untried"];
    let count = |word: &str| report.rows.iter().filter(|(_, verdict)| parts(verdict).0 == word).count();
    words.map(|word| format!("{} {word}", count(word))).join(", ")
}
