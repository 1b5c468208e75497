//! Copies of files of settings, for a private home: what is known to be harmless, and nothing else.
//!
//! Tools keep passwords and tokens beside settings that they cannot do without. Which settings are harmless is data of
//! the profile (`home.copies`): a name that no pattern of `keep` matches is left out. Each format is read as its tools
//! read it. What is not understood is not passed on: either that part is left out, or there is no copy at all. The copy
//! is written anew from the values, so that comments, and whatever hides between two values, stay behind.
//!
//! What looks like a credential is left out even where a pattern matches: see `secret.rs`.

mod git;
mod ini;
mod json;
mod npm;
mod secret;
#[cfg(test)]
mod tests;
mod toml;
mod yaml;

use crate::profile::{Name, Pattern, SettingsFormat};
use crate::sys::file;
use std::path::{Path, PathBuf};

/// Changes when the same file may come out otherwise: copies that an older filter made are then made anew.
pub const VERSION: u32 = 2;

/// Longer than any file of settings.
pub const LONGEST: u64 = 1024 * 1024;

/// A file that its tool would not understand either, or not for sure in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// The text of the copy.
pub fn filtered(format: SettingsFormat, keep: &[Pattern], text: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let keep = Keep(keep);
    match format {
        SettingsFormat::Git => git::filtered(keep, text),
        SettingsFormat::Ini => ini::filtered(keep, plain_text(text)?).map(String::into_bytes),
        SettingsFormat::Json => json::filtered(keep, plain_text(text)?).map(String::into_bytes),
        SettingsFormat::Npm => Ok(npm::filtered(keep, plain_text(text)?).into_bytes()),
        SettingsFormat::Toml => toml::filtered(keep, plain_text(text)?).map(String::into_bytes),
        SettingsFormat::Yaml => yaml::filtered(keep, plain_text(text)?).map(String::into_bytes),
    }
}

/// The files that the settings of a text name, which hold nothing but patterns of names.
pub fn files(format: SettingsFormat, keep: &[Pattern], text: &[u8]) -> Vec<PathBuf> {
    match format {
        SettingsFormat::Git => git::files(Keep(keep), text),
        _ => Vec::new(),
    }
}

/// The text of such a file, as it is, unless it may hold something else.
pub fn of_patterns(text: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let lines = plain_text(text)?.split(['\n', '\r']);
    let is_plain = lines.map(str::as_bytes).all(|line| !secret::may_be_key(line));
    if is_plain { Ok(text.to_vec()) } else { Err(Unreadable) }
}

/// Whether a file may hold a credential, whatever its format is. What cannot be looked at may.
pub fn may_hold_credentials(path: &Path) -> bool {
    let text = text_of(path);
    let Some(Ok(text)) = text.as_deref().map(plain_text) else { return true };
    text.split(['\n', '\r']).any(|line| secret::is_in(line.as_bytes()))
}

fn text_of(path: &Path) -> Option<Vec<u8>> {
    file::read_regular(path, LONGEST).ok()
}

/// Text in which all readers see the same lines: some take other characters than these for the end of one.
fn plain_text(text: &[u8]) -> Result<&str, Unreadable> {
    let text = str::from_utf8(text).map_err(|_| Unreadable)?;
    let is_odd = |character: char| match character {
        '\t' | '\n' | '\r' => false,
        '\u{2028}' | '\u{2029}' => true,
        other => other.is_control(),
    };
    if text.chars().any(is_odd) { Err(Unreadable) } else { Ok(text) }
}

/// The names of harmless settings.
#[derive(Clone, Copy)]
struct Keep<'a>(&'a [Pattern]);

impl Keep<'_> {
    /// Whether a setting is copied, by its full name and its value.
    fn takes(self, name: &[u8], value: &[u8]) -> bool {
        let asked = Name::new(name);
        self.0.iter().any(|pattern| pattern.matches(asked)) && !secret::is_in(name) && !secret::is_in(value)
    }
}
