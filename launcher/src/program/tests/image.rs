//! Builds ELF files byte by byte, so that a test can say exactly what is in one.

use goblin::elf::header::{ET_DYN, ET_EXEC};
use goblin::elf::program_header::{PT_DYNAMIC, PT_INTERP, PT_LOAD};

use crate::program::machine;

/// Where fields lie in a 64-bit header.
pub const TYPE: usize = 16;
pub const MACHINE: usize = 18;
pub const PHOFF: usize = 32;
pub const PHENTSIZE: usize = 54;
pub const PHNUM: usize = 56;
/// Where the first program header lies in the files built here.
pub const FIRST_SEGMENT: usize = 64;
/// Size of a 64-bit program header, and where its fields lie.
pub const SEGMENT: usize = 56;
pub const P_OFFSET: usize = 8;
pub const P_FILESZ: usize = 32;
pub const P_MEMSZ: usize = 40;

/// A 64-bit little-endian file for this machine: one PT_LOAD of everything, then `segments` with their content.
pub fn elf64(e_type: u16, segments: &[(u32, &[u8])]) -> Vec<u8> {
    let count = segments.len() + 1;
    let table_end = FIRST_SEGMENT + count * SEGMENT;
    let total = table_end + segments.iter().map(|(_, content)| content.len()).sum::<usize>();

    let mut file = vec![0; table_end];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    put16(&mut file, TYPE, e_type);
    put16(&mut file, MACHINE, machine::NATIVE);
    file[20] = 1;
    put64(&mut file, PHOFF, FIRST_SEGMENT as u64);
    put16(&mut file, 52, 64);
    put16(&mut file, PHENTSIZE, SEGMENT as u16);
    put16(&mut file, PHNUM, count as u16);
    put_segment(&mut file, 0, PT_LOAD, 0, total as u64);
    for (index, (kind, content)) in segments.iter().enumerate() {
        let offset = file.len() as u64;
        put_segment(&mut file, index + 1, *kind, offset, content.len() as u64);
        file.extend_from_slice(content);
    }
    file
}

/// As [`elf64`], with the 32-bit layout.
pub fn elf32(machine: u16) -> Vec<u8> {
    let mut file = vec![0; 52 + 32];
    file[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    put16(&mut file, TYPE, ET_EXEC);
    put16(&mut file, MACHINE, machine);
    file[28] = 52;
    put16(&mut file, 42, 32);
    put16(&mut file, 44, 1);
    file
}

pub fn static_program() -> Vec<u8> {
    elf64(ET_EXEC, &[])
}

pub fn dynamic_program(interpreter: &str) -> Vec<u8> {
    elf64(ET_DYN, &[(PT_INTERP, format!("{interpreter}\0").as_bytes())])
}

/// Without a loader, at any address, with `flags_1` in its dynamic section if given.
pub fn position_independent(flags_1: Option<u64>) -> Vec<u8> {
    let mut dynamic = entry(4, 0x1234);
    if let Some(flags) = flags_1 {
        dynamic.extend(entry(0x6fff_fffb, flags));
    }
    dynamic.extend(entry(0, 0));
    elf64(ET_DYN, &[(PT_DYNAMIC, &dynamic)])
}

pub fn entry(tag: u64, value: u64) -> Vec<u8> {
    [tag.to_le_bytes(), value.to_le_bytes()].concat()
}

pub fn put16(file: &mut [u8], at: usize, value: u16) {
    file[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

pub fn put64(file: &mut [u8], at: usize, value: u64) {
    file[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn put_segment(file: &mut [u8], index: usize, kind: u32, offset: u64, size: u64) {
    let at = FIRST_SEGMENT + index * SEGMENT;
    file[at..at + 4].copy_from_slice(&kind.to_le_bytes());
    put64(file, at + P_OFFSET, offset);
    put64(file, at + P_FILESZ, size);
    put64(file, at + P_MEMSZ, size);
}
