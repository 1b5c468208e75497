//! Lines of a review: a word at the left, texts beside it, as wide as a terminal takes them.

use crate::text::{LONGEST, escape, tame};
use std::fmt::Write;

/// Maximum width of a line, but for a single word that is longer.
const WIDTH: usize = 100;
/// Width of the words at the left.
const LABEL: usize = 10;

/// Text that is being laid out.
pub struct Lines<'t> {
    text: &'t mut String,
    label: String,
}

impl Lines<'_> {
    /// Lines that begin with a word.
    pub fn new<'t>(text: &'t mut String, label: &str) -> Lines<'t> {
        Lines { text, label: label.to_string() }
    }

    /// Words one after another, on as many lines as it takes. Further lines are moved to the right.
    pub fn words<'w>(&mut self, words: impl IntoIterator<Item = &'w str>, further: usize) {
        let mut line = String::new();
        let mut indent = 0;
        // What is as wide as a line is broken between its own words.
        let parts = words.into_iter().flat_map(|word| {
            let is_wide = width(word) + LABEL + 3 + further > WIDTH;
            word.splitn(if is_wide { usize::MAX } else { 1 }, ' ')
        });
        for word in parts {
            let is_full = width(&line) + 1 + width(word) + LABEL + 3 + indent > WIDTH;
            if is_full && !line.is_empty() {
                self.line(indent, &line);
                line.clear();
                indent = further;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.line(indent, &line);
        }
    }

    /// A sentence, wrapped between its words.
    pub fn sentence(&mut self, text: &str, further: usize) {
        let text = plain(text);
        self.words(text.split(' ').filter(|word| !word.is_empty()), further);
    }

    fn line(&mut self, indent: usize, line: &str) {
        let _ = writeln!(self.text, "  {:LABEL$} {:indent$}{line}", self.label, "");
        self.label.clear();
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Texts of profiles, fit for a terminal: what would steer it, or cannot be seen, is shown and does nothing.
pub fn plain(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    for character in text.chars() {
        match tame(character) == character {
            true => whole.push(character),
            false => whole.push_str(&escape(character.to_string().as_bytes(), LONGEST)),
        }
    }
    whole
}
