//! Turns `data/*.tbl` into compact tables and compiles the named restrictions with seccompiler, so that the `no_std`
//! core carries both as constants.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::{env, fs, path::Path};

#[path = "src/bpf.rs"]
mod bpf;
#[path = "src/conditions.rs"]
mod conditions;
#[path = "src/restrictions.rs"]
mod restrictions;
#[path = "src/shadow.rs"]
mod shadow;

fn main() {
    println!("cargo::rerun-if-changed=data");
    println!("cargo::rerun-if-changed=src/bpf.rs");
    println!("cargo::rerun-if-changed=src/restrictions.rs");
    println!("cargo::rerun-if-changed=src/conditions.rs");
    println!("cargo::rerun-if-changed=src/shorten.rs");
    println!("cargo::rerun-if-changed=src/shadow.rs");
    let mut text = String::new();
    let names = calls(&mut text);
    groups(&names, &mut text);
    snippets(&names, &mut text);
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("tables.rs"), text).expect("OUT_DIR can be written");
}

/// Writes joined strings and their offsets, because each `&str` of an array costs the shim a relocation.
fn strings<'a>(name: &str, offsets_name: &str, all: impl Iterator<Item = &'a str>, text: &mut String) {
    let mut blob = String::new();
    let mut offsets = vec![0];
    for string in all {
        blob.push_str(string);
        offsets.push(blob.len());
    }
    writeln!(text, "pub(crate) static {name}: &str = {blob:?};").unwrap();
    writeln!(text, "pub(crate) static {offsets_name}: [u16; {}] = {offsets:?};", offsets.len()).unwrap();
}

/// Writes the sorted names of the system calls, and their numbers.
fn calls(text: &mut String) -> Vec<String> {
    let table = fs::read_to_string("data/calls.tbl").expect("data/calls.tbl");
    let mut rows: Vec<[&str; 3]> = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_whitespace().collect::<Vec<_>>().try_into().expect("three columns"))
        .collect();
    rows.sort_unstable();
    strings("NAMES", "OFFSETS", rows.iter().map(|row| row[0]), text);
    writeln!(text, "/// The number of system calls of all architectures.").unwrap();
    writeln!(text, "pub const COUNT: usize = {};", rows.len()).unwrap();
    for (column, name) in [(1, "X86_64"), (2, "AARCH64")] {
        let number = |text: &str| if text == "-" { u16::MAX } else { text.parse().expect("a number") };
        let numbers: Vec<u16> = rows.iter().map(|row| number(row[column])).collect();
        writeln!(text, "#[cfg(any(feature = \"std\", target_arch = \"{}\"))]", name.to_lowercase()).unwrap();
        writeln!(text, "static {name}: [u16; COUNT] = {numbers:?};").unwrap();
    }
    rows.iter().map(|row| row[0].to_string()).collect()
}

/// Writes each group as a bit set over the system calls. Groups in groups are resolved.
fn groups(names: &[String], text: &mut String) {
    let table = fs::read_to_string("data/groups.tbl").expect("data/groups.tbl");
    let mut groups: BTreeMap<&str, (&str, Vec<&str>)> = BTreeMap::new();
    let mut current = "";
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(members) = line.strip_prefix("    ") {
            groups.get_mut(current).expect("a group before its members").1.extend(members.split_whitespace());
        } else {
            let (name, meaning) = line.split_once(": ").expect("'@name: meaning'");
            current = name;
            assert!(groups.insert(name, (meaning, Vec::new())).is_none(), "{name} stands twice");
        }
    }
    let bytes = names.len().div_ceil(8);
    strings("GROUP_NAMES", "GROUP_OFFSETS", groups.keys().copied(), text);
    writeln!(text, "static GROUP_SETS: [[u8; {bytes}]; {}] = [", groups.len()).unwrap();
    for name in groups.keys() {
        let mut members = BTreeSet::new();
        collect(name, &groups, &mut members, 0);
        let mut set = vec![0_u8; bytes];
        for member in members {
            let index = names
                .iter()
                .position(|n| n == member)
                .unwrap_or_else(|| panic!("{name}: unknown call {member}"));
            set[index / 8] |= 1 << (index % 8);
        }
        writeln!(text, "{set:?},").unwrap();
    }
    let meanings: Vec<_> = groups.values().map(|(meaning, _)| meaning).collect();
    writeln!(text, "];\nstatic GROUP_MEANINGS: &[&str] = &{meanings:?};\n").unwrap();
}

fn collect<'a>(
    name: &str,
    groups: &BTreeMap<&str, (&'a str, Vec<&'a str>)>,
    members: &mut BTreeSet<&'a str>,
    depth: usize,
) {
    assert!(depth < 8, "{name} contains itself");
    for member in &groups.get(name).unwrap_or_else(|| panic!("no group {name}")).1 {
        if member.starts_with('@') {
            collect(member, groups, members, depth + 1);
        } else {
            members.insert(member);
        }
    }
}

/// Writes the compiled restrictions, joined, and the span of each.
fn snippets(names: &[String], text: &mut String) {
    let list = restrictions::RESTRICTIONS;
    assert!(
        list.windows(2).all(|w| (w[0].call, w[0].name) < (w[1].call, w[1].name)),
        "restrictions are not sorted"
    );
    strings("RESTRICTION_NAMES", "RESTRICTION_OFFSETS", list.iter().map(|r| r.name), text);
    let of_call =
        |r: &restrictions::Restriction| names.iter().position(|n| n == r.call).expect("a known call");
    let calls: Vec<_> = list.iter().map(of_call).collect();
    writeln!(text, "pub(crate) static RESTRICTED: [u16; {}] = {calls:?};", calls.len()).unwrap();
    let overlaps: Vec<_> = list.iter().map(|r| overlaps(r, list)).collect();
    writeln!(text, "pub(crate) static OVERLAPS: [u16; {}] = {overlaps:?};", overlaps.len()).unwrap();
    let mut code = Vec::new();
    let mut spans = Vec::new();
    for restriction in list {
        let satisfiable = restriction.any.iter().all(|all| shadow::satisfiable(all));
        assert!(satisfiable, "{}[{}] can never match", restriction.call, restriction.name);
        let rules: Vec<_> = restriction.any.iter().map(|all| all.to_vec()).collect();
        let piece = conditions::compile(&rules)
            .unwrap_or_else(|e| panic!("{}[{}]: {e}", restriction.call, restriction.name));
        // Restrictions of several calls are the same, or one is the end of another.
        let known = code.windows(piece.len()).position(|part| part == piece);
        spans.push((known.unwrap_or(code.len()), piece.len()));
        if known.is_none() {
            code.extend(piece);
        }
    }
    writeln!(text, "pub(crate) static SPANS: [(u16, u16); {}] = {spans:?};", spans.len()).unwrap();
    writeln!(text, "pub(crate) static CODE: [Insn; {}] = [", code.len()).unwrap();
    for insn in code {
        writeln!(text, "{insn:?},").unwrap();
    }
    writeln!(text, "];").unwrap();
}

/// The restrictions of the same system call that make this one pointless, or that it makes pointless; as bits in
/// their order.
fn overlaps(one: &restrictions::Restriction, list: &[restrictions::Restriction]) -> u16 {
    let siblings = list.iter().filter(|other| other.call == one.call).enumerate();
    let overlapping = siblings.filter(|(_, other)| {
        other.name != one.name && (shadow::covers(one.any, other.any) || shadow::covers(other.any, one.any))
    });
    overlapping.fold(0, |bits, (bit, _)| bits | 1 << bit)
}
