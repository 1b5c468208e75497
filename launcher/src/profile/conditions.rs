//! `args`: free conditions on a call's arguments.

use sbx_policy::restrictions::{Condition, Op, Width};
use sbx_policy::shadow;

use super::error::{Fault, Place, Plain};
use super::json::{Node, unknown_key};

/// What a comparison may be called: libseccomp's names, as in OCI documents, and short ones.
const OPS: [(&str, Comparison); 14] = [
    ("eq", Comparison::Eq),
    ("ne", Comparison::Ne),
    ("lt", Comparison::Lt),
    ("le", Comparison::Le),
    ("gt", Comparison::Gt),
    ("ge", Comparison::Ge),
    ("masked_eq", Comparison::MaskedEq),
    ("SCMP_CMP_EQ", Comparison::Eq),
    ("SCMP_CMP_NE", Comparison::Ne),
    ("SCMP_CMP_LT", Comparison::Lt),
    ("SCMP_CMP_LE", Comparison::Le),
    ("SCMP_CMP_GT", Comparison::Gt),
    ("SCMP_CMP_GE", Comparison::Ge),
    ("SCMP_CMP_MASKED_EQ", Comparison::MaskedEq),
];

#[derive(Clone, Copy, PartialEq)]
enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    MaskedEq,
}

/// Reads `args`: a list of comparisons that must all hold.
pub(crate) fn read(node: Node, place: &Place) -> Result<Vec<Condition>, Fault> {
    let mut conditions: Vec<Condition> = Vec::new();
    for (index, node) in node.list(place)?.into_iter().enumerate() {
        let here = Place::Index(place, index);
        let condition = condition(node, &here)?;
        if conditions.contains(&condition) {
            return Err(Fault::at(&here, "the same comparison stands above already"));
        }
        conditions.push(condition);
    }
    if conditions.is_empty() {
        return Err(Fault::at(place, "the list is empty; leave 'args' out to mean all arguments"));
    }
    if conditions.len() > COMPARISONS {
        return Err(Fault::at(place, format_args!("more than {COMPARISONS} comparisons in one entry")));
    }
    if !shadow::satisfiable(&conditions) {
        return Err(Fault::at(
            place,
            "no arguments meet all of these comparisons, so the entry can never match",
        ));
    }
    Ok(conditions)
}

/// Enough for two bounds of every argument.
const COMPARISONS: usize = 12;

fn condition(node: Node, place: &Place) -> Result<Condition, Fault> {
    let (mut arg, mut value, mut mask, mut op, mut width) = (None, None, None, None, Width::Qword);
    for (key, node) in node.object(place)? {
        let here = Place::Key(place, &key);
        match &*key {
            "index" => arg = Some(argument(node, &here)?),
            "value" => value = Some(number(node, &here)?),
            "mask" => mask = Some(number(node, &here)?),
            "op" => op = Some(node.word(&here, &OPS)?),
            "width" => width = bits(node, &here)?,
            _ => return Err(unknown_key(place, &key, &["index", "value", "mask", "op", "width"])),
        }
    }
    let missing = |key: &str| Fault::at(place, format_args!("the key '{key}' is missing"));
    let (arg, value) = (arg.ok_or_else(|| missing("index"))?, value.ok_or_else(|| missing("value"))?);
    let default = if mask.is_some() { Comparison::MaskedEq } else { Comparison::Eq };
    let op = match (op.unwrap_or(default), mask) {
        (Comparison::MaskedEq, Some(mask)) => masked(mask, value, place)?,
        (Comparison::MaskedEq, None) => return Err(missing("mask")),
        (_, Some(_)) => return Err(Fault::at(place, "'mask' goes with the comparison masked_eq only")),
        (Comparison::Eq, None) => Op::Eq,
        (Comparison::Ne, None) => Op::Ne,
        (Comparison::Lt, None) => Op::Lt,
        (Comparison::Le, None) => Op::Le,
        (Comparison::Gt, None) => Op::Gt,
        (Comparison::Ge, None) => Op::Ge,
    };
    let most = value.max(mask.unwrap_or(0));
    if width == Width::Dword && most > u64::from(u32::MAX) {
        return Err(Fault::at(place, format_args!("{most:#x} does not fit in the width of 32 bits")));
    }
    Ok(Condition { arg, width, op, value })
}

fn masked(mask: u64, value: u64, place: &Place) -> Result<Op, Fault> {
    if mask == 0 {
        return Err(Fault::at(place, "a mask of 0 leaves nothing to compare"));
    }
    if value & !mask != 0 {
        return Err(Fault::at(
            place,
            format_args!("value {value:#x} has bits outside mask {mask:#x}, so it can never match"),
        ));
    }
    Ok(Op::MaskedEq(mask))
}

fn argument(node: Node, place: &Place) -> Result<u8, Fault> {
    let index = node.integer(place)?;
    u8::try_from(index)
        .ok()
        .filter(|index| *index <= 5)
        .ok_or_else(|| Fault::at(place, format_args!("{index} is no argument: 0 to 5")))
}

/// A number, or one written as a string in another base.
fn number(node: Node, place: &Place) -> Result<u64, Fault> {
    let Node::String(text) = node else { return node.integer(place) };
    let parsed = match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
        (Some(hex), _) if !hex.starts_with('+') => u64::from_str_radix(hex, 16).ok(),
        (_, Some(octal)) if !octal.starts_with('+') => u64::from_str_radix(octal, 8).ok(),
        _ => None,
    };
    parsed.ok_or_else(|| {
        Fault::at(
            place,
            format_args!("'{}' is no number: write 21522, \"0x5412\" or \"0o755\"", Plain(&text)),
        )
    })
}

fn bits(node: Node, place: &Place) -> Result<Width, Fault> {
    match node.integer(place)? {
        32 => Ok(Width::Dword),
        64 => Ok(Width::Qword),
        other => Err(Fault::at(place, format_args!("{other} is no width: 32 or 64"))),
    }
}
