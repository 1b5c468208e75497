//! The machine that an ELF file is for.

use goblin::elf::header::{
    EM_386, EM_AARCH64, EM_ARM, EM_LOONGARCH, EM_MIPS, EM_PPC, EM_PPC64, EM_RISCV, EM_S390, EM_SPARC,
    EM_SPARCV9, EM_X86_64,
};

/// The machine of this program, and the 32-bit machine whose programs a 64-bit kernel runs as well.
pub(super) const NATIVE: u16 = if cfg!(target_arch = "x86_64") { EM_X86_64 } else { EM_AARCH64 };
const SHORT_PREDECESSOR: u16 = if cfg!(target_arch = "x86_64") { EM_386 } else { EM_ARM };

/// The 486: an unofficial number that a kernel treats as a 386.
const EM_486: u16 = 6;

/// Whether it is for the 32-bit machine that came before this one.
pub(super) fn is_short_predecessor(machine: u16) -> bool {
    machine == SHORT_PREDECESSOR || (SHORT_PREDECESSOR == EM_386 && machine == EM_486)
}

/// This machine's name, for messages.
pub(super) fn native_name() -> String {
    name(NATIVE, true)
}

/// The name by which people know a machine.
pub(super) fn name(machine: u16, little_endian: bool) -> String {
    let known = match machine {
        EM_386 | EM_486 => "i386",
        EM_X86_64 => "x86-64",
        EM_AARCH64 => "arm64",
        EM_ARM => "32-bit arm",
        EM_RISCV => "risc-v",
        EM_LOONGARCH => "loongarch",
        EM_PPC => "32-bit powerpc",
        EM_PPC64 => "powerpc64",
        EM_S390 => "s390",
        EM_MIPS => "mips",
        EM_SPARC => "sparc",
        EM_SPARCV9 => "sparc64",
        other => return format!("machine number {other}"),
    };
    let usually_big = matches!(machine, EM_PPC | EM_PPC64 | EM_S390 | EM_MIPS | EM_SPARC | EM_SPARCV9);
    match (usually_big, little_endian) {
        (true, true) => format!("{known}, little-endian"),
        (false, false) => format!("{known}, big-endian"),
        _ => known.to_owned(),
    }
}
