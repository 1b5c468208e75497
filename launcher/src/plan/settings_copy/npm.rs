//! Lines of `key=value`, as npm reads them. The file of Go's variables has the same form.

use crate::plan::settings_copy::Keep;

/// What is kept. npm passes over what it does not understand, and so does this.
pub fn filtered(keep: Keep<'_>, text: &str) -> String {
    let mut copy = String::new();
    // npm has no settings in sections, and readers differ in what is a section.
    let lines = text.split(['\r', '\n']).take_while(|line| !line.trim_start().starts_with('['));
    for (key, value) in lines.filter_map(setting) {
        let name = key.strip_suffix("[]").unwrap_or(key);
        if keep.takes(name.as_bytes(), value.as_bytes()) {
            copy.push_str(&format!("{key}={value}\n"));
        }
    }
    copy
}

/// A setting that every reader understands in the same way: without escapes, and with quotes only around the whole
/// value. A value with a variable in it (`${NAME}`) is left out: it is how tokens are named.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let name = key.strip_suffix("[]").unwrap_or(key);
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_@/.:-".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_of_name) {
        return None;
    }
    let inner = match ['"', '\''].into_iter().find(|quote| value.starts_with(*quote)) {
        Some(quote) => value.strip_prefix(quote)?.strip_suffix(quote)?,
        None => value,
    };
    let is_odd = |character: char| matches!(character, '"' | '\'' | '\\' | '$' | ';' | '#');
    // A comment may end the value.
    let end = inner.find([';', '#']).filter(|_| inner.len() == value.len());
    let inner = end.and_then(|end| inner.get(..end)).unwrap_or(inner);
    if inner.contains(is_odd) {
        return None;
    }
    Some((key, if end.is_some() { inner.trim_end() } else { value }))
}
