// Takes what it does not need out of a piece of program, and changes nothing of what it decides. seccompiler writes each
// condition by itself: a load, a mask, a comparison, and a return for each alternative. The kernel's time for taking a
// program goes by its length, and a list of fifty commands of ioctl(2) is run at every ioctl(2).
//
// In a piece all jumps lead forward, every return means the same ("matches"), and to leave it at its end means that it did not
// match. Here jumps say where they lead instead of how far.

use super::{BPF_JA, BPF_RET, RawInsn};

const LD: u16 = 0x20;
const AND: u16 = 0x54;
const JEQ: u16 = 0x15;
const JGT: u16 = 0x25;
const JGE: u16 = 0x35;
const JSET: u16 = 0x45;

/// The fewest neighbouring values for which a comparison of both ends is shorter than one of each.
const SEVERAL: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    code: u16,
    k: u32,
    /// Where it goes on: if a comparison holds, and if not. What compares nothing has both alike.
    then: usize,
    otherwise: usize,
}

/// What the accumulator holds: a word of the call's data, masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Unknown,
    Word { offset: u32, mask: u32 },
}

/// A piece that decides the same in fewer instructions; none where that is too long for its jumps, or is not what seccompiler
/// writes.
pub fn shorten(piece: &[RawInsn]) -> Option<Vec<RawInsn>> {
    let mut steps = read(piece)?;
    for change in [share_returns, test_bits, forget_loads, join_values] {
        change(&mut steps);
        steps = without_unreached(&steps);
    }
    write(&steps)
}

fn read(piece: &[RawInsn]) -> Option<Vec<Step>> {
    let step = |(at, insn): (usize, &RawInsn)| {
        let (code, jt, jf, k) = *insn;
        let after = |distance: usize| at + 1 + distance;
        match code {
            LD | AND => Some(Step { code, k, then: after(0), otherwise: after(0) }),
            BPF_RET => Some(Step { code, k: 0, then: at, otherwise: at }),
            BPF_JA => Some(Step { code, k: 0, then: after(k as usize), otherwise: after(k as usize) }),
            JEQ | JGT | JGE => Some(Step { code, k, then: after(jt.into()), otherwise: after(jf.into()) }),
            _ => None,
        }
    };
    piece.iter().enumerate().map(step).collect()
}

fn is_return(steps: &[Step], at: usize) -> bool {
    steps.get(at).is_some_and(|step| step.code == BPF_RET)
}

/// One return, the last, for all alternatives.
fn share_returns(steps: &mut [Step]) {
    let Some(last) = steps.len().checked_sub(1) else { return };
    for at in 0..last {
        let [then, otherwise] =
            [steps[at].then, steps[at].otherwise].map(|to| if is_return(steps, to) { last } else { to });
        if !is_return(steps, at) {
            (steps[at].then, steps[at].otherwise) = (then, otherwise);
        }
    }
}

/// A mask and a comparison, as one test: whether any bit is set, and so whether none is, or whether one is.
fn test_bits(steps: &mut [Step]) {
    for at in 0..steps.len() {
        let mask = steps[at].k;
        let Some(compared) = steps.get(at + 1).filter(|_| steps[at].code == AND) else { continue };
        let (any, none) = match *compared {
            Step { code: JEQ, k: 0, then, otherwise } => (otherwise, then),
            Step { code: JEQ, k, then, otherwise } if k == mask && mask.is_power_of_two() => {
                (then, otherwise)
            }
            _ => continue,
        };
        // The accumulator is not masked any more then.
        let nobody_looks = |to: usize| steps.get(to).is_none_or(|step| matches!(step.code, LD | BPF_RET));
        if nobody_looks(any) && nobody_looks(none) {
            steps[at] = Step { code: JSET, k: mask, then: any, otherwise: none };
        }
    }
}

