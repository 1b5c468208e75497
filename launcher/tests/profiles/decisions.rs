//! The program that a profile is compiled to decides as the profile says: for every call number, two
//! architectures, x32's bit, and arguments at the boundaries of every condition.

use sbx::profile::{CallRules, Grants, Profile, When};
use sbx_policy::bpf;
use sbx_policy::calls::{Arch, Call};
use sbx_policy::interpret::{Data, run};
use sbx_policy::program::{X32_BIT, assemble};
use sbx_policy::restrictions::{Condition, Op};
use sbx_policy::rules::{Actions, Layout};

use crate::{Shelf, built_in_profile};

/// The fuzz targets' model of a profile.
#[path = "../../../fuzz/properties/src/model.rs"]
mod model;

const ACTIONS: Actions =
    Actions { violation: bpf::RET_USER_NOTIF, log: bpf::RET_LOG, unknown: Some(bpf::RET_ERRNO | 38) };

fn conditions(rules: &CallRules) -> Vec<Condition> {
    let alternatives = [&rules.allow, &rules.inside, &rules.deny].into_iter().flat_map(Grants::alternatives);
    alternatives.flat_map(|one| When::any(&one.when)).flatten().copied().collect()
}

/// Arguments at and beside everything that is compared, in pairs.
fn boundaries(rules: Option<&CallRules>) -> Vec<[u64; 6]> {
    let mut sets = vec![[0; 6], [u64::MAX; 6], [1; 6]];
    let mut values: Vec<(usize, u64)> = Vec::new();
    for condition in rules.map(conditions).unwrap_or_default() {
        let arg = usize::from(condition.arg);
        let mask = if let Op::MaskedEq(mask) = condition.op { mask } else { 0 };
        for base in [
            condition.value,
            condition.value | 1 << 32,
            condition.value | !mask,
            condition.value ^ mask,
            mask,
        ] {
            values.extend([base, base.wrapping_add(1), base.wrapping_sub(1)].map(|value| (arg, value)));
        }
        values.extend(
            (0..64).filter(|bit| mask & (1 << bit) != 0).map(|bit| (arg, condition.value ^ (1 << bit))),
        );
    }
    values.sort_unstable();
    values.dedup();
    for (a, x) in &values {
        for (b, y) in &values {
            let mut set = [0; 6];
            (set[*a], set[*b]) = (*x, *y);
            sets.push(set);
        }
    }
    sets
}

fn check(profile: &Profile) {
    [false, true].into_iter().for_each(|namespaces| check_in(profile, namespaces));
}

fn check_in(profile: &Profile, namespaces: bool) {
    for (arch, other) in [(Arch::X86_64, 0x4000_0003), (Arch::Aarch64, 0x4000_0028)] {
        let (rules, free) = profile.syscalls.to_rules(arch, ACTIONS, namespaces).unwrap();
        let program = assemble(&Layout { rules: &rules, extra: Some(&free) }).unwrap();
        assert!(program.len() < bpf::MAX_INSNS);
        for number in (0..520).chain([X32_BIT - 1, 0x8000_0000, u32::MAX]) {
            let call = Call::numbered(arch, number);
            let said = call.and_then(|call| profile.syscalls.calls.get(call));
            for args in boundaries(said) {
                for nr in [number, number | X32_BIT] {
                    for audit in [arch.audit(), other] {
                        let data = Data { nr, arch: audit, args };
                        let decided = run(&program, &data);
                        let profile_of = (profile, namespaces);
                        let meant = model::expected(profile_of, arch, ACTIONS, &data, rules.identity());
                        assert_eq!(decided, Some(meant), "{} {call:?} {data:x?}", profile.name);
                    }
                }
            }
        }
    }
}

#[test]
fn every_built_in_decides_as_it_says() {
    sbx_profiles::NAMES.iter().for_each(|name| check(&built_in_profile(name)));
}

#[test]
fn free_conditions_decide_as_they_say() {
    let shelf = Shelf::new();
    let documents = [
        r#"{"syscalls": {"allow": ["read", {"call": "ioctl", "args": [{"index": 1, "value": "0x5412", "width": 32}]}, "ioctl[query]"]}}"#,
        r#"{"syscalls": {"allow": [{"call": "kill", "args": [{"index": 0, "op": "gt", "value": 4294967296}, {"index": 1, "op": "lt", "value": 9}]}]}}"#,
        r#"{"syscalls": {"log": [{"calls": ["dup", "dup2"], "args": [{"index": 0, "op": "ge", "value": 3}, {"index": 0, "op": "le", "value": 9}]}]}}"#,
        r#"{"syscalls": {"allow": ["socket", "dup"], "log": ["@timer"],
            "deny": [{"call": "socket", "args": [{"index": 0, "value": 2}], "errno": "EACCES"},
                     {"call": "socket", "args": [{"index": 0, "op": "ne", "value": 1}, {"index": 2, "op": "SCMP_CMP_MASKED_EQ", "mask": 6, "value": 2}], "errno": "EACCES"},
                     {"call": "dup", "args": [{"index": 0, "mask": "0xffff0000ffff", "value": "0x10000000f"}]}]}}"#,
        r#"{"syscalls": {"default": "allow", "allow": [{"call": "kill", "args": [{"index": 0, "value": 7}]}], "deny": ["mmap[jit]", "clone3=ENOSYS"]}}"#,
        r#"{"extends": "workspace", "syscalls": {"deny": [{"call": "kill", "args": [{"index": 1, "value": 9}]}, "socket[unix]=EACCES"]}}"#,
    ];
    for text in documents {
        check(&shelf.file(text).unwrap());
    }
}
