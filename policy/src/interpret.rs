//! Runs a filter program the way the kernel does: for the property tests, and to ask what another profile
//! would have said about a call.

use crate::bpf::{self, Insn};

/// `struct seccomp_data`, without the instruction pointer that no program of ours looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Call number.
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
            16..64 if offset.is_multiple_of(4) => {
                let argument = self.args[(offset as usize - 16) / 8];
                Some(if offset.is_multiple_of(8) { argument as u32 } else { (argument >> 32) as u32 })
            }
            _ => None,
        }
    }
}

/// What the program returns; `None` for a program that the kernel would not have taken.
pub fn run(program: &[Insn], data: &Data) -> Option<u32> {
    let (mut at, mut accumulator) = (0_usize, 0_u32);
    // Jumps only go forward, so this ends.
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