/// Loads, and masks, of what the accumulator holds already, whichever way one has come.
fn forget_loads(steps: &mut [Step]) {
    let mut before: Vec<Option<Holds>> = vec![None; steps.len() + 1];
    let arrive = |slot: &mut Option<Holds>, holds: Holds| {
        *slot = Some(if slot.is_none_or(|known| known == holds) { holds } else { Holds::Unknown });
    };
    if let Some(first) = before.first_mut() {
        *first = Some(Holds::Unknown);
    }
    for at in 0..steps.len() {
        let Some(holds) = before[at] else { continue };
        let step = steps[at];
        let after = match (step.code, holds) {
            (LD, _) => Holds::Word { offset: step.k, mask: u32::MAX },
            (AND, Holds::Word { offset, mask }) => Holds::Word { offset, mask: mask & step.k },
            (AND, Holds::Unknown) => Holds::Unknown,
            _ => holds,
        };
        // A word that is masked may be the same as what a load and a mask would make of it.
        let masks = steps.get(step.then).filter(|next| step.code == LD && next.code == AND);
        let masked = masks.map(|next| (Holds::Word { offset: step.k, mask: next.k }, next.then));
        let (leads, after) = match masked {
            Some((same, then)) if same == holds => (Some(then), holds),
            _ if after == holds && matches!(step.code, LD | AND) => (Some(step.then), holds),
            _ => (None, after),
        };
        if let Some(then) = leads {
            steps[at] = Step { code: BPF_JA, k: 0, then, otherwise: then };
        }
        for to in [steps[at].then, steps[at].otherwise] {
            if to > at
                && let Some(slot) = before.get_mut(to)
            {
                arrive(slot, after);
            }
        }
    }
}

/// Neighbouring values that lead to the same place, by their ends.
fn join_values(steps: &mut [Step]) {
    let mut at = 0;
    while let Some(&Step { code, k: first, then, .. }) = steps.get(at) {
        let leads = |to: usize| steps.iter().filter(|step| step.then == to || step.otherwise == to).count();
        let continues = |number: &usize| {
            let (before, step) = (steps.get(at + number - 1), steps.get(at + number));
            before.is_some_and(|before| before.otherwise == at + number)
                && leads(at + number) == 1
                && step.is_some_and(|step| step.code == JEQ && step.then == then)
                && step.map(|step| step.k) == first.checked_add(*number as u32)
        };
        let several = 1 + (1..steps.len() - at).take_while(continues).count();
        if code == JEQ && several >= SEVERAL {
            let Step { k: last, otherwise: missed, .. } = steps[at + several - 1];
            steps[at] = Step { code: JGE, k: first, then: at + 1, otherwise: missed };
            steps[at + 1] = Step { code: JGT, k: last, then: missed, otherwise: then };
        }
        at += several;
    }
}

/// Without steps that nothing leads to, and jumps that are none.
fn without_unreached(steps: &[Step]) -> Vec<Step> {
    let arrives = |mut at: usize| {
        while let Some(Step { code: BPF_JA, then, .. }) = steps.get(at) {
            at = *then;
        }
        at
    };
    let mut reached = vec![false; steps.len() + 1];
    let mut stack = vec![arrives(0)];
    while let Some(at) = stack.pop() {
        if at < steps.len() && !std::mem::replace(&mut reached[at], true) && !is_return(steps, at) {
            stack.extend([steps[at].then, steps[at].otherwise].map(arrives));
        }
    }
    let kept = |at: usize| reached[..at].iter().filter(|reached| **reached).count();
    let place = |at: usize| kept(arrives(at));
    let moved = |(at, step): (usize, &Step)| {
        let (then, otherwise) = if step.code == BPF_RET {
            (kept(at), kept(at))
        } else {
            (place(step.then), place(step.otherwise))
        };
        Step { then, otherwise, ..*step }
    };
    steps.iter().enumerate().filter(|(at, _)| reached[*at]).map(moved).collect()
}

