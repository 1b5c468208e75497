//! Lines of `key = value` under `[section]`s, as configparser of Python reads them.

use crate::plan::settings_copy::{Keep, Unreadable, secret};
use std::collections::HashSet;

/// A setting that further lines may continue.
struct Open<'t> {
    section: &'t str,
    /// In small letters.
    key: String,
    value: &'t str,
    /// The lines that continue it.
    more: Vec<&'t str>,
}

/// What is kept. Where Python stops with an error, there is no copy: a line that is neither a section nor a setting, a
/// setting before the first section, a section or a setting that stands twice.
pub fn filtered(keep: Keep<'_>, text: &str) -> Result<String, Unreadable> {
    let mut copy = Copy { keep, text: String::new(), section: None };
    let mut section: Option<&str> = None;
    let mut open: Option<Open<'_>> = None;
    let mut known = HashSet::new();
    let mut indentation = 0;
    for line in text.split(['\n', '\r']) {
        let trimmed = line.trim();
        // Neither an empty line nor a comment ends a value.
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        let indented = line.chars().take_while(|character| character.is_whitespace()).count();
        if let Some(open) = open.as_mut().filter(|_| indented > indentation) {
            open.more.push(trimmed);
            continue;
        }
        indentation = indented;
        copy.take(open.take());
        if let Some(name) = header(trimmed)? {
            if !known.insert((name, None)) {
                return Err(Unreadable);
            }
            section = Some(name);
            continue;
        }
        let section = section.ok_or(Unreadable)?;
        let (key, value) = trimmed.split_once(['=', ':']).ok_or(Unreadable)?;
        let key = key.trim_end().to_lowercase();
        if key.is_empty() || !known.insert((section, Some(key.clone()))) {
            return Err(Unreadable);
        }
        open = Some(Open { section, key, value: value.trim_start(), more: Vec::new() });
    }
    copy.take(open);
    Ok(copy.text)
}

/// The name of a section, where a line is one. An error where versions of Python differ about it.
fn header(line: &str) -> Result<Option<&str>, Unreadable> {
    let Some((name, behind)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return Ok(None);
    };
    let is_plain = !name.is_empty() && !name.contains('[') && !behind.contains(']');
    if is_plain { Ok(Some(name)) } else { Err(Unreadable) }
}

/// The text of the copy, and the section that it is in.
struct Copy<'a, 't> {
    keep: Keep<'a>,
    text: String,
    section: Option<&'t str>,
}

impl<'t> Copy<'_, 't> {
    fn take(&mut self, setting: Option<Open<'t>>) {
        let Some(Open { section, key, value, more }) = setting else { return };
        let name = format!("{section}.{key}");
        let is_of_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if !key.bytes().all(is_of_key) || has_comment(value) {
            return;
        }
        if !self.keep.takes(name.as_bytes(), value.as_bytes()) {
            return;
        }
        // A list has all its items below its name. A line behind a value may as well be a setting of its own that is
        // indented by mistake, and nothing says what that holds.
        let is_item = |item: &&str| is_address(item) && !secret::is_in(item.as_bytes());
        let is_list = value.is_empty() && more.iter().all(is_item);
        if !is_list && !more.is_empty() {
            return;
        }
        if self.section != Some(section) {
            self.text.push_str(&format!("[{section}]\n"));
            self.section = Some(section);
        }
        self.text.push_str(&format!("{key} = {value}\n"));
        more.iter().for_each(|item| self.text.push_str(&format!("    {item}\n")));
    }
}

/// Whether a part of a value may be meant as a comment; for Python it is none.
fn has_comment(value: &str) -> bool {
    value.split_whitespace().any(|word| word.starts_with(['#', ';']))
}

/// Whether an item of a list is the address of a page, or a host with its domain. A password is neither.
fn is_address(item: &str) -> bool {
    let (has_scheme, place) = match item.split_once("://") {
        Some(("http" | "https", place)) => (true, place),
        Some(_) => return false,
        None => (false, item),
    };
    let (host, path) = place.split_once('/').unwrap_or((place, ""));
    let (host, port) = host.split_once(':').unwrap_or((host, ""));
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_of_path = |byte: u8| is_of_host(byte) || matches!(byte, b'/' | b'_' | b'~' | b'+');
    host.bytes().all(is_of_host)
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && path.bytes().all(is_of_path)
        && (has_scheme || (path.is_empty() && host.contains('.')))
}
