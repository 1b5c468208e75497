//! The ELF reader against crafted, cut and altered files.

use std::path::PathBuf;

use goblin::elf::header::{
    EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_X86_64, ET_CORE, ET_DYN, ET_EXEC, ET_REL,
};
use goblin::elf::program_header::{PT_DYNAMIC, PT_INTERP, PT_NOTE};

use crate::program::elf::{Facts, Image, Malformed, OtherClass, inspect};
use crate::program::machine;
use crate::program::tests::image::*;

/// Inspects `file` as if only its first `head` bytes had been read at once.
fn inspect_with_head(file: &[u8], head: usize) -> Result<Facts, Malformed> {
    let read_at = |buffer: &mut [u8], offset: u64| {
        let rest = usize::try_from(offset).ok().and_then(|at| file.get(at..)).unwrap_or_default();
        let count = rest.len().min(buffer.len()).min(7);
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    };
    let head = &file[..head.min(file.len())];
    inspect(&Image { head, size: file.len() as u64, read_at: &read_at })
}

fn facts(file: &[u8]) -> Result<Facts, String> {
    inspect_with_head(file, 4096).map_err(|error| error.to_string())
}

/// `file` after `change`, which must make it a file that cannot be started, for the reason `expected`.
fn assert_refused(mut file: Vec<u8>, expected: &str, change: impl FnOnce(&mut Vec<u8>)) {
    change(&mut file);
    let error = facts(&file).expect_err(expected);
    assert!(error.contains(expected), "'{error}' lacks '{expected}'");
}

fn interpreted(interpreter: &str) -> Facts {
    Facts::Interpreted { interpreter: PathBuf::from(interpreter) }
}

#[test]
fn tells_every_kind_apart() {
    assert_eq!(facts(&static_program()), Ok(Facts::FixedAddress));
    assert_eq!(facts(&dynamic_program("/lib/x.so")), Ok(interpreted("/lib/x.so")));
    let fixed = elf64(ET_EXEC, &[(PT_NOTE, b"note"), (PT_INTERP, b"/ld\0")]);
    assert_eq!(facts(&fixed), Ok(interpreted("/ld")));
    assert_eq!(
        facts(&position_independent(Some(0x0800_0001))),
        Ok(Facts::AnyAddress { marked_program: true })
    );
    assert_eq!(facts(&position_independent(Some(1))), Ok(Facts::AnyAddress { marked_program: false }));
    assert_eq!(facts(&position_independent(None)), Ok(Facts::AnyAddress { marked_program: false }));
    assert_eq!(facts(&elf64(ET_DYN, &[])), Ok(Facts::AnyAddress { marked_program: false }));
}

#[test]
fn a_mark_after_the_end_of_the_dynamic_section_does_not_count() {
    let dynamic = [entry(0, 0), entry(0x6fff_fffb, 0x0800_0000)].concat();
    let file = elf64(ET_DYN, &[(PT_DYNAMIC, &dynamic)]);
    assert_eq!(facts(&file), Ok(Facts::AnyAddress { marked_program: false }));
}

#[test]
fn the_first_of_two_loaders_counts_and_ends_at_its_first_nul() {
    let file = elf64(ET_DYN, &[(PT_INTERP, b"/first\0junk\0"), (PT_INTERP, b"/second\0")]);
    assert_eq!(facts(&file), Ok(interpreted("/first")));
}

#[test]
fn tells_other_machines_and_classes() {
    let short = if machine::NATIVE == EM_X86_64 { EM_386 } else { EM_ARM };
    let foreign = if machine::NATIVE == EM_X86_64 { EM_AARCH64 } else { EM_X86_64 };
    assert_eq!(facts(&elf32(short)), Ok(Facts::OtherClass(OtherClass::Bits32)));
    assert_eq!(facts(&elf32(machine::NATIVE)), Ok(Facts::OtherClass(OtherClass::ShortPointers)));
    let named = |machine: &str| Ok(Facts::OtherArchitecture { machine: machine.to_owned() });
    assert_eq!(facts(&elf32(EM_RISCV)), named("risc-v"));
    assert_eq!(facts(&elf32(0xbeef)), named("machine number 48879"));
    let mut file = static_program();
    put16(&mut file, MACHINE, foreign);
    assert_eq!(facts(&file), Ok(Facts::OtherArchitecture { machine: machine::name(foreign, true) }));
    let mut file = static_program();
    file[5] = 2;
    file[TYPE..TYPE + 4].copy_from_slice(&[0, ET_EXEC as u8, 0, EM_RISCV as u8]);
    assert_eq!(facts(&file), named("risc-v, big-endian"));
}

#[test]
fn refuses_what_is_no_program() {
    assert_refused(static_program(), "an object file", |file| put16(file, TYPE, ET_REL));
    assert_refused(static_program(), "a core dump", |file| put16(file, TYPE, ET_CORE));
    assert_refused(static_program(), "unknown type", |file| put16(file, TYPE, 0xfe00));
    assert_refused(static_program(), "its class", |file| file[4] = 3);
    assert_refused(static_program(), "its byte order", |file| file[5] = 0);
}

