//! The format of an index (gitformat-index(5)), read as git reads it and piece by piece: where nothing is written, a
//! file of any length takes no room on a disk, and must take none in memory.

use crate::run::aftermath::repository::MOST_NAMED;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

/// Longest index that is read, in bytes. Nothing is believed of what is left.
const LONGEST: u64 = 1 << 29;
/// Longest path, and how many bytes of a path are named.
const LONGEST_PATH: usize = 0xffff;
const NAMED: usize = 4096;
/// In version 4 an entry of a few bytes repeats a path of any length. As many times an index's length are followed.
const MOST_REPEATED: u64 = 16;
/// Largest table by which git finds entries: it has a block for each thread.
const MOST_BLOCKS: usize = 4096;
/// The lengths of object names.
pub const SHA1: usize = 20;
pub const SHA256: usize = 32;
const SIGNATURE: &[u8; 4] = b"DIRC";
/// Signature, version, number of entries.
const HEADER: usize = 12;
/// Times, device, inode, mode, owner and size of a file, before its object name.
const STAT: usize = 40;
/// Where the mode is in that.
const MODE: usize = 24;
const OF_DIRECTORY: u32 = 0o040_000;
const OF_SUBMODULE: u32 = 0o160_000;
const OF_KIND: u32 = 0o170_000;
/// Flags of an entry: there are more of them; the length of the name, all bits of which mean "or longer".
const EXTENDED: u16 = 0x4000;
const LENGTH: u16 = 0x0fff;
/// Tables by which git finds entries without reading those before.
const TABLE: &[u8] = b"IEOT";
const END: &[u8] = b"EOIE";
/// Names the file with the shared entries.
const SPLIT: &[u8] = b"link";
const READ_AT_ONCE: usize = 64 * 1024;
/// Name and length of what comes after the entries.
const NAME_AND_LENGTH: usize = 8;

/// An index that is read.
pub struct Text<'l, R> {
    file: BufReader<R>,
    at: u64,
    length: u64,
    /// How much may be read.
    left: &'l mut u64,
    /// Whether a directory, of which git takes what is in it from elsewhere, leads away.
    leads_away: &'l dyn Fn(Inner, &[u8]) -> bool,
}

/// What stands for a directory in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// A submodule, which git goes into.
    Submodule,
    /// A directory that is not checked out. git finds in an object what would be in it, submodules too.
    Sparse,
}

impl Inner {
    fn of(mode: u32) -> Option<Inner> {
        match mode & OF_KIND {
            OF_SUBMODULE => Some(Inner::Submodule),
            OF_DIRECTORY => Some(Inner::Sparse),
            _ => None,
        }
    }
}

/// What is not the path.
struct Entry {
    mode: u32,
    start: u64,
    /// Its path does not continue the one before.
    is_whole: bool,
}

/// The entries as they are there.
struct Entries {
    odd: Vec<Vec<u8>>,
    /// Whether some have no path.
    has_nameless: bool,
    end: u64,
}

/// What comes after them.
#[derive(Default)]
struct Rest {
    table: Option<Vec<Block>>,
    is_split: bool,
}

/// Where a block of entries begins, and how many there are.
struct Block {
    offset: u32,
    count: u32,
}

/// A table that entries are held against.
struct Table<'b> {
    blocks: &'b [Block],
    /// The number of the entry with which the next block begins.
    due: u64,
}

impl Table<'_> {
    /// Whether a block begins with this entry, or none does.
    fn has(&mut self, number: u64, entry: &Entry) -> bool {
        while let Some((block, rest)) = self.blocks.split_first().filter(|_| self.due == number) {
            if u64::from(block.offset) != entry.start || !entry.is_whole {
                return false;
            }
            self.due += u64::from(block.count);
            self.blocks = rest;
        }
        true
    }
}

