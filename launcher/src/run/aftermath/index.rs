//! The index of a repository: what git takes for the files of the working tree. Commands may write it, for `git add`
//! does. git looks at paths when it adds them, and not when it reads them again. So a written index can lead git into
//! a repository in `.git` or anywhere on the machine, and have it write into `.git/hooks`.
//!
//! It is read as git reads it (gitformat-index(5)). What git never writes is odd.

use super::repository::{COMMON, MOST_NAMED, MOST_WORKTREES};
use crate::plan::namespaces::git_config::LONGEST as LONGEST_CONFIG;
use crate::plan::namespaces::placeholder::is_link;
use crate::plan::namespaces::{CONFIG, Setting, Settings};
use crate::sys::SyscallError;
use crate::sys::beneath::Directory;
use crate::sys::path::says_missing;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Longest index that is read, in bytes, and what is read at most of all that one look meets. Nothing is believed of
/// what is left.
const LONGEST: u64 = 1 << 29;
pub const MOST_READ: u64 = 1 << 30;
/// Longest path, and how many bytes of a path are named.
const LONGEST_PATH: usize = 0xffff;
const NAMED: usize = 4096;
/// In version 4 an entry of a few bytes repeats a path of any length. As many times an index's length are followed.
const MOST_REPEATED: usize = 16;
/// The lengths of object names.
const SHA1: usize = 20;
const SHA256: usize = 32;
const SIGNATURE: &[u8] = b"DIRC";
/// Signature, version, number of entries.
const HEADER: usize = 12;
/// Times, device, inode, mode, owner and size of a file, before its object name.
const STAT: usize = 40;
/// Where the mode is in that.
const MODE: usize = 24;
const OF_DIRECTORY: u32 = 0o040_000;
/// Flags of an entry: there are more of them; the length of the name, all bits of which mean "or longer".
const EXTENDED: u16 = 0x4000;
const LENGTH: u16 = 0x0fff;
/// Tables by which git finds entries without reading those before.
const TABLE: &[u8] = b"IEOT";
const END: &[u8] = b"EOIE";

/// An index that git outside should not read.
pub struct Odd {
    /// Its path from the repository.
    pub place: PathBuf,
    /// The paths in it that git never writes; empty where it cannot be read.
    pub entries: Vec<Vec<u8>>,
}

/// What was found of the indexes of a repository and its linked worktrees.
#[derive(Default)]
pub struct Found {
    /// The odd ones of those that have changed.
    pub odd: Vec<Odd>,
    /// Whether any has.
    pub has_new: bool,
}

/// Looks at those that have changed `since`. `left` is how many bytes may be read.
pub fn find(own: &Directory, since: SystemTime, left: &mut u64) -> Found {
    let hashes = hashes(own);
    let mut found = Found::default();
    found.look_into(own, Path::new(""), hashes, since, left);
    let all = Path::new("worktrees");
    let worktrees = own.below(all).and_then(|all| all.names()).unwrap_or_default();
    for place in worktrees.iter().take(MOST_WORKTREES).map(|name| all.join(name)) {
        if let Ok(worktree) = own.below(&place) {
            found.look_into(&worktree, &place, hashes, since, left);
        }
    }
    found
}

/// How long the names of objects may be in a repository.
fn hashes(own: &Directory) -> &'static [usize] {
    let names_it = |setting: &&Setting| setting.parts() == Some((b"extensions", None, b"objectformat"));
    let text = own.read(CONFIG.as_ref(), LONGEST_CONFIG).ok().flatten();
    let settings = text.and_then(|text| Settings::of(&text).collect::<Result<Vec<_>, _>>().ok());
    // Somewhere else.
    let Some(settings) = settings.filter(|_| !own.has(COMMON)) else { return &[SHA1, SHA256] };
    let last = settings.iter().rfind(names_it);
    let value = last.and_then(|setting| setting.value.as_deref());
    if value.is_some_and(|value| value.eq_ignore_ascii_case(b"sha256")) { &[SHA256] } else { &[SHA1] }
}

