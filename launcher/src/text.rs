//! Names and texts of unknown origin, made fit for a terminal and for one line of a report.
//!
//! What a confined program calls its files is up to that program, and whoever reads the report should see
//! what the name is, not what the name does. So only printable ASCII and letters and digits of left-to-right
//! scripts stay as they are.

use serde_json::Value;
use std::io::{self, IsTerminal, Write};
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Longest path that a message shows, in bytes.
pub const LONGEST: usize = 400;

/// Stands for what an abbreviation leaves out. Not a letter, so a name that has it shows it escaped and cannot pretend.
const ELLIPSIS: &str = "…";

/// Shows `bytes` in at most `limit` bytes of printable text, without quotes around it.
///
/// Backslashes and double quotes are escaped, so the text can stand between quotes. A text that would be
/// longer loses its middle: the end of a path says more than what comes before it.
#[must_use]
pub fn escape(bytes: &[u8], limit: usize) -> String {
    whole(bytes, limit).unwrap_or_else(|| abbreviated(bytes, limit))
}

/// Shows a path in a message.
#[must_use]
pub fn shown(path: &Path) -> String {
    escape(path.as_os_str().as_bytes(), LONGEST)
}

/// Units of sizes, each 1,024 of the one before.
const UNITS: [&str; 6] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Shows a size exactly, in the largest unit of which it is a whole number.
#[must_use]
pub fn exact_size(bytes: u64) -> String {
    match (bytes.trailing_zeros() as usize / 10).min(UNITS.len() - 1) {
        unit if unit > 0 && bytes > 0 => format!("{} {}", bytes >> (10 * unit), UNITS[unit]),
        _ => byte_count(bytes),
    }
}

/// Shows a number of bytes.
#[must_use]
pub fn byte_count(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_string() } else { format!("{bytes} bytes") }
}

/// Shows a size in the unit that fits, with one digit after the point.
#[must_use]
pub fn rounded_size(bytes: u64) -> String {
    let (mut amount, mut unit) = (bytes as f64, 0);
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        (amount, unit) = (amount / 1024.0, unit + 1);
    }
    if unit == 0 { byte_count(bytes) } else { format!("{amount:.1} {}", UNITS[unit]) }
}

/// Shows a number of things, whose plural ends in an s.
#[must_use]
pub fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// Shows a character from outside on a terminal: what moves the cursor, turns the text around it or shows nothing
/// becomes a `?`.
#[must_use]
pub fn tame(character: char) -> char {
    if character.is_control() || is_invisible(character) { '?' } else { character }
}

/// Shows the name of a host or service among the words of a message: in quotes, unless it is made of what such names
/// are made of.
#[must_use]
pub fn host_name(name: &str) -> String {
    const LONGEST: usize = 260;
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte);
    let shown = escape(name.as_bytes(), LONGEST);
    if !name.is_empty() && name.bytes().all(is_usual) { shown } else { format!("\"{shown}\"") }
}

/// Shows the name of a process, which stands before its number: without the brackets of that.
#[must_use]
pub fn process_name(name: &[u8]) -> String {
    const LONGEST: usize = 32;
    escape(name, LONGEST).replace(['[', ']'], "?")
}

/// The same for a text.
#[must_use]
pub fn tamed(text: &str) -> String {
    text.chars().map(tame).collect()
}

/// Letters, marks and symbols that are drawn as nothing: the joiner of graphemes, fillers of scripts, selectors of
/// variants, the blank of Braille, tags.
const DRAWN_AS_NOTHING: [RangeInclusive<char>; 9] = [
    '\u{34f}'..='\u{34f}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Whether a character shows nothing, or nothing of its own: two texts that differ by it alone look the same. Blanks
/// other than the usual one count, for they look like it.
#[must_use]
pub fn is_invisible(character: char) -> bool {
    // Behind a letter, std escapes what is not printed, and no mark that is.
    let text = || ['a', character].iter().collect::<String>();
    let is_unprinted = || !character.is_ascii() && text().escape_debug().count() > 2;
    DRAWN_AS_NOTHING.iter().any(|range| range.contains(&character)) || is_unprinted()
}

enum Unit {
    Char(char),
    Byte(u8),
}

fn units(bytes: &[u8]) -> impl Iterator<Item = Unit> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let invalid = chunk.invalid().iter().copied().map(Unit::Byte);
        chunk.valid().chars().map(Unit::Char).chain(invalid)
    })
}

