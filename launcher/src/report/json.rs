//! Reports as text: one line of printable ASCII. Names that a command has chosen cannot steer the terminal
//! that shows it.

use sbx_client::report::Report;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// The report and a newline.
pub fn line(report: &Report) -> io::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(2048);
    report.serialize(&mut Serializer::with_formatter(&mut line, Ascii))?;
    line.push(b'\n');
    Ok(line)
}

/// A document for people and programs, of many lines, in the same characters.
pub fn document(value: &Value) -> String {
    // Others than these are in strings alone.
    let text = format!("{value:#}\n");
    let mut plain = Vec::with_capacity(text.len());
    match escape(&text, |c| c == '\n' || is_plain(c), &mut plain) {
        Ok(()) => String::from_utf8_lossy(&plain).into_owned(),
        Err(_) => text,
    }
}

struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        escape(text, is_plain, writer)
    }
}

fn is_plain(character: char) -> bool {
    (' '..='~').contains(&character)
}

fn escape<W: ?Sized + Write>(text: &str, is_plain: impl Fn(char) -> bool, writer: &mut W) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_is_ascii_and_means_the_same() {
        for text in ["", "plain", "größe", "\u{202e}\u{7f}\u{9b}", "a\u{1f600}b\n\"\\\u{1}"] {
            let mut written = Vec::new();
            text.serialize(&mut Serializer::with_formatter(&mut written, Ascii)).unwrap();
            assert!(written.iter().all(|byte| (b' '..=b'~').contains(byte)), "{written:?}");
            assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), text);
            let document = document(&json!({ text: [text] }));
            assert!(
                document.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)),
                "{document}"
            );
            assert_eq!(serde_json::from_str::<Value>(&document).unwrap(), json!({ text: [text] }));
        }
    }
}