fn write(steps: &[Step]) -> Option<Vec<RawInsn>> {
    let insn = |(at, step): (usize, &Step)| {
        let distance = |to: usize| u8::try_from(to.checked_sub(at + 1)?).ok();
        match step.code {
            BPF_RET => Some((BPF_RET, 0, 0, 0)),
            LD | AND => (step.then == at + 1).then_some((step.code, 0, 0, step.k)),
            code => Some((code, distance(step.then)?, distance(step.otherwise)?, step.k)),
        }
    };
    steps.iter().enumerate().map(insn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATCH: RawInsn = (BPF_RET, 0, 0, 0);

    #[test]
    fn no_bit_and_one_bit_are_tested() {
        let none = [(LD, 0, 0, 24), (AND, 0, 0, 0x41), (JEQ, 0, 1, 0), MATCH];
        assert_eq!(shorten(&none).unwrap(), [(LD, 0, 0, 24), (JSET, 1, 0, 0x41), MATCH]);
        let one = [(LD, 0, 0, 24), (AND, 0, 0, 0x40), (JEQ, 0, 1, 0x40), MATCH];
        assert_eq!(shorten(&one).unwrap(), [(LD, 0, 0, 24), (JSET, 0, 1, 0x40), MATCH]);
        let two = [(LD, 0, 0, 24), (AND, 0, 0, 0x41), (JEQ, 0, 1, 0x41), MATCH];
        assert_eq!(shorten(&two).unwrap(), two);
    }

    #[test]
    fn words_that_are_there_are_not_loaded() {
        let values = [7, 5, 9].map(|k| [(LD, 0, 0, 16), (JEQ, 0, 1, k), MATCH]).concat();
        let short = [(LD, 0, 0, 16), (JEQ, 2, 0, 7), (JEQ, 1, 0, 5), (JEQ, 0, 1, 9), MATCH];
        assert_eq!(shorten(&values).unwrap(), short);
        let masked = [1, 5].map(|k| [(LD, 0, 0, 16), (AND, 0, 0, 0xf), (JEQ, 0, 1, k), MATCH]).concat();
        let short = [(LD, 0, 0, 16), (AND, 0, 0, 0xf), (JEQ, 1, 0, 1), (JEQ, 0, 1, 5), MATCH];
        assert_eq!(shorten(&masked).unwrap(), short);
        // Another word was loaded on one of the ways there.
        let both = [(LD, 0, 0, 16), (JEQ, 0, 3, 1), (LD, 0, 0, 24), (JEQ, 0, 1, 2), MATCH];
        let whole = [&both[..], &[(LD, 0, 0, 16), (JEQ, 0, 1, 3), MATCH]].concat();
        let short =
            [&[(LD, 0, 0, 16), (JEQ, 0, 2, 1)], &[(LD, 0, 0, 24), (JEQ, 2, 0, 2)], &whole[5..]].concat();
        assert_eq!(shorten(&whole).unwrap(), short);
    }

    #[test]
    fn neighbours_are_compared_by_their_ends() {
        let values = |list: &[u32]| {
            list.iter().flat_map(|k| [(LD, 0, 0, 16), (JEQ, 0, 1, *k), MATCH]).collect::<Vec<_>>()
        };
        let short = [(LD, 0, 0, 16), (JEQ, 3, 0, 2), (JGE, 0, 1, 4), (JGT, 0, 1, 7), (JEQ, 0, 1, 1), MATCH];
        assert_eq!(shorten(&values(&[2, 4, 5, 6, 7, 1])).unwrap(), short);
        let last = [(LD, 0, 0, 16), (JGE, 0, 2, u32::MAX - 2), (JGT, 1, 0, u32::MAX), MATCH];
        assert_eq!(shorten(&values(&[u32::MAX - 2, u32::MAX - 1, u32::MAX])).unwrap(), last);
        let wraps = [(LD, 0, 0, 16), (JEQ, 2, 0, u32::MAX - 1), (JEQ, 1, 0, u32::MAX), (JEQ, 0, 1, 0), MATCH];
        assert_eq!(shorten(&values(&[u32::MAX - 1, u32::MAX, 0])).unwrap(), wraps);
    }

    #[test]
    fn what_no_jump_reaches_stays_long() {
        let many: Vec<_> = (0..300).flat_map(|k| [(LD, 0, 0, 16), (JEQ, 0, 1, 2 * k), MATCH]).collect();
        assert_eq!(shorten(&many), None);
        assert_eq!(shorten(&[(0xffff, 0, 0, 0), MATCH]), None);
    }
}
