//! Properties that hold for any input: one function for each kind of input. A property that does not hold panics.
//!
//! The fuzz targets in `fuzz/targets` call these functions with bytes that a fuzzer makes. The tests of this crate
//! call them with the files of `fuzz/corpus` and with changes of those, on any toolchain.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod decode;
mod document;
mod draw;
mod env_text;
mod git;
mod imports;
mod model;
mod network;
mod oci;
mod policy;
mod profile;
mod program;
mod settings;
#[cfg(test)]
#[path = "../../../launcher/src/testing.rs"]
mod testing;
#[cfg(test)]
mod tests;
mod unnamed;
mod values;

pub use decode::decode;
pub use env_text::env_text;
pub use git::git;
pub use imports::{claude, codex, cursor, spo, srt, systemd};
pub use network::{dns, hello, hosts, proxy, request};
pub use oci::oci;
pub use policy::policy;
pub use profile::profile;
pub use program::program;
pub use settings::settings;
pub use values::values;

/// A function that checks arbitrary bytes.
pub type Property = fn(&[u8]);

/// All properties, by the names of their fuzz targets.
pub const TARGETS: [(&str, Property); 20] = [
    ("env_text", env_text),
    ("profile", profile),
    ("policy", policy),
    ("program", program),
    ("decode", decode),
    ("values", values),
    ("git", git),
    ("settings", settings),
    ("dns", dns),
    ("hello", hello),
    ("request", request),
    ("proxy", proxy),
    ("hosts", hosts),
    ("oci", oci),
    ("spo", spo),
    ("systemd", systemd),
    ("srt", srt),
    ("claude", claude),
    ("codex", codex),
    ("cursor", cursor),
];

/// The maximum length of a message, whatever it quotes.
const LONGEST: usize = 4000;

/// Checks that a text is safe in a terminal and in a log: one line, without characters that move the cursor or change
/// the direction of the text.
fn assert_line(text: &str) {
    assert!(text.len() <= LONGEST, "{} bytes: {text:?}", text.len());
    assert!(!text.is_empty() && text.chars().all(is_harmless), "{text:?}");
}

fn is_harmless(char: char) -> bool {
    let separator = matches!(char, '\u{2028}' | '\u{2029}');
    let mark = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}');
    let direction = mark || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !char.is_control() && !separator && !direction
}