#[test]
fn refuses_bad_segment_tables() {
    assert_refused(static_program(), "wrong size", |file| put16(file, PHENTSIZE, 0));
    assert_refused(static_program(), "wrong size", |file| put16(file, PHENTSIZE, 57));
    assert_refused(static_program(), "has no segments", |file| put16(file, PHNUM, 0));
    assert_refused(static_program(), "more segments", |file| put16(file, PHNUM, 0xffff));
    assert_refused(static_program(), "more segments", |file| put16(file, PHNUM, 1171));
    assert_refused(static_program(), "table of segments", |file| put16(file, PHNUM, 1170));
    for offset in [121, 1 << 40, u64::MAX, u64::MAX - 10, i64::MAX as u64] {
        assert_refused(static_program(), "table of segments", |file| put64(file, PHOFF, offset));
    }
    assert_refused(static_program(), "no segment to load", |file| file[FIRST_SEGMENT] = PT_NOTE as u8);
}

#[test]
fn refuses_segments_that_cannot_be_mapped() {
    let first = FIRST_SEGMENT;
    assert_refused(static_program(), "larger in the file", |file| put64(file, first + P_MEMSZ, 1));
    assert_refused(static_program(), "one of its segments", |file| put64(file, first + P_OFFSET, u64::MAX));
    assert_refused(static_program(), "one of its segments", |file| put64(file, first + P_OFFSET, 1));
    assert_refused(static_program(), "one of its segments", |file| {
        put64(file, first + P_FILESZ, u64::MAX);
        put64(file, first + P_MEMSZ, u64::MAX);
    });
}

#[test]
fn refuses_bad_loader_names() {
    let program = || dynamic_program("/lib/ld.so");
    let second = FIRST_SEGMENT + SEGMENT;
    for size in [0, 1, 4097, u64::MAX] {
        assert_refused(program(), "empty or too long", |file| put64(file, second + P_FILESZ, size));
    }
    assert_refused(program(), "does not end", |file| put64(file, second + P_FILESZ, 5));
    assert_refused(program(), "name of its loader", |file| put64(file, second + P_FILESZ, 4096));
    for offset in [1 << 30, u64::MAX, u64::MAX - 11] {
        assert_refused(program(), "name of its loader", |file| put64(file, second + P_OFFSET, offset));
    }
    assert_refused(elf64(ET_DYN, &[(PT_INTERP, b"\0\0\0")]), "loader is empty", |_| {});
    let longest = format!("/{}", "x".repeat(4094));
    assert_eq!(facts(&dynamic_program(&longest)), Ok(interpreted(&longest)));
}

#[test]
fn refuses_a_dynamic_section_outside_the_file() {
    let second = FIRST_SEGMENT + SEGMENT;
    for offset in [1 << 30, u64::MAX, u64::MAX - 11] {
        assert_refused(position_independent(Some(0)), "dynamic section", |file| {
            put64(file, second + P_OFFSET, offset)
        });
    }
}

#[test]
fn a_huge_dynamic_section_is_not_read_to_its_end() {
    let dynamic = [entry(4, 4).repeat(100_000), entry(0x6fff_fffb, 0x0800_0000)].concat();
    let file = elf64(ET_DYN, &[(PT_DYNAMIC, &dynamic)]);
    assert_eq!(facts(&file), Ok(Facts::AnyAddress { marked_program: false }));
}

#[test]
fn it_does_not_matter_how_much_is_read_at_first() {
    for file in [dynamic_program("/lib/some/loader.so"), position_independent(Some(0x0800_0000))] {
        let expected = facts(&file).unwrap();
        for head in 16..file.len() {
            assert_eq!(inspect_with_head(&file, head).unwrap(), expected, "head of {head}");
        }
    }
}

#[test]
fn every_cut_file_is_refused() {
    for file in
        [static_program(), dynamic_program("/lib/ld.so"), position_independent(Some(1)), elf32(EM_386)]
    {
        let header = if file[4] == 1 { 52 } else { file.len() };
        for length in 4..header {
            assert!(facts(&file[..length]).is_err(), "cut to {length} of {}", file.len());
        }
    }
}

#[test]
fn no_altered_byte_makes_it_panic() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for file in
        [static_program(), dynamic_program("/lib/ld.so"), position_independent(Some(1)), elf32(EM_386)]
    {
        for at in 4..file.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, next() as u8] {
                let mut altered = file.clone();
                altered[at] = value;
                let _ = facts(&altered);
            }
        }
        for _ in 0..20_000 {
            let mut altered = file.clone();
            for _ in 0..1 + next() % 6 {
                let at = 4 + next() as usize % (altered.len() - 4);
                altered[at] = next() as u8;
            }
            altered.truncate(4 + next() as usize % altered.len());
            let _ = inspect_with_head(&altered, next() as usize % 200);
        }
    }
}
