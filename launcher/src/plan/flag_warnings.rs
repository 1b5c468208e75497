//! Warnings about flags that name paths: what they open unexpectedly, and what keeps them from doing what they say.

use crate::host::Host;
use crate::plan::rules::PathRule;
use crate::sys::path::canonical;
use crate::sys::within::is_within;
use crate::text::shown;
use std::path::{Path, PathBuf};

/// What a flag says about a path, and something else undoes: rights add up, and a denial wins.
pub fn ineffective(word: &Path, own: &PathRule, rules: &[PathRule], denied: &[PathBuf]) -> Option<String> {
    let path = shown(word);
    if let Some(above) = denied.iter().find(|denied| own.path.starts_with(denied)) {
        let above = shown(above);
        return Some(format!("'{path}' stays denied, because '{above}' is, and a denial always wins"));
    }
    let mut writable = rules.iter().filter(|rule| rule.rights.write && is_within(&own.path, &rule.path));
    let above = shown(&writable.next().filter(|_| !own.rights.write)?.path);
    Some(format!(
        "'{path}' can be changed although a flag names it for reading, because '{above}' can be, and rights add \
         up; '--profile read-only' with --rw for the rest protects it"
    ))
}

/// What is said of a flag that opens the user's keys, among everything else.
pub fn opens_home(word: &Path, own: &PathRule, host: &Host, denied: &[PathBuf]) -> Option<String> {
    let home = canonical(host.home()?);
    let is_open = home.starts_with(&own.path) && !denied.iter().any(|denied| home.starts_with(denied));
    let what = "and so your home directory with its keys and passwords; name what the command needs";
    is_open.then(|| format!("warning: a flag opens '{}', {what}", shown(word)))
}
