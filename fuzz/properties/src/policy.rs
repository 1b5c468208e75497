//! Rules for system calls. The documents are mostly valid, so the fuzzer reaches the code behind the reader.

use crate::draw::Draw;
use crate::profile::profile;
use sbx_policy::calls::{Call, Group};
use sbx_policy::errno;
use sbx_policy::restrictions::{self, Condition, Op};
use serde_json::{Map, Value, json};

/// Input: bytes that choose a document. The program of the document decides as the document says.
pub fn policy(data: &[u8]) {
    let document = document(&mut Draw(data));
    profile(document.to_string().as_bytes());
}

fn document(draw: &mut Draw<'_>) -> Value {
    const DEFAULTS: [Option<&str>; 6] =
        [None, Some("errno"), Some("kill"), Some("log"), Some("errno=ENOSYS"), Some("allow")];
    const PARENTS: [Option<&str>; 8] = [None, None, None, None, None, None, Some("minimal"), Some("network")];
    let mut lists = [Vec::new(), Vec::new(), Vec::new()];
    let (default, parent) = (draw.pick(&DEFAULTS), draw.pick(&PARENTS));
    while !draw.is_empty() {
        let list = draw.below(3);
        let entry = entry(draw, list == 2);
        lists[list].push(entry);
    }
    let [allow, log, deny] = lists;
    let mut syscalls = json!({ "allow": allow, "log": log, "deny": deny });
    if let Some(default) = default {
        syscalls["default"] = default.into();
    }
    let mut document = json!({ "syscalls": syscalls });
    if let Some(parent) = parent {
        document["extends"] = parent.into();
    }
    document
}

fn entry(draw: &mut Draw<'_>, denies: bool) -> Value {
    let call = Call::at(draw.below(Call::all().count()) as u16);
    let named = restrictions::of_call(call);
    let mut entry = Map::new();
    match draw.below(8) {
        0 => {
            let groups: Vec<Group> = Group::all().collect();
            entry.insert("call".into(), draw.pick(&groups).name().into());
        }
        1..=3 if !named.is_empty() => {
            let place = named.start + draw.below(named.len());
            entry.insert("call".into(), format!("{}[{}]", call.name(), restrictions::name(place)).into());
        }
        4..=6 => {
            entry.insert("call".into(), call.name().into());
            let count = 1 + draw.below(3);
            entry.insert("args".into(), (0..count).map(|_| comparison(draw)).collect());
        }
        _ => {
            entry.insert("call".into(), call.name().into());
        }
    }
    if denies && draw.below(3) == 0 {
        let names: Vec<&str> = errno::names().collect();
        entry.insert("errno".into(), draw.pick(&names).into());
    }
    Value::Object(entry)
}

fn comparison(draw: &mut Draw<'_>) -> Value {
    let (index, narrow) = (draw.below(6), draw.below(2) == 0);
    let cut = |number: u64| if narrow { u64::from(number as u32) } else { number };
    let value = cut(draw.word());
    let width = if narrow { 32 } else { 64 };
    match draw.below(8) {
        0 | 1 => {
            let mask = cut(draw.word());
            json!({ "index": index, "width": width, "op": "masked_eq", "mask": mask, "value": value & mask })
        }
        op => {
            let op = ["eq", "ne", "lt", "le", "gt", "ge"][op - 2];
            json!({ "index": index, "width": width, "op": op, "value": value })
        }
    }
}

/// Sets of arguments at and next to the value of each condition. The other conditions of the same alternative are met.
pub fn around<'a>(alternatives: impl Iterator<Item = &'a [Condition]>) -> Vec<[u64; 6]> {
    let mut sets = vec![[0; 6], [1; 6], [u64::MAX; 6]];
    for all in alternatives {
        let mut met = [0; 6];
        all.iter().for_each(|c| met[usize::from(c.arg)] = meeting(c));
        sets.push(met);
        for condition in all {
            let set = |value| {
                let mut set = met;
                set[usize::from(condition.arg)] = value;
                set
            };
            sets.extend(beside(condition).into_iter().map(set));
        }
    }
    sets
}

fn meeting(condition: &Condition) -> u64 {
    match condition.op {
        Op::Ne => condition.value ^ 1,
        Op::Lt => condition.value.wrapping_sub(1),
        Op::Gt => condition.value.wrapping_add(1),
        _ => condition.value,
    }
}

fn beside(condition: &Condition) -> Vec<u64> {
    let (value, mask) = match condition.op {
        Op::MaskedEq(mask) => (condition.value, mask),
        _ => (condition.value, 0),
    };
    let mut values = vec![value | !mask, mask, !mask, 0, u64::MAX];
    for base in [value, value ^ 1 << 32, value ^ 1 << 31, value & 0xffff_ffff] {
        values.extend([base, base.wrapping_add(1), base.wrapping_sub(1)]);
    }
    values.extend((0..64).filter(|bit| mask >> bit & 1 == 1).map(|bit| value ^ 1 << bit));
    values
}
