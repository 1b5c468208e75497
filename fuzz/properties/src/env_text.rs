//! The environment variables that the library reads.

use crate::assert_line;
use crate::model::{fixed, holds};
use crate::policy::around;
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::env::{self, Text, Variables};
use sbx_policy::interpret::{self, Data};
use sbx_policy::list::{self, Entry, Target};
use sbx_policy::program::{self, Program, X32_BIT};
use sbx_policy::restrictions::RESTRICTIONS;
use sbx_policy::rules::{Layout, Rules};
use std::collections::BTreeSet;

/// Input: lines `allow=...`, `deny=...`, `action=...`. Refused variables give a one-line message; the program of
/// accepted ones decides as their entries say.
pub fn env_text(data: &[u8]) {
    let value = |name: &[u8]| data.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(name));
    let variables = Variables { allow: value(b"allow="), deny: value(b"deny="), action: value(b"action=") };
    for arch in [Arch::X86_64, Arch::Aarch64] {
        match env::rules(&variables, arch) {
            Err(error) => {
                let sentence = error.to_string();
                assert_line(&sentence);
                assert!(sentence.starts_with("cannot read SECCOMP_"), "{sentence}");
            }
            Ok(None) => assert!(variables.allow.is_none() && variables.deny.is_none()),
            Ok(Some(rules)) => {
                reads_back(&rules);
                let program = program::assemble(&Layout { rules: &rules, extra: None }).unwrap();
                needs_its_room(&rules, program.len());
                decides(&variables, &rules, &program);
            }
        }
    }
}

/// Rules that are written as text and read again are the same.
fn reads_back(rules: &Rules) {
    let text = env::text(rules).expect("what was text can be text");
    assert!(same(rules, &read(&text, rules.arch())), "{text:?}");
}

pub fn read(text: &Text, arch: Arch) -> Rules {
    let bytes = |text: &'_ Option<String>| text.clone().map(String::into_bytes);
    let (allow, deny) = (bytes(&text.allow), bytes(&text.deny));
    let action = Some(text.action.as_bytes());
    let variables = Variables { allow: allow.as_deref(), deny: deny.as_deref(), action };
    match env::rules(&variables, arch) {
        Ok(rules) => rules.expect("an allow-list or a deny-list"),
        Err(error) => panic!("{error}: {text:?}"),
    }
}

fn same(one: &Rules, other: &Rules) -> bool {
    one.actions.violation == other.actions.violation
        && one.unnamed_allowed == other.unnamed_allowed
        && Call::all().all(|call| one.row(call) == other.row(call))
}

/// A buffer that is one instruction too short gives an error, never a shorter program.
fn needs_its_room(rules: &Rules, length: usize) {
    let layout = Layout { rules, extra: None };
    let mut buffer = vec![bpf::stmt(bpf::RET, bpf::RET_ALLOW); length];
    assert_eq!(Program::build(&layout, &mut buffer).map(|program| program.insns().len()), Ok(length));
    assert!(Program::build(&layout, &mut buffer[..length - 1]).is_err());
}

fn entries(text: Option<&[u8]>) -> Vec<Entry> {
    let entries = text.unwrap_or_default().split(|b| *b == b':').filter(|entry| !entry.is_empty());
    entries.map(|entry| list::parse(entry).expect("all were understood")).collect()
}

fn names(entry: &Entry, call: Call) -> bool {
    match entry.target {
        Target::Call(named) => named == call,
        Target::Group(group) => group.contains(call),
    }
}

fn matches(entry: &Entry, call: Call, args: &[u64; 6]) -> bool {
    let restriction = entry.restriction.map(|place| &RESTRICTIONS[place]);
    names(entry, call)
        && restriction.is_none_or(|r| r.any.iter().any(|all| all.iter().all(|c| holds(c, args))))
}

/// The program does what the entries say, checked entry by entry.
fn decides(variables: &Variables<'_>, rules: &Rules, program: &[bpf::Insn]) {
    let (allow, deny) = (entries(variables.allow), entries(variables.deny));
    let (arch, violation, identity) = (rules.arch(), rules.actions.violation, rules.identity());
    let expected = |data: &Data| {
        if let Some(value) = fixed(arch, data, identity, violation) {
            return value;
        }
        let otherwise = if variables.allow.is_none() { bpf::RET_ALLOW } else { violation };
        let Some(call) = Call::numbered(arch, data.nr) else { return otherwise };
        // Of two denials that both match, one may name an error.
        let errors = deny.iter().filter(|entry| matches(entry, call, &data.args)).map(|entry| entry.errno);
        if let Some(errno) = errors.max() {
            return if errno == 0 { violation } else { bpf::RET_ERRNO | u32::from(errno) };
        }
        if allow.iter().any(|entry| matches(entry, call, &data.args)) { bpf::RET_ALLOW } else { otherwise }
    };
    let check = |nr: u32, audit: u32, args: [u64; 6]| {
        let data = Data { nr, arch: audit, args };
        assert_eq!(interpret::run(program, &data), Some(expected(&data)), "{data:x?}");
    };
    let named = |call: &Call| allow.iter().chain(&deny).any(|entry| names(entry, *call));
    let calls: BTreeSet<Call> = Call::all().filter(named).chain(Call::named(b"prctl")).collect();
    for (call, number) in calls.iter().filter_map(|call| Some((*call, call.number(arch)?))) {
        let conditions = allow.iter().chain(&deny).filter(|entry| names(entry, call));
        let conditions =
            conditions.filter_map(|entry| entry.restriction).flat_map(|place| RESTRICTIONS[place].any);
        around(conditions.copied()).into_iter().for_each(|args| check(number, arch.audit(), args));
    }
    for number in
        [0, 1, arch.end(), program::TABLE - 1, program::TABLE, X32_BIT - 1, X32_BIT, X32_BIT | 1, u32::MAX]
    {
        check(number, arch.audit(), [0; 6]);
        check(number, !arch.audit(), [0; 6]);
    }
}
