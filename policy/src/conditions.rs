// From conditions on arguments to a piece of program, by seccompiler. Shared by the build script (for the
// named restrictions) and, behind the `std` feature, by the launcher (for free conditions).

use super::restrictions::{Condition, Op, Width};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// `sock_filter` as a tuple: code, jump if true, jump if false, operand.
pub type RawInsn = (u16, u8, u8, u32);

/// What seccompiler puts before the conditions of a single rule: load and check the architecture (3), load
/// the number, compare it, and two jumps that lead into the rule.
const PROLOGUE: usize = 7;
/// And after the rule: the mismatch of the call's chain, and the mismatch of the program.
const EPILOGUE: usize = 2;
const BPF_RET: u16 = 0x06;
const BPF_JA: u16 = 0x05;

/// Compiles alternatives of conditions to a piece that returns where one of them holds (with the operand 0,
/// a place for the real action) and falls through at its end where none does.
pub fn compile(alternatives: &[Vec<Condition>]) -> Result<Vec<RawInsn>, String> {
    if alternatives.is_empty() {
        return Err("no alternatives".to_string());
    }
    let compiled = alternatives.iter().map(|all| alternative(all)).collect::<Result<Vec<_>, _>>()?;
    let mut piece = Vec::new();
    let mut rest = compiled.as_slice();
    while let Some(first) = rest.first() {
        let alike = rest.iter().take_while(|next| shares_load(first, next)).take(MOST_ALIKE).count();
        if alike > 1 {
            piece.extend(choice(&rest[..alike]));
        } else {
            piece.extend(first);
        }
        rest = &rest[alike.max(1)..];
    }
    Ok(piece)
}

/// As far as a conditional jump reaches.
const MOST_ALIKE: usize = 200;
const BPF_LD_W_ABS: u16 = 0x20;

/// Whether two alternatives each load the same word, compare it once, and return.
fn shares_load(a: &[RawInsn], b: &[RawInsn]) -> bool {
    let simple =
        |x: &[RawInsn]| matches!(x, [(BPF_LD_W_ABS, ..), (_, 0, 1, _) | (_, 1, 0, _), (BPF_RET, ..)]);
    simple(a) && simple(b) && a[0] == b[0]
}

/// Alternatives that compare the same word: one load, one comparison each, one return. A list of forty
/// values is a third as long that way, and the kernel's time for taking a program goes by its length.
fn choice(alternatives: &[Vec<RawInsn>]) -> Vec<RawInsn> {
    let last = alternatives.len() - 1;
    let mut piece = vec![alternatives[0][0]];
    for (index, alternative) in alternatives.iter().enumerate() {
        let (code, when_true, _, k) = alternative[1];
        // A comparison jumps over the ones behind it to the return, or goes on to the next one.
        let (matched, missed) = ((last - index) as u8, u8::from(index == last));
        piece.push(if when_true == 0 { (code, matched, missed, k) } else { (code, missed, matched, k) });
    }
    piece.push((BPF_RET, 0, 0, 0));
    piece
}

/// One rule. Where a condition does not hold it jumps to what follows its return: the next alternative.
fn alternative(conditions: &[Condition]) -> Result<Vec<RawInsn>, String> {
    let conditions = conditions.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    let rule = SeccompRule::new(conditions).map_err(|e| e.to_string())?;
    // Any call number will do: the part that compares it is cut off.
    let (matched, missed) = (SeccompAction::Allow, SeccompAction::KillProcess);
    let filter = SeccompFilter::new([(0, vec![rule])].into(), missed, matched, TargetArch::x86_64);
    let program: BpfProgram =
        filter.and_then(|filter| filter.try_into()).map_err(|e: seccompiler::BackendError| e.to_string())?;
    let end = program.len().saturating_sub(EPILOGUE);
    let (head, body, tail) = match (program.get(..PROLOGUE), program.get(PROLOGUE..end), program.get(end..)) {
        (Some(head), Some(body), Some(tail)) => (head, body, tail),
        _ => return Err("seccompiler's program is shorter than expected".to_string()),
    };
    let led_in = head[PROLOGUE - 2..].iter().all(|i| i.code == BPF_JA) && head[PROLOGUE - 2].k == 1;
    let closed = tail.iter().all(|i| i.code == BPF_RET) && body.last().is_some_and(|i| i.code == BPF_RET);
    if !led_in || !closed {
        return Err("seccompiler's program has an unexpected layout".to_string());
    }
    Ok(body
        .iter()
        .map(|i| if i.code == BPF_RET { (i.code, 0, 0, 0) } else { (i.code, i.jt, i.jf, i.k) })
        .collect())
}

fn condition(condition: &Condition) -> Result<SeccompCondition, String> {
    let width = match condition.width {
        Width::Dword => SeccompCmpArgLen::Dword,
        Width::Qword => SeccompCmpArgLen::Qword,
    };
    let op = match condition.op {
        Op::Eq => SeccompCmpOp::Eq,
        Op::Ne => SeccompCmpOp::Ne,
        Op::Lt => SeccompCmpOp::Lt,
        Op::Le => SeccompCmpOp::Le,
        Op::Gt => SeccompCmpOp::Gt,
        Op::Ge => SeccompCmpOp::Ge,
        Op::MaskedEq(mask) => SeccompCmpOp::MaskedEq(mask),
    };
    SeccompCondition::new(condition.arg, width, op, condition.value).map_err(|e| e.to_string())
}