fn unit_text(unit: &Unit) -> String {
    match *unit {
        Unit::Byte(byte) => format!("\\x{byte:02x}"),
        Unit::Char(char @ ('\\' | '"')) => format!("\\{char}"),
        Unit::Char('\n') => "\\n".into(),
        Unit::Char('\r') => "\\r".into(),
        Unit::Char('\t') => "\\t".into(),
        Unit::Char(char @ ' '..='~') => char.into(),
        Unit::Char(char) if char.is_ascii() => format!("\\x{:02x}", u32::from(char)),
        Unit::Char(char) if is_plain_letter(char) => char.into(),
        Unit::Char(char) => format!("\\u{{{:x}}}", u32::from(char)),
    }
}

/// Letters and digits that take up room and do not move their neighbours.
fn is_plain_letter(char: char) -> bool {
    let invisible = matches!(char, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}');
    // Hebrew, Arabic and their relatives reorder the punctuation and digits around them, even without a
    // control character.
    let right_to_left = matches!(char, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}');
    char.is_alphanumeric() && char.escape_debug().len() == 1 && !invisible && !right_to_left
}

/// The whole text, or nothing as soon as it is longer than `limit`.
fn whole(bytes: &[u8], limit: usize) -> Option<String> {
    let mut text = String::new();
    for unit in units(bytes) {
        text.push_str(&unit_text(&unit));
        if text.len() > limit {
            return None;
        }
    }
    Some(text)
}

fn abbreviated(bytes: &[u8], limit: usize) -> String {
    let Some(room) = limit.checked_sub(ELLIPSIS.len()) else { return String::new() };
    let mut text = head(bytes, room / 3);
    text.push_str(ELLIPSIS);
    text.push_str(&tail(bytes, room - room / 3));
    text
}

fn head(bytes: &[u8], room: usize) -> String {
    let mut text = String::new();
    for unit in units(bytes) {
        let shown = unit_text(&unit);
        if text.len() + shown.len() > room {
            break;
        }
        text.push_str(&shown);
    }
    text
}

fn tail(bytes: &[u8], room: usize) -> String {
    // No unit is shown in fewer bytes than it has, so nothing before this can fit.
    let mut end = &bytes[bytes.len().saturating_sub(room)..];
    // Not to begin inside a character.
    for _ in 0..3 {
        if let [0x80..=0xbf, rest @ ..] = end {
            end = rest;
        }
    }
    let pieces: Vec<String> = units(end).map(|unit| unit_text(&unit)).collect();
    let mut length = 0;
    let fitting = pieces.iter().rev().take_while(|piece| {
        length += piece.len();
        length <= room
    });
    let first = pieces.len() - fitting.count();
    pieces[first..].concat()
}

/// A JSON document of many lines that people read and edit: what can be seen as it is stays as it is.
#[must_use]
pub fn json_document(value: &Value) -> String {
    json_lines(value, |c| is_plain(c) || !c.is_ascii() && !c.is_control() && !is_invisible(c))
}

/// The same of what `sbx` has found, for people and programs: in printable ASCII.
#[must_use]
pub fn ascii_json_document(value: &Value) -> String {
    json_lines(value, is_plain)
}

fn json_lines(value: &Value, is_plain: impl Fn(char) -> bool) -> String {
    // Others than these are in strings alone.
    let text = format!("{value:#}\n");
    let mut plain = Vec::with_capacity(text.len());
    match escape_json(&text, |c| c == '\n' || is_plain(c), &mut plain) {
        Ok(()) => String::from_utf8_lossy(&plain).into_owned(),
        Err(_) => text,
    }
}

/// Writes a part of a string of JSON in printable ASCII.
pub fn escape_json_string<W: ?Sized + Write>(text: &str, writer: &mut W) -> io::Result<()> {
    escape_json(text, is_plain, writer)
}

fn is_plain(character: char) -> bool {
    (' '..='~').contains(&character)
}

fn escape_json<W: ?Sized + Write>(
    text: &str,
    is_plain: impl Fn(char) -> bool,
    writer: &mut W,
) -> io::Result<()> {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| !is_plain(c)) {
        let (plain, odd) = rest.split_at(at);
        writer.write_all(plain.as_bytes())?;
        let mut letters = odd.chars();
        for unit in letters.next().into_iter().flat_map(|c| c.encode_utf16(&mut [0; 2]).to_vec()) {
            write!(writer, "\\u{unit:04x}")?;
        }
        rest = letters.as_str();
    }
    writer.write_all(rest.as_bytes())
}

