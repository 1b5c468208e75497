//! The settings of a repository of Mercurial, and what hg goes on with after a stop.

use super::new::New;
use super::state::leads_away;
use crate::sys::beneath::Directory;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// What `hg recover` and `hg rollback` take back: files that they cut, remove, or put a copy in the place of.
const TRANSACTIONS: [&str; 4] = ["journal", "journal.backupfiles", "undo", "undo.backupfiles"];
/// Where they are. A repository of an old kind has them at its top.
const PLACES: [&str; 2] = ["store", ""];
/// Larger ones are not gone through.
const LONGEST: u64 = 8 << 20;
/// Most paths at which links are looked for. A new link is put aside wherever it is.
const MOST_LOOKED_AT: usize = 256;

/// Transactions that lead out of their repository, by paths from there. hg does not look.
pub fn astray(own: &Directory, path: &Path, new: New) -> Vec<PathBuf> {
    let mut astray = Vec::new();
    // hg knows no other name.
    if path.file_name().is_none_or(|name| name != ".hg") {
        return astray;
    }
    for place in PLACES.map(Path::new) {
        let new = if place.as_os_str().is_empty() { new } else { new.within(own, place.as_os_str()) };
        let Ok(held) = own.below(place) else { continue };
        let leads_out = |name: &&str| match held.read(name.as_ref(), LONGEST) {
            Ok(text) => text.is_some_and(|text| names_others(&text, &[own, &held])),
            // A large one of the user's own is as good as it was.
            Err(_) => new.is(&held, name.as_ref()),
        };
        astray.extend(TRANSACTIONS.into_iter().filter(leads_out).map(|name| place.join(name)));
    }
    astray
}

/// Whether a path in a text leads out of one of these directories: hg takes it from one or the other.
fn names_others(text: &[u8], from: &[&Directory]) -> bool {
    let is_outside =
        |path: &Path| !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let is_led = |path: &Path| from.iter().any(|directory| leads_away(directory, path));
    let paths = || {
        let parts = text.split(|byte| matches!(byte, 0 | b'\n')).filter(|part| !part.is_empty());
        parts.map(|part| Path::new(OsStr::from_bytes(part)))
    };
    paths().any(is_outside) || paths().take(MOST_LOOKED_AT).any(is_led)
}

/// Whether hg only reads from it where repositories on other machines are: on this one, it loads their extensions.
pub fn is_plain_hgrc(text: &[u8]) -> bool {
    // hg ends lines in other ways too, and passes over a mark of UTF-8.
    let is_text = text.iter().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..0x7f));
    let is_address = |value: &[u8]| {
        let rest =
            [&b"https://"[..], b"http://", b"ssh://"].iter().find_map(|kind| value.strip_prefix(*kind));
        rest.and_then(|rest| rest.first()).is_some_and(u8::is_ascii_alphanumeric)
    };
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    is_text
        && lines.all(|line| match line.first() {
            None | Some(b'#' | b';') => true,
            Some(b'[') => line == b"[paths]",
            // One that begins with a space goes on with the value before.
            Some(first) => {
                let value = line.splitn(2, |byte| *byte == b'=').nth(1);
                first.is_ascii_alphabetic() && value.is_some_and(|value| is_address(value.trim_ascii_start()))
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_other_machines_are_plain() {
        for text in ["", "# x\n[paths]\ndefault = https://example.org/x\ndefault:pushurl=ssh://hg@h/x\n; y\n"]
        {
            assert!(is_plain_hgrc(text.as_bytes()), "{text}");
        }
        for line in [
            "x = /x",
            "x = ../x",
            "x = file:///x",
            "x = path://y",
            "x = ssh://-o/x",
            "x = ssh:///x",
            "x",
            "x = https://h\n /x",
            "x = https://h\n\t/x",
            "%include x",
            "[ui]",
            "x = union:/x",
            "x = $X",
            "x =",
        ] {
            let text = format!("[paths]\n{line}\n");
            assert!(!is_plain_hgrc(text.as_bytes()), "{text}");
        }
    }
}
