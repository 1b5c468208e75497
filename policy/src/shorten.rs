// Removes unneeded instructions from a piece of program without changing its decisions. seccompiler writes each
// condition by itself: a load, a mask, a comparison, and a return for each alternative. The kernel's time to install
// a program grows with its length, and a list of fifty commands of ioctl(2) runs at every ioctl(2).
//
// In a piece all jumps lead forward. Every return means that the piece matches; leaving it at its end means that it
// does not. Here a jump holds its target instead of its distance.

use super::bpf::{AND, Insn, JA, JEQ, JGE, JGT, JSET, LD, RET, jump, stmt};

/// The smallest number of consecutive values for which comparing both ends is shorter than comparing each value.
const SEVERAL: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    code: u16,
    k: u32,
    /// The next step if the comparison holds, and if not. They are the same in a step that does not compare.
    then: usize,
    otherwise: usize,
}

/// The content of the accumulator: a masked word of the data of the system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Unknown,
    Word { offset: u32, mask: u32 },
}

/// A piece that decides the same in fewer instructions. `None` if the result is too long for its jumps, or if the
/// piece is not one of seccompiler.
pub fn shorten(piece: &[Insn]) -> Option<Vec<Insn>> {
    let mut steps = read(piece)?;
    for change in [share_returns, test_bits, forget_loads, join_values] {
        change(&mut steps);
        steps = without_unreached(&steps);
    }
    write(&steps)
}

fn read(piece: &[Insn]) -> Option<Vec<Step>> {
    let step = |(at, insn): (usize, &Insn)| {
        let Insn { code, jt, jf, k } = *insn;
        let after = |distance: usize| at + 1 + distance;
        match code {
            LD | AND => Some(Step { code, k, then: after(0), otherwise: after(0) }),
            RET => Some(Step { code, k: 0, then: at, otherwise: at }),
            JA => Some(Step { code, k: 0, then: after(k as usize), otherwise: after(k as usize) }),
            JEQ | JGT | JGE => Some(Step { code, k, then: after(jt.into()), otherwise: after(jf.into()) }),
            _ => None,
        }
    };
    piece.iter().enumerate().map(step).collect()
}

fn is_return(steps: &[Step], at: usize) -> bool {
    steps.get(at).is_some_and(|step| step.code == RET)
}

/// Keeps a single return, the last one, for all alternatives.
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

/// Joins a mask and a comparison into one test of bits.
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
        // After this change the accumulator is not masked.
        let is_unread = |to: usize| steps.get(to).is_none_or(|step| matches!(step.code, LD | RET));
        if is_unread(any) && is_unread(none) {
            steps[at] = Step { code: JSET, k: mask, then: any, otherwise: none };
        }
    }
}

