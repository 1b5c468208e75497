//! The layout of a filter program.
//!
//! ```text
//!   load arch; another: KILL_PROCESS       system calls of another architecture are never allowed
//!   load nr
//!   binary search over ranges of numbers   the kernel runs the program for every number when it is installed,
//!     ├─ exceptions: single numbers        and then for every system call whose arguments are checked
//!     └─ return, or jump to a chain
//!   returns: each value once               the time to install a program grows with its length
//!   chains: piece, piece, ..., final return; one for each system call with restrictions
//! ```
//!
//! On x86_64, the numbers from 2^30 up are those of x32 (`__X32_SYSCALL_BIT`). They are the last range and always a
//! violation, even if all unnamed system calls are allowed.

use crate::bpf::{self, Insn};
use crate::calls::Arch;

/// The number of rows of a table, which is more than any architecture has system calls. Higher numbers get the default.
pub const TABLE: u32 = 512;
/// The first number of x32.
pub const X32_BIT: u32 = 0x4000_0000;

/// The decision for a system call number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The same value for all arguments.
    Return(u32),
    /// The arguments decide: a chain of pieces.
    Chain,
}

/// The source of a program: a decision for each number, and the chains.
pub trait Source {
    /// The architecture of the numbers.
    fn arch(&self) -> Arch;
    /// The decision for each number below [`TABLE`].
    fn entries(&self) -> [Entry; TABLE as usize];
    /// Writes the chain of a number whose entry is [`Entry::Chain`], ending in [`Program::finish`].
    fn chain(&self, number: u32, program: &mut Program<'_>);
    /// The value for the numbers from [`TABLE`] up to those of x32.
    fn beyond(&self) -> u32;
    /// The value for the numbers of x32.
    fn violation(&self) -> u32;
}

/// A filter program in a buffer of the caller. Room for [`bpf::MAX_INSNS`] is always enough. Most programs need a
/// tenth of it, and memory that is not touched costs nothing.
pub struct Program<'b> {
    insns: &'b mut [Insn],
    len: usize,
    overflow: bool,
}

/// The rules do not fit into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

#[derive(Clone, Copy)]
struct Run {
    start: u32,
    entry: Entry,
}

/// Runs that the search does not tell apart: a single run, or several runs of the same value with single numbers
/// between them, the exceptions. Comparing a single number takes one instruction; searching for its two ends would
/// take two.
type Range = [Run];

/// The maximum number of exceptions of a range. They are compared one after the other.
const EXCEPTIONS: usize = 3;

/// Runs, and the first run of each range.
struct Ranges {
    runs: [Run; RUNS],
    starts: [u16; RUNS + 1],
    /// For each range, the number of instructions of the ranges before it, without the comparisons between them.
    sizes: [u16; RUNS + 1],
    count: usize,
}

/// Not an operation of BPF: marks a leaf whose chain has no place yet. The operand is the system call number.
const UNPLACED: u16 = 0xffff;
const RUNS: usize = TABLE as usize + 2;
/// The largest search in which every comparison reaches the returns behind it (up to 75) with a conditional jump.
const BLOCK: usize = 180;

/// Comparisons that lead to a return: the place, the outcome, and the returned value.
struct Exits {
    list: [(u16, bool, u32); 2 * BLOCK],
    len: usize,
}

