//! Runs a filter program as the kernel does. The property tests use it, and the queries about the decision of another
//! profile.

use crate::bpf::{self, Insn};

/// `struct seccomp_data`, of a call that is made by a shared library: programs of sbx ask nothing else of the
/// instruction pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// System call number.
    pub nr: u32,
    /// `AUDIT_ARCH_*`.
    pub arch: u32,
    /// Arguments.
    pub args: [u64; 6],
}

impl Data {
    fn word(&self, offset: u32) -> Option<u32> {
        match offset {
            bpf::DATA_NR => Some(self.nr),
            bpf::DATA_ARCH => Some(self.arch),
            bpf::DATA_CODE_HIGH => Some(u32::MAX),
            16..64 if offset.is_multiple_of(4) => {
                let argument = self.args[(offset as usize - 16) / 8];
                Some(if offset.is_multiple_of(8) { argument as u32 } else { (argument >> 32) as u32 })
            }
            _ => None,
        }
    }
}

/// Whether a program lets a call through, noted or not.
pub fn lets_through(program: &[Insn], data: &Data) -> bool {
    matches!(run(program, data), Some(bpf::RET_ALLOW | bpf::RET_LOG))
}

/// The return value of the program; `None` for a program that the kernel would reject.
pub fn run(program: &[Insn], data: &Data) -> Option<u32> {
    let (mut at, mut accumulator) = (0_usize, 0_u32);
    // Jumps only lead forward, so the loop ends.
    loop {
        let insn = program.get(at)?;
        at += 1;
        let branch = |holds: bool| usize::from(if holds { insn.jt } else { insn.jf });
        match insn.code {
            bpf::LD => accumulator = data.word(insn.k)?,
            bpf::AND => accumulator &= insn.k,
            bpf::JA => at = at.checked_add(insn.k as usize)?,
            bpf::JEQ => at += branch(accumulator == insn.k),
            bpf::JGT => at += branch(accumulator > insn.k),
            bpf::JGE => at += branch(accumulator >= insn.k),
            bpf::JSET => at += branch(accumulator & insn.k != 0),
            bpf::RET => return Some(insn.k),
            _ => return None,
        }
    }
}
