//! Warnings about flags: what those that name paths open unexpectedly, what keeps them from doing what they say, and
//! which are missing by the words of the command.

use crate::host::Host;
use crate::plan::rules::PathRule;
use crate::sys::descriptor;
use crate::sys::path::canonical;
use crate::sys::within::is_within;
use crate::text::shown;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::RawFd;
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

/// Says which descriptors the command's words name, as those of a shell's `<(...)` do, and the command does not get.
pub fn unpassed_descriptors(words: &[OsString], passed: &[RawFd]) -> Option<String> {
    let number = |word: &OsString| -> Option<RawFd> {
        let word = word.to_str()?;
        let number = ["/dev/fd/", "/proc/self/fd/"].into_iter().find_map(|place| word.strip_prefix(place))?;
        number.parse().ok().filter(|number| *number > 2)
    };
    let numbers = words.iter().filter_map(number);
    let numbers: BTreeSet<RawFd> =
        numbers.filter(|number| !passed.contains(number) && descriptor::is_of_caller(*number)).collect();
    let named: Vec<String> = numbers.iter().map(|number| format!("descriptor {number}")).collect();
    let flags: String = numbers.iter().map(|number| format!(" --pass-fd {number}")).collect();
    (!named.is_empty()).then(|| {
        let named = named.join(", ");
        format!("warning: not passed on, though the command names it: {named}; pass it with{flags}")
    })
}

/// What is said of a flag that opens the user's keys, among everything else.
pub fn opens_home(word: &Path, own: &PathRule, host: &Host, denied: &[PathBuf]) -> Option<String> {
    let home = canonical(host.home()?);
    let is_open = home.starts_with(&own.path) && !denied.iter().any(|denied| home.starts_with(denied));
    let what = "and so your home directory with its keys and passwords; name what the command needs";
    is_open.then(|| format!("warning: a flag opens '{}', {what}", shown(word)))
}
