//! `args`: free conditions on a call's arguments.

use sbx_policy::restrictions::{Condition, Op, Width};
use sbx_policy::shadow;

use crate::profile::error::{Fault, Mistake, Place, Plain};
use crate::profile::json::Node;

/// The names of comparisons: short ones, and those of OCI documents. A mask is filled in later.
pub(crate) const OPS: [(&str, Op); 14] = [
    ("eq", Op::Eq),
    ("ne", Op::Ne),
    ("lt", Op::Lt),
    ("le", Op::Le),
    ("gt", Op::Gt),
    ("ge", Op::Ge),
    ("masked_eq", Op::MaskedEq(0)),
    ("SCMP_CMP_EQ", Op::Eq),
    ("SCMP_CMP_NE", Op::Ne),
    ("SCMP_CMP_LT", Op::Lt),
    ("SCMP_CMP_LE", Op::Le),
    ("SCMP_CMP_GT", Op::Gt),
    ("SCMP_CMP_GE", Op::Ge),
    ("SCMP_CMP_MASKED_EQ", Op::MaskedEq(0)),
];

/// Those of OCI documents.
pub(crate) const OF_OCI: &[(&str, Op)] = OPS.split_at(7).1;

/// Enough for two bounds of every argument.
const COMPARISONS: usize = 12;

/// Reads `args`: a list of comparisons that must all hold.
pub(crate) fn read(node: Node, place: &Place) -> Result<Vec<Condition>, Fault> {
    let mut conditions: Vec<Condition> = Vec::new();
    node.list(place, |node, place| {
        let condition = condition(node, place)?;
        if conditions.contains(&condition) {
            return Err(place.fault("the same comparison stands above already"));
        }
        conditions.push(condition);
        Ok(())
    })?;
    if conditions.is_empty() {
        return Err(place.fault("the list is empty; leave 'args' out to mean all arguments"));
    }
    if conditions.len() > COMPARISONS {
        return Err(place.fault(format!("more than {COMPARISONS} comparisons in one entry")));
    }
    if !shadow::satisfiable(&conditions) {
        let cause = "no arguments meet all of these comparisons, so the entry can never match";
        return Err(place.fault(cause));
    }
    Ok(conditions)
}

fn condition(node: Node, place: &Place) -> Result<Condition, Fault> {
    let mut fields = node.fields(place, &["index", "value", "mask", "op", "width"])?;
    let arg = fields.require("index", argument)?;
    let value = fields.require("value", number)?;
    let mask = fields.take("mask", number)?;
    let op = fields.take("op", |node, place| node.word(place, &OPS))?;
    let width = fields.take("width", bits)?.unwrap_or(Width::Qword);
    let op = match (op, mask) {
        (None | Some(Op::MaskedEq(_)), Some(mask)) => masked(mask, value, place)?,
        (Some(Op::MaskedEq(_)), None) => return Err(place.fault(Mistake::Missing("mask"))),
        (Some(_), Some(_)) => return Err(place.fault("'mask' goes with the comparison masked_eq only")),
        (op, None) => op.unwrap_or(Op::Eq),
    };
    let most = value.max(mask.unwrap_or(0));
    if width == Width::Dword && most > u64::from(u32::MAX) {
        return Err(place.fault(format!("{most:#x} does not fit in the width of 32 bits")));
    }
    Ok(Condition { arg, width, op, value })
}

fn masked(mask: u64, value: u64, place: &Place) -> Result<Op, Fault> {
    if mask == 0 {
        return Err(place.fault("a mask of 0 leaves nothing to compare"));
    }
    if value & !mask != 0 {
        let cause = format!("value {value:#x} has bits outside mask {mask:#x}, so it can never match");
        return Err(place.fault(cause));
    }
    Ok(Op::MaskedEq(mask))
}

fn argument(node: Node, place: &Place) -> Result<u8, Fault> {
    let index = node.integer(place)?;
    let known = u8::try_from(index).ok().filter(|index| *index <= 5);
    known.ok_or_else(|| place.fault(format!("{index} is no argument: 0 to 5")))
}

/// A number, or one written as a string in another base.
fn number(node: Node, place: &Place) -> Result<u64, Fault> {
    let Node::String(text) = node else { return node.integer(place) };
    let based = [("0x", 16), ("0o", 8)].into_iter().find_map(|(prefix, base)| {
        Some((text.strip_prefix(prefix).filter(|rest| !rest.starts_with('+'))?, base))
    });
    let parsed = based.and_then(|(digits, base)| u64::from_str_radix(digits, base).ok());
    let wrong = || format!("'{}' is no number: write 21522, \"0x5412\" or \"0o755\"", Plain(&text));
    parsed.ok_or_else(|| place.fault(wrong()))
}

fn bits(node: Node, place: &Place) -> Result<Width, Fault> {
    match node.integer(place)? {
        32 => Ok(Width::Dword),
        64 => Ok(Width::Qword),
        other => Err(place.fault(format!("{other} is no width: 32 or 64"))),
    }
}
