//! What has to hold whatever is read: one function for each kind of input, called with arbitrary bytes by the fuzz targets
//! in `fuzz/`, and by the unit tests with what lies in `fuzz/corpus` and changes of it. A broken promise is a panic.
//!
//! Not part of `sbx`: only built for tests and with the feature `fuzzing`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod decode;
mod document;
mod draw;
mod env_text;
mod git;
mod model;
mod policy;
mod profile;
mod program;
#[cfg(test)]
pub(crate) mod tests;
mod unnamed;
mod values;

pub use decode::decode;
pub use env_text::env_text;
pub use git::git;
pub use policy::policy;
pub use profile::profile;
pub use program::program;
pub use values::values;

/// Checks arbitrary bytes.
pub type Property = fn(&[u8]);

/// All of them, by the names of the fuzz targets.
pub const TARGETS: [(&str, Property); 7] = [
    ("env_text", env_text),
    ("profile", profile),
    ("policy", policy),
    ("program", program),
    ("decode", decode),
    ("values", values),
    ("git", git),
];

/// No message is longer, whatever it quotes.
const LONGEST: usize = 4000;

/// Holds a text to what a terminal and a log need: one line, nothing that moves the cursor or turns the text around.
fn assert_line(text: &str) {
    assert!(text.len() <= LONGEST, "{} bytes: {text:?}", text.len());
    assert!(!text.is_empty() && text.chars().all(is_harmless), "{text:?}");
}

fn is_harmless(char: char) -> bool {
    let separator = matches!(char, '\u{2028}' | '\u{2029}');
    let direction = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !char.is_control() && !separator && !direction
}
