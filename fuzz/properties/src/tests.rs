//! Calls every property with the corpus and with changes of it: a short fuzzing run that is the same every time.

use sbx::plan::namespaces::git_config;

use super::testing::{Random, listed_by_git};
use super::{Property, TARGETS};
use std::fs;
use std::path::Path;

/// The number of changes of each file of the corpus.
const CHANGES: u32 = 100;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort_unstable();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Replaces, removes or inserts a few bytes, or takes some from another file.
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

#[test]
fn built_in_profiles_come_back_from_oci() {
    for listed in sbx::profile::list(&Default::default()) {
        let profile = sbx::profile::load(listed.name.as_ref(), &Default::default()).unwrap();
        super::oci::comes_back(&profile);
    }
}

/// The sections, names and values that git reads from a configuration. `None` if git refuses it or is not installed.
fn read_by_git(text: &[u8]) -> Option<Vec<(String, String, Vec<u8>)>> {
    let output = listed_by_git(text).filter(|output| output.status.success())?;
    let entries = output.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let entry = |entry: &[u8]| {
        let end = entry.iter().position(|byte| *byte == b'\n');
        let key = String::from_utf8_lossy(&entry[..end.unwrap_or(entry.len())]).into_owned();
        let (section, rest) = key.split_once('.')?;
        let name = rest.rsplit_once('.').map_or(rest, |(_, name)| name);
        Some((section.to_string(), name.to_string(), end.map_or(Vec::new(), |end| entry[end + 1..].to_vec())))
    };
    entries.map(entry).collect()
}

/// Replaces tabs and carriage returns with spaces: git keeps them inside a value only since 2.45.
fn blanks_alike(value: &[u8]) -> Vec<u8> {
    value.iter().map(|byte| if matches!(byte, b'\t' | b'\r') { b' ' } else { *byte }).collect()
}

#[test]
fn git_reads_configurations_the_same_way() {
    const PIECES: [&[u8]; 24] = [
        b"\n[core]\n",
        b"[Core]",
        b"[core \"a]\\\"b\"]",
        b"[core.x]",
        b"hooksPath",
        b"\n\tpath",
        b"=",
        b" = ",
        b"x",
        b"y z",
        b"\"",
        b"\\\\",
        b"\\\"",
        b"\\n",
        b"\\t",
        b"\\\n",
        b"\n",
        b"\r\n",
        b"\t",
        b" ",
        b"#",
        b";",
        b"]",
        b"\xff",
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut made = |_| {
        let pieces = (0..random.below(12)).map(|_| PIECES[random.below(PIECES.len())]).collect::<Vec<_>>();
        [b"[core]\n\thooksPath = ", pieces.concat().as_slice()].concat()
    };
    let texts = corpus("git").into_iter().chain((0..150).map(&mut made)).collect::<Vec<_>>();
    for text in texts {
        let Some(expected) = read_by_git(&text) else { continue };
        let found = git_config::parse(&text);
        let shown = String::from_utf8_lossy(&text);
        assert_eq!(found.len(), expected.len(), "{shown:?}");
        for (setting, (section, name, value)) in found.iter().zip(expected) {
            assert!(setting.is(&section, &name), "{section}.{name}: {shown:?}");
            assert_eq!(
                blanks_alike(setting.value.as_deref().unwrap_or_default()),
                blanks_alike(&value),
                "{shown:?}"
            );
        }
    }
}
