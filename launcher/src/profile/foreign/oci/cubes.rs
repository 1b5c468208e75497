//! Conditions as sets of arguments that one masked comparison for each argument describes.
//!
//! Consumers read two comparisons of one argument as alternatives and compare 64 bits. Masked comparisons suffice for
//! everything: both halves of a range, 32 bits of an argument, and what a denial leaves.

use sbx_policy::restrictions::{Condition, Op, Width};

/// For each argument a mask and the value of the bits in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cube([(u64, u64); 6]);

/// More than this for one call is no filter that anybody could read, and may not fit into a program.
pub const MOST: usize = 1024;

/// There are more than [`MOST`].
#[derive(Debug)]
pub struct TooMany;

impl Cube {
    /// The masked comparisons: argument, mask, value.
    pub fn comparisons(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        self.0
            .into_iter()
            .enumerate()
            .filter(|(_, (mask, _))| *mask != 0)
            .map(|(arg, (mask, value))| (arg, mask, value))
    }

    fn with(mut self, arg: u8, mask: u64, value: u64) -> Option<Cube> {
        let slot = self.0.get_mut(usize::from(arg))?;
        if (slot.1 ^ value) & slot.0 & mask != 0 {
            return None;
        }
        *slot = (slot.0 | mask, slot.1 | value & mask);
        Some(self)
    }

    fn and(self, other: &Cube) -> Option<Cube> {
        (0..).zip(other.0).try_fold(self, |cube, (arg, (mask, value))| cube.with(arg, mask, value))
    }

    /// What of it is not in `other`, in parts that share nothing.
    fn minus(self, other: &Cube, parts: &mut Vec<Cube>) {
        if self.and(other).is_none() {
            return parts.push(self);
        }
        let mut rest = self;
        for (arg, (mask, value)) in (0..).zip(other.0) {
            let fixed = rest.0[usize::from(arg)].0;
            for bit in bits(mask & !fixed) {
                parts.extend(rest.with(arg, bit, !value & bit));
                match rest.with(arg, bit, value & bit) {
                    Some(same) => rest = same,
                    None => return,
                }
            }
        }
    }
}

/// The bits of a mask, the highest first.
fn bits(mask: u64) -> impl Iterator<Item = u64> {
    (0..64).rev().map(|place| 1_u64 << place).filter(move |bit| mask & bit != 0)
}

/// The cubes of one condition.
fn of(condition: &Condition) -> Vec<Cube> {
    let Condition { arg, width, op, value } = *condition;
    let whole = if width == Width::Dword { u64::from(u32::MAX) } else { u64::MAX };
    let one = |mask: u64, value: u64| Cube::default().with(arg, mask, value);
    // All numbers that agree with `value` above a bit, and have that bit the other way round.
    let beside = |set: bool| {
        bits(whole)
            .filter(move |bit| (value & bit != 0) == set)
            .filter_map(move |bit| one(whole & !(bit - 1), (value & !(bit - 1)) ^ bit))
            .collect::<Vec<_>>()
    };
    let itself = one(whole, value).filter(|_| value & !whole == 0);
    match op {
        _ if value & !whole != 0 && op != Op::Eq => Vec::new(),
        Op::Eq => itself.into_iter().collect(),
        Op::MaskedEq(mask) => one(mask & whole, value).into_iter().collect(),
        Op::Lt => beside(true),
        Op::Gt => beside(false),
        Op::Le => beside(true).into_iter().chain(itself).collect(),
        Op::Ge => beside(false).into_iter().chain(itself).collect(),
        Op::Ne => beside(true).into_iter().chain(beside(false)).collect(),
    }
}

/// The cubes of alternatives.
pub fn of_all(alternatives: &[Vec<Condition>]) -> Result<Vec<Cube>, TooMany> {
    let mut cubes = Vec::new();
    for all in alternatives {
        let mut known = vec![Cube::default()];
        for condition in all {
            known = if condition.op == Op::Ne {
                // As what a number leaves: many of them share most of their bits.
                let point = of(&Condition { op: Op::Eq, ..*condition });
                minus(known, &point)?
            } else {
                let more = of(condition);
                known.iter().flat_map(|cube| more.iter().filter_map(|other| cube.and(other))).collect()
            };
            if known.len() > MOST {
                return Err(TooMany);
            }
        }
        cubes.append(&mut known);
        if cubes.len() > MOST {
            return Err(TooMany);
        }
    }
    Ok(cubes)
}

/// What of the cubes is in none of the others.
pub fn minus(mut cubes: Vec<Cube>, others: &[Cube]) -> Result<Vec<Cube>, TooMany> {
    for other in others {
        let mut parts = Vec::new();
        cubes.into_iter().for_each(|cube| cube.minus(other, &mut parts));
        if parts.len() > MOST {
            return Err(TooMany);
        }
        cubes = parts;
    }
    Ok(cubes)
}
