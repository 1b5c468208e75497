//! What is kept of a stream: its head, its tail, and the number of bytes between them. Pure: no
//! descriptors.

use crate::text::byte_count;
use std::collections::TryReserveError;

/// A stream of which at most `cap` bytes are kept, half of them from its beginning.
pub struct Kept {
    head_left: u64,
    /// Holds the last bytes after the head: a ring, once it is full.
    tail: Vec<u8>,
    room: usize,
    /// The oldest byte of a full ring.
    oldest: usize,
    total: u64,
    left_out: u64,
    head_ends_line: bool,
}

impl Kept {
    /// Nothing yet.
    pub fn new(cap: u64) -> Kept {
        let head = cap / 2;
        let room = usize::try_from(cap - head).unwrap_or(usize::MAX);
        Kept {
            head_left: head,
            tail: Vec::new(),
            room,
            oldest: 0,
            total: 0,
            left_out: 0,
            head_ends_line: true,
        }
    }

    /// Takes the next bytes. Returns how many of them belong to the head, which is written at once.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, TryReserveError> {
        self.total += bytes.len() as u64;
        let count = usize::try_from(self.head_left).unwrap_or(usize::MAX).min(bytes.len());
        let (head, rest) = bytes.split_at(count);
        self.head_left -= count as u64;
        if let Some(last) = head.last() {
            self.head_ends_line = *last == b'\n';
        }
        self.remember(rest)?;
        Ok(count)
    }

    fn remember(&mut self, mut bytes: &[u8]) -> Result<(), TryReserveError> {
        let free = self.room - self.tail.len();
        if free > 0 {
            let (now, later) = bytes.split_at(free.min(bytes.len()));
            self.grow(now.len())?;
            self.tail.extend_from_slice(now);
            bytes = later;
        }
        self.left_out += bytes.len() as u64;
        // Of more than a whole ring, only the end stays.
        let skipped = bytes.len().saturating_sub(self.room);
        self.oldest = (self.oldest + skipped) % self.room.max(1);
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.room - self.oldest));
            self.tail[self.oldest..self.oldest + now.len()].copy_from_slice(now);
            self.oldest = (self.oldest + now.len()) % self.room;
            bytes = later;
        }
        Ok(())
    }

    /// Doubles, but never beyond what is kept at most.
    fn grow(&mut self, more: usize) -> Result<(), TryReserveError> {
        let (len, capacity) = (self.tail.len(), self.tail.capacity());
        if len + more > capacity {
            let wanted = (len + more).max(capacity.saturating_mul(2)).min(self.room);
            self.tail.try_reserve_exact(wanted - len)?;
        }
        Ok(())
    }

    /// Whether the head is complete: what comes next need not be written now.
    pub fn is_past_head(&self) -> bool {
        self.head_left == 0
    }

    /// How many bytes there were.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many bytes were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// What is written at the end: the line that says how much is missing, if anything is, and the tail.
    pub fn rest(&mut self) -> [Vec<u8>; 2] {
        let mut tail = std::mem::take(&mut self.tail);
        tail.rotate_left(if self.left_out > 0 { self.oldest } else { 0 });
        self.oldest = 0;
        let start = if self.head_ends_line { "" } else { "\n" };
        let marker = match self.left_out {
            0 => String::new(),
            count => format!("{start}[sbx: {} left out]\n", byte_count(count)),
        };
        [marker.into_bytes(), tail]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out when `input` goes in by pieces of this size.
    fn through(cap: u64, input: &[u8], piece: usize) -> (Vec<u8>, u64) {
        let mut kept = Kept::new(cap);
        let mut out = Vec::new();
        for bytes in input.chunks(piece) {
            let count = kept.take(bytes).unwrap();
            out.extend_from_slice(&bytes[..count]);
        }
        assert_eq!(kept.total(), input.len() as u64);
        out.extend(kept.rest().concat());
        (out, kept.left_out())
    }

    #[test]
    fn what_fits_comes_out_as_it_went_in() {
        let input: Vec<u8> = (0..=255).collect();
        for cap in [256, 257, 1000, u64::MAX] {
            for piece in [1, 7, 255, 256] {
                assert_eq!(through(cap, &input, piece), (input.clone(), 0));
            }
        }
    }

    #[test]
    fn of_more_head_and_tail_stay() {
        let input: Vec<u8> = (0..10_000_u32).map(|n| b'a' + (n % 23) as u8).collect();
        for cap in [1_u64, 2, 3, 10, 99, 4096, 9999] {
            for piece in [1, 3, 64, 5000, 10_000] {
                let (head, tail) = ((cap / 2) as usize, (cap - cap / 2) as usize);
                let left_out = 10_000 - cap;
                let start = if head == 0 { "" } else { "\n" };
                let mut expected = input[..head].to_vec();
                expected.extend(format!("{start}[sbx: {} left out]\n", byte_count(left_out)).bytes());
                expected.extend(&input[10_000 - tail..]);
                assert!(through(cap, &input, piece) == (expected, left_out), "cap {cap}, pieces of {piece}");
            }
        }
    }

    #[test]
    fn the_tail_takes_no_more_memory_than_it_may() {
        let mut kept = Kept::new(10_000);
        for _ in 0..1000 {
            kept.take(&[b'x'; 700]).unwrap();
            assert!(kept.tail.capacity() <= 5000);
        }
    }

    #[test]
    fn a_head_that_ends_a_line_needs_no_other() {
        let (out, _) = through(4, b"a\nbcdefg", 8);
        assert_eq!(out, b"a\n[sbx: 4 bytes left out]\nfg");
    }
}
