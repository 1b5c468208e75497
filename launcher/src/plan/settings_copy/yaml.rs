//! A strict part of YAML: what a file of settings is mostly written in, and what its readers (libyaml, js-yaml, and
//! those of yarn and bundler, which know no more) understand alike. Each line is a setting with at most one value,
//! or an item of a list. A value is plain, or in quotes that end in the same line without anything escaped in
//! between. There is no copy of a file that has anything else: values of several lines, anchors, tags, collections
//! in brackets, a key twice.
//!
//! Settings of the first level are kept, with a value or a list of them. What is deeper is left out.

use crate::plan::settings_copy::{Keep, Unreadable};
use std::collections::HashSet;

/// What is kept.
pub fn filtered(keep: Keep<'_>, text: &str) -> Result<String, Unreadable> {
    let mut copy = String::new();
    let mut known = HashSet::new();
    let mut levels = Levels::default();
    let mut open: Option<Setting<'_>> = None;
    let mut is_first = true;
    for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
        if line.contains(['\t', '\r']) {
            return Err(Unreadable);
        }
        let content = line.trim_start_matches(' ');
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if std::mem::take(&mut is_first) && line == "---" {
            continue;
        }
        let indent = line.len() - content.len();
        let line = Line::of(content)?;
        levels.enter(indent, &line)?;
        match (line.key, open.as_mut()) {
            (Some(key), _) if indent == 0 => {
                if !known.insert(key) {
                    return Err(Unreadable);
                }
                Setting::put(
                    open.replace(Setting { key, value: line.value, items: Some(Vec::new()) }),
                    keep,
                    &mut copy,
                );
            }
            (None, Some(open)) if levels.is_in_first_list() => {
                open.items.iter_mut().for_each(|items| items.extend(line.value));
            }
            // Something deeper: neither a value nor a list.
            (_, Some(open)) => open.items = None,
            (_, None) => return Err(Unreadable),
        }
    }
    Setting::put(open, keep, &mut copy);
    Ok(copy)
}

/// A setting of the first level.
struct Setting<'t> {
    key: &'t str,
    value: Option<Value<'t>>,
    /// The items of its list; `None` where it holds something else.
    items: Option<Vec<Value<'t>>>,
}

impl Setting<'_> {
    fn put(setting: Option<Setting<'_>>, keep: Keep<'_>, copy: &mut String) {
        let Some(Setting { key, value, items: Some(items) }) = setting else { return };
        let takes = |value: &Value<'_>| keep.takes(key.as_bytes(), value.text.as_bytes());
        match value {
            Some(value) if takes(&value) => copy.push_str(&format!("{key}: {}\n", value.written)),
            None if !items.is_empty() && items.iter().all(takes) => {
                copy.push_str(&format!("{key}:\n"));
                items.iter().for_each(|item| copy.push_str(&format!("  - {}\n", item.written)));
            }
            _ => {}
        }
    }
}

/// A value, and how it is written.
#[derive(Clone, Copy)]
struct Value<'t> {
    text: &'t str,
    written: &'t str,
}

/// What stands in a line.
struct Line<'t> {
    is_item: bool,
    key: Option<&'t str>,
    value: Option<Value<'t>>,
}

impl<'t> Line<'t> {
    fn of(content: &'t str) -> Result<Line<'t>, Unreadable> {
        if let Some(item) = content.strip_prefix("- ") {
            let value = value(item.trim_start_matches(' '))?.ok_or(Unreadable)?;
            return Ok(Line { is_item: true, key: None, value: Some(value) });
        }
        let (key, rest) = match content.strip_suffix(':').filter(|key| !key.contains(": ")) {
            Some(key) => (key, ""),
            None => content.split_once(": ").ok_or(Unreadable)?,
        };
        let key = match in_quotes(key) {
            Some((key, "")) if !key.is_empty() => key,
            _ => key,
        };
        let is_of_key =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'@');
        let plain = key.strip_prefix(':').unwrap_or(key);
        if !plain.starts_with(|first: char| first.is_ascii_alphanumeric() || matches!(first, '_' | '/' | '@'))
            || !plain.bytes().all(is_of_key)
        {
            return Err(Unreadable);
        }
        Ok(Line { is_item: false, key: Some(key), value: value(rest.trim_start_matches(' '))? })
    }
}

/// The value at the beginning of a text that has nothing behind it but a comment; `None` if there is none.
fn value(text: &str) -> Result<Option<Value<'_>>, Unreadable> {
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    if let Some((inner, behind)) = in_quotes(text) {
        let comment = behind.trim_start_matches(' ');
        let is_nothing = comment.is_empty() || (comment.starts_with('#') && behind.starts_with(' '));
        let written = text.strip_suffix(behind).unwrap_or(text);
        return if is_nothing { Ok(Some(Value { text: inner, written })) } else { Err(Unreadable) };
    }
    let plain = text.split_once(" #").map_or(text, |(plain, _)| plain).trim_end_matches(' ');
    let starts = plain
        .starts_with(|first: char| first.is_alphanumeric() || matches!(first, '/' | '.' | '_' | '~'))
        || plain
            .strip_prefix(['-', ':', '+'])
            .is_some_and(|rest| rest.starts_with(|next: char| next.is_alphanumeric() || next == '-'));
    let ends = plain.contains(": ")
        || plain.ends_with(':')
        || plain.contains(['"', '\'', '[', ']', '{', '}', '`', '#']);
    if starts && !ends { Ok(Some(Value { text: plain, written: plain })) } else { Err(Unreadable) }
}

/// What is in the quotes at the beginning of a text, and what is behind them.
fn in_quotes(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let (inner, behind) = text.strip_prefix(quote)?.split_once(quote)?;
    (!inner.contains(['\\', '"', '\''])).then_some((inner, behind))
}

/// How deep a line is, and whether that fits what is above it.
struct Levels {
    /// Indentation, and whether it is that of a list.
    open: Vec<(usize, bool)>,
    /// The line above has a key without a value.
    awaits: bool,
}

impl Default for Levels {
    fn default() -> Levels {
        Levels { open: vec![(0, false)], awaits: false }
    }
}

impl Levels {
    fn enter(&mut self, indent: usize, line: &Line<'_>) -> Result<(), Unreadable> {
        while let Some((deeper, is_list)) = self.open.last()
            && (*deeper > indent || (*deeper == indent && *is_list && !line.is_item))
        {
            self.awaits &= *deeper == indent;
            self.open.pop();
        }
        let (at, is_list) = *self.open.last().ok_or(Unreadable)?;
        // A list may begin where its key does.
        let begins = self.awaits && (indent > at || (line.is_item && !is_list));
        if begins {
            self.open.push((indent, line.is_item));
        } else if indent != at || is_list != line.is_item {
            return Err(Unreadable);
        }
        self.awaits = line.value.is_none();
        Ok(())
    }

    /// Whether the list of a setting of the first level is open.
    fn is_in_first_list(&self) -> bool {
        matches!(self.open[..], [_, (_, true)])
    }
}
