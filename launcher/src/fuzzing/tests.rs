//! The corpus, and changes of it: what a fuzzer does, in a second and the same each time.

use super::{Property, TARGETS};
use std::fs;
use std::path::Path;

/// Changes of each file of the corpus.
const CHANGES: u32 = 40;

/// xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort_unstable();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// A few bytes exchanged, taken out, put in, or taken from another file.
fn changed(bytes: &[u8], others: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const ODD: [&[u8]; 8] =
        [b"\0", b"\x1b", b"\xff", "\u{202e}".as_bytes(), b"\n", b"]", b"\"", b"18446744073709551616"];
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let from = random.below(bytes.len() + 1);
        let to = (from + random.below(8)).min(bytes.len());
        let other = &others[random.below(others.len())];
        let new = match random.below(4) {
            0 => Vec::new(),
            1 => ODD[random.below(ODD.len())].to_vec(),
            2 => vec![random.next() as u8],
            _ => other[random.below(other.len() + 1)..].iter().copied().take(random.below(40)).collect(),
        };
        bytes.splice(from..to, new);
    }
    bytes
}

fn hold(name: &str, property: Property) {
    let files = corpus(name);
    assert!(!files.is_empty(), "{name} has no corpus");
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for file in &files {
        property(file);
        (0..CHANGES).for_each(|_| property(&changed(file, &files, &mut random)));
    }
}

#[test]
fn every_property_holds_for_the_corpus_and_changes_of_it() {
    TARGETS.iter().for_each(|(name, property)| hold(name, *property));
}
