use crate::run::aftermath::index::format::*;
use std::io::Cursor;

/// What comes of a text.
fn judge(text: &[u8], hashes: &[usize]) -> Option<Vec<Vec<u8>>> {
    Text::new(Cursor::new(text), &mut LONGEST.clone()).unwrap().judge(hashes)
}

/// An index of version 2 or 4 with these modes and paths, and more before the checksum.
fn index(version: u32, hash: usize, entries: &[(u32, &[u8])], more: &[u8]) -> Vec<u8> {
    let count = u32::try_from(entries.len()).unwrap();
    let mut text = [SIGNATURE.as_slice(), &version.to_be_bytes(), &count.to_be_bytes()].concat();
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
    let of = |above: &[u8], length: usize, count: usize| {
        let path = [above.to_vec(), vec![b'x'; length]].concat();
        let count_of = u32::try_from(count).unwrap().to_be_bytes();
        let mut text = [SIGNATURE.as_slice(), &4_u32.to_be_bytes(), &count_of].concat();
        for number in 0..count {
            text.extend([0; STAT + SHA1]);
            text.extend(LENGTH.to_be_bytes());
            text.push(0);
            text.extend(if number == 0 { path.as_slice() } else { b"" });
            text.push(0);
        }
        [text, vec![9; SHA1]].concat()
    };
    let named = judge(&of(b".git/", 5000, 3), &[SHA1]).unwrap();
    assert!(named.len() == 3 && named.iter().all(|path| path.len() == NAMED));
    assert_eq!(judge(&of(b".git/", 100, 100), &[SHA1]).unwrap().len(), MOST_NAMED);
    assert_eq!(judge(&of(b"", 60_000, 20_000), &[SHA1]), Some(Vec::new()));
    assert_eq!(judge(&of(b"", 1 << 20, 2), &[SHA1]), Some(Vec::new()));
}

/// What cannot be read, and what two readers would read differently.
#[test]
fn an_index_that_hides_something_is_odd() {
    let plain: &[(u32, &[u8])] = &[(0o100_644, b"one"), (0o100_644, b"two")];
    let text = index(2, 20, plain, b"");
    // Read with the other length, many paths would be odd.
    let paths: Vec<_> = (0..40).map(|number| format!("d{number}/f")).collect();
    let many: Vec<_> = paths.iter().map(|path| (0o100_644, path.as_bytes())).collect();
    assert_eq!(judge(&index(2, 20, &many, b""), &[SHA1, SHA256]), None);
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
    let nameless = |more: &[u8]| judge(&index(2, 20, &[(0o100_644, b""), (0o100_644, b"a")], more));
    assert_eq!(nameless(&extension(b"link", &[7; 20])), None);
    assert_eq!(nameless(b""), Some(vec![Vec::new()]));
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

/// A file without contents, of any length.
struct Zeros(u64, u64);

impl Read for Zeros {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = usize::try_from(self.1 - self.0).unwrap().min(buffer.len());
        let begins = [SIGNATURE.as_slice(), &[0, 0, 0, 2, 0, 0, 0, 0]].concat();
        buffer[..count].fill(0);
        if self.0 == 0 {
            buffer[..HEADER].copy_from_slice(&begins);
        }
        self.0 += count as u64;
        Ok(count)
    }
}

impl Seek for Zeros {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0 = match to {
            SeekFrom::Start(at) => at,
            SeekFrom::End(way) => self.1.checked_add_signed(way).unwrap(),
            SeekFrom::Current(way) => self.0.checked_add_signed(way).unwrap(),
        };
        Ok(self.0)
    }
}

#[test]
fn no_more_is_read_than_may_be() {
    let judge = |length: u64, mut left: u64| {
        let found = Text::new(Zeros(0, length), &mut left).unwrap().judge(&[SHA1]);
        (found, left)
    };
    assert_eq!(judge(12 + 8 * 1000 + 20, 1 << 20).0, None);
    assert_eq!(judge(12 + 8 * 1000 + 20, 4000).0, Some(Vec::new()));
    assert_eq!(judge(LONGEST + 1, 1 << 20), (Some(Vec::new()), (1 << 20) - 4));
}
