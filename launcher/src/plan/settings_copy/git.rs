//! Files of git (git-config(1)).

use crate::plan::namespaces::Settings;
use crate::plan::settings_copy::{Keep, Unreadable};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Settings whose values are the names of files with patterns of names.
const OF_PATTERNS: [&[u8]; 2] = [b"core.excludesfile", b"core.attributesfile"];

/// The settings that name the commands of a filter (gitattributes(5)).
const FILTERS: [&[u8]; 3] = [b"clean", b"smudge", b"process"];

/// The files with patterns that the settings name, as they name them.
pub fn files(keep: Keep<'_>, text: &[u8]) -> Vec<PathBuf> {
    let settings = Settings::of(text).map_while(Result::ok);
    let named = settings.filter_map(|setting| {
        let is_one = OF_PATTERNS.contains(&&*setting.key) && keep.takes(&setting.key, b"");
        setting.value.filter(|_| is_one)
    });
    named.map(|value| PathBuf::from(OsString::from_vec(value.to_vec()))).collect()
}

/// What is kept, each value in quotes: all versions of git read what is in quotes in the same way. git reads nothing
/// of a file with a mistake, so there is no copy of such a one either.
///
/// Never copied: the names of further files (`include.path`), whose contents nobody filters, and shell commands (values
/// that begin with `!`), which may have anything in them. A filter whose command is not copied is required: git fails
/// then, where it would take contents as they are.
pub fn filtered(keep: Keep<'_>, text: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let mut copy = Vec::new();
    let mut present: Option<Vec<u8>> = None;
    let mut lacking = BTreeSet::new();
    for setting in Settings::of(text) {
        let setting = setting.map_err(|_| Unreadable)?;
        let value = setting.value.as_deref();
        let Some((section, subsection, name)) = setting.parts() else { continue };
        let leads_on = matches!(section, b"include" | b"includeif");
        let is_command = value.is_some_and(|value| value.trim_ascii_start().starts_with(b"!"));
        let is_plain = is_line(&setting.key) && value.is_none_or(is_line);
        let is_taken = is_plain && !is_command && keep.takes(&setting.key, value.unwrap_or_default());
        if section == b"filter" && FILTERS.contains(&name) && !is_taken && is_line(&setting.key) {
            lacking.insert(header(section, subsection));
        }
        if section.is_empty() || leads_on || !is_taken {
            continue;
        }
        let header = header(section, subsection);
        if present.as_ref() != Some(&header) {
            copy.extend(&header);
            present = Some(header);
        }
        copy.push(b'\t');
        copy.extend(name);
        if let Some(value) = value {
            copy.extend(b" = ");
            push_quoted(&mut copy, value);
        }
        copy.push(b'\n');
    }
    for filter in lacking {
        copy.extend([&filter, b"\trequired = \"true\"\n".as_slice()].concat());
    }
    Ok(copy)
}

fn is_line(text: &[u8]) -> bool {
    text.iter().all(|byte| !byte.is_ascii_control() || *byte == b'\t')
}

fn header(section: &[u8], subsection: Option<&[u8]>) -> Vec<u8> {
    let mut header = [b"[", section].concat();
    if let Some(subsection) = subsection {
        header.push(b' ');
        push_quoted(&mut header, subsection);
    }
    header.extend(b"]\n");
    header
}

/// A line in quotes; a tab stands for itself.
fn push_quoted(text: &mut Vec<u8>, line: &[u8]) {
    text.push(b'"');
    for byte in line {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(b'"');
}