impl<'l, R: Read + Seek> Text<'l, R> {
    /// One that nothing was read of. `left` is how many bytes may be.
    pub fn new(mut file: R, left: &'l mut u64) -> Option<Text<'l, R>> {
        let length = file.seek(SeekFrom::End(0)).ok()?;
        let file = BufReader::with_capacity(READ_AT_ONCE, file);
        Some(Text { file, at: length, length, left, leads_away: &|_, _| false })
    }

    /// The same, with what tells whether a directory leads away.
    pub fn with_links(self, leads_away: &'l dyn Fn(Inner, &[u8]) -> bool) -> Text<'l, R> {
        Text { leads_away, ..self }
    }

    /// The odd entries of an index, if it is odd.
    pub fn judge(&mut self, hashes: &[usize]) -> Option<Vec<Vec<u8>>> {
        let mut signature = [0; SIGNATURE.len()];
        // git stops there.
        if self.length < SIGNATURE.len() as u64 {
            return None;
        }
        if self.go(0).and_then(|()| self.exact(&mut signature)).is_some() && signature != *SIGNATURE {
            return None;
        }
        let readings: Vec<_> =
            hashes.iter().filter_map(|hash| self.odd_paths(*hash, hashes.len() == 1)).collect();
        let is_odd = readings.is_empty() || readings.iter().any(|odd| !odd.is_empty());
        is_odd.then(|| readings.into_iter().flatten().take(MOST_NAMED).collect())
    }

    /// The paths that git never writes, if object names are as long as that: where that is not sure, the rest tells.
    /// `None` where git would not read it, or not all readers see the same.
    fn odd_paths(&mut self, hash: usize, is_sure: bool) -> Option<Vec<Vec<u8>>> {
        let last = self.length.checked_sub(hash as u64).filter(|_| self.length <= LONGEST)?;
        let found = self.entries(hash, None, is_sure)?;
        // No more are named.
        if is_sure && found.odd.len() == MOST_NAMED {
            return Some(found.odd);
        }
        let rest = self.rest(found.end, last, hash)?;
        // One without a path takes the place of a shared one.
        if found.has_nameless && !rest.is_split {
            return Some(vec![Vec::new()]);
        }
        match rest.table {
            Some(blocks) => self.entries(hash, Some(&blocks), false).map(|found| found.odd),
            None => Some(found.odd),
        }
    }

    /// Reads all entries, and holds them against a table.
    fn entries(&mut self, hash: usize, blocks: Option<&[Block]>, stops: bool) -> Option<Entries> {
        let mut header = [0; HEADER];
        self.go(0)?;
        self.exact(&mut header)?;
        let (version, count) = (number(&header, 4)?, number(&header, 8).map(u64::from)?);
        if !(2..=4).contains(&version) {
            return None;
        }
        let mut table = blocks.map(|blocks| Table { blocks, due: 0 });
        let (mut odd, mut path, mut followed) = (Vec::new(), Vec::new(), 0_u64);
        let mut has_nameless = false;
        for number in 0..count {
            let entry = self.entry(hash, version == 4, &mut path)?;
            followed = followed.saturating_add(path.len() as u64);
            if path.len() > LONGEST_PATH || followed > self.length.saturating_mul(MOST_REPEATED) {
                return None;
            }
            if table.as_mut().is_some_and(|table| !table.has(number, &entry)) {
                return None;
            }
            has_nameless |= path.is_empty();
            let leads_away = |inner| (self.leads_away)(inner, &path);
            let is_odd = || is_odd(&path, entry.mode) || Inner::of(entry.mode).is_some_and(leads_away);
            if odd.len() < MOST_NAMED && !path.is_empty() && is_odd() {
                odd.push(path.iter().take(NAMED).copied().collect());
            }
            if stops && odd.len() == MOST_NAMED {
                break;
            }
        }
        let is_all = |table: &Table<'_>| table.blocks.is_empty() && table.due == count;
        table.as_ref().is_none_or(is_all).then_some(Entries { odd, has_nameless, end: self.at })
    }

    /// Reads one, and makes `path` that of the entry from that of the one before.
    fn entry(&mut self, hash: usize, is_short: bool, path: &mut Vec<u8>) -> Option<Entry> {
        let start = self.at;
        let mut fixed = [0; STAT + SHA256 + 2];
        let fixed = fixed.get_mut(..STAT + hash + 2)?;
        self.exact(fixed)?;
        let mode = number(fixed, MODE)?;
        let bits = u16::from_be_bytes(fixed.get(STAT + hash..)?.try_into().ok()?);
        if bits & EXTENDED != 0 {
            self.exact(&mut [0; 2])?;
        }
        let kept = if is_short { path.len().checked_sub(self.varint()?)? } else { 0 };
        path.truncate(kept);
        let end = match bits & LENGTH {
            LENGTH => self.until_zero(path)?,
            length => {
                path.resize(usize::from(length).max(kept), 0);
                // Longer than it may be where more is kept.
                (path.len() == usize::from(length)).then_some(())?;
                self.exact(path.get_mut(kept..)?)?;
                self.at
            }
        };
        // Zeros up to a multiple of eight, or only one.
        let length = end - start;
        let next = start + if is_short { length + 1 } else { (length + 8) & !7 };
        let rest = usize::try_from(next.checked_sub(self.at)?).ok()?;
        self.exact([0; 8].get_mut(..rest)?)?;
        Some(Entry { mode, start, is_whole: kept == 0 })
    }

    /// Appends what there is before a zero, and returns where that is.
    fn until_zero(&mut self, path: &mut Vec<u8>) -> Option<u64> {
        let most = (LONGEST_PATH as u64 + 1).min(*self.left);
        let read = self.file.by_ref().take(most).read_until(0, path).ok()? as u64;
        self.at += read;
        *self.left -= read;
        (path.pop() == Some(0)).then_some(self.at - 1)
    }

    /// A number of some bytes, as in the offsets of packs.
    fn varint(&mut self) -> Option<usize> {
        let mut next = || {
            let mut byte = [0];
            self.exact(&mut byte)?;
            Some(byte[0])
        };
        let mut byte = next()?;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = next()?;
            value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        }
        Some(value)
    }

    /// What comes after the entries, which end at `end`. `None` where it is not as git writes it: git goes by the
    /// tables in it with several threads.
    fn rest(&mut self, end: u64, last: u64, hash: usize) -> Option<Rest> {
        let mut named = [0; NAME_AND_LENGTH + 4];
        if let Some(at) = last.checked_sub((named.len() + hash) as u64) {
            self.go(at)?;
            self.exact(&mut named)?;
            if named.starts_with(END) && number(&named, NAME_AND_LENGTH).map(u64::from) != Some(end) {
                return None;
            }
        }
        self.go(end)?;
        let mut rest = Rest::default();
        while self.at + NAME_AND_LENGTH as u64 <= last {
            let mut head = [0; NAME_AND_LENGTH];
            self.exact(&mut head)?;
            let size = u64::from(number(&head, 4)?);
            let next = self.at + size;
            if head.starts_with(TABLE) {
                // Readers may not take the same of two.
                rest.table = Some(self.blocks(size).filter(|_| rest.table.is_none())?);
            }
            rest.is_split |= head.starts_with(SPLIT);
            self.go(next)?;
        }
        (self.at == last).then_some(rest)
    }

    /// The blocks of a table.
    fn blocks(&mut self, size: u64) -> Option<Vec<Block>> {
        let blocks = usize::try_from(size.checked_sub(4)?).ok()?;
        if !blocks.is_multiple_of(8) || blocks / 8 > MOST_BLOCKS {
            return None;
        }
        let mut version = [0; 4];
        self.exact(&mut version)?;
        let mut block = || {
            let mut block = [0; 8];
            self.exact(&mut block)?;
            Some(Block { offset: number(&block, 0)?, count: number(&block, 4)? })
        };
        (0..blocks / 8).map(|_| block()).collect()
    }

    fn exact(&mut self, bytes: &mut [u8]) -> Option<()> {
        let count = bytes.len() as u64;
        *self.left = self.left.checked_sub(count)?;
        self.file.read_exact(bytes).ok()?;
        self.at += count;
        Some(())
    }

    fn go(&mut self, to: u64) -> Option<()> {
        let way = i64::try_from(to).ok()? - i64::try_from(self.at).ok()?;
        self.file.seek_relative(way).ok()?;
        self.at = to;
        Some(())
    }
}

/// Whether git would refuse to add a path. Only what stands for a directory ends in a slash.
pub fn is_odd(path: &[u8], mode: u32) -> bool {
    let path = if mode == OF_DIRECTORY { path.strip_suffix(b"/").unwrap_or(path) } else { path };
    let is_odd_name = |name: &[u8]| {
        matches!(name, b"" | b"." | b"..") || name.eq_ignore_ascii_case(b".git") || name.contains(&0)
    };
    path.split(|byte| *byte == b'/').any(is_odd_name)
}

fn number(text: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(text.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