impl<'b> Program<'b> {
    /// Lays out the program.
    pub fn build(source: &dyn Source, buffer: &'b mut [Insn]) -> Result<Program<'b>, TooLong> {
        let mut program = Program { insns: buffer, len: 0, overflow: false };
        program.push(bpf::stmt(bpf::LD, bpf::DATA_ARCH));
        program.push(bpf::jump(bpf::JEQ, source.arch().audit(), 1, 0));
        program.push(bpf::stmt(bpf::RET, bpf::RET_KILL_PROCESS));
        program.push(bpf::stmt(bpf::LD, bpf::DATA_NR));
        let ranges = Ranges::new(source);
        program.block(&ranges, 0..ranges.count);
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

    /// Appends a piece of a chain. If the piece matches, `value` is returned; if not, the next piece is tried. A
    /// return in the piece means that it matches.
    pub fn piece(&mut self, code: &[Insn], value: u32) {
        for insn in code {
            self.push(if insn.code == bpf::RET { bpf::stmt(bpf::RET, value) } else { *insn });
        }
    }

    /// Ends a chain with the value that is returned if no piece matched.
    pub fn finish(&mut self, value: u32) {
        self.push(bpf::stmt(bpf::RET, value));
    }

    /// Writes a search and its returns, each value once. A search that is too large is split in two.
    fn block(&mut self, ranges: &Ranges, part: core::ops::Range<usize>) {
        if ranges.size(part.clone()) > BLOCK {
            let (left, right) = halves(part);
            self.push(bpf::jump(bpf::JGE, ranges.start(right.start), 0, 1));
            let skip = self.len;
            self.push(bpf::stmt(bpf::JA, 0));
            self.block(ranges, left);
            let skipped = self.len.saturating_sub(skip + 1);
            if let Some(jump) = self.insns.get_mut(skip) {
                jump.k = skipped as u32;
            }
            return self.block(ranges, right);
        }
        let mut exits = Exits { list: [(0, false, 0); 2 * BLOCK], len: 0 };
        match ranges.value(&part) {
            Some(value) => self.finish(value),
            None => self.search(ranges, part, &mut exits),
        }
        self.place_returns(&exits);
    }

    fn search(&mut self, ranges: &Ranges, part: core::ops::Range<usize>, exits: &mut Exits) {
        if part.len() == 1 {
            return self.except(ranges.range(part.start), exits);
        }
        let (left, right) = halves(part);
        let here = self.len;
        // At most BLOCK, like the whole search.
        let distance = ranges.size(left.clone()) as u8;
        self.push(bpf::jump(bpf::JGE, ranges.start(right.start), distance, 0));
        for (side, holds) in [(left, false), (right, true)] {
            match ranges.value(&side) {
                Some(value) => exits.add(here, holds, value),
                None => self.search(ranges, side, exits),
            }
        }
    }

    /// Writes the exceptions of a range, and the value for its other numbers.
    fn except(&mut self, range: &Range, exits: &mut Exits) {
        let [first, rest @ ..] = range else { return };
        let Entry::Return(value) = first.entry else {
            return self.push(bpf::stmt(UNPLACED, first.start));
        };
        let mut last = self.len;
        for exception in rest.iter().step_by(2) {
            last = self.len;
            match exception.entry {
                Entry::Return(other) => {
                    self.push(bpf::jump(bpf::JEQ, exception.start, 0, 0));
                    exits.add(last, true, other);
                }
                Entry::Chain => {
                    self.push(bpf::jump(bpf::JEQ, exception.start, 0, 1));
                    self.push(bpf::stmt(UNPLACED, exception.start));
                }
            }
        }
        exits.add(last, false, value);
    }

    fn place_returns(&mut self, exits: &Exits) {
        let first = self.len;
        for (from, holds, value) in exits.list.iter().take(exits.len) {
            let placed =
                self.insns.get(first..self.len).unwrap_or(&[]).iter().position(|insn| insn.k == *value);
            let place = first + placed.unwrap_or(self.len - first);
            if placed.is_none() {
                self.finish(*value);
            }
            let from = usize::from(*from);
            match (u8::try_from(place.saturating_sub(from + 1)), self.insns.get_mut(from)) {
                (Ok(distance), Some(insn)) if *holds => insn.jt = distance,
                (Ok(distance), Some(insn)) => insn.jf = distance,
                _ => self.overflow = true,
            }
        }
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

impl Exits {
    fn add(&mut self, from: usize, holds: bool, value: u32) {
        if let Some(slot) = self.list.get_mut(self.len) {
            *slot = (from as u16, holds, value);
            self.len += 1;
        }
    }
}

fn halves(part: core::ops::Range<usize>) -> (core::ops::Range<usize>, core::ops::Range<usize>) {
    let middle = part.start + part.len() / 2;
    (part.start..middle, middle..part.end)
}

impl Ranges {
    fn new(source: &dyn Source) -> Ranges {
        let none = Run { start: 0, entry: Entry::Return(source.beyond()) };
        let mut ranges = Ranges { runs: [none; RUNS], starts: [0; RUNS + 1], sizes: [0; RUNS + 1], count: 0 };
        let runs = fill(&mut ranges.runs, source);
        let mut next = 0;
        while next < runs {
            let (len, size) = range_of(&ranges.runs[next..runs]);
            next += len;
            let count = ranges.count;
            ranges.starts[count + 1] = next as u16;
            ranges.sizes[count + 1] = ranges.sizes[count] + size;
            ranges.count += 1;
        }
        ranges
    }

    fn range(&self, number: usize) -> &Range {
        let [from, to] =
            [number, number + 1].map(|at| self.starts.get(at).map_or(0, |start| usize::from(*start)));
        self.runs.get(from..to).unwrap_or(&[])
    }

    fn start(&self, number: usize) -> u32 {
        self.range(number).first().map_or(0, |run| run.start)
    }

    /// The value for all numbers of a part, if it is the same.
    fn value(&self, part: &core::ops::Range<usize>) -> Option<u32> {
        if part.len() != 1 {
            return None;
        }
        match self.range(part.start) {
            [Run { entry: Entry::Return(value), .. }] => Some(*value),
            _ => None,
        }
    }

    /// The number of instructions of a search without its returns: a comparison between each two ranges, one for each
    /// exception, and a jump to each chain.
    fn size(&self, part: core::ops::Range<usize>) -> usize {
        let [before, with] =
            [part.start, part.end].map(|at| self.sizes.get(at).map_or(0, |n| usize::from(*n)));
        part.len().saturating_sub(1) + with.saturating_sub(before)
    }
}

/// The number of runs in the range of the first run, and the number of its instructions.
fn range_of(runs: &[Run]) -> (usize, u16) {
    let chain = |run: &Run| u16::from(run.entry == Entry::Chain);
    let Some(first) = runs.first() else { return (1, 0) };
    let (mut len, mut size) = (1, chain(first));
    while let Some([single, after]) = runs.get(len..len + 2) {
        let alike = first.entry != Entry::Chain && after.entry == first.entry;
        if !alike || after.start != single.start + 1 || len > 2 * EXCEPTIONS {
            break;
        }
        len += 2;
        size += 1 + chain(single);
    }
    (len, size)
}

/// Builds a program in memory of its own. Most fit into the first buffer.
#[cfg(any(feature = "std", test))]
pub fn assemble(source: &dyn Source) -> Result<Vec<Insn>, TooLong> {
    let empty = bpf::stmt(bpf::RET, bpf::RET_KILL_PROCESS);
    for room in [512, bpf::MAX_INSNS] {
        let mut buffer = vec![empty; room];
        if let Ok(Program { len, .. }) = Program::build(source, &mut buffer) {
            buffer.truncate(len);
            return Ok(buffer);
        }
    }
    Err(TooLong)
}

/// Joins consecutive numbers with the same value into runs. A system call with a chain is a run of its own.
fn fill(runs: &mut [Run; RUNS], source: &dyn Source) -> usize {
    let mut count = 0;
    let mut add = |start: u32, entry: Entry| {
        let same = count > 0 && entry != Entry::Chain && runs[count - 1].entry == entry;
        if !same && count < RUNS {
            runs[count] = Run { start, entry };
            count += 1;
        }
    };
    for (number, entry) in source.entries().into_iter().enumerate() {
        add(number as u32, entry);
    }
    add(TABLE, Entry::Return(source.beyond()));
    add(X32_BIT, Entry::Return(source.violation()));
    count
}
