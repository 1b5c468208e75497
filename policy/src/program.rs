//! The layout of a filter program.
//!
//! ```text
//!   load arch; not ours: KILL_PROCESS      a call of another architecture is never let through
//!   load nr
//!   binary search over ranges of numbers   the kernel walks the program once for every number when it is
//!     └─ leaf: return, or jump to a chain  installed, and once a call that has arguments to check
//!   chains: one a call with restrictions: piece, piece, ..., final return
//! ```
//!
//! Numbers from 2^30 up are x32's on x86_64 (`__X32_SYSCALL_BIT`). They are the last range, and always a
//! violation: also where everything that is not named is allowed.

use crate::bpf::{self, Insn};
use crate::calls::Arch;

/// Rows of a table: more than any architecture has calls. Numbers above meet the default.
pub const TABLE: u32 = 512;
/// Where x32's numbers begin.
pub const X32_BIT: u32 = 0x4000_0000;

/// What becomes of a call number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// One value whatever the arguments are.
    Return(u32),
    /// The arguments decide: a chain of pieces.
    Chain,
}

/// Where a program comes from: a value for each number, and the chains.
pub trait Source {
    /// The architecture whose numbers are meant.
    fn arch(&self) -> Arch;
    /// What becomes of a number below [`TABLE`].
    fn entry(&self, number: u32) -> Entry;
    /// Writes the chain of a number whose entry is [`Entry::Chain`], ending in [`Program::finish`].
    fn chain(&self, number: u32, program: &mut Program);
    /// What becomes of the numbers from [`TABLE`] to x32's.
    fn beyond(&self) -> u32;
    /// What becomes of x32's numbers.
    fn violation(&self) -> u32;
}

/// A filter program, of at most [`bpf::MAX_INSNS`] instructions.
pub struct Program {
    insns: [Insn; bpf::MAX_INSNS],
    len: usize,
    overflow: bool,
}

/// The program has no room for the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

#[derive(Clone, Copy)]
struct Run {
    start: u32,
    entry: Entry,
}

/// Stands in a leaf, with the call number as its operand, until the place of the chain is known. Not an
/// operation of BPF.
const UNPLACED: u16 = 0xffff;
const RUNS: usize = TABLE as usize + 2;

impl Program {
    /// Lays the program out.
    pub fn build(source: &dyn Source) -> Result<Program, TooLong> {
        let mut program = Program {
            insns: [bpf::stmt(bpf::RET, bpf::RET_KILL_PROCESS); bpf::MAX_INSNS],
            len: 0,
            overflow: false,
        };
        program.push(bpf::stmt(bpf::LD, bpf::DATA_ARCH));
        program.push(bpf::jump(bpf::JEQ, source.arch().audit(), 1, 0));
        program.push(bpf::stmt(bpf::RET, bpf::RET_KILL_PROCESS));
        program.push(bpf::stmt(bpf::LD, bpf::DATA_NR));
        let (runs, count) = runs(source);
        program.search(&runs[..count]);
        program.place_chains(source);
        if program.overflow { Err(TooLong) } else { Ok(program) }
    }

    /// The instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns[..self.len]
    }

    fn push(&mut self, insn: Insn) {
        match self.insns.get_mut(self.len) {
            Some(slot) => {
                *slot = insn;
                self.len += 1;
            }
            None => self.overflow = true,
        }
    }

    /// A piece of a chain: where it matches, the call meets `value`; else the next piece is tried. In the
    /// piece, a return stands for "matches".
    pub fn piece(&mut self, code: &[Insn], value: u32) {
        for insn in code {
            self.push(if insn.code == bpf::RET { bpf::stmt(bpf::RET, value) } else { *insn });
        }
    }

    /// The end of a chain: what the call meets where no piece matched.
    pub fn finish(&mut self, value: u32) {
        self.push(bpf::stmt(bpf::RET, value));
    }

    fn search(&mut self, runs: &[Run]) {
        let [first, rest @ ..] = runs else { return };
        if rest.is_empty() {
            return self.push(match first.entry {
                Entry::Return(value) => bpf::stmt(bpf::RET, value),
                Entry::Chain => bpf::stmt(UNPLACED, first.start),
            });
        }
        let (left, right) = runs.split_at(runs.len() / 2);
        let Some(middle) = right.first() else { return };
        let skipped = size(left.len());
        match u8::try_from(skipped) {
            Ok(skipped) => self.push(bpf::jump(bpf::JGE, middle.start, skipped, 0)),
            Err(_) => {
                // Too far for a conditional jump.
                self.push(bpf::jump(bpf::JGE, middle.start, 0, 1));
                self.push(bpf::stmt(bpf::JA, skipped as u32));
            }
        }
        self.search(left);
        self.search(right);
    }

    fn place_chains(&mut self, source: &dyn Source) {
        for leaf in 0..self.len {
            if self.insns[leaf].code == UNPLACED {
                let number = self.insns[leaf].k;
                self.insns[leaf] = bpf::stmt(bpf::JA, (self.len - leaf - 1) as u32);
                source.chain(number, self);
            }
        }
    }
}

/// Instructions that a search over `runs` runs takes.
fn size(runs: usize) -> usize {
    if runs <= 1 {
        return runs;
    }
    let left = size(runs / 2);
    1 + usize::from(left > usize::from(u8::MAX)) + left + size(runs - runs / 2)
}

/// Consecutive numbers that meet the same value are one run. A call with a chain is a run of its own.
fn runs(source: &dyn Source) -> ([Run; RUNS], usize) {
    let mut runs = [Run { start: 0, entry: Entry::Return(source.beyond()) }; RUNS];
    let mut count = 0;
    let mut add = |start: u32, entry: Entry| {
        let same = count > 0 && entry != Entry::Chain && runs[count - 1].entry == entry;
        if !same && count < RUNS {
            runs[count] = Run { start, entry };
            count += 1;
        }
    };
    for number in 0..TABLE {
        add(number, source.entry(number));
    }
    add(TABLE, Entry::Return(source.beyond()));
    add(X32_BIT, Entry::Return(source.violation()));
    (runs, count)
}