/// A word in a colour (`31` is red), where colours are wanted.
#[must_use]
pub fn paint(word: &str, colour: &str, coloured: bool) -> String {
    if coloured { format!("\x1b[{colour}m{word}\x1b[0m") } else { word.to_string() }
}

/// Whether a stream is a terminal whose user wants colours (`NO_COLOR`, `TERM=dumb`).
pub fn wants_colours(stream: &impl IsTerminal) -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !plain && !dumb && stream.is_terminal()
}

#[cfg(test)]
mod tests {
    use super::{counted, exact_size, host_name, is_invisible, json_document, process_name, rounded_size};
    use serde_json::{Value, json};

    #[test]
    fn sizes_are_whole_numbers_of_their_unit() {
        let sizes = [0, 1, 1000, 1 << 10, 1536, 64 << 10, 100 << 20, 3 << 40, 1 << 60, u64::MAX];
        let shown = sizes.map(exact_size);
        let expected =
            ["0 bytes", "1 byte", "1000 bytes", "1 KiB", "1536 bytes", "64 KiB", "100 MiB", "3 TiB"];
        assert_eq!(shown[..8], expected);
        assert_eq!(shown[8..], ["1024 PiB".to_string(), format!("{} bytes", u64::MAX)]);
    }

    #[test]
    fn sizes_that_are_rounded_have_one_digit_after_the_point() {
        let shown = [0, 1, 1023, 1 << 10, 1536, 100 << 20, u64::MAX].map(rounded_size);
        let expected = ["0 bytes", "1 byte", "1023 bytes", "1.0 KiB", "1.5 KiB", "100.0 MiB", "16384.0 PiB"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!([0, 1, 2].map(|number| counted(number, "run")), ["0 runs", "1 run", "2 runs"]);
    }

    #[test]
    fn names_do_not_go_on_as_the_message_does() {
        assert_eq!(host_name("a_b.example.org."), "a_b.example.org.");
        assert_eq!(host_name("2001:db8::1"), "2001:db8::1");
        assert_eq!(host_name("x.; allow it with --net host"), "\"x.; allow it with --net host\"");
        assert_eq!(host_name("x\" y"), "\"x\\\" y\"");
        assert_eq!(host_name(""), "\"\"");
        assert_eq!(process_name(b"x]: ok["), "x?: ok?");
        assert_eq!(process_name(b"tmux: server"), "tmux: server");
    }

    #[test]
    fn a_document_for_people_has_their_letters_and_nothing_unseen() {
        let seen = "größe, żółć, ж, 中, 🙂, e\u{301}";
        let unseen = "\u{1}\u{7f}\u{9b}\u{a0}\u{ad}\u{200b}\u{202e}\u{2028}\u{2066}\u{feff}\u{e0041}";
        let value = json!({ seen: [format!("{seen}{unseen}\n")] });
        let document = json_document(&value);
        assert_eq!(document.matches(seen).count(), 2, "{document}");
        assert!(!document.contains(|c: char| unseen.contains(c)), "{document}");
        assert!(document.contains("\\u0001\\u007f\\u009b\\u00a0"), "{document}");
        assert_eq!(serde_json::from_str::<Value>(&document).unwrap(), value);
    }

    #[test]
    fn what_shows_nothing_is_told_from_what_is_drawn() {
        let invisible = [
            '\u{ad}',
            '\u{a0}',
            '\u{34f}',
            '\u{200b}',
            '\u{200d}',
            '\u{202e}',
            '\u{2060}',
            '\u{2800}',
            '\u{3000}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{e000}',
            '\u{e0041}',
            '\u{e0101}',
            '\u{10ffff}',
        ];
        for character in invisible {
            assert!(is_invisible(character), "{:x}", u32::from(character));
        }
        for character in
            [' ', 'a', '"', '\\', '\'', 'é', '\u{301}', 'ж', 'ש', '中', 'क', '\u{94d}', '–', '“', '€', '🙂']
        {
            assert!(!is_invisible(character), "{character}");
        }
    }
}