/// Removes loads and masks whose result the accumulator already holds on every way to them.
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
        // A load and the mask behind it are removed together if the accumulator already holds the masked word.
        let masks = steps.get(step.then).filter(|next| step.code == LD && next.code == AND);
        let masked = masks.map(|next| (Holds::Word { offset: step.k, mask: next.k }, next.then));
        let (leads, after) = match masked {
            Some((same, then)) if same == holds => (Some(then), holds),
            _ if after == holds && matches!(step.code, LD | AND) => (Some(step.then), holds),
            _ => (None, after),
        };
        if let Some(then) = leads {
            steps[at] = Step { code: JA, k: 0, then, otherwise: then };
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

/// Compares consecutive values that lead to the same place by their ends.
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

/// Removes unreachable steps, and jumps to the next step.
fn without_unreached(steps: &[Step]) -> Vec<Step> {
    let arrives = |mut at: usize| {
        while let Some(Step { code: JA, then, .. }) = steps.get(at) {
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
        let (then, otherwise) =
            if step.code == RET { (kept(at), kept(at)) } else { (place(step.then), place(step.otherwise)) };
        Step { then, otherwise, ..*step }
    };
    steps.iter().enumerate().filter(|(at, _)| reached[*at]).map(moved).collect()
}

fn write(steps: &[Step]) -> Option<Vec<Insn>> {
    let insn = |(at, step): (usize, &Step)| {
        let distance = |to: usize| u8::try_from(to.checked_sub(at + 1)?).ok();
        match step.code {
            RET => Some(stmt(RET, 0)),
            LD | AND => (step.then == at + 1).then_some(stmt(step.code, step.k)),
            code => Some(jump(code, step.k, distance(step.then)?, distance(step.otherwise)?)),
        }
    };
    steps.iter().enumerate().map(insn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATCH: Insn = stmt(RET, 0);

    #[test]
    fn no_bit_and_one_bit_are_tested() {
        let none = [stmt(LD, 24), stmt(AND, 0x41), jump(JEQ, 0, 0, 1), MATCH];
        assert_eq!(shorten(&none).unwrap(), [stmt(LD, 24), jump(JSET, 0x41, 1, 0), MATCH]);
        let one = [stmt(LD, 24), stmt(AND, 0x40), jump(JEQ, 0x40, 0, 1), MATCH];
        assert_eq!(shorten(&one).unwrap(), [stmt(LD, 24), jump(JSET, 0x40, 0, 1), MATCH]);
        let two = [stmt(LD, 24), stmt(AND, 0x41), jump(JEQ, 0x41, 0, 1), MATCH];
        assert_eq!(shorten(&two).unwrap(), two);
    }

    #[test]
    fn words_that_are_there_are_not_loaded() {
        let values = [7, 5, 9].map(|k| [stmt(LD, 16), jump(JEQ, k, 0, 1), MATCH]).concat();
        let short = [stmt(LD, 16), jump(JEQ, 7, 2, 0), jump(JEQ, 5, 1, 0), jump(JEQ, 9, 0, 1), MATCH];
        assert_eq!(shorten(&values).unwrap(), short);
        let masked = [1, 5].map(|k| [stmt(LD, 16), stmt(AND, 0xf), jump(JEQ, k, 0, 1), MATCH]).concat();
        let short = [stmt(LD, 16), stmt(AND, 0xf), jump(JEQ, 1, 1, 0), jump(JEQ, 5, 0, 1), MATCH];
        assert_eq!(shorten(&masked).unwrap(), short);
        // Another word was loaded on one of the ways there.
        let both = [stmt(LD, 16), jump(JEQ, 1, 0, 3), stmt(LD, 24), jump(JEQ, 2, 0, 1), MATCH];
        let whole = [&both[..], &[stmt(LD, 16), jump(JEQ, 3, 0, 1), MATCH]].concat();
        let short =
            [&[stmt(LD, 16), jump(JEQ, 1, 0, 2)], &[stmt(LD, 24), jump(JEQ, 2, 2, 0)], &whole[5..]].concat();
        assert_eq!(shorten(&whole).unwrap(), short);
    }

    #[test]
    fn neighbours_are_compared_by_their_ends() {
        let values = |list: &[u32]| {
            list.iter().flat_map(|k| [stmt(LD, 16), jump(JEQ, *k, 0, 1), MATCH]).collect::<Vec<_>>()
        };
        let short = [
            stmt(LD, 16),
            jump(JEQ, 2, 3, 0),
            jump(JGE, 4, 0, 1),
            jump(JGT, 7, 0, 1),
            jump(JEQ, 1, 0, 1),
            MATCH,
        ];
        assert_eq!(shorten(&values(&[2, 4, 5, 6, 7, 1])).unwrap(), short);
        let last = [stmt(LD, 16), jump(JGE, u32::MAX - 2, 0, 2), jump(JGT, u32::MAX, 1, 0), MATCH];
        assert_eq!(shorten(&values(&[u32::MAX - 2, u32::MAX - 1, u32::MAX])).unwrap(), last);
        let wraps = [
            stmt(LD, 16),
            jump(JEQ, u32::MAX - 1, 2, 0),
            jump(JEQ, u32::MAX, 1, 0),
            jump(JEQ, 0, 0, 1),
            MATCH,
        ];
        assert_eq!(shorten(&values(&[u32::MAX - 1, u32::MAX, 0])).unwrap(), wraps);
    }

    #[test]
    fn what_no_jump_reaches_stays_long() {
        let many: Vec<_> = (0..300).flat_map(|k| [stmt(LD, 16), jump(JEQ, 2 * k, 0, 1), MATCH]).collect();
        assert_eq!(shorten(&many), None);
        assert_eq!(shorten(&[stmt(0xffff, 0), MATCH]), None);
    }
}
