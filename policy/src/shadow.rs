// Conclusions from conditions without running a program: whether one rule makes another pointless, and whether a rule
// can match at all. The build script includes this file.

use super::restrictions::{Condition, Op, Width};

/// Whether `wide` matches everything that `narrow` matches. Conditions are only compared one by one, so a `false` may
/// be wrong.
pub fn covers(wide: &[&[Condition]], narrow: &[&[Condition]]) -> bool {
    narrow.iter().all(|n| wide.iter().any(|w| w.iter().all(|wc| n.iter().any(|nc| implies(nc, wc)))))
}

/// Whether the second condition holds whenever the first does.
fn implies(a: &Condition, b: &Condition) -> bool {
    if a.arg != b.arg || (a.width != b.width && a.width == Width::Dword) {
        return false;
    }
    match (a.op, b.op) {
        _ if a == b => true,
        (Op::Eq, _) => holds(b, a.value),
        (Op::MaskedEq(fine), Op::MaskedEq(coarse)) => coarse & !fine == 0 && a.value & coarse == b.value,
        (Op::Lt | Op::Le, Op::Lt | Op::Le) => upper(a).zip(upper(b)).is_some_and(|(x, y)| x <= y),
        (Op::Gt | Op::Ge, Op::Gt | Op::Ge) => lower(a).zip(lower(b)).is_some_and(|(x, y)| x >= y),
        _ => false,
    }
}

fn upper(c: &Condition) -> Option<u64> {
    if c.op == Op::Lt { c.value.checked_sub(1) } else { Some(c.value) }
}

fn lower(c: &Condition) -> Option<u64> {
    if c.op == Op::Gt { c.value.checked_add(1) } else { Some(c.value) }
}

/// Whether a condition holds for a value of its argument. The compiled program must decide the same.
pub fn holds(condition: &Condition, argument: u64) -> bool {
    let argument = if condition.width == Width::Dword { argument & 0xffff_ffff } else { argument };
    let value = condition.value;
    match condition.op {
        Op::Eq => argument == value,
        Op::Ne => argument != value,
        Op::Lt => argument < value,
        Op::Le => argument <= value,
        Op::Gt => argument > value,
        Op::Ge => argument >= value,
        Op::MaskedEq(mask) => argument & mask == value & mask,
    }
}

/// Whether some arguments satisfy all conditions. Conditions are only compared in pairs, so a `true` may be wrong.
pub fn satisfiable(conditions: &[Condition]) -> bool {
    conditions.iter().all(alone)
        && conditions.iter().all(|a| conditions.iter().all(|b| a.arg != b.arg || together(a, b)))
}

fn alone(c: &Condition) -> bool {
    let most = if c.width == Width::Dword { 0xffff_ffff } else { u64::MAX };
    match c.op {
        Op::Lt => c.value > 0,
        Op::Gt => c.value < most,
        Op::Eq | Op::Ge => c.value <= most,
        Op::Ne | Op::Le => true,
        Op::MaskedEq(mask) => c.value & !mask == 0 && c.value <= most,
    }
}

fn together(a: &Condition, b: &Condition) -> bool {
    match (a.op, b.op) {
        (Op::Eq, _) => holds(b, a.value),
        (Op::MaskedEq(x), Op::MaskedEq(y)) => (a.value ^ b.value) & x & y == 0,
        (Op::Lt | Op::Le, Op::Gt | Op::Ge) => {
            upper(a).zip(lower(b)).is_some_and(|(most, least)| least <= most)
        }
        _ => true,
    }
}
