//! Reports as text: one line of printable ASCII. Names that a command has chosen cannot steer the terminal
//! that shows it.

pub use crate::text::ascii_json_document as document;
use crate::text::escape_json_string;
use sbx_client::report::Report;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// The report and a newline.
pub fn line(report: &Report) -> io::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(2048);
    report.serialize(&mut Serializer::with_formatter(&mut line, Ascii))?;
    line.push(b'\n');
    Ok(line)
}

struct Ascii;

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        escape_json_string(text, writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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