impl Found {
    fn look_into(
        &mut self,
        directory: &Directory,
        place: &Path,
        hashes: &[usize],
        since: SystemTime,
        left: &mut u64,
    ) {
        // Where core.splitIndex is set, most entries are in another file.
        let is_index = |name: &OsString| name == "index" || name.as_bytes().starts_with(b"sharedindex.");
        let names = directory.names().unwrap_or_else(|_| vec!["index".into()]);
        for name in names.into_iter().filter(|name| is_index(name) && is_new(directory, name, since)) {
            self.has_new = true;
            let entries = match read(directory, &name, left) {
                Ok(Some(text)) => judge(&text, hashes),
                Ok(None) => None,
                Err(_) => Some(Vec::new()),
            };
            self.odd.extend(entries.map(|entries| Odd { place: place.join(name), entries }));
        }
    }
}

/// The text of one; `None` if git would stop at its beginning.
fn read(directory: &Directory, name: &OsStr, left: &mut u64) -> Result<Option<Vec<u8>>, SyscallError> {
    if directory.beginning(name, SIGNATURE.len() as u64)?.is_none_or(|text| text != SIGNATURE) {
        return Ok(None);
    }
    let text = directory.read(name, LONGEST.min(*left))?;
    *left = left.saturating_sub(text.as_ref().map_or(0, |text| text.len() as u64));
    Ok(text)
}

/// Whether one is there that has changed.
fn is_new(directory: &Directory, name: &OsStr, since: SystemTime) -> bool {
    match directory.ages(name) {
        // What a link leads to changes without it.
        Ok(ages) => ages.changed >= since || is_link(directory.as_fd(), name),
        Err(failed) => !says_missing(&failed.cause),
    }
}

/// The odd entries of an index, if it is odd.
fn judge(text: &[u8], hashes: &[usize]) -> Option<Vec<Vec<u8>>> {
    // git stops there.
    if text.get(..SIGNATURE.len()) != Some(SIGNATURE) {
        return None;
    }
    let readings: Vec<_> = hashes.iter().filter_map(|hash| odd_paths(text, *hash)).collect();
    let is_odd = readings.is_empty() || readings.iter().any(|odd| !odd.is_empty());
    is_odd.then(|| readings.into_iter().flatten().take(MOST_NAMED).collect())
}

/// The paths that git never writes; `None` where git would not read it, or not all readers see the same.
fn odd_paths(text: &[u8], hash: usize) -> Option<Vec<Vec<u8>>> {
    let version = number(text, 4)?;
    let count = usize::try_from(number(text, 8)?).ok()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let (mut odd, mut followed) = (Vec::new(), 0_usize);
    // Where each entry begins, and whether it does without the one before.
    let mut starts = Vec::new();
    let (mut at, mut path) = (HEADER, Vec::new());
    for _ in 0..count {
        let entry = Entry::read(text, at, hash, version == 4, &mut path)?;
        starts.push((at, entry.is_whole));
        followed = followed.saturating_add(path.len());
        if path.len() > LONGEST_PATH || followed > text.len().saturating_mul(MOST_REPEATED) {
            return None;
        }
        if odd.len() < MOST_NAMED && is_odd(&path, entry.mode) {
            odd.push(path.iter().take(NAMED).copied().collect());
        }
        at += entry.length;
    }
    agree(text, at, hash, &starts).then_some(odd)
}

/// What is not the path.
struct Entry {
    mode: u32,
    length: usize,
    /// Its path does not continue the one before.
    is_whole: bool,
}

impl Entry {
    /// Reads one, and makes `path` that of the entry from that of the one before.
    fn read(text: &[u8], start: usize, hash: usize, is_short: bool, path: &mut Vec<u8>) -> Option<Entry> {
        let mode = number(text, start + MODE)?;
        let flags = start + STAT + hash;
        let bits = u16::from_be_bytes(text.get(flags..flags + 2)?.try_into().ok()?);
        let mut name = flags + if bits & EXTENDED == 0 { 2 } else { 4 };
        let mut kept = 0;
        let before = path.len();
        if is_short {
            kept = before.checked_sub(varint(text, &mut name)?)?;
        }
        let length = match bits & LENGTH {
            LENGTH => kept + text.get(name..)?.iter().position(|byte| *byte == 0)?,
            length => usize::from(length),
        };
        let rest = text.get(name..name + length.checked_sub(kept)?)?;
        path.truncate(kept);
        path.extend_from_slice(rest);
        let end = name + rest.len() - start;
        // Zeros up to a multiple of eight, or only one.
        let length = if is_short { end + 1 } else { (end + 8) & !7 };
        (start + length <= text.len()).then_some(Entry { mode, length, is_whole: kept == 0 })
    }
}

