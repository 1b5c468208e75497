//! Programs: ELF files and scripts.

use super::assert_line;
use super::draw::Draw;
use super::unnamed::Unnamed;
use crate::program::properties;

/// How much of an ELF file is read at once, and the file.
pub fn program(data: &[u8]) {
    let mut draw = Draw(data);
    let head = draw.below(4096);
    let file = draw.0;
    if file.starts_with(b"\x7fELF") {
        properties::elf(file, head, assert_line);
    }
    if file.starts_with(b"#!") {
        properties::script(file);
    }
    properties::file(&Unnamed::holding(file).path(), assert_line);
}
