//! What of a profile a language has nothing for.

use serde_json::Value;

use crate::profile::foreign::Losses;
use crate::profile::model::Profile;
use crate::profile::show::show;

/// Keys that say nothing about what a run may do.
const OWN: [&str; 6] = ["name", "source", "description", "lineage", "$schema", "syscalls"];

/// Notes every part of a profile that is not `said` in the other language: `paths.read`, `limits`. `why` ends the
/// sentence.
pub fn lose(profile: &Profile, said: &[&str], why: &str, losses: &mut Losses) {
    let shown = show(profile);
    let sections = shown.as_object().into_iter().flatten();
    for (key, value) in sections.filter(|(key, _)| !OWN.contains(&&***key) && !said.contains(&&***key)) {
        match value.as_object().filter(|object| !object.contains_key("value")) {
            Some(section) => {
                for (inner, value) in section {
                    let place = format!("{key}.{inner}");
                    if !said.contains(&&*place) {
                        note(&place, count(value), why, losses);
                    }
                }
            }
            None => note(key, count(value), why, losses),
        }
    }
    if !profile.paths.write.is_empty() || !profile.network.unix.is_empty() {
        losses.note(
            "supervision",
            "what the supervisor decides for each call (attributes of files, UNIX sockets by path, /dev/null)",
        );
    }
}

fn note(place: &str, count: usize, why: &str, losses: &mut Losses) {
    if count > 0 {
        losses.note(place, format_args!("{count} of its entries: {why}"));
    }
}

/// How many entries a value has.
fn count(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Array(list) => list.len(),
        Value::Object(object) if object.contains_key("value") => 1,
        Value::Object(object) => object.len(),
        _ => 1,
    }
}

/// Why a filter of calls has nothing for most of a profile.
pub const CALLS_ONLY: &str = "a filter of calls has nothing of that kind";