/// Whether the tables say of the entries, which end at `end`, what is there. git goes by them with several threads.
fn agree(text: &[u8], end: usize, hash: usize, starts: &[(usize, bool)]) -> bool {
    let Some(last) = text.len().checked_sub(hash).filter(|last| end <= *last) else { return false };
    let of_end = last.checked_sub(8 + 4 + hash).filter(|at| text.get(*at..at + 4) == Some(END));
    let names_end = |at: usize| number(text, at + 8).is_some_and(|named| named as usize == end);
    if of_end.is_some_and(|at| !names_end(at)) {
        return false;
    }
    let mut at = end;
    while at + 8 <= last {
        let Some(size) = number(text, at + 4).map(|size| size as usize) else { return false };
        let Some(data) = text.get(at + 8..at + 8 + size) else { return false };
        if text.get(at..at + 4) == Some(TABLE) && !is_table_of(data, starts) {
            return false;
        }
        at += 8 + size;
    }
    at == last
}

/// Whether a table has the beginnings of blocks that make up all entries.
fn is_table_of(data: &[u8], starts: &[(usize, bool)]) -> bool {
    let (blocks, rest) = data.get(4..).unwrap_or_default().as_chunks::<8>();
    let mut next = 0;
    for block in blocks {
        let (Some(offset), Some(count)) = (number(block, 0), number(block, 4)) else { return false };
        if !starts.get(next).is_some_and(|(start, is_whole)| *start == offset as usize && *is_whole) {
            return false;
        }
        next += count as usize;
    }
    rest.is_empty() && next == starts.len()
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

/// A number of some bytes, as in the offsets of packs.
fn varint(text: &[u8], at: &mut usize) -> Option<usize> {
    let mut next = || {
        let byte = *text.get(*at)?;
        *at += 1;
        Some(byte)
    };
    let mut byte = next()?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next()?;
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 0x7f);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index of version 2 or 4 with these modes and paths, and more before the checksum.
    fn index(version: u32, hash: usize, entries: &[(u32, &[u8])], more: &[u8]) -> Vec<u8> {
        let count = u32::try_from(entries.len()).unwrap();
        let mut text = [SIGNATURE, &version.to_be_bytes(), &count.to_be_bytes()].concat();
        let mut before = 0;
        for (mode, path) in entries {
            let start = text.len();
            text.extend([[0; MODE].as_slice(), &mode.to_be_bytes(), &[0; STAT - MODE - 4]].concat());
            text.extend(vec![7; hash]);
            text.extend(u16::try_from(path.len()).unwrap().min(LENGTH).to_be_bytes());
            if version == 4 {
                text.extend(offset(before));
                before = path.len();
            }
            text.extend_from_slice(path);
            let zeros = if version == 4 { 1 } else { 8 - (text.len() - start) % 8 };
            text.extend(vec![0; zeros]);
        }
        [text, more.to_vec(), vec![9; hash]].concat()
    }

    /// A number as in version 4: here all of the path before.
    fn offset(number: usize) -> Vec<u8> {
        let last = u8::try_from(number & 0x7f).unwrap();
        match number >> 7 {
            0 => vec![last],
            rest => [vec![u8::try_from(rest - 1).unwrap() | 0x80], vec![last]].concat(),
        }
    }

    fn extension(name: &[u8], data: &[u8]) -> Vec<u8> {
        [name, &u32::try_from(data.len()).unwrap().to_be_bytes(), data].concat()
    }

    #[test]
    fn paths_that_git_never_adds_are_found() {
        const FILE: u32 = 0o100_644;
        const LINK: u32 = 0o160_000;
        for version in [2, 4] {
            for hash in [SHA1, SHA256] {
                let judge = |entries: &[(u32, &[u8])]| judge(&index(version, hash, entries, b""), &[hash]);
                assert_eq!(judge(&[]), None);
                assert_eq!(judge(&[(FILE, b".gitignore"), (FILE, b"a/b.git"), (LINK, b"a/sub")]), None);
                assert_eq!(judge(&[(FILE, &[b'x'; 0x1234][..]), (OF_DIRECTORY, b"sparse/")]), None);
                for path in
                    [&b".git/x"[..], b"/x", b"../x", b"a/../x", b"a//x", b"a/.GIT/x", b"a/", b"a\0b", b".git"]
                {
                    let odd = judge(&[(FILE, b"plain"), (LINK, path), (FILE, b"z")]);
                    assert_eq!(odd, Some(vec![path.to_vec()]), "{path:?} {version} {hash}");
                }
            }
        }
    }

    /// In version 4 an entry may keep all of the path before it.
    #[test]
    fn a_path_that_is_repeated_takes_no_memory_and_little_time() {
        let of = |length: usize, count: usize| {
            let path = [b".git/".to_vec(), vec![b'x'; length]].concat();
            let mut text =
                [SIGNATURE, &4_u32.to_be_bytes(), &u32::try_from(count).unwrap().to_be_bytes()].concat();
            for number in 0..count {
                text.extend([0; STAT + SHA1]);
                text.extend(LENGTH.to_be_bytes());
                text.push(0);
                text.extend(if number == 0 { path.as_slice() } else { b"" });
                text.push(0);
            }
            [text, vec![9; SHA1]].concat()
        };
        let named = judge(&of(5000, 3), &[SHA1]).unwrap();
        assert!(named.len() == 3 && named.iter().all(|path| path.len() == NAMED));
        assert_eq!(judge(&of(100, 100), &[SHA1]).unwrap().len(), MOST_NAMED);
        assert_eq!(judge(&of(60_000, 100_000), &[SHA1]), Some(Vec::new()));
        assert_eq!(judge(&of(1 << 20, 2), &[SHA1]), Some(Vec::new()));
    }

    /// What cannot be read, and what two readers would read differently.
    #[test]
    fn an_index_that_hides_something_is_odd() {
        let plain: &[(u32, &[u8])] = &[(0o100_644, b"one"), (0o100_644, b"two")];
        let text = index(2, 20, plain, b"");
        let judge = |text: &[u8]| judge(text, &[SHA1]);
        assert_eq!(judge(&text), None);
        assert_eq!(judge(b"something else"), None);
        let (first, second) = (HEADER, HEADER + 72);
        let end = second + 72;
        for cut in [text.len() - 21, text.len() - 40, HEADER] {
            assert_eq!(judge(&text[..cut]), Some(Vec::new()), "{cut}");
        }
        let table = |blocks: &[(usize, u32)]| {
            let blocks = blocks
                .iter()
                .map(|(at, count)| [u32::try_from(*at).unwrap().to_be_bytes(), count.to_be_bytes()].concat());
            extension(TABLE, &[1_u32.to_be_bytes().to_vec(), blocks.flatten().collect()].concat())
        };
        let named =
            |at: usize| extension(END, &[&u32::try_from(at).unwrap().to_be_bytes()[..], &[3; 20]].concat());
        let with = |more: &[Vec<u8>]| judge(&index(2, 20, plain, &more.concat()));
        assert_eq!(with(&[extension(b"TREE", b"abc")]), None);
        assert_eq!(with(&[table(&[(first, 1), (second, 1)]), named(end)]), None);
        for more in [
            vec![table(&[(first, 2), (end, 1)])],
            vec![table(&[(first, 1), (second + 8, 1)])],
            vec![table(&[(first, 1)])],
            vec![extension(b"TREE", b"abc"), named(end + 8)],
            vec![vec![0, 1, 2]],
        ] {
            assert_eq!(with(&more), Some(Vec::new()), "{more:?}");
        }
    }
}
